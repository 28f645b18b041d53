"""Classic queues become quorum queues: in order, with whoever uses them, and nothing is lost on the way.

Covers: broker/migration/migration.py
Covers: broker/migration/mover.py
"""

from __future__ import annotations

from typing import Any, cast

import pytest
from pika import BasicProperties, spec

from burrowmq.broker.definitions import parameters
from burrowmq.broker.definitions.parameters import MIGRATION_NOTE
from burrowmq.broker.migration import migrations as migrations_module
from burrowmq.broker.migration import mover as mover_module
from burrowmq.broker.migration.migration import changes, obstacle
from burrowmq.broker.migration.migrations import Migrations
from burrowmq.broker.replicated.queue import ReplicatedQueue
from burrowmq.broker.rules.policy import Policy
from burrowmq.cluster.record import unpack
from tests.support.cluster_bench import ClusterBench
from tests.support.wire_client import publish_bytes


class Moving:
    """A classic queue `q` with a client that publishes and one that consumes, and the node's migrations."""

    def __init__(self, bench: ClusterBench, **declaration: Any) -> None:
        self.bench = bench
        self.migrations = Migrations(cast("Any", bench))
        self.publisher = bench.connect(1)
        self.publisher.call(1, spec.Confirm.Select())
        self.publisher.call(
            1, spec.Queue.Declare(queue="q", durable=True, arguments=declaration or None)
        )
        self.publisher.call(1, spec.Exchange.Declare(exchange="x", type="fanout", durable=True))
        self.publisher.call(1, spec.Queue.Bind(queue="q", exchange="x", routing_key="k"))
        self.settle()
        self.consumer = bench.connect(1)
        self.told: list[str] = []
        self._came: list[tuple[int, Any]] = []

    @property
    def queue(self) -> Any:
        return self.bench.vhost.queues["q"]

    def settle(self, seconds: float = 0.1) -> None:
        self.bench.settle(seconds)
        self.publisher.read()

    def publish(self, *bodies: bytes, exchange: str = "") -> None:
        persistent = BasicProperties(delivery_mode=2)
        for body in bodies:
            self.publisher.send(publish_bytes(1, exchange, "q", body, properties=persistent))
        self.settle()

    def do(self, method: Any) -> None:
        """The consumer sends this."""
        self._came += self.consumer.call(1, method)

    def taken(self) -> list[tuple[int, bytes]]:
        """(delivery tag, body) of what the consumer was given since it was last asked."""
        came, self._came = [*self._came, *self.consumer.read()], []
        return [(each.delivery_tag, each.body) for _, each in came if each.NAME == "Basic.Deliver"]

    def consume(self, prefetch_count: int = 0) -> None:
        self.do(spec.Basic.Qos(prefetch_count=prefetch_count))
        self.do(spec.Basic.Consume(queue="q", consumer_tag="t"))

    def begin(self) -> None:
        self.migrations.begin(self.bench.vhost, self.queue, self.told.append)
        self.settle(0.4)

    def begin_silently(self) -> None:
        """Begin, and have the servers hear nothing from when the note of it is there."""
        self.migrations.begin(self.bench.vhost, self.queue, self.told.append)
        while not self.notes:
            self.bench.settle(0.01)
        self.bench.world.is_silent = True
        self.settle(0.4)
        assert self.told == [""]

    @property
    def notes(self) -> list[str]:
        return [name for name in self.bench.parameters.values if name.startswith(MIGRATION_NOTE)]

    def stored(self) -> list[bytes]:
        """Bodies in the stream, in its order."""
        stream = self.bench.stream()
        held = stream.messages | stream.kept
        return [body_of(held[sequence]) for sequence in sorted(held)]


def body_of(payload: bytes) -> bytes:
    return bytes(
        unpack(payload).raw[-9:-1]
    )  # header frame, then a body frame that ends in one octet


def bodies(first: int, count: int) -> list[bytes]:
    return [b"%08d" % number for number in range(first, first + count)]


@pytest.fixture
def bench(monkeypatch: pytest.MonkeyPatch) -> ClusterBench:
    return ClusterBench(monkeypatch)


