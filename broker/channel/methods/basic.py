"""basic.get, consume, cancel, qos, and the settlements: ack, nack, reject, recover.

Free functions (channel, method); errors are raised, the session turns them into closes. `settle` takes a run of
consecutive tags. basic.publish is `broker.channel.methods.publish`.

Source: rabbit_channel; AMQP 0-9-1 basic class; RabbitMQ's extensions.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from functools import partial
from typing import Any

from burrowmq.broker.channel.channel import Channel, Subscription
from burrowmq.broker.channel.methods.topology import wait_for
from burrowmq.broker.channel.reply import PSEUDO_QUEUE
from burrowmq.broker.channel.unacked import Piece, UnknownTag
from burrowmq.broker.queue.origin import Origin
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.queue.rules.stream import STREAM, check_consume
from burrowmq.broker.queue.run import DeliveryRun
from burrowmq.broker.queue.serve.consumer import Consumer
from burrowmq.broker.words.resource import describe
from burrowmq.protocol import table
from burrowmq.protocol.codec import AckRun
from burrowmq.protocol.constants import METHOD_ACK
from burrowmq.protocol.errors import (
    AccessRefused,
    AmqpError,
    MethodNotImplemented,
    NotAllowed,
    NotFound,
    PreconditionFailed,
)
from burrowmq.protocol.methods import Basic

SERVER_TAG_BYTES = 16


# -- get and consume --------------------------------------------------------------------------------------------------


def named_queue(channel: Channel, name: str) -> QueuePort:
    """The queue a method names, or the channel's last declared one for the empty name."""
    if not name:
        if channel.last_queue_name is None:
            raise NotFound("no previously declared queue")
        name = channel.last_queue_name
    channel.rights.check("read", "queue", name)
    queue = channel.vhost.queue(name)
    channel.vhost.check_access(queue, channel.session)
    return queue


def get(channel: Channel, method: Any) -> None:
    """basic.get; on a queue that is loading from disk the channel's later input waits for the reply.

    It also waits while the client does not take what it was sent: as with deliveries nothing is to pile up for it.
    """
    if channel.session.is_congested:
        wait_for(channel, method, partial(_wait_for_room, channel), lambda _: get(channel, method))
        return
    queue = named_queue(channel, method.queue)
    queue.touch()
    no_ack = method.no_ack
    answered = False

    def on_run(origin: Origin | None, run: DeliveryRun | None) -> None:
        nonlocal answered
        answered = True
        is_taken = not (channel.is_closed or channel.session.is_congested)
        if origin is not None and run is not None and not is_taken:
            origin.put_back(run)
            if not channel.is_closed:
                channel.is_held = False
                get(channel, method)  # once there is room
            return
        if channel.is_closed:
            return
        if channel.is_held:
            channel.resume(lambda: _got(channel, queue, origin, run, no_ack=no_ack))
        else:
            _got(channel, queue, origin, run, no_ack=no_ack)

    queue.get(on_run)
    if not answered:
        channel.is_held = True


def _wait_for_room(channel: Channel, go_on: Callable[[None], None]) -> None:
    channel.waiting_get = partial(go_on, None)


def _got(
    channel: Channel,
    queue: QueuePort,
    origin: Origin | None,
    run: DeliveryRun | None,
    *,
    no_ack: bool,
) -> None:
    if origin is None or run is None:
        if queue.is_withheld:
            _withhold(channel, queue)
            return
        channel.metrics.get_empty += 1
        queue.counts.got_nothing()
        channel.session.metrics.messages_get_empty += 1
        channel.reply(Basic.GetEmpty())
    else:
        channel.deliver_got(queue, origin, run, no_ack=no_ack)


def _withhold(channel: Channel, queue: QueuePort) -> None:
    """Say what RabbitMQ says of a queue that is there and does not answer: a message of it cannot be had now."""
    error = NotFound(
        f"{describe('queue', queue.name, channel.vhost.name)} is inaccessible:"
        + (" the disk does not serve it" if queue.kind == "classic" else " no answer")
    )
    error.class_id, error.method_id = 60, 70
    channel.session.fail_channel(channel, error)


