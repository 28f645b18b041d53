"""The messages of a backlog that are in RAM and were never handed out, with consecutive sequence ids.

They are described run by run (how many messages, are they in the store, are they persistent), so that a run costs the
same whatever its length. Where any message expires, deadlines are kept beside the messages, else none are. State
owned: the messages, the id of the first, their kinds and deadlines. Called by `broker.queue.order.backlog`, which
asks `messages` itself how many there are: a method of ours would cost a call per run.

Invariant: the kinds' counts add up to the messages, and so do the deadlines where there are any.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from itertools import islice, repeat

from burrowmq.broker.queue.run import LOGGED, DeliveryRun, Kind, Returned
from burrowmq.broker.words.no_items import NoItems
from burrowmq.protocol.codec import Message, body_bytes, take


class _KindCount:
    """Neighbours that are of one kind."""

    __slots__ = ("count", "kind")

    def __init__(self, count: int, kind: Kind) -> None:
        self.count = count
        self.kind = kind


FEW = 4
"""So many messages are a list, which weighs 80 bytes: many queues never have more. A deque weighs 800, however few."""

# What a backlog has before its first message, and all of them share.
_NO_MESSAGES: deque[Message] = NoItems()
# What it has behind the neighbours at its head while there are no others: most are of one kind from end to end.
_NO_KINDS: deque[_KindCount] = NoItems()


class RamRuns:
    """Those of one backlog."""

    __slots__ = ("_expiries", "_head", "_later", "first", "messages")

    def __init__(self) -> None:
        self.messages: deque[Message] | list[Message] = _NO_MESSAGES
        self.first = 0
        """Id of the first message, while there is one."""
        self._head: _KindCount | None = None
        self._later = _NO_KINDS  # those of further kinds
        self._expiries: deque[int] | None = None

    @property
    def has_expiries(self) -> bool:
        """Whether deadlines are kept."""
        return self._expiries is not None

    @property
    def expiry_count(self) -> int:
        """How many deadlines are kept: as many as messages, or none."""
        return len(self._expiries) if self._expiries is not None else 0

    @property
    def head_expiry(self) -> int:
        """Deadline of the first message, 0 for none."""
        return self._expiries[0] if self._expiries is not None else 0

    def append(
        self, first: int, messages: list[Message], kind: Kind, expiries: list[int] | None
    ) -> None:
        """Add a run at the tail; its first id follows the last one here."""
        count = len(messages)
        if not self.messages:
            self.first = first
        if expiries is not None or self._expiries is not None:
            if self._expiries is None:
                self._expiries = deque([0] * len(self.messages))
            self._expiries.extend(expiries if expiries is not None else [0] * count)
        if self.messages is _NO_MESSAGES:
            self.messages = list(messages) if count <= FEW else deque(messages)
        else:
            if isinstance(self.messages, list) and len(self.messages) + count > FEW:
                self.messages = deque(self.messages)
            self.messages.extend(messages)
        last = self._later[-1] if self._later else self._head
        if last is None:
            self._head = _KindCount(count, kind)
        elif last.kind == kind:
            last.count += count
        else:
            if self._later is _NO_KINDS:
                self._later = deque()
            self._later.append(_KindCount(count, kind))

    def take(self, max_count: int, max_bytes: int, redelivered_below: int) -> DeliveryRun:
        """Remove messages of one kind from the head: at least one, then until a limit is reached."""
        part = self._head
        assert part is not None
        most = min(max_count, part.count)
        waiting = self.messages
        if isinstance(waiting, list):
            messages, size = self._take_few(waiting, most, max_bytes)
        else:
            messages, size = take(waiting, most, max_bytes)
        count = len(messages)
        if count == part.count:
            self._head = self._later.popleft() if self._later else None
        else:
            part.count -= count
        first = self.first
        self.first = first + count
        expiries = None
        if self._expiries is not None:
            expiries = list(map(deque.popleft, repeat(self._expiries, count)))
            if not self._expiries:
                self._expiries = None
        return DeliveryRun(
            range(first, first + count),
            messages,
            size,
            part.kind,
            first < redelivered_below,
            expiries,
        )

    def _take_few(
        self, messages: list[Message], max_count: int, max_bytes: int
    ) -> tuple[list[Message], int]:
        size = body_bytes(messages)
        if max_count == len(messages) and size - messages[-1].size < max_bytes:
            self.messages = _NO_MESSAGES
            return messages, size
        self.messages = waiting = deque(messages)
        return take(waiting, max_count, max_bytes)

    def expired_count(self, now_ms: int) -> int:
        """How many messages from the head on have expired."""
        count = 0
        for due in self._expiries or ():
            if not 0 < due <= now_ms:
                break
            count += 1
        return count

    def live_count(self, now_ms: int, most: int) -> int:
        """How many messages from the head on, the head included and at most `most`, come before an expired one."""
        expiries = self._expiries
        # Mostly all have a deadline, and none has come.
        if expiries is not None and min(islice(expiries, 1, most), default=now_ms + 1) <= now_ms:
            for place, due in enumerate(islice(expiries, 1, most), 1):
                if 0 < due <= now_ms:
                    return place
        return most

    def _parts(self) -> Iterator[_KindCount]:
        if self._head is not None:
            yield self._head
            yield from self._later

    def by_kind(self) -> Iterator[tuple[range, Kind]]:
        """The ids, as far as neighbours are of one kind."""
        seq = self.first
        for part in self._parts():
            yield range(seq, seq + part.count), part.kind
            seq += part.count

    def runs(self) -> Iterator[tuple[list[Message], Kind]]:
        """The messages, as far as neighbours are of one kind."""
        messages = iter(self.messages)
        for part in self._parts():
            yield list(islice(messages, part.count)), part.kind

    def unlogged(self) -> Iterator[tuple[int, list[Message], list[int] | None]]:
        """What the store does not have: (first id, messages, deadlines) of each part."""
        for seqs, kind in self.by_kind():
            if not kind & LOGGED:
                start, stop = seqs.start - self.first, seqs.stop - self.first
                messages = list(islice(self.messages, start, stop))
                expiries = self._expiries
                due = None if expiries is None else list(islice(expiries, start, stop))
                yield seqs.start, messages, due

    def entries(self, redelivered_below: int) -> list[Returned]:
        """All messages, each with its own id, as those have them that came back."""
        kinds = [part.kind for part in self._parts() for _ in range(part.count)]
        expiries = self._expiries or [0] * len(kinds)
        return [
            (seq, message, due, kind, seq < redelivered_below)
            for seq, (message, due, kind) in enumerate(
                zip(self.messages, expiries, kinds, strict=True), self.first
            )
        ]

    def clear(self) -> None:
        """Forget all."""
        self.messages = _NO_MESSAGES
        self._head, self._later = None, _NO_KINDS
        self._expiries = None
