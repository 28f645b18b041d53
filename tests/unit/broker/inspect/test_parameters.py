"""burrowmq.broker.inspect.parameters: rows with the HTTP API's keys."""

from __future__ import annotations

from burrowmq.broker import inspect
from burrowmq.broker.definitions import parameters
from burrowmq.broker.rules.auth import TopicPermission
from burrowmq.broker.rules.parameter_rules import make_policy
from tests.support.bench.node import NodeBench


def test_rows(bench: NodeBench) -> None:
    node, vhost = bench.node, bench.node.vhosts["/"]
    assert inspect.policies(node) == inspect.parameters(node) == []
    document = {"pattern": "^q", "definition": {"max-length": 1}, "priority": 2}
    parameters.set_policy(vhost, make_policy("p", document))
    parameters.set_policy(vhost, make_policy("o", document), is_operator=True)
    parameters.set_vhost_limits(vhost, {"max-queues": 1})
    node.parameters.put("gp", [1])
    node.auth.set_limits("guest", {"max-channels": 1})
    node.auth.set_topic_permission("/", "guest", "x", TopicPermission(write="a", read="b"))
    row = {
        "vhost": "/", "name": "p", "pattern": "^q", "apply-to": "all", "definition": {"max-length": 1},
        "priority": 2,
    }  # fmt: skip
    assert inspect.policies(node) == [row]
    assert inspect.policies(node, "/", is_operator=True) == [{**row, "name": "o"}]
    assert inspect.policies(node, "nope") == []
    assert [each["component"] for each in inspect.parameters(node)] == [
        "vhost-limits",
        "operator_policy",
    ]
    assert inspect.parameters(node, "/", "operator_policy")[0]["value"]["pattern"] == "^q"
    assert inspect.global_parameters(node) == [
        {"name": "gp", "value": [1]},
        {"name": "internal_cluster_id", "value": node.parameters.cluster_id},
    ]
    assert inspect.vhost_limits(node) == [{"vhost": "/", "value": {"max-queues": 1}}]
    assert inspect.user_limits(node, "guest") == [{"user": "guest", "value": {"max-channels": 1}}]
    assert inspect.topic_permissions(node, exchange="x")[0]["write"] == "a"
    assert inspect.topic_permissions(node, user="nobody") == []
