"""burrowmq.cli.equivalents: what of a definitions document has an equal here, and that its lists are the server's."""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.broker.exchange import TYPES
from burrowmq.broker.exchange.consistent_hash import WEIGHT_MAX
from burrowmq.broker.queue.rules import settings
from burrowmq.broker.rules import parameter_rules, passwords
from burrowmq.cli import equivalents
from burrowmq.cli.equivalents import not_moved, taken


def test_its_lists_are_the_servers() -> None:
    assert equivalents.EXCHANGE_TYPES == TYPES
    assert equivalents.WEIGHT_MAX == WEIGHT_MAX
    assert set(settings.FOREIGN_KEYS) == equivalents.OTHER_TYPES
    assert set(settings.EQUIVALENCE_KEYS) == equivalents.QUEUE_ARGUMENTS
    known = equivalents.POLICY_KEYS | equivalents.MIRRORING
    assert known <= parameter_rules.POLICY_KEYS
    assert set(passwords.ALGORITHMS) == equivalents.HASHES


def told(**sections: Any) -> tuple[dict[str, Any], list[tuple[str, str, str]]]:
    document, findings = taken(sections)
    return document, [(each.kind, each.what, each.becomes) for each in findings]


def queue(**fields: Any) -> dict[str, Any]:
    return {"vhost": "/", "name": "q", "durable": True, "arguments": {}, **fields}


def test_what_has_an_equal_is_left_as_it_is() -> None:
    document = {
        "rabbit_version": "3.10.8",
        "users": [{"name": "u", "hashing_algorithm": "rabbit_password_hashing_sha512"}],
        "vhosts": [{"name": "/", "metadata": {"default_queue_type": "classic"}}],
        "queues": [queue(arguments={"x-max-priority": 5, "x-queue-type": "classic"})],
        "exchanges": [{"vhost": "/", "name": "x", "type": "x-consistent-hash"}],
        "bindings": [{"vhost": "/", "source": "x", "destination": "q", "routing_key": "10"}],
        "policies": [{"vhost": "/", "name": "p", "definition": {"max-length": 1}}],
        "parameters": [
            {"vhost": "/", "component": "vhost-limits", "name": "limits", "value": {}},
            {"vhost": "/", "component": "operator_policy", "name": "o",
             "value": {"definition": {"expires": 1}}},
        ],
    }  # fmt: skip
    assert taken(document) == (document, [])


def test_quorum_queues_become_classic() -> None:
    arguments = {"x-queue-type": "quorum", "x-delivery-limit": 5, "x-max-length": 9}
    document, found = told(queues=[queue(arguments=arguments, type="quorum")])
    assert document["queues"] == [queue(arguments={"x-max-length": 9})]
    assert found == [
        ("queue", "type quorum", "classic, durable"), ("queue", "x-delivery-limit", "left out"),
    ]  # fmt: skip


def test_streams_are_left_out() -> None:
    document, found = told(queues=[queue(type="stream")])
    assert document["queues"] == []
    assert found == [("queue", "stream", "left out, with its messages")]


def test_arguments_that_nobody_knows_are_kept() -> None:
    document, found = told(queues=[queue(arguments={"x-deduplicate": True, "note": 1})])
    assert document["queues"][0]["arguments"] == {"x-deduplicate": True, "note": 1}
    assert found == [("queue", "x-deduplicate", "kept, without effect")]


@pytest.mark.parametrize("section", ["permissions", "topic_permissions"])
def test_permissions_go_with_a_user_who_is_left_out(section: str) -> None:
    users = [{"name": "u", "hashing_algorithm": "my_own"}, {"name": "v"}]
    rows = [{"user": name, "vhost": "/"} for name in ("u", "v", "of-nobody")]
    document, _ = told(**{"users": users, section: rows})
    assert [each["user"] for each in document[section]] == ["v", "of-nobody"]


def test_unknown_exchange_types_go_with_their_bindings() -> None:
    document, found = told(
        exchanges=[{"vhost": "/", "name": "later", "type": "x-delayed-message"}],
        bindings=[
            {"vhost": "/", "source": "later", "destination": "q", "destination_type": "queue"},
            {"vhost": "/", "source": "amq.topic", "destination": "later", "destination_type": "exchange"},
            {"vhost": "/", "source": "amq.topic", "destination": "later", "destination_type": "queue"},
        ],
    )  # fmt: skip
    assert document["exchanges"] == []
    assert [each["destination_type"] for each in document["bindings"]] == ["queue"]
    assert found == [("exchange", "type x-delayed-message", "left out, with its bindings")]


def test_a_weight_beyond_the_limit() -> None:
    document, found = told(
        exchanges=[{"vhost": "/", "name": "x", "type": "x-consistent-hash"}],
        bindings=[{"vhost": "/", "source": "x", "destination": "q", "routing_key": "10001"}],
    )
    assert document["bindings"][0]["routing_key"] == "10000"
    assert found == [("binding", "weight 10001 of q", "weight 10000")]


def test_policies_lose_the_keys_that_nothing_here_has() -> None:
    document, found = told(
        policies=[
            {"vhost": "/", "name": "a", "definition": {"ha-mode": "all", "max-length": 1}},
            {"vhost": "/", "name": "b", "definition": {"federation-upstream-set": "all"}},
            {"vhost": "/", "name": "c", "definition": {"delivery-limit": 3, "expires": 5},
             "apply-to": "quorum_queues"},
        ]
    )  # fmt: skip
    assert [each["definition"] for each in document["policies"]] == [
        {"ha-mode": "all", "max-length": 1}, {"expires": 5},
    ]  # fmt: skip
    assert found == [
        ("policy", "ha-mode", "kept, without effect: there is one node"),
        ("policy", "federation-upstream-set", "left out, and the policy with it"),
        ("policy", "delivery-limit", "left out"),
        ("policy", "apply-to quorum_queues", "kept, matches no queue"),
    ]


def test_parameters_of_other_plugins_users_with_other_hashes_and_default_types() -> None:
    document, found = told(
        parameters=[
            {"vhost": "/", "component": "federation-upstream", "name": "f", "value": {}},
            {"vhost": "/", "component": "shovel", "name": "s", "value": {}},
        ],
        users=[{"name": "u", "hashing_algorithm": "my_own"}],
        vhosts=[{"name": "v", "default_queue_type": "quorum", "metadata": {"tags": [], "default_queue_type": "quorum"}}],
    )  # fmt: skip
    assert document["parameters"] == document["users"] == []
    assert document["vhosts"] == [{"name": "v", "metadata": {"tags": []}}]
    assert found == [
        ("user", "hash my_own", "left out, with its permissions: add_user"),
        ("vhost", "default queue type quorum", "classic"), ("vhost", "default queue type quorum", "classic"),
        ("parameter", "component federation-upstream", "left out"),
        ("parameter", "a shovel", "left out: set it when all is here"),
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("row", "moved", "copied"),
    [
        ({}, True, True),
        ({"type": "stream"}, False, False),
        ({"exclusive": True}, False, False),
        ({"auto_delete": True}, False, False),
        ({"arguments": {"x-max-length": 5}}, True, False),
        ({"effective_policy_definition": {"max-length-bytes": 5}}, True, False),
        ({"type": "quorum"}, True, False),
        ({"arguments": {"x-expires": 5000}}, False, False),
        ({"effective_policy_definition": {"expires": 5000}}, False, False),
    ],
)
def test_which_messages_may_go(row, moved, copied) -> None:
    assert (not not_moved(row, is_copy=False)) is moved
    assert (not not_moved(row, is_copy=True)) is copied
