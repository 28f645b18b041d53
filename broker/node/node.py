"""Composition: builds everything from the configuration, starts it in order, stops it in order.

Start: lock the data directory, recover the store, restore definitions (or seed the first ones), take over recovered
queues, start the disk threads, load start batches, bind, accept. Stop: stop accepting, close connections with 320,
tell the store what was delivered, flush and mark the stop clean, release the lock.

State owned: the parts, and the sweep that drives heartbeats, alarms and idle work once a second. `management` and
`inspect` read its attributes; nothing below knows it.

Longer than most modules because the order in which things are made, started and stopped is read as a whole.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import ssl
import time
from collections.abc import Callable
from dataclasses import replace

from burrowmq.broker.channel.reply import ReplyTargets
from burrowmq.broker.definitions import document as definition_document
from burrowmq.broker.definitions import restore as definitions
from burrowmq.broker.definitions.parameters import Parameters
from burrowmq.broker.machine import resources
from burrowmq.broker.machine.alarms import Alarms
from burrowmq.broker.machine.reclaim import CLibrary, Reclaim
from burrowmq.broker.node import options
from burrowmq.broker.node.data_directory import DataDirectory
from burrowmq.broker.node.monitor import Monitor
from burrowmq.broker.node.start_batches import StartBatches
from burrowmq.broker.peer.wire import Peer
from burrowmq.broker.product import server_properties
from burrowmq.broker.queue.context import QueueContext, QueueOptions
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.rules.settings import QueueDeclaration, Settings
from burrowmq.broker.report.log import LogObserver
from burrowmq.broker.report.metrics import NodeMetrics
from burrowmq.broker.rules.auth import Auth
from burrowmq.broker.session.ack_timeout import AckTimeouts
from burrowmq.broker.session.admission import Admission
from burrowmq.broker.session.session import Session, SessionContext
from burrowmq.broker.sockets import listener
from burrowmq.broker.sockets.acceptor import Acceptor
from burrowmq.broker.sockets.heartbeats import Heartbeats
from burrowmq.broker.sockets.transport import AmqpTransport
from burrowmq.broker.turn.busy_wait import BusyWait
from burrowmq.broker.turn.pacing import Pacing
from burrowmq.broker.turn.turn import SystemEntropy, Turn
from burrowmq.broker.vhost.republish import Republisher
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.config.schema import NodeConfig
from burrowmq.config.tls import TlsConfig, make_context
from burrowmq.protocol.codec import NAME as CODEC_NAME
from burrowmq.protocol.codec import load_message
from burrowmq.protocol.connection.server import ProtocolOptions, ServerConnection
from burrowmq.storage.engine import Engine
from burrowmq.storage.errors import StorageError, with_way_out
from burrowmq.storage.files.filesystem import OsFileSystem
from burrowmq.storage.types import RecoveryReport

SWEEP_S = 1.0
STOP_GRACE_S = 3.0
STORE_FAILED_TEXT = "the store has failed"
SHUTDOWN_TEXT = "broker forced connection closure with reason 'shutdown'"


class Underprovisioned(Exception):
    """There is too little memory, disk or file descriptors to start with; the text says how much is missing."""


class Node:
    """One broker."""

    def __init__(self, config: NodeConfig, observer: LogObserver) -> None:
        self.config = config
        self.observer = observer
        self.name = config.node_name
        self.metrics = NodeMetrics()
        self.entropy = SystemEntropy()
        self.started_at = time.time()
        self.sessions: set[Session] = set()
        self.vhosts: dict[str, Vhost] = {}
        self.codec_name = CODEC_NAME
        self.report = RecoveryReport()
        self.alarms = Alarms(observer, self._on_alarm)
        self.engine = Engine(
            config.data_dir,
            OsFileSystem(),
            options.store(config.store, resources.store_files_max()),
            observer,
            load_message,
            highest_levels=definitions.highest_levels,
        )
        self.auth = Auth(self.engine.definitions, self.entropy, config.loopback_users)
        self.parameters = Parameters(self.engine.definitions)
        self._vhost_defaults = options.vhost_defaults(config.seeding)
        self._replies: dict[str, ReplyTargets] = {}
        self.sockets_max = resources.sockets_max()
        self.memory_total_bytes = (
            config.resources.memory_total_bytes or resources.memory_total_bytes()
        )
        self.config_files: tuple[str, ...] = ()  # for whoever asks; set by the composition root
        self._directory = DataDirectory(config.data_dir)
        self._sweep: asyncio.TimerHandle | None = None
        self._stop_requested = asyncio.Event()
        self._are_sessions_gone = asyncio.Event()
        self._is_stopped = False
        self._busy_wait: BusyWait | None = None
        self._loop: asyncio.AbstractEventLoop = None  # type: ignore[assignment]  # start()'s
        self._start_batches: StartBatches = None  # type: ignore[assignment]  # made by start()
        self._ack_timeouts: AckTimeouts = None  # type: ignore[assignment]  # made by start()
        self._heartbeats: Heartbeats = None  # type: ignore[assignment]  # made by start()
        self.monitor: Monitor = None  # type: ignore[assignment]  # made by start()
        self.turn: Turn = None  # type: ignore[assignment]  # made on the loop by start()
        self._context: SessionContext = None  # type: ignore[assignment]  # made by start()
        self._protocol_options: ProtocolOptions = None  # type: ignore[assignment]  # made by start()
        self._plain_protocol_options: ProtocolOptions = None  # type: ignore[assignment]  # made by start()
        self.acceptor: Acceptor | None = None

    # -- start --------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Recover and accept connections.

        Raises: CannotListen, DataDirectoryLocked, DataDirectoryUnusable, ImportRefused, StorageError, Underprovisioned.
        """
        config = self.config
        self._directory.lock()
        self._check_provision()
        doors = options.doors(config, self.sockets_max)
        # Recovery may take minutes: a port that another process has is said at once.
        listener.check_free((*doors.tcp, *doors.tls), doors.sockets)
        self._loop = asyncio.get_running_loop()
        self.turn = self._make_turn()
        self._heartbeats = Heartbeats(self.sessions, self.turn)
        self.report = self.engine.recover()
        self._restore()
        if config.cluster_name:
            self.parameters.put("cluster_name", config.cluster_name)
        self._connect_engine()
        self.engine.start(self._post)
        self.monitor = Monitor(
            options.limits(config, self.memory_total_bytes),
            functools.partial(resources.measure, config.data_dir),
            self.alarms,
            self.vhosts,
            self.turn,
            Reclaim(CLibrary()),
            options.intervals(config.resources),
        )
        self._start_batches = self._load_start_batches()
        self.turn.touch()
        self._context = SessionContext(
            scheduler=self.turn,
            engine=self.engine,
            metrics=self.metrics,
            entropy=self.entropy,
            observer=self.observer,
            auth=self.auth,
            alarms=self.alarms,
            admission=Admission(
                self.auth,
                self.vhosts,
                self.sessions,
                config.connection_max,
                self.metrics,
                self.observer,
                options.certificate_name(config.login),
            ),
            replies=self._replies_of,
            on_lost=self._forget_session,
            on_opened=self._heartbeats.opened,
            consumer_max_per_channel=config.consumer_max_per_channel,
            write_budget_bytes=config.connection_write_budget_bytes,
        )
        self._protocol_options = options.protocol(config, server_properties(self.cluster_name))
        self._ack_timeouts = AckTimeouts(
            self.sessions, self.turn, self.observer, config.consumer_timeout_ms
        )
        self._plain_protocol_options = options.without_certificates(self._protocol_options)
        self._log_limits()
        self.monitor.start()
        self.acceptor = Acceptor(
            doors,
            self._open_session,
            self.sessions.__len__,
            self.observer,
        )
        await self.acceptor.listen()
        self.turn.watch_lag()
        self._sweep_later()

    def _log_limits(self) -> None:
        limits = self.monitor.limits
        self.observer.limits_known(
            f"{resources.mib(limits.memory_bytes)} of {resources.mib(self.memory_total_bytes)}",
            resources.mib(limits.disk_free_bytes),
            resources.files_max(),
            self.sockets_max,
        )

    def _make_turn(self) -> Turn:
        if self.config.busy_wait == "auto":
            self._busy_wait = BusyWait(self._loop.call_soon, self.engine.is_idle)
        pacing = Pacing(self.metrics, self._busy_wait)
        return Turn(self._loop, self.engine.hand_over, pacing.turn_ended)

    def _post(self, callback: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(callback)

    def announce(self, process_seconds: float) -> None:
        """Log that the node is ready, with the time since the process began."""
        self.observer.node_started(self.name, self.codec_name, process_seconds)

    def _restore(self) -> None:
        rows = self.report.definitions
        if rows:
            unusable = definitions.restore(
                rows, self.vhosts, self.auth, self.make_vhost, self.parameters
            )
            for row in unusable:
                self.observer.definition_unusable(row.kind, row.key, row.reason)
        elif self.config.load_definitions is None:
            # RabbitMQ: who brings definitions brings the first user too.
            seed = options.seed(self.config.first_user)
            definitions.seed(
                seed,
                self.vhosts,
                self.auth,
                self.make_vhost,
                self.engine.definitions,
                self.vhost_made,
            )
        for vhost in self.vhosts.values():
            for queue in vhost.queues.values():
                queue.recover(functools.partial(self.engine.is_stored, vhost.name))
        self.engine.discard_unclaimed()
        if self.config.load_definitions is not None:
            definition_document.import_file(self, self.config.load_definitions)

    def vhost_made(self, vhost: Vhost) -> None:
        """A virtual host is new (not restored): give it what the configuration says it begins with."""
        self._vhost_defaults.apply(vhost, self.auth)

    def make_vhost(self, name: str) -> Vhost:
        """A vhost with its queues' world wired up."""

        def make_queue(_: Vhost, declaration: QueueDeclaration, settings: Settings) -> Queue:
            return _queue_of(context, declaration, settings)

        vhost = Vhost(
            name,
            self.engine,
            make_queue,
            self.entropy,
            options.vhost(self.config),
        )
        vhost.direct_reply = self._replies_of(vhost).find
        context = QueueContext(
            vhost_name=vhost.name,
            scheduler=self.turn,
            engine=self.engine,
            metrics=self.metrics,
            options=QueueOptions(default_mode=self.config.store.default_mode),
            republish=Republisher(
                vhost, self.turn, self.metrics, self.observer, self.config.frame_max
            ),
            on_unused=functools.partial(self._delete_unused, vhost),
        )
        return vhost

    def _replies_of(self, vhost: Vhost) -> ReplyTargets:
        targets = self._replies.get(vhost.name)
        if targets is None:
            targets = self._replies[vhost.name] = ReplyTargets(self.entropy)
        return targets

    def _delete_unused(self, vhost: Vhost, queue: Queue) -> None:
        vhost.delete_queue(queue)
        self.turn.touch()

    def _connect_engine(self) -> None:
        engine = self.engine
        engine.on_committed = self.turn.on_committed
        engine.on_backlog = self._on_backlog
        # Acks that have arrived by now are to be in the batch: what they are for need not be written.
        engine.on_due = self.turn.touch
        engine.on_space = functools.partial(self.alarms.update, "store")
        engine.on_failed = self._on_store_failed

    def _load_start_batches(self) -> StartBatches:
        limit = self.monitor.limits.memory_bytes
        batches = StartBatches(limit, self.config.store.embed_below_bytes)
        batches.load(queue for vhost in self.vhosts.values() for queue in vhost.queues.values())
        return batches

    @staticmethod
    def tls_context(options: TlsConfig) -> ssl.SSLContext:
        """What management's TLS listeners are made with."""
        return make_context(options)

    def _open_session(self, peer: Peer) -> Session:
        is_plain = peer.tls is None
        wanted = self._plain_protocol_options if is_plain else self._protocol_options
        session = Session(self._context, ServerConnection(wanted), peer)
        self.sessions.add(session)
        self.observer.connection_accepted(session.name)
        return session

    def _check_provision(self) -> None:
        """Refuse to start with less than it takes. Raises Underprovisioned."""
        data_dir = self.config.data_dir
        found = resources.provision(data_dir, self.memory_total_bytes)
        missing = resources.shortfalls(found, data_dir)
        if missing and self.config.resources.start_check == "enforce":
            raise Underprovisioned(
                "; ".join((*missing, "start_check = warn starts it all the same"))
            )
        for text in missing:
            self.observer.configuration_warning(f"under-provisioned: {text}")

    @property
    def cluster_name(self) -> str:
        """The name shown to clients and operators."""
        return str(self.parameters.values.get("cluster_name") or self.name)

    def set_cluster_name(self, name: str) -> None:
        """Give the cluster another name: kept, and told to clients from now on."""
        self.parameters.put("cluster_name", name)
        self.turn.touch()
        properties = server_properties(name)
        self._protocol_options = replace(self._protocol_options, server_properties=properties)
        self._plain_protocol_options = replace(
            self._plain_protocol_options, server_properties=properties
        )

    def _forget_session(self, session: Session) -> None:
        self.sessions.discard(session)
        self._heartbeats.lost(session)
        if self._is_stopped and not self.sessions:
            self._are_sessions_gone.set()

    # -- while it runs ------------------------------------------------------------------------------------------

    def _sweep_later(self) -> None:
        self._sweep = asyncio.get_running_loop().call_later(SWEEP_S, self._sweep_once)

    def _sweep_once(self) -> None:
        self._sweep_later()  # first: whatever fails here, the next one comes
        self._heartbeats.look()
        if self._busy_wait is not None:
            self._busy_wait.look()
        self._ack_timeouts.look()
        self._start_batches.look()

    def _on_alarm(self, is_blocked: bool) -> None:
        if not is_blocked:
            for session in list(self.sessions):
                session.unblock()

    def _on_backlog(self, is_lagging: bool) -> None:
        self.alarms.is_lagging = is_lagging
        for session in self.sessions:
            if session.wire is None:
                continue
            if is_lagging and session.is_publisher:
                session.wire.pause_reading("backlog")
            elif not is_lagging:
                session.wire.resume_reading("backlog")

    def _on_store_failed(self, reason: str) -> None:
        self.observer.store_failed(reason)
        self.alarms.update("store", True)
        self.turn.on_failed()
        for session in list(self.sessions):
            if any(channel.is_held for channel in session.channels.values()):
                session.force_close(STORE_FAILED_TEXT)  # what it waits for will not come

    # -- stop ---------------------------------------------------------------------------------------------------

    def request_stop(self) -> None:
        """Ask for a clean stop; `wait_for_stop_request` returns."""
        self._stop_requested.set()

    async def wait_for_stop_request(self) -> None:
        """Return when somebody asked the node to stop."""
        await self._stop_requested.wait()

    async def stop(self) -> bool:
        """Stop; True when the store was closed cleanly. Harmless when stopped."""
        if self._is_stopped:
            return True
        self._is_stopped = True
        if self._sweep is not None:
            self._sweep.cancel()
            self._heartbeats.stop()
        if self.monitor is not None:
            self.monitor.stop()
        if self.acceptor is not None:
            self.acceptor.close()
        await self._close_sessions()
        for vhost in self.vhosts.values():
            for queue in vhost.queues.values():
                queue.note_delivered()
        is_clean = True
        try:
            await asyncio.get_running_loop().run_in_executor(None, self.engine.close)
        except StorageError as error:
            is_clean = False
            self.observer.store_failed(with_way_out(error))
        self._directory.unlock()
        self.observer.node_stopped(self.name)
        return is_clean

    async def abandon(self) -> None:
        """A start that failed: let go of what was taken; what was recovered is closed as cleanly as it was found."""
        self._is_stopped = True
        with contextlib.suppress(StorageError):
            await asyncio.get_running_loop().run_in_executor(None, self.engine.close)
        self._directory.unlock()

    async def _close_sessions(self) -> None:
        for session in list(self.sessions):
            session.force_close(SHUTDOWN_TEXT)
        if self.sessions:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._are_sessions_gone.wait(), STOP_GRACE_S)
        for session in list(self.sessions):
            if isinstance(session.wire, AmqpTransport):
                session.wire.abort()
        await asyncio.sleep(0)


def _queue_of(context: QueueContext, declaration: QueueDeclaration, settings: Settings) -> Queue:
    return Queue(
        declaration.name,
        settings,
        context,
        durable=declaration.durable,
        auto_delete=declaration.auto_delete,
        exclusive_owner=declaration.owner,
        arguments=declaration.arguments,
    )
