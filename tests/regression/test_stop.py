"""A node that cannot stop cleanly stops all the same, and says so: what a node left running taught."""

from __future__ import annotations

import asyncio
import shutil
import threading
from pathlib import Path

from burrowmq.broker.node.node import Node
from burrowmq.config.schema import NodeConfig
from burrowmq.config.units import Endpoint
from tests.support.bench.observer import RecordingObserver


def test_a_stop_whose_terms_cannot_be_written_ends_and_is_reported(tmp_path: Path) -> None:
    directory = tmp_path / "data"
    found = NodeConfig(
        node_name="rabbit@test", data_dir=str(directory), listeners=(Endpoint("127.0.0.1", 0),)
    )
    observer = RecordingObserver()
    clean: list[bool] = []

    async def serve() -> None:
        node = Node(found, observer)  # type: ignore[arg-type]
        await node.start()
        while directory.exists():  # the store's threads may make a file in it meanwhile
            shutil.rmtree(directory, ignore_errors=True)
        clean.append(await node.stop())

    server = threading.Thread(target=lambda: asyncio.run(serve()), daemon=True)
    server.start()
    server.join(20)
    assert not server.is_alive()
    assert clean == [False]
    assert "store_failed" in [name for name, _ in observer.events]
