"""One simulated node's store under a random workload, and what must hold after a power cut.

State: the simulated disk, the engine on it, and the model: for each queue what was published, what was acked, and from
which epoch on either is durable. `run` applies seeded operations; `crash` cuts the power and recovers; `check` compares.
The limits are tiny (16 entries a segment, 3 KB segment files) so that a few dozen operations roll, empty and compact.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from burrowmq.storage.disk.checked_writer import CheckedWriter
from burrowmq.storage.disk.troubles import ACKING, WRITING
from burrowmq.storage.engine import Engine
from burrowmq.storage.errors import DiskFull, ReadFailed, StorageError, error_text
from burrowmq.storage.files.cache import NO_ROOM, write_error
from burrowmq.storage.loop.queue_log import QueueLog
from burrowmq.storage.names import QueueNames
from burrowmq.storage.shared.vhost_store import TRANSIENT_SEGMENTS
from burrowmq.storage.types import PERSISTENT, StoreOptions
from tests.support.sim_filesystem import PowerCut, SimFileSystem
from tests.support.stored_message import FakeMessage

VHOST = "/"
OPTIONS = StoreOptions(
    segment_size_limit=3000,
    segment_entry_count=16,
    embed_below=120,
    open_files=6,
    rewrite_above=600,
    journal_entries=20,
    journal_run_bytes=500,
    journal_direct_bytes=3000,
    convert_slice=1,
)
# With a commit log: a generation is full after a few commits, and queues move out after a few messages.
WITH_LOG = replace(OPTIONS, has_log=True, log_limit=6000, log_queue_limit=700, log_total_limit=2500)
NEVER = 1 << 60
SIZES = (1, 20, 60, 130, 400, 900)
_HEADER = b"\x02\x00\x01\x00\x00\x00\x0e\x00\x3c\x00\x00"


class SilentObserver:
    """Counts events, and keeps what was reported as lost."""

    def __init__(self) -> None:
        self.events: Counter[str] = Counter()
        self.lost: list[tuple[object, ...]] = []  # since the last crash
        self.all_lost: list[tuple[object, ...]] = []

    def __getattr__(self, name: str) -> Callable[..., None]:
        def note(*details: object) -> None:
            self.events[name] += 1
            if name == "record_lost":
                self.lost.append(details)
                self.all_lost.append(details)

        return note


class SimDefinitions:
    """The definition store's twin: rows that outlive the power cut once `commit` returned."""

    def __init__(self, filesystem: SimFileSystem, rows: dict[tuple[str, str], object]) -> None:
        self._filesystem = filesystem
        self._rows = rows

    def load(self) -> list[tuple[str, str, object]]:
        return [(*key, value) for key, value in sorted(self._rows.items(), key=lambda row: row[0])]

    def commit(self, changes: list[tuple[str, str, object]]) -> None:
        try:
            self._begin()
        except OSError as error:
            if error.errno in NO_ROOM:
                raise write_error("", error) from error
            self._begin_again()
        for kind, key, value in changes:
            if value is None:
                self._rows.pop((kind, key), None)
            else:
                self._rows[kind, key] = value

    def _begin(self) -> None:
        self._filesystem.begin_simple("commit", "definitions.db")

    def _begin_again(self) -> None:
        """SQLite is opened again, once."""
        try:
            self._begin()
        except OSError as error:
            kind = DiskFull if error.errno in NO_ROOM else StorageError
            raise kind(error_text(error)) from error

    def copy_to(self, path: str) -> None:
        self._filesystem.create(path).pwrite(repr(self._rows).encode(), 0)

    def close(self) -> None:
        pass


