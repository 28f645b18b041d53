"""The application: everything that exists only while the node runs, from recovery to a clean stop of the store.

Built whole from the configuration, started once, stopped once; the next start builds another. Start: recover the
store, restore definitions (or seed the first ones), take over recovered queues, start the disk threads, load start
batches, bind, accept. Stop: stop accepting, close connections with 320, tell the store what was delivered, flush and
mark the stop clean. When the store fails, nothing is delivered or taken any more: the listeners close, publishers get
their nacks, every connection is closed with 541, `failed` says why, and all that is left is to stop.

State owned: the parts, the sessions, and why the store failed. `broker.node.node` starts and stops it; `management`
and `inspect` read its attributes; nothing below knows it.
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
from collections.abc import Callable
from typing import TYPE_CHECKING

from burrowmq.broker.definitions import document as definition_document
from burrowmq.broker.definitions import restore as definitions
from burrowmq.broker.definitions.parameters import MIGRATION_NOTE, SHOVEL, Parameters
from burrowmq.broker.machine import resources
from burrowmq.broker.machine.alarms import Alarms
from burrowmq.broker.machine.circles import Circles
from burrowmq.broker.node import options, self_check
from burrowmq.broker.node.full_disk import FullDisk
from burrowmq.broker.node.monitor import Monitor
from burrowmq.broker.node.queue_faults import QueueFaults
from burrowmq.broker.node.replication import Overheard, replication
from burrowmq.broker.node.server_process import ServerProcess
from burrowmq.broker.node.shovels import NodeShovels
from burrowmq.broker.node.start_batches import StartBatches
from burrowmq.broker.node.sweep import Sweep
from burrowmq.broker.node.vhost_factory import VhostFactory
from burrowmq.broker.peer.wire import Peer
from burrowmq.broker.product import server_properties
from burrowmq.broker.queue.outcome import CLUSTER
from burrowmq.broker.report.metrics import NodeMetrics
from burrowmq.broker.rules.auth import Auth
from burrowmq.broker.rules.failed_logins import FailedLogins
from burrowmq.broker.rules.parameter_rules import RefusedValue
from burrowmq.broker.session.ack_timeout import AckTimeouts
from burrowmq.broker.session.admission import Admission
from burrowmq.broker.session.session import Session, SessionContext
from burrowmq.broker.sockets.acceptor import Acceptor
from burrowmq.broker.sockets.heartbeats import Heartbeats
from burrowmq.broker.sockets.transport import AmqpTransport
from burrowmq.broker.turn.busy_wait import BusyWait
from burrowmq.broker.turn.commit_pacing import CommitPacing
from burrowmq.broker.turn.manual_scheduler import make_scheduler
from burrowmq.broker.turn.pacing import Pacing
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.protocol.codec import load_message
from burrowmq.protocol.connection.server import ServerConnection
from burrowmq.storage.engine import Engine
from burrowmq.storage.errors import StorageError, StoreClosed, with_way_out
from burrowmq.storage.names import QueueNames

if TYPE_CHECKING:
    # Loaded when the first import or migration is asked for.
    from burrowmq.broker.imports.job import Job
    from burrowmq.broker.migration.migrations import Migrations

FAILED_GRACE_S = 0.5
"""For how long clients have time to close when the store has failed: who restarts the process waits for its end."""
SESSIONS_AT_ONCE = 50
"""Connections that are closed in one turn when the store has failed."""
SHUTDOWN_TEXT = "broker forced connection closure with reason 'shutdown'"


def _nothing() -> None:
    return None


def _ignore(_: Session) -> None:
    return None


class RunningNode:
    """One broker, from its start to its stop."""

    import_job: Job | None = None
    """Of messages from another broker, the last one that was asked for."""
    _migrations: Migrations | None = None

    def __init__(self, process: ServerProcess, loop: asyncio.AbstractEventLoop) -> None:
        self.process = process
        self.name = process.name
        self.config = config = process.config
        self.observer = observer = process.observer
        self.metrics = NodeMetrics()
        self.entropy = process.machine.entropy
        self.sessions: dict[Session, None] = {}  # in the order in which they came
        self.vhosts: dict[str, Vhost] = {}
        self.alarms = Alarms(observer, self._on_alarm)
        refuse = self_check.refusal(observer, process.machine.end)
        self.was_clean = False
        """Whether recovery, once it has run, found the store as a clean stop leaves it."""
        self.on_session: Callable[[Session], None] = _ignore  # told of each that is accepted
        self.is_under_maintenance = False
        """No clients are taken (`rabbitmq-upgrade drain`)."""
        self.engine = self._make_engine(refuse)
        failed_logins = FailedLogins(options.failed_logins(config.login), loop.time)
        self.auth = Auth(
            self.engine.definitions,
            self.entropy,
            config.loopback_users,
            failed_logins,
            options.password_rules(config.login),
        )
        self.parameters = Parameters(self.engine.definitions)
        self._vhost_defaults = options.vhost_defaults(config.seeding)
        self._loop = loop
        self.failed: asyncio.Future[str] = loop.create_future()  # why the store has failed
        self._is_stopping = False
        self._are_sessions_gone = asyncio.Event()
        busy_wait = None
        if config.busy_wait == "auto":
            busy_wait = BusyWait(loop.call_soon, self.engine.is_idle)
        self.scheduler = make_scheduler(
            loop,
            CommitPacing(self.engine, self, self.metrics).turn_ended,
            _nothing if process.machine.is_shared else Pacing(self.metrics, busy_wait).turn_ended,
            self_check.look_of(self.vhosts, self.engine, refuse),
            process.machine.timeline,
        )
        self.queue_faults = QueueFaults(observer, self.scheduler.wall_ms, self.vhosts)
        self.shovels = NodeShovels(self)
        self._factory = self._make_factory()
        self.monitor = self._make_monitor()
        self._start_batches = StartBatches(
            self.monitor.limits.memory_bytes, config.store.embed_below_bytes
        )
        self._heartbeats = Heartbeats(self.scheduler, observer)
        self.ack_timeouts = AckTimeouts(
            self.sessions, self.scheduler, observer, config.consumer_timeout_ms
        )
        circles = Circles(process.machine.collector, self.metrics, self.scheduler, self.alarms)
        looks = [
            self._heartbeats.look,
            self.ack_timeouts.look,
            self._start_batches.look,
            circles.look,
        ]
        looks += [] if busy_wait is None else [busy_wait.look]
        self._sweep = Sweep(self.scheduler, looks, observer)
        self._offered = options.offered(config, server_properties(self.cluster_name))
        self._context = self._make_context()
        self.acceptor = Acceptor(
            options.acceptor_options(config, process.sockets_max),
            self.open_session,
            self.sessions.__len__,
            observer,
        )

    # -- what `turn.commit_pacing` asks of the loop; the scheduler is made with it --------------------------------

    def call_later(self, delay_s: float, callback: Callable[[], None]) -> None:
        """See `turn.commit_pacing.Passes`."""
        self.scheduler.call_later(delay_s, callback)

    def call_soon(self, callback: Callable[[], None]) -> None:
        """See there."""
        self._loop.call_soon(callback)

    def monotonic(self) -> float:
        """See there."""
        return self.scheduler.monotonic()

    @property
    def is_quiet(self) -> bool:
        """See there. Once turns have ended, the store's end takes what is staged, on another thread: no pass does."""
        return not self.scheduler.is_stopped and self.scheduler.is_quiet

    @property
    def lone_waiter(self) -> int:
        """See there."""
        return self.scheduler.lone_waiter

    @property
    def is_one_waiting(self) -> bool:
        """See there."""
        return self.scheduler.is_one_waiting

    # -- parts ----------------------------------------------------------------------------------------------------

    def _make_engine(self, refuse: Callable[[str], None] | None) -> Engine:
        config, machine = self.config, self.process.machine
        engine = Engine(
            config.data_dir,
            machine.filesystem,
            options.store(
                config.store, resources.store_files_max(), has_ballast=machine.has_ballast
            ),
            self.observer,
            load_message,
            machine.definitions_at,
            definitions.highest_levels,
            self_check.writer_maker(refuse),
        )
        if self.has_cluster:
            engine.definitions = Overheard(engine.definitions)
        return engine

    def _make_factory(self) -> VhostFactory:
        self.replication = replication(
            self.config.cluster,
            self.name,
            self.scheduler,
            self.entropy,
            self.observer,
            self._on_eased,
        )
        definitions = self.engine.definitions
        if isinstance(definitions, Overheard):
            self.replication.meet_others(self, definitions, self.scheduler)
        factory = VhostFactory(
            self.config,
            self.engine,
            self.scheduler,
            self.metrics,
            self.entropy,
            self.observer,
            {SHOVEL: self.shovels},
            self.replication,
        )
        factory.refused_in = self.queue_faults.refused_in
        return factory

    def _make_monitor(self) -> Monitor:
        config = self.config
        return Monitor(
            options.limits(config, self.process.memory_total_bytes),
            functools.partial(self.process.machine.measure, config.data_dir),
            self.alarms,
            self.vhosts,
            self.scheduler,
            self.process.machine.allocator,
            self._factory.ram_share,
            options.intervals(config.resources),
        )

    def _make_context(self) -> SessionContext:
        config = self.config
        return SessionContext(
            scheduler=self.scheduler,
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
                options.node_limits(self.name, config),
                self.metrics,
                self.observer,
                options.certificate_name(config.login),
            ),
            replies=self._factory.replies_of,
            on_lost=self._forget_session,
            on_opened=self._heartbeats.opened,
            consumer_max_per_channel=config.consumer_max_per_channel,
            write_budget_bytes=config.connection_write_budget_bytes,
            confirms_cover_acks=config.store.confirms_cover_acks,
        )

    # -- start --------------------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Recover and accept connections. A start that fails lets go of everything it took.

        Raises: CannotListen, ImportRefused, StorageError.
        """
        try:
            # Recovery may take minutes: a port that another process has is said at once.
            self.acceptor.check_free()
            self._recover()
            self._connect_engine()
            self.process.machine.start_store(self.engine, self._post)
            self._start_batches.load(
                queue for vhost in self.vhosts.values() for queue in vhost.classic_queues()
            )
            self.scheduler.touch()
            self._log_limits()
            self.monitor.start()
            self.replication.start()
            self._resume_migrations()
            await self.acceptor.listen()
            self._check_store()
        except BaseException:
            await self._let_go()
            raise
        self.scheduler.watch_lag()
        self._sweep.start()
        self.shovels.start()

    def _recover(self) -> None:
        report = self.engine.recover()
        self.was_clean = report.clean
        rows = report.definitions
        unusable: list[definitions.UnusableRow] = []
        if rows:
            unusable = definitions.restore(
                rows, self.vhosts, self.auth, self.make_vhost, self.parameters
            )
            for row in unusable:
                self.observer.definition_unusable(row.kind, row.key, row.reason)
            if self.replication.share is not None:
                self.replication.share.remember(rows)
            rows.clear()  # they weigh as much as the parts that queues are given now
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
            if self.replication.share is not None:
                self.replication.share.is_seeded = True
        for vhost in self.vhosts.values():
            for queue in vhost.classic_queues():
                queue.recover(functools.partial(self.engine.is_stored, vhost.name))
        may_be_defined = functools.partial(definitions.may_be_defined, unusable)
        for (vhost_name, at), found in self.engine.discard_unclaimed(may_be_defined).items():
            self.observer.queue_undefined(vhost_name, found.names.name, at, found.count)
        self.parameters.identify_cluster(self.entropy.token)
        if self.config.load_definitions is not None:
            definition_document.import_file(self, self.config.load_definitions)
        if self.config.static_shovels is not None:
            self.shovels.read_static(self.config.static_shovels)
        if self.config.cluster_name:
            self.parameters.put("cluster_name", self.config.cluster_name)
        self._offer()

    @property
    def migrations(self) -> Migrations:
        """Classic queues on their way to be quorum queues; what they are made of is loaded with the first one."""
        if self._migrations is None:
            from burrowmq.broker.migration.migrations import Migrations  # noqa: PLC0415 - see above

            self._migrations = Migrations(self)
        return self._migrations

    def _resume_migrations(self) -> None:
        if any(name.startswith(MIGRATION_NOTE) for name in self.parameters.values):
            self.migrations.resume()

    def _connect_engine(self) -> None:
        engine = self.engine
        engine.on_committed = self.scheduler.on_committed
        engine.on_backlog = functools.partial(self._on_behind, "backlog")
        # Acks that have arrived by now are to be in the commit: what they are for need not be written.
        engine.on_due = self.scheduler.touch
        full_disk = FullDisk(
            self.alarms, self.sessions, self.scheduler, lambda: self.engine.shortage
        )
        engine.on_space = full_disk.changed
        engine.on_queue_fault = self.queue_faults.changed
        engine.on_refused = self._on_refused
        engine.on_failed = self._on_store_failed

    def _check_store(self) -> None:
        if self.failed.done():
            raise StoreClosed(self.failed.result())

    def _post(self, callback: Callable[[], None]) -> None:
        self._loop.call_soon_threadsafe(callback)

    def _log_limits(self) -> None:
        """Say where the alarms begin and how far they are, and how many files and connections there may be."""
        limits, amount = self.monitor.limits, resources.amount
        found = self.process.machine.measure(self.config.data_dir)
        free = "unknown" if found.disk_free_bytes is None else amount(found.disk_free_bytes)
        total = amount(limits.memory_total_bytes)
        self.observer.limits_known(
            f"{amount(found.rss_bytes)} used, the watermark is {amount(limits.memory_bytes)} of {total}",
            f"{free} free, the limit is {amount(limits.disk_free_bytes)}",
            f"{resources.open_files()} open, the limit is {resources.files_max()}",
            self.process.sockets_max,
        )

    async def _let_go(self) -> None:
        """What was recovered is closed as cleanly as it was found."""
        self.monitor.stop()
        self.acceptor.close()
        self.replication.abandon()
        self.scheduler.stop()
        with contextlib.suppress(StorageError):
            await self._beside_loop(self.engine.close)

    # -- while it runs ------------------------------------------------------------------------------------------

    def make_vhost(self, name: str) -> Vhost:
        """A virtual host with its queues' world wired up."""
        return self._factory.make(name)

    @property
    def has_cluster(self) -> bool:
        """Whether there may be quorum queues."""
        return bool(self.config.cluster.urls)

    def make_new_vhost(self, name: str) -> Vhost:
        """One that somebody asks for. Raises: RefusedValue, when there are as many as may be."""
        limit = self.config.vhost_max
        if limit is not None and len(self.vhosts) >= limit:
            raise RefusedValue(f"cannot create vhost '{name}': vhost limit of {limit} is reached")
        return self.make_vhost(name)

    def forget_vhost(self, name: str) -> None:
        """Remove the files of a virtual host that is deleted."""
        self.engine.delete_vhost(name)

    def refused_in(self, epoch: int) -> frozenset[tuple[str, str]]:
        """Of which queues (virtual host, name) the disk has refused something of a commit that has just been done."""
        return self.queue_faults.refused_in(epoch)

    def vhost_made(self, vhost: Vhost) -> None:
        """A virtual host is new (not restored): give it what the configuration says it begins with."""
        self._vhost_defaults.apply(vhost, self.auth)

    @property
    def cluster_name(self) -> str:
        """The name shown to clients and operators."""
        return str(self.parameters.values.get("cluster_name") or self.name)

    def set_cluster_name(self, name: str) -> None:
        """Give the cluster another name: kept, and told to clients from now on."""
        self.parameters.put("cluster_name", name)
        self.scheduler.touch()
        self._offer()

    def _offer(self) -> None:
        self._offered = options.offered(self.config, server_properties(self.cluster_name))

    def open_session(self, peer: Peer) -> Session:
        """A connection that was accepted."""
        offered = self._offered.plain if peer.tls is None else self._offered.secure
        if peer.is_node:
            offered = self._offered.of_node
        session = Session(self._context, ServerConnection(offered), peer)
        self.sessions[session] = None
        self.on_session(session)
        self.observer.connection_accepted(session.name)
        return session

    def _forget_session(self, session: Session) -> None:
        self.sessions.pop(session, None)
        self._heartbeats.lost(session)
        if self._is_stopping and not self.sessions:
            self._are_sessions_gone.set()

    def _on_alarm(self, is_blocked: bool) -> None:
        if not is_blocked:
            for session in list(self.sessions):
                session.unblock()

    def _on_behind(self, what: str, is_behind: bool) -> None:
        """The disk takes less than is published: publishers are not read until it has caught up."""
        if is_behind:
            self.alarms.behind.add(what)
        else:
            self.alarms.behind.discard(what)
        for session in self.sessions:
            if session.wire is None:
                continue
            if is_behind and session.is_publisher:
                session.wire.pause_reading(what)
            elif not is_behind:
                session.wire.resume_reading(what)

    def _on_eased(self) -> None:
        """A queue of the cluster has caught up: who published to one is read again, and may meet another."""
        for session in self.sessions:
            if session.wire is not None:
                session.wire.resume_reading(CLUSTER)

    def _on_refused(
        self, epoch: int, names: frozenset[QueueNames], acks_of: frozenset[int]
    ) -> None:
        """Nobody is told that what the disk has refused of a commit is safe."""
        self.queue_faults.refused(epoch, names)
        # By name: a queue may be gone, or another one be in its place, since the commit was handed over.
        by_vhost: dict[str, set[str]] = {}
        for vhost, name, _ in names:
            by_vhost.setdefault(vhost, set()).add(name)
        for session in list(self.sessions):
            session.note_refused(epoch, by_vhost.get(session.vhost_name, set()), acks_of)

    def _on_store_failed(self, reason: str) -> None:
        if self.failed.done():
            return
        self.failed.set_result(reason)
        self.observer.store_failed(reason)
        self.acceptor.close()
        self.alarms.active.add("store")  # publishes that are still read are not taken
        self.scheduler.on_failed()
        # After the turn in which publishers are refused what waits for the disk.
        self._loop.call_soon(self._close_some, list(self.sessions))

    def _close_some(self, sessions: list[Session]) -> None:
        """Tell a part of the connections that the store has failed now, and the others in later turns."""
        for session in sessions[-SESSIONS_AT_ONCE:]:
            session.store_failed()
        del sessions[-SESSIONS_AT_ONCE:]
        if sessions:
            self._loop.call_soon(self._close_some, sessions)

    # -- stop ---------------------------------------------------------------------------------------------------

    async def stop(self) -> bool:
        """Stop, once; True when the store was closed cleanly."""
        has_failed = self.failed.done()
        self._is_stopping = True
        if self.import_job is not None:
            if has_failed:
                self.import_job.cancel()
            else:
                await self.import_job.stop()
        self._sweep.stop()
        self._heartbeats.stop()
        self.monitor.stop()
        await self.shovels.stop()
        self.acceptor.close()
        await self._close_sessions(
            FAILED_GRACE_S if has_failed else self.process.machine.stop_grace_s
        )
        if not has_failed:
            for vhost in self.vhosts.values():
                for queue in vhost.classic_queues():
                    queue.note_delivered()
        await self.replication.stop()
        self.scheduler.stop()
        for vhost in self.vhosts.values():
            vhost.policy_pass.end()
        try:
            await self._beside_loop(self.engine.close)
        except StorageError as error:
            if not has_failed:  # else it was said at once
                self.observer.store_failed(with_way_out(error))
            return False
        return not has_failed

    async def kill(self) -> None:
        """End as if the process were killed: connections break, what no commit has is lost, nothing is tidied up."""
        if self.import_job is not None:
            self.import_job.cancel()
        self._sweep.stop()
        self._heartbeats.stop()
        self.monitor.stop()
        self.scheduler.stop()
        self.shovels.abandon()
        self.replication.abandon()
        self.acceptor.close()
        for session in list(self.sessions):
            if isinstance(session.wire, AmqpTransport):
                session.wire.abort()
        with contextlib.suppress(StorageError):
            await self._beside_loop(self.engine.abandon)

    def forget(self) -> None:
        """In a forked child: the sockets are the parent's alone, whose end of them is to be the end."""
        self.acceptor.forget()
        for session in self.sessions:
            if isinstance(session.wire, AmqpTransport):
                with contextlib.suppress(OSError):  # it is on its way out
                    session.wire.forget()

    async def _beside_loop(self, call: Callable[[], None]) -> None:
        """Make a call that blocks. When the interpreter ends there are no new threads for it: it is made here then."""
        if self.process.machine.may_block_at_end:
            call()
            return
        try:
            job = self._loop.run_in_executor(None, call)
        except RuntimeError:
            call()
        else:
            await job

    async def _close_sessions(self, grace_s: float) -> None:
        for session in list(self.sessions):
            session.force_close(SHUTDOWN_TEXT)
        if self.sessions:
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._are_sessions_gone.wait(), grace_s)
        for session in list(self.sessions):
            if isinstance(session.wire, AmqpTransport):
                session.wire.abort()
        await asyncio.sleep(0)
