"""burrowmq.broker.inspect.parameters: rows with the HTTP API's keys."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

from burrowmq.broker import inspect
from burrowmq.broker.definitions import parameters
from burrowmq.broker.definitions.restore import EVERYTHING
from burrowmq.broker.rules.auth import TopicPermission
from burrowmq.broker.rules.parameter_rules import make_policy
from tests.support.bench.node import NodeBench

NARROW = TopicPermission(write="a", read="b")


def test_rows(bench: NodeBench) -> None:
    node, vhost = bench.node, bench.node.vhosts["/"]
    assert not [*inspect.policies(node), *inspect.parameters(node)]
    document = {"pattern": "^q", "definition": {"max-length": 1}, "priority": 2}
    parameters.set_policy(vhost, make_policy("p", document))
    parameters.set_policy(vhost, make_policy("o", document), is_operator=True)
    parameters.set_vhost_limits(vhost, {"max-queues": 1})
    node.parameters.put("gp", [1])
    node.auth.set_limits("guest", {"max-channels": 1})
    node.auth.set_topic_permission("/", "guest", "x", NARROW)
    row = {
        "vhost": "/", "name": "p", "pattern": "^q", "apply-to": "all", "definition": {"max-length": 1},
        "priority": 2,
    }  # fmt: skip
    assert list(inspect.policies(node)) == [row]
    assert list(inspect.policies(node, "/", is_operator=True)) == [{**row, "name": "o"}]
    assert not list(inspect.policies(node, "nope"))
    assert [each["component"] for each in inspect.parameters(node)] == [
        "vhost-limits",
        "operator_policy",
    ]
    (parameter,) = inspect.parameters(node, "/", "operator_policy")
    assert parameter["value"]["pattern"] == "^q"
    (parameter,) = inspect.parameters(node, component="policy")
    assert parameter == {
        "value": {
            "pattern": "^q",
            "definition": {"max-length": 1},
            "priority": 2,
            "apply-to": "all",
        },
        "vhost": "/",
        "component": "policy",
        "name": "p",
    }
    assert list(inspect.global_parameters(node)) == [
        {"name": "gp", "value": [1]},
        {"name": "internal_cluster_id", "value": node.parameters.cluster_id},
    ]
    assert list(inspect.vhost_limits(node)) == [{"vhost": "/", "value": {"max-queues": 1}}]
    (limits,) = inspect.user_limits(node, "guest")
    assert limits == {"user": "guest", "value": {"max-channels": 1}}
    assert inspect.topic_permissions(node, exchange="x")[0]["write"] == "a"
    assert inspect.topic_permissions(node, user="nobody") == []


def test_rows_are_made_when_they_are_asked_for(bench: NodeBench) -> None:
    """As many other requests come between two of them: what goes meanwhile is not shown, and is nobody's error."""
    node, vhost = bench.node, bench.node.vhosts["/"]
    policy = make_policy("", {"pattern": "^q", "definition": {"max-length": 1}})
    vhost.component_values["shovel"] = {}
    lists = {
        "topic permissions": (
            inspect.each_topic_permission,
            lambda name: node.auth.set_topic_permission("/", "guest", name, NARROW),
            lambda name: node.auth.clear_topic_permissions("/", "guest", name),
        ),
        "permissions": (
            inspect.each_permission,
            lambda name: node.auth.set_permission("/", name, EVERYTHING),
            lambda name: node.auth.clear_permission("/", name),
        ),
        "global parameters": (
            inspect.global_parameters,
            lambda name: node.parameters.put(name, 1),
            node.parameters.remove,
        ),
        "policies": (
            inspect.policies,
            lambda name: parameters.set_policy(vhost, replace(policy, name=name)),
            lambda name: parameters.clear_policy(vhost, name),
        ),
        "operator policies": (
            inspect.parameters,
            lambda name: parameters.set_policy(vhost, replace(policy, name=name), is_operator=True),
            lambda name: parameters.clear_policy(vhost, name, is_operator=True),
        ),
        "shovels": (
            partial(inspect.parameters, component="shovel"),
            lambda name: vhost.component_values["shovel"].update({name: 1}),
            vhost.component_values["shovel"].pop,
        ),
        "limits": (
            inspect.user_limits,
            lambda name: node.auth.set_limits(name, {"max-channels": 1}),
            node.auth.delete_user,
        ),
    }
    for title, (rows, put, remove) in lists.items():
        for name in ("1st", "2nd", "3rd"):
            if title in ("permissions", "limits"):
                node.auth.set_password(name, "x")
            put(name)
        asked = rows(node)
        first = next(asked)
        assert "1st" in first.values(), title
        remove("2nd")
        rest = list(asked)
        assert not [row for row in rest if "2nd" in row.values()], title
        assert [row for row in rest if "3rd" in row.values()], title