def consume(channel: Channel, method: Any) -> None:
    """basic.consume. As in RabbitMQ, the tag of a reply consumer is free for one of a queue, but not the reverse."""
    limit = channel.session.consumer_max
    if limit is not None and len(channel.consumers) >= limit:
        raise NotAllowed(f"reached maximum ({limit}) of consumers per channel")
    tag = method.consumer_tag or _server_tag(channel)
    if tag in channel.consumers:
        raise NotAllowed(f"attempt to reuse consumer tag '{tag}'")
    if method.queue == PSEUDO_QUEUE:
        _consume_replies(channel, method, tag)
        return
    queue = named_queue(channel, method.queue)
    consumer = _consumer(channel, queue, method, tag)

    def on_attached(error: AmqpError | None) -> None:
        if error is not None:
            raise error
        channel.consumers[tag] = Subscription(consumer, queue)
        if not method.nowait:
            channel.reply(Basic.ConsumeOk(consumer_tag=tag))
        queue.add_consumer(consumer)

    wait_for(channel, method, partial(queue.attach, consumer), on_attached)


def _consumer(channel: Channel, queue: QueuePort, method: Any, tag: str) -> Consumer:
    arguments = method.arguments or {}
    where = describe("queue", queue.name, channel.vhost.name)
    is_exclusive, priority = method.exclusive, 0
    if queue.kind == STREAM:
        check_consume(
            arguments,
            where,
            prefetch_count=channel.prefetch.for_each,
            no_ack=method.no_ack,
            is_global=channel.prefetch.shared > 0,
        )
        is_exclusive = False  # RabbitMQ does not look at it either: each has all messages
    else:
        priority = _consumer_priority(queue, channel.vhost.name, arguments)
        if channel.prefetch.shared and queue.kind == "quorum":
            raise MethodNotImplemented(f"{where} does not support global qos")
    if queue.consumers.exclusive is not None or (
        is_exclusive and (queue.consumer_count or queue.settings.single_active_consumer)
    ):
        raise AccessRefused(f"{where} in exclusive use")
    return Consumer(
        tag,
        channel,
        no_ack=method.no_ack,
        exclusive=is_exclusive,
        prefetch_count=channel.prefetch.for_each,
        priority=priority,
        arguments=arguments,
    )


def _server_tag(channel: Channel) -> str:
    token = base64.urlsafe_b64encode(channel.session.entropy.token(SERVER_TAG_BYTES))
    return "amq.ctag-" + token.rstrip(b"=").decode()


def _consume_replies(channel: Channel, method: Any, tag: str) -> None:
    if not method.no_ack:
        raise PreconditionFailed("reply consumer cannot acknowledge")
    if channel.reply_target is not None:
        raise PreconditionFailed("reply consumer already set")
    channel.reply_target = channel.replies.add(channel, tag)
    if not method.nowait:
        channel.reply(Basic.ConsumeOk(consumer_tag=tag))


def _consumer_priority(queue: QueuePort, vhost_name: str, arguments: dict[str, Any]) -> int:
    where = describe("queue", queue.name, vhost_name)
    if "x-stream-offset" in arguments:
        raise PreconditionFailed(
            f"invalid arg 'x-stream-offset' for {where} of queue type rabbit_{queue.kind}_queue"
        )
    value = arguments.get("x-priority", 0)
    if not table.is_integer(value):
        raise PreconditionFailed(
            f"invalid arg 'x-priority' for {where}: \"expected integer, got {table.type_name(value)}\""
        )
    if queue.kind == "quorum" and "x-cancel-on-ha-failover" in arguments:
        raise PreconditionFailed(
            f"invalid arg 'x-cancel-on-ha-failover' for {where} of queue type rabbit_quorum_queue"
        )
    failover = arguments.get("x-cancel-on-ha-failover", False)
    if not isinstance(failover, bool):
        raise PreconditionFailed(
            f"invalid arg 'x-cancel-on-ha-failover' for {where}:"
            f" {{unacceptable_type,{table.type_name(failover)}}}"
        )
    return int(value)


