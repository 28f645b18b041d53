"""Taking messages from a consumer that front-ends share, and acknowledging them. No I/O, and no clock of its own.

`Pulls` keeps requests for messages open at the server: so many as there is credit for, asked again when half of it is
used up, so that the next messages are on their way while these are handled. A request ends when it is filled, by a
status that says what is left of it (it expired, the leader changed), by silence (heartbeats stay away), or with the
link.

`Acks` collects acknowledgements, and sends again those of which no answer says that a majority has them: one that is
lost means that the message comes again. Those that wait when a link breaks go by the next one, since the consumer is
the same.

State owned: open requests; acknowledgements that wait for their time or for their answer. Called by who holds the link,
as `cluster.window` is.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf

from burrowmq.cluster import api
from burrowmq.cluster.pin import Pin
from burrowmq.cluster.wire import Delivered, Headers, WireError, decode_headers, encode_publish

_PENDING = "Nats-Pending-Messages"
_HEARTBEAT = 100
_EXPIRED = 408
_CONFLICT, _TOO_LARGE, _FILLED = 409, "MaxBytes", "Batch Completed"
"""How a request with a limit of octets ends: the next message is larger than what is left of them, or all have come."""
_LATER_MS = 100.0
"""After a request that could not be served (no leader, no such consumer) the next one waits so long."""

_SECOND_MS = 1_000.0
"""Or so long, if another client is the pinned one, as far as is known: that one is to be it again."""
_ANSWER_MS = 1_500.0
_ANSWER_MOST_MS = 4_000.0
"""Acknowledgements are waited for so long, then twice as long, at most so long; then they are sent again."""
_NOBODY_MS = 300.0
"""Or after so long, when nobody has heard them."""
_GIVE_UP_MS = 60_000.0
"""After so long on one connection, with no answer at all, they are none that anybody knows."""
_SILENCES = 2.5
"""So many times the heartbeats' interval without a word, and the requests count as lost."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PullLimits:
    """How long a request stays open, and how often the server says that it is."""

    expires_ms: int = 30_000
    heartbeat_ms: int = 3_000


class _Pull:
    """One request: how many messages it may still bring, and when it was made."""

    __slots__ = ("asked_ms", "left_count")

    def __init__(self, left_count: int, asked_ms: float) -> None:
        self.left_count = left_count
        self.asked_ms = asked_ms


