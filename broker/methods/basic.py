"""basic.*: publish, get, consume, cancel, qos, acknowledgements, recover.

Free functions (channel, method); errors are raised, the session turns them into closes. `publish` takes a run and is
the hot path: route, permission and existence are looked up once per run and remembered on the channel until the
vhost's topology or the permissions change. Only runs in which some message carries a property that matters on the
way in (expiration, user_id, reply_to, CC/BCC) or that must be routed by its headers are looked at one by one.

Source: rabbit_channel; AMQP 0-9-1 basic class; RabbitMQ's extensions.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import Any

from broker.channel import Channel
from broker.queue.backlog import Backlog, Batch
from broker.queue.consumer import Consumer
from broker.queue.dead_letter import routing_keys
from broker.queue.queue import Queue
from broker.reply import PSEUDO_QUEUE
from broker.resource import describe
from broker.router import Route
from protocol import table
from protocol.codec import Message, PublishRun, split_exrk
from protocol.constants import (
    IMMEDIATE,
    MANDATORY,
    MAYBE_CC,
    PROP_EXPIRATION,
    PROP_REPLY_TO,
    PROP_USER_ID,
)
from protocol.errors import (
    AccessRefused,
    MethodNotImplemented,
    NotAllowed,
    NotFound,
    PreconditionFailed,
)
from protocol.methods import Basic
from protocol.properties import Properties, decode, rewrite

EACH = PROP_EXPIRATION | PROP_USER_ID | PROP_REPLY_TO | MAYBE_CC
"""Flags of messages that must be looked at one by one."""
EXPIRATION_MAX_MS = 315_360_000_000
SERVER_TAG_BYTES = 16
KEYS_MAX = 1024
"""Routing keys of one message, CC and BCC included."""


# -- publish ----------------------------------------------------------------------------------------------------------


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
    route = channel.routes.get(run.exrk)
    if route is None:
        route = _resolve(channel, run.exrk)
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
    enqueue(channel, route, route.queues, messages, flags, run.size)


def _resolve(channel: Channel, exrk: bytes) -> Route:
    exchange = split_exrk(exrk)[0].decode("utf-8", "surrogateescape")
    channel.session.check("write", "exchange", exchange)
    route = channel.vhost.resolve(exrk)
    if route.exchange.type == "topic":
        routing_key = split_exrk(exrk)[1].decode("utf-8", "surrogateescape")
        channel.session.check_topic("write", exchange, routing_key)
    if exrk in channel.vhost.route_cache:
        if len(channel.routes) >= 1024:
            channel.routes.clear()
        channel.routes[exrk] = route
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
        if outcome.__class__ is int:
            pending |= outcome
        else:
            pending |= outcome.is_pending
            refused = set(outcome.indexes) | (refused or set())
    if queues and not all(getattr(queue, "is_reply", False) for queue in queues):
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
    if refused:
        confirms.add_refused(sorted(refused), count, epoch)
    else:
        confirms.add(count, epoch)
    session.scheduler.confirms_dirty(channel)
    return refused is not None


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
    keys = (split_exrk(message.exrk)[1],)
    if message.flags & MAYBE_CC:
        keys = _all_keys(message, properties)
    if message.flags & PROP_REPLY_TO and properties.reply_to == PSEUDO_QUEUE:
        properties.reply_to = _reply_key(channel)
        message = rewrite(message, properties)
    elif properties.headers and "BCC" in properties.headers:
        del properties.headers["BCC"]
        message = rewrite(message, properties)
    queues = route.queues
    if queues is None or len(keys) > 1:
        queues = channel.vhost.route(route.exchange, keys, lambda: properties.headers or {})
    if channel.transaction is not None:
        channel.transaction.publishes.append((route, queues, message))
        return
    enqueue(channel, route, queues, [message], message.flags, message.size)


def _check_properties(channel: Channel, properties: Properties) -> None:
    if properties.reply_to == PSEUDO_QUEUE and channel.reply_target is None:
        message = "fast reply consumer does not exist"
        raise PreconditionFailed(message)
    user = channel.session.user
    if (
        properties.user_id is not None
        and properties.user_id != user.name
        and "impersonator" not in user.tags
    ):
        message = f"user_id property set to '{properties.user_id}' but authenticated user was '{user.name}'"
        raise PreconditionFailed(message)
    if properties.expiration is not None:
        check_expiration(properties.expiration)


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
        reason = f"{{value_negative,{int(text)}}}"
    elif int(text) > EXPIRATION_MAX_MS:
        reason = f"{{value_too_large,{int(text)}}}"
    else:
        return
    raise PreconditionFailed(f"invalid expiration '{text}': {reason}")


def _all_keys(message: Message, properties: Properties) -> tuple[bytes, ...]:
    for name in ("CC", "BCC"):
        value = (properties.headers or {}).get(name)
        if value is not None and not isinstance(value, list):
            kind = table.type_name(value)
            raise PreconditionFailed(
                f'invalid message: {{unacceptable_type_in_header,"{name}",{kind}}}'
            )
    keys = tuple(routing_keys(message, properties))
    if len(keys) > KEYS_MAX:
        raise PreconditionFailed(
            f"invalid message: more than {KEYS_MAX} routing keys in CC and BCC"
        )
    return keys


def _reply_key(channel: Channel) -> str:
    assert channel.reply_target is not None
    return channel.reply_target.key.decode()


# -- get and consume --------------------------------------------------------------------------------------------------


def named_queue(channel: Channel, name: str) -> Queue:
    """The queue a method names, or the channel's last declared one for the empty name."""
    if not name:
        if channel.last_queue_name is None:
            message = "no previously declared queue"
            raise NotFound(message)
        name = channel.last_queue_name
    channel.session.check("read", "queue", name)
    queue = channel.vhost.queue(name)
    channel.vhost.check_access(queue, channel.session)
    return queue


