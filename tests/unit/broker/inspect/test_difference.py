"""broker.inspect.difference: what an import would do is what it then does."""

from __future__ import annotations

import json
from typing import Any

import pytest

from burrowmq.broker.definitions.document import ImportRefused, import_document
from burrowmq.broker.inspect import difference
from burrowmq.management.api.definitions import texts
from tests.support.bench.node import NodeBench

POLICY = {"vhost": "/", "name": "p", "pattern": "^a", "apply-to": "queues", "priority": 1, "definition": {"max-length": 5}}  # fmt: skip
FULL: dict[str, Any] = {
    "users": [{"name": "new", "password": "x", "tags": "monitoring"}, {"name": "guest", "password": "x", "tags": ["management"]}],
    "vhosts": [{"name": "other", "limits": {"max-queues": 5}}],
    "permissions": [{"user": "new", "vhost": "other", "configure": "", "write": ".*", "read": ".*"}],
    "topic_permissions": [{"user": "new", "vhost": "other", "exchange": "amq.topic", "write": "a", "read": "b"}],
    "global_parameters": [{"name": "cluster_name", "value": "here"}],
    "policies": [POLICY],
    "queues": [{"name": "fresh", "vhost": "other"}, {"name": "orders", "vhost": "/", "durable": True, "arguments": {"x-max-length": 1}}],
    "exchanges": [{"name": "out", "vhost": "other", "type": "topic"}],
    "bindings": [{"vhost": "other", "source": "out", "destination": "fresh", "destination_type": "queue", "routing_key": "k", "arguments": {"n": 1}}],
}  # fmt: skip


def actions(bench: NodeBench, given: dict[str, Any], vhost: str | None = None) -> dict[str, str]:
    return {
        f"{found.section} {found.name}": found.action
        for found in difference.steps(bench.node, given, vhost)
    }


def test_what_is_new_what_changes_and_what_stays(bench: NodeBench) -> None:
    assert actions(bench, FULL) == {
        "users new": "new",
        "users guest": "changed",
        "vhosts other": "new",
        "permissions new": "new",
        "topic_permissions new on amq.topic": "new",
        "global_parameters cluster_name": "new",
        "policies p": "new",
        "queues fresh": "new",
        "queues orders": "stays",
        "exchanges out": "new",
        "bindings out → fresh (k)": "new",
    }
    bench.perform(lambda: import_document(bench.node, FULL))
    after = set(actions(bench, FULL).items())
    assert {(name, action) for name, action in after if action != "same"} == {
        ("queues orders", "stays")
    }


def test_an_export_changes_nothing(bench: NodeBench) -> None:
    bench.perform(lambda: import_document(bench.node, FULL))
    exported = json.loads(b"".join(texts(bench.node)))
    assert set(actions(bench, exported).values()) == {"same"}
    assert set(
        actions(bench, json.loads(b"".join(texts(bench.node, "other"))), "other").values()
    ) == {"same"}


def test_what_an_import_writes_is_told_and_no_more(bench: NodeBench) -> None:
    """1, 1.0 and true are different values; a password counts for whoever is there, too; a null says nothing."""
    one: dict[str, Any] = {
        "users": [{"name": "ann", "password": "x", "tags": ""}],
        "vhosts": [{"name": "other", "description": None}],
        "global_parameters": [{"name": "n", "value": {"a": [1]}}],
    }
    bench.perform(lambda: import_document(bench.node, one))
    assert set(actions(bench, one).values()) == {"same"}
    other = {
        "users": [{"name": "ann", "password": "y", "tags": ""}],
        "global_parameters": [{"name": "n", "value": {"a": [True]}}],
    }
    assert set(actions(bench, other).values()) == {"changed"}
    before = bench.node.auth.users["ann"].password_hash
    bench.perform(lambda: import_document(bench.node, other))
    assert bench.node.auth.users["ann"].password_hash != before
    assert bench.node.parameters.values["n"] == {"a": [True]}


@pytest.mark.parametrize(
    "user",
    [
        {"name": "ann", "password": "x"},
        {"name": "ann", "password": "x", "password_hash": "c2VjcmV0", "tags": ""},
    ],
)
def test_a_user_whom_an_import_refuses(bench: NodeBench, user: dict[str, Any]) -> None:
    (found,) = difference.steps(bench.node, {"users": [user]})
    with pytest.raises(ImportRefused, match=found.reason):
        import_document(bench.node, {"users": [user]})
    assert found.action == "refused"


def test_values_are_told_as_they_are_and_as_they_would_be(bench: NodeBench) -> None:
    bench.perform(lambda: import_document(bench.node, {"policies": [POLICY]}))
    lower = {"policies": [{**POLICY, "definition": {"max-length": 3}}]}
    (found,) = difference.steps(bench.node, lower)
    assert (found.action, found.before, found.after) == (
        "changed",
        {"definition": {"max-length": 5}},
        {"definition": {"max-length": 3}},
    )
    secret = {"users": [{"name": "guest", "password_hash": "c2VjcmV0", "tags": ["administrator"]}]}
    (found,) = difference.steps(bench.node, secret)
    assert (found.before, found.after) == ({"password": "as it is"}, {"password": "another"})


@pytest.mark.parametrize(
    ("entry", "reason"),
    [
        ({"queues": [{"name": "q", "vhost": "nosuch"}]}, "no_such_vhost nosuch"),
        ({"permissions": [{"user": "nobody", "vhost": "/"}]}, "no_such_user nobody"),
        ({"policies": [{**POLICY, "pattern": "("}]}, "regular expression"),
        ({"bindings": [{"vhost": "/", "source": "no", "destination": "orders"}]}, "passed over"),
    ],
)
def test_what_cannot_be_taken_over_is_said_before(
    bench: NodeBench, entry: dict[str, Any], reason: str
) -> None:
    (found,) = difference.steps(bench.node, entry)
    assert found.action == "refused"
    assert reason in found.reason


def test_a_document_that_is_none(bench: NodeBench) -> None:
    for wrong in ({"queues": {}}, {"users": ["guest"]}):
        with pytest.raises(ImportRefused, match="must be a list of objects"):
            list(difference.steps(bench.node, wrong))
