"""Which bindings read as one that a document has, while it is imported.

JSON has one kind of integer where AMQP has seven, so that a client's binding and the same one of an export may have
different identities. `SameBindings` belongs to one import. By source it remembers, once something is asked about it,
how the arguments of its bindings read, and looks at each binding once: an import costs no more than in proportion.

Invariant: clients may bind and unbind between two questions. New bindings are the last of their source; what is found
is looked up before it counts.
"""

from __future__ import annotations

from collections.abc import Hashable, Reversible
from typing import TYPE_CHECKING, cast

from burrowmq.broker.words.exact import exact

if TYPE_CHECKING:
    from burrowmq.broker.exchange.base import Exchange
    from burrowmq.broker.exchange.binding import Binding
    from burrowmq.broker.vhost.vhost import Edge


class SameBindings:
    """The bindings of the exchanges that an import has come to."""

    def __init__(self) -> None:
        self._of: dict[Exchange, dict[Hashable, dict[Binding, None]]] = {}
        self._seen: dict[Exchange, set[Binding]] = {}

    def has(self, source: Exchange, edge: Edge) -> bool:
        """Whether the exchange has a binding that reads like this one."""
        self._look(source)
        form = edge.kind, edge.destination, edge.routing_key, exact(edge.arguments)
        alike = self._of[source].get(form, ())
        return any(source.find(binding.identity) is binding for binding in alike)

    def _look(self, source: Exchange) -> None:
        """Remember what was bound since the last time."""
        alike, seen = self._of.setdefault(source, {}), self._seen.setdefault(source, set())
        # They are the values of a dictionary, in the order in which they were made.
        for binding in reversed(cast("Reversible[Binding]", source.bindings)):
            if binding in seen:
                return
            seen.add(binding)
            form = (
                binding.destination_kind,
                binding.destination.name,
                binding.routing_key,
                exact(binding.arguments),
            )
            alike.setdefault(form, {})[binding] = None
