"""What a queue declaration is refused for: by its own arguments, by the virtual host, by the queue that is there.

Owns no state. Each kind of queue has its own rules (`broker.queue.rules`); those of the cluster's kinds count where
there is a cluster. Called by `broker.vhost.vhost` alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from burrowmq.broker.queue.rules import settings as queue_settings
from burrowmq.broker.queue.rules.quorum import (
    QUORUM,
    check_equivalent_quorum,
    is_quorum,
    validate_quorum,
)
from burrowmq.broker.queue.rules.stream import (
    STREAM,
    check_equivalent_stream,
    is_stream,
    validate_stream,
)
from burrowmq.broker.words.resource import check_same_fields, describe
from burrowmq.protocol.errors import PreconditionFailed

if TYPE_CHECKING:
    from burrowmq.broker.queue.port import QueuePort
    from burrowmq.broker.queue.rules.settings import QueueDeclaration
    from burrowmq.protocol.table import FieldTable

_EQUIVALENCE: Final = {QUORUM: check_equivalent_quorum, STREAM: check_equivalent_stream}


def check_new(
    declaration: QueueDeclaration,
    vhost: str,
    *,
    has_cluster: bool,
    count: int,
    limit: int,
    kept: int = -1,
) -> None:
    """Refuse what cannot be made in a virtual host of `count` queues; a `limit` below 0 is none.

    `kept`: up to this level a start has kept messages of a queue of its name, whose definition could not be used; -1 is
    none. A queue that could not hold them all would cost the rest at the next start, which finds a definition.

    Raises: PreconditionFailed.
    """
    name = declaration.name
    if declaration.durable and kept >= 0:
        _check_kept(declaration, vhost, kept, has_cluster=has_cluster)
    if has_cluster and is_quorum(declaration):
        validate_quorum(declaration, vhost)
    elif has_cluster and is_stream(declaration):
        validate_stream(declaration, vhost)
    else:
        queue_settings.validate(declaration.arguments, name, vhost)
    if 0 <= limit <= count:
        raise PreconditionFailed(
            f"cannot declare queue '{name}': queue limit in vhost '{vhost}' ({limit}) is reached"
        )


def _check_kept(
    declaration: QueueDeclaration, vhost: str, level: int, *, has_cluster: bool
) -> None:
    where = describe("queue", declaration.name, vhost)
    if has_cluster and (is_quorum(declaration) or is_stream(declaration)):
        raise PreconditionFailed(
            f"cannot declare {where}: messages of the classic queue of its name are kept, whose definition could not"
            " be used; declare that one first"
        )
    priority = declaration.arguments.get("x-max-priority")
    if level > (max(1, int(priority)) if isinstance(priority, int) else 0):
        raise PreconditionFailed(
            f"cannot declare {where}: messages of priorities up to {level} are kept of it, whose definition could not"
            f" be used; declare it with x-max-priority {level} or more"
        )


def check_equivalent(
    queue: QueuePort, declaration: QueueDeclaration, vhost: str, former: FieldTable | None
) -> None:
    """Refuse a declaration that means another queue than the one here, and than a `former` one of its name.

    Raises: PreconditionFailed.
    """
    where = describe("queue", queue.name, vhost)
    check_same_fields(
        where,
        ("durable", declaration.durable and declaration.owner is None, queue.durable),
        ("auto_delete", declaration.auto_delete, queue.auto_delete),
    )
    if former is not None and queue_settings.are_equivalent(former, declaration.arguments):
        return
    check = _EQUIVALENCE.get(queue.kind, queue_settings.check_equivalent)
    check(queue.arguments, declaration.arguments, queue.name, vhost)
