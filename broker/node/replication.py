"""The node's replicated queues and streams, which are loaded only where `cluster.urls` names servers.

Without it nothing of `cluster` or `broker.replicated` is imported, and both are refused as ever. State owned:
the one connection to the cluster. Made by `broker.node.running`; `broker.node.vhost_factory` asks it for queues.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final, Protocol

from burrowmq.broker.product import VERSION
from burrowmq.broker.queue.rules.quorum import REPLICAS_MAX
from burrowmq.config.cluster import ClusterConfig
from burrowmq.storage.loop.definitions import DefinitionChange, Definitions

if TYPE_CHECKING:
    from collections.abc import Callable

    from burrowmq.broker.queue.context import QueueContext
    from burrowmq.broker.queue.port import QueuePort
    from burrowmq.broker.queue.rules.settings import QueueDeclaration, Settings
    from burrowmq.broker.replicated.definitions import SharedDefinitions
    from burrowmq.broker.replicated.front_end import FrontEnd
    from burrowmq.broker.replicated.homes import Homes
    from burrowmq.broker.replicated.homes import Node as HomeNode
    from burrowmq.broker.replicated.in_force import InForce
    from burrowmq.broker.report.cluster_state import Flow, LinkState, ServerState
    from burrowmq.broker.report.observer import Observer
    from burrowmq.broker.turn.clock import Entropy, Scheduler


if TYPE_CHECKING:

    class Sharing(InForce, HomeNode, Protocol):
        """What other front-ends have to do with of a node."""


class Overheard(Definitions):
    """Where rows are staged, and somebody hears of each."""

    def __init__(self, definitions: Definitions) -> None:
        super().__init__(self._written)
        self._definitions = definitions
        self.on_written: Callable[[str, str, object], None] = _unheard

    def _written(self, change: DefinitionChange) -> None:
        kind, key, value = change
        if value is None:
            self._definitions.delete(kind, key)
        else:
            self._definitions.put(kind, key, value)
        self.on_written(kind, key, value)


def _unheard(_kind: str, _key: str, _value: object) -> None:
    return None


class NodeReplication:
    """What makes quorum queues and streams, where there is a cluster."""

    def __init__(self, config: ClusterConfig, connect: Callable[[], FrontEnd] | None) -> None:
        self._config = config
        self._connect = connect
        self._front_end: FrontEnd | None = None
        self.share: SharedDefinitions | None = None
        """The definitions that other front-ends have as well; None without a cluster."""
        self.homes: Homes | None = None
        """Where classic queues live; None without a cluster."""

    def meet_others(self, node: Sharing, definitions: Overheard, scheduler: Scheduler) -> None:
        """Have what is written there agreed with other front-ends, and know theirs; before anything is made."""
        if self._connect is None:
            return
        from burrowmq.broker.replicated.definitions import SharedDefinitions  # noqa: PLC0415
        from burrowmq.broker.replicated.homes import Homes  # noqa: PLC0415

        self.share = SharedDefinitions(
            node, definitions, self._connection(), scheduler, replicas=self._config.replicas
        )
        definitions.on_written = self.share.written
        self.homes = Homes(self._connection(), scheduler, node)

    @property
    def front_end(self) -> FrontEnd | None:
        """The connection to it; None without one."""
        return self._front_end

    @property
    def link(self) -> LinkState | None:
        """What is to be said of that connection; None without a cluster."""
        return None if self._front_end is None else self._front_end.state

    @property
    def flow(self) -> Flow | None:
        """What is on its way between quorum queues and the cluster; None without one."""
        return None if self._front_end is None else self._front_end.flow()

    async def sight(self) -> list[ServerState]:
        """Ask each server of the cluster whether it is there; takes seconds when one is not."""
        return [] if self._front_end is None else await self._front_end.sight()

    def make_queue(
        self, declaration: QueueDeclaration, settings: Settings, context: QueueContext
    ) -> QueuePort:
        """A quorum queue. Raises: ValueError without a cluster."""
        if self._connect is None:
            raise ValueError("a quorum queue needs cluster.urls")
        from burrowmq.broker.replicated.queue import ReplicatedQueue  # noqa: PLC0415 - see above

        arguments = declaration.arguments
        replicas = arguments.get("x-quorum-initial-group-size", self._config.replicas)
        assert isinstance(replicas, int), "validated"
        return ReplicatedQueue(
            declaration,
            settings,
            context,
            self._connection(),
            replicas=replicas,
        )

    def make_stream(
        self, declaration: QueueDeclaration, settings: Settings, context: QueueContext
    ) -> QueuePort:
        """A stream queue. Raises: ValueError without a cluster."""
        if self._connect is None:
            raise ValueError("a stream needs cluster.urls")
        from burrowmq.broker.replicated.stream_queue import StreamQueue  # noqa: PLC0415 - see above

        wanted = settings.initial_cluster_size or self._config.replicas
        replicas = min(wanted, REPLICAS_MAX)
        return StreamQueue(declaration, settings, context, self._connection(), replicas=replicas)

    def _connection(self) -> FrontEnd:
        assert self._connect is not None, "the caller has looked"
        if self._front_end is None:
            self._front_end = self._connect()
        return self._front_end

    def start(self) -> None:
        """Connect, and stay connected."""
        if self._connect is not None:
            if self.share is not None and self.homes is not None:
                self.share.start()
                self.homes.start()
            self._connection().start()

    async def stop(self) -> None:
        """Tell the cluster what is known by now, and let go of it."""
        if self._front_end is not None:
            await self._front_end.stop()

    def abandon(self) -> None:
        """End as if the process were killed."""
        if self._front_end is not None:
            self._front_end.abandon()


def replication(
    config: ClusterConfig,
    node_name: str,
    scheduler: Scheduler,
    entropy: Entropy,
    observer: Observer,
    on_eased: Callable[[], None],
) -> NodeReplication:
    """That of a node with this configuration."""
    urls = config.urls
    if not urls:
        return ALONE

    def connect() -> FrontEnd:
        from burrowmq.broker.replicated.front_end import FrontEnd, servers  # noqa: PLC0415

        where = servers(urls, config.user, config.password)
        return FrontEnd(
            where,
            scheduler,
            entropy,
            observer,
            name=node_name,
            version=VERSION,
            on_eased=on_eased,
        )

    return NodeReplication(config, connect)


ALONE: Final = NodeReplication(ClusterConfig(), None)
"""That of a node without a cluster, which owns nothing."""
