"""Shovels in a node, over links of both kinds.

Covers: broker/shovel/run.py, broker/shovel/worker.py, broker/link/channel.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pika import spec

from burrowmq.broker.definitions import restore
from burrowmq.broker.inspect.shovels import shovels as shovel_rows
from burrowmq.broker.link.channel import LinkChannel
from burrowmq.broker.shovel import run
from burrowmq.broker.shovel.run import Run
from tests.support.shovel_bench import ShovelBench

MODES = ("on-confirm", "on-publish", "no-ack")
BODIES = [str(each).encode() for each in range(100)]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[ShovelBench]:
    with ShovelBench(tmp_path) as found:
        found.bench.queue("a")
        yield found


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("ends", ["local", "remote"])
def test_everything_is_moved_in_its_order(world: ShovelBench, mode: str, ends: str) -> None:
    world.fill("a", *BODIES)
    uri = world.remote if ends == "remote" else "amqp://"
    world.shovel(
        src_uri=uri,
        src_queue="a",
        dest_uri=uri,
        dest_queue="b",
        ack_mode=mode,
        src_prefetch_count=50,
    )
    world.until(lambda: world.count("b") == 100 and world.count("a") == 0)
    world.fill("a", b"more")
    world.until(lambda: world.count("b") == 101)
    assert world.vhost.queues["b"].durable
    assert world.bodies("b") == [*BODIES, b"more"]
    world.clear()
    world.until(lambda: not world.bench.node.sessions)


def test_from_an_exchange_through_a_queue_of_its_own(world: ShovelBench) -> None:
    world.shovel(src_exchange="amq.topic", src_exchange_key="x.*", dest_exchange="amq.fanout")
    world.until(lambda: world.state() == "running")
    (name,) = [each for each in world.vhost.queues if each.startswith("amq.gen")]
    assert world.vhost.queues[name].exclusive_owner is not None
    bindings = [each.routing_key for each in world.vhost.exchanges["amq.topic"].bindings]
    assert bindings == [b"x.*"]
    world.clear()
    world.until(lambda: name not in world.vhost.queues)


@pytest.mark.parametrize(
    ("destination", "queue"),
    [
        ({"dest_exchange": "", "dest_exchange_key": "b"}, "b"),
        ({"dest_exchange_key": "b"}, "b"),
        ({"dest_exchange": "amq.direct"}, "b"),  # keeps the key, a
    ],
)
def test_what_the_destination_leaves_open_stays(
    world: ShovelBench, destination: dict[str, str], queue: str
) -> None:
    world.bench.queue(queue)
    client = world.bench.connect(1)
    client.call(1, spec.Queue.Bind(queue=queue, exchange="amq.direct", routing_key="a"))
    client.lose()
    world.fill("a", b"x")
    world.shovel(src_queue="a", **destination)
    world.until(lambda: world.count(queue) == 1)


@pytest.mark.parametrize(
    ("limit", "mode", "moved"),
    [
        (3, "on-confirm", 3),
        (3, "on-publish", 3),
        (0, "on-confirm", 0),
        ("queue-length", "on-confirm", 5),
        ("queue-length", "on-publish", 5),
        ("queue-length", "no-ack", 5),
    ],
)
def test_one_that_has_moved_what_it_was_to_move_is_gone(
    world: ShovelBench, limit: int | str, mode: str, moved: int
) -> None:
    world.bench.queue("b")
    world.fill("a", *BODIES[:5])
    world.shovel(src_queue="a", dest_queue="b", src_delete_after=limit, ack_mode=mode)
    world.until(lambda: world.worker() is None and not world.bench.node.sessions)
    assert world.vhost.component("shovel") == {}
    assert (world.count("a"), world.bodies("b")) == (5 - moved, BODIES[:moved])
    if moved < 5:
        assert world.bodies("a") == BODIES[moved:5]


def test_as_many_as_an_empty_queue_has_is_none(world: ShovelBench) -> None:
    world.shovel(src_queue="a", dest_queue="b", src_delete_after="queue-length")
    world.until(lambda: world.worker() is None)


def told(world: ShovelBench, column: str) -> int:
    """A figure of the shovel's row; 0 before it runs."""
    (row,) = shovel_rows(world.bench.node)
    return int(str(row.get(column, 0)))