def get(channel: Channel, method: Any) -> None:
    """basic.get; on a queue that is loading from disk the channel's later input waits for the reply."""
    queue = named_queue(channel, method.queue)
    queue.touch()
    no_ack = method.no_ack
    answered = False

    def on_batch(backlog: Backlog | None, batch: Batch | None) -> None:
        nonlocal answered
        answered = True
        if channel.is_closed:
            if backlog is not None and batch is not None:
                queue.put_back(backlog, batch)
            return
        if channel.is_held:
            channel.resume(lambda: _got(channel, queue, backlog, batch, no_ack=no_ack))
        else:
            _got(channel, queue, backlog, batch, no_ack=no_ack)

    queue.get(on_batch)
    if not answered:
        channel.is_held = True


def _got(
    channel: Channel, queue: Queue, backlog: Backlog | None, batch: Batch | None, *, no_ack: bool
) -> None:
    if backlog is None or batch is None:
        channel.metrics.get_empty += 1
        queue.metrics.get_empty += 1
        channel.session.metrics.messages_get_empty += 1
        channel.reply(Basic.GetEmpty())
    else:
        channel.deliver_got(queue, backlog, batch, no_ack=no_ack)


def consume(channel: Channel, method: Any) -> None:
    """basic.consume."""
    tag = method.consumer_tag or _server_tag(channel)
    if method.queue == PSEUDO_QUEUE:
        _consume_replies(channel, method, tag)
        return
    queue = named_queue(channel, method.queue)
    if tag in channel.consumers or _is_reply_tag(channel, tag):
        raise NotAllowed(f"attempt to reuse consumer tag '{tag}'")
    arguments = method.arguments or {}
    priority = _consumer_priority(queue, channel.vhost.name, arguments)
    where = describe("queue", queue.name, channel.vhost.name)
    if queue.exclusive_consumer is not None or (
        method.exclusive and (queue.consumer_count or queue.settings.single_active_consumer)
    ):
        raise AccessRefused(f"{where} in exclusive use")
    consumer = Consumer(
        tag,
        queue,
        channel,
        no_ack=method.no_ack,
        exclusive=method.exclusive,
        prefetch_count=channel.prefetch_count,
        priority=priority,
        arguments=arguments,
    )
    channel.consumers[tag] = consumer
    if not method.nowait:
        channel.reply(Basic.ConsumeOk(consumer_tag=tag))
    queue.add_consumer(consumer)


def _server_tag(channel: Channel) -> str:
    token = base64.urlsafe_b64encode(channel.session.entropy.token(SERVER_TAG_BYTES))
    return "amq.ctag-" + token.rstrip(b"=").decode()


def _is_reply_tag(channel: Channel, tag: str) -> bool:
    return channel.reply_target is not None and channel.reply_target.tag == tag


