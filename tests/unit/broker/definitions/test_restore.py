"""burrowmq.broker.definitions.restore: the first start, what comes back, and rows that cannot be used."""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.broker.definitions.restore import (
    delete_vhost,
    highest_levels,
    put_vhost,
)
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.broker.rules.auth import TopicPermission
from burrowmq.broker.vhost.vhost import Edge, ExchangeDeclaration
from burrowmq.broker.words.resource import row_key
from burrowmq.protocol.table import Long
from tests.support.bench.broker import BrokerBench


def restarted(node: BrokerBench) -> BrokerBench:
    again = BrokerBench(node.engine.definitions.load())
    assert again.unusable == []
    assert again.engine.definitions.changes == [], "restoring writes nothing"
    return again


def test_the_first_start() -> None:
    node = BrokerBench()
    user = node.auth.authenticate("guest", "guest", is_loopback=True)
    assert user.tags == ("administrator",)
    assert node.auth.may_enter(user, "/")
    assert node.auth.may("guest", "/", "configure", "anything")
    assert list(node.vhosts) == ["/"]


def test_users_and_vhosts_come_back() -> None:
    node = BrokerBench()
    other = node.create_vhost("other")
    assert node.create_vhost("other") is other
    assert node.vhosts_made == ["/", "other"]
    node.auth.set_topic_permission("/", "guest", "t", TopicPermission(write="^a", read="^b"))
    other.default_queue_type = "classic"
    put_vhost(other, node.engine.definitions)
    again = restarted(node)
    assert sorted(again.vhosts) == ["/", "other"]
    assert [again.vhosts[name].default_queue_type for name in ("/", "other")] == ["", "classic"]
    assert again.auth.users == node.auth.users
    assert again.auth.permissions == node.auth.permissions
    assert again.auth.topic_permissions == node.auth.topic_permissions


def test_topology_comes_back() -> None:
    node = BrokerBench()
    vhost = node.vhosts["/"]
    arguments: Any = {"x-max-length": Long(5), "other": [1, None]}
    vhost.declare_queue(
        QueueDeclaration(name="q", durable=True, auto_delete=True, arguments=arguments)
    )
    vhost.declare_queue(QueueDeclaration(name="transient"))
    vhost.declare_exchange(
        ExchangeDeclaration(
            name="x",
            type="headers",
            durable=True,
            internal=True,
            arguments={"alternate-exchange": "amq.fanout"},
        )
    )
    vhost.bind(Edge("x", "queue", "q", b"k.\xc3\xa9", {"x-match": "any", "n": Long(1)}))
    vhost.bind(Edge("amq.topic", "exchange", "x", b"#", {}))
    vhost.bind(Edge("amq.topic", "queue", "transient", b"#", {}))
    again = restarted(node).vhosts["/"]
    assert list(again.queues) == ["q"]
    queue: Any = again.queue("q")
    assert queue.durable
    assert queue.auto_delete
    assert queue.arguments == arguments
    assert isinstance(queue.arguments["x-max-length"], Long)
    assert queue.settings.max_length == 5
    exchange = again.exchange("x")
    assert (exchange.type, exchange.internal, exchange.alternate) == ("headers", True, "amq.fanout")
    assert [each.identity for each in exchange.bindings] == [
        each.identity for each in vhost.exchange("x").bindings
    ]
    assert [each.destination for each in again.exchange("amq.topic").bindings] == [exchange]


def test_what_cannot_be_used_is_named_and_the_rest_comes_back() -> None:
    vhost = {"name": "/", "description": "", "tags": []}
    binding = {
        "vhost": "/",
        "source": "x",
        "kind": "queue",
        "destination": "q",
        "routing_key": "",
        "arguments": "",
    }
    queue = {"vhost": "/", "name": "q", "auto_delete": False, "arguments": ""}
    exchange = {**queue, "name": "x", "type": "x-delayed", "internal": False}
    permission = {"vhost": "/", "user": "u", "configure": "(", "write": "", "read": ""}
    node = BrokerBench(
        [
            ("queue", row_key("/", "q"), queue),
            ("queue", row_key("/", "q2"), queue),
            ("queue", row_key("gone", "q"), {**queue, "vhost": "gone"}),
            ("binding", "b", binding),
            ("exchange", "e", exchange),
            ("permission", "p", permission),
            ("user", "u", {"name": 1, "password_hash": "", "hashing_algorithm": "", "tags": []}),
            ("policy", "pol", {"vhost": "/", "definition": 1, "priority": 0}),
            ("stranger", "s", {}),
            ("queue", "n", 5),
            ("vhost", row_key("/"), vhost),
            ("vhost", "bad", {"name": "v", "description": "", "tags": "x"}),
        ]
    )
    assert sorted(each.key for each in node.unusable) == sorted(
        [row_key("/", "q2"), row_key("gone", "q"), "b", "e", "p", "u", "pol", "s", "n", "bad"]
    )
    assert list(node.vhosts["/"].queues) == ["q"]


