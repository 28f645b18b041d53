"""What befalls the machine: calls to the disk fail, the power goes, while something of interest is under way.

State: none but what the run says of its disk (`Run.calls_fail`).
"""

from __future__ import annotations

import errno
from contextlib import suppress
from typing import TYPE_CHECKING

from burrowmq.broker.definitions.parameters import set_policy
from burrowmq.broker.rules.policy import Policy, PolicyValue
from burrowmq.storage.errors import StorageError
from burrowmq.storage.names import QueueNames
from tests.simulation.machine.clients import CONFIRMING, REST
from tests.simulation.machine.damages import damage_a_body
from tests.simulation.machine.model import DEAD
from tests.support.sim_filesystem import THROUGH

if TYPE_CHECKING:
    from tests.simulation.machine.run import Run

WRITES = frozenset({"pwrite", "create", "truncate"})
SYNCS = frozenset({"fdatasync", "fsync_dir"})
READS = frozenset({"pread", "open"})
NAMING = frozenset({"unlink", "rename", "mkdir", "rmtree"})
# Calls that fail for one file or directory, and others do not.
TOGETHER = (
    *(("pwrite",), ("pwrite", "create"), ("fdatasync",), ("fdatasync",), ("fsync_dir",)),
    *(("pwrite", "fdatasync"), ("unlink", "rename"), ("pread",)),
)
# The same while queues are converted.
CONVERTING = (
    *(("rename",), ("fsync_dir",), ("pread",), ("create",), ("pwrite",), ("fdatasync",)),
    *(("unlink",), ("rename", "fsync_dir")),
)
# What is under way when the power goes in a storm: one commit of it may be cut at any of its calls.
UNDER_WAY = (
    *("publish", "publish", "settle", "settle", "redeclare", "redeclare", "delete"),
    *("transact", "policy", "purge", "idle", "restart"),
)


def fault(run: Run) -> None:
    """Calls fail from some point on: one, or a burst."""
    rng = run.rng
    number = rng.choice((errno.EIO, errno.EIO, errno.ENOSPC, errno.EMFILE))
    operations = rng.choice((WRITES, SYNCS, READS, READS, NAMING, WRITES | READS, frozenset()))
    times = rng.choice((1, 1, 2, 5, 30, 1000))
    keep = rng.choice((0, 0, 5, 600))
    run.calls_fail()
    run.machine.disk.fail_from(
        rng.randint(1, 25), number, times=times, keep=keep, operations=operations
    )


def fill(run: Run) -> None:
    """The disk is full for so many calls, and then has room again: no store ends for that (`Run.is_worse`)."""
    rng, disk = run.rng, run.machine.disk
    operations = rng.choice((SYNCS, SYNCS, WRITES, WRITES | SYNCS))
    times = rng.randint(1, 24)
    run.calls_fail(is_full=True)
    if rng.random() < 0.5:
        disk.fail_from(rng.randint(1, 12), errno.ENOSPC, times=times, operations=operations)
    else:
        disk.fail("fdatasync", errno.ENOSPC, times=times, path_part="definitions")
    run.do(rng.choice(UNDER_WAY))
    run.move(40)


def heal(run: Run) -> None:
    """The disk is well again."""
    run.heal()


def crash(run: Run) -> None:
    """The power goes, or the process is killed, at some call to the disk from now on."""
    disk = run.machine.disk
    disk.cut_before = disk.operations + run.rng.choice((0, 1, 2, 3, 5, 8, 13, 21))


def strike(run: Run) -> None:
    """The power goes, the process is killed, or calls fail, while this is under way and not some other time."""
    if run.plan.has_faults and run.rng.random() < 0.7:
        _fail_one_place(run)
    if not run.is_faulty or run.rng.random() < 0.5:
        crash(run)
    run.do(run.rng.choice(UNDER_WAY))
    run.move(40)
    if run.is_faulty and run.rng.random() < 0.5:
        run.heal()


def spoil(run: Run) -> None:
    """A bit of a message turns on the disk; with some luck somebody reads it."""
    damage_a_body(run)
    run.do(run.rng.choice(("consume", "get", "wait", "idle", "publish")))


def release(run: Run) -> None:
    """A message that was set aside is dropped for good, or the answer says that it may be back."""
    node = run.machine.node
    events = run.machine.observer.named("message_set_aside")
    names = [name for _, _, _, name, _ in events if name not in run.leaving]
    if node is None or not names:
        return
    name = run.rng.choice(names)
    run.leaving.add(name)
    with suppress(OSError, StorageError):
        node.engine.quarantine.remove(name)
        run.released.add(name)


def owe(run: Run) -> None:
    """The queue of dead letters takes nothing, while other queues' messages are rejected into it."""
    rng, dead = run.rng, run.model.current.get(DEAD)
    sources = [home for home in run.model.current.values() if home.has_dead_letters]
    sources = [home for home in sources if home.is_at_hand]
    if not run.plan.has_faults or dead is None or not dead.is_stable or not sources:
        run.do("settle")
        return
    client = run.client()
    if not (client.is_busy(CONFIRMING) or client.deliveries or len(client.consumers) > 2):
        client.consume(rng.choice(sources), 5)
        run.move(40)
    run.calls_fail()
    part, times = QueueNames("/", DEAD, 0).directory, rng.choice((2, 4, 10, 40))
    for operation in rng.choice(TOGETHER):
        run.machine.disk.fail(
            operation, errno.EIO, nth=rng.randint(1, 2), times=times, path_part=part
        )
    for _ in range(rng.choice((1, 2, 3))):
        _reject_some(run)
        run.move(rng.choice((10, 40)))
    if rng.random() < 0.3:
        crash(run)
        run.do("publish")
    elif rng.random() < 0.5:
        run.heal()


