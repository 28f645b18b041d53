"""Length limits equal a list model that takes one message after the other: what is ready, what died, in which order.

Publishes come as whole reads, with keys that alternate, in a transaction or with confirms; the disk answers late. After
each of them no more is ready than the model says. The same is done with a store in memory and with both backends of the
real one, and by both codecs, since the tests run at both speeds.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pika import BasicProperties, spec

from burrowmq.broker.definitions import parameters
from burrowmq.broker.rules.policy import Policy
from burrowmq.config.store import StoreConfig
from tests.support.bench.broker import BrokerBench
from tests.support.bench.node import NodeBench
from tests.support.wire_client import method_bytes, publish_bytes

NO_LIMIT = 1 << 60
REASONS = ("maxlen", "expired", "rejected")


@dataclass
class Model:
    """RabbitMQ's queue, message by message: numbers with (priority, size, expires at once)."""

    max_length: int
    max_bytes: int
    overflow: str
    has_priorities: bool
    ready: list[int] = field(default_factory=list)
    unacked: list[int] = field(default_factory=list)
    dead: list[tuple[str, int]] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)
    sent: list[tuple[int, int, bool]] = field(default_factory=list)

    def place(self, number: int) -> tuple[int, int]:
        """By which the order of delivery goes."""
        return (-self.sent[number][0] if self.has_priorities else 0, number)

    def over(self, count: int, size: int) -> bool:
        return count > self.max_length or size > self.max_bytes

    @property
    def size(self) -> int:
        return sum(self.sent[number][1] for number in self.ready)

    def publish(self, priority: int, size: int, is_due: bool) -> None:
        number = len(self.sent)
        self.sent.append((priority, size, is_due))
        if self.overflow != "drop-head" and self.over(len(self.ready) + 1, self.size + size):
            self.refused.append(number)
            if self.overflow == "reject-publish-dlx":
                self.dead.append(("maxlen", number))
            return
        self.ready = sorted([*self.ready, number], key=self.place)
        self.enforce()
        if len(self.ready) == 1:
            self.expire()

    def enforce(self) -> None:
        if self.overflow == "drop-head":
            while self.ready and self.over(len(self.ready), self.size):
                self.dead.append(("maxlen", self.ready.pop(0)))
                self.expire()

    def expire(self) -> None:
        while self.ready and self.sent[self.ready[0]][2]:
            self.dead.append(("expired", self.ready.pop(0)))

    def requeue(self) -> None:
        """What comes back at once: here, other than in RabbitMQ, one level after the other."""
        levels: dict[int, list[int]] = {}
        for number in self.unacked:
            levels.setdefault(self.place(number)[0], []).append(number)
        self.unacked.clear()
        for returned in levels.values():
            self.ready = sorted([*self.ready, *returned], key=self.place)
            self.enforce()
            self.expire()


one = st.tuples(st.integers(0, 3), st.integers(0, 4), st.sampled_from([False] * 5 + [True]))
steps = st.lists(
    st.one_of(
        st.tuples(st.just("publish"), st.lists(one, min_size=1, max_size=12)),
        st.tuples(st.just("publish"), st.lists(one, min_size=1, max_size=12)),
        st.tuples(st.just("get"), st.integers(1, 3)),
        st.tuples(st.just("requeue"), st.none()),
        st.tuples(st.just("reject"), st.none()),
        st.tuples(st.just("read"), st.none()),
    ),
    min_size=1,
    max_size=12,
)


