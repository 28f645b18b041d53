"""A binding: one edge from an exchange to a queue or to another exchange.

A binding is read-only once made. It is identified by source, destination (kind and name), routing key and
arguments, the arguments sorted by key and compared with their exact types; binding the same thing twice is a
no-op. Exchanges hold their bindings by `identity` (the source is implied there), and `broker.vhost.vhost` keeps the
index from a destination to the bindings that lead to it.

Source: behaviour of RabbitMQ's rabbit_binding; AMQP 0-9-1 queue.bind, exchange.bind.
"""

from __future__ import annotations

from typing import ClassVar, Literal, Protocol

from burrowmq.protocol import table
from burrowmq.protocol.table import FieldTable
from burrowmq.records import NamedTuple

DestinationKind = Literal["queue", "exchange"]
Identity = tuple[str, str, bytes, bytes]


class Destination(Protocol):
    """What messages may be routed to: a queue or an exchange, which bindings lead to, or a direct-reply consumer."""

    @property
    def name(self) -> str:
        """The name inside its vhost."""
        ...

    @property
    def durable(self) -> bool:
        """Whether it outlives a restart, and a binding to it may."""
        ...


def arguments_key(arguments: FieldTable) -> bytes:
    """The canonical bytes of binding arguments: equal exactly when keys, types and values are."""
    if not arguments:
        return b""
    return table.encode_table(dict(sorted(arguments.items())))


def binding_identity(
    kind: DestinationKind, destination: str, routing_key: bytes, arguments: FieldTable
) -> Identity:
    """What identifies a binding among those of its source exchange."""
    return (kind, destination, routing_key, arguments_key(arguments))


class Binding:
    """One edge of the exchange graph; hashed by identity of the object."""

    __slots__ = (
        "arguments",
        "destination",
        "destination_kind",
        "identity",
        "place",
        "routing_key",
        "source",
    )

    is_own: ClassVar[bool] = True
    """Whether it was made here, or is a row that all front-ends have."""

    def __init__(
        self,
        source: Destination,
        destination: Destination,
        destination_kind: DestinationKind,
        routing_key: bytes,
        arguments: FieldTable,
        place: int = 0,
    ) -> None:
        self.source = source
        self.destination = destination
        self.destination_kind: DestinationKind = destination_kind
        self.routing_key = routing_key
        self.arguments = arguments
        self.place = place  # among those of its source, where that keeps an order
        self.identity: Identity = binding_identity(
            destination_kind, destination.name, routing_key, arguments
        )

    def __repr__(self) -> str:
        return (
            f"Binding({self.source.name!r} -> {self.destination_kind} {self.destination.name!r},"
            f" {self.routing_key!r})"
        )


class RemoteBinding(Binding):
    """One that another front-end has, to a queue that lives there: messages take it, nobody here lists or stores it."""

    __slots__ = ()
    is_own = False


class Edge(NamedTuple):
    """A binding as asked for, by names."""

    source: str
    kind: DestinationKind
    destination: str
    routing_key: bytes
    arguments: FieldTable
    place: int = 0
