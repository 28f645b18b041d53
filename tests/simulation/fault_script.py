"""One session of the whole store with a call that fails: from the first start to a clean stop and the start after it.

`calls_of` says how many calls of the file system the session makes; `run_with_fault` lets call n (and those behind it,
if asked) fail, ends the node where the store says that it is at its end, and holds the recovered store against what was
confirmed. Used by test_failing_calls. State: none; each run has a world of its own.

What must hold: nothing that was confirmed is lost, bytes and order are right, no acked message comes back once its ack
was durable; whatever is raised is a StorageError that names path, operation and error; no file is synced again after a
sync of it failed; when nothing was raised, everything that waits for a commit gets it, and a start finds exactly what
a clean stop left.
"""

from __future__ import annotations

import errno
import traceback
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from burrowmq.storage.errors import StorageError
from burrowmq.storage.types import StoreOptions
from tests.simulation.store_world import (
    OPTIONS,
    VHOST,
    Entry,
    ModelQueue,
    Violation,
    World,
    make_message,
)
from tests.support.sim_filesystem import SimFileSystem


@dataclass(frozen=True)
class Fault:
    """What fails: `times` calls, of some operations or, when none is named, of all; `keep` octets get through."""

    number: int
    times: int = 1
    keep: int = 0
    operations: frozenset[str] = field(default_factory=frozenset)
    full: int = 0  # so many attempts to write after that find no room


class Session:
    """The scripted session; `steps` are its parts in order."""

    def __init__(self, world: World, source: int) -> None:
        self.world = world
        self.source = source
        self.backups = 0

    def run(self) -> None:
        """Do it all."""
        for step in self.steps():
            step()

    def steps(self) -> list[Callable[[], None]]:
        """Its parts."""
        return [
            self.declare,
            lambda: self.publish(("a", "b", "c", "t"), (20, 400, 60, 900), sync=True),
            lambda: self.publish(("a",), (20,) * 12),
            lambda: self.publish(("b", "c"), (900, 400, 400), sync=True),
            lambda: self.ack("a", range(9)),
            self.back_up,
            lambda: self.publish(("a", "b"), (900, 900, 130, 1), sync=True),
            lambda: self.ack("b", (0, 1, 3, 5, 6)),
            self.idle,  # acks into the files, compaction
            lambda: self.publish(("c",), (100,) * 20, sync=True),
            lambda: self.ack("c", range(2, 25)),
            self.idle,  # a rewrite
            lambda: self.convert("c", 3 - self.source),
            lambda: self.publish(("c", "a"), (60, 400), sync=True),
            self.read,
            lambda: self.convert("c", self.source),
            lambda: self.purge("b"),
            self.delete_and_declare,
            lambda: self.publish(("d", "b"), (20, 900, 60), sync=True),
            self.world.restart,
            self.read,
            lambda: self.publish(("a", "d"), (400, 20), sync=True),
            lambda: self.ack("d", range(2)),
            lambda: self.world.crash(is_power=False),
            lambda: self.publish(("a", "c"), (900, 20), sync=True),
            self.idle,
            self.world.restart,
        ]

    def declare(self) -> None:
        """Three durable queues, one that is not, and a policy."""
        for name in ("a", "b", "c"):
            self._declare(name, durable=True)
        self._declare("t", durable=False)
        self.world.engine.definitions.put("policy", "p", {"pattern": "^a", "queue-mode": "lazy"})
        self.world.sync()

    def _declare(self, name: str, *, durable: bool) -> None:
        world = self.world
        world.number += 1
        if durable:
            world.engine.definitions.put("queue", name, {"id": world.number})
        log = world.engine.open_queue(VHOST, name, durable=durable, version=self.source)
        world.queues[name] = ModelQueue(
            name, durable, world.engine.epoch, log, identity=world.number, version=self.source
        )

    def publish(
        self,
        names: Iterable[str],
        sizes: Iterable[int],
        *,
        sync: bool = False,
        persistent: bool = True,
    ) -> None:
        """The same messages into several queues."""
        world = self.world
        messages = []
        for size in sizes:
            world.number += 1
            messages.append(make_message(world.number, size, persistent))
        for queue in (world.queues[name] for name in names if name in world.queues):
            size = sum(message.size for message in messages)
            queue.log.append(queue.next_seq, list(messages), None, size)
            for seq, message in enumerate(messages, queue.next_seq):
                queue.entries[seq] = Entry(message, message.raw, 0, world.engine.epoch)
            queue.next_seq += len(messages)
        if sync:
            world.sync()
        else:
            world.engine.hand_over()

    def ack(self, name: str, places: Iterable[int]) -> None:
        """Acknowledge the live messages at these places in their order."""
        queue = self.world.queues[name]
        live = queue.live()
        seqs = [live[place] for place in places if place < len(live)]
        queue.log.ack_many(seqs)
        for seq in seqs:
            queue.entries[seq].ack_epoch = self.world.engine.epoch
        self.world.engine.hand_over()

    def purge(self, name: str) -> None:
        """Everything that is ready goes."""
        queue = self.world.queues[name]
        queue.log.ack(0, queue.next_seq - 1)
        for seq in queue.live():
            queue.entries[seq].ack_epoch = self.world.engine.epoch
        self.world.sync()

    def convert(self, name: str, version: int) -> None:
        """The queue's files change their version, all of them."""
        queue = self.world.queues[name]
        queue.version = version
        queue.log.set_version(version)
        self.world.sync()
        self.world.idle()

    def delete_and_declare(self) -> None:
        """A queue and the policy go; another queue comes."""
        world = self.world
        queue = world.queues.pop("t")
        queue.log.delete()
        queue = world.queues["b"]
        queue.log.delete()
        world.engine.definitions.delete("queue", "b")
        world.engine.definitions.delete("policy", "p")
        queue.delete_epoch = world.engine.epoch
        world.deleted.append(queue)
        del world.queues["b"]
        world.sync()
        self._declare("b", durable=True)
        self._declare("d", durable=True)
        world.sync()

    def read(self) -> None:
        """Every queue from its beginning to its end."""
        for queue in list(self.world.queues.values()):
            self.world.read_queue(queue, 50, 1 << 30)

    def idle(self) -> None:
        """An idle moment."""
        self.world.idle()

    def back_up(self) -> None:
        """A backup, which fails alone."""
        self.backups += 1
        job = self.world.engine.start_backup(f"/backup{self.backups}", {})
        self.world.sync()
        if not job.is_over:
            raise Violation("a backup did not end")