def test_what_is_there_is_moved_in_order_and_the_queue_is_a_quorum_queue(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mover_module, "CHUNK", 3)
    moving = Moving(bench)
    moving.publish(*bodies(0, 10))
    old = moving.queue
    moving.begin()
    assert moving.told == [""]
    assert isinstance(moving.queue, ReplicatedQueue)
    assert old.is_deleted
    assert moving.stored() == bodies(0, 10)
    assert moving.queue.ready_count == 10
    assert moving.migrations.progress() == []
    assert moving.notes == []
    assert bench.observer.named("migration_ended") == [("/", "q", 10)]
    moving.publish(b"%08d" % 10, exchange="x")
    assert moving.stored() == bodies(0, 11), "the binding leads there"
    row = bench.engine.definitions.rows[("queue", '["/","q"]')]
    assert row["arguments"] != ""


def test_who_publishes_and_consumes_stays_and_notices_nothing(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mover_module, "CHUNK", 4)
    moving = Moving(bench)
    moving.consume(prefetch_count=2)
    moving.publish(*bodies(0, 10))
    held = moving.taken()
    assert [body for _, body in held] == bodies(0, 2)
    moving.begin()
    (progress,) = moving.migrations.progress()
    assert (progress.state, progress.moved_count, progress.left_count) == ("finishing", 8, 2)
    assert moving.queue.kind == "quorum"
    assert moving.notes, "a start would have to go on"
    moving.publish(b"%08d" % 10)
    assert moving.taken() == [], "its prefetch is used up by what it holds of the old one"
    moving.do(spec.Basic.Ack(delivery_tag=1))
    moving.settle(0.5)
    assert [body for _, body in moving.taken()] == bodies(2, 1)
    moving.do(spec.Basic.Nack(delivery_tag=2, requeue=True))
    moving.settle(0.5)
    assert moving.migrations.progress() == []
    assert moving.notes == []
    rest: list[bytes] = []
    while found := moving.taken():
        rest += [body for _, body in found]
        moving.do(spec.Basic.Ack(delivery_tag=found[-1][0]))
        moving.settle(0.5)
    assert rest == [*bodies(3, 8), *bodies(1, 1)], "what was given back comes last"
    assert (moving.queue.ready_count, moving.queue.unacked_count) == (0, 1)
    moving.do(spec.Basic.Cancel(consumer_tag="t"))
    assert not moving.queue.consumer_count


def test_nobody_is_served_while_messages_move_and_new_ones_come_behind(
    bench: ClusterBench,
) -> None:
    moving = Moving(bench)
    moving.publish(*bodies(0, 3))
    moving.begin_silently()
    moving.consume()
    moving.publish(*bodies(3, 2))
    assert moving.taken() == []
    assert moving.queue.kind == "classic"
    (progress,) = moving.migrations.progress()
    assert (progress.state, progress.moved_count, progress.left_count) == ("moving", 0, 5)
    bench.world.is_silent = False
    moving.settle(3.0)
    assert moving.queue.kind == "quorum"
    assert [body for _, body in moving.taken()] == bodies(0, 5)


def test_what_the_cluster_refuses_is_offered_again(bench: ClusterBench) -> None:
    moving = Moving(bench)
    moving.publish(*bodies(0, 3))
    moving.begin_silently()
    moving.settle(31.0)
    (progress,) = moving.migrations.progress()
    assert progress.refused_count > 0, "no answer for 30 s"
    assert progress.left_count == 3
    bench.world.is_silent = False
    moving.settle(5.0)
    assert moving.queue.kind == "quorum"
    assert sorted(set(moving.stored())) == bodies(0, 3)


def test_a_queue_that_is_deleted_meanwhile_takes_its_successor_with_it(bench: ClusterBench) -> None:
    moving = Moving(bench)
    moving.publish(*bodies(0, 3))
    moving.begin_silently()
    bench.world.is_silent = False
    moving.publisher.call(1, spec.Queue.Delete(queue="q"))
    moving.settle(2.0)
    assert "q" not in bench.vhost.queues
    assert (moving.migrations.progress(), moving.notes) == ([], [])
    assert bench.world.streams == {}


