"""The exchanges of a vhost and the bindings among them and to queues.

Owns the exchanges by name, and the index from a destination to the bindings that lead to it (`Exchange` itself holds
those that lead away). Queues are only destinations here. The only caller is `broker.vhost.vhost`, which looks queues up
and checks who may use them, and hears of every change through `on_changed`. Durable exchanges, and bindings between two
durable things, are rows.

Invariants: an exchange or queue that is gone has no binding left in either direction; an auto-delete exchange goes with
the last binding of which it is the source (never before it had one), which may leave other such exchanges without a
binding: they go too, each once.

Sources: RabbitMQ's rabbit_exchange (assert_equivalence, delete), rabbit_binding (add, remove, auto-delete).
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, cast

from burrowmq.broker.exchange import exchange_class
from burrowmq.broker.exchange.binding import Binding, RemoteBinding, binding_identity
from burrowmq.broker.words.resource import (
    check_same_argument,
    check_same_fields,
    describe,
    exchange_argument,
    not_found,
    pack_arguments,
    row_key,
)
from burrowmq.protocol.errors import PreconditionFailed
from burrowmq.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from burrowmq.broker.exchange.base import Exchange
    from burrowmq.broker.exchange.binding import Destination, DestinationKind, Edge
    from burrowmq.broker.words.resource import Row, Rows
    from burrowmq.protocol.table import FieldTable

# name, type, internal; all durable, none auto-delete.
PREDECLARED = (
    ("amq.direct", "direct", False),
    ("amq.fanout", "fanout", False),
    ("amq.topic", "topic", False),
    ("amq.headers", "headers", False),
    ("amq.match", "headers", False),
    ("amq.rabbitmq.trace", "topic", True),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeDeclaration:
    """An exchange as asked for."""

    name: str
    type: str = "direct"
    durable: bool = False
    auto_delete: bool = False
    internal: bool = False
    arguments: FieldTable = field(default_factory=dict)


def alternate_exchange(arguments: FieldTable, exchange: str, vhost: str) -> str | None:
    """The alternate of a new exchange, see `exchange_argument`."""
    return exchange_argument(arguments, "alternate-exchange", "exchange", exchange, vhost)


class ExchangeGraph:
    """Exchanges and bindings of one vhost."""

    def __init__(
        self,
        vhost_name: str,
        rows: Rows,
        on_installed: Callable[[Exchange], None],
        on_changed: Callable[[], None],
    ) -> None:
        self.vhost_name = vhost_name
        self.exchanges: dict[str, Exchange] = {}
        self._rows = rows
        self._on_installed = on_installed
        self._on_changed = on_changed
        self._incoming: dict[tuple[DestinationKind, str], dict[Binding, None]] = {}
        self.on_bound: Callable[[Row], None] | None = None
        """Who is told of each binding that is made here; and by `on_unbound` of its end."""
        self.on_unbound: Callable[[Row], None] | None = None

    # -- exchanges ----------------------------------------------------------------------------------------------

    def exchange(self, name: str) -> Exchange:
        """The exchange of that name.

        Raises: NotFound.
        """
        exchange = self.exchanges.get(name)
        if exchange is None:
            raise not_found("exchange", name, self.vhost_name)
        return exchange

    def install(self, exchange: Exchange) -> None:
        """Take in an exchange that was made elsewhere: a predeclared one."""
        self.exchanges[exchange.name] = exchange
        self._on_installed(exchange)
        self._on_changed()

    def check_equivalent(self, exchange: Exchange, declaration: ExchangeDeclaration) -> None:
        """Refuse a redeclaration that means another exchange.

        Raises: PreconditionFailed.
        """
        where = describe("exchange", exchange.name, self.vhost_name)
        check_same_fields(
            where,
            ("type", declaration.type, exchange.type),
            ("durable", declaration.durable, exchange.durable),
            ("auto_delete", declaration.auto_delete, exchange.auto_delete),
            ("internal", declaration.internal, exchange.internal),
        )
        check_same_argument("alternate-exchange", exchange.arguments, declaration.arguments, where)

    def create(self, declaration: ExchangeDeclaration) -> Exchange:
        """Make an exchange that does not exist. Raises: PreconditionFailed for what its type cannot use."""
        key, row = self.row_of(declaration)
        exchange = self.restore(declaration)
        if exchange.durable:
            self._rows.put("exchange", key, row)
        return exchange

    def row_of(self, declaration: ExchangeDeclaration) -> tuple[str, Row]:
        """(key, row) of an exchange that is to be made. Raises: PreconditionFailed for what its type cannot use."""
        exchange_class(declaration.type).check_arguments(declaration.arguments)
        row: Row = {
            "vhost": self.vhost_name,
            "name": declaration.name,
            "type": declaration.type,
            "auto_delete": declaration.auto_delete,
            "internal": declaration.internal,
            "arguments": pack_arguments(declaration.arguments),
        }
        return row_key(self.vhost_name, declaration.name), row

    def restore(self, declaration: ExchangeDeclaration) -> Exchange:
        """Make an exchange without writing a row: it came from one, or is not durable."""
        assert declaration.name not in self.exchanges, "checked by the caller"
        exchange = exchange_class(declaration.type)(
            declaration.name,
            durable=declaration.durable,
            auto_delete=declaration.auto_delete,
            internal=declaration.internal,
            arguments=declaration.arguments,
        )
        self.install(exchange)
        return exchange

    def check_deletable(self, exchange: Exchange, *, if_unused: bool) -> None:
        """Raise PreconditionFailed when it is in use and must not be."""
        if if_unused and exchange.bindings:
            raise PreconditionFailed(
                f"{describe('exchange', exchange.name, self.vhost_name)} in use"
            )

    def delete(self, exchange: Exchange, *, if_unused: bool = False) -> None:
        """Delete an exchange with its bindings; auto-delete exchanges that lead to it may follow.

        Raises: PreconditionFailed when in use.
        """
        self.check_deletable(exchange, if_unused=if_unused)
        waiting = [exchange]
        while waiting:
            current = waiting.pop()
            if self.exchanges.get(current.name) is not current:
                continue
            del self.exchanges[current.name]
            if current.durable:
                self._rows.delete("exchange", row_key(self.vhost_name, current.name))
            for binding in list(current.bindings):
                self._remove_binding(current, binding)
            waiting.extend(self.remove_bindings_to("exchange", current.name))
        self._on_changed()

    # -- bindings -----------------------------------------------------------------------------------------------

    def bind(self, edge: Edge, destination: Destination) -> bool:
        """Add a binding, and its row if both ends are durable; False when it is there already.

        Raises: NotFound, PreconditionFailed.
        """
        source = self.exchange(edge.source)
        source.validate(edge.routing_key, edge.arguments)
        place = source.next_place if source.keeps_order else 0
        binding = Binding(source, destination, edge.kind, edge.routing_key, edge.arguments, place)
        if not self._add_binding(source, binding):
            return False
        if self._is_durable(source, binding):
            self._rows.put("binding", self._binding_key(binding), self.binding_row(source, binding))
        return True

    def binding_row(self, source: Exchange, binding: Binding) -> Row:
        """A binding by names and octets, as it is stored and as other front-ends are told of it."""
        row: Row = {
            "vhost": self.vhost_name,
            "source": source.name,
            "kind": binding.destination_kind,
            "destination": binding.destination.name,
            "routing_key": binding.routing_key.decode("utf-8", "surrogateescape"),
            "arguments": pack_arguments(binding.arguments),
        }
        if source.keeps_order:
            row["place"] = binding.place
        return row

    def rows_to(self, kind: DestinationKind, name: str) -> list[tuple[str, Row]]:
        """(key, row) of each durable binding that leads to a queue or exchange."""
        return [
            (self._binding_key(binding), self.binding_row(source, binding))
            for binding in self.bindings_to(kind, name)
            if self._is_durable(source := self.exchange(binding.source.name), binding)
        ]

    def own_rows_to(self, kind: DestinationKind, name: str) -> Iterator[Row]:
        """What is made here and leads to a queue or exchange, durable or not, as rows; not what goes meanwhile."""
        for binding in list(self.bindings_to(kind, name)):
            source = self.exchanges.get(binding.source.name)
            if source is None or source.find(binding.identity) is not binding:
                continue
            if binding.is_own:
                yield self.binding_row(source, binding)

    def forget(self, key: list[str]) -> None:
        """Remove the binding whose row has this key (without the vhost), if there is one."""
        source, kind, destination, routing_key, arguments = key
        known = self.exchanges.get(source)
        if known is None:
            return
        octets = routing_key.encode("utf-8", "surrogateescape")
        identity = (cast("DestinationKind", kind), destination, octets, bytes.fromhex(arguments))
        binding = known.find(identity)
        if binding is not None:
            self.unbind(binding)

    def restore_binding(self, edge: Edge, destination: Destination) -> bool:
        """Add a binding without writing a row; False when its source is missing."""
        source = self.exchanges.get(edge.source)
        return source is not None and self._add_binding(
            source,
            Binding(source, destination, edge.kind, edge.routing_key, edge.arguments, edge.place),
        )

    def adopt_binding(self, edge: Edge, destination: Destination) -> bool:
        """Add a binding that another front-end has made, in the place that it has there, and its row."""
        is_new = self.restore_binding(edge, destination)
        binding = self.find(edge)
        if is_new and binding is not None:
            source = self.exchanges[edge.source]
            self._rows.put("binding", self._binding_key(binding), self.binding_row(source, binding))
        return binding is not None

    def add_remote(self, edge: Edge, destination: Destination) -> None:
        """Lead to a queue at another front-end, as that has it; not where the source is missing or another thing."""
        source = self.exchanges.get(edge.source)
        if source is None:
            return
        try:
            source.validate(edge.routing_key, edge.arguments)
        except PreconditionFailed:
            return  # a transient exchange is each front-end's own, and may be of another type there
        parts = (edge.kind, edge.routing_key, edge.arguments, edge.place)
        self._add_binding(source, RemoteBinding(source, destination, *parts))

    def remove_remote(self, edge: Edge, *, is_gone: bool) -> None:
        """That is over; if it `is_gone` there, and not only unknown here, an auto-delete exchange may follow."""
        binding = self.find(edge)
        if binding is None or binding.is_own:
            return
        if is_gone:
            self.unbind(binding)
        else:
            self._detach(self.exchange(edge.source), binding)
            self._on_changed()

    def find(self, edge: Edge) -> Binding | None:
        """The binding described, if there is one."""
        source = self.exchanges.get(edge.source)
        if source is None:
            return None
        return source.find(
            binding_identity(edge.kind, edge.destination, edge.routing_key, edge.arguments)
        )

    def unbind(self, binding: Binding) -> None:
        """Remove a binding; its source follows if it is auto-delete and this was the last."""
        source = self.exchange(binding.source.name)
        self._remove_binding(source, binding)
        self._on_changed()
        if source.auto_delete and not source.bindings:
            self.delete(source)

    def bindings_to(self, kind: DestinationKind, name: str) -> Iterator[Binding]:
        """The bindings that lead to a queue or exchange."""
        return iter(self._incoming.get((kind, name), ()))

    def lead_elsewhere(self, destination: Destination, kind: DestinationKind) -> None:
        """What leads to another thing of that name leads to this one from now on; what is stored stays as it is."""
        for old in list(self.bindings_to(kind, destination.name)):
            source = self.exchange(old.source.name)
            self._detach(source, old)
            new = Binding(source, destination, kind, old.routing_key, old.arguments, old.place)
            self._add_binding(source, new)

    def _add_binding(self, source: Exchange, binding: Binding) -> bool:
        if not source.bind(binding):
            return False
        target = (binding.destination_kind, binding.destination.name)
        self._incoming.setdefault(target, {})[binding] = None
        self._on_changed()
        if self.on_bound is not None and binding.is_own:
            self.on_bound(self.binding_row(source, binding))
        return True

    def _remove_binding(self, source: Exchange, binding: Binding) -> None:
        self._detach(source, binding)
        if self._is_durable(source, binding):
            self._rows.delete("binding", self._binding_key(binding))

    def _detach(self, source: Exchange, binding: Binding) -> None:
        source.unbind(binding)
        target = (binding.destination_kind, binding.destination.name)
        incoming = self._incoming.get(target)
        if incoming is not None:
            incoming.pop(binding, None)
            if not incoming:
                del self._incoming[target]
        if self.on_unbound is not None and binding.is_own:
            self.on_unbound(self.binding_row(source, binding))

    def remove_bindings_to(self, kind: DestinationKind, name: str) -> list[Exchange]:
        """Remove what leads to a thing being deleted; returns auto-delete exchanges left without bindings."""
        unused: dict[Exchange, None] = {}
        for binding in list(self._incoming.get((kind, name), ())):
            source = self.exchanges.get(binding.source.name)
            if source is None:
                continue
            self._remove_binding(source, binding)
            if source.auto_delete and not source.bindings:
                unused[source] = None
        self._incoming.pop((kind, name), None)
        return list(unused)

    def _is_durable(self, source: Exchange, binding: Binding) -> bool:
        return source.durable and binding.destination.durable and binding.is_own

    def _binding_key(self, binding: Binding) -> str:
        kind, destination, routing_key, arguments = binding.identity
        return row_key(
            self.vhost_name,
            binding.source.name,
            kind,
            destination,
            routing_key.decode("utf-8", "surrogateescape"),
            arguments.hex(),
        )
