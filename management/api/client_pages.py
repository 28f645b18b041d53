"""/api/burrowmq/pages of clients: connections, channels and consumers, with why they stand still and what they hold.

Owns no state. The rows are RabbitMQ's with more in them; who sees which is as in `management.api.connections`:
monitoring everybody's, others their own, and the consumers of all queues they can see. `text` in the query filters by
all that a row says of itself (name, user, address, client, state), since nobody knows a client by its port.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, cast

from burrowmq.broker import inspect
from burrowmq.broker.channel.channel import Channel
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.queue.serve.consumer import Consumer
from burrowmq.broker.session.session import Session
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.management import commands
from burrowmq.management.aio import web
from burrowmq.management.answers.listing import by_rows, reply_list, reply_listed, reply_with
from burrowmq.management.answers.ranges import history_of, with_past
from burrowmq.management.answers.rates import channel_key, connection_key
from burrowmq.management.answers.reply import (
    Call,
    Route,
    collect,
    not_found,
    reply,
    unauthorised,
)
from burrowmq.management.api.connections import name_of, own_channels, own_sessions, public
from burrowmq.management.history.history import CHANNEL, CONNECTION

RATES = ("publish", "deliver_get", "ack", "redeliver")

Row = dict[str, Any]


def _says(call: Call, *words: object) -> bool:
    """Whether the query's text stands in one of these."""
    wanted = call.query("text").lower()
    return not wanted or any(wanted in str(word).lower() for word in words)


def _connection_row(call: Call, session: Session) -> Row:
    row = public(inspect.connection_row(call.node, session))
    return {
        **with_past(call, CONNECTION, connection_key(session.name), row),
        "hindrances": inspect.hindrances(call.node, session),
        "messages_unacknowledged": inspect.unacked_count(session),
        "consumer_count": sum(len(each.consumers) for each in session.channels.values()),
    }


def _client(row: Row) -> Iterator[object]:
    """What a connection is known by."""
    properties = row["client_properties"]
    yield from (row[key] for key in ("name", "user_provided_name", "user", "vhost", "state"))
    yield from (properties.get(key, "") for key in ("product", "version", "platform"))
    yield from (each["reason"] for each in row["hindrances"])


async def connections(call: Call) -> web.StreamResponse:
    """The list."""
    if call.asks_for_page and not call.query("text"):
        shown, row = own_sessions(call), partial(_connection_row, call)
        return await reply_listed(call, by_rows(shown, row, name_of))
    rows = (_connection_row(call, session) for session in own_sessions(call))
    return await reply_list(
        call, (row for row in rows if _says(call, *_client(row))), sort=("name",)
    )


async def connection(call: Call) -> web.Response:
    """One connection, with its channels."""
    session = _found(call, commands.sessions.sessions_named(call.node, call.path("name")))
    rows = [_channel_row(call, session.channels[number]) for number in sorted(session.channels)]
    history = history_of(call, CONNECTION, [connection_key(session.name)], CONNECTION.columns)
    return reply(
        {
            "connection": _connection_row(call, session),
            "history": history,
            "channels": rows,
        }
    )


def _found(call: Call, sessions: list[Session]) -> Session:
    if not sessions:
        raise not_found()
    if not call.caller.may("monitoring") and inspect.user_name(sessions[0]) != call.caller.name:
        raise unauthorised("User not authorised to access object")
    return sessions[0]


def _channel_row(call: Call, channel: Channel) -> Row:
    row = public(inspect.channel_row(call.node, channel))
    row = with_past(call, CHANNEL, channel_key(row["name"]), row)
    properties = channel.session.connection.client_properties or {}
    return {
        **row,
        "user_provided_name": inspect.plain(properties.get("connection_name")),
        "oldest_unacked": inspect.oldest_unacked(call.node, channel),
    }


def _each_channel(call: Call) -> Iterator[Channel]:
    for session in own_sessions(call):
        for number in sorted(session.channels):
            found = session.channels.get(number)
            if found is not None:
                yield found


async def channels(call: Call) -> web.StreamResponse:
    """The list."""
    if call.asks_for_page and not call.query("text"):
        shown, row = own_channels(call), partial(_channel_row, call)
        return await reply_listed(call, by_rows(shown, row, name_of))
    rows = (_channel_row(call, each) for each in _each_channel(call))
    told = ("name", "user_provided_name", "user", "vhost")
    chosen = (row for row in rows if _says(call, *(row[key] for key in told)))
    return await reply_list(call, chosen, sort=("name",))


async def channel(call: Call) -> web.StreamResponse:
    """One channel: what it consumes, and what it holds."""
    name, _, number = call.path("name").rpartition(" (")
    session = _found(call, commands.sessions.sessions_named(call.node, name))
    digits = number.removesuffix(")")
    found = session.channels.get(int(digits)) if digits.isdecimal() else None
    if found is None:
        raise not_found()
    consumers = await collect(
        _consumer_row(call, found.vhost, each.queue, each.consumer)
        for each in list(found.consumers.values())
    )
    row = {
        "channel": _channel_row(call, found),
        "history": history_of(call, CHANNEL, [channel_key(call.path("name"))], RATES),
        "hindrances": inspect.hindrances(call.node, session),
        "unacked": inspect.unacked_by_consumer(call.node, found),
    }
    return await reply_with(call, row, "consumers", consumers)


def _consumer_row(call: Call, vhost: Vhost, queue: QueuePort, consumer: Consumer) -> Row:
    row = public(inspect.consumer_row(call.node, vhost, queue, consumer))
    return {**row, "name": row["consumer_tag"], "vhost": vhost.name, **of_consumer(consumer)}


def of_consumer(consumer: Consumer) -> Row:
    """What RabbitMQ's row of a consumer does not say."""
    properties = cast("Channel", consumer.channel).session.connection.client_properties or {}
    return {
        "priority": consumer.priority,
        "messages_unacknowledged": consumer.unacked_count,
        "user_provided_name": inspect.plain(properties.get("connection_name")),
    }


async def consumers(call: Call) -> web.Response:
    """The list; the virtual host of a consumer is its queue's."""
    rows = (row for row in _each_consumer(call) if _says(call, *_consumes(row)))
    return await reply_list(call, rows, sort=("name",))


def _each_consumer(call: Call) -> Iterator[Row]:
    for vhost, queue in inspect.each_consumed(call.node, call.vhost_or_all()):
        if not call.caller.may_see(call.node, vhost.name):
            continue
        for consumer in inspect.clients_of(queue):
            yield _consumer_row(call, vhost, queue, consumer)


def _consumes(row: Row) -> Iterator[object]:
    """What a consumer is known by."""
    yield from (row["name"], row["queue"]["name"], row["user_provided_name"])
    yield from (row["channel_details"]["name"], row["channel_details"]["user"])


ROUTES = (
    Route("GET", "/api/burrowmq/pages/connections", connections),
    Route("GET", "/api/burrowmq/pages/connections/{vhost}", connections),
    Route("GET", "/api/burrowmq/pages/connection/{name}", connection),
    Route("GET", "/api/burrowmq/pages/channels", channels),
    Route("GET", "/api/burrowmq/pages/channels/{vhost}", channels),
    Route("GET", "/api/burrowmq/pages/channel/{name}", channel),
    Route("GET", "/api/burrowmq/pages/consumers", consumers),
    Route("GET", "/api/burrowmq/pages/consumers/{vhost}", consumers),
)