def test_a_successor_that_is_deleted_takes_what_is_left_with_it(bench: ClusterBench) -> None:
    moving = Moving(bench)
    moving.consume(prefetch_count=2)
    moving.publish(*bodies(0, 4))
    old = moving.queue
    moving.begin()
    assert moving.migrations.progress()[0].state == "finishing"
    moving.publisher.call(1, spec.Queue.Delete(queue="q"))
    moving.settle(2.0)
    assert "q" not in bench.vhost.queues
    assert old.is_deleted
    assert (moving.migrations.progress(), moving.notes) == ([], [])
    assert ("queue", '["/","q"]') not in bench.engine.definitions.rows
    moving.do(spec.Basic.Ack(delivery_tag=1))  # of a queue that is gone
    moving.settle()
    assert "Channel.Close" not in [each.NAME for _, each in moving._came]


def test_who_declares_it_as_it_was_finds_it(bench: ClusterBench) -> None:
    moving = Moving(bench, **{"x-queue-mode": "lazy"})
    moving.begin()
    client = moving.publisher
    assert moving.queue.arguments == {"x-queue-type": "quorum"}
    for arguments in ({"x-queue-mode": "lazy"}, {"x-queue-type": "quorum"}):
        client.call(1, spec.Queue.Declare(queue="q", durable=True, arguments=arguments))
        moving.bench.settle()
        assert client.names() == ["Queue.DeclareOk"]
    code, text = client.refused(
        1, spec.Queue.Declare(queue="q", durable=True, arguments={"x-max-length": 4})
    )
    assert code == 406
    assert "x-" in text
    restored = former_arguments(bench)
    assert restored == {"x-queue-mode": "lazy"}


def former_arguments(bench: ClusterBench) -> Any:
    """What a start would read of the queue's former arguments."""
    from burrowmq.broker.words.resource import unpack_arguments

    return unpack_arguments(
        bench.engine.definitions.rows[("queue", '["/","q"]')]["former_arguments"]
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"x-max-priority": 3}, "x-max-priority"),
        ({"x-max-length": 3}, ""),
        ({"x-expires": 60_000}, ""),
        ({"x-queue-mode": "lazy", "x-max-length": 3, "x-overflow": "reject-publish"}, ""),
        ({"x-overflow": "reject-publish-dlx"}, "takes reject-publish-dlx for drop-head"),
        ({}, ""),
    ],
)
def test_what_prevents_it_is_said(
    bench: ClusterBench, arguments: dict[str, Any], text: str
) -> None:
    moving = Moving(bench, **arguments)
    found = obstacle(bench.vhost, moving.queue)
    assert text in found
    assert bool(text) == bool(found)


REFUSING, BURYING, DROPPING = "reject-publish", "reject-publish-dlx", "drop-head"
IN_PLACE = "a quorum queue takes reject-publish-dlx for drop-head"


@pytest.mark.parametrize(
    ("argument", "policy", "prevented", "changed"),
    [
        (REFUSING, None, "", []),
        (BURYING, None, IN_PLACE, []),
        (None, BURYING, IN_PLACE, []),
        # Of a classic queue's the argument counts, of a quorum queue's the policy.
        (BURYING, REFUSING, "", ["overflow reject-publish-dlx becomes reject-publish"]),
        (REFUSING, BURYING, IN_PLACE, ["overflow reject-publish becomes reject-publish-dlx"]),
        (REFUSING, DROPPING, "", ["overflow reject-publish becomes drop-head"]),
        (None, None, "", []),
    ],
)
def test_what_is_done_when_it_is_full_stays_or_is_told(
    bench: ClusterBench,
    argument: str | None,
    policy: str | None,
    prevented: str,
    changed: list[str],
) -> None:
    if policy is not None:
        definition = {"overflow": policy, "max-length": 3}
        parameters.set_policy(bench.vhost, Policy(name="p", pattern="", definition=definition))
    arguments = {} if argument is None else {"x-overflow": argument}
    moving = Moving(bench, **arguments)
    assert obstacle(bench.vhost, moving.queue) == prevented
    assert changes(bench.vhost, moving.queue) == changed
    if not prevented:
        moving.begin()
        wanted = argument if policy is None else policy
        assert (moving.queue.kind, moving.queue.settings.overflow) == ("quorum", wanted or DROPPING)


