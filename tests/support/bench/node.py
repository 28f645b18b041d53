"""A whole node in this thread: the real `Node` and what runs in it, on a loop that turns when the test says so.

State: the loop, the node, its machine and its clients. Only the machine is the bench's: files and rows in memory,
batches that are on disk as soon as they are handed over, figures of memory and disk that the test sets. One socket
listens, on a port that was free. Callers: tests of what reads and changes a node (inspect, management, cli).
Invariants: the loop stands still between steps, unless `tests.support.served` runs it in a thread of its own: then
steps are taken there, and `perform` waits for them all the same.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar, cast

from pika import spec

from burrowmq.broker.machine.resources import Measurement
from burrowmq.broker.node.node import Node
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.node.server_process import Machine
from burrowmq.broker.peer.wire import Peer
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.broker.session.session import Session
from burrowmq.config.schema import LoginConfig, NodeConfig, ResourceConfig
from burrowmq.config.units import Endpoint
from burrowmq.storage.engine import Engine
from burrowmq.storage.types import Post
from tests.support.bench.client import LOCAL, Client
from tests.support.bench.observer import RecordingObserver
from tests.support.collector import IdleCollector
from tests.support.counting_entropy import CountingEntropy
from tests.support.memory_definitions import MemoryDefinitionStore
from tests.support.ports import free_port
from tests.support.sim_filesystem import SimFileSystem

T = TypeVar("T")
TIMEOUT_S = 20.0


@dataclass
class Figures:
    """What the machine says of itself."""

    rss_bytes: int = 100_000_000
    disk_free_bytes: int = 10_000_000_000
    given_back: int = 0
    """How often unused memory was given back."""

    def unused_bytes(self) -> tuple[int, int]:
        """Nothing lies unused."""
        return 0, 0

    def measure(self, _: str) -> Measurement:
        """One look."""
        return Measurement(rss_bytes=self.rss_bytes, disk_free_bytes=self.disk_free_bytes)

    def give_back(self) -> None:
        """Count."""
        self.given_back += 1


class NodeBench:
    """One node that has started; `close` stops it.

    It checks its invariants after each turn; `close` fails if one is broken.
    """

    def __init__(
        self,
        data_dir: Path,
        port: int | None = None,
        *,
        has_disk_thread: bool = False,
        **options: Any,
    ) -> None:
        """Commits are applied at once in the loop's thread, or by the disk thread as in a real node."""
        self.loop = asyncio.new_event_loop()
        self.disk = SimFileSystem(strict=False)
        self.disk.free_bytes = (
            12 << 20
        )  # too small for the ballast of a store: writing that takes longest of all
        self.store = MemoryDefinitionStore(self.disk)
        self.figures = Figures()
        self.collector = IdleCollector()
        self.observer = RecordingObserver()
        self.clients: list[Client] = []
        self.port = port or free_port()
        config = NodeConfig(
            node_name="rabbit@test",
            data_dir=str(data_dir),
            listeners=(Endpoint("127.0.0.1", self.port),),
            busy_wait="off",
            resources=ResourceConfig(memory_total_bytes=1_000_000_000, start_check="warn"),
            login=LoginConfig(failed_delay_ms=0),
        )
        machine = Machine(
            filesystem=self.disk,
            definitions_at=self._open_store,
            start_store=_start_threads if has_disk_thread else _start_inline,
            measure=self.figures.measure,
            allocator=self.figures,
            collector=self.collector,
            entropy=CountingEntropy(),
            end=lambda _: None,  # `close` says what was broken
        )
        self.host = Node(
            replace(config, **options),
            cast("Any", self.observer),
            ("/etc/rabbitmq/rabbitmq.conf",),
            machine,
        )
        self.loop.run_until_complete(self.host.start())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Lose the clients and stop the node."""
        self.lose_clients()
        self.loop.run_until_complete(self.host.stop())
        self.loop.run_until_complete(self.loop.shutdown_default_executor())
        self.loop.close()
        broken = self.observer.named("invariant_broken")
        assert not broken, broken

    @property
    def node(self) -> RunningNode:
        """The running application."""
        assert self.host.running is not None
        return self.host.running

    def _open_store(self, _: str) -> MemoryDefinitionStore:
        """Of each start its own; `store` is the last one."""
        self.store = self.store.opened_again()
        return self.store

    def lose_clients(self) -> None:
        """Their sockets are gone; a stop that finds one waits seconds for its answer, which no client of a bench gives."""
        for client in self.clients:
            if client.session.wire is not None:
                client.lose()

    def settle(self) -> None:
        """Take turns until the disk has answered whatever it was asked."""

        async def settled() -> None:
            engine, scheduler = self.node.engine, self.node.scheduler
            while not (engine.is_idle() and scheduler.is_quiet):  # noqa: ASYNC110 - a read tells its queue only
                await asyncio.sleep(0)

        self.loop.run_until_complete(asyncio.wait_for(settled(), TIMEOUT_S))

    def run_short_of_memory(self) -> None:
        """Use more than the watermark allows, and have the monitor look."""
        self.figures.rss_bytes = self.node.monitor.limits.memory_bytes + 1
        self.perform(self.node.monitor.look)

    # -- steps --------------------------------------------------------------------------------------------------

    def perform(self, step: Callable[[], T]) -> T:
        """Take a step on the loop, and let turns end until nothing moves; a commit that may wait is not waited for."""

        async def taken() -> T:
            result = step()
            turns = -1
            while turns != self.node.scheduler.turns:
                turns = self.node.scheduler.turns
                if self.node.engine.may_wait:
                    self.node.engine.hand_over()
                for _ in range(3):  # a turn may be put off to the next pass
                    await asyncio.sleep(0)
            return result

        if self.loop.is_running():
            return asyncio.run_coroutine_threadsafe(taken(), self.loop).result(TIMEOUT_S)
        return self.loop.run_until_complete(taken())

    def open_session(self, peer: Peer) -> Session:
        """A connection that was accepted."""
        return self.perform(lambda: self.node.open_session(peer))

    def socket(self, peer: Peer = LOCAL) -> Client:
        """A connection that has sent nothing yet."""
        self.clients.append(Client(self, peer))
        return self.clients[-1]

    def connect(
        self,
        *channels: int,
        user: str = "guest",
        vhost: str = "/",
        peer: Peer = LOCAL,
        **properties: Any,
    ) -> Client:
        """An open connection with these channels open; `capabilities` are among its properties."""
        client = self.socket(peer)
        client.open(properties.pop("capabilities", None), user=user, vhost=vhost, **properties)
        for channel in channels:
            client.call(channel, spec.Channel.Open())
        return client

    def queue(self, name: str = "q", *, vhost: str = "/", **declaration: Any) -> Queue:
        """Declare a queue, durable unless `declaration` says otherwise."""
        wanted = QueueDeclaration(name=name, **{"durable": True, **declaration})

        def declare() -> Queue:
            self.node.scheduler.touch()
            return self.node.vhosts[vhost].declare_queue(wanted, declaration.get("owner"))

        return self.perform(declare)


def _start_threads(engine: Engine, post: Post) -> None:
    """What is handed over is applied by the disk thread."""
    engine.start(post)


def _start_inline(engine: Engine, _: object) -> None:
    """What is handed over is applied at once, in the loop's own thread."""
    engine.start_inline()
