"""The HTTP API by address: one binding, one connection, one user; what lists of a part of them hold."""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

from tests.differential.broker import Broker

Record = Any


def _names(rows: Any) -> Any:
    return sorted(row.get("name", row) for row in rows) if isinstance(rows, list) else rows


def bindings_of_a_queue(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.bind("q", "amq.topic", "a.#")
    peer.bind("q", "amq.topic", "a/b c")
    peer.bind("q", "amq.direct", "")
    path = "bindings/%2F/e/amq.topic/q/q"
    return [
        sorted(broker.http("GET", "queues/%2F/q/bindings")[1], key=str),
        sorted(broker.http("GET", path)[1], key=str),
        broker.http("GET", path + "/" + quote("a.#", "")),
        broker.http("GET", path + "/" + quote("a%2Fb+c", "")),
        broker.http("GET", "bindings/%2F/e/amq.direct/q/q/~"),
        broker.http("GET", "queues/%2F/none/bindings"),
        broker.http("GET", "bindings/%2F/e/amq.topic/q/none"),
        broker.http("GET", "bindings/%2F/e/none/q/q"),
        broker.http("GET", "bindings/nope/e/amq.topic/q/q"),
    ]


def bindings_of_an_exchange(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("x", "fanout")
    peer.exchange("y", "topic")
    peer.queue("q")
    peer.bind("q", "x", "k")
    peer.bind_exchange("x", "y", "a.b")
    return [
        sorted(broker.http("GET", "exchanges/%2F/x/bindings/source")[1], key=str),
        broker.http("GET", "exchanges/%2F/x/bindings/destination"),
        broker.http("GET", "bindings/%2F/e/y/e/x"),
        broker.http("GET", "bindings/%2F/e/y/e/x/a.b"),
        broker.http("DELETE", "bindings/%2F/e/y/e/x/a.b"),
        broker.http("GET", "bindings/%2F/e/y/e/x"),
        broker.http("GET", "exchanges/%2F/none/bindings/source"),
        broker.http("POST", "bindings/%2F/e/y/e/x", {"routing_key": "c d", "arguments": {}})[0],
        broker.http("GET", "bindings/%2F/e/y/e/x"),
    ]


def bindings_of_the_default_exchange(broker: Broker) -> Record:
    broker.peer().queue("q")
    return [
        broker.http("GET", "bindings/%2F/e/amq.default/q/q"),
        broker.http("GET", "bindings/%2F/e/amq.default/q/q/q"),
        broker.http("POST", "bindings/%2F/e/amq.default/q/q", {"routing_key": "k"}),
        broker.http("DELETE", "bindings/%2F/e/amq.default/q/q/q"),
        broker.http("DELETE", "exchanges/%2F/amq.default"),
        broker.http("PUT", "exchanges/%2F/amq.default", {"type": "direct"}),
    ]


def bindings_with_arguments(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    path = "bindings/%2F/e/amq.headers/q/q"
    arguments = {"x-match": "any", "n": 1, "t": True, "f": 1.5, "l": [1, "a"], "o": {"p": "x"}}
    made = broker.http("POST", path, {"routing_key": "", "arguments": arguments})
    (row,) = broker.http("GET", path)[1]
    key = row.pop("properties_key")
    return [
        made[0],
        row,
        broker.http("GET", f"{path}/{quote(key, '')}")[0],
        broker.http("DELETE", f"{path}/{quote(key, '')}"),
        broker.http("GET", path),
        broker.http("POST", path, {"arguments": {"x-match": "some"}}),
        broker.http("POST", path, {"arguments": "none"})[0],
    ]


def names_with_signs(broker: Broker) -> Record:
    name = "a/b c?d=e&f%#ü+;"
    path = f"queues/%2F/{quote(name, '')}"
    broker.forget("queue", name)
    return [
        broker.http("PUT", path, {}),
        broker.http("GET", path)[1]["name"],
        broker.http("GET", "queues/%2F?columns=name&page=1&name=" + quote(name, ""))[1]["items"],
        broker.http(
            "POST",
            "exchanges/%2F/amq.default/publish",
            {"properties": {}, "routing_key": name, "payload": "1", "payload_encoding": "string"},
        ),
        broker.http(
            "POST", path + "/get", {"count": 1, "ackmode": "ack_requeue_false", "encoding": "auto"}
        ),
        broker.http("DELETE", path),
    ]


def a_connection_by_its_name(broker: Broker) -> Record:
    user = broker.user("named", "", (".*", ".*", ".*"))
    peer = broker.peer(user=user, password=user)

    def mine(rows: Any) -> list[Any]:
        return [row for row in rows if row.get("user") == user and row.get("channels") == 1]

    (row,) = mine(broker.wait_http("connections", lambda rows: bool(mine(rows))))
    path = "connections/" + quote(row["name"], "")
    kept = ("user", "vhost", "channels", "protocol", "type", "state", "node")
    channels = broker.wait_http(path + "/channels", lambda rows: bool(rows and rows[0].get("user")))
    (channel,) = channels
    by_name = broker.http("GET", "channels/" + quote(channel["name"], ""))[1]
    users = broker.http("GET", f"connections/username/{user}")[1]
    return [
        broker.fields(path, *kept),
        {key: channel.get(key) for key in ("number", "user", "vhost")},
        {key: by_name.get(key) for key in ("number", "user", "vhost", "consumer_details")},
        [each.get("user") for each in users],
        broker.http("DELETE", f"connections/username/{user}"),
        peer.take(1),
        broker.wait_http(f"connections/username/{user}", lambda rows: rows == []),
        broker.http("DELETE", "connections/username/nobody"),
        broker.http("GET", "connections/username/nobody"),
        broker.wait_gone(path),
        broker.http("DELETE", path)[0],
        broker.http("GET", "channels/none"),
    ]


def what_is_in_a_vhost(broker: Broker) -> Record:
    vhost, peer = broker.inside("part")
    peer.queue("q")
    peer.consume("q", "t")
    consumers = broker.wait_http(f"consumers/{vhost}", lambda rows: len(rows) == 1)
    channels = broker.wait_http(f"vhosts/{vhost}/channels", lambda rows: len(rows) == 1)
    connections = broker.wait_http(f"vhosts/{vhost}/connections", lambda rows: len(rows) == 1)
    kept = ("consumer_tag", "ack_required", "prefetch_count", "active", "activity_status", "queue")
    return [
        [{key: row.get(key) for key in kept} for row in consumers],
        [[row["vhost"], row["user"]] for row in (*channels, *connections)],
        [row["name"] for row in broker.http("GET", f"queues/{vhost}")[1]],
        [broker.http("GET", f"vhosts/nope/{kind}") for kind in ("channels", "connections")],
        broker.http("GET", "consumers/nope"),
        broker.http("GET", "vhosts/nope/permissions"),
        broker.http("GET", "vhosts/nope/topic-permissions"),
    ]


def users_in_bulk(broker: Broker) -> Record:
    first, _, third = [broker.user(name) for name in ("bulk1", "bulk2", "bulk3")]
    broker.permit(third, "", "", "")

    def left() -> list[str]:
        return [row["name"] for row in broker.http("GET", "users")[1] if "bulk" in row["name"]]

    def idle() -> list[str]:
        rows = broker.http("GET", "users/without-permissions")[1]
        return sorted(row["name"] for row in rows if "bulk" in row["name"])

    return [
        idle(),
        broker.http("POST", "users/bulk-delete", {"users": [first, third, "nobody"]}),
        left(),
        broker.http("POST", "users/bulk-delete", {"users": []}),
        broker.http("POST", "users/bulk-delete", {})[0],
        left(),
        broker.http("GET", "users/nobody/permissions"),
        broker.http("GET", "users/nobody/topic-permissions"),
    ]


def users_that_are_wrong(broker: Broker) -> Record:
    w1, w2, w3, w4, w5 = [broker.own(f"w{number}") for number in range(1, 6)]
    for name in (w1, w2, w3, w4, w5):
        broker.also(broker.http, "DELETE", f"users/{name}")
    return [
        broker.http("PUT", f"users/{w1}", {"password": "x"}),
        broker.http("PUT", f"users/{w2}", {"tags": "monitoring"}),
        broker.http("PUT", f"users/{w3}", {"password_hash": "", "tags": ""}),
        broker.http("PUT", f"users/{w3}", {"password_hash": "not base64!", "tags": ""})[0],
        broker.http("PUT", f"users/{w4}", {"password": "x", "password_hash": "eA==", "tags": ""})[
            0
        ],
        broker.http("PUT", f"users/{w5}", {"password": "", "tags": "administrator, other"}),
        broker.http("GET", f"users/{w5}")[1]["tags"],
        broker.http("GET", f"users/{w3}")[0],
    ]


def tags_as_a_list(broker: Broker) -> Record:
    user = broker.own("listed")
    broker.also(broker.http, "DELETE", f"users/{user}")
    return [
        broker.http("PUT", f"users/{user}", {"password": "x", "tags": ["a", "monitoring"]}),
        broker.fields(f"users/{user}", "name", "tags", "hashing_algorithm", "limits"),
        broker.http("PUT", f"users/{user}", {"password": "x", "tags": ""}),
        broker.fields(f"users/{user}", "tags"),
        broker.http("GET", "whoami", user=user, password="x"),
    ]


def permissions_by_address(broker: Broker) -> Record:
    vhost = broker.vhost("granting")
    user = broker.user("granted-to")
    broker.permit(user, "^a", "^b", "^c", vhost)
    path = f"permissions/{vhost}/{user}"
    topic = {"exchange": "amq.topic", "write": "^w", "read": "^r"}
    return [
        broker.http("GET", path),
        broker.http("GET", f"vhosts/{vhost}/permissions"),
        broker.http("GET", f"users/{user}/permissions"),
        broker.http("PUT", path, {"configure": "^a", "write": "^b"}),
        broker.http("PUT", path, {"configure": "(", "write": "", "read": ""})[0],
        broker.http("DELETE", path),
        broker.http("DELETE", path),
        broker.http("GET", path),
        broker.http("PUT", f"topic-permissions/{vhost}/{user}", topic),
        broker.http("GET", f"topic-permissions/{vhost}/{user}"),
        broker.http("GET", f"topic-permissions/{vhost}/{user}/amq.topic"),
        broker.http("GET", f"vhosts/{vhost}/topic-permissions"),
        broker.http("GET", f"users/{user}/topic-permissions"),
        broker.http("DELETE", f"topic-permissions/{vhost}/{user}/amq.topic"),
        broker.http("GET", f"topic-permissions/{vhost}/{user}"),
        broker.http("GET", f"topic-permissions/{vhost}/nobody"),
        broker.http("PUT", f"topic-permissions/{vhost}/{user}", {"exchange": "x"}),
    ]


def policies_by_address(broker: Broker) -> Record:
    vhost = broker.vhost("ruled")
    body = {"pattern": "^q", "definition": {"max-length": 9}, "priority": 1, "apply-to": "queues"}
    return [
        broker.http("PUT", f"policies/{vhost}/p", body),
        broker.http("PUT", f"policies/{vhost}/p", body | {"priority": 2}),
        broker.http("GET", f"policies/{vhost}/p"),
        broker.http("GET", f"policies/{vhost}"),
        broker.http("GET", f"policies/{vhost}/none"),
        broker.http("DELETE", f"policies/{vhost}/p"),
        broker.http("DELETE", f"policies/{vhost}/p"),
        broker.http("PUT", f"operator-policies/{vhost}/o", body),
        broker.http("GET", f"operator-policies/{vhost}"),
        broker.http("GET", f"operator-policies/{vhost}/none"),
        broker.http("DELETE", f"operator-policies/{vhost}/none"),
        broker.http("GET", "operator-policies/nope"),
    ]


def vhosts_by_address(broker: Broker) -> Record:
    vhost = broker.own("addressed")
    broker.also(broker.http, "DELETE", f"vhosts/{vhost}")
    kept = ("name", "description", "tags", "tracing", "metadata", "default_queue_type")
    return [
        broker.http(
            "PUT", f"vhosts/{vhost}", {"description": "mine", "tags": "a,b", "tracing": True}
        ),
        broker.fields(f"vhosts/{vhost}", *kept),
        broker.http("PUT", f"vhosts/{vhost}", {"description": "other", "tags": "c"}),
        broker.fields(f"vhosts/{vhost}", *kept),
        broker.http("PUT", f"vhosts/{vhost}", {"tracing": False}),
        broker.fields(f"vhosts/{vhost}", *kept),
        broker.http("PUT", f"vhosts/{vhost}"),
        broker.http("DELETE", f"vhosts/{vhost}"),
        broker.http("DELETE", f"vhosts/{vhost}"),
    ]


def parameters_by_address(broker: Broker) -> Record:
    vhost = broker.vhost("valued")
    broker.also(broker.http, "DELETE", f"global-parameters/{vhost}")
    return [
        broker.http("PUT", f"global-parameters/{vhost}", {"value": "x"}),
        broker.http("PUT", f"global-parameters/{vhost}", {"value": [1, None, 1.5]}),
        broker.http("GET", f"global-parameters/{vhost}"),
        broker.http("PUT", f"global-parameters/{vhost}", {}),
        broker.http("GET", f"parameters/vhost-limits/{vhost}"),
        broker.http("GET", "parameters/vhost-limits/nope"),
        broker.http("GET", f"parameters/nonsense/{vhost}/x"),
        broker.http("DELETE", f"parameters/nonsense/{vhost}/x"),
        broker.http("PUT", f"parameters/vhost-limits/{vhost}/limits", {"value": {"max-queues": 3}}),
        broker.http("GET", f"parameters/vhost-limits/{vhost}/limits"),
        broker.http("GET", f"vhost-limits/{vhost}"),
        broker.http("DELETE", f"parameters/vhost-limits/{vhost}/limits"),
        broker.http("GET", f"vhost-limits/{vhost}"),
    ]


def queues_on_a_condition(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.consume("q", "t")
    return [
        broker.http("DELETE", "queues/%2F/q?if-unused=true"),
        broker.http("DELETE", "queues/%2F/q?if-unused=false&if-empty=true"),
        peer.take(1),
        broker.http("DELETE", "queues/%2F/none?if-empty=true"),
    ]


def actions_of_a_queue(broker: Broker) -> Record:
    broker.peer().queue("q")
    path = "queues/%2F/q/actions"
    return [
        broker.http("POST", path, {"action": "sync"}),
        broker.http("POST", path, {"action": "cancel_sync"}),
        broker.http("POST", path, {"action": "nonsense"}),
        broker.http("POST", path, {}),
        broker.http("POST", "queues/%2F/none/actions", {"action": "sync"}),
    ]


def exchanges_on_a_condition(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("x", "fanout")
    peer.queue("q")
    peer.bind("q", "x")
    return [
        broker.http("DELETE", "exchanges/%2F/x?if-unused=true"),
        broker.http("DELETE", "exchanges/%2F/x"),
        broker.http("GET", "exchanges/%2F/x"),
    ]


def a_queue_of_somebody_else(broker: Broker) -> Record:
    """An exclusive queue, asked for by HTTP."""
    peer = broker.peer()
    peer.queue("q", exclusive=True)
    ask = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
    return [
        broker.http("POST", "queues/%2F/q/get", ask),
        broker.http("DELETE", "queues/%2F/q/contents"),
        broker.http("DELETE", "queues/%2F/q"),
        broker.http("POST", "bindings/%2F/e/amq.direct/q/q", {"routing_key": "k"}),
        broker.http("PUT", "queues/%2F/q", {"durable": False}),
    ]


def what_a_user_without_rights_is_told(broker: Broker) -> Record:
    user = broker.user("weak", "management", ("^$", "^$", "^$"))
    ask = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
    message = {"properties": {}, "routing_key": "q", "payload": "1", "payload_encoding": "string"}
    broker.peer().queue("q")
    asked = (
        ("PUT", "queues/%2F/new", {}),
        ("DELETE", "queues/%2F/q", None),
        ("DELETE", "queues/%2F/q/contents", None),
        ("POST", "queues/%2F/q/get", ask),
        ("POST", "exchanges/%2F/amq.default/publish", message),
        ("POST", "bindings/%2F/e/amq.direct/q/q", {"routing_key": "k"}),
        ("PUT", "exchanges/%2F/new", {"type": "topic"}),
        ("GET", "users", None),
        ("GET", "nodes", None),
        ("GET", "policies/%2F", None),
        ("PUT", "vhosts/new", {}),
        ("GET", "definitions", None),
        ("GET", "vhost-limits", None),
        ("GET", "health/checks/alarms", None),
        ("GET", "feature-flags", None),
        ("PUT", "cluster-name", {"name": "x"}),
    )
    return {
        f"{verb} {path}": broker.http(verb, path, body, user=user, password=user)
        for verb, path, body in asked
    }
