"""Mirroring, which is not here: policies with `ha-mode` warn, or make new queues quorum queues (`cluster.mirrored`).

Owns no state. `tell` is for whoever sets a policy, `as_policies_say` for whoever is about to make a queue: by AMQP,
over HTTP or from definitions. A queue that is there stays what it is, whatever policies say later. One that is made a
quorum queue remembers the arguments that it was asked for with (`former_arguments`): a client that declares it again as
ever, also with `x-queue-type: classic`, finds it, and policies for classic queues are for it, too.

A client that names the type gets that type, as with RabbitMQ's default queue type.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Final

from burrowmq.broker.queue.rules import settings as queue_settings
from burrowmq.broker.queue.rules.quorum import quorum_arguments, validate_quorum
from burrowmq.broker.words.resource import RESERVED_PREFIX
from burrowmq.protocol.errors import PreconditionFailed

if TYPE_CHECKING:
    from burrowmq.broker.queue.rules.settings import QueueDeclaration
    from burrowmq.broker.rules.policy import Policy
    from burrowmq.broker.vhost.vhost import Vhost

MODE: Final = "ha-mode"
NO_DLX_OF_REFUSED: Final = "a quorum queue takes reject-publish-dlx for drop-head"
_OF_QUEUES: Final = ("all", "queues", "classic_queues")


def tell(vhost: Vhost, policy: Policy, *, is_operator: bool) -> None:
    """A policy was set: warn if it wants mirrors, and gets none."""
    if MODE not in policy.definition or vhost.observer is None:
        return
    keys = ", ".join(sorted(key for key in policy.definition if key.startswith("ha-")))
    if not vhost.options.has_cluster:
        reason = "queues lie on this node alone; cluster.urls names servers that keep quorum queues"
    elif not vhost.options.is_mirrored_quorum:
        reason = (
            "classic queues lie on this node alone; cluster.mirrored = quorum makes new durable ones quorum queues,"
            " burrowctl migrate_queues those that are there"
        )
    elif policy.apply_to not in _OF_QUEUES:
        reason = f"classic queues are what is mirrored, it applies to {policy.apply_to}"
    else:
        return
    name = f"{'operator policy' if is_operator else 'policy'} {policy.name}"
    vhost.observer.policy_without_effect(vhost.name, name, f"{keys}: {reason}")


def as_policies_say(
    vhost: Vhost, declaration: QueueDeclaration, *, is_typed: bool, is_wanted: bool = False
) -> QueueDeclaration:
    """A new queue as it is to be made: a quorum queue where policies would mirror a classic one.

    `is_typed` says whether who declares it has named its type; `is_wanted` that quorum queues are wanted, whatever was
    named and configured. One that a quorum queue cannot be stays classic, with a warning, unless it is refused anyway.
    """
    found, reason = _decided(vhost, declaration, is_typed=is_typed, is_wanted=is_wanted)
    if reason and vhost.observer is not None:
        vhost.observer.queue_not_mirrored(vhost.name, declaration.name, reason)
    return found


def foreseen(vhost: Vhost, declaration: QueueDeclaration, *, is_typed: bool) -> QueueDeclaration:
    """The same for who only wants to know; nobody is told."""
    return _decided(vhost, declaration, is_typed=is_typed, is_wanted=False)[0]


def _decided(
    vhost: Vhost, declaration: QueueDeclaration, *, is_typed: bool, is_wanted: bool
) -> tuple[QueueDeclaration, str]:
    """The queue as it is to be made, and why it is not what policies say; "" when nobody need know."""
    if not (is_wanted or vhost.options.is_mirrored_quorum) or not _may_be(vhost, declaration):
        return declaration, ""
    arguments = declaration.arguments
    made = replace(
        declaration, arguments=quorum_arguments(arguments), former_arguments=dict(arguments)
    )
    if is_typed and not is_wanted:
        return declaration, "its declaration has x-queue-type: classic"
    try:
        queue_settings.validate(arguments, declaration.name, vhost.name)
    except PreconditionFailed:
        return declaration, ""  # the client is told so
    reason = _obstacle(vhost, made)
    return (declaration, reason) if reason else (made, "")


def _obstacle(vhost: Vhost, made: QueueDeclaration) -> str:
    """Why a quorum queue cannot be that, or would lose what a classic one keeps; "" when it can."""
    if vhost.engine.kept_level(vhost.name, made.name) >= 0:
        return "messages of the classic queue of its name are kept"
    try:
        validate_quorum(made, vhost.name)
    except PreconditionFailed as refused:
        return refused.text
    for found in (
        vhost.settings.of(made.name, made.former_arguments or {}),
        vhost.settings.of_successor(made.name, made.arguments),
    ):
        if found.overflow == "reject-publish-dlx":
            return NO_DLX_OF_REFUSED
    return ""


def _may_be(vhost: Vhost, declaration: QueueDeclaration) -> bool:
    """Whether it is a queue that lasts, and that a policy would mirror."""
    name = declaration.name
    return (
        declaration.durable
        and declaration.owner is None
        and not declaration.auto_delete
        and declaration.arguments.get("x-queue-type", "classic") == "classic"
        and not name.startswith(RESERVED_PREFIX)
        and MODE in vhost.policies.effective("queue", name).definition
    )


def as_declared(declaration: QueueDeclaration) -> QueueDeclaration:
    """As a client has asked for it, to be compared with what another front-end may have made meanwhile."""
    if declaration.former_arguments is None:
        return declaration
    return replace(declaration, arguments=declaration.former_arguments, former_arguments=None)
