"""/api/definitions: export of users, vhosts, permissions, queues, exchanges and bindings.

Owns no state. Exclusive queues, built-in exchanges and the default exchange's bindings are left out, as in RabbitMQ.
Source: rabbit_mgmt_wm_definitions and rabbit_definitions (3.13).
"""

from __future__ import annotations

from typing import Any

from broker import inspect
from management import status
from management.aio import web
from management.reply import Call, Route, reply

Row = dict[str, Any]
QUEUE_KEYS = ("name", "vhost", "durable", "auto_delete", "arguments", "type")
EXCHANGE_KEYS = ("name", "vhost", "type", "durable", "auto_delete", "internal", "arguments")
BINDING_KEYS = ("source", "vhost", "destination", "destination_type", "routing_key", "arguments")


def _pick(row: Row, names: tuple[str, ...]) -> Row:
    return {name: row[name] for name in names}


def document(node: Any, vhost: str | None = None) -> Row:
    """Everything, or what belongs to one vhost (then without the vhost's name)."""
    exclusive = {
        (row["vhost"], row["name"])
        for row in inspect.queues(node, vhost, ("vhost", "name", "exclusive"))
        if row["exclusive"]
    }
    queues = [
        _pick(row, QUEUE_KEYS)
        for row in inspect.queues(node, vhost, QUEUE_KEYS)
        if (row["vhost"], row["name"]) not in exclusive
    ]
    exchanges = [
        _pick(row, EXCHANGE_KEYS)
        for row in inspect.exchanges(node, vhost)
        if row["name"] and not row["name"].startswith("amq.")
    ]
    bindings = [
        _pick(row, BINDING_KEYS)
        for row in inspect.bindings(node, vhost)
        if row["source"]
        and not (
            row["destination_type"] == "queue" and (row["vhost"], row["destination"]) in exclusive
        )
    ]
    shared: Row = {
        "rabbit_version": status.RABBITMQ_VERSION,
        "rabbitmq_version": status.RABBITMQ_VERSION,
        "product_name": status.PRODUCT_NAME,
        "product_version": status.RABBITMQ_VERSION,
    }
    if vhost is not None:
        for row in (*queues, *exchanges, *bindings):
            del row["vhost"]
        return {**shared, "parameters": [], "policies": [], "queues": queues, "exchanges": exchanges,
                "bindings": bindings}  # fmt: skip
    return {
        **shared,
        "users": inspect.users(node),
        "vhosts": [
            {"name": row["name"], "metadata": row["metadata"]} for row in inspect.vhosts(node)
        ],
        "permissions": inspect.permissions(node),
        "topic_permissions": [],
        "parameters": [],
        "global_parameters": [{"name": "cluster_name", "value": node.name}],
        "policies": [],
        "queues": queues,
        "exchanges": exchanges,
        "bindings": bindings,
    }


async def export(call: Call) -> web.Response:
    """GET the document."""
    return reply(document(call.node, call.vhost_or_all()))


ROUTES = (
    Route("GET", "/api/definitions", export, "administrator"),
    Route("GET", "/api/definitions/{vhost}", export, "administrator"),
)