def test_policies_are_in_force_before_queues_are_made() -> None:
    policy = {
        "vhost": "/",
        "name": "p",
        "pattern": "^q",
        "apply_to": "queues",
        "priority": 1,
        "definition": {"max-length": 7},
    }
    node = BrokerBench(
        [
            (
                "queue",
                "q",
                {"vhost": "/", "name": "q", "auto_delete": False, "arguments": ""},
            ),
            ("policy", "p", policy),
            ("policy", "o", {**policy, "is_operator": True, "definition": {"max-length": 3}}),
            ("vhost", "/", {"name": "/", "description": "", "tags": []}),
        ]
    )
    assert node.unusable == []
    assert node.vhosts["/"].queue("q").settings.max_length == 3


def test_a_deleted_vhost_leaves_no_row() -> None:
    node = BrokerBench()
    vhost = node.create_vhost("v")
    before = dict(node.engine.definitions.rows)
    del before[("vhost", row_key("v"))]
    vhost.declare_exchange(ExchangeDeclaration(name="x", durable=True))
    vhost.declare_queue(QueueDeclaration(name="q", durable=True))
    vhost.bind(Edge("x", "queue", "q", b"", {}))
    node.auth.set_permission("v", "guest", node.auth.permissions[("/", "guest")])
    delete_vhost(vhost, node.vhosts, node.auth, node.engine.definitions)
    assert node.engine.definitions.rows == before
    assert list(node.vhosts) == ["/"]


def test_the_levels_of_queues_are_known_from_their_rows() -> None:
    node = BrokerBench()
    vhost = node.vhosts["/"]
    for name, arguments in (
        ("none", {}),
        ("q", {"x-max-priority": Long(3)}),
        ("q\x001", {"x-max-priority": Long(255)}),
    ):
        vhost.declare_queue(
            QueueDeclaration(name=name, durable=True, auto_delete=False, arguments=arguments)
        )
    rows = node.engine.definitions.load()
    others = [
        ("queue", "a", 5),
        ("queue", "c", {"vhost": "/", "arguments": ""}),
        ("exchange", "d", {"vhost": "/", "name": "d", "arguments": ""}),
    ]
    assert highest_levels([*rows, *others]) == {("/", "q"): 3, ("/", "q\x001"): 255}


@pytest.mark.parametrize(
    "row",
    [
        ("queue", "?", {"vhost": "/", "name": "b", "arguments": "?"}),
        ("queue", row_key("/", "b"), {"vhost": "/", "name": "b"}),
        ("queue", row_key("/", "b"), {"vhost": "/"}),
        ("queue", row_key("/", "b"), [5]),
        ("queue", row_key("/", "b"), None),
    ],
)
def test_a_queue_whose_row_cannot_be_used_may_have_any_level(row: tuple[str, str, object]) -> None:
    assert highest_levels([row]) == {("/", "b"): 255}
    # As a level was called in format 1; whose it is says its own row.
    named = ("queue", row_key("/", "b\x003"), {"vhost": "/", "name": "b\x003", "arguments": ""})
    elsewhere = ("queue", row_key("v", "b\x001"), None)
    assert highest_levels([row, named, elsewhere]) == {("/", "b"): 2, ("v", "b\x001"): 255}


@pytest.mark.parametrize("key", ["", "5", "[]", '["/"]', '["/","b","c"]', "[" * 100_000])
def test_a_row_that_names_no_queue_has_no_levels(key: str) -> None:
    assert highest_levels([("queue", key, None)]) == {}


def test_bindings_whose_order_counts_are_listed_in_it() -> None:
    bench = BrokerBench()
    declared = ExchangeDeclaration(name="h", type="x-consistent-hash", durable=True)
    bench.vhost.declare_exchange(declared)
    names = ["c", "a", "b"]
    for name in names:
        bench.vhost.declare_queue(QueueDeclaration(name=name, durable=True))
        bench.vhost.bind(Edge("h", "queue", name, b"1", {}))
    # The store gives rows in the order of their keys; a damaged one costs no other.
    rows = sorted(bench.engine.definitions.load(), key=lambda row: row[:2])
    rows += [("binding", "z", {"vhost": "/", "place": "first"})]
    again = BrokerBench(rows)
    assert [row.key for row in again.unusable] == ["z"]
    assert [each.destination.name for each in again.vhost.exchanges["h"].bindings] == names
