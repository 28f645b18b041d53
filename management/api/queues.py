"""/api/queues and what hangs below it: one queue, its bindings, purge, delete, declare, get.

Owns no state. The list without `columns` is RabbitMQ 3.13's reduced set; `columns=` or `queues/detailed` give all.
Source: rabbit_mgmt_wm_queues, rabbit_mgmt_wm_queue, rabbit_mgmt_wm_queue_get (3.13).
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from operator import attrgetter
from typing import Any

from burrowmq.broker import inspect
from burrowmq.broker.channel.methods.topology import clean_name
from burrowmq.broker.queue.dormant import DORMANT_BYTES
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.queue.rules.settings import dead_letter_exchange
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.management import commands, messages
from burrowmq.management.aio import web
from burrowmq.management.answers import idle
from burrowmq.management.answers.listing import (
    PAGE_SIZE_LIMIT,
    Finish,
    Listed,
    dig,
    rank,
    reply_list,
    reply_listed,
    reply_with,
)
from burrowmq.management.answers.ranges import (
    NO_RANGES,
    Ranges,
    finish_of,
    history_of,
    ranges_of,
    with_past,
)
from burrowmq.management.answers.rates import queue_key
from burrowmq.management.answers.reply import (
    ApiError,
    Call,
    Route,
    arguments_of,
    bad_request,
    collect,
    created,
    flag_of,
    no_content,
    not_found,
    number_of,
    reply,
    reply_rows,
    require_keys,
    unauthorised,
)
from burrowmq.management.api.connections import public
from burrowmq.management.history.history import QUEUE
from burrowmq.protocol.errors import AccessRefused
from burrowmq.protocol.table import from_json

Row = dict[str, Any]

GET_LIMIT = 10_000
# What is more, or larger, is made into text in a thread.
GOT_INLINE, GOT_INLINE_BYTES = 100, 64 * 1024
IDLE = "idle_since"
ACK_MODES = ("ack_requeue_true", "ack_requeue_false", "reject_requeue_true", "reject_requeue_false")


def _columns(call: Call) -> tuple[str, ...]:
    """Only the attributes that the reply needs, so that a monitoring script pays for two columns if it asks for two."""
    asked = [
        name.split(".")[0].removesuffix("_details")
        for name in call.query("columns").split(",")
        if name
    ]
    if not asked:
        return inspect.REDUCED_QUEUE_COLUMNS
    needed = ["vhost", "name", call.query("sort").split(".")[0], *asked]
    if "owner_pid_details" in call.query("columns"):
        needed.append("owner_pid_details")
    return tuple(dict.fromkeys(name for name in needed if name in inspect.QUEUE_COLUMNS))


def _with_idle(call: Call, row: Row, columns: str) -> Row:
    """Add `idle_since` where the query asks for it, or for everything; a busy queue has none."""
    if not columns or IDLE in columns.split(","):
        owner = call.node.vhosts.get(row["vhost"])
        queue = None if owner is None else owner.queues.get(row["name"])
        found = None if queue is None else idle.queue_since(call, queue)
        if found is not None:
            row[IDLE] = found
    return row


def with_rates(call: Call, row: dict[str, Any], ranges: Ranges = NO_RANGES) -> dict[str, Any]:
    """Add `_details` beside counts and inside message_stats; drop what RabbitMQ leaves out."""
    with_past(call, QUEUE, queue_key(row["vhost"], row["name"]), row, ranges)
    # rabbitmqadmin prints a row without a field, but fails at null.
    if row.get("owner_pid_details", 0) is None:
        del row["owner_pid_details"]
    return row


async def _reply_queues(call: Call, columns: tuple[str, ...]) -> web.StreamResponse:
    node = call.node
    seen = [
        owner
        for owner in inspect.each_vhost(node, call.vhost_or_all())
        if call.caller.may_see(node, owner.name)
    ]
    # Of these, whichever is deleted while rows are made.
    vhosts = {owner.name: owner for owner in seen}
    if len(seen) == 1:
        things = seen[0].queues_in_order()
    else:
        things = [queue for owner in seen for queue in owner.queues_in_order()]

    is_idle_shown = columns is inspect.DETAILED_QUEUE_COLUMNS or IDLE in call.query("columns")

    def row(queue: QueuePort) -> Row:
        made = with_rates(call, inspect.queue_row(node, vhosts[queue.vhost_name], queue, columns))
        return _with_idle(call, made, call.query("columns")) if is_idle_shown else made

    ranges = ranges_of(call, error="invalid_range_parameters", are_lengths_rounded_up=True)
    finish = finish_of(functools.partial(with_rates, call, ranges=ranges), ranges)
    if call.query("history"):
        finish = Finish(functools.partial(_with_depths, call), PAGE_SIZE_LIMIT)
    listed = Listed(things, row, _name, lambda by: _key(call, vhosts, by))
    return await reply_listed(call, listed, finish)


_name: Callable[[QueuePort], str] = attrgetter("name")


def _key(call: Call, vhosts: dict[str, Vhost], by: str) -> Callable[[QueuePort], Any] | None:
    """What sorts queues by a column without their rows: most of a hundred thousand are never shown."""
    node, rates = call.node, call.rates
    if by in ("", "vhost"):
        return None
    if by == "name":
        return _name
    first, *rest = by.removesuffix(".rate").split(".")
    if by.endswith("_details.rate"):
        # A rate: of a counter in message_stats, or of a count beside it.
        counter = (rest[-1] if rest else first).removesuffix("_details")
        return lambda queue: (
            0.0
            if queue.is_dormant
            else rates.rate(queue_key(queue.vhost_name, queue.name), counter)
        )
    column = inspect.QUEUE_COLUMNS.get(first)
    if column is None:
        return None
    if first in inspect.NUMBERS_OF_QUEUES:
        empty = DORMANT_BYTES if first == "memory" else 0
        return lambda queue: (
            empty if queue.is_dormant else column(node, vhosts[queue.vhost_name], queue)
        )
    return lambda queue: rank(
        dig(inspect.queue_row(node, vhosts[queue.vhost_name], queue, (first,)), by)
    )


def _with_depths(call: Call, row: dict[str, Any]) -> None:
    """For the UI's lists: the depths of so many seconds, the oldest first; one figure when it was always the same."""
    found = history_of(call, QUEUE, [queue_key(row["vhost"], row["name"])], ("messages",))
    if found is not None:
        depths = found["columns"]["messages"]
        row["depths"] = depths[:1] if depths.count(depths[0]) == len(depths) else depths


