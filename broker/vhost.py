"""A virtual host: the names of exchanges and queues, the bindings between them, and the routes that follow.

Owns the exchanges, the queues, the index from a destination to the bindings leading to it, the policies and the
cache of routes. Everything that changes the topology goes through here: the channel's method handlers, deletion by
auto-delete, expiry or the end of a connection, policies, definitions import and the restoring of rows at start.
Errors are AmqpErrors with RabbitMQ's texts. Permissions are not checked here, with one exception of order: between a
caller's look at an existing queue and the making of a new one, so `declare_queue` comes in two halves.

A durable thing (and a binding between two of them) is one row of the definition store, staged in the epoch that is
being collected. `staged` counts rows staged and `durable_epoch` names the epoch of the last one: from them a handler
knows whether its reply has to wait for the disk.

Invariants: any change of topology or policy clears the route cache and raises `generation`, so a route remembered
elsewhere is good while `generation` stays the same; the cache holds at most ROUTE_CACHE_MAX routes and is cleared when
full. A queue or exchange that is in no dictionary has no binding either.

Sources: RabbitMQ's rabbit_exchange, rabbit_binding, rabbit_amqqueue, rabbit_vhost.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple, Protocol

from broker import router
from broker.binding import Binding, DestinationKind, binding_identity
from broker.exchange import TYPES
from broker.exchange.direct import DefaultExchange
from broker.policy import EffectivePolicy, PolicySet
from broker.queue import settings as queue_settings
from broker.resource import describe, not_found, pack_arguments, row_key
from broker.router import Route
from protocol import table
from protocol.codec import split_exrk
from protocol.errors import AccessRefused, PreconditionFailed, ResourceLocked

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from broker.binding import Destination
    from broker.clock import Entropy
    from broker.exchange.base import Exchange
    from broker.queue.queue import Queue
    from broker.queue.settings import QueueDeclaration, Settings
    from broker.resource import DefinitionLog
    from protocol.table import FieldTable

ROUTE_CACHE_MAX = 4096
REPLY_PREFIX = b"amq.rabbitmq.reply-to."

# name, type, internal; all durable, none auto-delete.
PREDECLARED = (
    ("amq.direct", "direct", False),
    ("amq.fanout", "fanout", False),
    ("amq.topic", "topic", False),
    ("amq.headers", "headers", False),
    ("amq.match", "headers", False),
    ("amq.rabbitmq.trace", "topic", True),
)


class StagingEngine(Protocol):
    """The part of the storage engine that a vhost uses."""

    @property
    def epoch(self) -> int:
        """The batch being collected."""
        ...

    @property
    def definitions(self) -> DefinitionLog:
        """Where durable definitions are staged."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ExchangeDeclaration:
    """An exchange as asked for."""

    name: str
    type: str = "direct"
    durable: bool = False
    auto_delete: bool = False
    internal: bool = False
    arguments: FieldTable = field(default_factory=dict)


class Edge(NamedTuple):
    """A binding as asked for, by names."""

    source: str
    kind: DestinationKind
    destination: str
    routing_key: bytes
    arguments: FieldTable


@dataclass(frozen=True, slots=True, kw_only=True)
class VhostOptions:
    """What the node decides for a vhost; a limit of None is none."""

    default_queue_version: int = 2
    queue_limit: int | None = None


