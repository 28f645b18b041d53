"""/api/burrowmq/pages of exchanges: one exchange with its bindings both ways, and "where would this key go?".

Owns no state; nothing is changed and nothing is published. Bindings are told of up to a limit and counted beyond it,
and long looks give way to other work. A question may be asked in the name of another user by administrators.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Generator, Iterable
from typing import Any

from burrowmq.broker import inspect
from burrowmq.broker.exchange.base import Exchange
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.broker.words.resource import describe
from burrowmq.management.aio import web
from burrowmq.management.answers.ranges import history_of, with_past
from burrowmq.management.answers.rates import exchange_key
from burrowmq.management.answers.reply import (
    Call,
    Route,
    bad_request,
    not_found,
    reply,
    table_of,
    unauthorised,
)
from burrowmq.management.answers.turns import ROWS_PER_TURN
from burrowmq.management.history.history import EXCHANGE
from burrowmq.protocol.errors import AccessRefused
from burrowmq.protocol.table import from_json

BINDINGS_MAX = 500
TURN_S = 0.005

Row = dict[str, Any]


def _exchange(call: Call) -> tuple[Vhost, Exchange]:
    vhost, name = call.node.vhosts[call.vhost(is_question=True)], call.path("exchange")
    found = vhost.exchanges.get("" if name == "amq.default" else name)
    if found is None:
        raise not_found()
    return vhost, found


async def exchange_page(call: Call) -> web.Response:
    """One exchange: its row, its alternate, its bindings both ways, those of `name` if the query has one."""
    vhost, exchange = _exchange(call)
    row, key = inspect.exchange_row(vhost, exchange), exchange_key(vhost.name, exchange.name)
    outgoing = await some(call, inspect.bindings_from(vhost, exchange.name))
    incoming = await some(call, inspect.bindings_to(vhost, "exchange", exchange.name))
    return reply(
        {
            "exchange": with_past(call, EXCHANGE, key, row),
            "history": history_of(call, EXCHANGE, [key], EXCHANGE.columns),
            "alternate": _alternate(vhost, exchange),
            "outgoing": outgoing[0],
            "outgoing_count": outgoing[1],
            "incoming": incoming[0],
            "incoming_count": incoming[1],
        }
    )


def _alternate(vhost: Vhost, exchange: Exchange) -> Row | None:
    if exchange.alternate is None:
        return None
    return {
        "name": exchange.alternate,
        "exists": exchange.alternate in vhost.exchanges,
        "source": "argument" if "alternate-exchange" in exchange.arguments else "policy",
    }


async def some(call: Call, rows: Iterable[Row]) -> tuple[list[Row], int]:
    """The first bindings of those that the query's `name` stands in, and how many there are."""
    wanted, count = call.query("name"), 0
    found: list[Row] = []
    for at, row in enumerate(rows):
        if at % ROWS_PER_TURN == ROWS_PER_TURN - 1:
            await asyncio.sleep(0)
        if any(wanted in row[key] for key in ("source", "destination", "routing_key")):
            count += 1
            if len(found) < BINDINGS_MAX:
                found.append(row)
    return found, count


async def route(call: Call) -> web.Response:
    """POST a routing key and headers: where a message with them would go, and why it would not go elsewhere."""
    vhost, exchange = _exchange(call)
    body = await call.body()
    headers = table_of(body.get("headers") or {}, "headers")
    question = inspect.Question(
        routing_key=str(body.get("routing_key", "")),
        headers=from_json(headers),
        about=str(body.get("about", "")),
    )
    refused = _refusal(call, vhost, exchange, question.routing_key, str(body.get("user") or ""))
    return reply({"refused": refused, **await _told(inspect.explain(vhost, exchange, question))})


def _refusal(call: Call, vhost: Vhost, exchange: Exchange, key: str, name: str) -> str | None:
    """What a publish by the user (the caller, if no other is named) would be refused with."""
    auth = call.node.auth
    if name and name != call.caller.name and not call.caller.may("administrator"):
        raise unauthorised("User not authorised to access object")
    if call.caller.is_trusted and not name:
        return None
    user = auth.users.get(name or call.caller.name)
    if user is None:
        raise bad_request(f"no user '{name}'")
    if exchange.internal:
        where = describe("exchange", exchange.name, vhost.name)
        return AccessRefused(f"cannot publish to internal {where}").reply_text
    try:
        auth.check(user, vhost.name, "write", "exchange", exchange.name)
        if exchange.type == "topic":
            auth.check_topic(user, vhost.name, "write", exchange.name, key)
    except AccessRefused as refusal:
        return refusal.reply_text
    return None


async def _told(telling: Generator[None, None, Row]) -> Row:
    """The answer, with turns for other work while it is made."""
    turn = time.monotonic()
    while True:
        try:
            next(telling)
        except StopIteration as end:
            return dict(end.value)
        if time.monotonic() - turn > TURN_S:
            await asyncio.sleep(0)
            turn = time.monotonic()


ROUTES = (
    Route("GET", "/api/burrowmq/pages/exchange/{vhost}/{exchange}", exchange_page),
    Route("POST", "/api/burrowmq/pages/route/{vhost}/{exchange}", route, is_kept=False),
)