class Pulls:
    """Those of one front-end at one consumer, by a subscription of its own to all subjects below `inbox`.

    A message comes under the subject by which it was published: which request it answers is not said, so it counts for
    the oldest. A status names its request, and what was left of it: that puts right what was counted for another.
    """

    def __init__(
        self,
        stream: str,
        consumer: str,
        inbox: bytes,
        limits: PullLimits | None = None,
        pin: Pin | None = None,
    ) -> None:
        self._stream = stream
        self._consumer = consumer
        self._inbox = inbox
        self._limits = limits or PullLimits()
        self._pin = pin
        self._credit = self._octets = 0
        self._is_large_next = False
        self._open: dict[int, _Pull] = {}
        self._number = 0
        self._heard_ms = 0.0
        self._not_before_ms = 0.0
        self.was_silent = False
        """Whether requests were open, and nothing was heard of them for too long."""
        self.last_status: Headers | None = None
        """What the server said of a request that ended before it was filled, the last time."""

    @property
    def open_count(self) -> int:
        """Messages that are asked for and have not come."""
        return sum(pull.left_count for pull in self._open.values())

    def allow(self, credit: int, octets: int = 0) -> None:
        """So many messages may be on their way at most. Fewer than are asked for by now: those come all the same.

        A request is for so many octets at most, and for one message where the next has more; 0: whatever they have. It
        is that for who has to be pinned: a request that ends for its octets would cost the pin.
        """
        self._credit = credit
        self._octets = 0 if self._pin is not None else octets

    def poll(self, now_ms: float) -> bytes:
        """The request to be sent now; b"" for none. Forgets those that the server has forgotten."""
        self._forget(now_ms)
        if self._is_enough or now_ms < self._not_before_ms:
            return b""
        if not self._open:
            self._heard_ms = now_ms
        count = 1 if self._is_large_next else self._credit - self.open_count
        self._number += 1
        self._open[self._number] = _Pull(count, now_ms)
        more: dict[str, object] = {} if self._pin is None else {**self._pin.fields()}
        if self._octets and not self._is_large_next:
            more["max_bytes"] = self._octets
        self._is_large_next = False
        request = api.pull(
            self._stream,
            self._consumer,
            count,
            expires_ms=self._limits.expires_ms,
            heartbeat_ms=self._limits.heartbeat_ms,
            **more,
        )
        return encode_publish(
            request.subject, request.payload, b"%b.%d" % (self._inbox, self._number)
        )

    @property
    def _is_enough(self) -> bool:
        open_count = self.open_count
        if self._is_large_next:
            return open_count >= self._credit
        return open_count * 2 > self._credit or open_count >= self._credit

    def due_ms(self) -> float | None:
        """When `poll` has a request to send, if nothing happens; None where none waits."""
        return None if self._is_enough else self._not_before_ms

    def _forget(self, now_ms: float) -> None:
        """A server that says nothing at all has no request of ours; one that is long over was lost before."""
        limits = self._limits
        if now_ms - self._heard_ms >= _SILENCES * limits.heartbeat_ms:
            self.was_silent |= bool(self._open)
            self._open.clear()
        over_ms = now_ms - limits.expires_ms - limits.heartbeat_ms
        for number in [number for number, pull in self._open.items() if pull.asked_ms <= over_ms]:
            del self._open[number]

    def delivered(self, delivered: Delivered, now_ms: float) -> bool:
        """Account for what the subscription has brought; whether it is a message (and no status)."""
        self._heard_ms = now_ms
        if not delivered.reply:
            self._heard(delivered, now_ms)
            return False
        if self._pin is not None and self._pin.delivered(delivered.headers, now_ms):
            # The oldest has been given the id; others, which have none, are not served any more.
            for number in list(self._open)[1:]:
                del self._open[number]
        for number, pull in self._open.items():
            pull.left_count -= 1
            if not pull.left_count:
                del self._open[number]
            break
        return True

    def _heard(self, delivered: Delivered, now_ms: float) -> None:
        try:
            status = decode_headers(delivered.headers)
        except WireError:
            return  # silence will end the request
        if status.status in (0, _HEARTBEAT):
            return
        is_over = status.status == _CONFLICT and status.text == _FILLED
        if status.status == _CONFLICT and _TOO_LARGE in status.text:
            self._is_large_next = is_over = True
        if not is_over:
            self.last_status = status
        if status.status != _EXPIRED and not is_over:
            is_second = self._pin is not None and not self._pin.id
            self._not_before_ms = now_ms + (_SECOND_MS if is_second else _LATER_MS)
        if self._pin is not None:
            self._pin.heard(status)
        number = delivered.subject[len(self._inbox) + 1 :]
        ended = self._open.pop(int(number), None) if number.isdigit() else None
        pending = status.values.get(_PENDING, "")
        if ended is None or not pending.isdecimal():
            return
        for pull in self._open.values():
            pull.left_count = max(1, pull.left_count + ended.left_count - int(pending))
            break

    def lost(self) -> None:
        """The link broke, and all requests with it."""
        self._open.clear()
        self._is_large_next = False


class _Batch:
    """Acknowledgements that go together."""

    __slots__ = ("_looked_count", "_sequences", "began_ms", "due_ms", "replies", "wait_ms")

    def __init__(self, replies: list[bytes], now_ms: float) -> None:
        self.replies = replies
        self.began_ms = now_ms
        self.due_ms = now_ms
        self.wait_ms = _ANSWER_MS
        self._sequences: set[int] = set()
        self._looked_count = 0

    def has(self, sequence: int) -> bool:
        """Whether one of them is this message's. Looks at them only when it is asked."""
        for reply in self.replies[self._looked_count :]:
            place = api.place_of(reply)
            if place is not None:
                self._sequences.add(place.sequence)
        self._looked_count = len(self.replies)
        return sequence in self._sequences