def _consume_replies(channel: Channel, method: Any, tag: str) -> None:
    if channel.reply_target is not None:
        message = "reply consumer already set"
        raise PreconditionFailed(message)
    if not method.no_ack:
        message = "reply consumer cannot acknowledge"
        raise PreconditionFailed(message)
    if tag in channel.consumers:
        raise NotAllowed(f"attempt to reuse consumer tag '{tag}'")
    channel.reply_target = channel.session.replies.add(channel, tag)
    if not method.nowait:
        channel.reply(Basic.ConsumeOk(consumer_tag=tag))


def _consumer_priority(queue: Queue, vhost_name: str, arguments: dict[str, Any]) -> int:
    where = describe("queue", queue.name, vhost_name)
    if "x-stream-offset" in arguments:
        raise PreconditionFailed(
            f"invalid arg 'x-stream-offset' for {where} of queue type rabbit_classic_queue"
        )
    value = arguments.get("x-priority")
    if value is None:
        return 0
    if not table.is_integer(value):
        raise PreconditionFailed(
            f"invalid arg 'x-priority' for {where}: \"expected integer, got {table.type_name(value)}\""
        )
    return int(value)


def cancel(channel: Channel, method: Any) -> None:
    """basic.cancel; cancel-ok goes out before an auto-delete queue ends.

    What the consumer could take when the cancel arrived is sent first, also when it is still being read from disk.
    """
    consumer = channel.consumers.get(method.consumer_tag)
    if consumer is not None and consumer.queue.owes(consumer):
        channel.is_held = True
        consumer.queue.after_pump(lambda: channel.resume(lambda: _cancel(channel, method)))
    else:
        _cancel(channel, method)


def _cancel(channel: Channel, method: Any) -> None:
    tag = method.consumer_tag
    consumer = channel.consumers.pop(tag, None)
    if _is_reply_tag(channel, tag):
        assert channel.reply_target is not None
        channel.session.replies.remove(channel.reply_target)
        channel.reply_target = None
    if not method.nowait:
        channel.reply(Basic.CancelOk(consumer_tag=tag))
    if consumer is not None:
        consumer.queue.remove_consumer(consumer)


def qos(channel: Channel, method: Any) -> None:
    """basic.qos: per consumer created later (global=false) or shared by the channel (global=true)."""
    if method.prefetch_size:
        raise MethodNotImplemented(f"prefetch_size!=0 ({method.prefetch_size})")
    if method.global_:
        channel.global_prefetch_count = method.prefetch_count
    else:
        channel.prefetch_count = method.prefetch_count
        channel.global_prefetch_count = 0
    channel.reply(Basic.QosOk())
    channel.unblock_consumers()


# -- settlements ------------------------------------------------------------------------------------------------------


def ack(channel: Channel, first_tag: int, last_tag: int, *, multiple: bool) -> None:
    """A run of basic.ack with consecutive tags, or one with multiple."""
    pieces = channel.take_unacked(first_tag, last_tag, multiple=multiple)
    if channel.transaction is not None:
        channel.transaction.settlements.append((channel.settle, pieces))
    else:
        channel.settle(pieces)


def nack(channel: Channel, method: Any) -> None:
    """basic.nack."""
    _reject(channel, method.delivery_tag, multiple=method.multiple, requeue=method.requeue)


def reject(channel: Channel, method: Any) -> None:
    """basic.reject."""
    _reject(channel, method.delivery_tag, multiple=False, requeue=method.requeue)


def _reject(channel: Channel, tag: int, *, multiple: bool, requeue: bool) -> None:
    pieces = channel.take_unacked(tag, tag, multiple=multiple)
    act = channel.requeue if requeue else channel.discard
    if channel.transaction is not None:
        channel.transaction.settlements.append((act, pieces))
    else:
        act(pieces)


def recover(channel: Channel, method: Any) -> None:
    """basic.recover and recover-async: everything unacked goes back to its queue."""
    if not method.requeue:
        message = "requeue=false"
        raise MethodNotImplemented(message)
    channel.requeue(channel.unacked.settle_up_to(0))
    if method.name == "Basic.Recover":
        channel.reply(Basic.RecoverOk())


Handler = Callable[[Channel, Any], None]
HANDLERS: dict[str, Handler] = {
    "Basic.Get": get,
    "Basic.Consume": consume,
    "Basic.Cancel": cancel,
    "Basic.Qos": qos,
    "Basic.Nack": nack,
    "Basic.Reject": reject,
    "Basic.Recover": recover,
    "Basic.RecoverAsync": recover,
}