def cramp(run: Run) -> None:
    """One queue finds no room, or no descriptor, as nobody publishes: what others acknowledge is safe after a while."""
    rng, home, client = run.rng, run.some_home(), run.client()
    if not run.plan.has_faults or run.is_faulty or home is None:
        run.do("settle")
        return
    while (
        not client.is_lost
        and len(client.consumers) < 3
        and not client.is_busy(CONFIRMING)
        and rng.random() < 0.8
    ):
        here = [home for home in run.model.current.values() if home.is_at_hand]
        if not here:
            break
        client.consume(rng.choice(here), 20)
        run.move(40)
    run.quiet(1.0)
    run.calls_fail()
    number = rng.choice((errno.ENOSPC, errno.ENOSPC, errno.EMFILE))
    part = QueueNames("/", home.name, rng.randint(0, home.levels or 0)).directory
    for operation in rng.choice((("pwrite",), ("pwrite", "create"), ("create", "unlink"))):
        run.machine.disk.fail(operation, number, times=1000, path_part=part)
    for each in run.clients:
        if not (each.is_paused or each.is_busy(CONFIRMING) or each.is_busy(REST)):
            for key in list(each.deliveries)[:: rng.choice((1, 2))]:
                each.settle(key, "ack")
    settled = run.model.settled()
    run.quiet(4.0)
    # Behind a commit that waits for room all others wait.
    if run.machine.is_at_rest:
        run.result.operations["cramped"] += 1
        run.model.stay_away(settled, {*run.machine.faulty(), home.name})
    if rng.random() < 0.7:
        run.heal()
        run.crash_now(is_power=run.is_power())


def convert(run: Run) -> None:
    """Queues get another version of their files, while calls for the files of one of them fail."""
    rng, home = run.rng, run.some_home()
    node = run.machine.node
    if not run.plan.has_faults or home is None or node is None:
        run.do("policy")
        return
    run.calls_fail()
    part = QueueNames("/", home.name, rng.randint(0, home.levels or 0)).directory
    number = rng.choice((errno.EIO, errno.EIO, errno.EIO, errno.ENOSPC))
    for operation in rng.choice(CONVERTING):
        nth, times = rng.randint(1, 3), rng.choice((1, 2, 30))
        run.machine.disk.fail(operation, number, nth=nth, times=times, path_part=part)
    version: dict[str, PolicyValue] = {"queue-version": rng.choice((1, 2))}
    policy = Policy(
        name="c",
        pattern=".*",
        definition=version,
        apply_to="queues",
        priority=rng.choice((2, 4)),
    )
    set_policy(node.vhosts["/"], policy)
    node.scheduler.touch()
    run.machine.let_pass(rng.choice((0.1, 0.5, 2.0)))
    if rng.random() < 0.5:
        run.heal()


def doubt(run: Run) -> None:
    """A file of one queue is renamed or removed, and the answer is that it was not."""
    rng, home = run.rng, run.some_home()
    if not run.plan.has_faults or home is None:
        run.do("settle")
        return
    client = run.client()
    if not client.is_busy(CONFIRMING) and len(client.consumers) < 3 and rng.random() < 0.8:
        client.consume(home, 20)
        run.move(40)
    run.quiet(1.0)
    run.calls_fail()
    part = QueueNames("/", home.name, rng.randint(0, home.levels or 0)).directory
    for operation in rng.choice((("rename",), ("unlink",), ("rename", "unlink"))):
        nth, times = rng.choice((1, 1, 2, 3)), rng.choice((1, 1, 2, 30))
        run.machine.disk.fail(
            operation, errno.EIO, nth=nth, times=times, keep=THROUGH, path_part=part
        )
    _ack_some(run, rng.choice((1, 1, 2)))
    run.machine.let_pass(rng.choice((0.1, 0.3, 1.0)))
    if not client.is_lost:
        run.do(rng.choice(("publish", "publish", "policy", "delete")))
        run.quiet(rng.choice((0.01, 0.3, 1.0)))
    if rng.random() < 0.7:
        run.heal()
        run.crash_now(is_power=run.is_power())


def _ack_some(run: Run, step: int) -> None:
    """Each delivery, or each second one, is acknowledged."""
    for each in run.clients:
        if not (each.is_paused or each.is_busy(CONFIRMING) or each.is_busy(REST)):
            for key in list(each.deliveries)[::step]:
                each.settle(key, "ack")


def _fail_one_place(run: Run) -> None:
    """Calls for the files of one queue, of the shared store or of the commit log fail, and no others."""
    rng, home = run.rng, run.some_home()
    if home is None or rng.random() < 0.3:
        run.do("fault")
        return
    queue = QueueNames("/", home.name, rng.randint(0, home.levels or 0)).directory
    part = rng.choice((queue, queue, queue, "msg_store_persistent", "commit_log"))
    run.calls_fail()
    for operation in rng.choice(TOGETHER):
        nth, times = rng.randint(1, 4), rng.choice((1, 2, 2, 3, 10))
        run.machine.disk.fail(operation, errno.EIO, nth=nth, times=times, path_part=part)


def _reject_some(run: Run) -> None:
    """Some deliveries become dead letters."""
    run.pump()
    for client in run.clients:
        if client.is_paused or client.is_busy(CONFIRMING) or client.is_busy(REST):
            continue
        keys = [key for key, its in client.deliveries.items() if its.home.has_dead_letters]
        for key in keys[: run.rng.choice((1, 2, 6))]:
            client.settle(key, "reject")
