"""The shared store under power cuts and kills, with a small client; and four mutants that must be caught.

The client keeps its handles in a log of its own and trusts the store as the queue indexes do: it
syncs the store before its log before it calls a message confirmed, it writes acknowledgements
without waiting, and it never removes an entry whose record is gone, because no handle may ever
stand for a second message. After each cut everything confirmed and not acknowledged must be there,
byte for byte; everything else must be whole or absent.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

from burrowmq.storage.disk.invariants import of_store
from burrowmq.storage.files.filesystem import FileSystem
from burrowmq.storage.record import Record
from burrowmq.storage.shared.compaction import CompactionPlan
from burrowmq.storage.shared.recovery import StoreRecovery
from burrowmq.storage.shared.references import ReferenceTally
from burrowmq.storage.shared.store import MessageStore, MessageStoreOptions
from tests.support.sim_filesystem import PowerCut, SimFile, SimFileSystem
from tests.support.stored_message import FakeMessage

pytestmark = pytest.mark.slow

LOG = "/toy/log"
LINE = 32
LIMIT = 3000
OPTIONS = MessageStoreOptions(
    directory="/vhost/msg_store_persistent",
    quarantine_directory="/vhost/quarantine",
    identity=b"0123456789abcdef",
    segment_size_limit=LIMIT,
    open_files=3,
    merge_above_files=6,
)


class Violation(AssertionError):
    """The store broke a promise."""


@dataclass
class Oracle:
    """What the client was told, over all lives of the store."""

    contents: dict[int, Record] = field(default_factory=dict)
    logged: set[int] = field(default_factory=set)
    confirmed: set[int] = field(default_factory=set)
    acked: set[int] = field(default_factory=set)


class ToyClient:
    """One life of store and client, from a start to a cut."""

    syncs_store = True

    def __init__(
        self,
        filesystem: SimFileSystem,
        oracle: Oracle,
        rng: random.Random,
        make_store: Callable[[FileSystem, MessageStoreOptions], MessageStore] = MessageStore,
    ) -> None:
        self.filesystem = filesystem
        self.oracle = oracle
        self.rng = rng
        self.make_store = make_store
        self.store = make_store(filesystem, OPTIONS)
        self.live: list[int] = []
        self.unconfirmed: list[int] = []
        self.log: SimFile
        self.log_end = 0

    def start(self) -> None:
        """Recover store and log, then check every promise."""
        fs = self.filesystem
        if not fs.exists(LOG):
            fs.mkdir("/toy")
            self.log = fs.create(LOG)
        else:
            self.log = fs.open(LOG)
        fs.fsync_dir("/toy")  # who made it may have been killed before that
        fs.fsync_dir("/")
        live = self._read_log()
        tally = ReferenceTally()
        tally.add(sorted(live))
        # As numbers are reserved before they are used: what an entry of the log says is never anything else's.
        unused = max((handle >> 32 for handle in self.oracle.logged), default=-1) + 1
        recovery = self.store.recover(tally, unused)
        self._check(live, recovery)

    def _read_log(self) -> set[int]:
        data = self.log.pread(self.log.size(), 0)
        live: set[int] = set()
        self.oracle.logged.clear()  # what no log holds any more can mislead nobody
        end = 0
        while end + LINE <= len(data):
            line = data[end : end + LINE]
            if line[-1:] != b"\n" or int(line[22:30], 16) != zlib.crc32(line[:22]):
                break
            handle = int(line[1:21])
            if line[:1] == b"A":
                live.add(handle)
            else:
                live.discard(handle)
            self.oracle.logged.add(handle)
            end += LINE
        self.log.truncate(end)
        self.log.fdatasync()
        self.log_end = end
        return live

    def _check(self, live: set[int], recovery: StoreRecovery) -> None:
        oracle = self.oracle
        must = oracle.confirmed - oracle.acked
        if not must <= live:
            raise Violation(f"the toy log lost {must - live}")
        missing = recovery.gone | recovery.torn | recovery.lost
        if missing & must:
            raise Violation(f"confirmed messages are missing: {missing & must}")
        self.live = sorted(live - missing)
        self.read_all()
        for handle in self.live:
            if self.store.refs_of(handle) != 1:
                raise Violation("wrong reference count")

    def read_all(self) -> None:
        """Check every live message, byte for byte."""
        for handle, found in zip(self.live, self.store.read(self.live), strict=True):
            if found != self.oracle.contents[handle]:
                raise Violation(f"handle {handle:#x} reads {found!r}")

    def run(self, steps: int) -> None:
        """Work at random until the steps are done or the power goes."""
        actions = (
            self.publish,
            self.publish,
            self.publish,
            self.acknowledge,
            self.acknowledge,
            self.compact,
            self.compact,
            self.confirm,
            self.reopen,
        )
        for _ in range(steps):
            self.rng.choice(actions)()
            for sentence in of_store(self.store):
                raise Violation(sentence)

    def publish(self) -> None:
        """Append a run; its log entries are written but not waited for."""
        messages = [self._message() for _ in range(self.rng.randint(1, 6))]
        self.store.append(messages)
        handles = [message.handle for message in messages]
        if not self.oracle.logged.isdisjoint(handles):
            raise Violation("a handle was given a second time")
        for message in messages:
            self.oracle.contents[message.handle] = message.record
        if self.syncs_store and self.rng.random() < 0.5:
            self.store.sync()
        self._write_log("A", handles)
        self.live += handles
        self.unconfirmed += handles
        if self.rng.random() < 0.3:
            self.confirm()

    def _message(self) -> FakeMessage:
        size = self.rng.choice((1, 40, 300, 700, 1500))
        return FakeMessage(b"\x01e\x01k", self.rng.randbytes(size), size)

    def confirm(self) -> None:
        """Make all durable: store first, then the log."""
        if self.syncs_store:
            self.store.sync()
        self.log.fdatasync()
        self.oracle.confirmed.update(self.unconfirmed)
        self.unconfirmed.clear()

    def acknowledge(self) -> None:
        """Drop some messages, from the front or here and there."""
        count = min(len(self.live), self.rng.randint(1, 10))
        chosen = self.live[:count] if self.rng.random() < 0.5 else self.rng.sample(self.live, count)
        self.oracle.acked.update(chosen)
        self._write_log("D", chosen)
        gone = set(chosen)
        self.live = [handle for handle in self.live if handle not in gone]
        self.unconfirmed = [handle for handle in self.unconfirmed if handle not in gone]
        self.store.drop_refs(chosen)

    def compact(self) -> None:
        """Run one compaction, with a removal in the middle."""
        plan = self.store.plan(is_idle=True)
        if plan is None:
            return
        while not plan.step(1000):
            if self.rng.random() < 0.3:
                self.acknowledge()
        self.read_all()
        if self.rng.random() < 0.1:  # the end is here: around the rename
            self.filesystem.cut_before = self.filesystem.operations + self.rng.randint(1, 4)
        self.store.put_in_place()
        self.read_all()

    def reopen(self) -> None:
        """Stop cleanly and start from the snapshot."""
        if self.rng.random() < 0.8:
            return
        self.confirm()
        self.store.close()
        snapshot = self.store.snapshot_terms()
        self.store = self.make_store(self.filesystem, OPTIONS)
        if not self.store.open_clean(snapshot):
            raise Violation("a clean stop was not taken as one")
        self.read_all()

    def _write_log(self, kind: str, handles: list[int]) -> None:
        lines: list[bytes] = []
        for handle in handles:
            text = f"{kind}{handle:020d} ".encode()
            lines.append(text + f"{zlib.crc32(text):08x} \n".encode())
            self.oracle.logged.add(handle)
        self.log.pwrite(b"".join(lines), self.log_end)
        self.log_end += LINE * len(handles)


def life_of_a_store(
    seed: int,
    *,
    client: type[ToyClient] = ToyClient,
    make_store: Callable[[FileSystem, MessageStoreOptions], MessageStore] = MessageStore,
    strict: bool | None = None,
    filesystem: type[SimFileSystem] = SimFileSystem,
) -> None:
    """Run one seed: ten lives, each ended by a power cut or a kill, some of them during recovery or soon after."""
    rng = random.Random(seed)
    disk: SimFileSystem = filesystem(strict=bool(seed % 2) if strict is None else strict)
    oracle = Oracle()
    for _ in range(10):
        toy = client(disk, oracle, rng, make_store)
        if rng.random() < 0.3:
            disk.cut_before = disk.operations + rng.randint(0, 12)
        try:
            toy.start()
            disk.cut_before = disk.operations + rng.randint(1, rng.choice((5, 20, 100, 400)))
            toy.run(200)
        except PowerCut:
            pass
        disk = disk.cut(rng) if rng.random() < 0.6 else disk.process_killed()
    disk = disk.cut(rng)
    client(disk, oracle, rng, make_store).start()


@pytest.mark.parametrize("block", range(10))
def test_confirmed_messages_survive_power_cuts_and_kills(block: int) -> None:
    """Forty seeds a block, half of them with a disk that promises no order of directory changes."""
    for seed in range(block * 40, block * 40 + 40):
        life_of_a_store(seed)


class ConfirmsUnsynced(ToyClient):
    """Mutant: confirms without syncing the store."""

    syncs_store = False


class ForgetsOutputSync(SimFileSystem):
    """Mutant: a compaction's output is renamed without having been synced."""

    def begin(self, operation: str, path: str) -> tuple[OSError, int] | None:
        """Let the sync of a temporary file do nothing."""
        if operation == "fdatasync" and path.endswith(".tmp"):
            raise _Skipped
        return super().begin(operation, path)


