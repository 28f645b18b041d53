"""A small store in use, with the parts that the checks of the disk side compare, named as its tests need them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from burrowmq.storage.disk import invariants
from burrowmq.storage.disk.checked_writer import CheckedWriter
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.shared.store import MessageStore
from burrowmq.storage.shared.vhost_store import VhostStore
from tests.simulation.store_world import OPTIONS, ModelQueue, World, make_message


class StoreInUse:
    """Queues a and b with embedded messages; 0 is acked; three large ones, in both queues, are shared."""

    def __init__(self, index: str = "array") -> None:
        self.world = World(1, strict=True, options=replace(OPTIONS, store_index=index))
        shared = [make_message(100 + at, 300, True) for at in range(3)]
        for name in ("a", "b"):
            log = self.world.engine.open_queue("/", name, durable=True)
            self.world.queues[name] = ModelQueue(name, True, 1, log, next_seq=7)
            log.append(0, [make_message(at, 20, True) for at in range(4)], None, 80)
            log.append(4, list(shared), None, 900)
        self.world.sync()
        self.world.queues["a"].log.ack(0, 0)
        self.world.sync()

    @property
    def writer(self) -> CheckedWriter:
        found = self.world.engine._writer
        assert isinstance(found, CheckedWriter)
        return found

    @property
    def queue(self) -> QueueDisk:
        return next(iter(self.writer.queues().values()))

    @property
    def vhost(self) -> VhostStore:
        (found,) = self.writer.context.vhosts()
        return found

    @property
    def shared(self) -> MessageStore:
        return self.vhost.persistent

    @property
    def table(self) -> Any:
        (found,) = self.shared._segments.tables.values()
        return found

    def broken(self) -> list[str]:
        return [
            *invariants.of_queue(self.queue),
            *invariants.of_store(self.shared),
            *invariants.of_references(self.vhost, list(self.writer.queues().values())),
        ]
