"""The real engine on a simulated file system, with everything applied in the caller's thread.

Callers: tests of the engine and of what opens, copies or takes over a store.
"""

from __future__ import annotations

from dataclasses import replace

from burrowmq.storage.engine import Engine
from burrowmq.storage.loop.queue_log import QueueLog
from burrowmq.storage.types import StoreOptions
from tests.simulation.store_world import SilentObserver, SimDefinitions, make_message
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage

SMALL, LARGE = 50, 5000


def engine_on(
    filesystem: SimFileSystem, rows: dict[tuple[str, str], object] | None = None, **options: object
) -> Engine:
    """It has recovered and takes batches."""
    engine = unopened(filesystem, rows, **options)
    engine.recover()
    engine.start_inline()
    return engine


def unopened(
    filesystem: SimFileSystem, rows: dict[tuple[str, str], object] | None = None, **options: object
) -> Engine:
    """One that has not looked at its disk yet; `options` are those of the store."""
    kept = {} if rows is None else rows
    return Engine(
        "/data",
        filesystem,
        replace(StoreOptions(), **options),
        SilentObserver(),
        FakeMessage,
        lambda _: SimDefinitions(filesystem, kept),
    )


def run_of(
    first: int, count: int, size: int = SMALL, *, persistent: bool = True
) -> list[FakeMessage]:
    """Messages numbered from `first`."""
    return [make_message(first + at, size, persistent) for at in range(count)]


def publish(log: QueueLog, first: int, count: int, size: int = SMALL) -> list[FakeMessage]:
    """Append to a queue's log, without a commit."""
    messages = run_of(first, count, size)
    log.append(first, list(messages), None, count * size)
    return messages


def commit(engine: Engine) -> None:
    """Hand over what is staged, to be durable."""
    engine.require_sync()
    engine.hand_over()
