"""Publisher confirms of one channel: which sequence numbers may be acked, which are refused.

A run of publishes is one range of sequence numbers. A range that waits for the disk carries the epoch of the commit
that it was staged in; ranges leave in order, so that one basic.ack with multiple=true covers everything before it. A
confirm that needs no disk therefore waits for the persistent ones published before it on the same channel, which
RabbitMQ permits (confirms may come in any order) and which costs one frame instead of many.

Refused messages (reject-publish) are nacked at once and individually where runs are broken by them. A range knows the
queues that it went to: where the disk refuses one of them, `refuse` turns the range's answer into a nack.

A range with tickets (`broker.queue.outcome`) waits until each of them is done, however long that takes. It is not to
hold up what another queue confirms: the ranges behind it are settled one by one, without `multiple`, until it leaves.

Source: RabbitMQ's publisher confirms guide; rabbit_channel (send_confirms_and_nacks).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from itertools import groupby
from typing import Final, TypeAlias

from burrowmq.broker.queue.outcome import Ticket
from burrowmq.broker.vhost.router import Route
from burrowmq.protocol.codec import encode_ack, encode_nack

Ways: TypeAlias = tuple[object, ...] | list[Route]
"""The queues of each of some publishes, or a list that has the route of each."""


Ticketed: TypeAlias = tuple[Ticket, Sequence[int] | None]
"""A ticket, and at which places of the run its messages are; None when it is that of the whole run."""

_HELD: Final = 1 << 62
"""The epoch of a range while a ticket of it is open: no commit reaches it."""


class _Range:
    """Publishes up to a number that wait for the same commit, and where they went."""

    __slots__ = ("epoch", "last", "ways")

    def __init__(self, last: int, epoch: int, ways: Ways) -> None:
        self.last = last
        self.epoch = epoch
        self.ways: Ways | None = ways  # None once it is settled

    @property
    def staged_epoch(self) -> int:
        """The commit that has what of it was staged."""
        return self.epoch


class _Held(_Range):
    """One with tickets."""

    __slots__ = ("_staged_epoch", "first", "open_count")

    def __init__(self, first: int, last: int, staged_epoch: int, ways: Ways, count: int) -> None:
        super().__init__(last, _HELD, ways)
        self.first = first
        self.open_count = count
        self._staged_epoch = staged_epoch

    @property
    def staged_epoch(self) -> int:
        """The commit that has what of it was staged."""
        return self._staged_epoch


class Confirms:
    """Outstanding confirms of one channel in confirm mode."""

    def __init__(self) -> None:
        self.next_seq_no = 1
        self._pending: deque[_Range] = deque()
        self._nacked: list[int] = []
        self.refused_count = 0  # nacks that have gone out; whoever counts them sets it back
        self._acked_up_to = 0
        self.unconfirmed_count = 0
        self._is_crossed = False
        """Whether there are ranges with tickets, or some that were settled before others in front of them."""
        self._held: set[_Held] = set()
        self._completed: list[_Held] = []
        self._behind: deque[tuple[int, _Range]] = deque()
        """(first number, range) of those that came while one with tickets was open."""

    def add(self, count: int, epoch: int, ways: Ways = ()) -> None:
        """The next `count` publishes are confirmed when the commit `epoch` is durable; 0: nothing to wait for.

        `ways` say where they went.
        """
        first = self.next_seq_no
        self.next_seq_no = first + count
        self.unconfirmed_count += count
        pending = self._pending
        if pending:
            last = pending[-1]
            is_same = ways.__class__ is tuple and (last.ways is ways or last.ways == ways)
            # What waits for nothing goes with what waits for a commit, and not with what a ticket holds up.
            if is_same and (last.epoch == epoch or (not epoch and 0 < last.epoch < _HELD)):
                last.last = first + count - 1
                return
        self._append(first, _Range(first + count - 1, epoch, ways))

    def _append(self, first: int, one: _Range) -> None:
        self._pending.append(one)
        if self._held:
            self._behind.append((first, one))

    def add_refused(self, indexes: list[int], count: int, epoch: int, ways: Ways = ()) -> None:
        """As `add`, but the publishes at `indexes` (places in the run) were refused by a queue."""
        first = self.next_seq_no
        self.add(count, epoch, ways)
        self._nacked += [first + index for index in indexes]

    def add_held(
        self,
        tickets: Sequence[Ticketed],
        count: int,
        epoch: int,
        ways: Ways,
        refused: Iterable[int],
        on_completed: Callable[[], None],
    ) -> None:
        """The next `count` publishes wait for these tickets, and for the commit `epoch` if it is not 0.

        Those at the places `refused` were refused by a queue. `on_completed` is called whenever a ticket is done.
        """
        first = self.next_seq_no
        self._nacked += [first + index for index in refused]
        ranges: list[list[_Held]] = [[] for _ in tickets]
        start = 0
        for length, numbers in _cut(tickets, count):
            own = ways if isinstance(ways, tuple) else ways[start : start + length]
            start += length
            if numbers:
                held = self._hold(length, epoch, own, len(numbers))
                for number in numbers:
                    ranges[number].append(held)
            else:
                self._append(self._count(length), _Range(self.next_seq_no - 1, epoch, own))
        for each, of_it in zip(tickets, ranges, strict=True):
            settled = partial(self._settled, first, each, of_it, on_completed)
            if each[0].is_done:
                settled()
            else:
                each[0].on_done = settled

    def _count(self, count: int) -> int:
        first = self.next_seq_no
        self.next_seq_no = first + count
        self.unconfirmed_count += count
        return first

    def _hold(self, count: int, epoch: int, ways: Ways, ticket_count: int) -> _Held:
        first = self._count(count)
        held = _Held(first, first + count - 1, epoch, ways, ticket_count)
        self._pending.append(held)
        self._held.add(held)
        self._is_crossed = True
        return held

    def _settled(
        self,
        first: int,
        ticketed: Ticketed,
        ranges: Iterable[_Held],
        on_completed: Callable[[], None],
    ) -> None:
        """A ticket is done, which these ranges wait for, of a run that begins with the number `first`."""
        held = self._held.intersection(ranges)
        if not held:
            return  # all was refused meanwhile
        ticket, places = ticketed
        self._nacked += [
            first + (index if places is None else places[index]) for index in ticket.refused
        ]
        for one in held:
            one.open_count -= 1
            if not one.open_count:
                one.epoch = one.staged_epoch
                self._held.remove(one)
                self._completed.append(one)
        on_completed()

    def waits_for(self, epoch: int) -> bool:
        """Whether anything waits for this commit."""
        return any(one.staged_epoch == epoch for one in self._pending)

    @property
    def is_pending(self) -> bool:
        """Whether anything waits for a commit, whatever else it waits for."""
        pending = self._pending
        if not self._is_crossed:
            return bool(pending)
        # What is not behind an open range is in front of all of them.
        return (bool(pending) and pending[0].epoch < _HELD) or any(
            one.ways is not None for _, one in self._behind
        )

    def emit(self, channel: int, committed_epoch: int) -> tuple[bytes, int]:
        """(frames for everything that may go out now, how many messages they confirm or refuse)."""
        if self._is_crossed:
            return self._emit_crossed(channel, committed_epoch)
        pending = self._pending
        last = 0
        while pending and pending[0].epoch <= committed_epoch:
            last = pending.popleft().last
        if not last:
            return b"", 0
        count = last - self._acked_up_to
        if self._nacked:
            frames = b"".join(self._emit_mixed(channel, self._acked_up_to, last))
        else:
            frames = encode_ack(channel, last, count > 1)
        self._acked_up_to = last
        self.unconfirmed_count -= count
        return frames, count

    def _emit_crossed(self, channel: int, committed_epoch: int) -> tuple[bytes, int]:
        """The same while ranges with tickets are about."""
        before = self.unconfirmed_count
        frames = self._emit_head(channel, committed_epoch)
        behind = self._behind
        ready = [(one.first, one) for one in self._completed if one.ways is not None]
        self._completed.clear()
        late = [each for each in ready if each[1].epoch > committed_epoch]
        singly: list[tuple[int, _Range]] = [
            each for each in ready if each[1].epoch <= committed_epoch
        ]
        while behind and behind[0][1].epoch <= committed_epoch:
            singly.append(behind.popleft())
        behind.extend(late)
        for first, one in singly:
            if one.ways is not None:  # else it left with those in front
                frames += self._emit_singly(channel, first, one)
        if not self._held:
            behind.clear()  # nothing is in their way any more
            self._is_crossed = any(one.ways is None for one in self._pending)
        return b"".join(frames), before - self.unconfirmed_count

    def _emit_head(self, channel: int, committed_epoch: int) -> list[bytes]:
        """Frames for the ranges that no open one is in front of; those that went before are passed over."""
        frames: list[bytes] = []
        pending = self._pending
        start = done = self._acked_up_to
        while pending and pending[0].epoch <= committed_epoch:
            one = pending.popleft()
            if one.ways is None:
                frames += self._emit_stretch(channel, start, done)
                start = one.last
            one.ways = None
            done = one.last
        self._acked_up_to = done
        return frames + self._emit_stretch(channel, start, done)

    def _emit_stretch(self, channel: int, start: int, last: int) -> list[bytes]:
        if last == start:
            return []
        self.unconfirmed_count -= last - start
        return self._emit_mixed(channel, start, last)

    def _emit_singly(self, channel: int, first: int, one: _Range) -> list[bytes]:
        """A frame for each message: `multiple` would speak for those in front, too."""
        seq_nos = range(first, one.last + 1)
        refused = {seq_no for seq_no in self._nacked if seq_no in seq_nos}
        if refused:
            self._nacked = [seq_no for seq_no in self._nacked if seq_no not in refused]
        one.ways = None
        one.epoch = 0
        self.unconfirmed_count -= len(seq_nos)
        self.refused_count += len(refused)
        return [
            encode_nack(channel, seq_no, False, True)
            if seq_no in refused
            else encode_ack(channel, seq_no, False)
            for seq_no in seq_nos
        ]

    def refuse(self, epoch: int, is_refused: Callable[[Iterable[object]], bool]) -> bool:
        """The disk has refused something of this commit: what waits for it is nacked if its queues are concerned.

        Gives whether the client is told now: what a ticket holds up is answered when that is done, who knows when.
        """
        is_told = False
        first = self._acked_up_to + 1
        for one in self._pending:
            seq_nos = range(first, one.last + 1)
            first = one.last + 1
            if one.ways is None or one.staged_epoch != epoch:
                continue
            known_count = len(self._nacked)
            if isinstance(one.ways, tuple):
                self._nacked.extend(seq_nos if is_refused(one.ways) else ())
            else:
                each = zip(seq_nos, one.ways, strict=True)
                self._nacked += [no for no, route in each if is_refused(route.queues or ())]
            is_told |= len(self._nacked) > known_count and one.epoch < _HELD
        return is_told

    def refuse_all(self, channel: int) -> tuple[bytes, int]:
        """The same when the store has failed: everything outstanding is refused."""
        count, last = self.unconfirmed_count, self.next_seq_no - 1
        self._pending.clear()
        self._nacked.clear()
        self._held.clear()
        self._completed.clear()
        self._behind.clear()
        self._is_crossed = False
        self._acked_up_to = last
        self.unconfirmed_count = 0
        self.refused_count += count
        return (encode_nack(channel, last, True, True), count) if count else (b"", 0)

    def _emit_mixed(self, channel: int, done: int, last: int) -> list[bytes]:
        """Acks and nacks of what comes after `done`: every change of answer ends a multiple frame."""
        refused = sorted({seq_no for seq_no in self._nacked if done < seq_no <= last})
        self._nacked = [seq_no for seq_no in self._nacked if seq_no > last]
        self.refused_count += len(refused)
        frames = []
        index = 0
        while index < len(refused):
            start = end = refused[index]
            while index + 1 < len(refused) and refused[index + 1] == end + 1:
                index += 1
                end = refused[index]
            if start - 1 > done:
                frames.append(encode_ack(channel, start - 1, start - 1 - done > 1))
            # RabbitMQ sends multiple=true and requeue=true on every nack to a publisher.
            frames.append(encode_nack(channel, end, True, True))
            done = end
            index += 1
        if last > done:
            frames.append(encode_ack(channel, last, last - done > 1))
        return frames


def _cut(tickets: Sequence[Ticketed], count: int) -> list[tuple[int, tuple[int, ...]]]:
    """Stretches of a run that wait for the same tickets: (how many messages, the numbers of the tickets)."""
    if all(places is None for _, places in tickets):
        return [(count, tuple(range(len(tickets))))]
    waited: list[tuple[int, ...]] = [()] * count
    for number, (_, places) in enumerate(tickets):
        for place in range(count) if places is None else places:
            waited[place] += (number,)
    return [(len(list(stretch)), numbers) for numbers, stretch in groupby(waited)]