class Vhost:
    """One virtual host."""

    def __init__(
        self,
        name: str,
        engine: StagingEngine,
        queue_factory: Callable[[Vhost, QueueDeclaration, Settings], Queue],
        entropy: Entropy,
        options: VhostOptions | None = None,
    ) -> None:
        self.name = name
        self.engine = engine
        self.entropy = entropy
        self.options = options or VhostOptions()
        self.description = ""
        self.tags: list[str] = []
        self.exchanges: dict[str, Exchange] = {}
        self.queues: dict[str, Queue] = {}
        self.policies = PolicySet()
        self.route_cache: dict[bytes, Route] = {}
        self.generation = 0
        self.staged = 0
        self.durable_epoch = -1
        # Given by whoever keeps the reply consumers: the target that such a key names, or None.
        self.direct_reply: Callable[[bytes], Destination | None] | None = None
        self._queue_factory = queue_factory
        self._incoming: dict[tuple[DestinationKind, str], dict[Binding, None]] = {}
        self._owned: dict[object, dict[Queue, None]] = {}
        self._install_exchange(DefaultExchange(self._lookup))
        for exchange_name, kind, internal in PREDECLARED:
            self._install_exchange(TYPES[kind](exchange_name, durable=True, internal=internal))

    def __repr__(self) -> str:
        return f"Vhost({self.name!r})"

    # -- routes -------------------------------------------------------------------------------------------------

    def resolve(self, exrk: bytes) -> Route:
        """Where a client's publish with this exchange and routing key (as on the wire) goes.

        Raises: NotFound, AccessRefused (internal exchange).
        """
        found = self.route_cache.get(exrk)
        if found is not None:
            return found
        exchange_name, routing_key = split_exrk(exrk)
        exchange = self.exchange(exchange_name.decode("utf-8", "surrogateescape"))
        if exchange.internal:
            raise AccessRefused(
                f"cannot publish to internal {describe('exchange', exchange.name, self.name)}"
            )
        if not router.cacheable(self, exchange):
            return self._remember(exrk, Route(exchange, None))
        found = Route(exchange, router.route(self, exchange, (routing_key,), None))
        if not exchange_name and routing_key.startswith(REPLY_PREFIX):
            return found
        return self._remember(exrk, found)

    def route(
        self,
        exchange: Exchange,
        routing_keys: tuple[bytes, ...],
        headers: Callable[[], FieldTable] | None,
    ) -> tuple[Queue, ...]:
        """Route one message by itself: several keys (CC, BCC), a headers exchange, or a dead letter."""
        return router.route(self, exchange, routing_keys, headers)

    def _remember(self, exrk: bytes, found: Route) -> Route:
        if len(self.route_cache) >= ROUTE_CACHE_MAX:
            self.route_cache.clear()
        self.route_cache[exrk] = found
        return found

    def _lookup(self, routing_key: bytes) -> Destination | None:
        """The default exchange's view: a queue by name, or a direct-reply target."""
        if routing_key.startswith(REPLY_PREFIX):
            return None if self.direct_reply is None else self.direct_reply(routing_key)
        return self.queues.get(routing_key.decode("utf-8", "surrogateescape"))

    def _changed(self) -> None:
        self.route_cache.clear()
        self.generation += 1

    # -- exchanges ----------------------------------------------------------------------------------------------

    def exchange(self, name: str) -> Exchange:
        """The exchange of that name.

        Raises: NotFound.
        """
        exchange = self.exchanges.get(name)
        if exchange is None:
            raise not_found("exchange", name, self.name)
        return exchange

    def check_equivalent_exchange(
        self, exchange: Exchange, declaration: ExchangeDeclaration
    ) -> None:
        """Refuse a redeclaration that means another exchange.

        Raises: PreconditionFailed.
        """
        where = describe("exchange", exchange.name, self.name)
        for key, received, current in (
            ("type", declaration.type, exchange.type),
            ("durable", declaration.durable, exchange.durable),
            ("auto_delete", declaration.auto_delete, exchange.auto_delete),
            ("internal", declaration.internal, exchange.internal),
        ):
            if received != current:
                raise PreconditionFailed(
                    f"inequivalent arg '{key}' for {where}:"
                    f" received '{table.value_text(received)}'"
                    f" but current is '{table.value_text(current)}'"
                )
        key = "alternate-exchange"
        mine, theirs = exchange.arguments.get(key), declaration.arguments.get(key)
        if not table.equivalent(mine, theirs):
            raise PreconditionFailed(
                f"inequivalent arg '{key}' for {where}: {table.inequivalent_text(mine, theirs)}"
            )

    def create_exchange(self, declaration: ExchangeDeclaration) -> Exchange:
        """Make an exchange that does not exist; its arguments were checked by the caller."""
        exchange = self.restore_exchange(declaration)
        if exchange.durable:
            self._put(
                "exchange",
                row_key(self.name, exchange.name),
                {
                    "vhost": self.name,
                    "name": exchange.name,
                    "type": exchange.type,
                    "auto_delete": exchange.auto_delete,
                    "internal": exchange.internal,
                    "arguments": pack_arguments(exchange.arguments),
                },
            )
        return exchange

    def restore_exchange(self, declaration: ExchangeDeclaration) -> Exchange:
        """Make an exchange without writing a row: it came from one, or is not durable."""
        assert declaration.name not in self.exchanges, "checked by the caller"
        exchange = TYPES[declaration.type](
            declaration.name,
            durable=declaration.durable,
            auto_delete=declaration.auto_delete,
            internal=declaration.internal,
            arguments=declaration.arguments,
        )
        self._install_exchange(exchange)
        return exchange

    def declare_exchange(self, declaration: ExchangeDeclaration) -> Exchange:
        """Make an exchange or check that the existing one is the same; for callers without permission checks.

        Raises: PreconditionFailed.
        """
        exchange = self.exchanges.get(declaration.name)
        if exchange is None:
            return self.create_exchange(declaration)
        self.check_equivalent_exchange(exchange, declaration)
        return exchange

    def delete_exchange(self, exchange: Exchange, *, if_unused: bool = False) -> None:
        """Delete an exchange with its bindings; auto-delete exchanges that lead to it may follow.

        Raises: PreconditionFailed when in use.
        """
        if if_unused and exchange.bindings:
            raise PreconditionFailed(f"{describe('exchange', exchange.name, self.name)} in use")
        waiting = [exchange]
        while waiting:
            current = waiting.pop()
            if self.exchanges.get(current.name) is not current:
                continue
            del self.exchanges[current.name]
            if current.durable:
                self._delete("exchange", row_key(self.name, current.name))
            for binding in list(current.bindings):
                self._remove_binding(current, binding)
            waiting.extend(self._remove_bindings_to("exchange", current.name))
        self._changed()

    def _install_exchange(self, exchange: Exchange) -> None:
        self.exchanges[exchange.name] = exchange
        self._apply_exchange_policy(exchange)
        self._changed()

    def _apply_exchange_policy(self, exchange: Exchange) -> None:
        effective = self.policies.effective("exchange", exchange.name)
        exchange.policy_name = effective.policy
        alternate = exchange.arguments.get(
            "alternate-exchange", effective.definition.get("alternate-exchange")
        )
        exchange.alternate = alternate if isinstance(alternate, str) else None

    # -- queues -------------------------------------------------------------------------------------------------

    def queue(self, name: str) -> Queue:
        """The queue of that name.

        Raises: NotFound.
        """
        queue = self.queues.get(name)
        if queue is None:
            raise not_found("queue", name, self.name)
        return queue

    def check_access(self, queue: Queue, session: object) -> None:
        """Refuse a queue that is exclusive to another connection.

        Raises: ResourceLocked.
        """
        if queue.exclusive_owner is not None and queue.exclusive_owner is not session:
            raise self._locked(queue.name)

    def check_equivalent_queue(
        self, queue: Queue, declaration: QueueDeclaration, session: object
    ) -> None:
        """Refuse a redeclaration that means another queue; `session` asks.

        Raises: ResourceLocked, PreconditionFailed.
        """
        self.check_access(queue, session)
        if (queue.exclusive_owner is None) != (declaration.owner is None):
            raise self._locked(queue.name)
        where = describe("queue", queue.name, self.name)
        for key, received, current in (
            ("durable", declaration.durable and declaration.owner is None, queue.durable),
            ("auto_delete", declaration.auto_delete, queue.auto_delete),
        ):
            if received != current:
                raise PreconditionFailed(
                    f"inequivalent arg '{key}' for {where}:"
                    f" received '{table.value_text(received)}'"
                    f" but current is '{table.value_text(current)}'"
                )
        queue_settings.check_equivalent(
            queue.arguments, declaration.arguments, queue.name, self.name
        )

    def create_queue(self, declaration: QueueDeclaration) -> Queue:
        """Make a queue that does not exist.

        Raises: PreconditionFailed for bad arguments, or when the vhost has its fill.
        """
        name = declaration.name
        queue_settings.validate(declaration.arguments, name, self.name)
        limit = self.options.queue_limit
        if limit is not None and len(self.queues) >= limit:
            raise PreconditionFailed(
                f"cannot declare queue '{name}':"
                f" queue limit in vhost '{self.name}' ({limit}) is reached"
            )
        queue = self.restore_queue(declaration)
        if queue.durable:
            self._put(
                "queue",
                row_key(self.name, name),
                {
                    "vhost": self.name,
                    "name": name,
                    "auto_delete": queue.auto_delete,
                    "arguments": pack_arguments(declaration.arguments),
                },
            )
        return queue

    def restore_queue(self, declaration: QueueDeclaration) -> Queue:
        """Make a queue without writing a row: it came from one, or is not durable."""
        assert declaration.name not in self.queues, "checked by the caller"
        settings = self.effective_settings(declaration.name, declaration.arguments)
        queue = self._queue_factory(self, declaration, settings)
        self.queues[declaration.name] = queue
        if declaration.owner is not None:
            self._owned.setdefault(declaration.owner, {})[queue] = None
        self._changed()
        return queue

    def declare_queue(self, declaration: QueueDeclaration, session: object = None) -> Queue:
        """Make a queue or check that the existing one is the same; for callers without permission checks.

        Raises: ResourceLocked, PreconditionFailed.
        """
        queue = self.queues.get(declaration.name)
        if queue is None:
            return self.create_queue(declaration)
        self.check_equivalent_queue(queue, declaration, session)
        return queue

    def delete_queue(self, queue: Queue) -> int:
        """Delete a queue and its bindings, then end it; returns how many ready messages went with it.

        Harmless for a queue that is gone already: expiry, auto-delete and the client may all ask.
        """
        if self.queues.get(queue.name) is not queue:
            return 0
        ready_count = queue.ready_count
        del self.queues[queue.name]
        self._disown(queue)
        if queue.durable:
            self._delete("queue", row_key(self.name, queue.name))
        unused = self._remove_bindings_to("queue", queue.name)
        self._changed()
        for exchange in unused:
            self.delete_exchange(exchange)
        queue.delete()
        return ready_count

    def exclusive_queues(self, session: object) -> list[Queue]:
        """The queues that belong to a connection: to be deleted when it ends."""
        return list(self._owned.get(session, ()))

    def delete_exclusive(self, session: object) -> None:
        """Delete the queues of a connection that ends."""
        for queue in self.exclusive_queues(session):
            self.delete_queue(queue)

    def _disown(self, queue: Queue) -> None:
        owned = self._owned.get(queue.exclusive_owner)
        if owned is not None:
            owned.pop(queue, None)
            if not owned:
                del self._owned[queue.exclusive_owner]

    def effective_policy(self, queue_name: str) -> EffectivePolicy:
        """The policy in force for a queue."""
        return self.policies.effective("queue", queue_name)

    def effective_settings(self, queue_name: str, arguments: FieldTable) -> Settings:
        """What is in force for a queue: its arguments met with its policy."""
        return queue_settings.compute(
            arguments,
            self.effective_policy(queue_name).definition,
            self.options.default_queue_version,
        )

    def policies_changed(self) -> None:
        """Put changed policies in force, on those entities for which something changed."""
        for exchange in self.exchanges.values():
            if exchange.name:
                self._apply_exchange_policy(exchange)
        for queue in list(self.queues.values()):
            settings = self.effective_settings(queue.name, queue.arguments)
            if settings != queue.settings:
                queue.apply_settings(settings)
        self._changed()

    def _locked(self, queue_name: str) -> ResourceLocked:
        return ResourceLocked(
            f"cannot obtain exclusive access to locked {describe('queue', queue_name, self.name)}."
            " It could be originally declared on another connection or the exclusive property"
            " value does not match that of the original declaration."
        )

    # -- bindings -----------------------------------------------------------------------------------------------

    def bind(self, edge: Edge, session: object = None) -> None:
        """Add a binding; the same one again is a no-op.

        Raises: NotFound (source before destination), PreconditionFailed, ResourceLocked.
        """
        source = self.exchange(edge.source)
        destination = self._destination(edge)
        if destination is None:
            raise not_found(edge.kind, edge.destination, self.name)
        source.validate(edge.arguments)
        if edge.kind == "queue":
            self.check_access(self.queues[edge.destination], session)
        binding = Binding(source, destination, edge.kind, edge.routing_key, edge.arguments)
        if self._add_binding(source, binding) and self._is_durable(source, binding):
            self._put(
                "binding",
                self._binding_key(binding),
                {
                    "vhost": self.name,
                    "source": edge.source,
                    "kind": edge.kind,
                    "destination": edge.destination,
                    "routing_key": edge.routing_key.decode("utf-8", "surrogateescape"),
                    "arguments": pack_arguments(edge.arguments),
                },
            )

    def restore_binding(self, edge: Edge) -> bool:
        """Add a binding without writing a row; False when an end of it is missing."""
        source = self.exchanges.get(edge.source)
        destination = self._destination(edge)
        if source is None or destination is None:
            return False
        return self._add_binding(
            source, Binding(source, destination, edge.kind, edge.routing_key, edge.arguments)
        )

    def unbind(self, edge: Edge, session: object = None) -> None:
        """Remove a binding; harmless when there is none like it.

        Raises: ResourceLocked.
        """
        source = self.exchanges.get(edge.source)
        if source is None:
            return
        binding = source.find(
            binding_identity(edge.kind, edge.destination, edge.routing_key, edge.arguments)
        )
        if binding is None:
            return
        if edge.kind == "queue":
            self.check_access(self.queues[edge.destination], session)
        self._remove_binding(source, binding)
        self._changed()
        if source.auto_delete and not source.bindings:
            self.delete_exchange(source)

    def bindings_to(self, kind: DestinationKind, name: str) -> Iterator[Binding]:
        """The bindings that lead to a queue or exchange."""
        return iter(self._incoming.get((kind, name), ()))

    def _destination(self, edge: Edge) -> Destination | None:
        if edge.kind == "queue":
            return self.queues.get(edge.destination)
        return self.exchanges.get(edge.destination)

    def _add_binding(self, source: Exchange, binding: Binding) -> bool:
        if not source.bind(binding):
            return False
        target = (binding.destination_kind, binding.destination.name)
        self._incoming.setdefault(target, {})[binding] = None
        self._changed()
        return True

    def _remove_binding(self, source: Exchange, binding: Binding) -> None:
        source.unbind(binding)
        target = (binding.destination_kind, binding.destination.name)
        incoming = self._incoming.get(target)
        if incoming is not None:
            incoming.pop(binding, None)
            if not incoming:
                del self._incoming[target]
        if self._is_durable(source, binding):
            self._delete("binding", self._binding_key(binding))

    def _remove_bindings_to(self, kind: DestinationKind, name: str) -> list[Exchange]:
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
        destination = binding.destination
        return source.durable and bool(getattr(destination, "durable", False))

    def _binding_key(self, binding: Binding) -> str:
        kind, destination, routing_key, arguments = binding.identity
        return row_key(
            self.name,
            binding.source.name,
            kind,
            destination,
            routing_key.decode("utf-8", "surrogateescape"),
            arguments.hex(),
        )

    # -- rows ---------------------------------------------------------------------------------------------------

    def is_unsynced(self) -> bool:
        """Whether some row may not be on disk yet: it is in the batch being collected or the one in flight."""
        return self.durable_epoch >= self.engine.epoch - 1

    def _put(self, kind: str, key: str, value: dict[str, object]) -> None:
        self.engine.definitions.put(kind, key, value)
        self.staged += 1
        self.durable_epoch = self.engine.epoch

    def _delete(self, kind: str, key: str) -> None:
        self.engine.definitions.delete(kind, key)
        self.staged += 1
        self.durable_epoch = self.engine.epoch
