"""basic.publish: a run of messages on its way to its queues. The hot path.

Route, permission and existence are looked up once per address and remembered for the user until the vhost's topology
or the permissions change. A run with several addresses is cut by its routes. Only messages with a property that matters
on the way in (BCC, a user_id that is not the publisher's own, and what the codec marks as in need of a look) are
looked at one by one. Of those with CC only that header is, and of those that are routed by headers what a binding asks
for: octets like these that were met before are not decoded. Called by the session for each run. Errors are raised; what
comes before the message that is at fault is published.

Source: rabbit_channel (basic.publish); AMQP 0-9-1 basic class.
"""

from __future__ import annotations

import functools
from typing import TypeAlias, cast

from burrowmq.broker.channel.channel import Channel
from burrowmq.broker.channel.handover import enqueue, enqueue_sheaves
from burrowmq.broker.channel.reply import PSEUDO_QUEUE
from burrowmq.broker.exchange.base import Exchange
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.queue.rules.dead_letter import routing_keys
from burrowmq.broker.rules.auth import User
from burrowmq.broker.vhost.router import Route, is_no_queue
from burrowmq.protocol import table
from burrowmq.protocol.codec import (
    Message,
    PublishRun,
    Sheaf,
    are_of_user,
    look_up,
    look_up_by_headers,
    sheaves,
    split_address,
)
from burrowmq.protocol.constants import (
    EXPIRATION_MAX_MS,
    IMMEDIATE,
    MAYBE_CC,
    NEEDS_LOOK,
    PROP_REPLY_TO,
    PROP_USER_ID,
)
from burrowmq.protocol.errors import MethodNotImplemented, PreconditionFailed
from burrowmq.protocol.framing import erlang_string
from burrowmq.protocol.hidden import Hidden, with_hidden
from burrowmq.protocol.properties import Properties, decode, rewrite

EACH = NEEDS_LOOK | PROP_USER_ID | MAYBE_CC
"""Flags of messages that must be looked at one by one."""
ERLANG_COLUMNS = 78
_KEY_FIELDS = frozenset((b"CC", b"BCC"))

ByKeys: TypeAlias = dict[tuple[Exchange, tuple[QueuePort, ...]], Route]
"""The routes of a run's messages that have several keys, by where they begin and end."""


def publish(channel: Channel, run: PublishRun) -> None:
    """Take a run of publishes."""
    flags = run.flags
    if flags & IMMEDIATE:
        raise MethodNotImplemented("immediate=true")
    generation = channel.rights.generation
    if channel.auth_generation != generation:
        channel.auth_generation = generation
        channel.table = channel.vhost.route_tables.of(channel.session.user.name, generation)
    messages = run.messages
    if flags & PROP_USER_ID:
        name = channel.session.user.name.encode("utf-8", "surrogateescape")
        if are_of_user(messages, name):
            flags &= ~PROP_USER_ID
    if run.is_mixed:
        _publish_mixed(channel, messages, flags)
        return
    route = channel.table.routes.get(run.address)
    if route is None:
        route = _resolve(channel, run.address)
    if flags & EACH or route.queues is None or channel.transaction is not None:
        _publish_sheaves(channel, messages, [route] * len(messages), flags)
        return
    route.exchange.publish_in += len(messages)
    _count(channel, len(messages))
    tracer = channel.vhost.tracer
    if tracer is not None:
        tracer.published(messages, route.queues, channel.tapped)
    enqueue(channel, route, route.queues, messages, flags, run.size)


def _publish_mixed(channel: Channel, messages: list[Message], flags: int) -> None:
    """Take a run to several addresses. What comes before one that may not be used is published."""
    routes: list[Route] = []
    try:
        table = channel.table
        resolve = functools.partial(_resolve, channel)
        look_up(messages, table.routes, table.rings, resolve, routes)
    except Exception:
        _publish_sheaves(channel, messages[: len(routes)], routes, flags)
        raise
    _publish_sheaves(channel, messages, routes, flags)


def _publish_sheaves(
    channel: Channel, messages: list[Message], routes: list[Route], flags: int
) -> None:
    """Publish messages that were routed, as far as their keys alone say where to."""
    parts = sheaves(messages, routes)
    by_headers = [part for part in parts if part.target.queues is None]
    if by_headers:
        routes = _routes_by_headers(channel, routes, by_headers)
        parts = sheaves(messages, routes)
    each = flags & EACH
    if not each:
        _publish_routed(channel, messages, routes, parts, flags)
        return
    if each == MAYBE_CC:
        by_several = _routes_by_keys(channel, messages)
        if by_several is not None:
            _publish_routed(channel, messages, by_several, sheaves(messages, by_several), flags)
            return
    seen: list[Message] = []
    ways: list[Route] = []
    by_keys: ByKeys = {}
    try:
        for message, route in zip(messages, routes, strict=True):
            if message.flags & each:
                found = _look(channel, message, route, by_keys)
            else:
                found = message, route
            seen.append(found[0])
            ways.append(found[1])
    except Exception:
        _publish_routed(channel, seen, ways, sheaves(seen, ways), flags)
        raise
    _publish_routed(channel, seen, ways, sheaves(seen, ways), flags)


