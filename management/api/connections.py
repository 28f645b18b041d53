"""/api/connections, /api/channels and /api/consumers.

Owns no state. Monitoring sees everybody's connections, other users their own. Source: rabbit_mgmt_wm_connections,
rabbit_mgmt_wm_channels, rabbit_mgmt_wm_consumers (3.13).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any, TypeVar

from burrowmq.broker import inspect
from burrowmq.broker.channel.channel import Channel
from burrowmq.broker.session.session import Session
from burrowmq.management import commands
from burrowmq.management.aio import web
from burrowmq.management.answers import idle
from burrowmq.management.answers.listing import (
    by_rows,
    reply_list,
    reply_listed,
    reply_one,
    reply_with,
)
from burrowmq.management.answers.ranges import NO_RANGES, Ranges, finish_of, ranges_of, with_past
from burrowmq.management.answers.rates import channel_key, connection_key
from burrowmq.management.answers.reply import (
    Call,
    Route,
    collect,
    no_content,
    not_found,
    unauthorised,
)
from burrowmq.management.history.history import CHANNEL, CONNECTION

# Shown by burrowctl only.
INTERNAL = ("pid", "connection", "channel_pid", "queue_name")
REASON = "Closed via management plugin"


def public(row: dict[str, Any]) -> dict[str, Any]:
    """A row of a connection, channel or consumer without what burrowctl alone shows."""
    return {name: value for name, value in row.items() if name not in INTERNAL}


def _own(call: Call, rows: Iterable[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    sees_all = call.caller.may("monitoring")
    return (public(row) for row in rows if sees_all or row["user"] == call.caller.name)


def _connection(call: Call, row: dict[str, Any], ranges: Ranges = NO_RANGES) -> dict[str, Any]:
    return with_past(call, CONNECTION, connection_key(row["name"]), row, ranges)


def _channel(call: Call, row: dict[str, Any], ranges: Ranges = NO_RANGES) -> dict[str, Any]:
    key = channel_key(row["name"])
    since = idle.since(call, key)
    if since is not None:
        row["idle_since"] = since
    return with_past(call, CHANNEL, key, row, ranges)


T = TypeVar("T", Session, Channel)
Shown = Callable[[Call, dict[str, Any], Ranges], dict[str, Any]]


async def _reply(
    call: Call, rows: Iterable[dict[str, Any]], shown: Shown, sort: str
) -> web.Response:
    ranges = ranges_of(call, are_lengths_rounded_up=shown is _connection)
    finish = finish_of(lambda row: shown(call, row, ranges), ranges)
    return await reply_list(call, (shown(call, row, NO_RANGES) for row in rows), (sort,), finish)


async def _reply_page(
    call: Call, things: list[T], made: Callable[[T], dict[str, Any]], shown: Shown
) -> web.StreamResponse:
    """A page of thousands: only its own rows are made, unless the query sorts by what stands in them."""
    ranges = ranges_of(call, are_lengths_rounded_up=shown is _connection)
    finish = finish_of(lambda row: shown(call, row, ranges), ranges)

    def row(thing: T) -> dict[str, Any]:
        return shown(call, public(made(thing)), NO_RANGES)

    return await reply_listed(call, by_rows(things, row, name_of), finish)


def own_sessions(call: Call) -> list[Session]:
    """The connections that the caller may see: monitoring everybody's, others their own."""
    sessions, caller = inspect.each_session(call.node, call.vhost_or_all()), call.caller
    if caller.may("monitoring"):
        return sessions
    return [each for each in sessions if inspect.user_name(each) == caller.name]


def own_channels(call: Call) -> list[Channel]:
    """The channels of these."""
    return [
        session.channels[number]
        for session in own_sessions(call)
        for number in sorted(session.channels)
    ]


def name_of(thing: Session | Channel) -> str:
    """What a connection or channel is called."""
    if isinstance(thing, Session):
        return thing.name
    return f"{thing.session.name} ({thing.number})"


async def connections(call: Call) -> web.StreamResponse:
    """The list."""
    if call.asks_for_page:
        made = partial(inspect.connection_row, call.node)
        return await _reply_page(call, own_sessions(call), made, _connection)
    rows = _own(call, inspect.connections(call.node, call.vhost_or_all()))
    return await _reply(call, rows, _connection, "name")


