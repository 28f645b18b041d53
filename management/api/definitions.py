"""/api/definitions: export and import of everything that lasts but messages.

Owns no state. An upload is a JSON body, or a form with a field `file` as a browser sends it. Exclusive queues, built-in
exchanges and the default exchange's bindings are left out, as in RabbitMQ.
Source: rabbit_mgmt_wm_definitions and rabbit_definitions (3.13).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from itertools import chain
from typing import Any

from burrowmq.broker import inspect
from burrowmq.broker.definitions.parameters import INTERNAL
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.product import RABBITMQ_VERSION
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.broker.words import json_document
from burrowmq.management import commands
from burrowmq.management.aio import http_exceptions, web
from burrowmq.management.answers import status
from burrowmq.management.answers.reply import (
    Call,
    Route,
    array_texts,
    bad_request,
    dump,
    no_content,
    reply_texts,
)
from burrowmq.management.answers.turns import pieces

Row = dict[str, Any]
# Read from the text of a document before other work gets its turn.
ENTRIES_PER_TURN = 500
# What aiohttp says of a form that is none, or whose parts are in no encoding that is known.
NO_FORM = (ValueError, LookupError, RuntimeError, http_exceptions.HttpProcessingError)
# What a file's name in a header has no place for.
NO_NAME = re.compile(r"[^A-Za-z0-9_ .@~+-]")
EXCHANGE_KEYS = ("name", "vhost", "type", "durable", "auto_delete", "internal", "arguments")
BINDING_KEYS = ("source", "vhost", "destination", "destination_type", "routing_key", "arguments")


def _pick(row: Row, names: tuple[str, ...]) -> Row:
    return {name: row[name] for name in names}


def _queue(queue: QueuePort) -> Row | None:
    """One queue; an exclusive one ends with its connection."""
    if queue.exclusive_owner is not None:
        return None
    return {
        "name": queue.name,
        "vhost": queue.vhost_name,
        "durable": queue.durable,
        "auto_delete": queue.auto_delete,
        "arguments": inspect.plain(queue.arguments),
    }


def _exchange(found: tuple[Vhost, str]) -> Row | None:
    vhost, name = found
    exchange = vhost.exchanges.get(name)
    if exchange is None or not name or name.startswith("amq."):
        return None
    return _pick(inspect.exchange_row(vhost, exchange), EXCHANGE_KEYS)


def _binding(bound: inspect.Bound) -> Row | None:
    vhost, binding = bound
    if isinstance(binding, str):
        return None
    if binding.destination_kind == "queue":
        queue = vhost.queues.get(binding.destination.name)
        if queue is None or queue.exclusive_owner is not None:
            return None
    return _pick(inspect.bound_row(bound), BINDING_KEYS)


def texts(node: RunningNode, vhost: str | None = None) -> Iterator[bytes]:
    """Everything, or what belongs to one vhost (then without the vhost's name), in RabbitMQ's order."""
    yield dump(_head(vhost)).removesuffix(b"}")  # what follows belongs into the same object
    for section, rows in _settings_of_all(node) if vhost is None else _settings(node, vhost):
        yield f',"{section}":'.encode()
        yield from array_texts(rows, _same)
    owners = list(inspect.each_vhost(node, vhost))
    queues = chain.from_iterable(owner.queues_in_order() for owner in owners)
    bindings = (inspect.bound_from(owner, name) for owner, name in _exchange_names(owners) if name)
    sections: tuple[tuple[str, Iterable[Any], Callable[[Any], Row | None]], ...] = (
        ("queues", queues, _queue),
        ("exchanges", _exchange_names(owners), _exchange),
        ("bindings", chain.from_iterable(bindings), _binding),
    )
    for section, things, row in sections:
        yield f',"{section}":'.encode()
        yield from array_texts(things, row if vhost is None else partial(_without_vhost, row))
    yield b"}"


def _exchange_names(owners: list[Vhost]) -> Iterator[tuple[Vhost, str]]:
    """By virtual host; those of one are put in order when it is their turn."""
    return ((owner, name) for owner in owners for name in sorted(owner.exchanges))


def _without_vhost(row: Callable[[Any], Row | None], thing: Any) -> Row | None:
    found = row(thing)
    if found is not None:
        del found["vhost"]
    return found


def _same(row: Row) -> Row:
    return row


def _head(vhost: str | None) -> Row:
    version = RABBITMQ_VERSION
    if vhost is not None:
        return {"rabbit_version": version}
    return {
        "rabbit_version": version,
        "rabbitmq_version": version,
        "product_name": status.PRODUCT_NAME,
        "product_version": version,
    }


Section = tuple[str, Iterable[Row]]


def _settings(node: RunningNode, vhost: str | None) -> Iterator[Section]:
    yield "parameters", inspect.parameters(node, vhost)
    yield "policies", inspect.policies(node, vhost)


def _settings_of_all(node: RunningNode) -> Iterator[Section]:
    """There may be very many of each: rows are made one after the other."""
    yield "users", inspect.users(node)
    yield "vhosts", map(partial(_vhost, node), inspect.vhosts(node))
    yield "permissions", inspect.each_permission(node)
    yield "topic_permissions", inspect.each_topic_permission(node)
    (parameters, policies) = _settings(node, None)
    yield parameters
    values = inspect.global_parameters(node)
    yield "global_parameters", (row for row in values if not row["name"].startswith(INTERNAL))
    yield policies


def _vhost(node: RunningNode, row: Row) -> Row:
    limits = dict(node.vhosts[row["name"]].limits) if row["name"] in node.vhosts else {}
    return {"name": row["name"], "limits": limits, "metadata": row["metadata"]}


async def export(call: Call) -> web.StreamResponse:
    """GET the document; `download` names a file that a browser keeps it in."""
    headers, file = {}, call.query("download", "")
    if file:
        headers["Content-Disposition"] = f'attachment; filename="{NO_NAME.sub("_", file)}"'
    return await reply_texts(call, texts(call.node, call.vhost_or_all()), headers)


async def _upload(call: Call) -> bytes:
    if call.request.content_type != "multipart/form-data":
        return await call.request.read()
    try:
        field = (await call.request.post()).get("file")
    except NO_FORM as error:
        raise bad_request("failed_to_parse_json") from error
    if isinstance(field, web.FileField):
        return field.file.read()
    return field.encode() if isinstance(field, str) else b""


async def document_of(call: Call) -> Row:
    """The document that was sent, read in turns: it may be 20 MB. Raises: ApiError 400."""
    reading = json_document.Reading(await _upload(call))
    try:
        async for _ in pieces(reading.steps(), ENTRIES_PER_TURN):
            pass
    except ValueError as error:
        raise bad_request("failed_to_parse_json") from error
    if not isinstance(reading.value, dict):
        raise bad_request("failed_to_parse_json")
    return reading.value


async def take_over(call: Call) -> web.Response:
    """POST a document: what is missing is made, what is there already stays."""
    vhost = call.vhost_or_all()
    mirrored_as = call.query("mirrored_as", "classic")
    if mirrored_as not in ("classic", "quorum"):
        raise bad_request(f"mirrored_as is classic or quorum, not {mirrored_as}")
    await commands.parameters.import_definitions(
        call.node,
        await document_of(call),
        vhost,
        is_mirrored_quorum=mirrored_as == "quorum",
    )
    return no_content()


ROUTES = tuple(
    Route(method, path, handler, "administrator")
    for path in ("/api/definitions", "/api/definitions/{vhost}", "/api/all-configuration")
    for method, handler in (("GET", export), ("POST", take_over))
)