def test_what_expires_by_the_policys_word_is_told(bench: ClusterBench) -> None:
    policy = Policy(name="p", pattern="", definition={"expires": 90_000})
    parameters.set_policy(bench.vhost, policy)
    moving = Moving(bench, **{"x-expires": 60_000})
    assert changes(bench.vhost, moving.queue) == ["expires 60000 becomes 90000"]
    moving.begin()
    assert moving.queue.settings.expires_ms == 90_000


def test_queues_that_cannot_are_told_apart(bench: ClusterBench) -> None:
    moving = Moving(bench)
    client = moving.publisher
    for name, options in (
        ("gone", {"auto_delete": True, "durable": True}),
        ("mine", {"exclusive": True}),
        ("light", {}),
    ):
        client.call(1, spec.Queue.Declare(queue=name, **options))
        moving.settle()
    found = {name: obstacle(bench.vhost, queue) for name, queue in bench.vhost.queues.items()}
    assert "auto-delete" in found["gone"]
    assert found["mine"]
    assert "non-durable" in found["light"]
    client.call(1, spec.Basic.Consume(queue="q", exclusive=True))
    assert obstacle(bench.vhost, moving.queue) == "it has an exclusive consumer"


def test_without_the_cluster_it_does_not_begin(bench: ClusterBench) -> None:
    moving = Moving(bench)
    moving.publish(*bodies(0, 2))
    bench.link.lose()
    moving.begin()
    assert "inaccessible" in moving.told[0]
    assert (moving.queue.kind, moving.queue.ready_count) == ("classic", 2)
    assert moving.notes == []
    moving.consume()
    moving.settle()
    assert [body for _, body in moving.taken()] == bodies(0, 2)


def test_a_start_goes_on_with_what_is_left(bench: ClusterBench) -> None:
    moving = Moving(bench)
    moving.publish(*bodies(0, 3))
    bench.parameters.put(f'{MIGRATION_NOTE}["/","q"]', {"vhost": "/", "name": "q"})
    bench.parameters.put(f'{MIGRATION_NOTE}["/","other"]', {"vhost": "/", "name": "other"})
    moving.migrations.resume()
    moving.settle(2.0)  # a stream that a start does not find is waited for
    assert moving.queue.kind == "quorum"
    assert moving.stored() == bodies(0, 3)
    assert moving.notes == [], "of one whose queue is not there, too"


@pytest.mark.parametrize("is_made_anew", [False, True])
def test_a_start_goes_on_with_no_queue_that_was_made_anew_meanwhile(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch, is_made_anew: bool
) -> None:
    moving = Moving(bench)
    moving.publish(*bodies(0, 3))
    moving.begin_silently()
    noted = dict(bench.parameters.values)
    assert noted, "what the next start finds"
    bench.world.is_silent = False
    moving.settle(3.0)
    moving.publisher.call(1, spec.Queue.Delete(queue="q"))
    moving.settle(3.0)
    made_ms = next(iter(noted.values()))["made_ms"]  # type: ignore[index]
    moving.publisher.call(1, spec.Queue.Declare(queue="q", durable=True))
    moving.settle()
    assert moving.queue.made_ms != made_ms
    if not is_made_anew:
        moving.queue.made_ms = made_ms
    bench.parameters.values.update(noted)

    def no_cluster(*_: Any, **__: Any) -> Any:
        raise ValueError("there is no cluster")

    with monkeypatch.context() as without:
        without.setattr(bench.vhost, "make_successor", no_cluster)
        moving.migrations.resume()
    assert bool(moving.notes) != is_made_anew
    moving.migrations.resume()
    moving.settle(2.0)
    assert moving.queue.kind == ("classic" if is_made_anew else "quorum")
    assert moving.notes == []


def test_a_transaction_that_was_begun_before_is_waited_for(bench: ClusterBench) -> None:
    moving = Moving(bench)
    client = bench.connect(1)
    client.call(1, spec.Tx.Select())
    client.send(
        publish_bytes(1, "", "q", bodies(7, 1)[0], properties=BasicProperties(delivery_mode=2))
    )
    moving.begin()
    assert moving.queue.kind == "quorum"
    assert moving.migrations.progress()[0].state == "finishing"
    client.call(1, spec.Tx.Commit())
    moving.settle(1.0)
    assert client.names() == ["Tx.CommitOk"]
    assert moving.stored() == bodies(7, 1)
    assert moving.migrations.progress() == []


