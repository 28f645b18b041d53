"""Virtual hosts go with what is in them."""

from __future__ import annotations

import pytest
from pika import spec

from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.management.commands import vhosts
from burrowmq.storage.directory import removals
from tests.support.bench.node import NodeBench
from tests.support.wire_client import publish_bytes


def test_deleting_a_vhost_closes_its_connections(bench: NodeBench) -> None:
    node = bench.node
    client = bench.connect(1, capabilities={"consumer_cancel_notify": True})
    client.call(1, spec.Basic.Consume(queue="lazy", consumer_tag="c"))
    client.read()
    bench.perform(lambda: list(vhosts.delete_vhost(node, "/")))
    cancel, close = (method for _, method in client.read() if method.NAME != "Basic.Deliver")
    assert (cancel.NAME, cancel.consumer_tag) == ("Basic.Cancel", "c")
    assert close.reply_text == "CONNECTION_FORCED - vhost '/' is deleted"
    assert node.vhosts == {}
    assert node.auth.permissions == {}
    left = [row[:2] for row in bench.store.load() if row[0] != removals.KIND]
    assert left == [("parameter", '["global","internal_cluster_id"]'), ("user", '["guest"]')]


def test_a_vhost_goes_in_steps_and_with_what_came_meanwhile(bench: NodeBench) -> None:
    node = bench.node
    bench.perform(lambda: vhosts.add_vhost(node, "v", "guest"))
    owner = node.vhosts["v"]
    for number in range(2 * vhosts.DELETED_PER_TURN):
        owner.declare_queue(QueueDeclaration(name=f"q{number}", durable=True))
    steps = vhosts.delete_vhost(node, "v")
    bench.perform(lambda: next(steps))
    assert len(owner.queues) == vhosts.DELETED_PER_TURN
    client = bench.connect(1, vhost="v")
    client.call(1, spec.Queue.Declare(queue="late", durable=True))
    beside = vhosts.delete_vhost(node, "v")  # a second request
    bench.perform(lambda: next(beside))
    bench.perform(lambda: [*steps, *beside])
    assert client.read()[-1][1].reply_text == "CONNECTION_FORCED - vhost 'v' is deleted"
    assert "v" not in node.vhosts
    assert not [key for _, key, _ in bench.store.load() if '"v"' in key]


def test_another_vhost_of_the_name_is_left_alone(bench: NodeBench) -> None:
    node = bench.node
    bench.perform(lambda: vhosts.add_vhost(node, "v", "guest"))
    for number in range(vhosts.DELETED_PER_TURN):
        node.vhosts["v"].declare_queue(QueueDeclaration(name=f"q{number}"))
    slow = vhosts.delete_vhost(node, "v")
    bench.perform(lambda: next(slow))
    bench.perform(lambda: list(vhosts.delete_vhost(node, "v")))
    bench.perform(lambda: vhosts.add_vhost(node, "v", "guest"))
    bench.queue("q0", vhost="v")
    bench.perform(lambda: list(slow))
    assert list(node.vhosts["v"].queues) == ["q0"]


@pytest.mark.parametrize("creator", [None, "guest"])
def test_whoever_makes_a_vhost_may_do_everything_in_it(
    bench: NodeBench, creator: str | None
) -> None:
    node = bench.node
    bench.perform(lambda: vhosts.add_vhost(node, "v", creator))
    found = {
        key: (each.configure, each.write, each.read)
        for key, each in node.auth.permissions.items()
        if key[0] == "v"
    }
    assert found == ({} if creator is None else {("v", creator): (".*", ".*", ".*")})
    assert ("vhost", '["v"]') in [row[:2] for row in bench.store.load()]


def test_what_is_not_named_of_a_description_stays(bench: NodeBench) -> None:
    node, owner = bench.node, bench.node.vhosts["/"]
    bench.perform(lambda: vhosts.describe_vhost(node, "/", "mine", ["a"], "classic"))
    bench.perform(lambda: vhosts.describe_vhost(node, "/", None, ["b"]))
    assert (owner.description, owner.tags, owner.default_queue_type) == ("mine", ["b"], "classic")
    (row,) = [row[2] for row in bench.store.load() if row[0] == "vhost"]
    assert (row["description"], row["tags"]) == ("mine", ["b"])


def test_tracing_copies_messages_until_it_is_turned_off(bench: NodeBench) -> None:
    node = bench.node
    client = bench.connect(1)
    client.call(1, spec.Queue.Declare(queue="seen"))
    bind = spec.Queue.Bind(queue="seen", exchange="amq.rabbitmq.trace", routing_key="publish.#")
    client.call(1, bind)
    seen = node.vhosts["/"].queues["seen"]
    for is_on, expected in ((True, 1), (True, 2), (False, 2)):
        bench.perform(lambda each=is_on: vhosts.set_tracing(node, "/", each))
        client.send(publish_bytes(1, "", "lazy", b"x"))
        assert seen.ready_count == expected
