"""Virtual hosts: made, described, traced, and deleted with all that is in them.

Owns no state.
"""

from __future__ import annotations

from burrowmq.broker import inspect
from burrowmq.broker.definitions import parameters
from burrowmq.broker.definitions.restore import create_vhost, put_vhost
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.vhost.trace import Tracer
from burrowmq.broker.words.resource import row_key
from burrowmq.management.commands.commit import staged
from burrowmq.management.commands.sessions import close_sessions
from burrowmq.management.commands.users import put_permission


def add_vhost(node: RunningNode, name: str, creator: str | None) -> None:
    """Make a vhost; its creator may do everything in it."""
    create_vhost(name, node.vhosts, node.make_vhost, node.engine.definitions, node.vhost_made)
    if creator is not None:
        put_permission(node, name, creator, [".*", ".*", ".*"])
    staged(node)


def delete_vhost(node: RunningNode, name: str) -> None:
    """Delete a vhost with everything in it; its consumers are cancelled and its connections closed."""
    sessions = inspect.each_session(node, name)
    for session in sessions:
        session.cancel_consumers()
    close_sessions(sessions, f"vhost '{name}' is deleted")
    owner = node.vhosts.pop(name)
    for queue in list(owner.queues.values()):
        owner.delete_queue(queue)
    for exchange in [each for each in owner.exchanges.values() if each.name]:
        owner.delete_exchange(exchange)
    parameters.forget_vhost(owner)
    node.auth.delete_vhost(name)
    node.engine.definitions.delete("vhost", row_key(name))
    node.engine.delete_vhost(name)
    staged(node)


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
