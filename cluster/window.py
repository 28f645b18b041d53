"""Publishing into one stream: one burst in flight, the rest collects. No I/O, and no clock of its own.

JetStream pays one append and one sync for what arrives together. So a burst of messages is sent as an atomic batch,
and what comes while its answer is awaited is the next one. A burst that meets no other goes when `collect_count`
messages are there, or after `collect_ms`.

A burst has a message id, each attempt at it a batch id. When the answer of an attempt is lost (the connection broke,
the leader was killed, nobody answered for `attempt_ms`), the burst is sent again under the same message id, and no
other burst before its outcome is known: that keeps the publisher's order, and doubles nothing (docs/adr/0030).

A message is refused when it is `give_up_ms` old and the stream has decided nothing for as long, whether it was sent
(what became of it is not known then) or there was no link: its publisher is told so by a nack.

A stream that has no room for a whole burst refuses all of it. Then half of it is tried, and so on: what has room is
stored, and with the first single message that has none the rest of that burst is refused, since the stream was full
at that moment. A burst of which an earlier attempt may still be on its way is not divided, but refused.

Servers whose disks are full refuse a burst, and their leader lets another lead, which may have room. When nobody has
had any for `SHORT_MS` the burst is refused; those behind it are when they are first told so, until one is stored.

State owned: messages that wait, the burst in flight. Called by who holds the link: `add` for each run; `poll` at the
end of a turn and at `due_ms`, whose octets are to be sent; `answered` for each answer; `lost` when the link broke.
All times are milliseconds of a clock that never goes back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Final

from burrowmq.cluster.api import (
    ATOMIC_MAX,
    Outcome,
    PublishAnswer,
    batch_headers,
    publish_answer,
    single_headers,
)
from burrowmq.cluster.chunk import CHUNK_BYTES, cut, pack_chunk
from burrowmq.cluster.tickets import Share, Shares, Ticket
from burrowmq.cluster.wire import PAYLOAD_MAX, Delivered, encode_publish

HEADERS_MAX: Final = 512
"""Octets of the headers that a message gets, at most."""
NAME_MAX: Final = 40
"""Of the 64 octets that the id of a batch may have: the rest is for two numbers."""
STALLED_MS: Final = 2_000.0
"""A burst that is not answered for so long is no longer a matter of load."""
SHORT_MS: Final = 3_000.0
"""So long servers without room are asked again: each that keeps the stream has its turn at leading within that."""
_LATER_MS: Final = (50.0, 100.0, 200.0, 400.0, 800.0)
"""After so long a refused attempt is repeated, by how often it was; then after the last of these each time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WindowLimits:
    """How a window collects, and how long it tries."""

    collect_count: int = 128
    collect_ms: float = 2.0
    burst_count: int = 512
    burst_bytes: int = 1 << 20
    attempt_ms: float = 1_000.0
    """An attempt waits so long for its answer, or four times as long as the last burst took, but at most"""
    attempt_most_ms: float = 5_000.0
    give_up_ms: float = 30_000.0
    waiting_count: int = 16_384
    waiting_bytes: int = 64 << 20

    def __post_init__(self) -> None:
        assert 1 <= self.burst_count <= ATOMIC_MAX, "what a server takes as one batch"


class _Burst:
    """Messages that are sent together."""

    __slots__ = ("attempt", "began_ms", "ends_ms", "next_ms", "number", "payloads", "shares")

    def __init__(
        self,
        number: int,
        payloads: list[bytes],
        shares: list[Share],
        now_ms: float,
        ends_ms: float,
    ) -> None:
        self.number = number
        self.payloads = payloads
        self.shares = shares
        self.began_ms = now_ms
        self.ends_ms = ends_ms
        """When it is refused, if nothing is decided before that."""
        self.attempt = 0
        self.next_ms = now_ms
        """When it is sent, for the first time or again."""