class Acks:
    """Acknowledgements that wait: for `collect_count` of them, or for `collect_ms`.

    Where there is an `inbox` the last of those that go together asks for an answer, which comes when a majority has it;
    without one all are sent again, since whoever leads the consumer may have died with them. Each may be said any
    number of times.
    """

    def __init__(self, collect_count: int = 256, collect_ms: float = 20.0) -> None:
        self._collect_count = collect_count
        self._collect_ms = collect_ms
        self._waiting = _Batch([], 0.0)
        self._sent: dict[int, _Batch] = {}
        self._number = 0
        self.inbox = b""
        """Below it answers come; b"" for none."""

    def add(self, replies: list[bytes], now_ms: float) -> None:
        """These deliveries, by their reply subjects, are done with."""
        if not self._waiting.replies:
            self._waiting.began_ms = now_ms
        self._waiting.replies += replies

    @property
    def count(self) -> int:
        """Acknowledgements that wait."""
        return len(self._waiting.replies)

    def has(self, sequence: int) -> bool:
        """Whether a message is acknowledged, and the server may not know it."""
        return any(batch.has(sequence) for batch in (self._waiting, *self._sent.values()))

    def due_ms(self) -> float | None:
        """When `poll` has something to send; None for never."""
        dues = [batch.due_ms for batch in self._sent.values()]
        if self._waiting.replies:
            is_enough = len(self._waiting.replies) >= self._collect_count
            dues.append(self._waiting.began_ms + (0.0 if is_enough else self._collect_ms))
        return min(dues, default=None)

    def poll(self, now_ms: float) -> bytes:
        """What is to be sent now; b"" for nothing."""
        due_ms = self.due_ms()
        if due_ms is None or now_ms < due_ms:
            return b""
        parts = [self._again(number, now_ms) for number in list(self._sent)]
        waiting = self._waiting
        if waiting.replies and now_ms >= waiting.began_ms + (
            0.0 if len(waiting.replies) >= self._collect_count else self._collect_ms
        ):
            self._waiting = _Batch([], now_ms)
            waiting.began_ms = now_ms  # it may have waited long for a connection
            self._number += 1
            if self.inbox:
                self._sent[self._number] = waiting
            parts.append(self._encoded(self._number, waiting, now_ms))
        return b"".join(parts)

    def _again(self, number: int, now_ms: float) -> bytes:
        batch = self._sent[number]
        if now_ms < batch.due_ms:
            return b""
        if now_ms >= batch.began_ms + _GIVE_UP_MS:
            del self._sent[number]  # there is no such consumer any more
            return b""
        batch.wait_ms = min(2 * batch.wait_ms, _ANSWER_MOST_MS)
        return self._encoded(number, batch, now_ms)

    def _encoded(self, number: int, batch: _Batch, now_ms: float) -> bytes:
        batch.began_ms = min(batch.began_ms, now_ms)
        batch.due_ms = now_ms + batch.wait_ms
        if not self.inbox:
            return b"".join([b"PUB %b 0\r\n\r\n" % reply for reply in batch.replies])
        *others, last = batch.replies
        parts = [b"PUB %b 0\r\n\r\n" % reply for reply in others]
        parts.append(b"PUB %b %b.%d 0\r\n\r\n" % (last, self.inbox, number))
        return b"".join(parts)

    def answered(self, delivered: Delivered, now_ms: float) -> None:
        """An answer has come: a majority has them, or nobody has heard of them."""
        number = delivered.subject[len(self.inbox) + 1 :]
        batch = self._sent.get(int(number)) if number.isdigit() else None
        if batch is None:
            return
        if delivered.headers:  # a status: nobody leads the consumer, and somebody may yet
            batch.began_ms = now_ms
            batch.due_ms = now_ms + _NOBODY_MS
            batch.wait_ms = _ANSWER_MS
        else:
            del self._sent[int(number)]

    def lost(self) -> None:
        """The link broke: what is not answered goes by the next one, however long that takes."""
        for batch in self._sent.values():
            batch.began_ms = inf
            batch.due_ms = 0.0

    def forget(self) -> None:
        """The consumer is another one: none of these messages are its own."""
        self._waiting = _Batch([], 0.0)
        self._sent.clear()
