"""What goes into the bodies of PUT and POST, as JSON Schema for the description of the API.

Owns no state. A row for each path that takes a body; handlers check bodies themselves, in RabbitMQ's words, and a fuzz
test sends what these rows say and what they forbid. Lenient places (booleans and numbers as texts, tags as a list or a
text) are said as they are.
"""

from __future__ import annotations

from typing import Any

Schema = dict[str, Any]

TEXT: Schema = {"type": "string"}
INTEGER: Schema = {"type": "integer"}
OBJECT: Schema = {"type": "object"}
ANY: Schema = {}
# rabbitmqadmin sends booleans and numbers as texts.
FLAG: Schema = {"anyOf": [{"type": "boolean"}, {"type": "string", "enum": ["true", "false"]}]}
COUNT: Schema = {"anyOf": [INTEGER, {"type": "string", "pattern": "^-?[0-9]+$"}]}
TAGS: Schema = {"anyOf": [{"type": "array", "items": TEXT}, TEXT]}


def _body(*required: str, **properties: Schema) -> Schema:
    named = {name.replace("__", "-"): schema for name, schema in properties.items()}
    schema: Schema = {"type": "object", "properties": named}
    return schema | ({"required": list(required)} if required else {})


def _one_of(*values: str) -> Schema:
    return {"type": "string", "enum": list(values)}


PROPERTIES = _body(
    **dict.fromkeys(
        ("content_type", "content_encoding", "correlation_id", "reply_to", "expiration", "message_id", "type",
         "user_id", "app_id", "cluster_id"),
        TEXT,
    ),
    **dict.fromkeys(("delivery_mode", "priority", "timestamp"), COUNT),
    headers=OBJECT,
)  # fmt: skip
VALUE = _body("value", value=ANY)
LIMIT = _body("value", value=INTEGER)
SWITCH = _body("enabled", enabled={"type": "boolean"})
POLICY = _body(
    "pattern", "definition", pattern=TEXT, definition=OBJECT, priority=INTEGER,
    apply__to=_one_of("all", "queues", "classic_queues", "exchanges"),
)  # fmt: skip
QUEUE_TYPE = _one_of("classic", "undefined")
VHOST = _body(description=TEXT, tags=TAGS, default_queue_type=QUEUE_TYPE, tracing=FLAG)
TOPIC = _body("exchange", "write", "read", exchange=TEXT, write=TEXT, read=TEXT)
LOGIN = _body("username", "password", username=TEXT, password=TEXT)
_ENTRIES = {"type": "array", "items": OBJECT}
DEFINITIONS = _body(
    **dict.fromkeys(
        ("users", "vhosts", "permissions", "topic_permissions", "parameters", "global_parameters", "policies", "queues",
         "exchanges", "bindings"),
        _ENTRIES,
    )
)  # fmt: skip

