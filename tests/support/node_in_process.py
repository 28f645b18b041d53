"""A node on a loop of this process, with real files and sockets, for one test step."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pika

from burrowmq.broker.node.node import Node
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.node.server_process import Machine
from burrowmq.config.schema import NodeConfig
from burrowmq.config.units import Endpoint
from tests.support.bench.observer import RecordingObserver
from tests.support.collector import IdleCollector
from tests.support.ports import free_port


def config(tmp_path: Path, **options: Any) -> NodeConfig:
    """A node that listens on one port, `port` or a free one."""
    endpoint = Endpoint("127.0.0.1", options.pop("port", None) or free_port())
    return NodeConfig(
        node_name="rabbit@test", data_dir=str(tmp_path / "data"), listeners=(endpoint,), **options
    )


def with_node(found: NodeConfig, step: Callable[[Node], Awaitable[None]]) -> RecordingObserver:
    """Start a node, take a step, stop it twice; what it told meanwhile."""
    observer = RecordingObserver()

    async def serve() -> None:
        node = Node(found, observer, machine=Machine(collector=IdleCollector()))  # type: ignore[arg-type]
        await node.start()
        try:
            await step(node)
        finally:
            await node.stop()
            await node.stop()

    asyncio.run(serve())
    return observer


def with_running(
    found: NodeConfig, step: Callable[[RunningNode], Awaitable[None]]
) -> RecordingObserver:
    """The same for the application in it."""

    async def on_running(node: Node) -> None:
        assert node.running is not None
        await step(node.running)

    return with_node(found, on_running)


@contextlib.contextmanager
def client(found: NodeConfig) -> Iterator[pika.channel.Channel]:
    """A channel of a client that connects to it."""
    parameters = pika.ConnectionParameters(
        found.listeners[0].host, found.listeners[0].port, blocked_connection_timeout=10
    )
    connection = pika.BlockingConnection(parameters)
    try:
        yield connection.channel()
    finally:
        if connection.is_open:
            connection.close()


async def in_thread(step: Callable[[], Any]) -> Any:
    """Run a client's blocking step beside the node's loop."""
    return await asyncio.get_running_loop().run_in_executor(None, step)
