"""A data directory with queues in it, made by the store itself, for tests of burrowmq-store and of damage."""

from __future__ import annotations

import io
from pathlib import Path

from burrowmq.offline.streams import Streams
from burrowmq.storage.engine import Engine
from burrowmq.storage.files.filesystem import OsFileSystem
from burrowmq.storage.types import RecoveryReport, StoreOptions
from tests.simulation.store_world import SilentObserver, SimDefinitions, make_message
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage

FILE_SIZE = 64 * 1024
ENTRIES = 256
OPTIONS = StoreOptions(segment_size_limit=FILE_SIZE, segment_entry_count=ENTRIES)
SMALL, LARGE = 40, 5000  # below and above the embed threshold


class OpenedEngine(Engine):
    """An engine, and what its start has found."""

    report: RecoveryReport


def open_engine(
    path: Path,
    options: StoreOptions = OPTIONS,
    filesystem=None,
    observer: SilentObserver | None = None,
) -> OpenedEngine:
    """A recovered engine that works inline."""
    engine = OpenedEngine(
        str(path),
        filesystem or OsFileSystem(),
        options,
        observer or SilentObserver(),
        FakeMessage,
        None if filesystem is None else lambda _: SimDefinitions(SimFileSystem(), {}),
    )
    engine.report = engine.recover()
    engine.start_inline()
    return engine


def commit(engine: Engine) -> None:
    """Make what is staged durable."""
    engine.require_sync()
    engine.hand_over()


def read_all(engine: Engine, name: str) -> list[tuple[int, bytes, int]]:
    """(flags, raw, expiry) of every message of a queue of the vhost `/`, in order."""
    log = engine.open_queue("/", name, durable=True)
    found: list[tuple[int, bytes, int]] = []
    seq = 0
    while seq < log.next_seq:
        answer = log.read(seq, 100, 1 << 20, lambda *_: None)
        assert answer is not None
        found += [(seq, message.raw, expiry) for seq, message, expiry in answer[0]]
        assert answer[1] > seq
        seq = answer[1]
    return found


def make_store(
    path: Path, *, is_clean: bool = True, scale: int = 100, version: int = 2
) -> dict[str, list[bytes]]:
    """Three queues: small messages, a mix, and a second queue that shares the mix's large ones. Gives the bodies."""
    engine = open_engine(path)
    small = [make_message(at, SMALL, True) for at in range(3 * scale)]
    mixed = [make_message(1000 + at, (SMALL, LARGE)[at % 2], True) for at in range(4 * scale)]
    logs = {
        name: engine.open_queue("/", name, durable=True, version=version)
        for name in ("small", "mixed", "also")
    }
    logs["small"].append(0, small, None, 3 * scale * SMALL)
    for first in range(0, 4 * scale, scale):
        run = mixed[first : first + scale]
        size = sum(message.size for message in run)
        logs["mixed"].append(first, run, [first + 1] * scale, size)
        logs["also"].append(first, run, None, size)
        commit(engine)
    logs["small"].ack(0, scale - 1)
    logs["mixed"].ack_many(list(range(0, 4 * scale, 4)))
    logs["small"].set_delivered(scale + scale // 2)
    commit(engine)
    if is_clean:
        engine.close()
    else:
        engine.idle()
    return {
        "small": [message.raw for message in small[scale:]],
        "mixed": [message.raw for at, message in enumerate(mixed) if at % 4],
        "also": [message.raw for message in mixed],
    }


def bodies_of(path: Path, options: StoreOptions = OPTIONS) -> dict[str, list[bytes]]:
    """Start on a directory, read everything and stop cleanly."""
    engine = open_engine(path, options)
    found = {
        name: [raw for _, raw, _ in read_all(engine, name)] for name in ("small", "mixed", "also")
    }
    engine.close()
    return found


def streams() -> Streams:
    """Streams that keep what is written."""
    return Streams(io.StringIO(), io.StringIO())