class _Skipped(Exception):
    """A sync that is to be left out."""


class SkippingPlanStore(MessageStore):
    """Mutant: the plan's last sync is left out (its file system says when)."""

    def plan(self, *, is_idle: bool = False) -> CompactionPlan | None:
        """Give a plan that ends without a sync."""
        plan = super().plan(is_idle=is_idle)
        if plan is not None:
            plan.step = _without_sync(plan.step)  # type: ignore[assignment, method-assign]
        return plan


def _without_sync(step: Callable[[int], bool]) -> Callable[[int], bool]:
    def run(max_bytes: int) -> bool:
        try:
            return step(max_bytes)
        except _Skipped:
            return True

    return run


class ForgetsDirectorySync(MessageStore):
    """Mutant: the victims go before the output's name is durable."""

    def _sync_directory(self) -> bool:
        """Do nothing."""
        return True


class AppendsToOldTail(MessageStore):
    """Mutant: goes on appending to the last segment after a crash."""

    def recover(self, refs: ReferenceTally, next_segment_no: int = 0) -> StoreRecovery:
        """Make the segment with the highest number the current one."""
        recovery = super().recover(refs, next_segment_no)
        tables = self._segments.tables
        if tables:
            table = tables[max(tables)]
            if table.slots is None and len(table.file.tables) == 1:
                self._active.table = table
        return recovery