def new_world(source: int, filesystem: SimFileSystem, options: StoreOptions = OPTIONS) -> World:
    """A world on this file system, in which calls fail."""
    world = World(
        3, strict=filesystem.strict, options=options, versions=(source,), filesystem=filesystem
    )
    world.is_faulty = True
    return world


def calls_of(
    source: int, options: StoreOptions = OPTIONS, operations: frozenset[str] = frozenset()
) -> int:
    """How many calls a session makes that goes well; checks it, too."""
    filesystem = SimFileSystem(strict=True)
    filesystem.fail_from(1 << 60, errno.EIO, operations=operations)
    world = new_world(source, filesystem, options)
    Session(world, source).run()
    return world.filesystem.calls


def run_with_fault(
    source: int, at: int, fault: Fault, *, strict: bool, options: StoreOptions = OPTIONS
) -> str:
    """Let call `at` fail. Gives "refused" (the first start), "ended" (in a stop or a start), "stopped" or "went on"."""
    filesystem = SimFileSystem(strict=strict)
    filesystem.fail_from(
        at,
        fault.number,
        times=fault.times,
        keep=fault.keep,
        operations=fault.operations,
        full=fault.full,
    )
    try:
        world = new_world(source, filesystem, options)
    except StorageError as error:
        check_text(error, filesystem)
        filesystem.heal()
        Session(new_world(source, filesystem.process_killed(), options), source).run()
        return "refused"
    world.is_forgiving = fault.times > 1
    session = Session(world, source)
    try:
        session.run()
    except StorageError as error:
        check_text(error, world.filesystem)
        lost = list(world.observer.all_lost)
        _recover(world, is_power=bool(at % 3))
        where = {frame.name for frame in traceback.extract_tb(error.__traceback__)}
        outcome = "ended" if where & {"restart", "crash"} else "stopped"
    else:
        lost = list(world.observer.all_lost)
        _go_on(world)
        outcome = "went on"
    if world.filesystem.resynced:
        raise Violation(f"synced again after a failed sync: {world.filesystem.resynced}")
    if fault.times == 1 and lost:
        raise Violation(f"one failing call cost messages: {lost}")
    return outcome


def _recover(world: World, *, is_power: bool) -> None:
    """The store has stopped; its disk is well again, and so is everything that was confirmed."""
    world.filesystem.heal()
    world.crash(is_power=is_power)
    world.run(15)
    world.restart()


def _go_on(world: World) -> None:
    """Nothing was raised: everything must be committed, and found."""
    world.filesystem.heal()
    world.idle()
    if world.is_refused:  # until a restart
        world.crash(is_power=False)
    world.run(15)
    world.sync()
    if world.durable_epoch != world.engine.epoch - 1:
        raise Violation(f"epoch {world.engine.epoch - 1} was never committed")
    world.crash()
    world.restart()


def check_text(error: StorageError, filesystem: SimFileSystem) -> None:
    """What is raised says where, what and why."""
    text = str(error)
    names = {errno.errorcode[number] for number in (errno.EIO, errno.ENOSPC, errno.EINTR)}
    said = [
        path for _, path in filesystem.failed if path in text or path.rpartition("/")[2] in text
    ]
    if not said or not any(name in text for name in names):
        raise Violation(
            f"not said clearly: {type(error).__name__}: {text}; {filesystem.failed[:3]}"
        )
