"""A node in this thread with shovels in it, whose loop turns until something has come true.

State: the node bench. Callers: the tests of shovels and of what shows them. What is waited for is looked at between
two turns, so that no test waits for a time to pass.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any, Self

from pika import spec

from burrowmq.broker.definitions.parameters import clear_parameter, set_parameter
from burrowmq.broker.shovel.worker import Worker
from burrowmq.protocol.codec import join_address
from burrowmq.protocol.properties import Properties, build
from tests.support.bench.node import NodeBench

TIMEOUT_S = 20.0


class ShovelBench:
    """One node, and its shovels."""

    def __init__(self, data_dir: Path, **options: Any) -> None:
        self.bench = NodeBench(data_dir, **options)
        self.bench.disk.free_bytes = 1 << 30
        self.vhost = self.bench.node.vhosts["/"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.bench.close()

    @property
    def remote(self) -> str:
        """A URI that leads into the node by its socket."""
        return f"amqp://127.0.0.1:{self.bench.port}"

    def until(self, is_so: Callable[[], bool]) -> None:
        """Let the loop turn until something is so. Raises: TimeoutError."""

        async def turn() -> None:
            async with asyncio.timeout(TIMEOUT_S):
                while not is_so():  # noqa: ASYNC110 - what is waited for has no event of its own
                    await asyncio.sleep(0.001)

        self.bench.loop.run_until_complete(turn())

    def fill(self, name: str, *bodies: bytes, **properties: Any) -> None:
        """Messages for a queue, as if published to it by its name."""
        address = join_address(b"", name.encode())
        messages = [build(address, Properties(**properties), each) for each in bodies]
        flags, size = messages[0].flags, sum(map(len, bodies))
        queue = self.vhost.queues[name]

        def publish() -> None:
            queue.publish(messages, flags, size)
            self.bench.node.scheduler.touch()

        self.bench.perform(publish)

    def count(self, name: str) -> int:
        """Ready and unacked messages of a queue; -1 when there is none."""
        queue = self.vhost.queues.get(name)
        return -1 if queue is None else queue.ready_count + queue.unacked_count

    def bodies(self, name: str) -> list[bytes]:
        """What is in a queue, taken out."""
        client = self.bench.connect(1)
        found = []
        for _ in range(self.vhost.queues[name].ready_count):
            ((_, got),) = client.call(1, spec.Basic.Get(queue=name, no_ack=True))
            found.append(got.body)
        client.lose()
        return found

    def shovel(self, name: str = "s", **value: Any) -> None:
        """Set a shovel's parameter; underscores stand for hyphens, ends lead into this node unless they are given."""
        given = {
            "src-uri": "amqp://",
            "dest-uri": "amqp://",
            "reconnect-delay": 0.01,
            **{key.replace("_", "-"): each for key, each in value.items()},
        }
        self.bench.perform(lambda: set_parameter(self.vhost, "shovel", name, given))

    def clear(self, name: str = "s") -> None:
        """Clear it."""
        self.bench.perform(lambda: clear_parameter(self.vhost, "shovel", name))

    def worker(self, name: str = "s") -> Worker | None:
        """A shovel, if it is there."""
        found = self.bench.node.shovels.found
        return None if found is None else found.workers.get(("/", name))

    def state(self, name: str = "s") -> str:
        """Its state, empty when it is gone."""
        worker = self.worker(name)
        return "" if worker is None else worker.state