class World:
    """A broker with the queue `q` under limits; its dead letters go to `dead`, another key's messages to `other`."""

    def __init__(
        self, bench: BrokerBench | NodeBench, model: Model, mode: str, how: str, **options: Any
    ) -> None:
        self.bench = bench
        self.model = model
        self.mode = mode
        self.persistent = options["persistent"]
        node = bench if isinstance(bench, BrokerBench) else bench.node
        self.vhost, self.metrics = node.vhosts["/"], node.metrics
        self.died_before = {reason: self.died(reason) for reason in REASONS}
        limits: dict[str, Any] = {"x-overflow": model.overflow}
        if model.max_length != NO_LIMIT:
            limits["x-max-length"] = model.max_length
        if model.max_bytes != NO_LIMIT:
            limits["x-max-length-bytes"] = model.max_bytes
        arguments = {
            "x-dead-letter-exchange": "",
            "x-dead-letter-routing-key": "dead",
            "x-queue-mode": options["queue_mode"],
            "x-queue-version": options["version"],
        }
        if model.has_priorities:
            arguments["x-max-priority"] = 3
        if how == "argument":
            arguments |= limits
        else:
            definition = {name[2:]: value for name, value in limits.items()}
            policy = Policy(name="p", pattern="^q$", apply_to="queues", definition=definition)
            parameters.set_policy(self.vhost, policy)
        for name, given_arguments in (("q", arguments), ("other", {}), ("dead", {})):
            self.bench.queue(name, durable=True, arguments=given_arguments)
        self.client = self.bench.connect(1)
        self.other = self.bench.connect(1)
        if mode != "plain":
            method = spec.Confirm.Select() if mode == "confirm" else spec.Tx.Select()
            self.client.call(1, method)
        self.queue = self.vhost.queues["q"]
        self.tags: list[int] = []

    def died(self, reason: str) -> int:
        """How many messages of the node have died of it."""
        return int(getattr(self.metrics, f"dead_lettered_{reason}"))

    def end(self) -> None:
        """Nothing of it stays in its node."""

        def delete() -> None:
            for name in ("q", "other", "dead"):
                self.vhost.delete_queue(self.vhost.queues[name])
            parameters.clear_policy(self.vhost, "p")

        self.settle()
        for client in (self.client, self.other):
            client.lose()
        self.bench.perform(delete)
        self.settle()

    def publish(self, run: list[tuple[int, int, bool]]) -> None:
        data = []
        for priority, size, is_due in run:
            properties = BasicProperties(
                delivery_mode=2 if self.persistent else 1,
                priority=priority,
                expiration="0" if is_due else None,
                message_id=str(len(self.model.sent)),
            )
            data.append(publish_bytes(1, "", "q", b"x" * size, properties=properties))
            data.append(publish_bytes(1, "", "other", b""))
            self.model.publish(priority, size, is_due)
        if self.mode == "tx":
            data.append(method_bytes(1, spec.Tx.Commit()))
        self.client.send(*data)

    def settle(self) -> None:
        """The disk answers whatever it was asked, and syncs."""
        if isinstance(self.bench, NodeBench):
            self.bench.settle()
            return
        self.bench.run()
        while self.bench.engine.reads or self.bench.engine.in_flight is not None:
            self.bench.engine.answer_reads()
            if self.bench.engine.in_flight is not None:
                self.bench.engine.commit()
            self.bench.run()

    def get(self, queue: str, *, no_ack: bool = False) -> int | None:
        self.other.send(method_bytes(1, spec.Basic.Get(queue=queue, no_ack=no_ack)))
        self.settle()
        ((_, found),) = self.other.read()
        if found.NAME == "Basic.GetEmpty":
            return None
        if not no_ack:
            self.tags.append(found.delivery_tag)
        properties = BasicProperties()
        properties.decode(found.raw_header[12:])
        return int(properties.message_id)

    def let_go(self, *, requeue: bool) -> None:
        if self.tags:
            self.other.send(method_bytes(1, spec.Basic.Nack(0, multiple=True, requeue=requeue)))
        self.tags.clear()


queues = {
    "length": st.sampled_from([0, 1, 2, 5, NO_LIMIT]),
    "size": st.sampled_from([0, 3, 9, NO_LIMIT]),
    "overflow": st.sampled_from(["drop-head", "drop-head", "reject-publish", "reject-publish-dlx"]),
    "has_priorities": st.booleans(),
    "mode": st.sampled_from(["plain", "confirm", "tx"]),
    "how": st.sampled_from(["argument", "policy"]),
    "persistent": st.booleans(),
    "queue_mode": st.sampled_from(["default", "lazy"]),
    "version": st.sampled_from([1, 2]),
}


