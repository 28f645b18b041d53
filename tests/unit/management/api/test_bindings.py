"""/api/bindings."""

from __future__ import annotations

import pytest

from tests.support.served import Served

PAIR = "/api/bindings/%2F/e/amq.topic/q/orders"


def test_a_binding_lives_at_the_address_it_was_given(served: Served) -> None:
    answer = served.api("POST", PAIR, {"routing_key": "a b/c", "arguments": {"y": True}})
    assert answer.status == 201
    assert answer.headers["location"].startswith("orders/a%2Bb%252Fc~")
    address = "/api/bindings/%2F/e/amq.topic/q/" + answer.headers["location"]
    assert served.get(address)["arguments"] == {"y": True}
    assert served.api("DELETE", address).status == 204
    assert served.api("GET", address).status == 404


def test_same_key_and_other_arguments_are_told_apart(served: Served) -> None:
    served.api("POST", PAIR, {"routing_key": "k", "arguments": {"y": 1}})
    served.api("POST", PAIR, {"routing_key": "k", "arguments": {"y": 2}})
    keys = [row["properties_key"] for row in served.get(PAIR)]
    assert len(keys) == len(set(keys)) == 3


def test_empty_key_is_a_tilde(served: Served) -> None:
    assert served.api("POST", PAIR, {}).headers["location"] == "orders/~"


def test_missing_ends(served: Served) -> None:
    answer = served.api("POST", "/api/bindings/%2F/e/amq.topic/q/nosuch", {})
    assert (answer.status, answer.body) == (
        404,
        {"error": "not_found", "reason": "no queue 'nosuch' in vhost '/'"},
    )
    assert len(served.get("/api/bindings")) == 3


def test_a_key_may_be_encoded_once_or_twice(served: Served) -> None:
    served.api("POST", PAIR, {"routing_key": "a.#"})
    for key in ("a.%2523", "a.%23"):
        assert served.get(f"{PAIR}/{key}")["routing_key"] == "a.#"
    assert served.api("DELETE", f"{PAIR}/a.%23").status == 204
    assert served.api("GET", f"{PAIR}/a.%2523").status == 404


def test_between_what_is_not_there_is_nothing(served: Served) -> None:
    for path in ("e/nosuch/q/orders", "e/amq.topic/q/nosuch", "e/amq.topic/e/nosuch"):
        assert served.get(f"/api/bindings/%2F/{path}") == []


def test_the_default_exchange_is_nobodys_to_bind(served: Served) -> None:
    path = "/api/bindings/%2F/e/amq.default/q/orders"
    assert served.get(path)[0]["routing_key"] == "orders"
    for refused in (
        served.api("POST", path, {"routing_key": "k"}),
        served.api("DELETE", f"{path}/orders"),
        served.api("PUT", "/api/exchanges/%2F/amq.default", {"type": "direct"}),
    ):
        assert (refused.status, refused.body["error"]) == (401, "not_authorised")


def test_keys_of_a_topic_exchange_are_bound_and_unbound_by_those_who_may_read_them(
    served: Served,
) -> None:
    served.api("PUT", "/api/users/plain", {"password": "x", "tags": "management"})
    rights = {"configure": "", "write": "orders", "read": "amq.topic"}
    served.api("PUT", "/api/permissions/%2F/plain", rights)
    topics = {"exchange": "amq.topic", "write": "", "read": "^mine"}
    served.api("PUT", "/api/topic-permissions/%2F/plain", topics)
    assert served.api("POST", PAIR, {"routing_key": "mine"}, login="plain:x").status == 201
    assert served.api("DELETE", f"{PAIR}/mine", login="plain:x").status == 204
    served.api("POST", PAIR, {"routing_key": "secret"})
    expected = (
        "read access to topic '{}' in exchange 'amq.topic' in vhost '/' refused for user 'plain'"
    )
    for refused, key in (
        (served.api("POST", PAIR, {"routing_key": "#"}, login="plain:x"), "#"),
        (served.api("DELETE", f"{PAIR}/secret", login="plain:x"), "secret"),
    ):
        assert refused.status == 401
        assert refused.body == {"error": "not_authorised", "reason": expected.format(key)}
    keys = [row["routing_key"] for row in served.get(PAIR)]
    assert "secret" in keys
    assert "#" not in keys


def test_a_tilde_is_not_the_empty_key(served: Served) -> None:
    """As in RabbitMQ it is escaped; alone it addresses what is bound without a key."""
    for key in ("", "~", "a~b"):
        served.api("POST", PAIR, {"routing_key": key})
    assert served.api("POST", PAIR, {"routing_key": "~"}).headers["location"] == "orders/%257E"
    keys = {row["routing_key"]: row["properties_key"] for row in served.get(PAIR)}
    assert [keys[key] for key in ("", "~", "a~b")] == ["~", "%7E", "a%7Eb"]
    for path in ("/api/bindings/%2F", "/api/queues/%2F/orders/bindings"):
        assert {"%7E", "a%7Eb"} <= {row["properties_key"] for row in served.get(path)}
    assert served.api("DELETE", f"{PAIR}/~").status == 204
    assert served.api("DELETE", f"{PAIR}/~").status == 404
    assert "~" in {row["routing_key"] for row in served.get(PAIR)}
    assert served.api("DELETE", f"{PAIR}/%257E").status == 204
    assert served.get(f"{PAIR}/a~b")["routing_key"] == "a~b"
    assert served.api("DELETE", f"{PAIR}/a%257Eb").status == 204


def test_a_space_may_be_written_as_one(served: Served) -> None:
    served.api("POST", PAIR, {"routing_key": "a b+c"})
    for key in ("a%2520b%252Bc", "a%2Bb%252Bc", "a%20b%2Bc"):
        assert served.get(f"{PAIR}/{key}")["routing_key"] == "a b+c"


@pytest.mark.parametrize("key", [None, True, [], {}])
def test_a_routing_key_is_a_text_or_a_number(served: Served, key: object) -> None:
    answer = served.api("POST", PAIR, {"routing_key": key})
    assert (answer.status, answer.body["reason"]) == (400, ["not_string", "routing_key"])
    assert served.api("POST", PAIR, {"routing_key": 17}).headers["location"] == "orders/17"
