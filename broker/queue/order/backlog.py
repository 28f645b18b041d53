"""The ready messages of one queue (of one priority level), in order, in RAM and on disk.

Order is by sequence id, three parts one after the other, every id of a part lower than every id of the next:

  requeued   what was handed out and came back, or was recovered with gaps between the ids; each has its own id
  ram        messages never handed out, with consecutive ids
  disk       a range of ids up to `next_seq`, known here only by number; the bodies are in the store

Each part owns its state, and knows neither the others nor when it is its turn. This module moves messages between them,
and to and from the store. A run costs the same whatever its length.

The other rooms of the queue (`memory`, `rules`, `serve`) decide what goes where; nothing here knows consumers, limits
or policies. Loads from disk are asked for here and arrive through `pending_read`; a purge or page-out in between makes
the answer stale. Never keeps a message both in `ram` and in `disk`; a start batch's bodies behind a large one
(`start_batch_rest`) are the exception, and are not counted twice.

Source: the q3/delta pair of RabbitMQ's rabbit_variable_queue since 3.12.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import groupby
from operator import itemgetter
from typing import Protocol

from burrowmq.broker.queue.order.disk_range import DiskRange
from burrowmq.broker.queue.order.pending_read import Accept, PendingRead
from burrowmq.broker.queue.order.ram_runs import RamRuns
from burrowmq.broker.queue.order.requeued import NOTHING_CAME_BACK, Requeued
from burrowmq.broker.queue.order.returned import unlogged_runs
from burrowmq.broker.queue.order.start_batch_rest import StartBatchRest
from burrowmq.broker.queue.run import DURABLE, LOGGED, DeliveryRun, Kind, Loaded, Returned
from burrowmq.protocol.codec import Message, body_bytes, raw_bytes
from burrowmq.protocol.constants import PERSISTENT
from burrowmq.storage.loop.queue_log import QueueLog
from burrowmq.storage.types import ALL, EMBEDDED_ONLY

_DUE = itemgetter(2)


def _open_already() -> QueueLog:
    raise AssertionError("a backlog opens its part of the store once")


class BacklogOwner(Protocol):
    """The queue, as its backlogs see it: one object, where a bound method for each call would be 64 bytes more."""

    def on_loaded(self) -> None:
        """What was asked for from disk has come, in a later turn, or will not come any more: ask again."""
        ...

    def on_lost(self, count: int, size: int) -> None:
        """The store turns out not to have so many messages, of so many bytes."""
        ...


class Backlog:
    """One level's ready messages. Made by its queue and used by the parts of that queue only."""

    __slots__ = (
        "__weakref__", "_log", "_open_log", "_owner", "_persistent_flag", "_read", "disk", "dying_count",
        "has_expiries", "is_watched", "level", "next_seq", "ram", "ram_bytes", "redelivered_below",
        "requeued", "start_batch_end",
    )  # fmt: skip

    def __init__(
        self,
        open_log: Callable[[], QueueLog],
        owner: BacklogOwner,
        *,
        is_durable: bool,
        level: int = 0,
    ) -> None:
        self._owner = owner
        self.level = level
        """Its number among the levels of its queue."""
        self._open_log = open_log
        self._persistent_flag = PERSISTENT if is_durable else 0
        self._read: PendingRead | None = None  # most queues never get to it
        self._log: QueueLog | None = None
        self.next_seq = 0
        self.requeued = NOTHING_CAME_BACK
        self.ram = RamRuns()
        self.disk = DiskRange()
        self.ram_bytes = 0
        """Body bytes in RAM, those that came back included."""
        self.start_batch_end = 0
        self.redelivered_below = 0
        self.has_expiries = False
        self.dying_count = 0
        """Messages that were dropped and wait to be read (`rules.drops`): what arrives behind them goes to disk."""
        self.is_watched = False
        """Whether the owner is told of whatever leaves the disk, with (0, 0) where nothing is lost (`queue.losses`)."""

    # -- size ---------------------------------------------------------------------------------------------------

    @property
    def ram_count(self) -> int:
        """Ready messages whose body is in RAM."""
        return len(self.ram.messages) + len(self.requeued.heap)

    @property
    def count(self) -> int:
        """Ready messages."""
        requeued = self.requeued
        if requeued is NOTHING_CAME_BACK:
            return len(self.ram.messages) + self.disk.count
        in_ram = len(self.ram.messages) + len(requeued.heap)
        return in_ram + requeued.parked.count + self.disk.count

    @property
    def bytes(self) -> int:
        """Body bytes of the ready messages."""
        return self.ram_bytes + self.requeued.parked.bytes + self.disk.bytes

    @property
    def is_head_on_disk(self) -> bool:
        """Whether there are messages and the first of them has to be read."""
        heap, parked = self.requeued.heap, self.requeued.parked
        if parked.count:
            return not heap or heap[0][0] > parked.first_seq
        return self.disk.count > 0 and not (self.ram.messages or heap)

    @property
    def is_loading(self) -> bool:
        """Whether a read is under way."""
        return self._read is not None and self._read.is_under_way

    @property
    def fresh_seq(self) -> int:
        """The id below which everything was handed out once."""
        if self.ram.messages:
            return self.ram.first
        return self.disk.first if self.disk.count else self.next_seq

    @property
    def undelivered_seq(self) -> int:
        """The id below which everything was delivered once, by this process or one before it. O(messages given back).

        Of a start batch that holds both kinds the fresh ones lie among what was given back.
        """
        fresh = [entry[0] for entry in self.requeued.heap if not entry[4]]
        fresh += [first for first, _, is_again in self.requeued.parked if not is_again]
        return min(fresh) if fresh else max(self.fresh_seq, self.redelivered_below)

    @property
    def is_start_batch_left(self) -> bool:
        """Whether something of a start batch is still at the head, as it was loaded."""
        heap = self.requeued.heap
        return (heap[0][0] if heap else self.fresh_seq) < self.start_batch_end

    @property
    def log(self) -> QueueLog:
        """This level's part of the store, opened at first need."""
        return self._log or self.open()

    def open(self) -> QueueLog:
        """Open this level's part of the store, unless it is open."""
        if self._log is None:
            self._log = self._open_log()
            self._open_log = _open_already  # what it was holds 200 bytes
        return self._log

    @property
    def has_log(self) -> bool:
        """Whether anything of this level was ever in the store."""
        return self._log is not None

    # -- arrivals -----------------------------------------------------------------------------------------------

    def bypass(
        self, messages: list[Message], size: int, expiries: list[int] | None, *, is_durable: bool
    ) -> int:
        """Give ids to messages that go to a consumer at once, store them if they must last; returns the first id."""
        first = self.next_seq
        self.next_seq = first + len(messages)
        if is_durable:
            (self._log or self.open()).append(first, messages, expiries, raw_bytes(messages))
        return first

    def append(
        self, messages: list[Message], size: int, kind: Kind, expiries: list[int] | None, room: int
    ) -> None:
        """Add a run at the tail: the first `room` of it in RAM, the rest in the store only.

        Whatever `room` says, nothing goes to RAM behind what is on disk, or behind what is dropped from there.
        """
        count = len(messages)
        if self.disk.count or self.dying_count or room < 0:
            room = 0
        first = self.next_seq
        tail, tail_size, tail_due = messages, size, expiries
        if 0 < room < count:
            tail = messages[room:]
            tail_size = body_bytes(tail)
            tail_due = None if expiries is None else expiries[room:]
        # The store comes first, because it may fail: then nothing has changed here.
        if kind & LOGGED:
            (self._log or self.open()).append(first, messages, expiries, raw_bytes(messages))
        elif room < count:
            (self._log or self.open()).append(first + room, tail, tail_due, raw_bytes(tail))
        if expiries is not None:
            self.has_expiries = True
        self.next_seq = first + count
        if room >= count:
            self.ram.append(first, messages, kind, expiries)
            self.ram_bytes += size
            return
        if room:
            due = None if expiries is None else expiries[:room]
            self.ram.append(first, messages[:room], kind, due)
            self.ram_bytes += size - tail_size
        self.disk.append(first + room, tail, tail_size, kind)

    @property
    def log_id(self) -> int:
        """What the store calls the level; only for one that has something there."""
        return self.log.queue_id

    def give_back(self, entries: list[Returned], size: int) -> None:
        """Put messages that were handed out, `size` body bytes together, back into their places."""
        self.has_expiries = self.has_expiries or any(map(_DUE, entries))
        self.ram_bytes += size
        self._put_back(entries, size)

    def _put_back(self, entries: list[Returned], size: int) -> None:
        if self.requeued is NOTHING_CAME_BACK:
            self.requeued = Requeued()
        self.requeued.add(entries, size)

    # -- departures ---------------------------------------------------------------------------------------------

    def take(self, max_count: int, max_bytes: int) -> DeliveryRun | None:
        """Remove up to `max_count` messages from the head, at least one; None when the head is not in RAM."""
        requeued = self.requeued
        if requeued.heap and requeued.heap[0][0] < requeued.parked.first_seq:
            run = requeued.take(max_count, max_bytes)
        elif requeued.parked.count or not self.ram.messages:
            return None
        else:
            run = self.ram.take(max_count, max_bytes, self.redelivered_below)
            if run.expiries is not None and not self.ram.has_expiries:
                self.has_expiries = self.disk.count > 0
        self.ram_bytes -= run.size
        return run

    def head(self) -> tuple[Message, int] | None:
        """(message, expiry) at the head if it is in RAM."""
        if self.is_head_on_disk:
            return None
        if self.requeued.heap:
            return self.requeued.heap[0][1:3]
        if self.ram.messages:
            return self.ram.messages[0], self.ram.head_expiry
        return None

    def forget(
        self, seqs: Sequence[int], messages: list[Message] | None, kind: Kind, size: int
    ) -> None:
        """Tell the store that these messages are gone for good. `size`: octets of the bodies that are given."""
        if kind & LOGGED and seqs:
            if isinstance(seqs, range) and seqs.step == 1:
                self.log.ack(seqs.start, seqs.stop - 1, messages, size)
            else:
                self.log.ack_many(list(seqs))

    def remove(self, messages: Mapping[int, Message]) -> list[tuple[int, Kind]]:
        """Drop ready messages, by id, wherever they stand; gives those that were still ready, and their kinds.

        Each was ready once; consumers, expiry or a purge may have taken it since, and another call of this may not.
        O(messages in RAM).
        """
        self._void_read()
        self._ram_to_requeued()
        entries, parked = self.requeued.remove(messages)
        gone = [(entry[0], entry[3]) for entry in entries]
        self.ram_bytes -= body_bytes([entry[1] for entry in entries])
        if parked:
            self.requeued.parked.shrink(body_bytes([messages[seq] for seq in parked]))
        first = self.disk.first if self.disk.count else self.next_seq
        on_disk = [seq for seq in messages if seq >= first]
        if on_disk:
            self.disk.remove(len(on_disk), body_bytes([messages[seq] for seq in on_disk]))
        if self.is_watched:
            self._owner.on_lost(0, 0)
        gone += [(seq, self._kind_of(messages[seq])) for seq in (*parked, *on_disk)]
        self.forget(sorted(seq for seq, kind in gone if kind & LOGGED), None, LOGGED, 0)
        return gone

    def purge(self) -> int:
        """Drop every ready message; returns how many there were. O(runs + returned)."""
        count = self.count
        for entry in self.requeued.heap:
            self.forget((entry[0],), [entry[1]], entry[3], entry[1].size)
        for first, stop, _ in self.requeued.parked:
            self.log.ack(first, stop - 1, None)
        for seqs, kind in self.ram.by_kind():
            self.forget(seqs, None, kind, 0)
        if self.disk.count:
            self.log.ack(self.disk.first, self.next_seq - 1, None)
        self.let_go()
        return count

    def let_go(self) -> None:
        """Keep no message, whatever the store has: a transaction may hold a deleted queue for long."""
        self._void_read()
        self.requeued = NOTHING_CAME_BACK
        self.ram.clear()
        self.disk.clear()
        self.ram_bytes = 0
        self.has_expiries = False

    def take_unread(self, max_count: int, max_bytes: int) -> tuple[range, int, Kind] | None:
        """Remove messages of one size from the head of the disk range, unread, until a limit is reached.

        Returns (ids, body bytes of each, kind); None when the head is not there, or its sizes are not known. The store
        has them until it is told (`log.ack`).
        """
        if self.ram_count or self.requeued.parked.count:
            return None
        found = self.disk.drop(max_count, max_bytes)
        if self.is_watched and found is not None:
            self._owner.on_lost(0, 0)
        return found

    def expired_count(self, now_ms: int) -> int:
        """How many messages at the head, as far as it is in RAM, have expired."""
        if self.is_head_on_disk:
            return 0
        if self.requeued.heap:
            return int(0 < self.requeued.heap[0][2] <= now_ms)
        return self.ram.expired_count(now_ms)

    def live_count(self, now_ms: int, most: int) -> int:
        """How many messages, the head whatever it is and at most `most`, come before one that has expired."""
        if self.requeued.heap:
            return 1
        return self.ram.live_count(now_ms, most)

    # -- disk ---------------------------------------------------------------------------------------------------

    def page_out(self) -> int:
        """Move everything to disk; returns how many moved. What the store has is not written again."""
        was_loading = self.is_loading
        moved = len(self.disk.start_batch_rest)
        self.disk.start_batch_rest.clear()
        moved += self.park(0, 0) + self._page_out_ram()
        if was_loading and not self.is_loading:
            self._owner.on_loaded()  # whoever waits for it goes on as if it had been answered, with nothing
        return moved

    def park(self, max_count: int, max_bytes: int) -> int:
        """Of what was handed out and came back keep only so much in RAM; returns how many went to disk."""
        moving, size = self.requeued.park(max_count, max_bytes)
        if moving:
            self._void_read()
            self.ram_bytes -= size
        for run in unlogged_runs(moving):
            messages = [entry[1] for entry in run]
            expiries = [entry[2] for entry in run]
            due = expiries if any(expiries) else None
            self.log.append(run[0][0], messages, due, raw_bytes(messages))
        return len(moving)

    def _page_out_ram(self) -> int:
        moving = len(self.ram.messages)
        if not moving:
            return 0
        # A read in flight starts behind what now goes to disk: its answer would leave a gap.
        self._void_read()
        for first, messages, expiries in self.ram.unlogged():
            self.log.append(first, messages, expiries, raw_bytes(messages))
        size = body_bytes(self.ram.messages)
        self.disk.prepend(self.ram.first, self.ram.runs(), size)
        self.ram.clear()
        self.ram_bytes -= size
        return moving

    def recover(self, log: QueueLog) -> None:
        """Take over what the store found at start; everything is on disk until loaded."""
        self._log, self._open_log = log, _open_already
        found = log.recovered
        if found is None:
            return
        self.next_seq = found.next_seq
        self.disk.recover(found.first_seq, found.count, found.bytes)
        self.redelivered_below = found.next_deliver_seq

    def _begin_read(self, where: tuple[int, int, int], wanted: int, accept: Accept) -> None:
        if self._read is None:
            self._read = PendingRead(self._owner.on_loaded)
        self._read.begin(self.log, where, wanted, accept)

    def _void_read(self) -> None:
        if self._read is not None:
            self._read.void()

    def load(self, max_count: int, max_bytes: int, wanted: int = ALL) -> None:
        """Bring the head of what is on disk into RAM; the queue is pumped again when it is there.

        Beyond `wanted` messages the load ends before a large one.
        """
        if self.is_loading:
            return
        parked = self.requeued.parked
        if parked.count:
            where = parked.first_seq, min(max_count, parked.read_span), max_bytes
            self._begin_read(where, wanted, self._accept_parked)
        elif self.disk.count:
            run = self.disk.start_batch_rest.take_run(self.disk.first)
            if run:
                self._accept(run, run[-1][0] + 1)
            else:
                where = self.disk.first, max_count, max_bytes
                self._begin_read(where, wanted, self._accept)

    def load_start_batch(self, max_count: int, max_bytes: int) -> None:
        """Load the first `max_count` positions, as far as their bodies are embedded in the queue's own store."""
        if self.is_loading or self.ram_count or not self.disk.count:
            return

        def accept(loaded: list[Loaded], next_seq: int) -> None:
            left = max_bytes - sum([entry[1].size for entry in loaded])
            self._accept(loaded, next_seq)
            self.start_batch_end = self.disk.first
            count = max_count - len(loaded)
            if count > 0 and left > 0 and self.disk.count:
                where = self.disk.first, count, left
                self._begin_read(where, EMBEDDED_ONLY, self._accept_behind)

        self._begin_read((self.disk.first, max_count, max_bytes), 0, accept)

    def peek(self) -> None:
        """Read the head of the disk range and leave it there; `has_expiries` tells then whether it expires.

        Of one that is damaged nobody knows, nor of those behind it: who asks has them loaded.
        """
        if self.is_loading or self.requeued.parked.count or not self.disk.count:
            return

        def accept(loaded: list[Loaded], next_seq: int) -> None:
            self.has_expiries |= not loaded or bool(loaded[0][2])

        self._begin_read((self.disk.first, 1, 1), ALL, accept)

    def _accept_behind(self, loaded: list[Loaded], next_seq: int) -> None:
        """The bodies of a start batch that stand behind one that was left on disk."""
        self.disk.start_batch_rest = StartBatchRest(loaded)
        self.disk.start_batch_rest.drop_below(self.disk.first)
        if loaded:
            self.start_batch_end = loaded[-1][0] + 1

    def _accept_parked(self, loaded: list[Loaded], next_seq: int) -> None:
        parked = self.requeued.parked
        parked_count, parked_bytes = parked.count, parked.bytes
        entries = self.requeued.unpark(loaded, next_seq, self._kind_of)
        size = body_bytes([entry[1] for entry in entries])
        self.give_back(entries, size)
        lost_count = parked_count - parked.count - len(entries)
        lost_bytes = 0 if parked.count else parked_bytes - size
        if lost_count or lost_bytes or self.is_watched:
            self._owner.on_lost(lost_count, lost_bytes)

    def _accept(self, loaded: list[Loaded], next_seq: int) -> None:
        ram = self.ram
        if loaded and loaded[0][0] < self.disk.first:
            # Taken unread meanwhile.
            loaded = [entry for entry in loaded if entry[0] >= self.disk.first]
        count = len(loaded)
        is_plain = count > 0 and loaded[-1][0] - loaded[0][0] == count - 1
        if ram.messages:
            is_plain = is_plain and loaded[0][0] == ram.first + len(ram.messages)
        else:
            is_plain = is_plain and loaded[0][0] >= self.redelivered_below
        size = sum([entry[1].size for entry in loaded])
        if not self.has_expiries:
            self.has_expiries = any(entry[2] for entry in loaded)
        if is_plain:
            self._accept_run(loaded, size)
        elif count:
            self._ram_to_requeued()  # what has gaps is served from there, and must not overtake it
            self.give_back(
                [
                    (seq, message, expiry, self._kind_of(message), seq < self.redelivered_below)
                    for seq, message, expiry in loaded
                ],
                size,
            )
        lost_count, lost_bytes = self.disk.skip(count, size, next_seq, self.next_seq)
        if ram.messages and not self.disk.count and ram.first + len(ram.messages) < self.next_seq:
            self._ram_to_requeued()  # the last ids are gone, and what arrives next does not follow those in RAM
        if lost_count or lost_bytes or self.is_watched:
            self._owner.on_lost(lost_count, lost_bytes)

    def known_durable(self) -> tuple[int, int, int]:
        """How many persistent messages, of how many bytes, are known; how many messages may be. O(messages in RAM)."""
        in_ram = self.durable_in_ram()
        count, size = len(in_ram), body_bytes(in_ram)
        parked = self.requeued.parked.count
        on_disk = None if parked else self.disk.known_durable
        if on_disk is None:
            return count, size, parked + self.disk.count
        return count + on_disk[0], size + on_disk[1], 0

    def durable_in_ram(self) -> list[Message]:
        """Give the persistent messages in RAM, in no order."""
        found = [entry[1] for entry in self.requeued.heap if entry[3] == DURABLE]
        for messages, kind in self.ram.runs():
            if kind == DURABLE:
                found += messages
        return found

    def _ram_to_requeued(self) -> None:
        if not self.ram.messages:
            return
        size = self.ram_bytes - self.requeued.bytes
        self._put_back(self.ram.entries(self.redelivered_below), size)
        self.ram.clear()

    def _accept_run(self, loaded: list[Loaded], size: int) -> None:
        self.ram_bytes += size
        for kind, group in groupby(loaded, lambda entry: self._kind_of(entry[1])):
            entries = list(group)
            expiries = [entry[2] for entry in entries] if self.has_expiries else None
            self.ram.append(entries[0][0], [entry[1] for entry in entries], kind, expiries)

    def _kind_of(self, message: Message) -> Kind:
        """Kind of a message that is in the store."""
        return DURABLE if message.flags & self._persistent_flag else LOGGED