def make_message(number: int, size: int, persistent: bool) -> FakeMessage:
    """A message whose body says which it is."""
    body = (b"%08d" % number * (size // 8 + 1))[: max(size, 8)]
    raw = _HEADER + len(body).to_bytes(8, "big") + b"\x00\x00\xce" + body + b"\xce"
    return FakeMessage(b"\x00\x03key", raw, len(body), PERSISTENT if persistent else 0)


@dataclass
class Entry:
    """One message in one queue."""

    message: FakeMessage
    raw: bytes
    expiry: int
    epoch: int
    ack_epoch: int | None = None
    is_ack_durable: bool = False

    @property
    def persistent(self) -> bool:
        return bool(self.message.flags & PERSISTENT)


@dataclass
class ModelQueue:
    """What is known about a queue."""

    name: str
    durable: bool
    epoch: int  # of its declaration
    log: QueueLog
    entries: dict[int, Entry] = field(default_factory=dict)
    next_seq: int = 0
    identity: int = 0  # in the definition row: tells a queue from an earlier one of the same name
    is_replaced: bool = False  # deleted and declared again in one batch: may come back empty
    delete_epoch: int | None = None
    version: int = 2
    refused: set[int] = field(default_factory=set)  # the disk does not take them

    def live(self) -> list[int]:
        return [seq for seq, entry in self.entries.items() if entry.ack_epoch is None]


class Violation(AssertionError):
    """An invariant does not hold."""


class World:
    """See the module."""

    def __init__(
        self,
        seed: int,
        *,
        strict: bool,
        options: StoreOptions = OPTIONS,
        versions: tuple[int, ...] = (2,),
        filesystem: SimFileSystem | None = None,
    ) -> None:
        self.rng = random.Random(seed)
        self.versions = (
            versions  # that new queues have; with several, queues change from one to another
        )
        self.options = options
        self.filesystem = filesystem or SimFileSystem(strict=strict)
        self.rows: dict[tuple[str, str], object] = {}
        self.queues: dict[str, ModelQueue] = {}
        self.durable_epoch = 0
        self.synced: set[int] = set()
        self.number = 0
        self.is_forgiving = False  # reads fail more than once: what is reported as lost may be
        self.is_faulty = False  # calls fail: a stop may end as an unclean one
        self.deleted: list[ModelQueue] = []  # since the last start
        self.handles: dict[int, bytes] = {}
        self.faults: dict[str, str] = {}  # of queues, as the engine tells
        self.unwritten_acks: dict[
            str, str
        ] = {}  # of these queues: acks are not written, and the engine says so
        self.observer = SilentObserver()
        self.engine = self._open()

    def _open(self) -> Engine:
        filesystem, rows = self.filesystem, self.rows
        engine = Engine(
            "/data",
            filesystem,
            self.options,
            self.observer,
            FakeMessage,
            lambda _: SimDefinitions(filesystem, rows),
            make_writer=CheckedWriter,
        )
        engine.on_committed = self._committed
        engine.on_queue_fault = self._note_fault
        engine.on_refused = self._refused
        self.faults.clear()  # of the process before
        self.unwritten_acks.clear()
        self.report = engine.recover()
        self._begin_epochs()
        self.synced = set()
        engine.start_inline()
        return engine

    def _begin_epochs(self) -> None:
        """An engine counts from one on again: what the last one made durable is so for ever, the rest may be either."""
        for queue in [*self.queues.values(), *self.deleted]:
            queue.epoch = self._past(queue.epoch)
            if queue.delete_epoch is not None:
                queue.delete_epoch = 0 if queue.delete_epoch <= self.durable_epoch else NEVER
            for entry in queue.entries.values():
                entry.epoch = self._past(entry.epoch)
        self.durable_epoch = 0

    def _past(self, epoch: int) -> int:
        return 0 if epoch <= self.durable_epoch else NEVER

    def _refused(self, epoch: int, names: frozenset[QueueNames], acks_of: frozenset[int]) -> None:
        """Nothing that these queues got since the last synced commit is durable."""
        for name in {each.name for each in names} & self.queues.keys():
            self._doubt(self.queues[name])

    def _doubt(self, queue: ModelQueue) -> None:
        for seq, entry in queue.entries.items():
            if entry.epoch > self.durable_epoch:
                entry.epoch = NEVER
                queue.refused.add(seq)

    def _committed(self, epoch: int) -> None:
        if epoch in self.synced:
            self.durable_epoch = max(self.durable_epoch, epoch)

    # -- operations -----------------------------------------------------------------------------------------------

    def run(self, steps: int) -> None:
        """Apply random operations."""
        operations: list[tuple[Callable[[], None], int]] = [
            (self.publish, 40),
            (self.ack_front, 14),
            (self.ack_random, 12),
            (self.hand_over, 14),
            (self.declare, 5),
            (self.purge, 2),
            (self.delete, 2),
            (self.idle, 5),
            (self.read_back, 4),
            (self.restart, 1),
        ]
        if len(self.versions) > 1:
            operations.append((self.convert, 6))
        calls, weights = zip(*operations, strict=True)
        for call in self.rng.choices(calls, weights, k=steps):
            call()

    def hand_over(self) -> None:
        if self.rng.random() < 0.6:
            self.sync()
        else:
            self.engine.hand_over()

    def sync(self) -> None:
        self.engine.require_sync()
        self.synced.add(self.engine.epoch)
        self.engine.hand_over()

    def declare(self) -> None:
        name = f"q{self.rng.randrange(4)}"
        if name in self.queues:
            return
        durable = self.rng.random() < 0.85
        self.number += 1
        if durable:
            self.engine.definitions.put("queue", name, {"id": self.number})
        for queue in self.deleted:
            if queue.name == name and queue.delete_epoch == self.engine.epoch:
                queue.is_replaced = True
        version = self.rng.choice(self.versions) if len(self.versions) > 1 else self.versions[0]
        log = self.engine.open_queue(VHOST, name, durable=durable, version=version)
        assert log.recovered is None, f"{name} came back"
        self.queues[name] = ModelQueue(
            name, durable, self.engine.epoch, log, identity=self.number, version=version
        )

    def convert(self) -> None:
        """A queue's files change their version, in time."""
        queue = self._some_queue()
        if queue is not None:
            queue.version = self.rng.choice(self.versions)
            queue.log.set_version(queue.version)

    def delete(self) -> None:
        queue = self._some_queue()
        if queue is None:
            return
        queue.log.delete()
        if queue.durable:
            self.engine.definitions.delete("queue", queue.name)
            queue.delete_epoch = self.engine.epoch
            self.deleted.append(queue)
        del self.queues[queue.name]

    def publish(self) -> None:
        if not self.queues:
            self.declare()
            return
        names = list(self.queues)
        targets = self.rng.sample(names, min(len(names), self.rng.choice((1, 1, 2, 3))))
        count = self.rng.choice((1, 2, 5, 12))
        persistent = self.rng.random() < 0.85
        messages: list[FakeMessage] = []
        for _ in range(count):
            self.number += 1
            messages.append(make_message(self.number, self.rng.choice(SIZES), persistent))
        expiry = self.rng.choice((0, 0, 77))
        for name in targets:
            queue = self.queues[name]
            first = queue.next_seq
            expiries = None if not expiry else [expiry + at for at in range(count)]
            size = sum(message.size for message in messages)
            queue.log.append(first, list(messages), expiries, size)
            for at, message in enumerate(messages):
                queue.entries[first + at] = Entry(
                    message, message.raw, expiry and expiry + at, self.engine.epoch
                )
            queue.next_seq = first + count
        if self.rng.random() < 0.5:
            self.hand_over()

    def _some_queue(self) -> ModelQueue | None:
        return self.queues[self.rng.choice(list(self.queues))] if self.queues else None

    def ack_front(self) -> None:
        queue = self._some_queue()
        live = queue.live() if queue else []
        if queue is None or not live:
            return
        first = live[0]
        last = first
        for seq in live[1 : self.rng.randint(1, 24)]:
            if seq != last + 1:
                break
            last = seq
        given = self.rng.random() < 0.5
        messages = [queue.entries[seq].message for seq in range(first, last + 1)] if given else None
        queue.log.ack(first, last, messages)
        for seq in range(first, last + 1):
            queue.entries[seq].ack_epoch = self.engine.epoch

    def ack_random(self) -> None:
        queue = self._some_queue()
        live = queue.live() if queue else []
        if queue is None or not live:
            return
        seqs = self.rng.sample(live, self.rng.randint(1, len(live)))
        queue.log.ack_many(seqs)
        for seq in seqs:
            queue.entries[seq].ack_epoch = self.engine.epoch

    def purge(self) -> None:
        queue = self._some_queue()
        if queue is None:
            return
        below = self.rng.randint(0, queue.next_seq)
        queue.log.ack(0, below - 1)
        for seq in queue.live():
            if seq < below:
                queue.entries[seq].ack_epoch = self.engine.epoch

    def idle(self) -> None:
        """After an idle moment everything, acks too, is durable."""
        self.engine.hand_over()
        self.engine.idle()
        self._all_durable()

    def _note_fault(self, names: QueueNames, kind: str, reason: str) -> None:
        self.faults[names.name] = reason
        if kind in (ACKING, WRITING):
            self.unwritten_acks[names.name + kind] = reason
        queue = self.queues.get(names.name)
        if kind == WRITING and queue is not None:
            if reason:
                self._doubt(queue)
            else:  # all is written, and synced
                for seq in queue.refused & queue.entries.keys():
                    queue.entries[seq].epoch = self.durable_epoch
                queue.refused.clear()

    def _all_durable(self) -> None:
        self.durable_epoch = self.engine.epoch - 1
        for queue in self.queues.values():
            if any(self.unwritten_acks.get(queue.name + kind) for kind in (ACKING, WRITING)):
                continue
            for entry in queue.entries.values():
                if entry.ack_epoch is not None:
                    entry.is_ack_durable = True

    def read_back(self) -> None:
        """What is read while running is what is live, with its bytes and in order."""
        queue = self._some_queue()
        if queue is None:
            return
        self.read_queue(queue, self.rng.choice((3, 50)), self.rng.choice((1, 150, 600, 1 << 30)))

    def read_queue(self, queue: ModelQueue, step: int, max_bytes: int) -> None:
        """The same for one queue."""
        found = read_all(queue.log, step, max_bytes, self)
        for seq in queue.live():
            if self._is_reported(queue, seq):
                queue.entries[seq].ack_epoch = self.engine.epoch
        found = [row for row in found if not self._is_reported(queue, row[0])]
        live = {seq: entry for seq, entry in queue.entries.items() if entry.ack_epoch is None}
        if [seq for seq, _, _ in found] != sorted(live):
            raise Violation(f"{queue.name}: read {[s for s, _, _ in found]}, live {sorted(live)}")
        for seq, message, expiry in found:
            self._check_entry(queue, seq, message, expiry)

    def restart(self) -> None:
        """A clean stop loses nothing but transient messages and queues, and brings no acked message back."""
        self.engine.close()
        self._all_durable()
        self.filesystem = (
            self.filesystem.process_killed()
        )  # it ended by itself; the next one is another process
        self.engine = self._open()
        if not self.report.clean and not self.is_faulty:
            raise Violation("a clean stop was not found")
        self._adopt(exact=True)

    @property
    def is_refused(self) -> bool:
        """Whether the disk refuses a queue."""
        return any(self.unwritten_acks.get(name + WRITING) for name in self.queues)

    # -- power cuts -----------------------------------------------------------------------------------------------

    def crash(self, *, is_power: bool = True, may_mix: bool = True) -> None:
        """Lose power (or the process) now, recover, check. `may_mix`: the power may go too while it recovers."""
        self._stop(is_power)
        for _ in range(
            self.rng.choice((0, 0, 1))
        ):  # once more, while recovering, and perhaps the other
            self.filesystem.cut_before = self.filesystem.operations + self.rng.randint(0, 12)
            try:
                self._open()
            except PowerCut:
                pass
            self.filesystem.cut_before = None
            is_late = may_mix and self.options.confirm == "fsync" and self.rng.random() < 0.3
            is_power = is_power or is_late
            self._stop(is_power)
        self.engine = self._open()
        self._adopt(exact=False)

    def _stop(self, is_power: bool) -> None:
        self.observer.lost.clear()
        if is_power:
            for queue in self.queues.values():
                queue.refused.clear()
            self.filesystem = self.filesystem.cut(self.rng)
        else:
            self.filesystem = self.filesystem.process_killed()

    def _adopt(self, *, exact: bool) -> None:
        """Open what was recovered, compare it with the model, and go on from there."""
        known = {queue.identity: queue for queue in [*self.deleted, *self.queues.values()]}
        old, adopted = self.queues, dict[str, ModelQueue]()
        for (kind, name), row in list(self.rows.items()):
            if kind != "queue":
                continue
            assert isinstance(row, dict)
            queue = known.get(row["id"])
            version = 2 if queue is None else queue.version
            log = self.engine.open_queue(VHOST, name, durable=True, version=version)
            is_gone = queue is None or not queue.durable
            if is_gone or queue.delete_epoch == 0:
                raise Violation(f"{name} is defined and should not be")
            queue.log = log
            self._compare(queue, exact=exact)
            adopted[name] = queue
        for name, queue in old.items():
            if queue.durable and queue.epoch == 0 and name not in adopted:
                raise Violation(f"{name} was declared durably and is gone")
        for queue in adopted.values():
            queue.delete_epoch = None
        self.queues, self.deleted = adopted, []
        if self.engine.discard_unclaimed():
            raise Violation(
                "messages of a deleted queue are taken for those of one whose row is lost"
            )
        self.engine.hand_over()
        self._check_references()

    def _compare(self, queue: ModelQueue, *, exact: bool) -> None:
        found = read_all(queue.log, 50, world=self)
        seqs = [seq for seq, _, _ in found]
        if seqs != sorted(set(seqs)):
            raise Violation(f"{queue.name}: order or duplicates: {seqs}")
        for seq, message, expiry in found:
            self._check_entry(queue, seq, message, expiry)
            entry = queue.entries[seq]
            if self._is_reported(queue, seq):
                continue
            if not entry.persistent:
                raise Violation(f"{queue.name} {seq}: a transient message survived")
            if entry.is_ack_durable or (exact and entry.ack_epoch is not None):
                raise Violation(f"{queue.name} {seq}: came back after its ack was durable")
        for seq, entry in queue.entries.items():
            must = entry.persistent and entry.ack_epoch is None and not queue.is_replaced
            must = must and (exact or entry.epoch == 0) and not self._is_reported(queue, seq)
            if must and seq not in set(seqs):
                raise Violation(f"{queue.name} {seq}: confirmed (epoch {entry.epoch}) and lost")
        recovered = queue.log.recovered
        count = recovered.count if recovered else 0
        size = recovered.bytes if recovered else 0
        is_exact = not any(self._is_reported(queue, seq) for seq in queue.entries)
        if is_exact and (count, size) != (len(found), sum(one.size for _, one, _ in found)):
            raise Violation(f"{queue.name}: reported {count}/{size}, found {len(found)}")
        for seq, entry in queue.entries.items():
            if self._is_reported(queue, seq):  # may be back after a crash
                entry.ack_epoch = NEVER
                seqs.append(seq)
        queue.entries = {seq: queue.entries[seq] for seq in sorted(set(seqs))}
        for seq, message, _ in found:
            entry = queue.entries[seq]
            # A process that is killed leaves pages that a failed sync has marked as clean: they may go with the power.
            entry.message, entry.epoch = message, NEVER if seq in queue.refused else 0
            if not self._is_reported(queue, seq):
                entry.ack_epoch = None
        queue.epoch = 0
        queue.is_replaced = False
        queue.next_seq = max(recovered.next_seq if recovered else 0, 0)

    def _is_reported(self, queue: ModelQueue, seq: int) -> bool:
        """Whether the store said that a message cannot be read, where that is no violation."""
        return self.is_forgiving and any(
            seq == number and str(place).endswith(QueueNames(VHOST, queue.name).directory)
            for place, number, _ in self.observer.lost
        )

    def _check_entry(self, queue: ModelQueue, seq: int, message: object, expiry: int) -> None:
        entry = queue.entries.get(seq)
        if entry is None:
            raise Violation(f"{queue.name} {seq}: never published there")
        assert isinstance(message, FakeMessage)
        if (
            message.raw != entry.raw
            or message.address != entry.message.address
            or expiry != entry.expiry
        ):
            raise Violation(f"{queue.name} {seq}: other bytes")
        if (
            0 <= message.handle < TRANSIENT_SEGMENTS << 32
            and self.handles.setdefault(message.handle, entry.raw) != entry.raw
        ):
            raise Violation(f"handle {message.handle:#x} was used for two messages")

    def _check_references(self) -> None:
        """The reference counts are what the indexes say."""
        writer = self.engine._writer
        assert writer is not None
        wanted: Counter[int] = Counter()
        for disk in writer.queues().values():
            wanted.update(disk.all_handles())
        for store in writer.context.vhosts():
            for handle, count in wanted.items():
                if store.store_of(handle).refs_of(handle) != count:
                    raise Violation(f"handle {handle:#x}: {count} entries refer to it")
            live = store.persistent.stats()["live_messages"]
            if live != len(wanted):
                raise Violation(f"{live} shared messages are live, {len(wanted)} are referred to")


def read_all(
    log: QueueLog, step: int, max_bytes: int = 1 << 30, world: World | None = None
) -> list[tuple[int, object, int]]:
    """Read a queue from its beginning to its end. A refused read is tried again once; then it raises ReadFailed."""
    found: list[tuple[int, object, int]] = []
    seq = 0
    while True:
        later: list[tuple[list[tuple[int, object, int]], int]] = []
        answer = log.read(seq, step, max_bytes, lambda *found, to=later: to.append(found))  # type: ignore[misc]
        if answer is None and world is not None:
            world.engine.idle()
            if not later:
                raise ReadFailed(world.faults.get(log.names.name, ""))
            answer = later[0]
        assert answer is not None
        loaded, next_seq = answer
        found += loaded
        if next_seq <= seq and not loaded:
            return found
        seq = next_seq


def run_to_cut(
    seed: int,
    cut_at: int,
    *,
    strict: bool,
    options: StoreOptions = OPTIONS,
    versions: tuple[int, ...] = (2,),
) -> World:
    """Run a seeded workload until the cut, recover and check, then go on and do it again."""
    world = World(seed, strict=strict, options=options, versions=versions)
    for _ in range(2):
        world.filesystem.cut_before = world.filesystem.operations + cut_at
        try:
            world.run(200)
        except PowerCut:
            pass
        world.filesystem.cut_before = None
        world.crash()
    world.run(20)
    return world