async def connections_of_user(call: Call) -> web.Response:
    """One user's connections."""
    rows = _own(call, inspect.connection_rows(call.node, _sessions_of(call)))
    return await _reply(call, rows, _connection, "name")


def _sessions_of(call: Call) -> list[Session]:
    """The connections of the user that the path names."""
    user = call.path("user")
    return [each for each in inspect.each_session(call.node) if inspect.user_name(each) == user]


async def close_connections_of_user(call: Call) -> web.Response:
    """Close all connections of one user."""
    _check_may_close(call, call.path("user"))
    reason = call.request.headers.get("X-Reason", REASON)
    await commands.sessions.close_sessions(_sessions_of(call), reason)
    return no_content()


def _check_may_close(call: Call, user: str) -> None:
    """Who may look at others' connections may not close them: that takes an administrator. Raises: ApiError 401."""
    if not call.caller.may("administrator") and call.caller.name != user:
        raise unauthorised("User not authorised to access object")


def _sessions(call: Call) -> list[Session]:
    sessions = commands.sessions.sessions_named(call.node, call.path("name"))
    if not sessions:
        raise not_found()
    if not call.caller.may("monitoring") and any(
        inspect.user_name(s) != call.caller.name for s in sessions
    ):
        raise unauthorised("User not authorised to access object")
    return sessions


async def connection(call: Call) -> web.Response:
    """One connection by its name."""
    row = public(inspect.connection_row(call.node, _sessions(call)[0]))
    return reply_one(call, _connection(call, row, ranges_of(call, are_lengths_rounded_up=True)))


async def close_connection(call: Call) -> web.Response:
    """Close it, with the reason of the X-Reason header."""
    sessions = _sessions(call)
    for session in sessions:
        _check_may_close(call, inspect.user_name(session))
    reason = call.request.headers.get("X-Reason", REASON)
    await commands.sessions.close_sessions(sessions, reason)
    return no_content()


async def connection_channels(call: Call) -> web.Response:
    """The channels of one connection."""
    rows = [
        public(inspect.channel_row(call.node, session.channels[number]))
        for session in _sessions(call)
        for number in sorted(session.channels)
    ]
    return await _reply(call, rows, _channel, "number")


async def channels(call: Call) -> web.StreamResponse:
    """The list."""
    if call.asks_for_page:
        made = partial(inspect.channel_row, call.node)
        return await _reply_page(call, own_channels(call), made, _channel)
    rows = _own(call, inspect.channels(call.node, call.vhost_or_all()))
    return await _reply(call, rows, _channel, "name")


async def channel(call: Call) -> web.StreamResponse:
    """One channel by its name."""
    found = inspect.find_channel(call.node, call.path("name"))
    rows = () if found is None else (inspect.channel_row(call.node, found),)
    row = next(_own(call, rows), None)
    if found is None or row is None:
        raise not_found()
    shown = _channel(call, row, ranges_of(call))
    details = await collect(map(public, inspect.consumers_on(call.node, found)))
    # The arrays that RabbitMQ fills with rates_mode = detailed.
    row = {**shown, "deliveries": [], "publishes": []}
    return await reply_with(call, row, "consumer_details", details)


async def consumers(call: Call) -> web.Response:
    """The list; `vhost` of a consumer is its queue's."""
    rows = (
        public(row)
        for row in inspect.consumers(call.node, call.vhost_or_all())
        if call.caller.may_see(call.node, row["queue"]["vhost"])
    )
    return await reply_list(call, rows, sort=("consumer_tag",))


ROUTES = (
    Route("GET", "/api/connections", connections),
    Route("GET", "/api/connections/username/{user}", connections_of_user),
    Route("DELETE", "/api/connections/username/{user}", close_connections_of_user, is_kept=False),
    Route("GET", "/api/connections/{name}", connection),
    Route("DELETE", "/api/connections/{name}", close_connection, is_kept=False),
    Route("GET", "/api/connections/{name}/channels", connection_channels),
    Route("GET", "/api/vhosts/{vhost}/connections", connections),
    Route("GET", "/api/channels", channels),
    Route("GET", "/api/channels/{name}", channel),
    Route("GET", "/api/vhosts/{vhost}/channels", channels),
    Route("GET", "/api/consumers", consumers),
    Route("GET", "/api/consumers/{vhost}", consumers),
)
