"""Queues, exchanges and bindings, changed through the API as a client would over AMQP.

Owns no state. The names of the broker (`amq.`) are refused here with the API's own words.
"""

from __future__ import annotations

import functools
from typing import Any

from burrowmq.broker.exchange import TYPES
from burrowmq.broker.exchange.binding import Binding
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.queue.rules.settings import QueueDeclaration, with_default_type
from burrowmq.broker.vhost import agreement, mirrored
from burrowmq.broker.vhost.vhost import Edge, ExchangeDeclaration, Vhost
from burrowmq.broker.words.resource import describe
from burrowmq.management.answers.reply import ApiError, Call, bad_request, not_found
from burrowmq.management.commands.commit import counted, proposed, released, staged
from burrowmq.protocol.errors import NotFound
from burrowmq.protocol.table import from_json

SHORT_TEXT_BYTES = 255


def queue_of(node: RunningNode, vhost: str, name: str) -> QueuePort:
    """The queue object. Raises: ApiError 404."""
    found = node.vhosts[vhost].queues.get(name)
    if found is None:
        raise not_found()
    return found


def require_access(call: Call, vhost: str, queue: QueuePort) -> None:
    """Refuse an exclusive queue, which belongs to its connection, to all but burrowctl. Raises: ResourceLocked."""
    if not call.caller.is_trusted:
        call.node.vhosts[vhost].check_access(queue, call)


def check_size(what: str, text: str) -> None:
    """Refuse what no client could name: on the wire its size has one byte. Raises: ApiError."""
    size = len(text.encode("utf-8", "surrogateescape"))
    if size > SHORT_TEXT_BYTES:
        # RabbitMQ's words and line end, for a queue; it takes the others, and what is routed by them is cut.
        raise bad_request(
            f"{what} should be less than {SHORT_TEXT_BYTES} bytes, actually was {size}\n"
        )


def declare_queue(
    node: RunningNode,
    vhost: str,
    name: str,
    durable: bool,
    auto_delete: bool,
    arguments: dict[str, Any],
) -> bool:
    """Whether it is new. Raises: AmqpError."""
    check_size("queue", name)
    owner = node.vhosts[vhost]
    is_new = name not in owner.queues
    if name.startswith("amq."):  # of a queue, even where it is there
        raise ApiError(401, "not_authorised", "Access refused.")
    declaration = _queue(owner, name, durable, auto_delete, arguments)
    if is_new:
        is_typed = "x-queue-type" in arguments
        declaration = mirrored.as_policies_say(owner, declaration, is_typed=is_typed)
    owner.declare_queue(declaration)
    staged(node)
    return is_new


def _queue(
    owner: Vhost, name: str, durable: bool, auto_delete: bool, arguments: dict[str, Any]
) -> QueueDeclaration:
    return QueueDeclaration(
        name=name,
        durable=durable,
        auto_delete=auto_delete,
        arguments=with_default_type(
            from_json(arguments),
            owner.default_queue_type,
            is_replicable=durable and not auto_delete,
        ),
    )


async def agree_on_queue(
    node: RunningNode,
    vhost: str,
    name: str,
    durable: bool,
    auto_delete: bool,
    arguments: dict[str, Any],
) -> bool:
    """Before it is declared: whether all front-ends have it new. Raises: AmqpError, ApiError 503."""
    owner = node.vhosts[vhost]
    declaration = mirrored.foreseen(
        owner,
        _queue(owner, name, durable, auto_delete, arguments),
        is_typed="x-queue-type" in arguments,
    )
    if (
        name in owner.queues
        or name.startswith("amq.")
        or not agreement.is_shared(owner, declaration)
    ):
        return False
    check_size("queue", name)
    propose = functools.partial(
        agreement.propose_queue, owner, declaration, node.scheduler.wall_ms()
    )
    await proposed(propose, f"{describe('queue', name, vhost)} is inaccessible: ")
    return True


def unmake_queue(node: RunningNode, owner: Vhost, queue: QueuePort) -> None:
    """Delete a new one that the cluster has not made, if it is nobody else's."""
    if agreement.unmake(owner, queue):
        staged(node)


async def empty_queue(node: RunningNode, queue: QueuePort) -> None:
    """Drop the ready messages, and return when that is done. Raises: ApiError 404, 503."""
    await counted(queue)
    if queue.is_deleted:
        raise not_found()
    purge(node, queue.vhost_name, queue.name)
    await counted(queue)


def purge(node: RunningNode, vhost: str, name: str) -> int:
    """Drop the ready messages."""
    purged = int(queue_of(node, vhost, name).purge())
    staged(node)
    return purged


