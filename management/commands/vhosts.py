"""Virtual hosts: made, described, traced, and deleted with all that is in them.

Owns no state.
"""

from __future__ import annotations

from collections.abc import Iterator

from burrowmq.broker import inspect
from burrowmq.broker.definitions import restore
from burrowmq.broker.definitions.restore import create_vhost, put_vhost
from burrowmq.broker.exchange.base import Exchange
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.session.session import Session
from burrowmq.broker.vhost.trace import Tracer
from burrowmq.management.commands.commit import staged
from burrowmq.management.commands.sessions import CLOSED_PER_TURN
from burrowmq.management.commands.users import put_permission

DELETED_PER_TURN = 100
"""Queues, or exchanges, with what is bound to them."""


def add_vhost(node: RunningNode, name: str, creator: str | None) -> None:
    """Make a vhost; its creator may do everything in it. Raises: RefusedValue, when there may be no more."""
    create_vhost(name, node.vhosts, node.make_new_vhost, node.engine.definitions, node.vhost_made)
    if creator is not None:
        put_permission(node, name, creator, [".*", ".*", ".*"])
    staged(node)


def delete_vhost(node: RunningNode, name: str) -> Iterator[None]:
    """Delete a vhost with everything in it, in steps; between two of them other work may have its turn.

    Its consumers are cancelled and its connections closed. It is there until the last step, which deletes what came
    meanwhile, so that nobody makes another one of the name before the first is gone.
    """
    owner = node.vhosts[name]
    expelled: set[Session] = set()
    for count, session in enumerate(inspect.each_session(node, name), start=1):
        _expel(session, name)
        expelled.add(session)
        if count % CLOSED_PER_TURN == 0:
            yield
    # Those that the disk refuses first: what others have given them is deleted with them, not before.
    blocked = [queue for queue in owner.queues.values() if _is_refused(node, queue)]
    first = set(map(id, blocked))
    things: list[QueuePort | Exchange] = [
        *blocked,
        *(queue for queue in owner.queues.values() if id(queue) not in first),
        *(exchange for exchange in owner.exchanges.values() if exchange.name),
    ]
    for count, thing in enumerate(things, start=1):
        if isinstance(thing, Exchange):
            owner.delete_exchange(thing)
        else:
            owner.delete_queue(thing)
        if count % DELETED_PER_TURN == 0:
            staged(node)
            yield
    if node.vhosts.get(name) is not owner:
        return  # somebody else was asked to delete it too
    for session in inspect.each_session(node, name):
        if session not in expelled:
            _expel(session, name)
    restore.delete_vhost(owner, node.vhosts, node.auth, node.engine.definitions)
    node.engine.delete_vhost(name)
    staged(node)


def _is_refused(node: RunningNode, queue: QueuePort) -> bool:
    faults = node.queue_faults.of(queue.vhost_name, queue.name)
    return any(fault.kind == "writing" for fault in faults)


def _expel(session: Session, vhost: str) -> None:
    session.cancel_consumers()
    session.force_close(f"vhost '{vhost}' is deleted")


def describe_vhost(
    node: RunningNode,
    name: str,
    description: str | None,
    tags: list[str] | None,
    queue_type: str | None = None,
) -> None:
    """Change a vhost's metadata; None keeps what there is."""
    owner = node.vhosts[name]
    if queue_type is not None:
        owner.default_queue_type = queue_type
    if description is not None:
        owner.description = description
    if tags is not None:
        owner.tags = tags
    put_vhost(owner, node.engine.definitions)
    staged(node)


def protect_vhost(node: RunningNode, name: str, is_protected: bool) -> None:
    """Have a vhost refuse to be deleted, or no more."""
    owner = node.vhosts[name]
    owner.is_protected = is_protected
    put_vhost(owner, node.engine.definitions)
    staged(node)


def usual_queue_type(node: RunningNode, name: str) -> str:
    """The default queue type of a vhost for which none was named: the configuration's, or ""."""
    return str(node.vhosts[name].options.default_queue_type)


def set_tracing(node: RunningNode, name: str, is_on: bool) -> None:
    """Turn the firehose of a vhost on or off; not kept over a restart, as in RabbitMQ."""
    owner = node.vhosts[name]
    if is_on != (owner.tracer is not None):
        owner.tracer = Tracer(owner, node.name, node.scheduler) if is_on else None
