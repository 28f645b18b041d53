"""What other front-ends have agreed to before it is here: queues and exchanges that are proposed, and what is adopted.

Owns no state. Called by the handlers of exchange.* and queue.*, by management, and by whoever agrees.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from burrowmq.broker.queue.rules.quorum import is_quorum
from burrowmq.broker.queue.rules.stream import is_stream
from burrowmq.broker.vhost.queue_settings import queue_row
from burrowmq.broker.words.resource import row_key

if TYPE_CHECKING:
    from burrowmq.broker.exchange.binding import Edge
    from burrowmq.broker.exchange.graph import ExchangeDeclaration
    from burrowmq.broker.queue.port import QueuePort
    from burrowmq.broker.queue.rules.settings import QueueDeclaration
    from burrowmq.broker.vhost.share import Agreed
    from burrowmq.broker.vhost.vhost import Vhost


def is_shared(vhost: Vhost, declaration: QueueDeclaration) -> bool:
    """Whether other front-ends have a queue like this as well."""
    return vhost.share is not None and (is_quorum(declaration) or is_stream(declaration))


def propose_queue(vhost: Vhost, declaration: QueueDeclaration, made_ms: int, then: Agreed) -> None:
    """Have other front-ends agree to a new queue that is shared; by `then` one of its name is here.

    Raises: PreconditionFailed.
    """
    assert vhost.share is not None, "the caller has looked"
    vhost.check_new_queue(declaration)
    row = queue_row(vhost, declaration, made_ms)
    vhost.share.propose("queue", row_key(vhost.name, declaration.name), row, then)


def propose_exchange(vhost: Vhost, declaration: ExchangeDeclaration, then: Agreed) -> None:
    """Have other front-ends agree to a new durable exchange; by `then` one of its name is here.

    Raises: PreconditionFailed.
    """
    assert vhost.share is not None, "the caller has looked"
    key, row = vhost.graph.row_of(declaration)
    vhost.share.propose("exchange", key, row, then)


def propose_no_exchange(vhost: Vhost, name: str, then: Agreed) -> None:
    """Have all front-ends delete a durable exchange; by `then` this one has."""
    assert vhost.share is not None, "the caller has looked"
    vhost.share.propose("exchange", row_key(vhost.name, name), None, then)


def adopt_queue(vhost: Vhost, declaration: QueueDeclaration, made_ms: object) -> QueuePort:
    """Make a queue that all front-ends have agreed on."""
    queue = vhost.restore_queue(declaration)
    if isinstance(made_ms, int):
        queue.made_ms = made_ms
    vhost.put_row(queue)
    vhost.take_over(queue)
    return queue


def adopt_binding(vhost: Vhost, edge: Edge) -> bool:
    """Add a binding that all front-ends have agreed on; False when an end of it is missing."""
    destination = vhost.destination(edge)
    return destination is not None and vhost.graph.adopt_binding(edge, destination)


def unmake(vhost: Vhost, queue: QueuePort) -> bool:
    """Delete a new queue that the cluster has not made; whether it was.

    One that is shared may be another front-end's by now, and stays, unless nobody can have it.
    """
    is_unmade = vhost.share is None or queue.is_refused
    if is_unmade:
        vhost.delete_queue(queue)
    return is_unmade
