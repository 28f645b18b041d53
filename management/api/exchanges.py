"""/api/exchanges: list, declare, delete, bindings of one, publish.

Owns no state. The default exchange is addressed as `amq.default` and has the empty name in replies.
Source: rabbit_mgmt_wm_exchange, rabbit_mgmt_wm_exchange_publish (3.13).
"""

from __future__ import annotations

import base64
import binascii
import json
from typing import Any

from burrowmq.broker import inspect
from burrowmq.broker.channel.methods.topology import clean_name
from burrowmq.broker.exchange.base import Exchange
from burrowmq.broker.exchange.graph import alternate_exchange
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.management import commands, messages
from burrowmq.management.aio import web
from burrowmq.management.answers.listing import (
    by_rows,
    reply_list,
    reply_listed,
    reply_one,
)
from burrowmq.management.answers.ranges import NO_RANGES, Ranges, finish_of, ranges_of, with_past
from burrowmq.management.answers.rates import exchange_key
from burrowmq.management.answers.reply import (
    Call,
    Route,
    arguments_of,
    bad_request,
    created,
    flag_of,
    no_content,
    not_found,
    reply,
    require_keys,
    routing_key_of,
    unauthorised,
)
from burrowmq.management.api.bindings import reply_bindings
from burrowmq.management.history.history import EXCHANGE
from burrowmq.protocol.errors import AccessRefused, PreconditionFailed
from burrowmq.protocol.table import from_json


def _public(call: Call, row: dict[str, Any], ranges: Ranges = NO_RANGES) -> dict[str, Any]:
    return with_past(call, EXCHANGE, exchange_key(row["vhost"], row["name"]), row, ranges)


def _name(call: Call) -> str:
    name = call.path("exchange")
    return "" if name == "amq.default" else name


async def exchanges(call: Call) -> web.StreamResponse:
    """The list."""
    ranges = ranges_of(call, error="invalid_range_parameters")
    asked = inspect.each_vhost(call.node, call.vhost_or_all())
    owners = [owner for owner in asked if call.caller.may_see(call.node, owner.name)]

    def row(seen: Seen) -> dict[str, Any]:
        return _public(call, inspect.exchange_row(*seen))

    listed = by_rows(inspect.each_exchange(owners), row, _exchange_name, "vhost")
    finish = finish_of(lambda row: _public(call, row, ranges), ranges)
    return await reply_listed(call, listed, finish)


Seen = tuple[Vhost, Exchange]


def _exchange_name(seen: Seen) -> str:
    return seen[1].name


def _row(call: Call) -> dict[str, Any]:
    owner = call.node.vhosts[call.vhost()]
    found = owner.exchanges.get(_name(call))
    if found is None:
        raise not_found()
    return inspect.exchange_row(owner, found)


async def exchange(call: Call) -> web.Response:
    """One exchange."""
    row = _public(call, _row(call), ranges_of(call))
    return reply_one(call, {**row, "incoming": [], "outgoing": []})


async def declare(call: Call) -> web.Response:
    """PUT: 201 when it is new, 204 when it was there with the same properties."""
    vhost, name, body = call.vhost(), clean_name(_name(call)), await call.body()
    call.check_node_of(body)
    arguments = arguments_of(body)
    if not name:
        raise unauthorised("Access refused.")
    commands.users.require(call, vhost, "configure", "exchange", name)
    if name not in call.node.vhosts[vhost].exchanges:
        alternate = alternate_exchange(from_json(arguments), name, vhost)
        commands.users.require_way(call, vhost, "exchange", name, alternate)
    asked = (
        call.node,
        vhost,
        name,
        _type(body),
        (
            flag_of(body, "durable", False),
            flag_of(body, "auto_delete", False),
            flag_of(body, "internal", False),
        ),
        arguments,
    )
    is_new = await commands.topology.agree_on_exchange(*asked)
    is_new |= commands.topology.declare_exchange(*asked)
    return created() if is_new else no_content()


def _type(body: dict[str, Any]) -> str:
    kind = body.get("type", "direct")
    if not isinstance(kind, str):
        raise bad_request(f"invalid exchange type '{json.dumps(kind)}'")
    return kind


async def delete(call: Call) -> web.Response:
    """DELETE, with if-unused."""
    vhost, name = call.vhost(), _name(call)
    _row(call)
    commands.users.require(call, vhost, "configure", "exchange", name)
    await commands.topology.end_exchange(call.node, vhost, name, call.flag("if-unused"))
    return no_content()


async def bindings_of(call: Call) -> web.StreamResponse:
    """The bindings that an exchange is the source or the destination of."""
    vhost, name, side = call.vhost(), _name(call), call.path("side")
    owner = call.node.vhosts[vhost]
    if side == "destination":
        rows = inspect.bindings_to(owner, "exchange", name)
        return await reply_list(call, rows, sort=("source", "destination"))
    return await reply_bindings(call, inspect.bound_from(owner, name))


async def publish(call: Call) -> web.Response:
    """POST one message; says whether it reached a queue."""
    vhost, name, body = call.vhost(), _name(call), await call.body()
    require_keys(body, "routing_key", "properties", "payload", "payload_encoding")
    if name not in call.node.vhosts[vhost].exchanges:
        raise bad_request(f"404 NOT_FOUND - no exchange '{name}' in vhost '{vhost}'")
    properties = body["properties"] or {}
    if not isinstance(properties, dict):
        raise bad_request("properties must be an object")
    key = routing_key_of(body)
    try:
        commands.users.require(call, vhost, "write", "exchange", name)
        commands.users.require_topic(call, vhost, "write", name, key)
        commands.users.require_user_id(call, properties.get("user_id"))
        routed = await messages.publish(call.node, vhost, name, key, properties, _payload(body))
    except (AccessRefused, PreconditionFailed) as refusal:
        # RabbitMQ publishes over a channel and tells what closed it.
        raise bad_request(f"{int(refusal.reply_code)} {refusal.reply_text}") from refusal
    return reply({"routed": routed})


def _payload(body: dict[str, Any]) -> bytes:
    text = body["payload"]
    if not isinstance(text, str):
        raise bad_request("payload_not_string")
    if body["payload_encoding"] == "string":
        return text.encode("utf-8")
    if body["payload_encoding"] != "base64":
        raise bad_request(["unsupported_encoding", body["payload_encoding"]])
    try:
        # RabbitMQ passes white space over in base64.
        return base64.b64decode("".join(text.split()), validate=True)
    except (binascii.Error, ValueError) as error:
        raise bad_request(["not_base64", text]) from error


ROUTES = (
    Route("GET", "/api/exchanges", exchanges),
    Route("GET", "/api/exchanges/{vhost}", exchanges),
    Route("GET", "/api/exchanges/{vhost}/{exchange}", exchange),
    Route("PUT", "/api/exchanges/{vhost}/{exchange}", declare),
    Route("DELETE", "/api/exchanges/{vhost}/{exchange}", delete),
    Route(
        "GET", "/api/exchanges/{vhost}/{exchange}/bindings/{side:source|destination}", bindings_of
    ),
    Route("POST", "/api/exchanges/{vhost}/{exchange}/publish", publish),
)
