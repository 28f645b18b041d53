"""The files of one queue fail at each call of each kind: once, twice, in a burst, for good; everything else goes on.

Each run publishes to three queues in one commit, acks and moves dead letters between them, while calls on the directory
of one of them fail. A failure prints what `run` needs to do it again. What must hold: nothing that a
commit took is lost and nothing comes twice; the other queues are never refused anything; while it lasts the process may
be killed or the power cut; when the disk is well the queue comes back with all that it has, or says that it waits for a
restart; no file is synced again after its sync failed; every reference is counted.
"""

from __future__ import annotations

import errno
import random
from collections import Counter

import pytest

from burrowmq.storage.disk import refused_queues
from burrowmq.storage.disk.refusals import Refusals
from burrowmq.storage.disk.troubles import WRITING
from burrowmq.storage.errors import StorageError
from burrowmq.storage.names import QueueNames
from burrowmq.storage.types import StoreOptions
from tests.simulation.fault_script import Session
from tests.simulation.store_world import OPTIONS, VHOST, WITH_LOG, Entry, Violation, World
from tests.support.disk_side import writer_of

OPERATIONS = ("pwrite", "create", "open", "fdatasync", "fsync_dir", "pread", "rename", "unlink")
TIMES = (1, 2, 7, 40, 1 << 30)
NAMES = ("a", "b", "c")
SIZES = (20, 400, 900)
SEEDS = 300
FOUND = (4391,)  # seeds that failed once: a full journal took withheld acks with it


class Run:
    """One seed."""

    is_own_target = False  # half of the dead letters go to the queue that they come from

    def __init__(self, seed: int, options: StoreOptions) -> None:
        self.rng = random.Random(seed)
        version = self.rng.choice((1, 2))
        self.world = World(seed, strict=bool(seed & 1), options=options, versions=(version,))
        self.world.is_faulty = self.world.is_forgiving = True
        self.session = Session(self.world, version)
        self.moved: list[tuple[str, int, str, int]] = []  # durable ones: from where, to where
        self.session.declare()
        self.session.publish(NAMES, SIZES * 2, sync=True)

    def refuse(self) -> tuple[str, int]:
        directory = QueueNames(VHOST, "a").directory
        operation, times = self.rng.choice(OPERATIONS), self.rng.choice(TIMES)
        self.world.filesystem.fail(
            operation, errno.EIO, nth=self.rng.randint(1, 6), times=times, path_part=directory
        )
        return operation, times

    def step(self) -> None:
        rng, session = self.rng, self.session
        kind = rng.randrange(10)
        name = rng.choice(NAMES)
        sizes = rng.choices(SIZES, k=rng.randint(1, 6))
        if kind < 5:
            to = rng.sample(NAMES, rng.randint(1, 3))
            session.publish(to, sizes, sync=rng.random() < 0.7)
        elif kind < 7:
            session.ack(name, rng.sample(range(8), rng.randint(1, 6)))
        elif kind == 7:
            source, target = rng.sample(NAMES, 2)
            self.move(source, source if self.is_own_target and rng.random() < 0.5 else target)
        elif kind == 8:
            self.world.idle()
        else:
            self.world.read_queue(self.world.queues[rng.choice(("b", "c"))], 50, 1 << 30)

    def move(self, source_name: str, target_name: str) -> None:
        """The first messages of one queue become dead letters in another, or in the same."""
        world = self.world
        source, target = world.queues[source_name], world.queues[target_name]
        epoch, seqs = world.engine.epoch, source.live()[:3]
        if not seqs:
            return
        messages = [source.entries[seq].message for seq in seqs]
        target.log.append(target.next_seq, messages, None, sum(each.size for each in messages))
        for seq, message in enumerate(messages, target.next_seq):
            target.entries[seq] = Entry(message, message.raw, 0, epoch)
            if source.entries[seqs[seq - target.next_seq]].epoch <= world.durable_epoch:
                self.moved.append((source_name, seqs[seq - target.next_seq], target_name, seq))
        target.next_seq += len(seqs)
        source.log.ack_many(seqs)
        world.engine.order_acks(VHOST, source_name, target_name)
        for seq in seqs:
            source.entries[seq].ack_epoch = epoch
        world.engine.hand_over()

    def check_others(self) -> None:
        for name in ("b", "c"):
            if self.world.queues[name].refused or self.world.unwritten_acks.get(name + WRITING):
                raise Violation(f"{name} is refused: {self.world.faults}")

    def left_of_moved(self) -> list[tuple[str, int, str, int]]:
        """Those whose copies nobody has acked."""
        queues = self.world.queues
        return [each for each in self.moved if queues[each[2]].entries[each[3]].ack_epoch is None]

    def check_moved(self, left: list[tuple[str, int, str, int]]) -> None:
        """After a crash: what was moved is in one queue or in the other."""
        for source, old, target, new in left:
            queues = self.world.queues
            if old not in queues[source].entries and new not in queues[target].entries:
                raise Violation(f"{source} {old} was moved to {target}, and is in neither")

    def end(self) -> str:
        """The disk is well again, or the process ends, or the power goes."""
        world, rng = self.world, self.rng
        was_refused = world.is_refused
        way = rng.choice(("heal", "heal", "kill", "power"))
        if way != "heal":
            world.filesystem.heal()
            left = self.left_of_moved()
            world.crash(is_power=way == "power")
            self.check_moved(left)
        world.filesystem.heal()
        world.idle()
        outcome = "went on"
        if was_refused:
            outcome = "came back"
        if world.is_refused:
            outcome, way = "waited for a restart", "kill"
            world.crash(is_power=False)
        assert not writer_of(world.engine).refusals, "something is still owed"
        world.run(10)
        world.sync()
        # Acks that a start has found in the page cache may still go with the power: messages come again.
        world.crash(is_power=way != "kill", may_mix=False)
        world.restart()
        return outcome