def _routes_by_headers(
    channel: Channel, routes: list[Route], by_headers: list[Sheaf[Route]]
) -> list[Route]:
    """The routes with those of the sheaves that are routed by headers in their places."""
    if len(by_headers) == 1 and len(by_headers[0].messages) == len(routes):
        (part,) = by_headers
        return channel.vhost.resolve_by_headers(part.target.exchange, part.messages)
    found = {
        part.target: iter(channel.vhost.resolve_by_headers(part.target.exchange, part.messages))
        for part in by_headers
    }
    return [next(found[route]) if route in found else route for route in routes]


def _routes_by_keys(channel: Channel, messages: list[Message]) -> list[Route] | None:
    """The routes of messages of which some have CC; None when one has to be looked at by itself."""
    found: list[Route | None] = look_up_by_headers(
        messages,
        _KEY_FIELDS,
        True,
        channel.table.by_keys,
        functools.partial(_resolve_keys, channel),
    )
    return None if None in found else cast("list[Route]", found)


def _resolve_keys(channel: Channel, octets: bytes, message: Message) -> Route | None:
    """The route of a message by its key and those of its CC header, which the user's table has not.

    None for one with BCC, which is rewritten, with keys that are no list, or with a way that is never remembered.
    """
    table, tables = channel.table, channel.vhost.route_tables
    route = table.known(message.address)
    if route is None:
        return None
    properties = decode(message.raw)
    headers = properties.headers or {}
    queues = route.queues
    if queues is None or "BCC" in headers or not isinstance(headers.get("CC", []), list):
        return tables.remember_keys(table, octets, None)
    keys = tuple(routing_keys(message, properties))
    if len(keys) > 1:
        queues = channel.vhost.route(route.exchange, keys, None)
        if any(map(is_no_queue, queues)):
            return None
    return tables.remember_keys(table, octets, (route.exchange, queues))


def _publish_routed(
    channel: Channel,
    messages: list[Message],
    routes: list[Route],
    parts: list[Sheaf[Route]],
    flags: int,
) -> None:
    """Publish messages of which everything is known, or keep them for the commit."""
    is_later = channel.transaction is not None
    if not is_later:
        for part in parts:
            part.target.exchange.publish_in += len(part.messages)
        _count(channel, len(messages))
    tracer = channel.vhost.tracer
    if tracer is not None:
        for message, route in zip(messages, routes, strict=True):
            keys = None
            if message.flags & MAYBE_CC:
                keys = routing_keys(message, decode(message.raw))
            tracer.published([message], route.queues or (), channel.tapped, keys)
    if is_later:
        _publish_later(channel, messages, routes, parts)
    elif messages:
        enqueue_sheaves(channel, messages, routes, parts, flags)


def _count(channel: Channel, count: int) -> None:
    channel.metrics.publish += count
    channel.session.metrics.messages_received += count


def _resolve(channel: Channel, address: bytes) -> Route:
    """The route of an address that the user's table has not."""
    table, vhost = channel.table, channel.vhost
    end = 1 + address[0]
    source = table.sources.get(address[:end])
    if source is None:
        exchange = address[1:end].decode("utf-8", "surrogateescape")
        channel.rights.check("write", "exchange", exchange)
        source = vhost.source(exchange, is_limited=channel.rights.is_topic_limited(exchange))
        table.sources[address[:end]] = source
        if source.ring is not None:
            table.rings[address[:end]] = source.ring
    if source.is_limited:
        routing_key = address[end + 1 :].decode("utf-8", "surrogateescape")
        channel.rights.check_topic("write", source.exchange.name, routing_key)
    if source.ring is not None:
        return source.ring.of_key(address)
    return vhost.resolve(source, address, table)


def _look(
    channel: Channel, message: Message, route: Route, by_keys: ByKeys
) -> tuple[Message, Route]:
    """What queues get of a message with properties that matter, and where it goes.

    Routes by several keys are shared by their run, and forgotten with it: what is kept of them would hold queues that
    are gone.
    """
    properties = decode(message.raw)
    _check_properties(channel, properties)
    keys: tuple[bytes, ...] = (split_address(message.address)[1],)
    if message.flags & MAYBE_CC:
        keys = all_keys(message, properties)
    if len(keys) > 1:
        exchange = route.exchange
        queues = channel.vhost.route(exchange, keys, lambda: properties)
        route = by_keys.setdefault((exchange, queues), Route(exchange, queues))
    return _kept(channel, message, properties), route


