"""Virtual hosts go with what is in them."""

from __future__ import annotations

from pika import spec

from burrowmq.management.commands import vhosts
from tests.support.bench.node import NodeBench


def test_deleting_a_vhost_closes_its_connections(bench: NodeBench) -> None:
    node = bench.node
    client = bench.connect(1, capabilities={"consumer_cancel_notify": True})
    client.call(1, spec.Basic.Consume(queue="lazy", consumer_tag="c"))
    client.read()
    bench.perform(lambda: vhosts.delete_vhost(node, "/"))
    cancel, close = (method for _, method in client.read() if method.NAME != "Basic.Deliver")
    assert (cancel.NAME, cancel.consumer_tag) == ("Basic.Cancel", "c")
    assert close.reply_text == "CONNECTION_FORCED - vhost '/' is deleted"
    assert node.vhosts == {}
    assert node.auth.permissions == {}
    assert [row[:2] for row in bench.store.load()] == [("user", '["guest"]')]
