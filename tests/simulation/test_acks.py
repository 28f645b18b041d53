"""Power cuts around acknowledgements: what a confirm covers, and a message that moves from one queue to another.

A dead letter's copy and its original's ack are staged in one commit. Whatever moment the power goes at, one of the two
is there; once the commit is reported, it is the copy alone. The control at the end of each shows that the harness would
notice.
"""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.simulation.fault_script import Session
from tests.simulation.store_world import Entry, Violation, World
from tests.support.sim_filesystem import PowerCut

SIZES = (20, 400, 60, 900)  # below and above the embed threshold
LAST = 60  # operations after which the power goes at the latest


def begun(seed: int, version: int) -> tuple[World, Session]:
    """Four queues, messages in `a`, all of it durable."""
    world = World(seed, strict=bool(seed & 1), versions=(version,))
    session = Session(world, version)
    session.declare()
    session.publish(("a",), SIZES * 2, sync=True)
    world.idle()
    return world, session


def move(world: World, *, is_ordered: bool, then_delete: bool = False) -> None:
    """The first messages of `a` go to `b`, as dead letters do; `a` itself may go in the same commit."""
    source, target = world.queues["a"], world.queues["b"]
    epoch, seqs = world.engine.epoch, source.live()[: len(SIZES)]
    messages = [source.entries[seq].message for seq in seqs]
    target.log.append(target.next_seq, messages, None, sum(each.size for each in messages))
    for seq, message in enumerate(messages, target.next_seq):
        target.entries[seq] = Entry(message, message.raw, 0, epoch)
    target.next_seq += len(seqs)
    source.log.ack(seqs[0], seqs[-1], messages)
    for seq in seqs:
        source.entries[seq].ack_epoch = epoch
    if is_ordered:
        world.engine.order_acks("/", "source", "target")
    if then_delete:
        del world.queues["a"]
        world.engine.require_acks([source.log.queue_id])
        source.log.delete()
        world.engine.definitions.delete("queue", "a")
        source.delete_epoch = epoch
        world.deleted.append(source)
    world.engine.hand_over()


def bodies(world: World, name: str) -> list[bytes]:
    queue = world.queues[name]
    return [queue.entries[seq].raw for seq in queue.live()]


def bodies_if_there(world: World, name: str) -> list[bytes]:
    return bodies(world, name) if name in world.queues else []


def move_until(cut_at: int, version: int, *, is_ordered: bool, then_delete: bool = False) -> bool:
    """Move with a power cut at an operation; gives whether that was before the end. Raises Violation."""
    world, _ = begun(cut_at, version)
    moved = bodies(world, "a")[: len(SIZES)]
    world.filesystem.cut_before = world.filesystem.operations + cut_at
    is_cut = is_reported = False
    try:
        move(world, is_ordered=is_ordered, then_delete=then_delete)
        is_reported = True
        world.engine.idle()
    except PowerCut:
        is_cut = True
    world.filesystem.cut_before = None
    world.crash()
    left, found = bodies_if_there(world, "a"), bodies(world, "b")
    if any(raw not in left and raw not in found for raw in moved):
        raise Violation(f"cut at {cut_at}: neither the message nor its copy is left")
    if is_reported and (found != moved or set(moved) & set(left)):
        raise Violation(f"cut at {cut_at}: the commit was reported, and is not durable")
    return is_cut


@pytest.mark.parametrize("version", [1, 2])
def test_a_copy_and_the_originals_ack_are_one_commit(version: int) -> None:
    cut_at = 1
    while move_until(cut_at, version, is_ordered=True):
        cut_at += 1
    assert 8 < cut_at < LAST
    with pytest.raises(Violation):
        for cut_at in range(1, LAST):
            move_until(cut_at, version, is_ordered=False)


@pytest.mark.parametrize("version", [1, 2])
def test_a_queue_that_goes_with_the_commit_goes_after_the_copies(version: int) -> None:
    cut_at = 1
    while move_until(cut_at, version, is_ordered=True, then_delete=True):
        cut_at += 1
    assert 8 < cut_at < LAST


def confirm(seed: int, version: int, demand: Callable[[World], None]) -> None:
    """Ack in `a`, then have a publish to `c` confirmed, then lose power; what was acked must stay away."""
    world, session = begun(seed, version)
    session.ack("a", range(3))
    session.ack("a", (1, 3))
    demand(world)
    session.publish(("c",), SIZES, sync=True)
    for entry in world.queues["a"].entries.values():
        entry.is_ack_durable = entry.ack_epoch is not None
    world.crash()


@pytest.mark.parametrize("version", [1, 2])
def test_a_confirm_covers_acks_that_it_is_asked_to(version: int) -> None:
    for seed in range(20):
        confirm(
            seed, version, lambda world: world.engine.require_acks([world.queues["a"].log.queue_id])
        )
    with pytest.raises(Violation, match="came back after its ack was durable"):
        for seed in range(20):
            confirm(seed, version, lambda world: world.engine.require_acks([99]))


@pytest.mark.parametrize("version", [1, 2])
def test_a_confirm_covers_acks_of_the_queue_that_the_publish_goes_to(version: int) -> None:
    for seed in range(10):
        world, session = begun(seed, version)
        session.ack("a", range(3))  # in a commit of its own: nobody waits for it
        world.engine.require_acks([world.queues["a"].log.queue_id])
        session.publish(("a",), (20,), sync=True)
        for entry in world.queues["a"].entries.values():
            entry.is_ack_durable = entry.ack_epoch is not None
        world.crash()


def test_acks_of_a_queue_that_goes_in_the_same_commit_are_nobodys() -> None:
    world, session = begun(1, 2)
    session.ack("a", range(3))
    world.engine.require_acks([world.queues["a"].log.queue_id])
    session.delete_and_declare()
    world.crash()