def test_one_that_does_not_begin_leaves_what_others_have_in_the_stream(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    moving = Moving(bench)
    moving.publish(*bodies(0, 3))
    answers = iter(
        ("", "it has an exclusive consumer")
    )  # when the cluster, and when the disk has answered
    monkeypatch.setattr(migrations_module, "obstacle", lambda *_: next(answers))
    moving.begin()
    moving.settle(2.0)
    assert moving.told == ["it has an exclusive consumer"]
    assert list(bench.world.streams), "it may have been there before"
    assert (moving.notes, moving.queue.kind, moving.queue.ready_count) == ([], "classic", 3)
    assert not moving.migrations.is_under_way("/", "q")


def test_a_limit_that_is_reached_while_nobody_is_served_ends_that(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mover_module, "CHUNK", 1)
    moving = Moving(bench, **{"x-max-length": 3, "x-overflow": "reject-publish"})
    moving.consume(prefetch_count=1)
    moving.publish(*bodies(0, 4))  # one is handed out
    moving.migrations.begin(bench.vhost, moving.queue, moving.told.append)
    while not (found := moving.migrations.progress()) or found[0].moved_count < 2:
        bench.settle(0.01)
    assert found[0].state == "moving"
    moving.publish(*bodies(4, 2))  # the old one has room again, the new one has not
    moving.settle(3.0)
    assert moving.migrations.progress()[0].state == "finishing"
    taken: list[bytes] = []
    while came := moving.taken():
        taken += [body for _, body in came]
        moving.do(spec.Basic.Ack(delivery_tag=came[-1][0]))
        moving.settle(8.0)
    assert sorted(taken) == bodies(0, 6)
    assert moving.migrations.progress() == []


def test_what_waits_for_its_successor_does_not_expire(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    moving = Moving(bench, **{"x-expires": 1_000})
    moving.publish(*bodies(0, 3))
    stored = bench.world._stored
    monkeypatch.setattr(bench.world, "_stored", lambda *_: None)  # all is answered but this
    moving.begin()
    moving.settle(12.0)
    assert moving.migrations.progress()[0].state == "moving"
    assert len(bench.world.streams) == 1
    monkeypatch.setattr(bench.world, "_stored", stored)
    moving.settle(1.5)
    assert moving.stored() == bodies(0, 3)


def test_a_policy_that_changes_meanwhile_is_in_force(bench: ClusterBench) -> None:
    moving = Moving(bench)
    moving.publish(*bodies(0, 3))
    moving.begin_silently()
    policy = Policy(
        name="p", pattern="q", definition={"message-ttl": 60_000}, apply_to="all", priority=0
    )
    parameters.set_policy(bench.vhost, policy)
    bench.world.is_silent = False
    moving.settle(3.0)
    assert moving.queue.kind == "quorum"
    assert moving.queue.settings.message_ttl_ms == 60_000


def test_policies_for_classic_queues_stay_in_force(monkeypatch: pytest.MonkeyPatch) -> None:
    moving = Moving(ClusterBench(monkeypatch))
    definition = {"ha-mode": "all", "message-ttl": 60_000}
    policy = Policy(name="p", pattern="q", definition=definition, apply_to="classic_queues")
    moving.bench.perform(lambda: parameters.set_policy(moving.bench.vhost, policy))
    moving.publish(b"1")
    moving.begin()
    moving.settle(1)
    assert isinstance(moving.queue, ReplicatedQueue)
    assert moving.queue.settings.message_ttl_ms == 60_000


def test_the_old_queue_stays_while_only_its_files_have_dead_letters_that_the_disk_refuses(
    bench: ClusterBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    moving = Moving(bench)
    moving.publish(b"0")
    monkeypatch.setattr(bench.engine, "owed_copies", lambda *_: "bad")
    moving.begin()
    moving.settle(5.0)
    assert [each.state for each in moving.migrations.progress()] == ["finishing"]
    assert moving.notes, "a start goes on with it"
    monkeypatch.setattr(bench.engine, "owed_copies", lambda *_: "")
    moving.settle(5.0)
    assert moving.migrations.progress() == []
    assert not moving.notes