async def queues(call: Call) -> web.StreamResponse:
    """The list."""
    return await _reply_queues(call, _columns(call))


async def queues_detailed(call: Call) -> web.StreamResponse:
    """The list with everything."""
    return await _reply_queues(call, inspect.DETAILED_QUEUE_COLUMNS)


async def queue(call: Call) -> web.StreamResponse:
    """One queue."""
    vhost, name = call.vhost(), call.path("name")
    row = inspect.queue(call.node, vhost, name)
    if row is None:
        raise not_found()
    owner = call.node.vhosts[vhost]
    consumers = inspect.consumers_of(call.node, owner, owner.queues[name])
    details = await collect(map(public, consumers))
    columns = call.query("columns")
    row = with_rates(call, row, ranges_of(call, are_lengths_rounded_up=True))
    _with_idle(call, row, columns)
    return await reply_with(call, row, "consumer_details", details)


async def declare(call: Call) -> web.Response:
    """PUT: 201 when it is new, 204 when it was there with the same properties."""
    vhost, name, body = call.target_vhost(), clean_name(call.path("name")), await call.body()
    call.check_node_of(body)
    arguments = arguments_of(body)
    if not name:
        raise bad_request("a queue needs a name")
    commands.users.require(call, vhost, "configure", "queue", name)
    if name not in call.node.vhosts[vhost].queues:
        exchange = dead_letter_exchange(from_json(arguments), name, vhost)
        commands.users.require_way(call, vhost, "queue", name, exchange)
    asked = (
        call.node,
        vhost,
        name,
        flag_of(body, "durable", False),
        flag_of(body, "auto_delete", False),
        arguments,
    )
    is_new = await commands.topology.agree_on_queue(*asked)
    is_new |= commands.topology.declare_queue(*asked)
    owner = call.node.vhosts[vhost]
    queue = owner.queues[name]
    try:
        await commands.commit.counted(queue)
    except ApiError:
        if is_new:
            commands.topology.unmake_queue(call.node, owner, queue)
        raise
    return created() if is_new else no_content()