def _kept(channel: Channel, message: Message, properties: Properties) -> Message:
    """The message as queues get it: BCC is where no client sees it, a direct reply goes to its consumer's own key."""
    has_reply = bool(message.flags & PROP_REPLY_TO) and properties.reply_to == PSEUDO_QUEUE
    has_bcc = properties.headers is not None and "BCC" in properties.headers
    if not has_reply and not has_bcc:
        return message
    if has_reply:
        properties.reply_to = _reply_key(channel)
    return hide_bcc(message, properties) if has_bcc else rewrite(message, properties)


def hide_bcc(message: Message, properties: Properties) -> Message:
    """The message with these properties, but for its BCC header, which no client sees."""
    assert properties.headers is not None, "the caller has found it there"
    keys = properties.headers.pop("BCC")
    assert isinstance(keys, list), "checked with all_keys"
    return with_hidden(rewrite(message, properties), Hidden(keys, []))


def _publish_later(
    channel: Channel, messages: list[Message], routes: list[Route], parts: list[Sheaf[Route]]
) -> None:
    """Keep messages until the commit. Direct replies go now, as in RabbitMQ: their channel may be gone by then.

    What an exchange keeps for later bindings, too. They are received, and with tx.commit published.
    """
    transaction, totals = channel.transaction, channel.session.metrics
    assert transaction is not None, "the caller has looked"
    totals.messages_received += len(messages)
    totals.messages_received_confirm += len(messages)
    totals.messages_uncommitted += len(messages)
    stored: dict[Route, Route] = {}
    for part in parts:
        queues = part.target.queues or ()
        for queue in filter(is_no_queue, queues):
            queue.publish(part.messages, part.flags, part.size)
            left = tuple(each for each in queues if not is_no_queue(each))
            stored[part.target] = Route(part.target.exchange, left)
    if stored:
        routes = [stored.get(route, route) for route in routes]
    transaction.add(messages, routes)


def _check_properties(channel: Channel, properties: Properties) -> None:
    if properties.reply_to == PSEUDO_QUEUE and channel.reply_target is None:
        raise PreconditionFailed("fast reply consumer does not exist")
    if properties.user_id is not None:
        check_user_id(properties.user_id, channel.session.user)
    if properties.expiration is not None:
        check_expiration(properties.expiration)


def check_user_id(user_id: str, user: User) -> None:
    """Refuse to publish in another user's name. Raises: PreconditionFailed."""
    if user_id != user.name and "impersonator" not in user.tags:
        raise PreconditionFailed(
            f"user_id property set to '{user_id}' but authenticated user was '{user.name}'"
        )


def check_expiration(text: str) -> None:
    """Raise PreconditionFailed, in RabbitMQ's words, unless `text` is a TTL in milliseconds."""
    digits = text[1:] if text[:1] in {"+", "-"} else text
    end = next(
        (index for index, char in enumerate(digits) if char not in "0123456789"), len(digits)
    )
    if not end:
        reason = "no_integer"
    elif end < len(digits):
        reason = f"{{leftover_string,{erlang_string(digits[end:])}}}"
    elif int(text) < 0:
        reason = _told(text, "value_negative")
    elif int(text) > EXPIRATION_MAX_MS:
        reason = _told(text, "value_too_large")
    else:
        return
    raise PreconditionFailed(f"invalid expiration '{text}': {reason}")


def _told(text: str, what: str) -> str:
    """The reason, broken where Erlang's printer breaks it: before column 79 of the whole text."""
    column = len(f"invalid expiration '{text}': ")
    flat = f"{{{what},{int(text)}}}"
    if column + len(flat) <= ERLANG_COLUMNS:
        return flat
    return f"{{{what},\n{' ' * (column + 1)}{int(text)}}}"


def all_keys(message: Message, properties: Properties) -> tuple[bytes, ...]:
    """The routing key and those of CC and BCC. Raises: PreconditionFailed when one of these is no list."""
    for name in ("CC", "BCC"):
        value = (properties.headers or {}).get(name, [])
        if not isinstance(value, list):
            kind = table.type_name(value)
            raise PreconditionFailed(
                f'invalid message: {{unacceptable_type_in_header,"{name}",{kind}}}'
            )
    return tuple(routing_keys(message, properties))


def _reply_key(channel: Channel) -> str:
    assert channel.reply_target is not None
    return channel.reply_target.key.decode()
