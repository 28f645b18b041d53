"""Policies, parameters, the limits of vhosts, and definitions documents that hold all of them.

Owns no state.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any

from burrowmq.broker.definitions import parameters
from burrowmq.broker.definitions.document import import_steps
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.rules.parameter_rules import make_policy, vhost_limits
from burrowmq.management.answers.reply import not_found
from burrowmq.management.commands.commit import staged

# Entries of a definitions document that are taken over before other work gets its turn.
ENTRIES_PER_TURN = 50
TURN_S = 0.005


def put_policy(
    node: RunningNode, vhost: str, name: str, document: dict[str, Any], *, is_operator: bool
) -> bool:
    """Make or replace a policy; whether it is new. Raises: ValidationFailed."""
    policy = make_policy(name, document, is_operator=is_operator)
    is_new = parameters.set_policy(node.vhosts[vhost], policy, is_operator=is_operator)
    staged(node)
    return is_new


def delete_policy(node: RunningNode, vhost: str, name: str, *, is_operator: bool) -> None:
    """Remove a policy. Raises: ApiError 404."""
    if not parameters.clear_policy(node.vhosts[vhost], name, is_operator=is_operator):
        raise not_found()
    staged(node)


async def in_force(node: RunningNode, vhost: str) -> None:
    """Return when changed policies are in force for every queue; there may be very many."""
    done = asyncio.Event()
    if vhost not in node.vhosts:
        return
    node.vhosts[vhost].policy_pass.when_done(done.set)
    await done.wait()


def put_parameter(
    node: RunningNode, vhost: str, component: str, name: str, value: Any, user: str = ""
) -> bool:
    """Set a parameter in somebody's name; whether it is new. Raises: ValidationFailed, RefusedValue."""
    known = node.auth.users.get(user)  # None for the operator on the machine
    is_new = parameters.set_parameter(node.vhosts[vhost], component, name, value, known)
    staged(node)
    return is_new


def delete_parameter(node: RunningNode, vhost: str, component: str, name: str) -> None:
    """Remove a parameter. Raises: ApiError 404, RefusedValue."""
    if not parameters.clear_parameter(node.vhosts[vhost], component, name):
        raise not_found()
    staged(node)


def put_global_parameter(node: RunningNode, name: str, value: Any) -> bool:
    """Set a global parameter; whether it is new."""
    is_new: bool = node.parameters.put(name, value)
    staged(node)
    return is_new


def delete_global_parameter(node: RunningNode, name: str) -> None:
    """Remove a global parameter. Raises: ApiError 404."""
    if not node.parameters.remove(name):
        raise not_found()
    staged(node)


def set_vhost_limits(node: RunningNode, vhost: str, limits: Any) -> None:
    """Replace a vhost's limits. Raises: ValidationFailed."""
    parameters.set_vhost_limits(node.vhosts[vhost], vhost_limits(limits))
    staged(node)


async def import_definitions(
    node: RunningNode,
    document: dict[str, Any],
    vhost: str | None,
    *,
    is_mirrored_quorum: bool = False,
) -> None:
    """Take over a definitions document, giving way to other work every few entries. Raises: ImportRefused."""
    steps = import_steps(node, document, vhost, is_mirrored_quorum=is_mirrored_quorum)
    turn = time.monotonic()
    try:
        for count, _ in enumerate(steps, start=1):
            # A policy, which is put in force for many queues at once, takes as long as a thousand users.
            if count % ENTRIES_PER_TURN == 0 or time.monotonic() - turn > TURN_S:
                staged(node)
                await asyncio.sleep(0)
                turn = time.monotonic()
    finally:
        staged(node)  # what came before a refused entry, too
    for name in list(node.vhosts):
        await in_force(node, name)
