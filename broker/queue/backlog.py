"""The ready messages of one queue (of one priority level), in order, in RAM and on disk.

Order is by sequence id, three parts one after the other, every id of a part lower than every id of the next:

  returned   a heap of messages that were handed out and came back, or were recovered; each with its own id;
             `parked` has the ids of those that went to disk again, between the others
  ram        a deque of messages never handed out, ids contiguous from `ram_first`
  disk       a range of ids from `disk_first` to `next_seq`, known here only by number; the bodies are in the store

`ram` is described run by run in `_kinds` (how many messages, are they in the store, are they persistent), so that a
run costs the same whatever its length. Where any message expires, `_expiries` is aligned with `ram`; else it is None.

The owner (`broker.queue.queue`) decides what goes where; nothing here knows consumers, limits or policies. Loads from
disk are asked for here and arrive through `_on_read`; a purge or page-out in between makes the answer stale, which
`_generation` tells. Never keeps a message both in `ram` and in the disk range; a start batch's bodies behind a large
one (`preloaded`) are the exception, and are not counted twice.

Longer than most modules: every part of the order changes with every other, in one object's methods. What only one part
needs has modules of its own: `returned`, `parked`, `preloaded`, `disk_sizes`.

Source: the q3/delta pair of RabbitMQ's rabbit_variable_queue since 3.12.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Sequence
from itertools import islice
from typing import cast

from broker.queue import returned as returned_heap
from broker.queue.batch import DURABLE, LOGGED, Batch, Kind, Loaded, Returned
from broker.queue.disk_sizes import DiskSizes
from broker.queue.parked import Parked
from broker.queue.preloaded import Preloaded
from protocol.codec import Message, body_bytes, take
from protocol.constants import PERSISTENT
from storage.queue_log import QueueLog
from storage.types import ALL, EMBEDDED_ONLY, LoadedMessage


class _Stretch:
    """Neighbours in `ram` that are of one kind."""

    __slots__ = ("count", "kind")

    def __init__(self, count: int, kind: Kind) -> None:
        self.count = count
        self.kind = kind


class Backlog:
    """One level's ready messages. Created by its queue, used by nobody else."""

    def __init__(
        self, open_log: Callable[[], QueueLog], on_loaded: Callable[[], None], *, is_durable: bool
    ) -> None:
        self._open_log = open_log
        self._persistent_flag = PERSISTENT if is_durable else 0
        self._on_loaded = on_loaded
        self._log: QueueLog | None = None
        self.next_seq = 0
        self.returned: list[Returned] = []
        self.returned_bytes = 0
        self.parked = Parked()
        self.preloaded = Preloaded()
        self.batch_end_seq = 0
        self.ram: deque[Message] = deque()
        self.ram_first = 0
        self._kinds: deque[_Stretch] = deque()
        self._expiries: deque[int] | None = None
        self.disk_first = 0
        self.disk_count = 0
        self.disk_bytes = 0
        self.ram_bytes = 0
        self.redelivered_below = 0
        self.is_loading = False
        self.has_expiries = False
        self.keeps_sizes = False
        self._disk_sizes: DiskSizes | None = None
        self._generation = 0

    # -- size ---------------------------------------------------------------------------------------------------

    @property
    def ram_count(self) -> int:
        """Ready messages whose body is in RAM."""
        return len(self.ram) + len(self.returned)

    @property
    def count(self) -> int:
        """Ready messages."""
        return len(self.ram) + len(self.returned) + self.parked.count + self.disk_count

    @property
    def bytes(self) -> int:
        """Body bytes of the ready messages."""
        return self.ram_bytes + self.parked.bytes + self.disk_bytes

    @property
    def is_head_on_disk(self) -> bool:
        """Whether there are messages and the first of them has to be read."""
        if self.parked.count:
            return not self.returned or self.returned[0][0] > self.parked.first_seq
        return self.disk_count > 0 and not (self.ram or self.returned)

    @property
    def is_batch_left(self) -> bool:
        """Whether something of a start batch is still at the head, as it was loaded."""
        if self.returned:
            return self.returned[0][0] < self.batch_end_seq
        return (self.ram_first if self.ram else self.disk_first) < self.batch_end_seq

    @property
    def log(self) -> QueueLog:
        """This level's part of the store, opened at first need."""
        if self._log is None:
            self._log = self._open_log()
        return self._log

    @property
    def has_log(self) -> bool:
        """Whether anything of this level was ever in the store."""
        return self._log is not None

    # -- arrivals -----------------------------------------------------------------------------------------------

    def take_seqs(self, count: int) -> int:
        """Reserve `count` ids for messages that skip the backlog (handed to a consumer at once); returns the first."""
        first = self.next_seq
        self.next_seq += count
        if not self.ram:
            self.ram_first = self.next_seq
        if not self.disk_count:
            self.disk_first = self.next_seq
        return first

    def append(
        self, messages: list[Message], size: int, kind: Kind, expiries: list[int] | None, room: int
    ) -> None:
        """Add a run at the tail: the first `room` of it in RAM, the rest in the store only.

        Whatever `room` says, nothing goes to RAM behind what is on disk.
        """
        if room <= 0 or self.disk_count:
            self._append_disk(messages, size, kind, expiries)
        elif room >= len(messages):
            self._append_ram(messages, size, kind, expiries)
        else:
            head = messages[:room]
            head_size = body_bytes(head)
            cut = (None, None) if expiries is None else (expiries[:room], expiries[room:])
            self._append_ram(head, head_size, kind, cut[0])
            self._append_disk(messages[room:], size - head_size, kind, cut[1])

    def _append_ram(
        self, messages: list[Message], size: int, kind: Kind, expiries: list[int] | None
    ) -> None:
        assert self.disk_count == 0
        first = self.next_seq
        count = len(messages)
        if not self.ram:
            self.ram_first = first
        if expiries is not None or self._expiries is not None:
            self._extend_expiries(expiries, count)
        self.ram.extend(messages)
        self.ram_bytes += size
        self._add_kind(count, kind)
        self.next_seq = self.disk_first = first + count
        if kind & LOGGED:
            self.log.append(first, messages, expiries, size)

    def _append_disk(
        self, messages: list[Message], size: int, kind: Kind, expiries: list[int] | None
    ) -> None:
        first = self.next_seq
        if not self.disk_count:
            self.disk_first = first
            self._disk_sizes = DiskSizes() if self.keeps_sizes else None
        self.log.append(first, messages, expiries, size)
        if expiries is not None:
            self.has_expiries = True
        count = len(messages)
        if self._disk_sizes is not None:
            self._disk_sizes.append(messages, kind)
        self.disk_count += count
        self.disk_bytes += size
        self.next_seq = first + count

    def give_back(self, entries: list[Returned]) -> None:
        """Put messages that were handed out back into their places."""
        size = 0
        for entry in entries:
            size += entry[1].size
            if entry[2]:
                self.has_expiries = True
        self.ram_bytes += size
        self.returned_bytes += size
        self.returned = returned_heap.merge(self.returned, entries)

    def _add_kind(self, count: int, kind: Kind) -> None:
        kinds = self._kinds
        if kinds and kinds[-1].kind == kind:
            kinds[-1].count += count
        else:
            kinds.append(_Stretch(count, kind))

    def _extend_expiries(self, expiries: list[int] | None, count: int) -> None:
        if self._expiries is None:
            self._expiries = deque([0] * len(self.ram))
        self._expiries.extend(expiries if expiries is not None else [0] * count)
        self.has_expiries = True

    # -- departures ---------------------------------------------------------------------------------------------

    def take(self, max_count: int, max_bytes: int) -> Batch | None:
        """Remove up to `max_count` messages from the head, at least one; None when the head is not in RAM."""
        if self.returned and self.returned[0][0] < self.parked.first_seq:
            batch = returned_heap.take(self.returned, max_count, max_bytes, self.parked.first_seq)
            self.ram_bytes -= batch.size
            self.returned_bytes -= batch.size
            return batch
        if self.parked.count or not self.ram:
            return None
        stretch = self._kinds[0]
        messages, size = take(self.ram, min(max_count, stretch.count), max_bytes)
        count = len(messages)
        if count == stretch.count:
            self._kinds.popleft()
        else:
            stretch.count -= count
        first = self.ram_first
        self.ram_first = first + count
        self.ram_bytes -= size
        expiries = None
        if self._expiries is not None:
            popleft = self._expiries.popleft
            expiries = [popleft() for _ in range(count)]
            if not self._expiries:
                self._expiries = None
                self.has_expiries = self.disk_count > 0
        redelivered = first < self.redelivered_below
        return Batch(
            range(first, first + count), messages, size, stretch.kind, redelivered, expiries
        )

    def head(self) -> tuple[Message, int] | None:
        """(message, expiry) at the head if it is in RAM."""
        if self.is_head_on_disk:
            return None
        if self.returned:
            return self.returned[0][1], self.returned[0][2]
        if self.ram:
            return self.ram[0], self._expiries[0] if self._expiries is not None else 0
        return None

    def forget(self, seqs: Sequence[int], messages: list[Message] | None, kind: Kind) -> None:
        """Tell the store that these messages are gone for good."""
        if kind & LOGGED and seqs:
            if isinstance(seqs, range) and seqs.step == 1:
                self.log.ack(seqs.start, seqs.stop - 1, messages)
            else:
                self.log.ack_many(list(seqs))

    def purge(self) -> int:
        """Drop every ready message; returns how many there were. O(runs + returned)."""
        count = self.count
        for entry in self.returned:
            self.forget((entry[0],), [entry[1]], entry[3])
        for first, stop, _ in self.parked:
            self.log.ack(first, stop - 1, None)
        seq = self.ram_first
        for stretch in self._kinds:
            self.forget(range(seq, seq + stretch.count), None, stretch.kind)
            seq += stretch.count
        if self.disk_count:
            self.log.ack(self.disk_first, self.next_seq - 1, None)
        self.let_go()
        return count

    def let_go(self) -> None:
        """Keep no message, whatever the store has: a channel's routes may hold a deleted queue for long."""
        self._generation += 1
        self.is_loading = False
        self.returned = []
        self.parked.clear()
        self.preloaded.clear()
        self.ram.clear()
        self._kinds.clear()
        self._expiries = None
        self.ram_bytes = self.returned_bytes = self.disk_bytes = self.disk_count = 0
        self.ram_first = self.disk_first = self.next_seq
        self.has_expiries = False
        self._disk_sizes = None

    def drop_disk(self, max_count: int, max_bytes: int) -> tuple[int, int, Kind] | None:
        """Drop messages of one size from the head of the disk range, unread, until a limit is reached.

        Returns (count, body bytes, kind); None when the head is not on disk, or its sizes are not known.
        """
        sizes = self._disk_sizes
        if not sizes or self.ram or self.returned or self.parked.count or self.is_loading:
            return None
        count, size, kind = sizes.take(max_count, max_bytes)
        first = self.disk_first
        self.log.ack(first, first + count - 1, None)
        self.ram_first = self.disk_first = first + count
        self.disk_count -= count
        self.disk_bytes -= size * count
        self.preloaded.drop_below(self.disk_first)
        return count, size * count, kind

    def expired_count(self, now_ms: int) -> int:
        """How many messages at the head, as far as it is in RAM, have expired."""
        if self.is_head_on_disk:
            return 0
        if self.returned:
            return int(0 < self.returned[0][2] <= now_ms)
        count = 0
        for due in self._expiries or ():
            if not 0 < due <= now_ms:
                break
            count += 1
        return count

    # -- disk ---------------------------------------------------------------------------------------------------

    def page_out(self) -> int:
        """Move everything to disk; returns how many moved. What the store has is not written again."""
        moved = len(self.preloaded)
        self.preloaded.clear()
        return moved + self.park(0, 0) + self._page_out_ram()

    def park(self, max_count: int, max_bytes: int) -> int:
        """Of what was handed out and came back keep only so much in RAM; returns how many went to disk."""
        entries = sorted(self.returned)
        kept = kept_bytes = 0
        while kept < min(max_count, len(entries)) and kept_bytes < max_bytes:
            kept_bytes += entries[kept][1].size
            kept += 1
        moving = entries[kept:]
        if not moving:
            return 0
        self._void_reads()
        self.returned = entries[:kept]
        size = self.returned_bytes - kept_bytes
        self.returned_bytes = kept_bytes
        self.ram_bytes -= size
        for run in returned_heap.unlogged_runs(moving):
            messages = [entry[1] for entry in run]
            expiries = [entry[2] for entry in run]
            self.log.append(
                run[0][0], messages, expiries if any(expiries) else None, body_bytes(messages)
            )
        self.parked.add([(entry[0], entry[4]) for entry in moving], size)
        return len(moving)

    def _void_reads(self) -> None:
        """What a read in flight will answer is not what is missing then."""
        self._generation += 1
        self.is_loading = False

    def _page_out_ram(self) -> int:
        moving = len(self.ram)
        if not moving:
            return 0
        # A read in flight starts behind what now goes to disk: its answer would leave a gap.
        self._void_reads()
        start = 0
        for stretch in self._kinds:
            stop = start + stretch.count
            if not stretch.kind & LOGGED:
                messages = list(islice(self.ram, start, stop))
                expiries = (
                    None if self._expiries is None else list(islice(self._expiries, start, stop))
                )
                self.log.append(self.ram_first + start, messages, expiries, body_bytes(messages))
            start = stop
        moved_bytes = body_bytes(self.ram)
        self.ram.clear()
        self._kinds.clear()
        self._expiries = None
        self._disk_sizes = None
        self.disk_first = self.ram_first
        self.disk_count += moving
        self.disk_bytes += moved_bytes
        self.ram_bytes -= moved_bytes
        return moving

    def recover(self, log: QueueLog) -> None:
        """Take over what the store found at start; everything is on disk until loaded."""
        self._log = log
        found = log.recovered
        if found is None:
            return
        self.next_seq = found.next_seq
        self.ram_first = self.disk_first = found.first_seq
        self.disk_count = found.count
        self.disk_bytes = found.bytes
        self.redelivered_below = found.next_deliver_seq
        if not found.count:
            self.ram_first = self.disk_first = self.next_seq

    def load(self, max_count: int, max_bytes: int, wanted: int = ALL) -> None:
        """Bring the head of what is on disk into RAM; the queue is pumped again when it is there.

        Beyond `wanted` messages the load ends before a large one.
        """
        if self.is_loading:
            return
        if self.parked.count:
            count = min(max_count, self.parked.stretch)
            self._read(self.parked.first_seq, count, max_bytes, wanted, self._accept_parked)
        elif self.disk_count:
            run = self.preloaded.take_run(self.disk_first)
            if run:
                self._accept(run, run[-1][0] + 1)
            else:
                self._read(self.disk_first, max_count, max_bytes, wanted, self._accept)

    def load_start_batch(self, max_count: int, max_bytes: int) -> None:
        """Load the first `max_count` positions, as far as their bodies are embedded in the queue's own store."""
        if self.is_loading or self.ram or self.returned or not self.disk_count:
            return

        def accept(loaded: list[Loaded], next_seq: int) -> None:
            left = max_bytes - sum([entry[1].size for entry in loaded])
            self._accept(loaded, next_seq)
            self.batch_end_seq = self.disk_first
            count = max_count - len(loaded)
            if count > 0 and left > 0 and self.disk_count:
                self._read(self.disk_first, count, left, EMBEDDED_ONLY, self._accept_behind)

        self._read(self.disk_first, max_count, max_bytes, 0, accept)

    def peek(self) -> None:
        """Read the head of the disk range and leave it there; `has_expiries` tells then whether it expires."""
        if self.is_loading or self.parked.count or not self.disk_count:
            return

        def accept(loaded: list[Loaded], next_seq: int) -> None:
            self.has_expiries |= bool(loaded and loaded[0][2])

        self._read(self.disk_first, 1, 1, ALL, accept)

    def _read(
        self,
        first_seq: int,
        max_count: int,
        max_bytes: int,
        wanted: int,
        accept: Callable[[list[Loaded], int], None],
    ) -> None:
        self.is_loading = True
        generation = self._generation

        def on_read(loaded: list[LoadedMessage], next_seq: int) -> None:
            if generation == self._generation:
                self.is_loading = False
                accept(*_as_ours((loaded, next_seq)))
                self._on_loaded()

        answer = self.log.read(first_seq, max_count, max_bytes, on_read, wanted)
        if answer is not None:
            self.is_loading = False
            accept(*_as_ours(answer))

    def _accept_behind(self, loaded: list[Loaded], next_seq: int) -> None:
        """The bodies of a start batch that stand behind one that was left on disk."""
        self.preloaded.fill(loaded)
        self.preloaded.drop_below(self.disk_first)
        if loaded:
            self.batch_end_seq = loaded[-1][0] + 1

    def _accept_parked(self, loaded: list[Loaded], next_seq: int) -> None:
        flags = self.parked.take([seq for seq, _, _ in loaded], next_seq)
        entries = [
            (seq, message, expiry, self._kind_of(message), redelivered)
            for (seq, message, expiry), redelivered in zip(loaded, flags, strict=True)
            if redelivered is not None
        ]
        size = sum([entry[1].size for entry in entries])
        # What the store has lost took its bytes along.
        self.parked.bytes = self.parked.bytes - size if self.parked.count else 0
        self.give_back(entries)

    def _accept(self, loaded: list[Loaded], next_seq: int) -> None:
        first = self.disk_first
        count = len(loaded)
        is_plain = count > 0 and loaded[-1][0] - loaded[0][0] == count - 1
        if self.ram:
            is_plain = is_plain and loaded[0][0] == self.ram_first + len(self.ram)
        else:
            is_plain = is_plain and loaded[0][0] >= self.redelivered_below
        size = sum([entry[1].size for entry in loaded])
        if not self.has_expiries:
            self.has_expiries = any(entry[2] for entry in loaded)
        if is_plain:
            self._accept_run(loaded, size)
        elif count:
            self._ram_to_returned()  # what has gaps is served from there, and must not overtake it
            self.give_back(
                [
                    (seq, message, expiry, self._kind_of(message), seq < self.redelivered_below)
                    for seq, message, expiry in loaded
                ]
            )
        if self._disk_sizes is not None:
            self._disk_sizes.skip(count)
        self.disk_first = max(next_seq, first)
        self.preloaded.drop_below(self.disk_first)
        self.disk_count -= count
        self.disk_bytes -= size
        if self.disk_first >= self.next_seq or self.disk_count < 0:
            # What the index promised and the store could not deliver (corrupt records) is gone.
            self.disk_count = self.disk_bytes = 0
            self.disk_first = self.next_seq
        if not self.ram:
            self.ram_first = self.disk_first

    def _ram_to_returned(self) -> None:
        if not self.ram:
            return
        kinds = [stretch.kind for stretch in self._kinds for _ in range(stretch.count)]
        expiries = self._expiries or [0] * len(kinds)
        entries = [
            (seq, message, due, kind, seq < self.redelivered_below)
            for seq, (message, due, kind) in enumerate(
                zip(self.ram, expiries, kinds, strict=True), self.ram_first
            )
        ]
        self.returned = returned_heap.merge(self.returned, entries)
        self.returned_bytes = self.ram_bytes
        self.ram.clear()
        self._kinds.clear()
        self._expiries = None

    def _accept_run(self, loaded: list[Loaded], size: int) -> None:
        if not self.ram:
            self.ram_first = loaded[0][0]
        expiries = [entry[2] for entry in loaded] if self.has_expiries else None
        if expiries is not None or self._expiries is not None:
            self._extend_expiries(expiries, len(loaded))
        self.ram.extend([entry[1] for entry in loaded])
        self.ram_bytes += size
        for _, message, _ in loaded:
            self._add_kind(1, self._kind_of(message))

    def _kind_of(self, message: Message) -> Kind:
        """Kind of a message that is in the store."""
        return DURABLE if message.flags & self._persistent_flag else LOGGED


def _as_ours(answer: tuple[list[LoadedMessage], int]) -> tuple[list[Loaded], int]:
    """The store builds no message itself: the loader that it was given, and so what it loads, is the codec's."""
    return cast("tuple[list[Loaded], int]", answer)
