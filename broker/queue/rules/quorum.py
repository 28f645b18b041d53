"""What a new quorum queue may be declared with, in RabbitMQ's words where it says no.

What RabbitMQ takes and is not built here is refused as what its quorum queues do not know. Owns no state. Called by
`broker.vhost.vhost`, on a node that has a cluster; without one the type itself is refused (`settings.validate`).

Source: rabbit_queue_type_util (check_auto_delete, check_exclusive, check_non_durable), rabbit_quorum_queue.
"""

from __future__ import annotations

from typing import Final

from burrowmq.broker.queue.rules.settings import QueueDeclaration, check_arguments, not_negative
from burrowmq.broker.words.resource import describe
from burrowmq.protocol.errors import PreconditionFailed

QUORUM: Final = "quorum"
REPLICAS_MAX: Final = 5
QUORUM_KEYS: Final = (
    "x-queue-type",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-max-length",
    "x-max-length-bytes",
    "x-overflow",
    "x-delivery-limit",
    "x-quorum-initial-group-size",
    "x-message-ttl",
    "x-queue-leader-locator",
    "x-max-in-memory-length",
    "x-max-in-memory-bytes",
)
"""The last two have no effect, as in RabbitMQ."""
_FOREIGN: Final = (
    "x-expires",
    "x-max-priority",
    "x-queue-mode",
    "x-queue-version",
    "x-single-active-consumer",
    "x-dead-letter-strategy",
    "x-max-age",
    "x-stream-max-segment-size-bytes",
    "x-initial-cluster-size",
)


def is_quorum(declaration: QueueDeclaration) -> bool:
    """Whether that is what is asked for."""
    return declaration.arguments.get("x-queue-type") == QUORUM


def validate_quorum(declaration: QueueDeclaration, vhost: str) -> None:
    """Refuse what a quorum queue cannot be. Raises: PreconditionFailed."""
    arguments = declaration.arguments
    where = describe("queue", declaration.name, vhost)
    check_arguments(
        {key: value for key, value in arguments.items() if key != "x-queue-type"}, where
    )
    for key in ("x-delivery-limit", "x-quorum-initial-group-size"):
        wrong = not_negative(arguments[key], arguments) if key in arguments else None
        if wrong is not None:
            raise PreconditionFailed(f"invalid arg '{key}' for {where}: {wrong}")
    for key in _FOREIGN:
        if key in arguments and arguments[key] is not False:
            raise PreconditionFailed(
                f"invalid arg '{key}' for {where} of queue type rabbit_quorum_queue"
            )
    size = arguments.get("x-quorum-initial-group-size", 1)
    if isinstance(size, int) and not 1 <= size <= REPLICAS_MAX:
        raise PreconditionFailed(
            f"invalid arg 'x-quorum-initial-group-size' for {where}: {{value_out_of_range,{size}}}"
        )
    for name, is_wrong in (
        ("auto-delete", declaration.auto_delete),
        ("exclusive-owner", declaration.owner is not None),
        ("non-durable", not declaration.durable),
    ):
        if is_wrong:
            raise PreconditionFailed(f"invalid property '{name}' for {where}")
    is_limited = "x-max-length" in arguments or "x-max-length-bytes" in arguments
    if is_limited and arguments.get("x-overflow") != "reject-publish":
        raise PreconditionFailed(
            f"invalid arg 'x-overflow' for {where}:"
            " \"a quorum queue with a length limit needs 'reject-publish'\""
        )
