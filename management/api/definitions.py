"""/api/definitions: export and import of everything that lasts but messages.

Owns no state. An upload is a JSON body, or a form with a field `file` as a browser sends it. Exclusive queues, built-in
exchanges and the default exchange's bindings are left out, as in RabbitMQ.
Source: rabbit_mgmt_wm_definitions and rabbit_definitions (3.13).
"""

from __future__ import annotations

from typing import Any

from burrowmq.broker import inspect
from burrowmq.broker.definitions.parameters import INTERNAL
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.words import json_document
from burrowmq.management import commands
from burrowmq.management.aio import web
from burrowmq.management.answers import status
from burrowmq.management.answers.reply import Call, Route, bad_request, no_content, reply

Row = dict[str, Any]
QUEUE_KEYS = ("name", "vhost", "durable", "auto_delete", "arguments")
EXCHANGE_KEYS = ("name", "vhost", "type", "durable", "auto_delete", "internal", "arguments")
BINDING_KEYS = ("source", "vhost", "destination", "destination_type", "routing_key", "arguments")


def _pick(row: Row, names: tuple[str, ...]) -> Row:
    return {name: row[name] for name in names}


def document(node: RunningNode, vhost: str | None = None) -> Row:
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
    if vhost is not None:
        for row in (*queues, *exchanges, *bindings):
            del row["vhost"]
        return {
            "rabbit_version": status.RABBITMQ_VERSION,
            "parameters": inspect.parameters(node, vhost),
            "policies": inspect.policies(node, vhost),
            "queues": queues,
            "exchanges": exchanges,
            "bindings": bindings,
        }
    return {
        "rabbit_version": status.RABBITMQ_VERSION,
        "rabbitmq_version": status.RABBITMQ_VERSION,
        "product_name": status.PRODUCT_NAME,
        "product_version": status.RABBITMQ_VERSION,
        "users": inspect.users(node),
        "vhosts": [
            {
                "name": row["name"],
                "limits": dict(node.vhosts[row["name"]].limits),
                "metadata": row["metadata"],
            }
            for row in inspect.vhosts(node)
        ],
        "permissions": inspect.permissions(node),
        "topic_permissions": inspect.topic_permissions(node),
        "parameters": inspect.parameters(node),
        "global_parameters": [
            row for row in inspect.global_parameters(node) if not row["name"].startswith(INTERNAL)
        ],
        "policies": inspect.policies(node),
        "queues": queues,
        "exchanges": exchanges,
        "bindings": bindings,
    }


async def export(call: Call) -> web.Response:
    """GET the document."""
    return reply(document(call.node, call.vhost_or_all()))


async def _upload(call: Call) -> bytes:
    if call.request.content_type != "multipart/form-data":
        return await call.request.read()
    field = (await call.request.post()).get("file")
    if isinstance(field, web.FileField):
        return field.file.read()
    return field.encode() if isinstance(field, str) else b""


async def take_over(call: Call) -> web.Response:
    """POST a document: what is missing is made, what is there already stays."""
    vhost = call.vhost_or_all()
    try:
        document = json_document.parse(await _upload(call))
    except ValueError as error:
        raise bad_request("failed_to_parse_json") from error
    if not isinstance(document, dict):
        raise bad_request("failed_to_parse_json")
    await commands.parameters.import_definitions(call.node, document, vhost)
    return no_content()


ROUTES = tuple(
    Route(method, path, handler, "administrator")
    for path in ("/api/definitions", "/api/definitions/{vhost}", "/api/all-configuration")
    for method, handler in (("GET", export), ("POST", take_over))
)
