"""What every exchange type has in common: its properties, its bindings, its counters.

An exchange owns the bindings of which it is the source, in the order they were made. Subclasses keep whatever index
makes `match` fast; `_index` and `_unindex` are called exactly once per binding to keep it up to date. `match` gives
the destinations of the exchange's own bindings for one routing key (`look` decodes the message's properties):
possibly with repeats, never following another exchange (that is `broker.vhost.router`'s walk). `hops` holds the
bindings that lead to exchanges, so that a walk over the graph never has to look at a hundred thousand queue bindings.
Called by `broker.vhost.router` and `broker.vhost.vhost` only.

Never here: permissions, persistence, auto-delete (`broker.vhost.vhost`). Source: AMQP 0-9-1 exchange class;
RabbitMQ's rabbit_exchange_type_* modules.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Protocol, TypedDict, TypeVar, Unpack

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable

    from burrowmq.broker.exchange.binding import Binding, Destination, Identity
    from burrowmq.protocol import properties
    from burrowmq.protocol.codec import Message, Ring
    from burrowmq.protocol.table import FieldTable

    Look = Callable[[], properties.Properties]

T = TypeVar("T")


class Properties(TypedDict, total=False):
    """What a declaration says beside name and type; durable unless it says otherwise."""

    durable: bool
    auto_delete: bool
    internal: bool
    arguments: FieldTable | None


class Keeps(Protocol):
    """What an exchange keeps of its messages; routes take it for a queue."""

    @property
    def name(self) -> str:
        """None of a queue's."""
        ...

    @property
    def durable(self) -> bool:
        """Whether it outlives a restart."""
        ...

    def messages(self) -> list[Message]:
        """What is kept, oldest first, as messages that no queue has seen."""
        ...


class Exchange:
    """The common part; one subclass per type."""

    type: ClassVar[str] = ""
    # True when each message goes to one of the destinations.
    picks_one: ClassVar[bool] = False
    # True when it matters in which order bindings were made, also after a restart (`Binding.place`).
    keeps_order: ClassVar[bool] = False
    # True when `match` looks at headers: routes through such an exchange cannot be remembered by routing key.
    needs_headers = False
    # True when chance or a property decides: routes through such an exchange cannot be remembered at all.
    is_each = False
    # True when the routing key makes no difference: one match is then enough for all keys of a message.
    ignores_keys = False
    # What keeps messages for later bindings; it stands in routes behind the queues.
    history: Keeps | None = None

    def __init__(self, name: str, **properties: Unpack[Properties]) -> None:
        self.name = name
        self.durable = properties.get("durable", True)
        self.auto_delete = properties.get("auto_delete", False)
        self.internal = properties.get("internal", False)
        self.arguments: FieldTable = properties.get("arguments") or {}
        self.alternate: str | None = None  # in force: argument, else policy
        self.policy_name: str | None = None
        self._bindings: dict[Identity, Binding] = {}
        self.hops: dict[Identity, Binding] = {}
        self.next_place = 0  # of a binding
        self.publish_in = 0
        self.publish_out = 0

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.name!r})"

    @property
    def bindings(self) -> Collection[Binding]:
        """The bindings of which this exchange is the source, in the order they were made."""
        return self._bindings.values()

    def find(self, identity: Identity) -> Binding | None:
        """The binding of that identity."""
        return self._bindings.get(identity)

    @classmethod
    def check_arguments(cls, arguments: FieldTable) -> None:
        """Refuse arguments of a declaration that this type cannot use.

        Raises: PreconditionFailed.
        """

    def validate(self, routing_key: bytes, arguments: FieldTable) -> None:
        """Refuse a binding that this type cannot use.

        Raises: PreconditionFailed.
        """

    def bind(self, binding: Binding) -> bool:
        """Add a binding; False when the same one exists already."""
        if binding.identity in self._bindings:
            return False
        self._bindings[binding.identity] = binding
        self.next_place = max(self.next_place, binding.place + 1)
        if binding.destination_kind == "exchange":
            self.hops[binding.identity] = binding
        self._index(binding)
        return True

    def unbind(self, binding: Binding) -> bool:
        """Remove a binding; False when there is none like it."""
        found = self._bindings.pop(binding.identity, None)
        if found is None:
            return False
        self.hops.pop(binding.identity, None)
        self._unindex(found)
        return True

    def match(self, routing_key: bytes, look: Look | None) -> Iterable[Destination]:
        """The destinations of this exchange's own bindings for one message; may repeat, but for those of a tuple."""
        raise NotImplementedError

    def match_all(
        self, routing_keys: tuple[bytes, ...], look: Look | None
    ) -> Iterable[Destination]:
        """The same for a message with several keys (CC, BCC)."""
        if self.ignores_keys:
            return self.match(routing_keys[0], look)
        return [found for key in routing_keys for found in self.match(key, look)]

    def ring(self, route_to: Callable[[Destination], T]) -> Ring[T] | None:
        """What finds the targets of whole runs when their hash alone says them, made of `route_to` each destination.

        None when it does not, or nothing is bound.
        """
        return None

    @property
    def header_names(self) -> Collection[str]:
        """Names of the headers that `match` looks at."""
        return ()

    def _index(self, binding: Binding) -> None:
        raise NotImplementedError

    def _unindex(self, binding: Binding) -> None:
        raise NotImplementedError
