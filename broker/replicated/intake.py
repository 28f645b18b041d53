"""How a replicated queue comes by messages: pulled while somebody consumes, one at a time for basic.get; and acks.

The server is asked for more than consumers have credit for: each acknowledgement and each pull is an entry of a Raft
log, and with 4,000 on their way they cost half as much as with 500. A consumer with a small prefetch works slowly or
wants its share to be fair: for it no more is pulled than it may have. What is pulled is bounded by octets, too.

A message that goes back unseen counts as delivered at the server, so where there is a limit of deliveries nothing is
pulled ahead either. One that comes behind a later one was delivered before, too, whatever its count: servers deliver
in order, and who leads since another one died may not know the last of what that one has delivered.

Who leads the consumer may be a server that has not heard yet of what a majority has. So who asks for one message and
gets none is told that there is none only when the stream's leader says so, too.

When the last consumer leaves, its subscription ends, and with it what is asked for; what is here goes back. Where only
one front-end at a time is given messages (`pin`), this one lets others be it once it holds nothing any more.

State owned: pulls, acknowledgements that wait, who waits for basic.get. Called by `broker.replicated.queue`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from math import inf
from typing import Final

from burrowmq.broker.queue.origin import Origin
from burrowmq.broker.queue.serve.consumer import Consumers
from burrowmq.broker.queue.serve.getters import Getter
from burrowmq.broker.replicated.front_end import FrontEnd
from burrowmq.broker.replicated.overdue import deadline_of
from burrowmq.broker.replicated.shelf import Shelf
from burrowmq.broker.replicated.stream import CONSUMER, QueueStream
from burrowmq.cluster import api
from burrowmq.cluster.intake import Acks, Pulls
from burrowmq.cluster.pin import Pin
from burrowmq.cluster.record import RecordError, unpack
from burrowmq.cluster.wire import Delivered, WireError, decode_headers, encode_publish
from burrowmq.protocol.constants import PROP_EXPIRATION

AHEAD_COUNT: Final = 4_000
AHEAD_TIMES: Final = 8
FAIR_BELOW: Final = 100
"""Consumers with fewer messages of prefetch together get no more than that."""
AHEAD_BYTES: Final = 16 << 20
EXPECTED_BYTES: Final = 16 << 10
"""Of a message, before one has come."""
WORKING_MS: Final = 3_000.0
"""So often the server is told of what has been here for long; it waits for 10 s."""
SINGLE_WORKING_MS: Final = 1_500.0
"""Or so often, where it waits for 5 s."""
GONE: Final = frozenset((404, 409, 503))
"""Statuses that may mean that the consumer is no more: mostly its leader has changed."""
NOBODY: Final = frozenset((409, 503))
RETURNED_MS: Final = 11_000.0
"""What went back so long ago is there again: a server that has missed the word of it waits for 10 s."""
GET_MS: Final = 5_000.0
"""Who waits for basic.get waits so long for an answer."""
LATE_MS: Final = 2_000.0
"""Or so long for a message that the stream has and nobody is given: it may have been taken out with other tools."""
GET_AGAIN_MS: Final = 10.0

STALE_MS, SINGLE_STALE_MS = 8_000.0, 4_000.0
"""Without a connection for so long, and the servers are about to give to others what was pulled: see their ack_wait."""


class Intake:
    """That of one queue."""

    def __init__(
        self,
        stream: QueueStream,
        front_end: FrontEnd,
        shelf: Shelf,
        consumers: Consumers,
        *,
        changed: Callable[[], None],
        on_unreadable: Callable[[int, str], None],
        pin: Pin | None = None,
    ) -> None:
        self._stream = stream
        self._front_end = front_end
        self.shelf = shelf
        self._consumers = consumers
        self._changed = changed
        self._on_unreadable = on_unreadable
        self._acks = Acks()
        self._acks_sid = 0  # from the first one on
        self._pulls: Pulls | None = None  # while somebody consumes
        self._pulls_sid = 0
        self._pin = pin
        self._working_ms = 0.0
        self._working_every_ms = WORKING_MS if pin is None else SINGLE_WORKING_MS
        self._stale_ms = STALE_MS if pin is None else SINGLE_STALE_MS
        self._lost_ms: float | None = None
        self._getters: deque[Getter] = deque()
        self._get_sid = 0
        self._get_inbox = b""
        self._is_one_asked = False
        self._get_again_ms = -inf
        self._newest = 0  # sequence of the last message in the stream that has come
        self._waits_since_ms: float | None = None  # who waits for basic.get
        self.mean_bytes = float(EXPECTED_BYTES)
        """Of a message that comes, of late."""
        self.returned_count = 0
        """Messages that went back to the servers from here, and were given to nobody since, as far as one can tell."""
        self.returned_ms = -inf
        """When the last of them did."""
        self.ttl_ms: int | None = None
        """The queue's own TTL, for what comes from now on."""
        self.is_ahead = True
        """Whether more may be pulled than consumers have credit for."""
        self.is_paused = False
        """Whether nothing is to be pulled for consumers."""
        self.is_unanswered = False
        """Whether the last one who waited for basic.get waited in vain."""

    @property
    def ack_count(self) -> int:
        """Acknowledgements that the server has not been told of."""
        return self._acks.count

    @property
    def asked_count(self) -> int:
        """Messages that are asked for and have not come."""
        return 0 if self._pulls is None else self._pulls.open_count

    @property
    def is_stale(self) -> bool:
        """Whether what is ready here may be somebody else's by now."""
        lost_ms = self._lost_ms
        return lost_ms is not None and self._front_end.now_ms() >= lost_ms + self._stale_ms

    def opened(self) -> None:
        """There is a connection again. What is somebody else's by now comes again if it is not."""
        if self.is_stale:
            self.shelf.clear()
        self._lost_ms = None

    @property
    def is_resting(self) -> bool:
        """Whether nothing is here, and nothing is asked for: nobody consumes, or has credit."""
        return not self.shelf.count and not self.asked_count

    def acknowledge(self, replies: list[bytes], now_ms: float) -> None:
        """These deliveries are done with."""
        if not self._acks_sid:
            self._acks_sid, self._acks.inbox = self._front_end.subscribe(self._on_answered)
        self._acks.add(replies, now_ms)

    def _on_answered(self, deliveries: list[Delivered]) -> None:
        now_ms = self._front_end.now_ms()
        for delivered in deliveries:
            self._acks.answered(delivered, now_ms)
        self._changed()

    # -- what comes -----------------------------------------------------------------------------------------------

    def _on_pulled(self, deliveries: list[Delivered]) -> None:
        pulls, now_ms = self._pulls, self._front_end.now_ms()
        assert pulls is not None, "there is a subscription"
        self.put([each for each in deliveries if pulls.delivered(each, now_ms)])
        status, pulls.last_status = pulls.last_status, None
        if status is not None and status.status in GONE:
            self._stream.refresh()
        self._changed()

    def _on_got(self, deliveries: list[Delivered]) -> None:
        found = [each for each in deliveries if each.reply]
        self.put(found)
        if found or not self._getters:
            self._is_one_asked = False
            self._waits_since_ms = None
            self.is_unanswered = False
        elif _is_nobody(deliveries[-1]):
            self._stream.refresh()  # it may be gone
            self._get_later()
        else:
            self._stream.ask(self._on_looked)
        self._changed()

    def _on_looked(self, reason: str) -> None:
        """There was nothing to get: either the queue is empty, or who leads its consumer does not know of all yet."""
        self._is_one_asked = False
        since_ms = self._waits_since_ms
        is_late = since_ms is None or self._front_end.now_ms() < since_ms + LATE_MS
        if reason or (self._stream.behind and is_late):
            self._get_later()
        elif self._getters:
            self._waits_since_ms = None
            self.is_unanswered = False
            self._getters.popleft()(None, None)
        self._changed()

    def put(self, deliveries: list[Delivered]) -> None:
        """Messages have come."""
        shelf = self.shelf
        if self.returned_count:
            self.note_returned([each.reply for each in deliveries])
        size = 0
        for delivered in deliveries:
            place = api.place_of(delivered.reply)
            if place is None or shelf.renew(place.sequence, delivered.reply):
                continue
            before_count = place.delivery_count - 1
            if place.sequence > self._newest:
                self._newest = place.sequence
            elif not before_count:
                before_count = 1  # who leads now does not know that it was delivered
            if before_count and self._acks.has(place.sequence):
                self.acknowledge([delivered.reply], self._front_end.now_ms())
                continue
            try:
                message = unpack(delivered.payload)
            except RecordError as error:
                self._on_unreadable(place.sequence, str(error))
                self._front_end.write(encode_publish(delivered.reply, api.TERM))
                continue
            due_ms = 0
            if self.ttl_ms is not None or message.flags & PROP_EXPIRATION:
                due_ms = deadline_of(message, self.ttl_ms, api.stored_ms(delivered.reply))
            shelf.put(place.sequence, delivered.reply, message, before_count, due_ms)
            size += len(delivered.payload)
        if deliveries:
            mean = size / len(deliveries)
            self.mean_bytes += (mean - self.mean_bytes) * min(1.0, len(deliveries) / 64)

    def note_returned(self, replies: list[bytes]) -> None:
        """These were delivered: what has come back is so before what is new."""
        if not self.returned_count:
            return
        is_settled = self._front_end.now_ms() >= self.returned_ms + RETURNED_MS
        for reply in replies:
            place = api.place_of(reply)
            if place is not None and place.delivery_count > 1:
                self.returned_count = max(0, self.returned_count - 1)
            elif is_settled:
                self.returned_count = 0

    # -- basic.get ------------------------------------------------------------------------------------------------

    def get(self, getter: Getter) -> bool:
        """Wait for one message; whether nobody else does."""
        self._getters.append(getter)
        return len(self._getters) == 1

    def serve_getters(self, origin: Origin, head: Callable[[], Shelf | None]) -> None:
        """Give those who wait what is here, and has not expired: `head` sees to that."""
        getters = self._getters
        while getters and (shelf := head()) is not None:
            run = shelf.take(1, 1)
            assert run is not None, "there is one"
            self.is_unanswered = False
            getters.popleft()(origin, run)

    def expire(self, now_ms: float) -> None:
        """Who has waited for too long is told that there is no answer."""
        if not self._getters:
            self._waits_since_ms = None
        elif self._waits_since_ms is None:
            self._waits_since_ms = now_ms
        elif now_ms - self._waits_since_ms >= GET_MS:
            self._waits_since_ms = None
            self._is_one_asked = False
            self.is_unanswered = True
            while self._getters:
                self._getters.popleft()(None, None)

    def _get_later(self) -> None:
        self._is_one_asked = False
        self._get_again_ms = self._front_end.now_ms() + GET_AGAIN_MS

    def _ask_for_one(self, now_ms: float) -> None:
        if not self._getters or self._is_one_asked or now_ms < self._get_again_ms:
            return
        self._is_one_asked = True
        if not self._get_sid:
            self._get_sid, self._get_inbox = self._front_end.subscribe(self._on_got)
        request = api.pull_now(self._stream.name, CONSUMER)
        self._front_end.write(
            encode_publish(request.subject, request.payload, b"%b.g" % self._get_inbox)
        )

    # -- what goes ------------------------------------------------------------------------------------------------

    def send(self, now_ms: float) -> None:
        """Pull, acknowledge, and say what is still worked on."""
        front_end = self._front_end
        self.expire(now_ms)
        self._ask_for_one(now_ms)
        if len(self._consumers):
            if self._pulls is None:
                self._pulls_sid, inbox = front_end.subscribe(self._on_pulled)
                self._pulls = Pulls(self._stream.name, CONSUMER, inbox, pin=self._pin)
            ahead_count = 0 if self.is_paused else self._ahead_count()
            self._allow(self._pulls, max(0, ahead_count - self.shelf.count))
            front_end.write(self._pulls.poll(now_ms))
        elif self._pulls is not None or (self.shelf.count and not self._getters):
            self._stop_pulling()
        front_end.write(self._acks.poll(now_ms))
        if self._pin is not None:
            is_consuming, is_holding = len(self._consumers) > 0, self.shelf.held_count > 0
            front_end.write(
                self._pin.tend(now_ms, is_consuming=is_consuming, is_holding=is_holding)
            )
        is_looked_at = self._pulls is not None or self.shelf.held_count > 0
        if is_looked_at and now_ms >= self._working_ms + self._working_every_ms:
            self._working_ms = now_ms
            old = self.shelf.grown_old()
            front_end.write(b"".join([encode_publish(reply, api.WORKING) for reply in old]))

    def _allow(self, pulls: Pulls, count: int) -> None:
        """So many, which may be larger than those that came of late."""
        room = AHEAD_BYTES - self.shelf.size
        if room > 0 or not self.shelf.count:
            pulls.allow(count, max(room, 1))
        else:
            pulls.allow(0)

    def _stop_pulling(self) -> None:
        if self._pulls is not None:
            self._front_end.unsubscribe(self._pulls_sid)
            self._pulls = None
        back = self.shelf.clear()
        if back:
            self.returned_count += len(back)
            self.returned_ms = self._front_end.now_ms()
        self._front_end.write(b"".join([encode_publish(reply, api.NAK) for reply in back]))

    def _ahead_count(self) -> int:
        """How many messages may be here, or on their way, and not handed out."""
        wanted = credit = 0
        for consumer in self._consumers:
            if consumer.no_ack:
                wanted = credit = AHEAD_COUNT
                break
            wanted += consumer.unacked_max
            credit += max(0, consumer.unacked_max - consumer.unacked_count)
        if wanted >= FAIR_BELOW and self.is_ahead:
            wanted = min(AHEAD_COUNT, AHEAD_TIMES * wanted)
        else:
            wanted = credit
        return max(0, min(wanted, int(AHEAD_BYTES / max(self.mean_bytes, 1.0)) or 1))

    @property
    def expires_ms(self) -> float | None:
        """When `expire` has something to do; None where nobody waits."""
        return None if self._waits_since_ms is None else self._waits_since_ms + GET_MS

    def due_ms(self) -> float | None:
        """When `send` has something to do, if nothing happens; None for never."""
        found = []
        acks_ms = self._acks.due_ms()
        if acks_ms is not None:
            found.append(acks_ms)
        if self._waits_since_ms is not None:
            is_paused = self._get_again_ms > self._waits_since_ms and not self._is_one_asked
            found.append(self._get_again_ms if is_paused else self._waits_since_ms + GET_MS)
        if self._pulls is not None or self.shelf.held_count:
            found.append(self._working_ms + self._working_every_ms)
        pulls_ms = self._pulls.due_ms() if self._pulls is not None else None
        if pulls_ms is not None:
            found.append(pulls_ms)
        pin_ms = self._pin.due_ms() if self._pin is not None else None
        if pin_ms is not None:
            found.append(pin_ms)
        return min(found, default=None)

    def close(self) -> None:
        """The node stops: let go of all that is here."""
        if self._front_end.is_open:
            self._stop_pulling()
            self._front_end.write(self._acks.poll(inf))
            if self._pin is not None:
                self._front_end.write(self._pin.let_go())

    def lost(self) -> None:
        """The connection broke: what was asked for will not come."""
        self._lost_ms = self._front_end.now_ms()
        self._is_one_asked = False
        self._acks.lost()
        if self._pulls is not None:
            self._pulls.lost()
        if self._pin is not None:
            self._pin.lost()

    def forget(self) -> None:
        """The stream is another one: nothing of what is here is its own."""
        self._acks.forget()
        self.shelf.forget_all()
        self._newest = 0
        if self._pulls is not None:
            self._pulls.lost()

    def end(self) -> None:
        """The queue is gone."""
        pulls_sid = self._pulls_sid if self._pulls is not None else 0
        for sid in (pulls_sid, self._get_sid, self._acks_sid):
            if sid:
                self._front_end.unsubscribe(sid)
        self._pulls = None
        self.shelf.clear()
        while self._getters:
            self._getters.popleft()(None, None)


def _is_nobody(delivered: Delivered) -> bool:
    """Whether nobody serves a pull: servers elect who leads the consumer, or it is not there."""
    try:
        return decode_headers(delivered.headers).status in NOBODY
    except WireError:
        return False
