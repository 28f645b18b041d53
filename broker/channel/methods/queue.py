"""queue.*: declare, bind, unbind, purge, delete.

Free functions (channel, method); errors are raised, the session turns them into closes. An empty queue name means
the queue that this channel declared last, except in declare, where it asks the server to think of a name (and in a
passive declare, where it is just a name that no queue has). The order of checks is RabbitMQ 3.13's.

Source: rabbit_channel (handle_method for queue.*), rabbit_amqqueue.
"""

from __future__ import annotations

import base64
import functools
from collections.abc import Callable
from typing import Any, TypeAlias

from burrowmq.broker.channel.channel import Channel
from burrowmq.broker.channel.methods.topology import (
    answer,
    check_binding,
    clean_name,
    wait_for,
)
from burrowmq.broker.channel.reply import PSEUDO_QUEUE
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.queue.rules.quorum import QUORUM
from burrowmq.broker.queue.rules.settings import (
    QueueDeclaration,
    dead_letter_exchange,
    with_default_type,
)
from burrowmq.broker.queue.rules.stream import STREAM
from burrowmq.broker.vhost import agreement, mirrored
from burrowmq.broker.vhost.vhost import Edge
from burrowmq.broker.words.resource import RESERVED_PREFIX, describe, not_found
from burrowmq.protocol.constants import COUNT_MAX
from burrowmq.protocol.errors import AccessRefused, AmqpError, NotFound, PreconditionFailed
from burrowmq.protocol.methods import Queue as Methods

Told: TypeAlias = Callable[[AmqpError | None], None]
GENERATED_PREFIX = "amq.gen-"
GENERATED_BYTES = 16


def declare(channel: Channel, method: Any) -> None:
    """queue.declare; passive only asks whether it exists."""
    name = clean_name(method.queue)
    if name.startswith(PSEUDO_QUEUE):
        _declare_reply_queue(channel, name, method)
    elif method.passive:
        _declare_passive(channel, name, method)
    else:
        _declare_active(channel, name, method)


def _declare_active(channel: Channel, name: str, method: Any) -> None:
    vhost = channel.vhost
    session = channel.session
    staged = vhost.rows.staged
    if name.startswith(RESERVED_PREFIX):
        raise AccessRefused(f"queue name '{name}' contains reserved prefix 'amq.*'")
    arguments = with_default_type(
        method.arguments or {},
        vhost.default_queue_type,
        is_replicable=method.durable and not (method.exclusive or method.auto_delete),
    )
    if not name:
        kind = arguments.get("x-queue-type")
        if vhost.options.has_cluster and kind in (QUORUM, STREAM):
            raise PreconditionFailed(
                f"Cannot declare a server-named queue for type rabbit_{kind}_queue"
            )
        token = base64.urlsafe_b64encode(session.entropy.token(GENERATED_BYTES))
        name = GENERATED_PREFIX + token.rstrip(b"=").decode("ascii")
    declaration = QueueDeclaration(
        name=name,
        durable=method.durable and not method.exclusive,
        auto_delete=method.auto_delete,
        owner=session if method.exclusive else None,
        arguments=arguments,
    )
    channel.rights.check("configure", "queue", name)
    queue = vhost.queues.get(name)
    is_new = queue is None
    if queue is not None:
        vhost.check_equivalent_queue(queue, declaration, session)
        if not method.nowait:
            queue.touch()
    else:
        if method.queue:
            is_typed = "x-queue-type" in (method.arguments or {})
            declaration = mirrored.as_policies_say(vhost, declaration, is_typed=is_typed)
        exchange = dead_letter_exchange(declaration.arguments, name, vhost.name)
        if exchange is not None:
            channel.rights.check("read", "queue", name)
            channel.rights.check("write", "exchange", exchange)
        if agreement.is_shared(vhost, declaration):
            _declare_shared(channel, declaration, method)
            return
        queue = vhost.create_queue(declaration)
        session.metrics.queues_created += 1
    session.metrics.queues_declared += 1
    channel.last_queue_name = name
    _answer_declare(channel, queue, method, staged, is_new=is_new)


def _declare_shared(channel: Channel, declaration: QueueDeclaration, method: Any) -> None:
    """All front-ends agree on a new queue first: another one may have declared it differently at the same moment."""
    vhost, session = channel.vhost, channel.session
    staged = vhost.rows.staged

    def on_agreed(error: AmqpError | None) -> None:
        if error is not None:  # RabbitMQ's words for a quorum queue that nobody leads
            where = describe("queue", declaration.name, vhost.name)
            raise NotFound(f"{where} is inaccessible: {error.text}")
        queue = vhost.queue(declaration.name)
        vhost.check_equivalent_queue(queue, mirrored.as_declared(declaration), session)
        session.metrics.queues_created += 1
        session.metrics.queues_declared += 1
        channel.last_queue_name = queue.name
        _answer_declare(channel, queue, method, staged, is_new=True)

    made_ms = session.scheduler.wall_ms()
    propose = functools.partial(agreement.propose_queue, vhost, declaration, made_ms)
    wait_for(channel, method, propose, on_agreed)


def _answer_declare(
    channel: Channel, queue: QueuePort, method: Any, staged: int, *, is_new: bool
) -> None:
    """Declare-ok when it is known what is in the queue; a new one that cannot be made is none."""

    def ask(then: Told) -> None:
        queue.ask(functools.partial(on_made, then))

    def on_made(then: Told, error: AmqpError | None) -> None:
        """Whether the client is still there or not."""
        if error is not None and is_new and agreement.unmake(channel.vhost, queue):
            channel.session.scheduler.touch()
        then(error)

    def on_known(error: AmqpError | None) -> None:
        if error is not None:
            raise error
        ready_count = min(queue.ready_count, COUNT_MAX)
        reply = Methods.DeclareOk(queue.name, ready_count, queue.consumer_count)
        answer(
            channel,
            method,
            reply,
            staged=staged,
            is_durable=queue.durable,
            is_shared=queue.kind in (QUORUM, STREAM),
        )

    wait_for(channel, method, ask, on_known)


