"""basic.publish: a run of messages on its way to its queues. The hot path.

Route, permission and existence are looked up once per run and remembered on the channel until the vhost's topology
or the permissions change. Only runs in which some message carries a property that matters on the way in (expiration,
user_id, reply_to, CC/BCC), that must be routed by their headers, or that belong to a transaction are looked at message
by message. Called by the session for each run; `enqueue` also by tx.commit. Errors are raised.

Source: rabbit_channel (basic.publish, deliver_to_queues, process_routing_confirm); AMQP 0-9-1 basic class.
"""

from __future__ import annotations

from burrowmq.broker.channel.channel import Channel
from burrowmq.broker.channel.reply import PSEUDO_QUEUE, ReplyTarget
from burrowmq.broker.channel.transaction import Transaction
from burrowmq.broker.queue.outcome import Rejected
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.rules.dead_letter import routing_keys
from burrowmq.broker.rules.auth import User
from burrowmq.broker.vhost.router import Route
from burrowmq.protocol import table
from burrowmq.protocol.codec import Message, PublishRun, split_address
from burrowmq.protocol.constants import (
    IMMEDIATE,
    MANDATORY,
    MAYBE_CC,
    PROP_EXPIRATION,
    PROP_REPLY_TO,
    PROP_USER_ID,
)
from burrowmq.protocol.errors import MethodNotImplemented, PreconditionFailed
from burrowmq.protocol.hidden import Hidden, with_hidden
from burrowmq.protocol.properties import Properties, decode, rewrite

EACH = PROP_EXPIRATION | PROP_USER_ID | PROP_REPLY_TO | MAYBE_CC
"""Flags of messages that must be looked at one by one."""
ERLANG_COLUMNS = 78
EXPIRATION_MAX_MS = 315_360_000_000
ROUTES_MAX = 64
"""Routes that a channel remembers; the vhost remembers more, for all its channels together."""


def publish(channel: Channel, run: PublishRun) -> None:
    """Take a run of publishes to one exchange and routing key."""
    flags = run.flags
    if flags & IMMEDIATE:
        raise MethodNotImplemented("immediate=true")
    version = channel.vhost.generation + channel.session.auth_generation
    if channel.routes_version != version:
        # Both only rise, so an equal sum means that neither topology nor permissions changed.
        channel.routes.clear()
        channel.routes_version = version
    route = channel.routes.get(run.address)
    if route is None:
        route = _resolve(channel, run.address)
    messages = run.messages
    count = len(messages)
    session = channel.session
    channel.metrics.publish += count
    session.metrics.messages_received += count
    route.exchange.publish_in += count
    if flags & EACH or route.queues is None or channel.transaction is not None:
        for message in messages:
            _publish_one(channel, route, message)
        return
    tracer = channel.vhost.tracer
    if tracer is not None:
        tracer.published(messages, route.queues, channel.tapped)
    enqueue(channel, route, route.queues, messages, flags, run.size)


def _resolve(channel: Channel, address: bytes) -> Route:
    exchange = split_address(address)[0].decode("utf-8", "surrogateescape")
    channel.session.check("write", "exchange", exchange)
    route = channel.vhost.resolve(address)
    if route.exchange.type == "topic":
        routing_key = split_address(address)[1].decode("utf-8", "surrogateescape")
        channel.session.check_topic("write", exchange, routing_key)
    if address in channel.vhost.route_cache:
        if len(channel.routes) >= ROUTES_MAX:
            channel.routes.clear()
        channel.routes[address] = route
    return route


def enqueue(
    channel: Channel,
    route: Route,
    queues: tuple[Queue, ...],
    messages: list[Message],
    flags: int,
    size: int,
) -> bool:
    """Give routed messages to their queues and book their confirms; True when a queue refused some."""
    count = len(messages)
    session = channel.session
    pending = 0
    refused: set[int] | None = None
    for queue in queues:
        outcome = queue.publish(messages, flags, size)
        if not isinstance(outcome, Rejected):
            pending |= outcome
        else:
            pending |= outcome.is_pending
            refused = set(outcome.indexes) | (refused or set())
    # RabbitMQ: a message that reached nobody but a direct-reply consumer counts as unroutable.
    if queues and not (_is_reply(queues[0]) and all(map(_is_reply, queues))):
        route.exchange.publish_out += count * len(queues)
        session.metrics.messages_routed += count
    else:
        _unroutable(channel, messages, flags)
    confirms = channel.confirms
    if confirms is None:
        return refused is not None
    session.metrics.messages_received_confirm += count
    epoch = 0
    if pending:
        session.engine.require_sync()
        epoch = session.engine.epoch
        if session.settled:
            session.demand_acks()
    if refused:
        confirms.add_refused(sorted(refused), count, epoch)
    else:
        confirms.add(count, epoch)
    session.scheduler.confirms_dirty(channel)
    return refused is not None


def _is_reply(target: object) -> bool:
    return target.__class__ is ReplyTarget


def _unroutable(channel: Channel, messages: list[Message], flags: int) -> None:
    totals = channel.session.metrics
    if flags & MANDATORY:
        for message in messages:
            channel.return_message(message, 312, "NO_ROUTE")
        totals.messages_unroutable_returned += len(messages)
    else:
        channel.metrics.drop_unroutable += len(messages)
        totals.messages_unroutable_dropped += len(messages)


def _publish_one(channel: Channel, route: Route, message: Message) -> None:
    """A message with properties that matter, a headers exchange on its way, or a transaction."""
    properties = decode(message.raw)
    _check_properties(channel, properties)
    keys: tuple[bytes, ...] = (split_address(message.address)[1],)
    if message.flags & MAYBE_CC:
        keys = all_keys(message, properties)
    message = _kept(channel, message, properties)
    queues = route.queues
    if queues is None or len(keys) > 1:
        queues = channel.vhost.route(route.exchange, keys, lambda: properties.headers or {})
    if channel.vhost.tracer is not None:
        channel.vhost.tracer.published([message], queues, channel.tapped, keys)
    if channel.transaction is not None:
        _publish_later(channel.transaction, route, queues, message)
        return
    enqueue(channel, route, queues, [message], message.flags, message.size)


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
    transaction: Transaction, route: Route, queues: tuple[Queue, ...], message: Message
) -> None:
    """Keep a message until the commit. A direct reply goes now, as in RabbitMQ: its channel may be gone by then."""
    stored = tuple(queue for queue in queues if not _is_reply(queue))
    transaction.add(route, stored, message)
    for queue in queues:
        if _is_reply(queue):
            queue.publish([message], message.flags, message.size)


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
        reason = f'{{leftover_string,"{digits[end:]}"}}'
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
