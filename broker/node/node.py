"""The node: the process that hosts the application, and what of it is there whether the application runs or not.

State owned: the lock on the data directory, the running application (`broker.node.running`), whether somebody asked
for the end. Started, waited for and stopped by `broker.__main__`; management asks it for the running application.
"""

from __future__ import annotations

import asyncio
import ssl

from burrowmq.broker.machine import resources
from burrowmq.broker.node.data_directory import DataDirectory
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.node.server_process import Machine, ServerProcess
from burrowmq.broker.report.log import LogObserver
from burrowmq.config.schema import NodeConfig
from burrowmq.config.tls import TlsConfig, make_context


class Underprovisioned(Exception):
    """There is too little memory, disk or file descriptors to start with; the text says how much is missing."""


class Node:
    """One broker's process."""

    def __init__(
        self,
        config: NodeConfig,
        observer: LogObserver,
        config_files: tuple[str, ...] = (),
        machine: Machine | None = None,
    ) -> None:
        self.process = ServerProcess(
            config=config,
            observer=observer,
            config_files=config_files,
            machine=machine or Machine(),
        )
        self.running: RunningNode | None = None
        self._directory = DataDirectory(config.data_dir)
        self._stop_requested = asyncio.Event()

    async def start(self) -> None:
        """Recover and accept connections. A start that fails lets go of everything, so that it can be tried again.

        Raises: CannotListen, DataDirectoryLocked, DataDirectoryUnusable, ImportRefused, StorageError, Underprovisioned.
        """
        self._directory.lock()
        try:
            self._check_provision()
            running = RunningNode(self.process, asyncio.get_running_loop())
            await running.start()
        except BaseException:
            self._directory.unlock()
            raise
        self.running = running

    async def stop(self) -> bool:
        """Stop; True when the store was closed cleanly. Harmless when stopped."""
        running, self.running = self.running, None
        if running is None:
            return True
        is_clean = await running.stop()
        self._directory.unlock()
        self.process.observer.node_stopped(self.process.name)
        return is_clean

    def announce(self, process_seconds: float) -> None:
        """Log that the node is ready, with the time since the process began."""
        process = self.process
        process.observer.node_started(process.name, process.codec_name, process_seconds)

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