def seeds_until_caught(most: int, run: Callable[[int], None]) -> int:
    """Give how many seeds it took until a mutant broke a promise."""
    for seed in range(most):
        try:
            run(seed)
        except Violation:
            return seed + 1
    pytest.fail(f"the mutant survived {most} seeds")


def test_mutant_confirm_without_store_sync_is_caught() -> None:
    """A confirm that does not wait for the store loses messages."""
    seeds_until_caught(40, lambda seed: life_of_a_store(seed, client=ConfirmsUnsynced))


def test_mutant_compaction_without_output_sync_is_caught() -> None:
    """A rename that is durable before the bytes are loses messages."""
    seeds_until_caught(
        100,
        lambda seed: life_of_a_store(
            seed, make_store=SkippingPlanStore, filesystem=ForgetsOutputSync
        ),
    )


def test_mutant_compaction_without_directory_sync_is_caught() -> None:
    """Victims that go before the rename is durable lose messages, on a disk without order."""
    seeds_until_caught(
        200, lambda seed: life_of_a_store(seed, make_store=ForgetsDirectorySync, strict=True)
    )


def test_mutant_slot_reuse_after_a_crash_is_caught() -> None:
    """Slots given a second time let old entries stand for new messages."""
    seeds_until_caught(500, lambda seed: life_of_a_store(seed, make_store=AppendsToOldTail))
