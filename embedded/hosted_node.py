"""One run of a node in somebody's process, as its loop sees it: built, started, asked for things, ended.

State: the node, and its clock if that is moved by hand. Everything here is called on the loop; who calls it from
elsewhere is `in_thread`, `in_process` (whose child is another `in_thread`), or `served`, on a loop of the caller's.
The process stays the caller's: no signal handler is set, its garbage collector and its memory are left alone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING

from burrowmq.broker.machine.collector import HostsCollector
from burrowmq.broker.machine.executor import NO_THREAD
from burrowmq.broker.machine.reclaim import HostsAllocator
from burrowmq.broker.node.dissolve import dissolve
from burrowmq.broker.node.node import START_ERRORS, Node, reason_of
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.node.server_process import Machine
from burrowmq.broker.report.log import LogObserver
from burrowmq.broker.report.log_sinks import Sinks
from burrowmq.broker.rules.auth import Permission
from burrowmq.broker.sockets.listener import CannotListen, way_out
from burrowmq.broker.turn.timeline import Timeline
from burrowmq.broker.vhost.recorder import Recorder
from burrowmq.embedded.disk_faults import DiskFaults, FaultyDefinitionStore, FaultyFileSystem
from burrowmq.embedded.errors import BrokerError
from burrowmq.embedded.refusals import Refusals
from burrowmq.embedded.settings import Ports, Settings
from burrowmq.lookup import MORE_THREADS
from burrowmq.protocol.codec import Message
from burrowmq.storage.errors import StorageError

if TYPE_CHECKING:
    from burrowmq.embedded.http_api import HttpApi

STOP_GRACE_S = 0.05
"""A client in the thread that stops the broker answers nothing meanwhile, and is not waited for."""
EVERYTHING = Permission(configure=".*", write=".*", read=".*")


def no_thread(error: RuntimeError) -> BrokerError:
    """What is told where the system has no thread for it."""
    return BrokerError(f"the broker cannot start: {error}: {MORE_THREADS}")


class HostedNode:
    """A node, from its start to its end."""

    def __init__(self, settings: Settings, *, has_own_loop: bool) -> None:
        """`has_own_loop`: nothing else runs on its loop, which ends with it."""
        self._has_own_loop = has_own_loop
        self._settings = settings
        self._timeline = None if settings.now_ms is None else Timeline(settings.now_ms)
        self._node: Node | None = None
        self._ended: RunningNode | None = None
        self._api: HttpApi | None = None
        self.faults = DiskFaults()
        self.refusals = Refusals()

    async def start(self) -> Ports:
        """Start it; gives its ports. Raises BrokerError, and leaves nothing then."""
        loaded = self._settings.loaded()
        node = Node(
            loaded.config,
            LogObserver(Sinks(())),
            machine=self._machine(),
            effective=loaded.effective,
        )
        try:
            await node.start()
        except asyncio.CancelledError:
            await node.stop()  # the start goes on without us; this waits for its end
            raise
        except CannotListen as error:
            way = way_out(error.__cause__, "port= (0: one that is free)")
            raise BrokerError(f"the broker cannot start: {error}; {way}") from None
        except START_ERRORS as error:
            # The words say it all; who sees them has no command line.
            reason = reason_of(error).replace(" with --data-dir", "")
            raise BrokerError(f"the broker cannot start: {reason}") from None
        except RuntimeError as error:
            if str(error) != NO_THREAD:
                raise
            raise no_thread(error) from None
        self._node = node
        running = self.running
        self._let_in(running)
        api_port = 0
        if self._settings.has_api:
            try:
                api_port = await self._start_api(node)
            except BaseException:
                await self.stop()
                raise
        return running.acceptor.ports[0], api_port

    async def _start_api(self, node: Node) -> int:
        # Here, where it is asked for: it loads aiohttp.
        from burrowmq.embedded.http_api import HttpApi  # noqa: PLC0415

        self._api = await HttpApi.start(node, self._settings.api_port)
        return self._api.port

    def _machine(self) -> Machine:
        """What a node stands on in a process that is not its own."""
        settings = self._settings
        filesystem = FaultyFileSystem(
            self.faults, settings.data_dir if settings.is_own_directory else None
        )
        return Machine(
            filesystem=filesystem,
            definitions_at=partial(FaultyDefinitionStore, self.faults, filesystem),
            collector=HostsCollector(),
            allocator=HostsAllocator(),
            end=None,
            # Room for a full disk is of no use in a directory that goes, and takes 4 ms and 16 MB of memory in a tmpfs.
            has_ballast=not settings.is_own_directory,
            may_block_at_end=self._has_own_loop,
            is_shared=True,
            stop_grace_s=STOP_GRACE_S,
            timeline=self._timeline,
        )

    def _let_in(self, running: RunningNode) -> None:
        """A directory that was used before knows its user by another password, or not at all."""
        user, auth = self._settings.user, running.auth
        auth.set_password(user, self._settings.password)
        auth.set_tags(user, ("administrator",))
        for vhost in running.vhosts:
            auth.set_permission(vhost, user, EVERYTHING)
        for name, before in self._settings.recorded.items():
            self.record(running, name, [Message(*each) for each in before])
        running.scheduler.touch()

    def record(self, running: RunningNode, name: str, before: Sequence[Message] = ()) -> None:
        """Record what is published in a virtual host; nothing happens where that is gone."""
        vhost = running.vhosts.get(name)
        if vhost is not None:
            vhost.tracer = Recorder(vhost, running.name, running.scheduler, before)

    @property
    def user(self) -> str:
        """Who may do everything."""
        return self._settings.user

    @property
    def has_failed(self) -> bool:
        """Whether its store has failed."""
        return self._node is not None and self._node.failure is not None

    @property
    def running(self) -> RunningNode:
        """The application. Raises BrokerError when its store has failed, or when it does not run."""
        node = self._node
        if node is None or node.running is None:
            raise BrokerError("the broker does not run")
        if node.failure is not None:
            raise BrokerError(f"the broker's store has failed: {node.failure}")
        return node.running

    async def stop(self) -> bool:
        """Stop it cleanly; False when the store could not be closed so, and nobody asked for a disk that fails."""
        node = await self._leave()
        return node is None or await node.stop() or self.faults.has_struck

    async def kill(self) -> None:
        """End it as if its process were killed."""
        node = await self._leave()
        if node is not None:
            await node.kill()

    async def _leave(self) -> Node | None:
        node, self._node = self._node, None
        api, self._api = self._api, None
        self.faults.clear()
        self._ended = None if node is None else node.running
        if api is not None:
            await api.stop()
        return node

    def dissolve(self) -> None:
        """Let go of all that it was. Its loop has seen the end of it, and calls nothing of it any more."""
        ended, self._ended = self._ended, None
        if ended is not None:
            dissolve(ended)

    @property
    def timeline(self) -> Timeline:
        """Its clock. Who asks has looked whether it is one that is moved."""
        assert self._timeline is not None
        return self._timeline

    def drop(self) -> None:
        """End it without its loop, which is closed: as a killed process would, but for the files that it lets go of."""
        node, self._node = self._node, None
        if node is not None and node.running is not None:
            node.running.scheduler.stop()
            with contextlib.suppress(StorageError):
                node.running.engine.abandon()
            node.forget()

    def forget(self) -> None:
        """In a forked child: nothing of it is there any more."""
        if self._node is not None:
            self._node.forget()
        if self._api is not None:
            self._api.forget()