def delete_queue(node: RunningNode, vhost: str, name: str) -> None:
    """Delete a queue with what is in it. Raises: ApiError 503, while only it has what it owes another one."""
    queue = queue_of(node, vhost, name)
    try:
        node.vhosts[vhost].require_deletable(queue)
    except NotFound as error:
        raise ApiError(503, "unavailable", str(error)) from error
    node.vhosts[vhost].delete_queue(queue)
    staged(node)


async def end_queue(node: RunningNode, queue: QueuePort) -> None:
    """The same when the queue has let go of what it has elsewhere. Raises: ApiError 503, also where that cannot be."""
    await released(queue)
    if not queue.is_deleted:  # by somebody else meanwhile
        delete_queue(node, queue.vhost_name, queue.name)


def declare_exchange(
    node: RunningNode,
    vhost: str,
    name: str,
    kind: str,
    flags: tuple[bool, bool, bool],
    arguments: dict[str, Any],
) -> bool:
    """Whether it is new; `flags` are durable, auto_delete and internal. Raises: AmqpError."""
    check_size("exchange", name)
    owner = node.vhosts[vhost]
    is_new = name not in owner.exchanges
    if is_new and (name.startswith("amq.") or not name):
        raise ApiError(401, "not_authorised", "Access refused.")
    if kind not in TYPES:
        raise bad_request(f"unknown exchange type '{kind}'")
    durable, auto_delete, internal = flags
    owner.declare_exchange(
        ExchangeDeclaration(
            name=name,
            type=kind,
            durable=durable,
            auto_delete=auto_delete,
            internal=internal,
            arguments=from_json(arguments),
        )
    )
    staged(node)
    return is_new


async def agree_on_exchange(
    node: RunningNode,
    vhost: str,
    name: str,
    kind: str,
    flags: tuple[bool, bool, bool],
    arguments: dict[str, Any],
) -> bool:
    """Before it is declared: whether all front-ends have it new. Raises: AmqpError, ApiError 503."""
    owner = node.vhosts[vhost]
    durable, auto_delete, internal = flags
    is_odd = name in owner.exchanges or name.startswith("amq.") or kind not in TYPES
    if owner.share is None or not durable or is_odd:
        return False
    check_size("exchange", name)
    declaration = ExchangeDeclaration(
        name=name,
        type=kind,
        durable=True,
        auto_delete=auto_delete,
        internal=internal,
        arguments=from_json(arguments),
    )
    await proposed(functools.partial(agreement.propose_exchange, owner, declaration))
    return True


async def end_exchange(node: RunningNode, vhost: str, name: str, if_unused: bool) -> None:
    """Delete one of the user's exchanges, at all front-ends. Raises: ApiError, AmqpError."""
    owner = node.vhosts[vhost]
    exchange = owner.exchanges[name]
    if owner.share is None or not exchange.durable or not name or name.startswith("amq."):
        delete_exchange(node, vhost, name, if_unused)
        return
    owner.graph.check_deletable(exchange, if_unused=if_unused)
    await proposed(functools.partial(agreement.propose_no_exchange, owner, name))
    staged(node)


def delete_exchange(node: RunningNode, vhost: str, name: str, if_unused: bool) -> None:
    """Delete one of the user's exchanges. Raises: ApiError, AmqpError."""
    if not name or name.startswith("amq."):
        raise ApiError(401, "not_authorised", "Access refused.")
    owner = node.vhosts[vhost]
    owner.delete_exchange(owner.exchanges[name], if_unused=if_unused)
    staged(node)


def bind(
    node: RunningNode,
    vhost: str,
    source: str,
    destination: tuple[str, str],
    key: str,
    arguments: dict[str, Any],
) -> None:
    """Bind; `destination` is (kind, name). Raises: AmqpError, ApiError."""
    check_size("routing_key", key)
    kind, name = destination
    edge = Edge(
        source,
        "queue" if kind == "queue" else "exchange",
        name,
        key.encode("utf-8", "surrogateescape"),
        from_json(arguments),
    )
    node.vhosts[vhost].bind(edge)
    staged(node)


def unbind(node: RunningNode, vhost: str, binding: Binding) -> None:
    """Remove a binding that `inspect.find_binding` found."""
    owner, name = node.vhosts[vhost], binding.destination.name
    edge = Edge(
        binding.source.name, binding.destination_kind, name, binding.routing_key, binding.arguments
    )
    # An exclusive queue's owner may do so over AMQP; an administrator may here.
    owner.unbind(edge, owner.queues[name].exclusive_owner if edge.kind == "queue" else None)
    staged(node)