def _declare_passive(channel: Channel, name: str, method: Any) -> None:
    vhost = channel.vhost
    queue = vhost.queue(name)
    vhost.check_access(queue, channel.session)
    channel.last_queue_name = name
    channel.session.metrics.queues_declared += 1
    if not method.nowait:
        queue.touch()
    _answer_declare(channel, queue, method, vhost.rows.staged, is_new=False)


def _declare_reply_queue(channel: Channel, name: str, method: Any) -> None:
    """The pseudo-queue of direct reply-to exists always, a requester's own name while it is there."""
    vhost = channel.vhost
    key = name.encode("utf-8", "surrogateescape")
    if name != PSEUDO_QUEUE and vhost.direct_reply(key) is None:
        raise not_found("queue", name, vhost.name)
    channel.last_queue_name = name
    reply = Methods.DeclareOk(name, 0, 1)
    staged = vhost.rows.staged
    answer(channel, method, reply, staged=staged, is_shared=False)


def bind(channel: Channel, method: Any) -> None:
    """queue.bind."""
    staged = channel.vhost.rows.staged
    edge = _edge(channel, method)
    check_binding(channel, edge)
    channel.vhost.bind(edge, channel.session)
    answer(channel, method, Methods.BindOk(), staged=staged, is_durable=True)


def unbind(channel: Channel, method: Any) -> None:
    """queue.unbind, which has no nowait; a binding that does not exist is removed well enough."""
    staged = channel.vhost.rows.staged
    edge = _edge(channel, method)
    check_binding(channel, edge)
    channel.vhost.unbind(edge, channel.session)
    answer(channel, method, Methods.UnbindOk(), staged=staged, is_durable=True)


def purge(channel: Channel, method: Any) -> None:
    """queue.purge: drops what is ready, never what is unacked."""
    vhost = channel.vhost
    # RabbitMQ takes line ends out of the name everywhere but here.
    name = _known_name(channel, method.queue)
    channel.rights.check("read", "queue", name)
    queue = vhost.queue(name)
    vhost.check_access(queue, channel.session)

    def on_known(error: AmqpError | None) -> None:
        if error is not None:
            raise error
        count = queue.purge()
        wait_for(channel, method, queue.ask, functools.partial(on_purged, count))

    def on_purged(count: int, error: AmqpError | None) -> None:
        if error is not None:
            raise error
        answer(channel, method, Methods.PurgeOk(min(count, COUNT_MAX)), staged=vhost.rows.staged)

    wait_for(channel, method, queue.ask, on_known)


def delete(channel: Channel, method: Any) -> None:
    """queue.delete; a queue that does not exist is deleted well enough."""
    vhost = channel.vhost
    staged = vhost.rows.staged
    name = clean_name(_known_name(channel, method.queue))
    channel.rights.check("configure", "queue", name)
    queue = vhost.queues.get(name)
    if queue is None:
        answer(channel, method, Methods.DeleteOk(0), staged=staged, is_durable=True)
        return
    vhost.check_access(queue, channel.session)
    wait_for(channel, method, queue.ask, functools.partial(_delete_known, channel, method, queue))


def _delete_known(channel: Channel, method: Any, queue: QueuePort, error: AmqpError | None) -> None:
    """Go on with queue.delete when it is known what is in the queue."""
    vhost = channel.vhost
    if error is not None:
        raise error
    if method.if_empty and queue.ready_count:
        raise PreconditionFailed(f"{describe('queue', queue.name, vhost.name)} not empty")
    if method.if_unused and queue.consumer_count:
        raise PreconditionFailed(f"{describe('queue', queue.name, vhost.name)} in use")
    vhost.require_deletable(queue)

    staged = count = 0

    def let_go(then: Told) -> None:
        queue.release(functools.partial(on_released, then))

    def on_released(then: Told, error: AmqpError | None) -> None:
        """What it had elsewhere is gone, and so is the queue, though the client may be gone as well."""
        nonlocal staged, count
        if error is None:
            staged = vhost.rows.staged
            count = vhost.delete_queue(queue)
            channel.session.scheduler.touch()
        then(error)

    def on_deleted(error: AmqpError | None) -> None:
        if error is not None:
            raise error
        answer(channel, method, Methods.DeleteOk(min(count, COUNT_MAX)), staged=staged)

    wait_for(channel, method, let_go, on_deleted)


def _known_name(channel: Channel, name: str) -> str:
    """The name given, or that of the queue declared last.

    Raises: NotFound when there is neither.
    """
    if name:
        return name
    if channel.last_queue_name is None:
        raise NotFound("no previously declared queue")
    return channel.last_queue_name


def _edge(channel: Channel, method: Any) -> Edge:
    """The binding that bind and unbind speak of; an empty key goes with an empty queue name."""
    name = clean_name(_known_name(channel, method.queue))
    key = name if not method.queue and not method.routing_key else method.routing_key
    return Edge(
        source=clean_name(method.exchange),
        kind="queue",
        destination=name,
        routing_key=key.encode("utf-8", "surrogateescape"),
        arguments=method.arguments or {},
    )


Handler = Callable[[Channel, Any], None]
HANDLERS: dict[str, Handler] = {
    "Queue.Declare": declare,
    "Queue.Bind": bind,
    "Queue.Unbind": unbind,
    "Queue.Purge": purge,
    "Queue.Delete": delete,
}
