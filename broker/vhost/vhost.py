"""A virtual host: the names of exchanges and queues, the bindings between them, and the routes that follow.

Owns the queues, the policies, the cache of routes, and the graph of exchanges and bindings. Everything that changes
the topology goes through here: the channel's method handlers, deletion by auto-delete, expiry or the end of a
connection, policies, definitions import and the restoring of rows at start.
Errors are AmqpErrors with RabbitMQ's texts. Permissions are the caller's to check. RabbitMQ checks some of them between
looking for an existing queue and making a new one: for callers who do that, `check_equivalent_queue` and `create_queue`
stand beside `declare_queue`.

A durable thing (and a binding between two of them) is one row of the definition store, staged in the epoch that is
being collected; `rows` tells a handler whether its reply has to wait for the disk.

Invariants: any change of topology or policy empties `route_tables`. A queue or exchange that is in no dictionary has no
binding either.

Longer than most modules because names, bindings and what is remembered change together: routes are `router`'s, the
graph is `broker.exchange.graph`'s, what is in force for a queue is `queue_settings`'.

Sources: RabbitMQ's rabbit_exchange, rabbit_binding, rabbit_amqqueue, rabbit_vhost.
"""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from burrowmq.broker.exchange import exchange_class
from burrowmq.broker.exchange.base import Exchange
from burrowmq.broker.exchange.binding import Edge
from burrowmq.broker.exchange.direct import DefaultExchange
from burrowmq.broker.exchange.graph import PREDECLARED, ExchangeDeclaration, ExchangeGraph
from burrowmq.broker.queue.dormant import let_go
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.report.metrics import VhostMetrics
from burrowmq.broker.rules.policy import EffectivePolicy, Policy, PolicySet
from burrowmq.broker.vhost import queue_checks, router
from burrowmq.broker.vhost.policy_pass import QUEUES_PER_TURN, PolicyPass
from burrowmq.broker.vhost.queue_settings import QueueSettings, queue_row
from burrowmq.broker.vhost.route_tables import RouteTables, Source
from burrowmq.broker.vhost.router import Route
from burrowmq.broker.vhost.trace import Tracer
from burrowmq.broker.words.resource import (
    Rows,
    StagingEngine,
    describe,
    locked,
    not_found,
    row_key,
)
from burrowmq.broker.words.sorted_names import SortedNames
from burrowmq.protocol.codec import look_up_by_headers, look_up_by_ring, split_address
from burrowmq.protocol.errors import (
    AccessRefused,
    NotFound,
)
from burrowmq.protocol.properties import decode
from burrowmq.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from burrowmq.broker.exchange.base import Look
    from burrowmq.broker.exchange.binding import Binding, Destination, DestinationKind
    from burrowmq.broker.queue.port import QueuePort
    from burrowmq.broker.queue.rules.settings import QueueDeclaration, Settings
    from burrowmq.broker.report.observer import Observer
    from burrowmq.broker.rules.parameter_rules import Component
    from burrowmq.broker.vhost.policy_pass import Later
    from burrowmq.broker.vhost.route_tables import RouteTable
    from burrowmq.broker.vhost.share import Homes, Share
    from burrowmq.protocol.codec import Message
    from burrowmq.protocol.table import FieldTable

# Callers import these names from here, so that they need not know in which module each is defined.
__all__ = ["Edge", "ExchangeDeclaration", "StagingEngine", "Vhost", "VhostOptions"]

REPLY_PREFIX = b"amq.rabbitmq.reply-to."


@dataclass(frozen=True, slots=True, kw_only=True)
class VhostOptions:
    """What the node decides for a vhost."""

    default_queue_version: int = 2
    default_queue_type: str = ""
    has_cluster: bool = False
    """Whether there may be quorum queues and streams."""
    is_mirrored_quorum: bool = False
    """Whether new queues that policies would mirror are quorum queues."""


