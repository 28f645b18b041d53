"""The node: the process that hosts the application, and what of it is there whether the application runs or not.

State owned: the lock on the data directory, which is held while the application runs; the running application
(`broker.node.running`); whether somebody asked for the end, and why the store failed. The application is started and
stopped any number of times, by `broker.__main__` and over the control socket, one change at a time; each start builds
another `RunningNode`.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Awaitable, Callable
from typing import Literal, TypeVar

from burrowmq.broker.definitions.document import ImportRefused
from burrowmq.broker.machine import resources
from burrowmq.broker.node.data_directory import (
    DataDirectory,
    DataDirectoryLocked,
    DataDirectoryUnusable,
)
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.node.server_process import Machine, ServerProcess
from burrowmq.broker.report.log import LogObserver
from burrowmq.broker.report.log_tail import LogTail
from burrowmq.broker.sockets.listener import CannotListen, way_out
from burrowmq.config.effective import Effective
from burrowmq.config.schema import NodeConfig
from burrowmq.config.tls import BadTls, TlsConfig, make_context
from burrowmq.storage import real_time as time
from burrowmq.storage.errors import StorageError, with_way_out

T = TypeVar("T")
State = Literal["stopped", "starting", "running", "failed", "stopping"]


class Underprovisioned(Exception):
    """There is too little memory, disk or file descriptors to start with; the text says how much is missing."""


class NodeEnded(Exception):
    """The process ends: nothing starts in it any more."""


START_ERRORS = (
    BadTls,
    CannotListen,
    DataDirectoryLocked,
    DataDirectoryUnusable,
    ImportRefused,
    NodeEnded,
    StorageError,
    Underprovisioned,
)
"""What `Node.start` raises when something outside the program is in its way; `reason_of` has the words."""


AMQP_KEYS = "listeners.tcp or listeners.ssl"


def _nothing() -> None:
    return None


def reason_of(error: Exception) -> str:
    """Why the application cannot start, and the way out as far as it is known."""
    if isinstance(error, StorageError):
        return with_way_out(error)
    if isinstance(error, CannotListen):
        return f"{error}; {way_out(error.__cause__, AMQP_KEYS)}"
    return str(error)


class Node:
    """One broker's process."""

    def __init__(
        self,
        config: NodeConfig,
        observer: LogObserver,
        config_files: tuple[str, ...] = (),
        machine: Machine | None = None,
        effective: tuple[Effective, ...] = (),
        log_tail: LogTail | None = None,
    ) -> None:
        self.process = ServerProcess(
            config=config,
            observer=observer,
            config_files=config_files,
            effective=effective,
            log_tail=log_tail or LogTail(),
            machine=machine or Machine(),
        )
        self.state: State = "stopped"
        self.failure: str | None = None
        """Why the store of the application that runs, or ran last, has failed: the process asks for its own end."""
        self.running: RunningNode | None = None
        self.on_failed: Callable[[], None] = _nothing
        """Called when the store fails: set by whoever has begun to end the process."""
        self.on_locked: Callable[[], None] = _nothing
        """Called when the data directory is this process's own, before anything is recovered."""
        self._directory = DataDirectory(config.data_dir)
        self._change = asyncio.Lock()
        self._stop_requested = asyncio.Event()
        self._is_clean = True
        self._has_ended = False

    # -- the application ----------------------------------------------------------------------------------------

    async def start(self) -> None:
        """Recover and accept connections; harmless when it runs.

        A start that fails lets go of everything, so that it can be tried again. Raises: one of START_ERRORS.
        """
        await self._in_turn(self._start)

    async def start_application(self) -> None:
        """`start`, in a process that has run for a while. Raises: one of START_ERRORS."""
        await self._in_turn(self._start_application)

    async def stop_application(self) -> bool:
        """Stop, and let go of the data directory; harmless when stopped. False when it was not a clean stop."""
        return await self._in_turn(self._stop_application)

    async def stop(self) -> bool:
        """Stop for good, once what is under way is through. False when the store was not closed cleanly."""
        return await self._in_turn(self._end)

    async def kill(self) -> None:
        """End at once, as a killed process would; the data directory may be used again."""
        self._has_ended = True
        running, self.running = self.running, None
        if running is not None:
            await running.kill()
            self._directory.unlock()
        self.state = "stopped"

    def forget(self) -> None:
        """In a forked child: let go of what came along, and leave it to the parent."""
        if self.running is not None:
            self.running.forget()
        self._directory.forget()

    async def _in_turn(self, change: Callable[[], Awaitable[T]]) -> T:
        """Make a change once the ones before are through. Who waits may give up; the change is made all the same."""

        async def make() -> T:
            async with self._change:
                return await change()

        task = asyncio.get_running_loop().create_task(make())
        task.add_done_callback(_look_at_the_end)
        return await asyncio.shield(task)

    async def _start_application(self) -> None:
        if self._stop_requested.is_set():
            raise NodeEnded("the process is about to end")
        began = time.monotonic()
        if await self._start():
            self.announce(time.monotonic() - began)
            self.process.machine.collector.settle()

    async def _start(self) -> bool:
        if self.running is not None:
            return False
        if self._has_ended:
            raise NodeEnded("the process is about to end")
        self.state, self.failure = "starting", None
        try:
            self.running = await self._start_anew()
            self.running.failed.add_done_callback(self._store_failed)
        finally:
            self.state = "stopped" if self.running is None else "running"
        return True

    async def _start_anew(self) -> RunningNode:
        self._directory.lock()
        try:
            self.on_locked()
            self._check_provision()
            running = RunningNode(self.process, asyncio.get_running_loop())
            with self.process.machine.collector.resting():
                await running.start()
        except BaseException:
            self._directory.unlock()
            raise
        self._is_clean = True
        return running

    def _store_failed(self, failed: asyncio.Future[str]) -> None:
        """The application is of no use any more: what it confirmed is found by a new process."""
        if self.running is not None and self.running.failed is failed:
            self.state, self.failure = "failed", failed.result()
            self.request_stop()
        self.on_failed()

    async def _stop(self) -> None:
        running, self.running = self.running, None
        if running is None:
            return
        self.state = "stopping"
        try:
            self._is_clean = await running.stop()
        finally:
            self._directory.unlock()
            self.state = "stopped"

    async def _stop_application(self) -> bool:
        if self.running is None:
            return True
        await self._stop()
        self.process.observer.application_stopped(self.process.name)
        self.process.machine.collector.let_go()
        self.process.machine.allocator.give_back()
        return self._is_clean

    async def _end(self) -> bool:
        if not self._has_ended:
            self._has_ended = True
            await self._stop()
            self.process.observer.node_stopped(self.process.name)
        return self._is_clean

    def _check_provision(self) -> None:
        """Refuse to start with less than it takes. Raises Underprovisioned."""
        process = self.process
        data_dir = process.config.data_dir
        found = resources.provision(data_dir, process.memory_total_bytes)
        missing = resources.shortfalls(found, data_dir)
        if missing and process.config.resources.start_check == "enforce":
            raise Underprovisioned(
                "; ".join((*missing, "start_check = warn starts it all the same"))
            )
        for text in missing:
            process.observer.configuration_warning(f"under-provisioned: {text}")

    # -- the process --------------------------------------------------------------------------------------------

    def announce(self, seconds: float) -> None:
        """Log that the node is ready, with the time that it took."""
        process = self.process
        process.observer.node_started(process.name, process.codec_name, seconds)

    def request_stop(self) -> None:
        """Ask for a clean end of the process; `wait_for_stop_request` returns."""
        self._stop_requested.set()

    async def wait_for_stop_request(self) -> None:
        """Return when somebody asked for the end."""
        await self._stop_requested.wait()

    @staticmethod
    def tls_context(options: TlsConfig) -> ssl.SSLContext:
        """What management's TLS listeners are made with."""
        return make_context(options)


def _look_at_the_end(task: asyncio.Task[T]) -> None:
    """Whoever waited has the exception; who gave up does not want it to be reported as one that nobody looked at."""
    if not task.cancelled():
        task.exception()
