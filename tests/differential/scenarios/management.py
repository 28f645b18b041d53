"""The HTTP API: objects of queues, messages by HTTP, declarations, definitions, errors."""

from __future__ import annotations

import json
from typing import Any

from tests.differential.broker import Broker

Record = Any
COUNTS = ("messages", "messages_ready", "messages_unacknowledged", "consumers")
BYTES = (
    "message_bytes",
    "message_bytes_ready",
    "message_bytes_unacknowledged",
    "message_bytes_persistent",
)


def queue_objects(broker: Broker) -> Record:
    peer = broker.peer()
    arguments = {"x-max-length": 10, "x-message-ttl": 60000, "x-foo": "x"}
    peer.queue("q", arguments, durable=True, auto_delete=True)
    names = ("name", "vhost", "durable", "auto_delete", "exclusive", "arguments", "type", "policy")
    broker.wait_http("queues/%2F/q", lambda row: row.get("policy", "late") is None)
    return broker.fields("queues/%2F/q", *names)


def queue_counters(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", durable=True)
    peer.fill("q", b"12345", b"123", delivery_mode=2)
    peer.fill("q", b"1")
    peer.get("q", no_ack=False)
    # Counts come every half second, bytes with the queue's next report: wait for both.
    broker.wait_http(
        "queues/%2F/q",
        lambda row: (
            row.get("messages_unacknowledged") == 1 and row.get("message_bytes_unacknowledged") == 5
        ),
    )
    return broker.fields("queues/%2F/q", *COUNTS, *BYTES, "messages_persistent")


def queue_with_consumers(broker: Broker) -> Record:
    peer = broker.peer()
    queue = peer.queue(broker.own("q"))  # consumers of an earlier q may be listed still
    peer.qos(3)
    peer.consume(queue, "t", {"a": 1})
    row = broker.wait_http(
        f"queues/%2F/{queue}", lambda found: len(found.get("consumer_details", [])) == 1
    )
    kept = ("consumer_tag", "ack_required", "prefetch_count", "arguments", "exclusive")
    return [{key: each.get(key) for key in kept} for each in row["consumer_details"]]


def queue_of_an_exclusive_owner(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", exclusive=True)
    row = broker.wait_http("queues/%2F/q", lambda found: bool(found.get("owner_pid_details")))
    return [row["exclusive"], sorted(row.get("owner_pid_details", {}))]


def queue_rates_count_what_happened(broker: Broker) -> Record:
    """A queue of its own name: RabbitMQ may count late what happened to an earlier one of the same name."""
    peer = broker.peer()
    peer.queue("rated")
    peer.confirm()
    peer.fill("rated", b"1", b"2", b"3")
    peer.get("rated", no_ack=False)
    peer.get("rated")
    peer.reject(1)
    peer.sync("rated")
    peer.get("rated", no_ack=False)
    peer.ack(3)
    peer.sync()
    kept = ("publish", "get", "get_no_ack", "ack", "redeliver", "deliver_get", "deliver")
    happened = dict(zip(kept, (3, 2, 1, 1, 1, 3, 0), strict=True))

    def counted(row: Any) -> dict[str, Any]:
        return {key: row.get("message_stats", {}).get(key, 0) for key in kept}

    # What is published and what is settled is collected apart, so one may be seen before the other.
    return counted(broker.wait_http("queues/%2F/rated", lambda row: counted(row) == happened))


def queues_declared_over_http(broker: Broker) -> Record:
    broker.forget("queue", "q")
    path = "queues/%2F/q"
    return [
        broker.http("PUT", path, {"durable": False, "arguments": {"x-max-length": 5}}),
        broker.http("PUT", path, {"durable": False, "arguments": {"x-max-length": 5}}),
        broker.http("PUT", path, {"durable": True, "arguments": {"x-max-length": 5}}),
        broker.http("PUT", path, {"durable": False, "arguments": {"x-max-length": 6}}),
        broker.http("PUT", "queues/%2F/q2", {"arguments": {"x-max-length": -1}}),
        broker.http("PUT", "queues/%2F/amq.q", {}),
        broker.http("PUT", "queues/nope/q", {}),
    ]


def queues_deleted_over_http(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1")
    return [
        broker.http("DELETE", "queues/%2F/q?if-empty=true"),
        broker.http("DELETE", "queues/%2F/q/contents"),
        broker.http("DELETE", "queues/%2F/q?if-empty=true&if-unused=true"),
        broker.http("DELETE", "queues/%2F/q"),
        broker.http("GET", "queues/%2F/q"),
        broker.http("DELETE", "queues/%2F/q/contents"),
    ]


def exchanges_declared_over_http(broker: Broker) -> Record:
    broker.forget("exchange", "x")
    path = "exchanges/%2F/x"
    return [
        broker.http("PUT", path, {"type": "topic", "durable": False}),
        broker.http("PUT", path, {"type": "topic", "durable": False}),
        broker.http("PUT", path, {"type": "fanout", "durable": False}),
        broker.http("PUT", "exchanges/%2F/amq.mine", {"type": "topic"}),
        broker.http("DELETE", path),
        broker.http("DELETE", path),
        broker.http("DELETE", "exchanges/%2F/amq.topic"),
    ]


def exchanges_without_a_type(broker: Broker) -> Record:
    broker.forget("exchange", "x")
    return [broker.http("PUT", "exchanges/%2F/x", {}), broker.http("GET", "exchanges/%2F/x")[0]]


def bindings_made_over_http(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    path = "bindings/%2F/e/amq.direct/q/q"
    return [
        broker.http("POST", path, {"routing_key": "k"}),
        broker.http("POST", path, {"routing_key": ""}),
        broker.http("POST", path, {}),
        sorted(broker.http("GET", path)[1], key=str),
        broker.http("DELETE", path + "/k"),
        broker.http("DELETE", path + "/k"),
        broker.http("DELETE", path + "/~"),
        broker.http("POST", "bindings/%2F/e/none/q/q", {"routing_key": "k"}),
        broker.http("POST", "bindings/%2F/e/amq.direct/q/none", {"routing_key": "k"}),
    ]


def messages_published_over_http(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    path = "exchanges/%2F/amq.default/publish"
    properties = {"delivery_mode": 2, "headers": {"a": 1, "b": "x"}, "message_id": "m"}
    message = {
        "properties": properties,
        "routing_key": "q",
        "payload": "hi",
        "payload_encoding": "string",
    }
    return [
        broker.http("POST", path, message),
        broker.http("POST", path, message | {"routing_key": "none"}),
        broker.http("POST", path, message | {"payload": "aGk=", "payload_encoding": "base64"}),
        broker.http("POST", path, message | {"payload_encoding": "nonsense"}),
        broker.http("POST", path, {"routing_key": "q"}),
        broker.http("POST", "exchanges/%2F/none/publish", message),
        peer.get("q"),
        peer.get("q")["body"],
    ]


def messages_got_over_http(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"text", message_id="m", headers={"a": 1, "b": True, "c": [1, "x"]})
    peer.fill("q", b"\xff\x00")
    path = "queues/%2F/q/get"
    ask = {"count": 5, "ackmode": "ack_requeue_true", "encoding": "auto"}
    return [
        broker.http("POST", path, ask),
        broker.http("POST", path, ask | {"encoding": "base64", "truncate": 2}),
        broker.http("POST", path, ask | {"ackmode": "ack_requeue_false", "count": 1}),
        broker.http("POST", path, ask | {"ackmode": "nonsense"}),
        broker.http("POST", path, ask | {"encoding": "nonsense"}),
        broker.http("POST", path, {"count": 1}),
        broker.http("POST", "queues/%2F/none/get", ask),
        peer.wait_ready("q", 1),
    ]


def bodies_that_are_no_json(broker: Broker) -> Record:
    return [
        broker.http("PUT", "queues/%2F/q", "{")[0],
        broker.http("PUT", "vhosts/v1", "nonsense")[0],
    ]


def paths_that_are_not_there(broker: Broker) -> Record:
    paths = (
        "nonsense",
        "queues/nope",
        "queues/nope/q",
        "exchanges/nope",
        "bindings/nope",
        "users/x/y/z",
    )
    return {path: broker.http("GET", path) for path in paths}


def verbs_that_are_not_allowed(broker: Broker) -> Record:
    asked = (
        ("POST", "queues/%2F/q"),
        ("PUT", "overview"),
        ("DELETE", "queues"),
        ("DELETE", "whoami"),
    )
    return [broker.http(verb, path)[0] for verb, path in asked]


def wrong_passwords(broker: Broker) -> Record:
    return [
        broker.http("GET", "overview", user="guest", password="x"),
        broker.http("GET", "overview", user="x"),
    ]


def aliveness(broker: Broker) -> Record:
    broker.forget("queue", "aliveness-test")
    return [broker.http("GET", "aliveness-test/%2F"), broker.http("GET", "aliveness-test/nope")[0]]


def health_checks(broker: Broker) -> Record:
    names = (
        "alarms",
        "local-alarms",
        "virtual-hosts",
        "node-is-mirror-sync-critical",
        "node-is-quorum-critical",
    )
    port = broker.place.amqp_port
    # Beside us virtual hosts come and go, and RabbitMQ calls one down for a moment.
    broker.wait_http("health/checks/virtual-hosts", lambda answer: answer == {"status": "ok"})
    found = {name: broker.http("GET", f"health/checks/{name}") for name in names}
    found["port"] = broker.http("GET", f"health/checks/port-listener/{port}")[0]
    found["no port"] = broker.http("GET", "health/checks/port-listener/1")[0]
    found["protocol"] = broker.http("GET", "health/checks/protocol-listener/amqp091")[0]
    found["no protocol"] = broker.http("GET", "health/checks/protocol-listener/stomp")[0]
    return found


def listing_chooses_columns_and_pages(broker: Broker) -> Record:
    """In a virtual host of its own: the total counts every queue in it."""
    vhost, peer = broker.inside("pages")
    for number in range(5):
        peer.queue(f"page{number}")
    query = "?columns=name&page=2&page_size=2&name=page&sort=name"
    return [
        broker.http("GET", f"queues/{vhost}" + query),
        broker.http("GET", f"queues/{vhost}?page=9&page_size=2&name=page&columns=name"),
        broker.http("GET", f"queues/{vhost}?page=0&columns=name"),
        broker.http(
            "GET", f"queues/{vhost}?columns=name&sort=name&sort_reverse=true&page=1&name=page"
        ),
        broker.http(
            "GET", f"queues/{vhost}?columns=name&page=1&name=%5Epage%5B12%5D&use_regex=true"
        ),
    ]


def exchange_listing(broker: Broker) -> Record:
    rows = broker.http("GET", "exchanges/%2F")[1]
    kept = ("name", "type", "durable", "auto_delete", "internal", "user_who_performed_action")
    return sorted(
        ([row[key] for key in kept] for row in rows if row["name"].startswith("amq.")), key=str
    )


def connection_objects(broker: Broker) -> Record:
    user = broker.user("seen", "", (".*", ".*", ".*"))
    broker.link(user=user, password=user)
    rows = broker.wait_http(
        "connections",
        lambda found: any(row.get("user") == user and "state" in row for row in found),
    )
    row = next(row for row in rows if row.get("user") == user)
    kept = ("user", "vhost", "protocol", "auth_mechanism", "frame_max", "channel_max", "timeout")
    kept += ("state", "ssl", "type", "host", "peer_host", "client_properties")
    return {key: row.get(key, "absent") for key in kept}


def channel_objects(broker: Broker) -> Record:
    user = broker.user("seen", "", (".*", ".*", ".*"))
    peer = broker.peer(user=user, password=user)
    peer.queue("q")
    peer.confirm()
    peer.qos(7)
    peer.qos(9, shared=True)
    peer.consume("q", "t")
    peer.fill("q", b"1", b"2")

    def mine(found: Any) -> list[Any]:
        return [
            row
            for row in found
            if row.get("user") == user and row.get("messages_unacknowledged") == 2
        ]

    rows = mine(broker.wait_http("channels", lambda found: bool(mine(found))))
    kept = ("user", "vhost", "number", "confirm", "transactional", "consumer_count", "state")
    kept += (
        "prefetch_count",
        "global_prefetch_count",
        "messages_unacknowledged",
        "messages_unconfirmed",
    )
    kept += ("messages_uncommitted", "acks_uncommitted")
    return [{key: row.get(key, "absent") for key in kept} for row in rows]


def definitions_of_a_vhost(broker: Broker) -> Record:
    vhost, peer = broker.inside("v")
    peer.queue("q", {"x-max-length": 5}, durable=True)
    peer.queue("transient")
    peer.exchange("x", "topic", {"alternate-exchange": "amq.fanout"}, durable=True)
    peer.bind("q", "x", "a.#", {"n": 1})
    body = {"pattern": "^q", "definition": {"max-length": 9}, "priority": 1, "apply-to": "queues"}
    broker.http("PUT", f"policies/{vhost}/p", body)
    found = broker.http("GET", f"definitions/{vhost}")[1]
    del found["rabbit_version"]
    # RabbitMQ lists them as they hash, which the name of the virtual host is a part of.
    return {
        key: sorted(value, key=str) if isinstance(value, list) else value
        for key, value in found.items()
    }


def definitions_imported_into_a_vhost(broker: Broker) -> Record:
    vhost = broker.vhost("v")
    document = {
        "queues": [
            {"name": "q", "durable": True, "auto_delete": False, "arguments": {"x-max-length": 5}}
        ],
        "exchanges": [
            {
                "name": "x",
                "type": "fanout",
                "durable": True,
                "auto_delete": False,
                "internal": False,
                "arguments": {},
            }
        ],
        "bindings": [
            {
                "source": "x",
                "destination": "q",
                "destination_type": "queue",
                "routing_key": "",
                "arguments": {},
            }
        ],
        "policies": [
            {
                "name": "p",
                "pattern": "^q",
                "apply-to": "queues",
                "priority": 0,
                "definition": {"max-length": 2},
            }
        ],
    }
    posted = broker.http("POST", f"definitions/{vhost}", document)[0]
    again = broker.http("POST", f"definitions/{vhost}", document)[0]
    names = ("name", "durable", "arguments", "policy")
    broker.wait_http(f"queues/{vhost}/q", lambda row: row.get("policy") == "p")
    return [
        posted,
        again,
        broker.fields(f"queues/{vhost}/q", *names),
        broker.fields(f"exchanges/{vhost}/x", "type", "durable"),
    ]


def definitions_that_cannot_be_imported(broker: Broker) -> Record:
    vhost = broker.vhost("v")
    wrong_policy = {"name": "p", "pattern": "^q", "definition": {"max-length": "x"}, "priority": 0}
    return [
        broker.http("POST", f"definitions/{vhost}", {"policies": [wrong_policy]}),
        broker.http("POST", f"definitions/{vhost}", "{")[0],
        broker.http("POST", "definitions/nope", {"queues": []})[0],
    ]


def definitions_with_users_and_permissions(broker: Broker) -> Record:
    name = broker.user("carried", "monitoring", ("^a", "^b", "^c"))
    body = {"exchange": "amq.topic", "write": "^w", "read": "^r"}
    broker.http("PUT", f"topic-permissions/%2F/{name}", body)
    document = broker.http("GET", "definitions")[1]
    mine = {
        kind: [row for row in document[kind] if row.get("user", row.get("name")) == name]
        for kind in ("users", "permissions", "topic_permissions")
    }
    hashed = mine["users"][0].pop("password_hash")
    broker.http("DELETE", f"users/{name}")
    user = mine["users"][0] | {"password_hash": hashed}
    posted = broker.http("POST", "definitions", mine | {"users": [user]})[0]
    answer = broker.http("GET", "whoami", user=name, password=name)
    return [sorted(document), mine, posted, answer]


def parameters(broker: Broker) -> Record:
    name = broker.own("mine")
    return [
        broker.http("PUT", f"global-parameters/{name}", {"name": name, "value": {"a": [1, "x"]}}),
        broker.http("GET", f"global-parameters/{name}"),
        broker.http("DELETE", f"global-parameters/{name}"),
        broker.http("GET", f"global-parameters/{name}"),
        broker.http("PUT", "parameters/nonsense/%2F/x", {"value": 1}),
        broker.http("GET", "parameters/nonsense")[0],
    ]


def documents_keep_the_order_of_their_keys(broker: Broker) -> Record:
    """The answer to a declaration is empty, and what was stored can be read back as it was."""
    broker.forget("queue", "q")
    arguments = {"x-max-priority": 5, "x-b": "2", "x-a": {"z": 1, "y": [True, "x"]}}
    made = broker.http("PUT", "queues/%2F/q", {"durable": True, "arguments": arguments})
    found = broker.http("GET", "queues/%2F/q")[1]["arguments"]
    return [made, json.dumps(found, sort_keys=True)]
