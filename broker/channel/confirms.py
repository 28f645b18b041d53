"""Publisher confirms of one channel: which sequence numbers may be acked, which are refused.

A run of publishes is one range of sequence numbers. A range that waits for the disk carries the epoch of the commit
that it was staged in; ranges leave in order, so that one basic.ack with multiple=true covers everything before it. A
confirm that needs no disk therefore waits for the persistent ones published before it on the same channel, which
RabbitMQ permits (confirms may come in any order) and which costs one frame instead of many.

Refused messages (reject-publish) are nacked at once and individually where runs are broken by them.

Source: RabbitMQ's publisher confirms guide; rabbit_channel (send_confirms_and_nacks).
"""

from __future__ import annotations

from collections import deque

from burrowmq.protocol.codec import encode_ack, encode_nack


class Confirms:
    """Outstanding confirms of one channel in confirm mode."""

    def __init__(self) -> None:
        self.next_seq_no = 1
        self._pending: deque[list[int]] = deque()
        self._nacked: list[int] = []
        self._acked_up_to = 0
        self.unconfirmed_count = 0

    def add(self, count: int, epoch: int) -> None:
        """The next `count` publishes are confirmed when the commit `epoch` is durable; 0: nothing to wait for."""
        first = self.next_seq_no
        self.next_seq_no = first + count
        self.unconfirmed_count += count
        pending = self._pending
        if (
            pending
            and (pending[-1][1] == epoch or (not epoch and pending[-1][1]))
            and pending[-1][0] == first - 1
        ):
            pending[-1][0] = first + count - 1
        else:
            pending.append([first + count - 1, epoch])

    def add_refused(self, indexes: list[int], count: int, epoch: int) -> None:
        """As `add`, but the publishes at `indexes` (places in the run) were refused by a queue."""
        first = self.next_seq_no
        self.add(count, epoch)
        self._nacked.extend(first + index for index in indexes)

    @property
    def is_pending(self) -> bool:
        """Whether anything waits for a commit."""
        return bool(self._pending)

    def emit(self, channel: int, committed_epoch: int) -> tuple[bytes, int]:
        """(frames for everything that may go out now, how many messages they confirm or refuse)."""
        pending = self._pending
        last = 0
        while pending and pending[0][1] <= committed_epoch:
            last = pending.popleft()[0]
        if not last and not self._nacked:
            return b"", 0
        frames: list[bytes] = []
        count = 0
        if last:
            count = last - self._acked_up_to
            refused = sorted(seq_no for seq_no in self._nacked if seq_no <= last)
            if refused:
                frames, count = self._emit_mixed(channel, last, refused)
            else:
                frames.append(encode_ack(channel, last, last - self._acked_up_to > 1))
            self._acked_up_to = last
            self._nacked = [seq_no for seq_no in self._nacked if seq_no > last]
        self.unconfirmed_count -= count
        return b"".join(frames), count

    def refuse_all(self, channel: int) -> tuple[bytes, int]:
        """The same when the store has failed: everything outstanding is refused."""
        count, last = self.unconfirmed_count, self.next_seq_no - 1
        self._pending.clear()
        self._nacked.clear()
        self._acked_up_to = last
        self.unconfirmed_count = 0
        return (encode_nack(channel, last, True, True), count) if count else (b"", 0)

    def _emit_mixed(self, channel: int, last: int, refused: list[int]) -> tuple[list[bytes], int]:
        """Acks and nacks of a stretch in which some were refused: every change of answer ends a multiple frame."""
        frames = []
        done = self._acked_up_to
        count = last - done
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
        return frames, count