BODIES: dict[tuple[str, str], Schema] = {
    ("PUT", "/api/cluster-name"): _body("name", name=TEXT),
    ("PUT", "/api/queues/{vhost}/{name}"): _body(durable=FLAG, auto_delete=FLAG, arguments=OBJECT, node=TEXT),
    ("POST", "/api/queues/{vhost}/{name}/get"): _body(
        "count", "ackmode", "encoding", count=COUNT, truncate=COUNT, encoding=_one_of("auto", "base64"),
        ackmode=_one_of("ack_requeue_true", "ack_requeue_false", "reject_requeue_true", "reject_requeue_false"),
    ),
    ("POST", "/api/queues/{vhost}/{name}/actions"): _body("action", action=_one_of("sync", "cancel_sync")),
    ("POST", "/api/queues/quorum/{vhost}/{name}/replicas/add"): _body("node", node=TEXT),
    ("POST", "/api/queues/quorum/replicas/on/{node}/grow"): _body(
        "vhost_pattern", "queue_pattern", "strategy", vhost_pattern=TEXT, queue_pattern=TEXT,
        strategy=_one_of("all", "even"),
    ),
    ("POST", "/api/burrowmq/members"): _body(
        "action", action=_one_of("add", "delete", "grow", "shrink", "status"), kind=_one_of("quorum", "stream"),
        node=TEXT, vhost=TEXT, name=TEXT, strategy=_one_of("all", "even"), vhost_pattern=TEXT, queue_pattern=TEXT,
    ),
    ("PUT", "/api/exchanges/{vhost}/{exchange}"): _body(
        type=_one_of("direct", "fanout", "headers", "topic"), durable=FLAG, auto_delete=FLAG, internal=FLAG,
        arguments=OBJECT, node=TEXT,
    ),
    ("POST", "/api/exchanges/{vhost}/{exchange}/publish"): _body(
        "properties", "routing_key", "payload", "payload_encoding", properties=PROPERTIES, routing_key=TEXT,
        payload=TEXT, payload_encoding=_one_of("string", "base64"),
    ),
    ("POST", "/api/bindings/{vhost}/e/{source}/{kind}/{destination}"): _body(routing_key=TEXT, arguments=OBJECT),
    ("PUT", "/api/vhosts/{vhost}"): VHOST,
    ("POST", "/api/burrowmq/vhosts/{vhost}"): VHOST,
    ("PUT", "/api/users/{user}"): _body(
        "tags", password=TEXT, password_hash=TEXT, hashing_algorithm=TEXT, tags=TAGS, limits=OBJECT),
    ("POST", "/api/users/bulk-delete"): _body("users", users={"type": "array", "items": TEXT}),
    ("PUT", "/api/permissions/{vhost}/{user}"): _body(
        "configure", "write", "read", configure=TEXT, write=TEXT, read=TEXT),
    ("PUT", "/api/topic-permissions/{vhost}/{user}"): TOPIC,
    ("PUT", "/api/topic-permissions/{vhost}/{user}/{exchange}"): TOPIC,
    ("PUT", "/api/policies/{vhost}/{name}"): POLICY,
    ("PUT", "/api/operator-policies/{vhost}/{name}"): POLICY,
    ("POST", "/api/burrowmq/pages/policy-preview/{vhost}"): POLICY,
    ("PUT", "/api/parameters/{component}/{vhost}/{name}"): VALUE,
    ("PUT", "/api/global-parameters/{name}"): VALUE,
    ("PUT", "/api/vhost-limits/{vhost}/{name}"): LIMIT,
    ("PUT", "/api/user-limits/{user}/{name}"): LIMIT,
    ("POST", "/api/definitions"): DEFINITIONS,
    ("POST", "/api/definitions/{vhost}"): DEFINITIONS,
    ("POST", "/api/all-configuration"): DEFINITIONS,
    ("POST", "/api/login"): LOGIN,
    ("POST", "/api/burrowmq/authenticate"): LOGIN,
    ("POST", "/api/burrowmq/hash-password"): _body("password", password=TEXT),
    ("POST", "/api/burrowmq/memory-watermark"): _body(relative={"type": "number"}, absolute={"type": "number"}),
    ("POST", "/api/burrowmq/disk-free-limit"): _body(mem_relative={"type": "number"}, absolute={"type": "number"}),
    ("POST", "/api/burrowmq/log-level"): _body(
        "level", level=_one_of("debug", "info", "warning", "error", "critical", "none")),
    ("POST", "/api/burrowmq/listeners"): _body("accept", accept={"type": "boolean"}),
    ("POST", "/api/burrowmq/maintenance"): SWITCH,
    ("POST", "/api/burrowmq/disk-watch"): SWITCH,
    ("POST", "/api/burrowmq/backup"): _body("directory", directory=TEXT),
    ("POST", "/api/burrowmq/close-connections"): _body(
        pid=TEXT, vhost=TEXT, user=TEXT, reason=TEXT, limit=INTEGER),
    ("POST", "/api/burrowmq/delete-queue"): _body(
        "name", vhost=TEXT, name=TEXT, if_unused={"type": "boolean"}, if_empty={"type": "boolean"}),
    ("POST", "/api/burrowmq/vhost-limits/{vhost}"): _body("value", value=OBJECT),
    ("POST", "/api/burrowmq/user-limits/{user}"): _body(value=OBJECT, clear=TEXT),
}  # fmt: skip
WITHOUT_BODY = frozenset(
    {
        ("PUT", "/api/feature-flags/{name}/enable"),
        ("POST", "/api/rebalance/queues"),
        ("POST", "/api/vhosts/{vhost}/start/{node}"),
        ("POST", "/api/vhosts/{vhost}/deletion/protection"),
        ("POST", "/api/burrowmq/collect-garbage"),
        ("POST", "/api/burrowmq/shutdown"),
        ("POST", "/api/burrowmq/stop-app"),
        ("POST", "/api/burrowmq/start-app"),
    }
)