@settings(max_examples=100, deadline=None)
@given(steps, st.sampled_from(["bounded", "cached"]), st.fixed_dictionaries(queues))
def test_limits_equal_a_list(done, default_mode, options):
    check(BrokerBench(default_mode=default_mode, answers_later=True), done, default_mode, **options)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("has_disk_thread", "commit_log", "default_mode"),
    [(False, True, "bounded"), (False, False, "cached"), (True, True, "cached"), (True, False, "bounded")],
)  # fmt: skip
def test_the_store_agrees_with_the_list(tmp_path, has_disk_thread, commit_log, default_mode):
    """Both backends of the store, with and without the commit log: one node, in which worlds come and go."""
    store = StoreConfig(default_mode=default_mode, commit_log=commit_log)
    with NodeBench(tmp_path, has_disk_thread=has_disk_thread, store=store) as bench:

        @settings(max_examples=25, deadline=None)
        @given(steps, st.fixed_dictionaries(queues))
        def agrees(done, options):
            check(bench, done, default_mode, **options)

        agrees()


def check(
    bench: BrokerBench | NodeBench, done: list[Any], default_mode: str, **options: Any
) -> None:
    """Do these steps to a queue and to its model, and compare them after each."""
    length, size, overflow = options.pop("length"), options.pop("size"), options.pop("overflow")
    mode, has_priorities = options.pop("mode"), options.pop("has_priorities")
    if overflow != "drop-head" and mode == "tx":
        mode = "confirm"  # a commit of which a part is refused closes the channel
    model = Model(length, size, overflow, has_priorities)
    world = World(bench, model, mode, options.pop("how"), **options)
    # Elsewhere what has expired goes when its head was looked at, of which the model knows nothing.
    in_ram = (default_mode, options["queue_mode"]) == ("cached", "default")
    try:
        compare(world, done, may_expire=in_ram and not has_priorities and size == NO_LIMIT)
    finally:
        world.end()


def compare(world: World, done: list[Any], *, may_expire: bool) -> None:
    """Do the steps in both worlds."""
    model, mode = world.model, world.mode
    for name, what in done:
        if name == "publish":
            run = [(priority, each, is_due and may_expire) for priority, each, is_due in what]
            if mode == "tx":
                world.settle()  # a commit that waits holds the channel
            world.publish(run)
            if model.overflow == "drop-head":
                assert world.queue.ready_count <= model.max_length
                assert world.queue.ready_bytes <= model.max_bytes
            assert (world.queue.ready_count, world.queue.ready_bytes) == (
                len(model.ready),
                model.size,
            )
            continue
        world.settle()
        for _ in range(what or 0):
            found = world.get("q")
            assert found == (model.ready[0] if model.ready else None)
            if found is not None:
                model.unacked.append(model.ready.pop(0))
                model.expire()
        if name == "requeue":
            world.let_go(requeue=True)
            model.requeue()
        elif name == "reject":
            world.let_go(requeue=False)
            model.dead += [("rejected", number) for number in model.unacked]
            model.unacked.clear()
    world.settle()
    assert world.queue.ready_count == len(model.ready)
    assert world.vhost.queues["other"].ready_count == len(model.sent)
    dead = [world.get("dead", no_ack=True) for _ in model.dead]
    assert dead == [number for _, number in model.dead]
    assert world.get("dead", no_ack=True) is None
    for reason in REASONS:
        died = sum(each == reason for each, _ in model.dead)
        assert world.died(reason) - world.died_before[reason] == died
    while model.ready:
        assert world.get("q", no_ack=True) == model.ready.pop(0)
        model.expire()
    assert world.get("q", no_ack=True) is None