async def delete(call: Call) -> web.Response:
    """DELETE, with if-empty and if-unused."""
    vhost, name = call.vhost(), call.path("name")
    found = commands.topology.queue_of(call.node, vhost, name)
    commands.users.require(call, vhost, "configure", "queue", name)
    commands.topology.require_access(call, vhost, found)
    await commands.commit.counted(found)
    if call.flag("if-unused") and len(found.consumers):
        raise bad_request(f"queue '{name}' in vhost '{vhost}' in use")
    if call.flag("if-empty") and found.ready_count:
        raise bad_request(f"queue '{name}' in vhost '{vhost}' not empty")
    await commands.topology.end_queue(call.node, found)
    return no_content()


async def purge(call: Call) -> web.Response:
    """DELETE contents."""
    vhost, name = call.vhost(), call.path("name")
    found = commands.topology.queue_of(call.node, vhost, name)
    commands.users.require(call, vhost, "read", "queue", name)
    commands.topology.require_access(call, vhost, found)
    await commands.topology.empty_queue(call.node, found)
    return no_content()


async def get(call: Call) -> web.Response:
    """POST get: take messages and acknowledge or requeue them as asked."""
    vhost, name, body = call.vhost(), call.path("name"), await call.body()
    if name not in call.node.vhosts[vhost].queues:
        raise ApiError(404, "not_found", "queue_not_found")
    require_keys(body, "ackmode", "count", "encoding")
    if body["ackmode"] not in ACK_MODES:
        raise bad_request(["unknown_ackmode", body["ackmode"]])
    if body["encoding"] not in ("auto", "base64"):
        raise bad_request("Unsupported encoding. Please use auto or base64.")
    truncate = number_of(body, "truncate") if "truncate" in body else None
    try:
        commands.users.require(call, vhost, "read", "queue", name)
    except AccessRefused as refusal:
        # RabbitMQ gets messages over a channel and tells what closed it.
        raise unauthorised(f"ACCESS_REFUSED - {refusal}") from refusal
    count = number_of(body, "count")
    count = GET_LIMIT if count < 0 else min(GET_LIMIT, count)  # RabbitMQ counts down to 0
    found = await messages.get(call.node, vhost, name, count, str(body["ackmode"]))
    rows = (messages.row(each, str(body["encoding"]), truncate) for each in found)
    size = sum(len(message.raw) for message, _, _ in found)
    if len(found) <= GOT_INLINE and size <= GOT_INLINE_BYTES:
        return reply(list(rows))
    return await reply_rows(rows)


async def queue_bindings(call: Call) -> web.StreamResponse:
    """What leads to the queue."""
    vhost, name = call.vhost(), call.path("name")
    commands.topology.queue_of(call.node, vhost, name)
    rows = inspect.bindings_to(call.node.vhosts[vhost], "queue", name)
    return await reply_list(call, rows, sort=("source",))


async def act(call: Call) -> web.Response:
    """POST sync or cancel_sync: there are no mirrors to do it to."""
    vhost, body = call.vhost(), await call.body()
    commands.topology.queue_of(call.node, vhost, call.path("name"))
    require_keys(body, "action")
    if body["action"] not in ("sync", "cancel_sync"):
        raise bad_request(["unknown", body["action"]])
    return no_content()


async def rebalance(call: Call) -> web.Response:
    """Share out who leads quorum queues and streams; the others are on the one node that there is."""
    await commands.leaders.rebalance(call.node)
    return no_content()


ROUTES = (
    Route("GET", "/api/queues", queues),
    Route("GET", "/api/queues/detailed", queues_detailed),
    Route("GET", "/api/queues/{vhost}", queues),
    Route("GET", "/api/queues/{vhost}/{name}", queue),
    Route("PUT", "/api/queues/{vhost}/{name}", declare),
    Route("DELETE", "/api/queues/{vhost}/{name}", delete),
    Route("DELETE", "/api/queues/{vhost}/{name}/contents", purge),
    Route("POST", "/api/queues/{vhost}/{name}/get", get, is_kept=False),
    Route("GET", "/api/queues/{vhost}/{name}/bindings", queue_bindings),
    Route("POST", "/api/queues/{vhost}/{name}/actions", act, "policymaker"),
    Route("POST", "/api/rebalance/queues", rebalance, "administrator"),
)
