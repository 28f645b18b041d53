"""/api/exchanges and publish."""

from __future__ import annotations

from tests.support.served import Served


def test_list_and_one(served: Served) -> None:
    names = [row["name"] for row in served.get("/api/exchanges/%2F")]
    assert names[:2] == ["", "amq.direct"]
    default = served.get("/api/exchanges/%2F/amq.default")
    assert (default["name"], default["type"], default["user_who_performed_action"]) == (
        "",
        "direct",
        "rmq-internal",
    )
    assert served.api("GET", "/api/exchanges/%2F/nosuch").status == 404


def test_declare_and_delete(served: Served) -> None:
    path = "/api/exchanges/%2F/ex"
    assert served.api("PUT", path, {"type": "topic"}).status == 201
    assert served.api("PUT", path, {"type": "topic"}).status == 204
    assert served.api("PUT", path, {"type": "fanout"}).status == 400
    assert served.api("PUT", "/api/exchanges/%2F/other", {"type": "bogus"}).status == 400
    assert served.api("PUT", "/api/exchanges/%2F/other", {"durable": "yes"}).body["reason"] == [
        "not_boolean",
        "yes",
    ]
    assert served.api("DELETE", path).status == 204
    assert served.api("DELETE", "/api/exchanges/%2F/amq.topic").status == 401


def test_a_type_that_is_no_text_is_named_as_it_was_written(served: Served) -> None:
    for kind, text in ((None, "null"), (True, "true"), (5, "5"), ([], "[]")):
        refused = served.api("PUT", "/api/exchanges/%2F/other", {"type": kind})
        assert (refused.status, refused.body["reason"]) == (400, f"invalid exchange type '{text}'")


def test_bindings_of_an_exchange(served: Served) -> None:
    (row,) = served.get("/api/exchanges/%2F/amq.topic/bindings/source")
    assert row["destination"] == "orders"
    assert served.get("/api/exchanges/%2F/amq.topic/bindings/destination") == []


def publish(served: Served, exchange: str, key: str, login: str, **properties: object) -> object:
    path = f"/api/exchanges/%2F/{exchange}/publish"
    body = {"routing_key": key, "payload": "x", "payload_encoding": "string"}
    body["properties"] = properties
    return served.api("POST", path, body, login=login).body.get("reason", "published")


def test_publish_is_refused_as_over_amqp(served: Served) -> None:
    served.api("PUT", "/api/users/plain", {"password": "x", "tags": "management"})
    rights = {"configure": "", "write": ".*", "read": ""}
    served.api("PUT", "/api/permissions/%2F/plain", rights)
    topics = {"exchange": "amq.topic", "write": "^mine", "read": ""}
    served.api("PUT", "/api/topic-permissions/%2F/plain", topics)
    assert publish(served, "amq.topic", "other", "plain:x") == (
        "403 ACCESS_REFUSED - write access to topic 'other' in exchange 'amq.topic' in vhost '/' refused for user 'plain'"
    )
    assert publish(served, "amq.topic", "mine.1", "plain:x") == "published"
    assert publish(served, "amq.default", "lazy", "plain:x", user_id="guest") == (
        "406 PRECONDITION_FAILED - user_id property set to 'guest' but authenticated user was 'plain'"
    )
    assert publish(served, "amq.default", "lazy", "plain:x", user_id="plain") == "published"
    assert publish(served, "amq.default", "lazy", "plain:x", expiration="soon") == (
        "406 PRECONDITION_FAILED - invalid expiration 'soon': no_integer"
    )


def test_publish_checks_its_body(served: Served) -> None:
    path = "/api/exchanges/%2F/amq.topic/publish"
    assert served.api("POST", path, {}).body["reason"] == (
        "[{key_missing,routing_key},\n {key_missing,properties},\n {key_missing,payload},\n"
        " {key_missing,payload_encoding}]"
    )
    body = {"properties": {}, "routing_key": "k", "payload": "!", "payload_encoding": "base64"}
    assert served.api("POST", path, body).body["reason"] == ["not_base64", "!"]
    gone = served.api("POST", "/api/exchanges/%2F/nosuch/publish", body)
    assert gone.body["reason"] == "404 NOT_FOUND - no exchange 'nosuch' in vhost '/'"
    odd = served.api("POST", path, {**body, "payload_encoding": "odd"})
    assert odd.body["reason"] == ["unsupported_encoding", "odd"]
    assert served.api("POST", path, {**body, "payload_encoding": "string"}).body == {
        "routed": False
    }
    assert served.api("POST", path, {**body, "payload": "aG\nk= "}).status == 200
    for payload in (None, 1, True, [104, 105], {}):
        refused = served.api("POST", path, {**body, "payload": payload})
        assert (refused.status, refused.body["reason"]) == (400, "payload_not_string")


def test_exchanges_have_details(served: Served) -> None:
    asked = "msg_rates_age=5&msg_rates_incr=5"
    rows = {row["name"]: row for row in served.get(f"/api/exchanges?{asked}")}
    assert len(rows[""]["message_stats"]["publish_in_details"]["samples"]) == 2
    assert "message_stats" not in rows["amq.fanout"]
    assert served.get("/api/exchanges/%2F/amq.default")["message_stats"]["publish_in"] == 7


def test_an_alternate_exchange_is_for_those_who_may_write_there(served: Served) -> None:
    served.api("PUT", "/api/users/plain", {"password": "x", "tags": "management"})
    rights = {"configure": "^mine", "write": "^mine", "read": "^mine"}
    served.api("PUT", "/api/permissions/%2F/plain", rights)
    path = "/api/exchanges/%2F/mine"
    other = {"type": "fanout", "arguments": {"alternate-exchange": "amq.fanout"}}
    refused = served.api("PUT", path, other, login="plain:x")
    assert refused.status == 401
    assert refused.body["reason"] == (
        "write access to exchange 'amq.fanout' in vhost '/' refused for user 'plain'"
    )
    assert served.api("GET", path).status == 404
    own = {"type": "fanout", "arguments": {"alternate-exchange": "mine.too"}}
    assert served.api("PUT", path, own, login="plain:x").status == 201
    served.api("PUT", "/api/exchanges/%2F/mine.old", other)
    assert served.api("PUT", "/api/exchanges/%2F/mine.old", other, login="plain:x").status == 204
    rights = {"configure": "^mine", "write": ".*", "read": ""}
    served.api("PUT", "/api/permissions/%2F/plain", rights)
    unread = served.api("PUT", f"{path}.new", other, login="plain:x")
    assert unread.body["reason"] == (
        "read access to exchange 'mine.new' in vhost '/' refused for user 'plain'"
    )


def test_an_alternate_exchange_is_a_name(served: Served) -> None:
    body = {"type": "fanout", "arguments": {"alternate-exchange": 1}}
    refused = served.api("PUT", "/api/exchanges/%2F/ex", body)
    assert (refused.status, refused.body["reason"]) == (
        400,
        "invalid type 'long' for arg 'alternate-exchange' in exchange 'ex' in vhost '/'",
    )