def run(seed: int, options: StoreOptions = OPTIONS) -> tuple[str, str]:
    """Do it; (the operation that failed, what came of it)."""
    one = Run(seed, options)
    steps = one.rng.randint(3, 16)
    operation, _ = one.refuse()
    try:
        for _ in range(steps):
            one.step()
            one.check_others()
    except StorageError as error:
        raise Violation(f"{operation}: {error}") from error
    outcome = one.end()
    if one.world.filesystem.resynced:
        raise Violation(f"synced again after a failed sync: {one.world.filesystem.resynced}")
    return operation, outcome


def runs(seeds: range, options: StoreOptions = OPTIONS) -> Counter[tuple[str, str]]:
    found: Counter[tuple[str, str]] = Counter()
    for seed in seeds:
        try:
            found[run(seed, options)] += 1
        except (Violation, AssertionError) as error:
            raise Violation(f"seed {seed}: {error}") from error
    return found


@pytest.mark.slow
def test_one_queues_fault_is_that_queues() -> None:
    found = runs(range(SEEDS))
    for operation in ("pwrite", "create", "fdatasync"):
        assert found[operation, "came back"]
    assert found["fsync_dir", "waited for a restart"]


@pytest.mark.parametrize("options", [OPTIONS, WITH_LOG], ids=["files", "log"])
@pytest.mark.parametrize("seed", FOUND)
def test_what_failed_once_does_not_again(seed: int, options: StoreOptions) -> None:
    runs(range(seed, seed + 1), options)


@pytest.mark.parametrize("options", [OPTIONS, WITH_LOG], ids=["files", "log"])
@pytest.mark.parametrize("is_power", [True, False])
@pytest.mark.parametrize("seed", range(8))
def test_originals_stay_when_a_sync_of_theirs_fails_too(
    seed: int, is_power: bool, options: StoreOptions
) -> None:
    """A rescue writes a queue's files anew without what is acked: not while the copies are owed."""
    one = Run(seed, options)
    world, files = one.world, one.world.filesystem
    for operation in ("pwrite", "create"):
        directory = QueueNames(VHOST, "a").directory
        files.fail(operation, errno.EIO, times=1 << 30, path_part=directory)
    one.session.publish(["a"], SIZES, sync=True)
    one.move("c", "a")
    assert one.moved
    files.fail("fdatasync", errno.EIO, times=1, path_part=QueueNames(VHOST, "c").directory)
    one.session.publish(["c"], SIZES, sync=True)
    one.session.publish(["b"], SIZES, sync=True)
    world.idle()
    files.heal()
    left = one.left_of_moved()
    world.crash(is_power=is_power)
    one.check_moved(left)


@pytest.mark.slow
def test_with_a_commit_log_it_is_that_queues_too() -> None:
    """Most of what is refused then is a move: the queue stays in the log, and nobody notices."""
    found = runs(range(SEEDS), WITH_LOG)
    for operation in ("pwrite", "create"):
        assert found[operation, "came back"]


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("options", [OPTIONS, WITH_LOG], ids=["files", "log"])
@pytest.mark.parametrize("part", range(20))
def test_the_same_with_many_seeds(part: int, options: StoreOptions) -> None:
    runs(range(SEEDS + part * 1000, SEEDS + (part + 1) * 1000), options)


@pytest.mark.slow
@pytest.mark.parametrize("options", [OPTIONS, WITH_LOG], ids=["files", "log"])
def test_a_queue_may_be_that_of_its_own_dead_letters(
    monkeypatch: pytest.MonkeyPatch, options: StoreOptions
) -> None:
    monkeypatch.setattr(Run, "is_own_target", True)
    runs(range(SEEDS // 2), options)


@pytest.mark.long
@pytest.mark.timeout(0)
@pytest.mark.parametrize("options", [OPTIONS, WITH_LOG], ids=["files", "log"])
@pytest.mark.parametrize("part", range(5))
def test_the_same_with_many_seeds_of_those(
    monkeypatch: pytest.MonkeyPatch, part: int, options: StoreOptions
) -> None:
    monkeypatch.setattr(Run, "is_own_target", True)
    runs(range(SEEDS + part * 1000, SEEDS + (part + 1) * 1000), options)


# The mutants: each leaves out one thing that the design holds to be needed.


def tell_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """A commit does not say what is refused of it."""
    monkeypatch.setattr(Refusals, "note_in", lambda *_: None)


def write_acks_of_moves(monkeypatch: pytest.MonkeyPatch) -> None:
    """Acks of dead letters' originals are written while their copies are in memory."""
    monkeypatch.setattr(refused_queues.RefusedQueues, "withhold", lambda _: None)


def believe_a_second_write(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files whose sync failed are taken for good once what is owed was written."""
    monkeypatch.setattr(refused_queues, "steps_of", lambda *_: [])


def let_journals_go(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refused queue's files are removed and its acks written as those of any other."""
    monkeypatch.setattr(Refusals, "queues", lambda _: set())
    monkeypatch.setattr(Refusals, "is_held", lambda *_: False)


def forget_what_is_owed(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a refused queue is owed is dropped."""
    monkeypatch.setattr(Refusals, "keep", lambda *_: None)


@pytest.mark.slow
@pytest.mark.parametrize(
    "mutant",
    [
        tell_nobody,
        write_acks_of_moves,
        believe_a_second_write,
        let_journals_go,
        forget_what_is_owed,
    ],
)
def test_the_harness_catches(mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    mutant(monkeypatch)
    with pytest.raises((Violation, StorageError)):
        runs(range(6 * SEEDS))
