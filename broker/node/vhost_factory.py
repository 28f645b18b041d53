"""Makes virtual hosts with their queues' world wired up: store, turn, counters, dead letters on their way.

State owned: the direct-reply targets of each virtual host, as long as that is there. Called by `broker.node.running`
when definitions are restored, and by management when an operator makes a virtual host.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from types import MappingProxyType
from weakref import WeakKeyDictionary

from burrowmq.broker.channel.reply import ReplyTargets
from burrowmq.broker.node import options
from burrowmq.broker.node.replication import ALONE, NodeReplication
from burrowmq.broker.queue.context import QueueContext, QueueOptions
from burrowmq.broker.queue.dormant import DormantQueue
from burrowmq.broker.queue.memory.ram_share import RamShare
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.rules.quorum import is_quorum
from burrowmq.broker.queue.rules.settings import QueueDeclaration, Settings
from burrowmq.broker.queue.rules.stream import is_stream
from burrowmq.broker.report.metrics import NodeMetrics
from burrowmq.broker.report.observer import Observer
from burrowmq.broker.rules.parameter_rules import Component
from burrowmq.broker.turn.clock import Entropy, Scheduler
from burrowmq.broker.vhost.republish import Republisher
from burrowmq.broker.vhost.sure_letters import SureLetters
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.config.schema import NodeConfig
from burrowmq.protocol.errors import NotFound
from burrowmq.storage.engine import Engine

RETRY_S = 1.0
"""After which a queue that nobody uses, and that cannot be deleted yet, is tried again."""


def _nothing_refused(_: int) -> frozenset[tuple[str, str]]:
    return frozenset()


class VhostFactory:
    """Where virtual hosts come from; what it is given, all of them share."""

    def __init__(
        self,
        config: NodeConfig,
        engine: Engine,
        scheduler: Scheduler,
        metrics: NodeMetrics,
        entropy: Entropy,
        observer: Observer,
        components: Mapping[str, Component] = MappingProxyType({}),
        replication: NodeReplication = ALONE,
    ) -> None:
        self.refused_in: Callable[[int], frozenset[tuple[str, str]]] = _nothing_refused
        """Of which queues the disk has refused something of a commit that has just been done (`QueueFaults`)."""
        self._config = config
        self._engine = engine
        self._scheduler = scheduler
        self._metrics = metrics
        self._entropy = entropy
        self._observer = observer
        self._replication = replication
        self._components = components
        self._options = options.vhost(config)
        self._queue_options = QueueOptions(default_mode=config.store.default_mode)
        self._replies: WeakKeyDictionary[Vhost, ReplyTargets] = WeakKeyDictionary()

    @property
    def ram_share(self) -> RamShare:
        """How much RAM each queue may take."""
        return self._queue_options.ram_share

    def make(self, name: str) -> Vhost:
        """A virtual host, empty but for the exchanges that every one has."""

        def make_queue(declaration: QueueDeclaration, settings: Settings) -> QueuePort:
            if is_quorum(declaration):
                return self._replication.make_queue(declaration, settings, context)
            if is_stream(declaration):
                return self._replication.make_stream(declaration, settings, context)
            return _queue_of(context, declaration, settings)

        replies = ReplyTargets(self._entropy)
        vhost = Vhost(
            name, self._engine, make_queue, replies.find, self._options, self._in_a_turn_of_its_own
        )
        self._replies[vhost] = replies
        vhost.components = self._components
        vhost.observer = self._observer
        vhost.share = self._replication.share
        self._tell_homes(vhost, replies)
        context = QueueContext(
            vhost_name=vhost.name,
            scheduler=self._scheduler,
            engine=self._engine,
            metrics=self._metrics,
            options=self._queue_options,
            republish=Republisher(
                vhost,
                self._metrics,
                self._observer,
                self._config.frame_max,
                self._engine.order_acks,
                self._engine.note_passed_on,
                self._engine.note_way,
            ),
            republish_surely=SureLetters(
                vhost,
                self._engine,
                self._scheduler,
                self._observer,
                self.refused_in,
                self._config.frame_max,
            ),
            on_unused=functools.partial(self._delete_unused, vhost),
        )
        return vhost

    def _tell_homes(self, vhost: Vhost, replies: ReplyTargets) -> None:
        """What lives here, other front-ends are told of."""
        homes = self._replication.homes
        if homes is not None:
            vhost.homes = homes
            vhost.graph.on_bound, vhost.graph.on_unbound = homes.bound, homes.unbound
            for exchange in vhost.exchanges:
                homes.lead_from(vhost, exchange)
            name = vhost.name  # a way back to the key would keep both
            replies.on_added = functools.partial(homes.reply_made, name)
            replies.on_removed = lambda key: homes.gone(name, key.decode())

    def replies_of(self, vhost: Vhost) -> ReplyTargets:
        """Who waits for direct replies in a virtual host that was made here."""
        return self._replies[vhost]

    def _in_a_turn_of_its_own(self, callback: Callable[[], None]) -> None:
        def run() -> None:
            callback()
            self._scheduler.touch()

        self._scheduler.call_later(0.0, run)

    def _delete_unused(self, vhost: Vhost, name: str) -> None:
        queue = vhost.queues.get(name)
        if queue is not None:
            self._delete_when_possible(vhost, queue)

    def _delete_when_possible(self, vhost: Vhost, queue: QueuePort) -> None:
        if vhost.queues.get(queue.name) is not queue or queue.consumer_count:
            return  # it went, or is used again
        try:
            vhost.require_deletable(queue)
        except NotFound:
            if queue.auto_delete:
                again = functools.partial(self._delete_when_possible, vhost, queue)
                self._scheduler.call_later(RETRY_S, again)
            else:
                queue.touch()  # the lease begins anew
        else:
            vhost.delete_queue(queue)
        self._scheduler.touch()


def _queue_of(context: QueueContext, declaration: QueueDeclaration, settings: Settings) -> Queue:
    # A lease runs from the declaration on: its timer is one of the parts.
    kind = DormantQueue if settings.expires_ms is None else Queue
    return kind(
        declaration.name,
        settings,
        context,
        durable=declaration.durable,
        auto_delete=declaration.auto_delete,
        exclusive_owner=declaration.owner,
        arguments=declaration.arguments,
    )