class Vhost:
    """One virtual host."""

    def __init__(
        self,
        name: str,
        engine: StagingEngine,
        make_queue: Callable[[QueueDeclaration, Settings], QueuePort],
        direct_reply: Callable[[bytes], Destination | None],
        options: VhostOptions,
        later: Later,
    ) -> None:
        self.name = name
        self.engine = engine
        self.options = options
        self.description = ""
        self.tags: list[str] = []
        self.default_queue_type = self.options.default_queue_type  # "" when nobody has said
        self.is_protected = False  # from being deleted
        self.queues: dict[str, QueuePort] = {}
        self.queue_names = SortedNames()
        self._in_order: list[QueuePort] | None = None
        self.past = VhostMetrics()  # of channels and connections that are gone
        self.policies = PolicySet()
        self.former_arguments: dict[str, FieldTable] = {}
        """By queue: those of the queue whose place it has taken, or that it was asked for with."""
        self.settings = QueueSettings(
            self.policies, options.default_queue_version, self.former_arguments
        )
        self.limits: dict[str, int] = {}  # what operators set: max-connections, max-queues
        self.observer: Observer | None = None
        """Who is told of what operators should know."""
        self.components: Mapping[str, Component] = {}
        """Parts of the node that are configured by parameters."""
        self.component_values: dict[str, dict[str, object]] = {}  # by component and name
        self.route_tables = RouteTables()
        self.rows = Rows(engine)
        self.share: Share | None = None  # with other front-ends, where a cluster is
        self.homes: Homes | None = None  # of classic queues, there
        self.graph = ExchangeGraph(name, self.rows, self._installed, self._changed)
        self.exchanges = self.graph.exchanges
        self.direct_reply = direct_reply  # the reply consumer that such a key names, or None
        self.tracer: Tracer | None = None  # the firehose, when an operator has turned it on
        self.policy_pass = PolicyPass(self._apply_policies, later, self._under_policies)
        self._later = later
        self._deleted: list[QueuePort] = []  # whose parts are to be freed
        self._make_queue = make_queue
        self._owned: dict[object, dict[QueuePort, None]] = {}
        self._remains: dict[QueuePort, Queue] = {}
        """By queue: the one whose place it has taken, while that has something left."""
        self.graph.install(DefaultExchange(self._lookup))
        for exchange_name, kind, internal in PREDECLARED:
            self.graph.install(exchange_class(kind)(exchange_name, durable=True, internal=internal))

    def __repr__(self) -> str:
        return f"Vhost({self.name!r})"

    def component(self, name: str) -> dict[str, object]:
        """The parameters of a component here, by name."""
        return self.component_values.setdefault(name, {})

    # -- routes -------------------------------------------------------------------------------------------------

    def resolve(self, source: Source, address: bytes, table: RouteTable) -> Route:
        """Where a client's publish with this exchange and routing key (as on the wire) goes.

        The user's table has it from now on, unless it may be another the next time.
        """
        exchange = source.exchange
        queues = None
        if source.is_by_key:
            queues = router.route(self, exchange, (address[address[0] + 2 :],), None)
            if not exchange.name and address.startswith(REPLY_PREFIX, 2):
                return Route(exchange, queues)
        found = self.route_tables.shared(exchange, queues)
        self.route_tables.remember(table, address, found)
        return found

    def source(self, name: str, *, is_limited: bool = False) -> Source:
        """The exchange of that name, to publish to.

        Raises: NotFound, AccessRefused (internal exchange).
        """
        exchange = self.exchange(name)
        if exchange.internal:
            raise AccessRefused(
                f"cannot publish to internal {describe('exchange', exchange.name, self.name)}"
            )
        is_by_key = self.route_tables.reach(self, exchange).is_by_key
        ring = self.route_tables.ring(exchange) if is_by_key else None
        return Source(exchange, is_by_key, is_limited and exchange.type == "topic", ring)

    def resolve_by_headers(self, exchange: Exchange, messages: list[Message]) -> list[Route]:
        """Where publishes go whose headers count; one is decoded only if the like of it was not met."""
        ring = self.route_tables.ring(exchange)
        if ring is None:
            return self._resolve_by_headers(exchange, messages)
        return look_up_by_ring(
            messages, ring, lambda message: self._resolve_by_headers(exchange, [message])[0]
        )

    def _resolve_by_headers(self, exchange: Exchange, messages: list[Message]) -> list[Route]:
        """The same of an exchange without a ring, or of what its ring cannot say."""
        tables = self.route_tables
        asked = tables.reach(self, exchange)
        if asked.is_each:
            return [self._resolve_each(exchange, message) for message in messages]
        assert asked.header_names is not None, "else their keys alone say it"

        def resolve(octets: bytes, message: Message) -> Route:
            routing_key = split_address(message.address)[1]
            queues = router.route(self, exchange, (routing_key,), lambda: decode(message.raw))
            found = tables.shared(exchange, queues)
            tables.remember_headers(known, octets, found)
            return found

        known = tables.by_headers(exchange)
        return look_up_by_headers(messages, asked.header_names, asked.has_keys, known, resolve)

    def _resolve_each(self, exchange: Exchange, message: Message) -> Route:
        """Where a message goes of which only chance or its properties can say it."""
        routing_key = split_address(message.address)[1]
        queues = router.route(self, exchange, (routing_key,), lambda: decode(message.raw))
        return self.route_tables.shared(exchange, queues)

    def routes_by_key(self, exchange: Exchange) -> bool:
        """Whether nothing but its keys decides where a message published to `exchange` goes."""
        return self.route_tables.reach(self, exchange).is_by_key

    def route(
        self,
        exchange: Exchange,
        routing_keys: tuple[bytes, ...],
        look: Look | None,
    ) -> tuple[QueuePort, ...]:
        """Route one message by itself: several keys (CC, BCC), a headers exchange, or a dead letter."""
        return router.route(self, exchange, routing_keys, look)

    def _lookup(self, routing_key: bytes) -> Destination | None:
        """The default exchange's view: a queue by name, or a direct-reply target."""
        found = self.here(name := routing_key.decode("utf-8", "surrogateescape"))
        return found or (self.homes.find(self.name, name) if self.homes is not None else None)

    def here(self, name: str) -> Destination | None:
        """A queue, or who waits for direct replies, of this node."""
        found = self.queues.get(name)  # none has a reply consumer's name
        return found or self.direct_reply(name.encode("utf-8", "surrogateescape"))

    def _changed(self) -> None:
        self.route_tables.clear()

    # -- exchanges ----------------------------------------------------------------------------------------------

    def exchange(self, name: str) -> Exchange:
        """The exchange of that name.

        Raises: NotFound.
        """
        return self.graph.exchange(name)

    def check_equivalent_exchange(
        self, exchange: Exchange, declaration: ExchangeDeclaration
    ) -> None:
        """Refuse a redeclaration that means another exchange.

        Raises: PreconditionFailed.
        """
        self.graph.check_equivalent(exchange, declaration)

    def create_exchange(self, declaration: ExchangeDeclaration) -> Exchange:
        """Make an exchange that does not exist. Raises: PreconditionFailed for what its type cannot use."""
        return self.graph.create(declaration)

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
        self.graph.delete(exchange, if_unused=if_unused)

    def _installed(self, exchange: Exchange) -> None:
        self._apply_exchange_policy(exchange)
        if self.homes is not None:
            self.homes.lead_from(self, exchange.name)

    def _apply_exchange_policy(self, exchange: Exchange) -> None:
        effective = self.policies.effective("exchange", exchange.name)
        exchange.policy_name = effective.policy
        alternate = exchange.arguments.get(
            "alternate-exchange", effective.definition.get("alternate-exchange")
        )
        # The default exchange leads nowhere as an alternate: no binding is made there.
        exchange.alternate = alternate if isinstance(alternate, str) and alternate else None

    # -- queues -------------------------------------------------------------------------------------------------

    def queue(self, name: str) -> QueuePort:
        """The queue of that name.

        Raises: NotFound.
        """
        queue = self.queues.get(name)
        if queue is None:
            error = None if self.homes is None else self.homes.refusal(self.name, name)
            raise error or not_found("queue", name, self.name)
        return queue

    def queues_in_order(self) -> list[QueuePort]:
        """All queues by name, as they are now; not to be changed."""
        if self._in_order is None:
            self._in_order = [self.queues[name] for name in self.queue_names.listed()]
        return self._in_order

    def classic_queues(self) -> Iterator[Queue]:
        """Those with levels, a store and a memory of their own, in no order; not to be changed meanwhile."""
        return (queue for queue in self.queues.values() if isinstance(queue, Queue))

    def check_access(self, queue: QueuePort, session: object) -> None:
        """Refuse a queue that is exclusive to another connection.

        Raises: ResourceLocked.
        """
        if queue.exclusive_owner is not None and queue.exclusive_owner is not session:
            raise locked(queue.name, self.name)

    def check_equivalent_queue(
        self, queue: QueuePort, declaration: QueueDeclaration, session: object
    ) -> None:
        """Refuse a redeclaration that means another queue; `session` asks.

        Raises: ResourceLocked, PreconditionFailed.
        """
        self.check_access(queue, session)
        if (queue.exclusive_owner is None) != (declaration.owner is None):
            raise locked(queue.name, self.name)
        former = self.former_arguments.get(queue.name)
        queue_checks.check_equivalent(queue, declaration, self.name, former)

    def create_queue(self, declaration: QueueDeclaration) -> QueuePort:
        """Make a queue that does not exist.

        Raises: PreconditionFailed for bad arguments, or when the vhost has as many queues as it may.
        """
        self.check_new_queue(declaration)
        queue = self.restore_queue(declaration)
        if queue.durable:
            self.put_row(queue)
            self.take_over(queue)
        return queue

    def take_over(self, queue: QueuePort) -> None:
        """A durable queue was declared: it gets what a start that could not use its definition has kept of it."""
        if not isinstance(queue, Queue):
            return
        if self.engine.is_deleting(self.name, queue.name):
            queue.open_storage()
        queue.recover(partial(self.engine.is_stored, self.name))
        if queue.ready_count and not queue.is_asleep:
            queue.drop_excess()
            queue.look_for_expiry()

    def check_new_queue(self, declaration: QueueDeclaration) -> None:
        """Refuse what cannot be made. Raises: PreconditionFailed."""
        queue_checks.check_new(
            declaration,
            self.name,
            has_cluster=self.options.has_cluster,
            count=len(self.queues),
            limit=self.limits.get("max-queues", -1),
            kept=self.engine.kept_level(self.name, declaration.name),
        )
        if self.homes is not None:
            error = self.homes.refusal(self.name, declaration.name)
            if error is not None:
                raise error

    def put_row(self, queue: QueuePort) -> None:
        """Write that."""
        key = row_key(self.name, queue.name)
        self.rows.put("queue", key, queue_row(self, queue, queue.made_ms))

    def restore_queue(self, declaration: QueueDeclaration) -> QueuePort:
        """Make a queue without writing a row: it came from one, or is not durable."""
        assert declaration.name not in self.queues, "checked by the caller"
        self.settings.remember_version(declaration.name, declaration.default_version)
        if declaration.former_arguments is not None:
            self.former_arguments[declaration.name] = declaration.former_arguments
        settings = self.settings.of(declaration.name, declaration.arguments)
        queue = self._make_queue(declaration, settings)
        self.queues[declaration.name] = queue
        self.queue_names.add(declaration.name)
        self._in_order = None
        if declaration.owner is not None:
            self._owned.setdefault(declaration.owner, {})[queue] = None
        if self.homes is not None:
            self.homes.lead_no_more(self, queue.name)
            if isinstance(queue, Queue):
                self.homes.made(self.name, queue.name, durable=queue.durable)
        self.queue_changed(queue)
        return queue

    def make_successor(self, declaration: QueueDeclaration) -> QueuePort:
        """Make a queue that is to take the place of the one of its name; until then it is nobody's."""
        settings = self.settings.of(declaration.name, declaration.arguments)
        return self._make_queue(declaration, settings)

    def succeed(self, old: Queue, new: QueuePort) -> None:
        """A queue takes the place of another, with its bindings. What the old one has left is deleted with it."""
        assert self.queues.get(old.name) is old, "the caller has looked"
        self.queues[old.name] = new
        self._in_order = None
        if self.homes is not None:
            self.homes.gone(self.name, old.name)
        self._remains[new] = old
        new.change_settings(self.settings.after_change(new))  # policies may have changed meanwhile
        self.graph.lead_elsewhere(new, "queue")
        self._changed()

    def settle_succession(self, new: QueuePort, former_arguments: FieldTable) -> None:
        """The old queue has nothing left: it goes, and the new one is what a start finds.

        Who declares it as the old one was declared finds it, too.
        """
        self.former_arguments[new.name] = former_arguments
        self._apply_policies(new)  # those of the old one
        self.put_row(new)
        self._end_remains(new)

    def _end_remains(self, new: QueuePort) -> None:
        old = self._remains.pop(new, None)
        if old is not None:
            old.delete()
            self._free_later(old)

    def declare_queue(self, declaration: QueueDeclaration, session: object = None) -> QueuePort:
        """Make a queue or check that the existing one is the same; for callers without permission checks.

        Raises: ResourceLocked, PreconditionFailed.
        """
        queue = self.queues.get(declaration.name)
        if queue is None:
            return self.create_queue(declaration)
        self.check_equivalent_queue(queue, declaration, session)
        return queue

    def require_deletable(self, queue: QueuePort) -> None:
        """Raise NotFound while the disk refuses copies of a queue's dead letters: only the originals are durable."""
        target = self.engine.owed_copies(self.name, queue.name) if queue.durable else ""
        if target:
            raise NotFound(
                f"{describe('queue', queue.name, self.name)} is inaccessible:"
                f" the disk refuses its dead letters for queue '{target}'"
            )

    def delete_queue(self, queue: QueuePort) -> int:
        """Delete a queue and its bindings, then end it; return how many ready messages went with it.

        Harmless for a queue that is gone already: expiry, auto-delete and the client may all ask.
        """
        if self.queues.get(queue.name) is not queue:
            return 0
        ready_count = queue.ready_count
        del self.queues[queue.name]
        if self.homes is not None:
            self.homes.gone(self.name, queue.name)
        self.queue_names.remove(queue.name)
        self._in_order = None
        self.settings.forget(queue)
        self._disown(queue)
        if queue.durable:
            self.rows.delete("queue", row_key(self.name, queue.name))
        is_bound = any(True for _ in self.graph.bindings_to("queue", queue.name))
        unused = self.graph.remove_bindings_to("queue", queue.name)
        if self.homes is not None:
            self.homes.lead_to(self, queue.name)
        if is_bound:
            self._changed()
        else:
            self.queue_changed(queue)
        for exchange in unused:
            self.graph.delete(exchange)
        queue.delete()
        self._free_later(queue)
        self.former_arguments.pop(queue.name, None)
        self._end_remains(queue)
        return ready_count

    def _free_later(self, queue: QueuePort) -> None:
        if not self._deleted:
            self._later(self._let_go)
        self._deleted.append(queue)

    def queue_changed(self, queue: Destination) -> None:
        """A queue came or went, here or elsewhere, that no binding leads to."""
        name = queue.name.encode("utf-8", "surrogateescape")
        self.route_tables.forget_queue(self.exchanges[""], name, queue)

    def _let_go(self) -> None:
        """Free deleted queues, some in each turn."""
        some, self._deleted = self._deleted[:QUEUES_PER_TURN], self._deleted[QUEUES_PER_TURN:]
        for queue in some:
            if isinstance(queue, Queue):
                let_go(queue)
        if self._deleted:
            self._later(self._let_go)

    def exclusive_queues(self, session: object) -> list[QueuePort]:
        """The queues that belong to a connection: to be deleted when it ends."""
        return list(self._owned.get(session, ()))

    def _disown(self, queue: QueuePort) -> None:
        owned = self._owned.get(queue.exclusive_owner)
        if owned is not None:
            owned.pop(queue, None)
            if not owned:
                del self._owned[queue.exclusive_owner]

    def effective_policy(self, queue: QueuePort) -> EffectivePolicy:
        """The policy in force for a queue."""
        return self.settings.policy(queue.name, queue.arguments)

    def policies_changed(self, *changed: Policy) -> None:
        """These came or went, or any did: what is there now is put in force where they matter (`policy_pass`)."""
        self.policies.changed()
        self.policy_pass.begin(*changed)
        self._changed()

    def _under_policies(self) -> Iterator[Exchange | QueuePort]:
        yield from (exchange for exchange in self.exchanges.values() if exchange.name)
        yield from self.queues.values()

    def _apply_policies(self, entity: Exchange | QueuePort) -> None:
        if isinstance(entity, Exchange):
            self._apply_exchange_policy(entity)
            self._changed()
        elif not entity.is_deleted:
            entity.change_settings(self.settings.after_change(entity))

    # -- bindings -----------------------------------------------------------------------------------------------

    def bind(self, edge: Edge, session: object = None) -> None:
        """Add a binding; the same one again is a no-op.

        Raises: NotFound (source before destination), PreconditionFailed, ResourceLocked.
        """
        source = self.graph.exchange(edge.source)
        if edge.kind == "queue":
            self.queue(edge.destination)  # or it says where that lives
        destination = self.destination(edge)
        if destination is None:
            raise not_found(edge.kind, edge.destination, self.name)
        source.validate(edge.routing_key, edge.arguments)
        if edge.kind == "queue":
            self.check_access(self.queues[edge.destination], session)
        if self.graph.bind(edge, destination) and source.history is not None:
            self._hand_history_over(source.history.messages(), edge)

    def _hand_history_over(self, messages: list[Message], edge: Edge) -> None:
        """Give a new binding what its source has kept, oldest first."""
        for message in messages:
            targets: tuple[QueuePort, ...]
            if edge.kind == "queue":
                targets = (self.queues[edge.destination],)
            else:
                exchange = self.exchanges[edge.destination]
                routing_key = split_address(message.address)[1]
                look = partial(decode, message.raw)
                targets = router.route(self, exchange, (routing_key,), look)
            for target in targets:
                target.take([message], message.flags, message.size)

    def restore_binding(self, edge: Edge) -> bool:
        """Add a binding without writing a row; False when an end of it is missing."""
        destination = self.destination(edge)
        return destination is not None and self.graph.restore_binding(edge, destination)

    def unbind(self, edge: Edge, session: object = None) -> None:
        """Remove a binding; harmless when there is none like it.

        Raises: ResourceLocked, NotFound (its queue lives at another front-end).
        """
        binding = self.graph.find(edge)
        if binding is None:
            return
        if edge.kind == "queue":
            self.check_access(self.queue(edge.destination), session)
        self.graph.unbind(binding)

    def bindings_to(self, kind: DestinationKind, name: str) -> Iterator[Binding]:
        """The bindings that lead to a queue or exchange."""
        return self.graph.bindings_to(kind, name)

    def destination(self, edge: Edge) -> Destination | None:
        """What a binding leads to, if it is there."""
        if edge.kind == "queue":
            return self.queues.get(edge.destination)
        return self.exchanges.get(edge.destination)
