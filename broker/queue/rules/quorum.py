"""What a new quorum queue may be declared with, in RabbitMQ's words where it says no; and what means another queue.

Owns no state. Called by `broker.vhost.vhost`, on a node that has a cluster; without one the type itself is refused
(`settings.validate`). RabbitMQ's order: the values of what a quorum queue knows, then what only other types know, then
the properties.

Source: rabbit_quorum_queue (capabilities), rabbit_amqqueue (check_declare_arguments), rabbit_queue_type_util
(check_auto_delete, check_exclusive, check_non_durable).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from burrowmq.broker.queue.rules.settings import QueueDeclaration, check_arguments, not_negative
from burrowmq.broker.words.resource import check_same_argument, describe
from burrowmq.protocol import table
from burrowmq.protocol.errors import PreconditionFailed

if TYPE_CHECKING:
    from burrowmq.broker.rules.policy import PolicyKind
    from burrowmq.protocol.table import FieldTable, FieldValue

QUORUM: Final = "quorum"
REPLICAS_MAX: Final = 5
QUORUM_KEYS: Final = (
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-dead-letter-strategy",
    "x-expires",
    "x-max-length",
    "x-max-length-bytes",
    "x-max-in-memory-length",
    "x-max-in-memory-bytes",
    "x-overflow",
    "x-single-active-consumer",
    "x-queue-type",
    "x-quorum-initial-group-size",
    "x-delivery-limit",
    "x-message-ttl",
    "x-queue-leader-locator",
)
"""What a redeclaration has to say again. The limits of memory have no effect, as in RabbitMQ."""
_FOREIGN: Final = (
    "x-max-priority",
    "x-queue-mode",
    "x-queue-version",
    "x-queue-master-locator",
    "x-max-age",
    "x-stream-max-segment-size-bytes",
    "x-initial-cluster-size",
)
_OF_CLASSIC_QUEUES: Final = (
    "x-queue-mode",
    "x-queue-version",
    "x-queue-master-locator",
    "x-queue-type",
)
"""Say how a classic queue keeps its messages, and nothing that its users notice."""
_STRATEGIES: Final = ("at-most-once", "at-least-once")
_LOCATORS: Final = ("client-local", "balanced", "random", "least-leaders")


def is_quorum(declaration: QueueDeclaration) -> bool:
    """Whether that is what is asked for."""
    return declaration.arguments.get("x-queue-type") == QUORUM


def quorum_arguments(arguments: FieldTable) -> FieldTable:
    """Those of the quorum queue that a classic one of these arguments would be."""
    kept = {key: value for key, value in arguments.items() if key not in _OF_CLASSIC_QUEUES}
    return {**kept, "x-queue-type": QUORUM}


def policy_kind(arguments: FieldTable) -> PolicyKind:
    """As what policies know a queue of these arguments."""
    kind = arguments.get("x-queue-type")
    if kind == QUORUM:
        return "quorum"
    return "stream" if kind == "stream" else "queue"


def validate_quorum(declaration: QueueDeclaration, vhost: str) -> None:
    """Refuse what a quorum queue cannot be. Raises: PreconditionFailed."""
    arguments = declaration.arguments
    where = describe("queue", declaration.name, vhost)
    known = {key: value for key, value in arguments.items() if key in QUORUM_KEYS}
    check_arguments({key: known[key] for key in known if key != "x-queue-type"}, where)
    for key, wrong in known_wrong(known):
        raise PreconditionFailed(f"invalid arg '{key}' for {where}: {wrong}")
    for key in _FOREIGN:
        if key in arguments:
            raise PreconditionFailed(
                f"invalid arg '{key}' for {where} of queue type rabbit_quorum_queue"
            )
    check_properties(declaration, where)


def check_properties(declaration: QueueDeclaration, where: str) -> None:
    """Refuse a queue that does not last, where its type is there for what does. Raises: PreconditionFailed."""
    for name, is_wrong in (
        ("auto-delete", declaration.auto_delete),
        ("exclusive-owner", declaration.owner is not None),
        ("non-durable", not declaration.durable),
    ):
        if is_wrong:
            raise PreconditionFailed(f"invalid property '{name}' for {where}")


def known_wrong(known: FieldTable) -> list[tuple[str, str]]:
    """(key, what is wrong with it), of what classic queues do not know."""
    numbers = (
        "x-max-in-memory-length",
        "x-max-in-memory-bytes",
        "x-delivery-limit",
        "x-stream-max-segment-size-bytes",
    )
    found = {key: not_negative(known[key], known) for key in numbers if key in known}
    for key, words, said in (
        ("x-dead-letter-strategy", _STRATEGIES, "invalid_dlx_strategy"),
        ("x-queue-leader-locator", _LOCATORS, "invalid_queue_locator_arg"),
    ):
        if key in known:
            found[key] = _one_of(known[key], words, said)
    for key in ("x-quorum-initial-group-size", "x-initial-cluster-size"):
        size = known.get(key, 1)
        found[key] = not_negative(size, known)
        if found[key] is not None or not isinstance(size, int):
            continue
        if not size:
            found[key] = "{value_zero,0}"
        elif size > REPLICAS_MAX and key != "x-initial-cluster-size":
            found[key] = f"{{value_out_of_range,{size}}}"
    return [(key, wrong) for key, wrong in found.items() if wrong is not None]


def _one_of(value: FieldValue, words: tuple[str, ...], said: str) -> str | None:
    if not isinstance(value, str):
        return f"{{unacceptable_type,{table.type_name(value)}}}"
    return None if value in words else said


def check_equivalent_quorum(
    current: FieldTable, received: FieldTable, queue: str, vhost: str
) -> None:
    """Refuse a redeclaration of a quorum queue whose arguments mean another one. Raises: PreconditionFailed."""
    where = describe("queue", queue, vhost)
    for key in QUORUM_KEYS:
        check_same_argument(key, current, received, where)