class Window:
    """That of one publisher into the stream behind `subject`.

    `name` is like no other that publishes into this stream, now or within its duplicate window: not like that of an
    earlier life of this node, for one. It is at most `NAME_MAX` long: with the numbers of burst and attempt it is the
    id of a batch, and servers refuse one that is too long. Answers are sent to subjects below `inbox`.
    """

    def __init__(
        self, subject: bytes, name: bytes, inbox: bytes, limits: WindowLimits | None = None
    ) -> None:
        assert len(name) <= NAME_MAX, "else the id of a batch is too long, sooner or later"
        self._subject = subject
        self._name = name
        self._inbox = inbox
        self._limits = limits or WindowLimits()
        self._waiting: deque[bytes] = deque()
        self._waiting_bytes = 0
        self._shares = Shares()
        self._since_ms = 0.0  # since when something has been waiting
        self._decided_ms = 0.0  # when the stream has last said what becomes of a burst
        self._burst: _Burst | None = None
        self._burst_number = 0
        self._divided_count = (
            0  # of those that wait, the first: what is left of a burst that was refused as a whole
        )
        self._part_count = 0  # so many of them are tried next
        self._patience_ms = self._limits.attempt_ms
        self._done: list[Ticket] = []
        self.payload_max = PAYLOAD_MAX
        """Octets of a payload that a server takes: what is longer is refused here, it would end the connection."""
        self._short_ms: float | None = None  # since when the servers have no room
        self.last_refusal = ""
        """Why messages were refused, the last time."""
        self.trouble = ""
        """Why the last burst was refused, where operators have to see to that: not for the stream's own limits."""
        self.resent_count = 0
        """Attempts beyond the first of their burst."""
        self.burst_count = 0
        """Bursts that were stored."""
        self.burst_ms = 0.0
        """How long that took, all of them together."""
        self.stored_count = 0
        """Messages of them."""
        self.refused_count = 0
        """Messages that were refused, for whatever reason."""

    # -- in ---------------------------------------------------------------------------------------------------------

    def add(self, payloads: Sequence[bytes], now_ms: float) -> Ticket:
        """A run joins what waits; what no server would take is refused."""
        if not self._waiting:
            self._since_ms = now_ms
        ticket = Ticket(len(payloads), now_ms)
        self._add(payloads, ticket, 0)
        return ticket

    def _add(self, payloads: Sequence[bytes], ticket: Ticket, first: int) -> None:
        """Those of a ticket from its place `first` on."""
        longest = self._longest
        start = 0
        for place, payload in enumerate(payloads):
            if len(payload) > longest:
                self._join(payloads[start:place], Share(ticket, first + start, place - start))
                self._settle([Share(ticket, first + place, 1)], is_stored=False)
                self.last_refusal = self._too_long(payload)
                start = place + 1
        self._join(payloads[start:], Share(ticket, first + start, len(payloads) - start))

    def limit(self, payload_max: int) -> None:
        """From now on the servers take so much, as who has connected to others says."""
        is_lowered, self.payload_max = payload_max < self.payload_max, payload_max
        if is_lowered and not self.is_idle:
            self._drop_too_long()

    @property
    def _longest(self) -> int:
        return self.payload_max - HEADERS_MAX

    def _join(self, payloads: Sequence[bytes], share: Share) -> None:
        if payloads:
            self._waiting.extend(payloads)
            self._waiting_bytes += sum(map(len, payloads))
            self._shares.add(share)

    @property
    def waiting_count(self) -> int:
        """Messages that wait for a burst."""
        return len(self._waiting)

    @property
    def flight_count(self) -> int:
        """Messages of the burst that is in flight."""
        return 0 if self._burst is None else len(self._burst.payloads)

    @property
    def is_full(self) -> bool:
        """Whether who publishes is to stop until less waits."""
        limits = self._limits
        return (
            len(self._waiting) >= limits.waiting_count
            or self._waiting_bytes >= limits.waiting_bytes
        )

    def is_stalled(self, now_ms: float) -> bool:
        """Whether nothing of what is in flight, or waits, has been answered for long."""
        since_ms = self._since_ms if self._burst is None else self._burst.began_ms
        return not self.is_idle and now_ms - max(since_ms, self._decided_ms) >= STALLED_MS

    @property
    def is_idle(self) -> bool:
        """Whether nothing waits and nothing is in flight."""
        return self._burst is None and not self._waiting

    # -- out --------------------------------------------------------------------------------------------------------

    def poll(self, now_ms: float) -> bytes:
        """What is to be sent now; b"" for nothing."""
        burst = self._burst
        if burst is None:
            if not self._waiting or now_ms < self._starts_ms():
                return b""
            burst = self._burst = self._begin(now_ms)
        elif now_ms < burst.next_ms:
            return b""
        elif self.expire(now_ms):
            return self.poll(now_ms)
        burst.attempt += 1
        burst.next_ms = min(now_ms + self._patience_ms, burst.ends_ms)
        self.resent_count += burst.attempt > 1
        return self._encoded(burst)

    def _too_long(self, payload: bytes) -> str:
        return f"a record of {len(payload)} octets; the servers take {self._longest}"

    def _drop_too_long(self) -> None:
        """Refuse what these servers do not take, though others did: sent again it would end the connection."""
        longest, burst = self._longest, self._burst
        if burst is not None:
            payload = max(burst.payloads, key=len)
            if len(payload) > longest:  # as a whole: an earlier attempt may have been stored
                self.trouble = self._too_long(payload)
                self._refuse(burst, self.trouble)
        if not any(len(payload) > longest for payload in self._waiting):
            return
        waiting, self._waiting = self._waiting, deque()
        shares, self._shares = self._shares.take(len(waiting)), Shares()
        self._waiting_bytes = self._divided_count = 0
        for share in shares:
            payloads = [waiting.popleft() for _ in range(share.length)]
            self._add(payloads, share.ticket, share.first)

    def expire(self, now_ms: float) -> bool:
        """Refuse what nobody has answered, or could be sent, for too long; whether there was any.

        `poll` looks by itself at what is in flight: to be asked while nothing can be sent.
        """
        reason = f"no answer for {self._limits.give_up_ms / 1000:.0f} s"
        burst = self._burst
        if burst is not None:
            if now_ms < burst.ends_ms:
                return False
            self._refuse(burst, reason)
        count = self._shares.count_while(lambda one: now_ms >= self._ends_ms(one))
        if count:
            self._refuse_waiting(count, reason)
        return burst is not None or count > 0

    def _ends_ms(self, share: Share) -> float:
        return max(share.ticket.came_ms, self._decided_ms) + self._limits.give_up_ms

    def due_ms(self) -> float | None:
        """When `poll` has something to do again, if no answer comes; None for never."""
        if self._burst is not None:
            return self._burst.next_ms
        return self._starts_ms() if self._waiting else None

    def _starts_ms(self) -> float:
        is_enough = len(self._waiting) >= self._limits.collect_count
        return self._since_ms if is_enough else self._since_ms + self._limits.collect_ms

    def _begin(self, now_ms: float) -> _Burst:
        waiting, limit = self._waiting, self._limits.burst_count
        if self._divided_count:
            limit = self._part_count
        count = total = 0
        for payload in islice(waiting, limit):
            total += len(payload)
            if count and total > self._limits.burst_bytes:
                total -= len(payload)
                break
            count += 1
        payloads = [waiting.popleft() for _ in range(count)]
        self._waiting_bytes -= total
        self._divided_count = max(0, self._divided_count - count)
        self._part_count = (self._divided_count + 1) // 2
        self._burst_number += 1
        shares = self._shares.take(count)
        return _Burst(self._burst_number, payloads, shares, now_ms, self._ends_ms(shares[0]))

    def _encoded(self, burst: _Burst) -> bytes:
        subjects, payloads = self._sent(burst.payloads)
        reply = b"%b.%d.%d" % (self._inbox, burst.number, burst.attempt)
        message_id = b"%b.%d" % (self._name, burst.number)
        if len(payloads) == 1:
            return encode_publish(subjects[0], payloads[0], reply, single_headers(message_id))
        headers = batch_headers(b"%b.%d" % (message_id, burst.attempt), message_id, len(payloads))
        parts = [
            encode_publish(subject, payload, b"", head)
            for subject, payload, head in zip(
                subjects[:-1], payloads[:-1], headers[:-1], strict=True
            )
        ]
        parts.append(encode_publish(subjects[-1], payloads[-1], reply, headers[-1]))
        return b"".join(parts)

    def _sent(self, payloads: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        """(subjects, payloads) of what is sent for these."""
        return [self._subject] * len(payloads), payloads

    # -- answers ----------------------------------------------------------------------------------------------------

    def answered(self, delivered: Delivered, now_ms: float) -> None:
        """An answer has come to a subject below the inbox. One to a burst that is over says nothing any more."""
        numbers = delivered.subject[len(self._inbox) + 1 :].split(b".")
        burst = self._burst
        if burst is None or len(numbers) != 2 or numbers[0] != b"%d" % burst.number:
            return
        is_last = numbers[1] == b"%d" % burst.attempt
        found = publish_answer(delivered)
        if found.outcome is Outcome.STORED:
            self._decided_ms = now_ms
            self._short_ms, self.trouble = None, ""
            took_ms = now_ms - burst.began_ms
            self.burst_count += 1
            self.burst_ms += took_ms
            self.stored_count += len(burst.payloads)
            self._patience_ms = min(
                max(self._limits.attempt_ms, 4 * took_ms), self._limits.attempt_most_ms
            )
            self._end(burst, is_stored=True)
        elif (
            is_last
        ):  # of one before it nothing is concluded: the last may have been stored meanwhile
            self._not_stored(burst, found, now_ms)

    def _not_stored(self, burst: _Burst, found: PublishAnswer, now_ms: float) -> None:
        if found.outcome is Outcome.AGAIN or self._may_find_room(found, now_ms):
            later = _LATER_MS[min(burst.attempt, len(_LATER_MS)) - 1]
            burst.next_ms = min(now_ms + later, burst.ends_ms)
            return
        self._decided_ms = now_ms
        if found.outcome is Outcome.FULL and burst.attempt == 1 and len(burst.payloads) > 1:
            self._divide(burst)
            return
        if found.outcome is not Outcome.FULL:
            self.trouble = found.text
        self._refuse(burst, found.text)
        if found.outcome is Outcome.FULL and self._divided_count:
            self._refuse_waiting(self._divided_count, found.text)

    def _may_find_room(self, found: PublishAnswer, now_ms: float) -> bool:
        """Whether servers without room are to be asked again."""
        if found.outcome is not Outcome.NO_ROOM:
            return False
        if self._short_ms is None:
            self._short_ms = now_ms
        return now_ms < self._short_ms + SHORT_MS

    def _divide(self, burst: _Burst) -> None:
        """Nothing of the burst is stored: it waits again, and half of it is the next burst."""
        self._waiting.extendleft(reversed(burst.payloads))
        self._waiting_bytes += sum(map(len, burst.payloads))
        self._shares.put_back(burst.shares)
        self._divided_count += len(burst.payloads)
        self._part_count = (len(burst.payloads) + 1) // 2
        self._since_ms = burst.began_ms - self._limits.collect_ms  # it has waited
        self._burst = None

    def lost(self, now_ms: float) -> None:
        """The link broke: what is in flight is sent again as soon as there is one."""
        if self._burst is not None:
            self._burst.next_ms = now_ms

    def denied(self, reason: str) -> None:
        """Nobody passes on what is sent there: what is in flight, if anything is, gets no answer."""
        if self._burst is not None and self._burst.attempt:
            self._refuse(self._burst, reason)

    def give_up(self, reason: str) -> None:
        """Refuse all that is in flight and all that waits: the stream is gone, or the node stops."""
        if self._burst is not None:
            self._refuse(self._burst, reason)
        if self._waiting:
            self._refuse_waiting(len(self._waiting), reason)

    def _refuse_waiting(self, count: int, reason: str) -> None:
        for _ in range(count):
            self._waiting_bytes -= len(self._waiting.popleft())
        self._divided_count = max(0, self._divided_count - count)
        self._settle(self._shares.take(count), is_stored=False)
        self.last_refusal = reason

    def _refuse(self, burst: _Burst, reason: str) -> None:
        self.last_refusal = reason
        self._end(burst, is_stored=False)

    def _end(self, burst: _Burst, *, is_stored: bool) -> None:
        self._burst = None
        self._settle(burst.shares, is_stored=is_stored)

    def _settle(self, shares: list[Share], *, is_stored: bool) -> None:
        if not is_stored:
            self.refused_count += sum(share.length for share in shares)
        self._done += [share.ticket for share in shares if share.settle(is_stored=is_stored)]

    def take_done(self) -> list[Ticket]:
        """The tickets that are done since this was last asked: in their runs' order, unless one is too long."""
        done, self._done = self._done, []
        return done


class ChunkWindow(Window):
    """That of a stream which keeps its messages in chunks, each under a subject that ends in how many it has."""

    chunk_bytes: int = CHUNK_BYTES
    """Octets of a chunk, unless its only message is larger. What is sent again may be cut anew: a burst's id counts."""

    def _sent(self, payloads: list[bytes]) -> tuple[list[bytes], list[bytes]]:
        chunks = cut(payloads, min(self.chunk_bytes, self._longest))
        subjects = [b"%b.%d" % (self._subject, len(chunk)) for chunk in chunks]
        return subjects, [pack_chunk(chunk) for chunk in chunks]
