"""An engine on a simulated disk with one queue, for tests of what that queue's files hold and when."""

from __future__ import annotations

import json
from dataclasses import replace

from burrowmq.storage import record
from burrowmq.storage.engine import Engine
from burrowmq.storage.loop.queue_log import QueueLog
from burrowmq.storage.names import QueueNames, vhost_directory
from burrowmq.storage.types import StoreOptions
from tests.simulation.store_world import SilentObserver, SimDefinitions, make_message, read_all
from tests.support.sim_filesystem import SimFile, SimFileSystem
from tests.support.stored_message import FakeMessage

OPTIONS = StoreOptions(segment_entry_count=64, embed_below=200, journal_entries=100)
# Runs of ten messages and more go to the segment files at once.
DIRECT = replace(OPTIONS, journal_run_bytes=10 * (32 + 50), journal_direct_bytes=20_000)
SMALL, LARGE = 50, 500


class OneQueue:
    """An engine on a simulated disk, and its one queue."""

    def __init__(self, version: int = 1, options: StoreOptions = OPTIONS) -> None:
        self.filesystem = SimFileSystem()
        self.options = options
        self.observer = SilentObserver()
        self.rows: dict[tuple[str, str], object] = {}
        self.published = 0
        self.engine, self.log = self.open(version)

    def open(self, version: int) -> tuple[Engine, QueueLog]:
        """Start on what is there."""
        filesystem, rows = self.filesystem, self.rows
        engine = Engine(
            "/data",
            filesystem,
            self.options,
            self.observer,
            FakeMessage,
            lambda _: SimDefinitions(filesystem, rows),
        )
        self.report = engine.recover()
        engine.start_inline()
        self.engine = engine
        self.log = engine.open_queue("/", "q", durable=True, version=version)
        return self.engine, self.log

    def publish(self, count: int, size: int = SMALL, *, persistent: bool = True) -> None:
        """Publish messages and wait for them."""
        first = self.log.next_seq
        messages = [make_message(first + at, size, persistent) for at in range(count)]
        self.log.append(first, messages, None, size * count)
        self.published += count
        self.commit()

    def commit(self) -> None:
        """Hand the batch over and have it synced."""
        self.engine.require_sync()
        self.engine.hand_over()

    def settle(self) -> None:
        """Idle until nothing is left to do."""
        for _ in range(6):
            self.engine.hand_over()
            self.engine.idle()

    def crash(self, version: int = 1) -> None:
        """Kill the process and start again."""
        self.filesystem = self.filesystem.process_killed()
        self.open(version)

    def files(self) -> dict[str, int]:
        """The queue's files and their lengths."""
        directory = self.directory()
        if not self.filesystem.exists(directory):
            return {}
        return {
            name: self.filesystem.file_size(f"{directory}/{name}")
            for name in self.filesystem.listdir(directory)
            if not name.startswith(".")
        }

    def directory(self) -> str:
        """The path of the queue's directory."""
        vhost = vhost_directory("/")
        return f"/data/vhosts/{vhost}/queues/{QueueNames('/', 'q').directory}"

    def seed(self) -> int:
        """What the checksums in it start from."""
        identity = json.loads(self.filesystem.read_file("/data/STORE.json"))["identity"]
        return record.seed_of(bytes.fromhex(identity), self.directory())

    def memory_bytes(self) -> int:
        """What the queue's disk side takes in memory."""
        return self.engine.index_bytes(self.log.queue_id)

    def suffixes(self) -> set[str]:
        """The kinds of files that the queue has."""
        return {name.rpartition(".")[2] for name in self.files()}

    def file(self, name: str) -> SimFile:
        """A file of the queue, to be changed behind the store's back."""
        return self.filesystem.open(f"{self.directory()}/{name}")

    def seqs(self) -> list[int]:
        """What a reader finds."""
        return [seq for seq, _, _ in read_all(self.log, 30)]

    def damage(self, name: str, at: int, data: bytes = b"\xff") -> None:
        """Overwrite bytes of a file of the queue."""
        file = self.file(name)
        file.pwrite(data, at if at >= 0 else file.size() + at)