def cancel(channel: Channel, method: Any) -> None:
    """basic.cancel; cancel-ok goes out before an auto-delete queue ends.

    What the consumer could take when the cancel arrived is sent first, also when it is still being read from disk.
    Where the tag is a reply consumer's, too, that one ends alone.
    """
    target = channel.reply_target
    if target is not None and target.tag == method.consumer_tag:
        channel.replies.remove(target)
        channel.reply_target = None
        if not method.nowait:
            channel.reply(Basic.CancelOk(consumer_tag=target.tag))
        return
    found = channel.consumers.get(method.consumer_tag)
    if found is not None and found.queue.serve_last(found.consumer):
        channel.is_held = True
        found.queue.after_pump(lambda: channel.resume(lambda: _cancel(channel, method)))
    else:
        _cancel(channel, method)


def _cancel(channel: Channel, method: Any) -> None:
    tag = method.consumer_tag
    found = channel.consumers.pop(tag, None)
    if not method.nowait:
        channel.reply(Basic.CancelOk(consumer_tag=tag))
    if found is not None:
        found.queue.remove_consumer(found.consumer)


def qos(channel: Channel, method: Any) -> None:
    """basic.qos: per consumer created later (global=false) or shared by the channel (global=true)."""
    if method.prefetch_size:
        raise MethodNotImplemented(f"prefetch_size!=0 ({method.prefetch_size})")
    if method.global_:
        channel.prefetch.share(method.prefetch_count)
    else:
        channel.prefetch.limit_each(method.prefetch_count)
    channel.reply(Basic.QosOk())
    channel.unblock_consumers()


# -- settlements ------------------------------------------------------------------------------------------------------


def settle(channel: Channel, run: AckRun) -> None:
    """A run of basic.ack, nack or reject with consecutive tags, or one with multiple.

    Single ones before one that fails hold, as they do when they are looked at one by one.
    """
    unacked = channel.unacked
    try:
        if run.multiple:
            pieces = unacked.settle_up_to(run.last_tag)
        else:
            pieces = unacked.settle_range(run.first_tag, run.last_tag)
    except UnknownTag as unknown:
        tag = unknown.args[0]
        if not run.multiple and tag > run.first_tag:
            _act(channel, run, unacked.settle_range(run.first_tag, tag - 1))
        raise PreconditionFailed(f"unknown delivery tag {tag}") from None
    if run.method == METHOD_ACK and channel.transaction is None:
        channel.settle(pieces)
    else:
        _act(channel, run, pieces)


def _act(channel: Channel, run: AckRun, pieces: list[Piece]) -> None:
    if run.method == METHOD_ACK:
        act: Callable[[list[Piece]], None] = channel.settle
    else:
        act = channel.requeue if run.requeue else channel.discard
    if channel.transaction is not None:
        if pieces:  # else a client that acknowledges nothing, ever again, would fill the transaction with that
            channel.transaction.settlements.append((act, pieces))
    else:
        act(pieces)


def recover(channel: Channel, method: Any) -> None:
    """basic.recover and recover-async: everything unacked goes back to its queue."""
    if not method.requeue:
        raise MethodNotImplemented("requeue=false")
    channel.requeue(channel.unacked.settle_up_to(0))
    if method.name == "Basic.Recover":
        channel.reply(Basic.RecoverOk())


Handler = Callable[[Channel, Any], None]
HANDLERS: dict[str, Handler] = {
    "Basic.Get": get,
    "Basic.Consume": consume,
    "Basic.Cancel": cancel,
    "Basic.Qos": qos,
    "Basic.Recover": recover,
    "Basic.RecoverAsync": recover,
}
