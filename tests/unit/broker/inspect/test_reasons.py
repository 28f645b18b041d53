"""burrowmq.broker.inspect.reasons: the story of a queue's settings is the one that its settings tell."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.broker.inspect import reasons
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.rules.policy import Policy
from tests.support.bench.broker import BrokerBench

FIELDS = {
    "message-ttl": "message_ttl_ms",
    "expires": "expires_ms",
    "max-length": "max_length",
    "max-length-bytes": "max_length_bytes",
    "consumer-timeout": "consumer_timeout_ms",
    "overflow": "overflow",
    "dead-letter-exchange": "dead_letter_exchange",
    "queue-mode": "mode",
}
NUMBERS = st.integers(1, 5)
VALUES: dict[str, st.SearchStrategy[Any]] = {
    **dict.fromkeys(list(FIELDS)[:5], NUMBERS),
    "overflow": st.sampled_from(["drop-head", "reject-publish"]),
    "dead-letter-exchange": st.sampled_from(["a", "b"]),
    "queue-mode": st.sampled_from(["default", "lazy"]),
}
DEFINITIONS = st.fixed_dictionaries({}, optional=VALUES)


def made(
    arguments: dict[str, Any], policy: dict[str, Any], operator: dict[str, Any]
) -> tuple[BrokerBench, Queue]:
    bench = BrokerBench()
    rules = bench.vhost.policies
    if policy:
        rules.policies["p"] = Policy(name="p", pattern=".*", definition=policy)
    if operator:
        rules.operator_policies["o"] = Policy(name="o", pattern=".*", definition=operator)
    rules.changed()
    return bench, bench.queue(arguments={f"x-{key}": value for key, value in arguments.items()})


@given(arguments=DEFINITIONS, policy=DEFINITIONS, operator=DEFINITIONS)
def test_what_holds_is_what_is_in_force(
    arguments: dict[str, Any], policy: dict[str, Any], operator: dict[str, Any]
) -> None:
    bench, queue = made(arguments, policy, operator)
    rows = {row["key"]: row for row in reasons.settings(bench.vhost, queue)}
    assert set(rows) == {*arguments, *policy, *operator}
    for key, row in rows.items():
        assert row["value"] == getattr(queue.settings, FIELDS[key]), key
        said = {"argument": arguments, "policy": policy, "operator policy": operator}
        told = [row, *row["overruled"]]
        assert {each["source"] for each in told} == {name for name in said if key in said[name]}
        for each in told:
            assert each["value"] == said[each["source"]][key]


OF_OTHERS = {
    "quorum": {
        **{
            key: FIELDS[key] for key in ("message-ttl", "expires", "max-length", "max-length-bytes")
        },
        "consumer-timeout": "consumer_timeout_ms",
        "delivery-limit": "delivery_limit",
        "overflow": "overflow",
        "dead-letter-exchange": "dead_letter_exchange",
    },
    "stream": {
        "max-age": "max_age_ms",
        "max-length-bytes": "max_length_bytes",
        "consumer-timeout": "consumer_timeout_ms",
        "initial-cluster-size": "initial_cluster_size",
    },
}
MORE = {"max-age": st.sampled_from(["1D", "2h"]), "delivery-limit": NUMBERS, "initial-cluster-size": NUMBERS}  # fmt: skip


def other(kind: str, arguments: dict[str, Any], *policies: dict[str, Any]) -> tuple[Any, Any]:
    """A virtual host, and what stands for a quorum queue or stream in it."""
    bench, _ = made({}, *policies)
    given = {f"x-{key}": value for key, value in arguments.items()}
    given["x-queue-type"] = kind
    settings = bench.vhost.settings.of("q", given)
    queue = SimpleNamespace(name="q", kind=kind, arguments=given, settings=settings)
    return bench.vhost, queue


@given(data=st.data(), kind=st.sampled_from(["quorum", "stream"]))
def test_of_the_others_as_well(data: st.DataObject, kind: str) -> None:
    """Policies' words hold for some settings of these, where arguments' hold for a classic queue's."""
    fields = OF_OTHERS[kind]
    values = {key: (VALUES | MORE)[key] for key in fields}
    definitions = st.fixed_dictionaries({}, optional=values)
    said = dict(zip(("argument", "policy", "operator policy"), (data.draw(definitions) for _ in range(3)), strict=True))  # fmt: skip
    vhost, queue = other(kind, *said.values())
    rows = {row["key"]: row for row in reasons.settings(vhost, queue)}
    assert set(rows) == {key for each in said.values() for key in each}
    for key, row in rows.items():
        value = row["value"]
        if key == "max-age":
            value = {"1D": 86_400_000, "2h": 7_200_000}[value]
        assert value == getattr(queue.settings, fields[key]), key
        for each in [row, *row["overruled"]]:
            assert each["value"] == said[each["source"]][key]


