"""burrowmq.broker.definitions.document: which bindings of a document are there already, and what it costs to know.

Covers: broker/definitions/document.py, broker/definitions/same_bindings.py
"""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.broker.definitions.document import import_document, import_steps
from burrowmq.broker.exchange.binding import Edge
from burrowmq.protocol.table import Short, Timestamp
from tests.support.bench.broker import BrokerBench
from tests.support.steps import steps_of


def document(*arguments: dict[str, Any]) -> dict[str, Any]:
    return {
        "vhosts": [{"name": "v"}],
        "queues": [{"name": "q", "vhost": "v"}],
        "exchanges": [{"name": "x", "vhost": "v", "type": "headers"}],
        "bindings": [
            {
                "source": "x",
                "vhost": "v",
                "destination": "q",
                "destination_type": "queue",
                "routing_key": "",
                "arguments": each,
            }
            for each in arguments
        ],
    }


def count(node: BrokerBench) -> int:
    return len(node.vhosts["v"].exchanges["x"].bindings)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (True, 1),
        (1, 1.0),
        (0, False),
        ({"a": 1}, {"a": True}),
        ([[0]], [[0.0]]),
        ([], {}),
        ("", None),
    ],
)
def test_both_bindings_of_an_export_come_back(one: object, other: object) -> None:
    node = BrokerBench(rows=())
    for _ in range(2):
        import_document(node, document({"n": one}, {"n": other}))
        assert count(node) == 2


@pytest.mark.parametrize("value", [1, Short(1), Timestamp(1)])
def test_a_client_s_binding_is_there_whatever_its_integers_are(value: int) -> None:
    node = BrokerBench(rows=())
    import_document(node, document())
    node.vhosts["v"].bind(Edge("x", "queue", "q", b"", {"n": [value, "a"], "m": 0.5}))
    import_document(node, document({"m": 0.5, "n": [1, "a"]}))
    assert count(node) == 1


def test_what_clients_bind_and_unbind_meanwhile_is_seen() -> None:
    node = BrokerBench(rows=())
    steps = import_steps(node, document(*({"n": number} for number in (0, 1, 2))))
    for _ in range(4):  # the last one is the first binding
        next(steps)
    vhost = node.vhosts["v"]
    edges = [Edge("x", "queue", "q", b"", {"n": number}) for number in (1, 2)]
    for edge in edges:
        vhost.bind(edge)
    next(steps)
    assert count(node) == 3, "1 is there"
    vhost.unbind(edges[1])
    for _ in steps:
        pass
    assert count(node) == 3, "2 was there no more"


def test_an_import_costs_in_proportion_to_its_bindings() -> None:
    def cost(number: int) -> int:
        node = BrokerBench(rows=())
        found = document(*({"n": each} for each in range(number)))
        return steps_of(lambda: import_document(node, found))

    assert cost(320) < 2.5 * cost(160)
