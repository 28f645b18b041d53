"""Publisher confirms of one channel: which sequence numbers may be acked, which are refused.

A run of publishes is one range of sequence numbers. A range that waits for the disk carries the epoch of the commit
that it was staged in; ranges leave in order, so that one basic.ack with multiple=true covers everything before it. A
confirm that needs no disk therefore waits for the persistent ones published before it on the same channel, which
RabbitMQ permits (confirms may come in any order) and which costs one frame instead of many.

Refused messages (reject-publish) are nacked at once and individually where runs are broken by them. A range knows the
queues that it went to: where the disk refuses one of them, `refuse` turns the range's answer into a nack.

Source: RabbitMQ's publisher confirms guide; rabbit_channel (send_confirms_and_nacks).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from typing import TypeAlias

from burrowmq.broker.vhost.router import Route
from burrowmq.protocol.codec import encode_ack, encode_nack

Ways: TypeAlias = tuple[object, ...] | list[Route]
"""The queues of each of some publishes, or a list that has the route of each."""


class _Range:
    """Publishes up to a number that wait for the same commit, and where they went."""

    __slots__ = ("epoch", "last", "ways")

    def __init__(self, last: int, epoch: int, ways: Ways) -> None:
        self.last = last
        self.epoch = epoch
        self.ways = ways


class Confirms:
    """Outstanding confirms of one channel in confirm mode."""

    def __init__(self) -> None:
        self.next_seq_no = 1
        self._pending: deque[_Range] = deque()
        self._nacked: list[int] = []
        self._acked_up_to = 0
        self.unconfirmed_count = 0

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
            if is_same and (last.epoch == epoch or (not epoch and last.epoch)):
                last.last = first + count - 1
                return
        pending.append(_Range(first + count - 1, epoch, ways))

    def add_refused(self, indexes: list[int], count: int, epoch: int, ways: Ways = ()) -> None:
        """As `add`, but the publishes at `indexes` (places in the run) were refused by a queue."""
        first = self.next_seq_no
        self.add(count, epoch, ways)
        self._nacked += [first + index for index in indexes]

    def waits_for(self, epoch: int) -> bool:
        """Whether anything waits for this commit."""
        return any(one.epoch == epoch for one in self._pending)

    @property
    def is_pending(self) -> bool:
        """Whether anything waits for a commit."""
        return bool(self._pending)

    def emit(self, channel: int, committed_epoch: int) -> tuple[bytes, int]:
        """(frames for everything that may go out now, how many messages they confirm or refuse)."""
        pending = self._pending
        last = 0
        while pending and pending[0].epoch <= committed_epoch:
            last = pending.popleft().last
        if not last:
            return b"", 0
        count = last - self._acked_up_to
        if self._nacked:
            frames = b"".join(self._emit_mixed(channel, last))
        else:
            frames = encode_ack(channel, last, count > 1)
        self._acked_up_to = last
        self.unconfirmed_count -= count
        return frames, count

    def refuse(self, epoch: int, is_refused: Callable[[Iterable[object]], bool]) -> bool:
        """The disk has refused something of this commit: what waits for it is nacked if its queues are concerned.

        Gives whether anything is.
        """
        known_count = len(self._nacked)
        first = self._acked_up_to + 1
        for one in self._pending:
            seq_nos = range(first, one.last + 1)
            first = one.last + 1
            if one.epoch != epoch:
                continue
            if isinstance(one.ways, tuple):
                self._nacked.extend(seq_nos if is_refused(one.ways) else ())
            else:
                each = zip(seq_nos, one.ways, strict=True)
                self._nacked += [no for no, route in each if is_refused(route.queues or ())]
        return len(self._nacked) > known_count

    def refuse_all(self, channel: int) -> tuple[bytes, int]:
        """The same when the store has failed: everything outstanding is refused."""
        count, last = self.unconfirmed_count, self.next_seq_no - 1
        self._pending.clear()
        self._nacked.clear()
        self._acked_up_to = last
        self.unconfirmed_count = 0
        return (encode_nack(channel, last, True, True), count) if count else (b"", 0)

    def _emit_mixed(self, channel: int, last: int) -> list[bytes]:
        """Acks and nacks of a stretch in which some were refused: every change of answer ends a multiple frame."""
        refused = sorted({seq_no for seq_no in self._nacked if seq_no <= last})
        self._nacked = [seq_no for seq_no in self._nacked if seq_no > last]
        frames = []
        done = self._acked_up_to
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
