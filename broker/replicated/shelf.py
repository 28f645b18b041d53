"""Messages of a replicated queue that are at this node: pulled and not handed out, or handed out and not settled.

What has come back, or was delivered before elsewhere, stands in front of what is new, by its place in the stream. Each
message that is here is known by its sequence number in the stream; the server knows the delivery by the subject to
which the acknowledgement goes. A message that is here already, and comes again because the server has waited for long
(the connection was away), is not another one: only that subject is new.

A stream that was deleted and made again counts from 1. Those of the new one are known by other numbers here
(`_first`), since clients may still hold some of the old one.

State owned: those messages. Never talks to anybody: what is acknowledged is given to `forgotten`. Implements
`broker.queue.served.Served`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from heapq import heappop, heappush
from itertools import islice

from burrowmq.broker.queue.run import LOGGED, DeliveryRun, Kind, Returned
from burrowmq.protocol.codec import Message, body_bytes
from burrowmq.protocol.errors import FrameError
from burrowmq.protocol.properties import decode, rewrite
from burrowmq.protocol.table import Long

STREAM = 1 << 64
"""More than a stream has sequence numbers."""


class Shelf:
    """That of one queue."""

    level = 0
    log_id = 0  # nothing of it is in this node's store

    def __init__(
        self, forgotten: Callable[[list[bytes]], None], wall_ms: Callable[[], int]
    ) -> None:
        self._forgotten = forgotten
        self.on_forget: Callable[[Sequence[int], list[Message]], Sequence[int]] | None = None
        """Asked which of those that are to be forgotten may go now."""
        self._wall_ms = wall_ms
        self.has_expiries = False
        """Whether any of them may expire: from the first that does on."""
        self._deadlines: dict[int, int] = {}  # of those that do, by the servers' clock
        self._fresh: deque[tuple[int, Message]] = deque()
        self._again: list[tuple[int, Message]] = []  # a heap
        self._replies: dict[int, bytes] = {}
        self._first = 0  # what the numbers of this stream's messages begin behind
        self._counts: dict[int, int] = {}  # how often it was delivered before, where it was
        self._aged: set[int] = set()
        self.size = 0
        """Body bytes of what is ready."""

    @property
    def count(self) -> int:
        """Messages that are ready."""
        return len(self._fresh) + len(self._again)

    @property
    def held_count(self) -> int:
        """Messages that the server has given to this node and waits for, the ready ones included."""
        return len(self._replies)

    # -- in -----------------------------------------------------------------------------------------------------

    def renew(self, sequence: int, reply: bytes) -> bool:
        """Whether the message is here already; its acknowledgement goes to `reply` from now on."""
        sequence += self._first
        if sequence not in self._replies:
            return False
        self._replies[sequence] = reply
        return True

    def put(
        self, sequence: int, reply: bytes, message: Message, before_count: int, deadline_ms: int = 0
    ) -> None:
        """A message has come that was delivered so often before, and expires then (0: never)."""
        sequence += self._first
        self._replies[sequence] = reply
        if deadline_ms:
            self.has_expiries = True
            self._deadlines[sequence] = deadline_ms
        self.size += message.size
        if before_count:
            self._counts[sequence] = before_count
            heappush(self._again, (sequence, message))
        else:
            self._fresh.append((sequence, message))

    def count_of(self, sequence: int) -> int:
        """How often it was delivered before."""
        return self._counts.get(sequence, 0)

    # -- out ----------------------------------------------------------------------------------------------------

    def live_count(self, now_ms: int, most: int) -> int:
        """See `Served`. `now_ms` is the node's own count of time, which is not what the servers' deadlines go by."""
        if self._again:
            return 1  # a heap: what comes behind its head is not known without taking it
        wall_ms, deadlines = self._wall_ms(), self._deadlines
        count = 0
        for sequence, _ in islice(self._fresh, most):
            if count and 0 < deadlines.get(sequence, 0) <= wall_ms:
                break
            count += 1
        return count

    @property
    def deadline_ms(self) -> int:
        """When the head expires; 0 for never, or where there is none."""
        head = self._again or self._fresh
        return self._deadlines.get(head[0][0], 0) if head else 0

    def take_expired(self) -> tuple[list[int], list[Message]]:
        """Remove heads that have expired: (sequence numbers, messages)."""
        wall_ms = self._wall_ms()
        seqs: list[int] = []
        messages: list[Message] = []
        while 0 < self.deadline_ms <= wall_ms:
            sequence, message = heappop(self._again) if self._again else self._fresh.popleft()
            self.size -= message.size
            seqs.append(sequence)
            messages.append(message)
        return seqs, messages

    def take(self, max_count: int, max_bytes: int) -> DeliveryRun | None:
        """Remove up to `max_count` messages from the head, all delivered before or all not; at least one."""
        seqs: list[int] = []
        messages: list[Message] = []
        size = 0
        again, fresh = self._again, self._fresh
        is_again = bool(again)
        while (again if is_again else fresh) and len(seqs) < max_count:
            sequence, message = again[0] if is_again else fresh[0]
            size += message.size
            if seqs and size > max_bytes:
                size -= message.size
                break
            if is_again:
                heappop(again)
                messages.append(_counted(message, self._counts.get(sequence, 0)))
            else:
                fresh.popleft()
                messages.append(message)
            seqs.append(sequence)
        if not seqs:
            return None
        self.size -= size
        return DeliveryRun(seqs, messages, size, LOGGED, is_again)

    # -- back ---------------------------------------------------------------------------------------------------

    def forget(
        self, seqs: Sequence[int], messages: list[Message] | None, kind: Kind, size: int = 0
    ) -> None:
        """These are acknowledged. What is no longer here was given back, or purged."""
        if self.on_forget is not None and messages is not None:
            seqs = self.on_forget(seqs, messages)
        replies, counts, deadlines = self._replies, self._counts, self._deadlines
        found = [reply for sequence in seqs if (reply := replies.pop(sequence, None)) is not None]
        if counts:
            for sequence in seqs:
                counts.pop(sequence, None)
        if deadlines:
            for sequence in seqs:
                deadlines.pop(sequence, None)
        if found:
            self._forgotten(found)

    def give_back(self, entries: list[Returned], size: int) -> None:
        """Handed out and ready again. `redelivered` says that a client has seen it."""
        for sequence, message, _, _, redelivered in entries:
            if sequence not in self._replies:
                continue  # it was purged
            self.size += message.size
            if redelivered:
                self._counts[sequence] = self._counts.get(sequence, 0) + 1
            if sequence in self._counts:
                heappush(self._again, (sequence, message))
            else:
                self._fresh.appendleft((sequence, message))

    def clear(self) -> list[bytes]:
        """Nothing is ready any more; gives where the server waits for word of those that were."""
        replies = []
        for sequence, _ in (*self._again, *self._fresh):
            replies.append(self._replies.pop(sequence))
            self._counts.pop(sequence, None)
            self._deadlines.pop(sequence, None)
        self._again.clear()
        self._fresh.clear()
        self.size = 0
        return replies

    def forget_all(self) -> None:
        """The stream is another one: nothing is here, and of what is handed out nobody wants to hear."""
        self.clear()
        for facts in (self._replies, self._counts, self._deadlines):
            facts.clear()
        self._first += STREAM

    def take_beyond(self, limit: int) -> tuple[list[int], list[Message]]:
        """Remove what has come back, and was delivered more than `limit` times: (sequence numbers, messages)."""
        over = [each for each in self._again if self._counts.get(each[0], 0) > limit]
        if not over:
            return [], []
        gone = {sequence for sequence, _ in over}
        self._again = sorted(each for each in self._again if each[0] not in gone)
        messages = [message for _, message in over]
        self.size -= body_bytes(messages)
        return [sequence for sequence, _ in over], messages

    def grown_old(self) -> list[bytes]:
        """Where the server has waited for word since this was last asked, or longer."""
        old = [self._replies[sequence] for sequence in self._aged if sequence in self._replies]
        self._aged = set(self._replies)
        return old


def _counted(message: Message, before_count: int) -> Message:
    """The message with RabbitMQ's header that says how often it was delivered before, if there is room for it."""
    properties = decode(message.raw)
    properties.headers = {**(properties.headers or {}), "x-delivery-count": Long(before_count)}
    try:
        return rewrite(message, properties)
    except FrameError:  # it is delivered all the same, and so are those beside it
        return message
