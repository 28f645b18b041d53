"""One consumer of a stream queue and its place in the stream, on which nobody else's has any influence.

The servers give each reader a consumer of its own, from which chunks are pulled somewhat ahead of the client's credit;
they are taken apart when there is credit. That consumer is in one server's memory: when it is lost, or a delivery, or
the connection, another one takes its place, behind the last chunk that has come. So a client sees each message of the
stream once and in order, for as long as its consumer lives.

State owned: the place, the chunks that are here, what is asked for. Called by `broker.replicated.stream_queue`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Final

from burrowmq.broker.queue.rules.stream import FilterSpec, OffsetSpec
from burrowmq.broker.queue.run import TRANSIENT, DeliveryRun
from burrowmq.broker.queue.serve.consumer import Consumer
from burrowmq.broker.replicated.front_end import FrontEnd
from burrowmq.cluster import api, retained
from burrowmq.cluster.api import Document, Refusal
from burrowmq.cluster.chunk import CHUNK_BYTES, offset_of, position_of, unpack_chunk
from burrowmq.cluster.intake import Pulls
from burrowmq.cluster.record import RecordError
from burrowmq.cluster.wire import Delivered
from burrowmq.protocol.codec import Message, body_bytes, header_fields
from burrowmq.protocol.properties import with_header
from burrowmq.protocol.table import Long, encode_value

OFFSET_HEADER: Final = "x-stream-offset"
FILTER_HEADER: Final = b"x-stream-filter-value"
AHEAD_BYTES: Final = 1 << 20
"""Of chunks that are here or on their way."""
AHEAD_COUNT: Final = 64
AGAIN_MS: Final = 500.0
"""After a request for a consumer that was refused the next one waits so long."""
ANEW_MS: Final = 100.0
"""Or after one that was lost."""
BEHIND_MS: Final = 4_000.0
"""What is in the stream and has not come for so long does not come."""
WATCH_MS: Final = 3_000.0
"""So often what was asked for is looked at while nothing comes."""
GONE: Final = frozenset((404, 409, 503))
"""Statuses that may mean that the consumer is no more: its server was stopped, the stream is led by another one."""
SURE: Final = frozenset(("all", "by_start_sequence"))
"""Ways to begin that come to the same whenever they are asked for."""
_FILTER_NAMES: Final = frozenset((FILTER_HEADER,))


def start_of(spec: OffsetSpec, wall_ms: int) -> tuple[retained.Start, int]:
    """Where a reader begins, and the lowest offset that it wants."""
    if spec.offset is not None:
        offset = max(0, spec.offset)
        return retained.at_sequence(position_of(offset).sequence), offset
    if spec.at_ms is not None:
        return retained.at_time(spec.at_ms), 0
    if spec.ago_ms is not None:
        return retained.at_time(wall_ms - spec.ago_ms), 0
    words = {"first": retained.FIRST, "last": retained.LAST, "next": retained.NEXT}
    return words[spec.word], 0


class Reader:
    """That of one consumer.

    `on_lost` is called when the servers' consumer is gone: it may be that the stream is.
    """

    def __init__(
        self,
        consumer: Consumer,
        stream: str,
        front_end: FrontEnd,
        start: tuple[retained.Start, int],
        wanted: FilterSpec | None,
        *,
        changed: Callable[[], None],
        on_lost: Callable[[], None],
        on_unreadable: Callable[[int, str], None],
    ) -> None:
        self.consumer = consumer
        self._stream = stream
        self._front_end = front_end
        self._start, self._lowest = start
        self._fields = None if wanted is None else _filter_fields(wanted)
        self._matches_unfiltered = wanted is not None and wanted.matches_unfiltered
        self._then: Callable[[str], None] | None = None
        self._changed = changed
        self._on_lost = on_lost
        self._on_unreadable = on_unreadable
        self._chunks: deque[tuple[int, bytes]] = deque()
        self._chunk_bytes = 0
        self._mean_bytes = float(CHUNK_BYTES)
        self._ready: deque[Message] = deque()  # of the chunk that was taken apart, and is wanted
        self._next_sequence = 0  # of the chunk that comes next; 0 before the servers have said
        self._next_number = 1  # of the delivery
        self._name = ""  # of the servers' consumer, while there is one
        self._sid = 0
        self._pulls: Pulls | None = None
        self._is_asking = False
        self._behind_sequence = 0  # what was to come at the last look, and had not
        self._behind_ms = 0.0
        self._not_before_ms = 0.0
        self._is_over = False

    # -- the servers' consumer ------------------------------------------------------------------------------------

    def begin(self, then: Callable[[str], None]) -> None:
        """Find the place; `then` is told once why there is none, or ""."""
        self._then = then
        self.open()

    def open(self) -> None:
        """Ask for a consumer, unless there is one, or it is asked for."""
        if self._is_over or self._is_asking or self._pulls is not None:
            return
        self._is_asking = True
        self._sid, inbox = self._front_end.subscribe(self._on_pulled)
        self._name = f"r{self._front_end.token.decode()}_{self._sid}"
        start = self._start
        if self._next_sequence:
            start = retained.at_sequence(self._next_sequence)
        name = self._name

        def on_answer(found: Document | Refusal) -> None:
            self._is_asking = False
            if self._is_over or isinstance(found, Refusal):
                self._close(name)
                self._not_before_ms = self._front_end.now_ms() + AGAIN_MS
                if isinstance(found, Refusal):
                    self._tell(found.text)
                    self._changed()
                return
            if not self._next_sequence:
                self._next_sequence = retained.position_in(found)
                if start.policy not in SURE:
                    # Its server may be started again, and would take the next one for another.
                    self._close(name)
                    self.open()
                    return
            self._next_number = 1
            self._pulls = Pulls(self._stream, name, inbox)
            self._tell("")
            self._changed()

        self._front_end.ask(retained.create_reader(self._stream, name, start), on_answer)

    def _tell(self, reason: str) -> None:
        then, self._then = self._then, None
        if then is not None:
            then(reason)

    def _close(self, name: str) -> None:
        """That consumer is not used any more: the servers may forget it, and do so by themselves if they miss this."""
        self._pulls = None
        if self._sid:
            self._front_end.unsubscribe(self._sid)
            self._sid = 0
        self._front_end.ask(retained.delete_reader(self._stream, name), _ignore)

    def _begin_anew(self, now_ms: float) -> None:
        if self._pulls is not None:
            self._close(self._name)
        self._not_before_ms = now_ms + ANEW_MS
        self._on_lost()

    def lost(self) -> None:
        """The connection broke: what was on its way will not come."""
        if self._pulls is not None:
            self._front_end.unsubscribe(self._sid)
            self._pulls, self._sid = None, 0

    def looked(self, first: int, last: int, now_ms: float) -> bool:
        """The stream has these chunks; whether there is something to come that does not.

        A server's copy may be behind, and its consumer with it: after a while a place at another one is asked for.
        """
        is_waiting = self._pulls is not None and not self.has_more
        is_behind = is_waiting and max(first, self._next_sequence) <= last
        if not is_behind or self._next_sequence != self._behind_sequence:
            self._behind_sequence = self._next_sequence if is_behind else 0
            self._behind_ms = now_ms
        elif now_ms - self._behind_ms >= BEHIND_MS:
            self._behind_sequence = 0
            self._begin_anew(now_ms)
        return is_behind

    def start_over(self) -> None:
        """The stream is another one now: of that all is wanted."""
        if self._next_sequence:
            self._next_sequence, self._lowest = 1, 0
            self._begin_anew(self._front_end.now_ms())

    def end(self, reason: str) -> None:
        """The consumer leaves, or the queue is gone."""
        self._is_over = True
        if self._pulls is not None:
            self._close(self._name)
        self._chunks.clear()
        self._ready.clear()
        self._tell(reason)

    # -- what comes -----------------------------------------------------------------------------------------------

    def _on_pulled(self, deliveries: list[Delivered]) -> None:
        pulls, now_ms = self._pulls, self._front_end.now_ms()
        if pulls is None:
            return
        for delivered in deliveries:
            if not pulls.delivered(delivered, now_ms):
                continue
            place = api.place_of(delivered.reply)
            if place is None:
                continue
            if retained.number_of(delivered.reply) != self._next_number:
                self._begin_anew(now_ms)  # one was lost between two servers
                break
            self._next_number += 1
            self._next_sequence = place.sequence + 1
            size = len(delivered.payload)
            self._chunks.append((place.sequence, delivered.payload))
            self._chunk_bytes += size
            self._mean_bytes += (size - self._mean_bytes) / 8
        status, pulls.last_status = pulls.last_status, None
        if status is not None and status.status in GONE and self._pulls is pulls:
            self._begin_anew(now_ms)
        self._changed()

    def send(self, now_ms: float) -> None:
        """Ask for what there is room for."""
        if self._pulls is None:
            if self._next_sequence and now_ms >= self._not_before_ms:
                self.open()
            return
        room = AHEAD_BYTES - self._chunk_bytes
        count = min(AHEAD_COUNT - len(self._chunks), int(room / self._mean_bytes))
        if not self._chunks:
            count = max(1, count)
        self._pulls.allow(max(0, count), max(1, int(room)))
        octets = self._pulls.poll(now_ms)
        if self._pulls.was_silent:
            self._begin_anew(
                now_ms
            )  # its server may stand still, and be the only one that knows it
        else:
            self._front_end.write(octets)

    def due_ms(self, now_ms: float) -> float:
        """When `send` has something to do, if nothing happens."""
        is_there = self._is_asking or self._pulls is not None
        return now_ms + WATCH_MS if is_there else max(now_ms, self._not_before_ms)

    @property
    def asked_count(self) -> int:
        """Chunks that are asked for and have not come."""
        return 0 if self._pulls is None else self._pulls.open_count

    @property
    def size(self) -> int:
        """Octets of what is here."""
        return self._chunk_bytes + body_bytes(self._ready)

    # -- out ------------------------------------------------------------------------------------------------------

    @property
    def has_more(self) -> bool:
        """Whether there is something here; it may be that nobody wants it."""
        return bool(self._ready or self._chunks)

    def take(self, max_count: int, max_bytes: int) -> tuple[DeliveryRun | None, int]:
        """(messages that the client is to be given next, octets that were looked at for that): one chunk's at most."""
        looked = 0
        if not self._ready and self._chunks:
            looked = self._take_apart()
        messages: list[Message] = []
        size = 0
        while self._ready and len(messages) < max_count:
            message = self._ready[0]
            if messages and size + message.size > max_bytes:
                break
            size += message.size
            messages.append(self._ready.popleft())
        if not messages:
            return None, looked
        return DeliveryRun(range(len(messages)), messages, size, TRANSIENT), looked

    def _take_apart(self) -> int:
        sequence, payload = self._chunks.popleft()
        self._chunk_bytes -= len(payload)
        try:
            messages = unpack_chunk(payload)
        except RecordError as error:
            self._on_unreadable(sequence, str(error))
            return len(payload)
        offset = offset_of(sequence, 0)
        for place, message in enumerate(messages, offset):
            if place >= self._lowest and (self._fields is None or self._is_wanted(message)):
                self._ready.append(with_header(message, OFFSET_HEADER, Long(place)))
        return len(payload)

    def _is_wanted(self, message: Message) -> bool:
        assert self._fields is not None, "asked of who filters"
        found = header_fields(message.raw, _FILTER_NAMES)
        return found in self._fields if found else self._matches_unfiltered


def _filter_fields(wanted: FilterSpec) -> frozenset[bytes]:
    lead = b"%c%b" % (len(FILTER_HEADER), FILTER_HEADER)
    return frozenset(lead + encode_value(value) for value in wanted.values)


def _ignore(_: Document | Refusal) -> None:
    """The servers forget it in any case."""