def test_what_others_do_not_know_is_not_said_of_them() -> None:
    by_default = {
        kind: {row["key"]: row["value"] for row in reasons.defaults(*other(kind, {}, {}, {}), None)}
        for kind in ("quorum", "stream")
    }
    assert by_default["stream"] == {
        "max-age": None,
        "max-length-bytes": None,
        "consumer-timeout": None,
    }
    quorum = by_default["quorum"]
    assert (quorum["delivery-limit"], quorum["dead-letter-strategy"]) == (None, "at-most-once")
    assert not {"queue-mode", "queue-version", "max-priority", "max-age"} & quorum.keys()


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"overflow": "reject-publish-dlx", "max-length": 1}, "takes reject-publish-dlx for drop-head"),
        ({"dead-letter-strategy": "at-least-once"}, "no effect without a dead-letter exchange"),
        ({"dead-letter-strategy": "at-least-once", "dead-letter-exchange": ""}, "go at most once"),
    ],
)  # fmt: skip
def test_what_is_meant_otherwise_by_a_quorum_queue_is_said(
    arguments: dict[str, Any], text: str
) -> None:
    (warning,) = reasons.warnings(*other("quorum", arguments, {}, {}))
    assert text in warning
    settled = {"overflow": "reject-publish", "max-length": 1, "dead-letter-exchange": ""}
    sure = settled | {"dead-letter-strategy": "at-least-once"}
    assert reasons.warnings(*other("quorum", sure, {}, {})) == []


def test_who_said_it_and_what_was_overruled() -> None:
    bench, queue = made({"max-length": 9, "max-priority": 3}, {"max-length": 5}, {"max-length": 7})
    length, priority = reasons.settings(bench.vhost, queue)
    assert length == {
        "key": "max-length",
        "value": 5,
        "source": "policy",
        "name": "p",
        "overruled": [
            {"source": "argument", "name": "", "value": 9},
            {"source": "operator policy", "name": "o", "value": 7},
        ],
    }
    assert (priority["key"], priority["source"], priority["overruled"]) == (
        "max-priority",
        "argument",
        [],
    )


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"dead-letter-exchange": "gone"}, "'gone' does not exist"),
        ({"message-ttl": 0}, "TTL of 0"),
        ({"max-length": 0}, "no message wait"),
        ({"overflow": "reject-publish"}, "no effect without a maximum length"),
        ({"overflow": "reject-publish-dlx", "max-length": 1}, "no dead-letter exchange"),
        ({"max-priority": 200}, "200 priorities"),
    ],
)
def test_what_hardly_anybody_means_is_said(arguments: dict[str, Any], text: str) -> None:
    bench, queue = made(arguments, {}, {})
    (warning,) = reasons.warnings(bench.vhost, queue)
    assert text in warning


def test_who_asks_for_more_than_the_operator_allows_is_told() -> None:
    bench, queue = made({"max-length": 9}, {"expires": 8}, {"max-length": 7, "expires": 3})
    expires, length = sorted(reasons.warnings(bench.vhost, queue), reverse=True)
    assert expires == "The declaration asks for max-length 9: the operator policy 'o' allows 7."
    assert length == "Policy 'p' asks for expires 8: the operator policy 'o' allows 3."


def test_who_asks_for_what_the_operator_allows_is_not_warned() -> None:
    bench, queue = made({"max-length": 7}, {"expires": 3}, {"max-length": 7, "expires": 3})
    assert reasons.warnings(bench.vhost, queue) == []


def test_what_nobody_said_is_as_by_default() -> None:
    bench, queue = made({"max-length": 9, "queue-mode": "lazy"}, {"overflow": "reject-publish"}, {})
    rows = {row["key"]: row["value"] for row in reasons.defaults(bench.vhost, queue, 1_800_000)}
    assert not {"max-length", "queue-mode", "overflow"} & set(rows)
    assert (rows["message-ttl"], rows["consumer-timeout"]) == (None, 1_800_000)
    assert rows["single-active-consumer"] is False


def test_the_default_exchange_is_one_to_send_dead_letters_to() -> None:
    to_default = {"overflow": "reject-publish-dlx", "max-length": 1, "dead-letter-exchange": ""}
    bench, queue = made(to_default | {"dead-letter-routing-key": "dead"}, {}, {})
    assert reasons.warnings(bench.vhost, queue) == []


def test_nothing_is_said_of_a_plain_queue() -> None:
    bench, queue = made({"dead-letter-exchange": "amq.direct", "max-length": 1}, {}, {})
    assert reasons.warnings(bench.vhost, queue) == []
    bench, queue = made({}, {}, {})
    assert (reasons.settings(bench.vhost, queue), reasons.warnings(bench.vhost, queue)) == ([], [])
