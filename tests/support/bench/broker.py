"""The broker's core without sockets, threads or files: sessions, channels, queues and the real turn on a loop run by hand.

State: one loop, one engine in memory, the virtual hosts, users and parameters of one node, and its clients
(`tests.support.bench.client`). Everything between a client's bytes and the engine is the broker's own, put together as
`broker.node.node` does it. Callers: unit tests of all that lies between, and of what reads it.
Invariants: nothing happens behind the test's back: turns end in `run`, the disk answers in `commit`, time moves in
`advance`. Every queue's own are checked at the end of each turn, unless `is_verified` is False: where calls are counted,
and where a test breaks the state itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, cast

from pika import spec

from burrowmq.broker.definitions import restore as definitions
from burrowmq.broker.definitions.parameters import Parameters
from burrowmq.broker.definitions.restore import Seed
from burrowmq.broker.machine.alarms import Alarms
from burrowmq.broker.node.replication import ALONE as NO_REPLICATION
from burrowmq.broker.node.replication import NodeReplication, Overheard
from burrowmq.broker.node.vhost_factory import VhostFactory
from burrowmq.broker.peer.wire import Peer
from burrowmq.broker.queue.invariants import verify
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.broker.report.metrics import NodeMetrics
from burrowmq.broker.rules.auth import Auth
from burrowmq.broker.session.admission import Admission
from burrowmq.broker.session.connection_limits import NodeLimits
from burrowmq.broker.session.session import Session, SessionContext
from burrowmq.broker.turn.clock import Pumpable
from burrowmq.broker.turn.manual_scheduler import make_scheduler
from burrowmq.broker.vhost.invariants import verify as verify_routes
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.config.cluster import ALONE, ClusterConfig
from burrowmq.config.schema import NodeConfig
from burrowmq.config.store import StoreConfig
from burrowmq.protocol.connection.server import ProtocolOptions, ServerConnection
from tests.support.bench.client import LOCAL, Client
from tests.support.bench.engine import BenchEngine
from tests.support.bench.loop import ManualLoop
from tests.support.bench.observer import RecordingObserver
from tests.support.counting_entropy import CountingEntropy


class BrokerBench:
    """One node's virtual hosts, their world, and clients on demand.

    It begins as a first start does, with the virtual host / and the user guest, or with `rows` of an earlier one:
    those that could not be used are in `unusable`.
    """

    def __init__(
        self,
        rows: Iterable[tuple[str, str, object]] | None = None,
        *,
        default_mode: str = "bounded",
        answers_later: bool = False,
        connection_max: int | None = None,
        is_verified: bool = True,
        cluster: ClusterConfig = ALONE,
        replication: NodeReplication = NO_REPLICATION,
        is_sharing: bool = False,
        first_token: int = 0,
        **limits: Any,
    ) -> None:
        self.loop = ManualLoop()
        self.replication = replication
        self.engine: Any = BenchEngine(answers_later=answers_later)
        overheard = None
        if is_sharing:
            overheard = self.engine.definitions = Overheard(self.engine.definitions)
        self.scheduler = make_scheduler(
            cast("Any", self.loop),
            self.engine.hand_over,
            lambda: None,
            self._verify if is_verified else None,
        )
        self.engine.on_committed = self.scheduler.on_committed
        self.metrics = NodeMetrics()
        self.observer = RecordingObserver()
        self.entropy = CountingEntropy(first_token)
        self.auth = Auth(self.engine.definitions, self.entropy)
        self.parameters = Parameters(self.engine.definitions)
        self.vhosts: dict[str, Vhost] = {}
        self.vhosts_made: list[str] = []
        config = NodeConfig(
            node_name="rabbit@test",
            data_dir="",
            store=StoreConfig(default_mode=default_mode),
            cluster=cluster,
        )
        self.sessions: set[Session] = set()
        if overheard is not None:
            replication.meet_others(cast("Any", self), overheard, self.scheduler)
        self._factory = VhostFactory(
            config,
            cast("Any", self.engine),
            self.scheduler,
            self.metrics,
            self.entropy,
            cast("Any", self.observer),
            replication=replication,
        )
        self._factory.refused_in = lambda _: frozenset(self.refused)
        self.refused: set[tuple[str, str]] = set()
        """Queues (virtual host, name) of which the disk refuses what they are given."""
        self.alarms = Alarms(cast("Any", self.observer), self._on_alarm)
        self.unusable = self._begin(rows)
        self.context = SessionContext(
            scheduler=self.scheduler,
            engine=cast("Any", self.engine),
            metrics=self.metrics,
            entropy=self.entropy,
            observer=cast("Any", self.observer),
            auth=self.auth,
            admission=Admission(
                self.auth,
                self.vhosts,
                self.sessions,
                NodeLimits(connection_max=connection_max),
                self.metrics,
                cast("Any", self.observer),
            ),
            alarms=self.alarms,
            replies=self._factory.replies_of,
            on_lost=self.sessions.discard,
            **limits,
        )

    def _begin(
        self, rows: Iterable[tuple[str, str, object]] | None
    ) -> list[definitions.UnusableRow]:
        if rows is not None:
            return definitions.restore(
                rows, self.vhosts, self.auth, self.make_vhost, self.parameters
            )
        definitions.seed(
            Seed(),
            self.vhosts,
            self.auth,
            self.make_vhost,
            self.engine.definitions,
            self.vhost_made,
        )
        return []

    name = "rabbit@test"

    def refused_in(self, _: int) -> frozenset[tuple[str, str]]:
        """What the test says."""
        return frozenset(self.refused)

    def forget_vhost(self, name: str) -> None:
        """Nothing is stored of one."""

    # -- virtual hosts ------------------------------------------------------------------------------------------

    @property
    def vhost(self) -> Vhost:
        """The virtual host /."""
        return self.vhosts["/"]

    def create_vhost(self, name: str) -> Vhost:
        """One more virtual host that lasts, or the one of that name."""
        return definitions.create_vhost(
            name, self.vhosts, self.make_vhost, self.engine.definitions, self.vhost_made
        )

    has_cluster = False

    def make_new_vhost(self, name: str) -> Vhost:
        return self.make_vhost(name)

    def vhost_made(self, vhost: Vhost) -> None:
        """Remember that it is new, and not restored."""
        self.vhosts_made.append(vhost.name)

    def make_vhost(self, name: str) -> Vhost:
        """A virtual host with its queues' world wired up."""
        return self._factory.make(name)

    def queue(self, name: str = "q", **declaration: Any) -> Queue:
        """Declare a queue of the virtual host /, as `QueueDeclaration` says."""
        return self.vhost.declare_queue(
            QueueDeclaration(name=name, **declaration), declaration.get("owner")
        )

    def _verify(self, touched: Sequence[Pumpable]) -> None:
        """Check every queue at each turn's end, deleted ones that were touched too."""
        queues = {queue for vhost in self.vhosts.values() for queue in vhost.queues.values()}
        for queue in (*queues, *touched):
            if isinstance(queue, Queue):
                verify(queue)
        for vhost in self.vhosts.values():
            verify_routes(vhost)

    # -- clients and time ---------------------------------------------------------------------------------------

    def _on_alarm(self, is_blocked: bool) -> None:
        if not is_blocked:
            for session in list(self.sessions):
                session.unblock()

    def open_session(self, peer: Peer) -> Session:
        """A connection that was accepted."""
        session = Session(self.context, ServerConnection(ProtocolOptions()), peer)
        self.sessions.add(session)
        return session

    def socket(self, peer: Peer = LOCAL) -> Client:
        """A connection that has sent nothing yet."""
        return Client(self, peer)

    def connect(
        self, *channels: int, user: str = "guest", vhost: str = "/", **capabilities: bool
    ) -> Client:
        """An open connection with these channels open."""
        client = self.socket()
        client.open(capabilities, user=user, vhost=vhost)
        for channel in channels:
            client.call(channel, spec.Channel.Open())
        return client

    def run(self) -> None:
        """Let turns end until nothing moves; reads are answered, commits are not."""
        self.loop.run()
        while self.engine.reads and not self.engine.answers_later:
            self.engine.answer_reads()
            self.loop.run()

    def perform(self, step: Callable[[], object]) -> None:
        """Take a step, and let turns end until nothing moves."""
        step()
        self.run()

    def commit(self) -> None:
        """End the turn, let the disk finish, end the turn that follows."""
        self.run()
        self.engine.commit()
        self.run()