@pytest.mark.parametrize("ends", ["local", "remote"])
def test_what_the_destination_refuses_stays_at_the_source_and_is_tried_again(
    world: ShovelBench, monkeypatch: pytest.MonkeyPatch, ends: str
) -> None:
    monkeypatch.setattr(run, "REFUSED_PAUSE_S", 0.02)
    uri = world.remote if ends == "remote" else "amqp://"
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    world.bench.queue("limited", arguments=arguments)
    world.bench.queue("dead")
    world.bench.queue("b", arguments={"x-max-length": 2, "x-overflow": "reject-publish"})
    world.fill("limited", *BODIES[:5])
    world.shovel(src_uri=uri, src_queue="limited", dest_uri=uri, dest_queue="b")
    world.until(lambda: told(world, "refused") >= 9)
    assert (world.count("limited"), world.count("b"), world.count("dead")) == (3, 2, 0)
    assert world.bodies("b") == BODIES[:2]
    world.until(lambda: world.count("limited") == 1)
    assert world.bodies("b") == BODIES[2:4]
    world.until(lambda: world.count("limited") == 0)
    assert (world.bodies("b"), world.count("dead")) == (BODIES[4:5], 0)


def test_after_a_refusal_nothing_is_read_for_a_while(
    world: ShovelBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "REFUSED_PAUSE_S", 3600)
    world.bench.queue("b", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    world.fill("a", *BODIES[:3])
    world.shovel(src_queue="a", dest_queue="b")
    world.until(lambda: told(world, "refused") == 2)
    world.fill("a", b"more")
    turns = iter(range(50))
    world.until(lambda: next(turns) == 49)
    assert (world.count("a"), told(world, "forwarded")) == (3, 3)
    world.clear()  # the pause does not outlive the shovel
    world.until(lambda: not world.bench.node.sessions)
    assert world.bodies("a") == [*BODIES[1:3], b"more"]


def test_one_that_is_to_move_so_many_leaves_what_was_refused(world: ShovelBench) -> None:
    world.bench.queue("b", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    world.fill("a", *BODIES[:3])
    world.shovel(src_queue="a", dest_queue="b", src_delete_after="queue-length")
    world.until(lambda: world.worker() is None and not world.bench.node.sessions)
    assert (world.bodies("b"), world.bodies("a")) == (BODIES[:1], BODIES[1:3])


def test_another_definition_takes_its_predecessor_s_place(world: ShovelBench) -> None:
    world.shovel(src_queue="a", dest_queue="b")
    world.until(lambda: world.state() == "running")
    first = world.worker()
    world.shovel(src_queue="a", dest_queue="c")
    world.fill("a", b"x")
    world.until(lambda: world.count("c") == 1)
    assert world.worker() is not first
    assert world.count("b") == 0
    assert len(world.bench.node.sessions) == 2


def test_a_queue_that_is_deleted_is_declared_again(world: ShovelBench) -> None:
    world.shovel(src_queue="a", dest_queue="b")
    world.until(lambda: world.state() == "running")
    world.bench.perform(lambda: world.vhost.delete_queue(world.vhost.queues["a"]))
    world.until(lambda: world.count("a") == 0)
    world.until(lambda: world.state() == "running")
    failed = world.bench.observer.named("shovel_failed")
    assert "deleted" in str(failed[0])


@pytest.mark.parametrize("uri", ["amqp://127.0.0.1:1", "amqp://nobody:x@127.0.0.1:{port}"])
def test_what_cannot_be_reached_is_said_and_tried_again(world: ShovelBench, uri: str) -> None:
    world.shovel(src_uri=uri.format(port=world.bench.port), src_queue="a", dest_queue="b")
    world.until(lambda: len(world.bench.observer.named("shovel_failed")) > 2)
    worker = world.worker()
    assert worker is not None
    assert worker.run is not None
    world.clear()


def test_the_next_of_several_uris_is_tried(world: ShovelBench) -> None:
    uris = ["amqp://127.0.0.1:1", world.remote, "amqp://127.0.0.1:1"]
    world.fill("a", b"x")
    world.shovel(src_uri=uris, src_queue="a", dest_queue="b")
    world.until(lambda: world.count("b") == 1 and world.state() == "running")
    (row,) = shovel_rows(world.bench.node)
    assert row["src_uri"] == world.remote


@pytest.mark.parametrize("is_remote", [False, True])
def test_why_the_destination_closed_the_channel_on_the_way_is_said(
    world: ShovelBench, is_remote: bool
) -> None:
    world.fill("a", b"1")
    uri = world.remote if is_remote else "amqp://"
    world.shovel(src_queue="a", dest_uri=uri, dest_exchange="none", reconnect_delay=60)
    world.until(lambda: world.state() == "terminated")
    (row,) = shovel_rows(world.bench.node)
    assert row["reason"] == "destination: NOT_FOUND - no exchange 'none' in vhost '/'"
    world.until(lambda: world.count("a") == 1)


def test_without_a_delay_there_is_no_second_attempt_until_it_is_restarted(
    world: ShovelBench,
) -> None:
    world.shovel(src_exchange="none", dest_queue="b", reconnect_delay=0)
    world.until(lambda: world.state() == "terminated")
    (row,) = shovel_rows(world.bench.node)
    assert row["reason"] == "NOT_FOUND - no exchange 'none' in vhost '/'"
    found = world.bench.node.shovels.found
    assert found is not None
    assert world.bench.perform(lambda: found.restart("/", "s"))
    world.until(lambda: len(world.bench.observer.named("shovel_failed")) == 2)
    assert not found.restart("/", "other")


def test_a_restart_moves_nothing_twice(world: ShovelBench) -> None:
    world.fill("a", *BODIES)
    world.shovel(src_queue="a", dest_queue="b", src_prefetch_count=20)
    found = world.bench.node.shovels.found
    assert found is not None
    for _ in range(5):
        count = world.count("b")
        world.until(lambda count=count: world.count("b") > count or world.count("a") == 0)  # type: ignore[misc] - bound
        world.bench.perform(lambda: found.restart("/", "s"))
    world.until(lambda: world.count("a") == 0)
    assert world.bodies("b") == BODIES


def test_while_the_destination_takes_nothing_the_source_is_not_read(
    world: ShovelBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """No-ack is where it matters: nothing else holds the source back."""
    world.fill("a", *[b"x" * 100_000] * 200)
    is_writable = False
    monkeypatch.setattr(
        LinkChannel,
        "is_writable",
        property(lambda self: is_writable),  # as if the destination had blocked us
    )
    world.shovel(src_queue="a", dest_queue="b", ack_mode="no-ack")
    world.until(lambda: world.state() == "running" and world.count("a") < 200)
    for _ in range(20):
        world.bench.perform(lambda: None)
    taken = 200 - world.count("a")
    assert 0 < taken < 200
    worker = world.worker()
    assert worker is not None
    assert worker.run is not None
    assert worker.run.is_blocked
    is_writable = True
    found: Run = worker.run
    world.bench.perform(lambda: found.may_write(found._destination))
    world.until(lambda: world.count("b") == 200)


def test_one_that_comes_back_at_once_waits_for_the_end_of_the_one_before(
    world: ShovelBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    under_way: list[Run] = []
    at_once: list[int] = []
    start, close = Run.start, Run.close

    async def counted(one: Run, first: int) -> None:
        under_way.append(one)
        at_once.append(len(under_way))
        await start(one, first)

    async def left(one: Run) -> None:
        await close(one)
        under_way.remove(one)

    monkeypatch.setattr(Run, "start", counted)
    monkeypatch.setattr(Run, "close", left)
    world.shovel(src_queue="a", dest_queue="b")
    world.until(lambda: world.state() == "running")
    world.fill("a", *BODIES)
    for _ in range(3):
        world.clear()
        world.shovel(src_queue="a", dest_queue="b")
    world.until(lambda: world.count("a") == 0)
    assert world.bodies("b") == BODIES
    assert set(at_once) == {1}


@pytest.mark.parametrize("ends", ["local", "remote"])
def test_one_whose_destination_is_blocked_ends_soon(
    world: ShovelBench, ends: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(run, "BLOCKED_SETTLE_S", 0.05)
    uri = world.remote if ends == "remote" else "amqp://"
    world.shovel(src_queue="a", dest_uri=uri, dest_queue="b")
    world.until(lambda: world.state() == "running")
    alarms, loop = world.bench.node.alarms, world.bench.loop
    world.bench.perform(lambda: alarms.update("asked", is_on=True))
    world.fill("a", *[b"x" * 10_000] * 200)
    worker = world.worker()
    assert worker is not None
    world.until(lambda: worker.run is not None and worker.run.is_blocked)
    found = world.bench.node.shovels.found
    assert found is not None
    began = loop.time()
    world.clear()
    world.until(lambda: not found.leaving)
    assert loop.time() - began < 2.0
    world.bench.perform(lambda: alarms.update("asked", is_on=False))
    assert world.count("a") + world.count("b") >= 200


@pytest.mark.parametrize("mode", MODES)
def test_one_whose_destination_reads_slowly_ends_without_a_loss_or_a_second_copy(
    world: ShovelBench, mode: str
) -> None:
    bodies = [b"%d" % each + b"x" * 100_000 for each in range(300)]
    world.shovel(src_queue="a", dest_uri=world.remote, dest_queue="b", ack_mode=mode)
    world.until(lambda: world.state() == "running")
    (wire,) = [
        each.wire for each in world.bench.node.sessions if not each.peer.is_node and each.wire
    ]
    world.bench.perform(lambda: wire.pause_reading("asked"))
    world.fill("a", *bodies)
    worker, found = world.worker(), world.bench.node.shovels.found
    assert worker is not None
    assert found is not None
    world.until(lambda: worker.run is not None and worker.run.is_blocked)
    world.clear()
    began = world.bench.loop.time()
    world.until(lambda: world.bench.loop.time() - began > 2 * run.BLOCKED_SETTLE_S)
    world.bench.perform(lambda: wire.resume_reading("asked"))
    world.until(lambda: not found.leaving)
    if mode == "no-ack":  # what is still in the source's buffers goes with it
        moved = world.count("b")
        assert moved == worker.forwarded
        assert world.bodies("b") == bodies[:moved]
    else:
        assert world.bodies("b") + world.bodies("a") == bodies


def test_a_user_may_do_through_a_shovel_what_he_may(world: ShovelBench) -> None:
    world.bench.node.auth.put_user("alice", "", ())
    world.shovel(src_uri="amqp://alice@/%2F", src_queue="a", dest_queue="b")
    world.until(lambda: world.state() == "terminated")
    (row,) = shovel_rows(world.bench.node)
    assert "access to vhost '/' refused for user 'alice'" in str(row["reason"])


def test_a_deleted_virtual_host_takes_its_shovels_along(world: ShovelBench) -> None:
    node = world.bench.node
    world.shovel(src_queue="a", dest_queue="b")
    world.until(lambda: world.state() == "running")
    world.bench.perform(
        lambda: restore.delete_vhost(world.vhost, node.vhosts, node.auth, node.engine.definitions)
    )
    world.until(lambda: world.worker() is None and not node.sessions)


def test_the_row_of_one_that_runs(world: ShovelBench) -> None:
    world.shovel(src_queue="a", dest_uri=f"{world.remote}/%2F?heartbeat=5", dest_queue="b")
    world.until(lambda: world.state() == "running")
    (row,) = shovel_rows(world.bench.node)
    del row["timestamp"]
    assert row == {
        "node": "rabbit@test",
        "name": "s",
        "vhost": "/",
        "type": "dynamic",
        "state": "running",
        "forwarded": 0,
        "src_uri": "amqp://",
        "src_protocol": "amqp091",
        "dest_protocol": "amqp091",
        "dest_uri": f"{world.remote}/%2F",
        "src_queue": "a",
        "dest_queue": "b",
        "pending": 0,
        "refused": 0,
        "remaining": "unlimited",
        "remaining_unacked": "unlimited",
        "blocked_status": "running",
    }
    assert shovel_rows(world.bench.node, "other") == []
