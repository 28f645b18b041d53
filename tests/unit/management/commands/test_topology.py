"""Queues, exchanges and bindings through the API: what is made, what is refused and in which words."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from burrowmq.management.answers.reply import ApiError
from burrowmq.management.commands import topology
from burrowmq.protocol.errors import AmqpError
from tests.support.bench.node import NodeBench
from tests.support.served import Served
from tests.support.served_cluster import serving_with_cluster

PLAIN = (True, False, False)


def test_a_queue_is_new_once_and_kept(bench: NodeBench) -> None:
    def declare() -> bool:
        return topology.declare_queue(bench.node, "/", "q", True, False, {"x-max-length": 3})

    assert bench.perform(declare)
    assert not bench.perform(declare)
    queue = topology.queue_of(bench.node, "/", "q")
    assert (queue.durable, queue.settings.max_length) == (True, 3)
    assert ("queue", '["/","q"]') in [row[:2] for row in bench.store.load()]


def test_a_queue_that_differs_is_refused_as_over_amqp(bench: NodeBench) -> None:
    with pytest.raises(AmqpError, match="inequivalent arg 'durable' for queue 'lazy'"):
        topology.declare_queue(bench.node, "/", "lazy", False, False, {})


def test_the_default_queue_type_of_the_vhost_is_filled_in(bench: NodeBench) -> None:
    bench.node.vhosts["/"].default_queue_type = "classic"
    bench.perform(lambda: topology.declare_queue(bench.node, "/", "q", True, False, {}))
    assert topology.queue_of(bench.node, "/", "q").arguments == {"x-queue-type": "classic"}


@pytest.mark.parametrize("name", ["amq.mine", "amq."])
def test_names_of_the_broker_are_refused(bench: NodeBench, name: str) -> None:
    node = bench.node
    with pytest.raises(ApiError, match="401 not_authorised: Access refused"):
        topology.declare_queue(node, "/", name, True, False, {})
    with pytest.raises(ApiError, match="401 not_authorised: Access refused"):
        topology.declare_exchange(node, "/", name, "direct", PLAIN, {})
    with pytest.raises(ApiError, match="401 not_authorised: Access refused"):
        topology.delete_exchange(node, "/", name, if_unused=False)


def test_the_brokers_own_exchange_may_be_declared_as_it_is(bench: NodeBench) -> None:
    assert not topology.declare_exchange(bench.node, "/", "amq.direct", "direct", PLAIN, {})


def test_what_is_not_there_is_not_found(bench: NodeBench) -> None:
    for step in (topology.queue_of, topology.purge, topology.delete_queue):
        with pytest.raises(ApiError, match="404"):
            step(bench.node, "/", "nope")


def test_a_purge_says_how_many_went_and_a_deletion_takes_the_row(bench: NodeBench) -> None:
    assert bench.perform(lambda: topology.purge(bench.node, "/", "lazy")) == 3
    bench.perform(lambda: topology.delete_queue(bench.node, "/", "lazy"))
    assert "lazy" not in bench.node.vhosts["/"].queues
    assert ("queue", '["/","lazy"]') not in [row[:2] for row in bench.store.load()]


def test_an_exclusive_queue_is_its_connections_but_for_burrowctl(bench: NodeBench) -> None:
    queue = bench.queue("mine", durable=False, owner=object())

    def call(*, is_trusted: bool) -> Any:
        return cast(
            "Any", SimpleNamespace(node=bench.node, caller=SimpleNamespace(is_trusted=is_trusted))
        )

    topology.require_access(call(is_trusted=True), "/", queue)
    with pytest.raises(AmqpError, match="cannot obtain exclusive access to locked queue 'mine'"):
        topology.require_access(call(is_trusted=False), "/", queue)


def test_an_exchange_has_the_flags_that_were_asked_for(bench: NodeBench) -> None:
    flags = (True, False, True)

    def declare() -> bool:
        return topology.declare_exchange(bench.node, "/", "e", "topic", flags, {"x": 1})

    assert bench.perform(declare)
    assert not bench.perform(declare)
    exchange = bench.node.vhosts["/"].exchanges["e"]
    assert (exchange.durable, exchange.auto_delete, exchange.internal) == flags
    assert ("exchange", '["/","e"]') in [row[:2] for row in bench.store.load()]
    bench.perform(lambda: topology.delete_exchange(bench.node, "/", "e", if_unused=False))
    assert "e" not in bench.node.vhosts["/"].exchanges


def test_an_unknown_type_is_named(bench: NodeBench) -> None:
    with pytest.raises(ApiError, match="400 bad_request: unknown exchange type 'x-unheard-of'"):
        topology.declare_exchange(bench.node, "/", "e", "x-unheard-of", PLAIN, {})


def test_an_exchange_in_use_stays_if_that_is_asked_for(bench: NodeBench) -> None:
    node = bench.node
    bench.perform(lambda: topology.declare_exchange(node, "/", "e", "direct", PLAIN, {}))
    bench.perform(lambda: topology.bind(node, "/", "e", ("queue", "lazy"), "k", {}))
    with pytest.raises(AmqpError, match="exchange 'e' in vhost '/' in use"):
        topology.delete_exchange(node, "/", "e", if_unused=True)


@pytest.mark.parametrize(
    ("kind", "name"), [("queue", "lazy"), ("exchange", "amq.fanout")], ids=["queue", "exchange"]
)
def test_a_binding_comes_and_goes(bench: NodeBench, kind: str, name: str) -> None:
    node = bench.node
    bench.perform(lambda: topology.bind(node, "/", "amq.direct", (kind, name), "k\udcff", {"a": 1}))
    (binding,) = [
        each for each in node.vhosts["/"].exchanges["amq.direct"].bindings if each.arguments
    ]
    assert (binding.destination_kind, binding.routing_key) == (kind, b"k\xff")
    assert "binding" in [row[0] for row in bench.store.load()]
    bench.perform(lambda: topology.unbind(node, "/", binding))
    assert binding not in node.vhosts["/"].exchanges["amq.direct"].bindings


def test_names_are_no_longer_than_a_client_can_send(served: Served) -> None:
    refused = served.api("PUT", "/api/queues/%2F/" + "q" * 300, {})
    assert (refused.status, refused.body["reason"]) == (
        400,
        "queue should be less than 255 bytes, actually was 300\n",
    )
    assert served.api("PUT", "/api/exchanges/%2F/" + "x" * 256, {}).status == 400
    path = "/api/bindings/%2F/e/amq.topic/q/orders"
    assert served.api("POST", path, {"routing_key": "k" * 256}).status == 400
    assert served.api("PUT", "/api/queues/%2F/" + "q" * 255, {}).status == 201


def test_a_queue_that_policies_mirror_is_a_quorum_queue_over_http_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with serving_with_cluster(tmp_path, monkeypatch, mirrored="quorum") as cluster:
        served = cluster.served
        policy = {"pattern": "^q", "definition": {"ha-mode": "all", "message-ttl": 9_000}}
        assert served.api("PUT", "/api/policies/%2F/ha", policy).status == 201
        for asked, status in (({}, 201), ({}, 204), ({"x-queue-type": "classic"}, 204)):
            body = {"durable": True, "arguments": asked}
            assert served.api("PUT", "/api/queues/%2F/q", body).status == status
        body = {"durable": True, "arguments": {"x-max-priority": 5}}
        assert served.api("PUT", "/api/queues/%2F/q2", body).status == 201
        assert served.get("/api/queues/%2F/q2")["type"] == "classic"
        ((_, name, reason),) = served.bench.observer.named("queue_not_mirrored")
        assert (name, "x-max-priority" in reason) == ("q2", True)
        row = served.get("/api/queues/%2F/q")
        assert (row["type"], row["policy"]) == ("quorum", "ha")
        assert row["effective_policy_definition"]["message-ttl"] == 9_000
        path = "/api/burrowmq/list/matching_policies?vhost=%2F&kind=queue&name=q&columns=name"
        assert served.get(path)["rows"] == [["ha"]]
        (page,) = served.get("/api/burrowmq/pages/policies")
        assert page["name"] == "ha"
        preview = served.api(
            "POST", "/api/burrowmq/pages/policy-preview/%2F", {**policy, "name": "ha"}
        )
        assert preview.body["matched"] == 2
