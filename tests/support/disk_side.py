"""The disk side of a store on a simulated disk, given its commands directly: no engine, no loop, no thread.

State: the file system, what recovery found, and the writer with its jobs. Tests of `storage.disk` use it; a second one
on the same file system is the next start.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from burrowmq.storage.directory.definition_store import SqliteDefinitionStore
from burrowmq.storage.directory.recovery import StoreSetup, open_store
from burrowmq.storage.disk.jobs import DiskJobs
from burrowmq.storage.disk.writer import Writer
from burrowmq.storage.engine import Engine
from burrowmq.storage.errors import DiskFull
from burrowmq.storage.loop.staged_commit import (
    Ack,
    Append,
    Command,
    Open,
    ReadRequest,
    StagedCommit,
)
from burrowmq.storage.names import QueueNames
from burrowmq.storage.shared.vhost_store import VhostStore
from burrowmq.storage.types import JsonValue, StoreOptions
from tests.simulation.store_world import SilentObserver, SimDefinitions, make_message
from tests.support.sim_filesystem import SimFileSystem
from tests.support.sqlite_disk import connect_on
from tests.support.stored_message import FakeMessage

SMALL, LARGE = 50, 5000  # below and above the embed threshold


def messages(first: int, count: int, size: int = SMALL) -> list[FakeMessage]:
    """Persistent messages whose bodies say which they are."""
    return [make_message(first + at, size, True) for at in range(count)]


def writer_of(engine: Engine) -> Writer:
    """The disk side of an engine, for what cannot be seen from outside: the one place that knows where it is."""
    writer = engine._writer
    assert writer is not None
    return writer


class DiskSide:
    """One start of a store's disk side."""

    def __init__(
        self,
        filesystem: SimFileSystem | None = None,
        *,
        has_sqlite: bool = False,
        **options: object,
    ) -> None:
        """`has_sqlite`: definitions are in SQLite's own files on the simulated disk, not in a twin."""
        self.filesystem = filesystem or SimFileSystem()
        self.observer = SilentObserver()
        self.rows: dict[tuple[str, str], object] = {}
        self.context, self.report = open_store(
            StoreSetup(
                "/data",
                self.filesystem,
                replace(StoreOptions(), **options),  # type: ignore[arg-type]
                self.observer,
                FakeMessage,
                self._sqlite
                if has_sqlite
                else lambda _: SimDefinitions(self.filesystem, self.rows),
            )
        )
        self.writer = Writer(self.context)
        self.spaces: list[bool] = []
        self.jobs = DiskJobs(self.writer, self.spaces.append)
        self.waits: list[DiskFull] = []
        self.names = QueueNames("/", "q")  # of the queue opened last
        self._epoch = 0

    def _sqlite(self, path: str) -> SqliteDefinitionStore:
        return SqliteDefinitionStore(path, connect_on(self.filesystem), self.filesystem)

    def vhost(self, name: str = "/") -> VhostStore:
        """A vhost's shared stores."""
        return self.context.vhost(name)

    def commit(
        self,
        *commands: Command,
        sync: bool = True,
        definitions: Sequence[tuple[str, str, JsonValue]] = (),
    ) -> StagedCommit:
        """Apply these commands as one batch."""
        self._epoch += 1
        batch = StagedCommit(self._epoch, list(commands), list(definitions), sync=sync)
        for command in commands:
            batch.touched.add(command.queue_id)
            if isinstance(command, Append):
                batch.size += sum(one.size for one in command.messages)
        self.jobs.apply(batch, self.no_room)
        return batch

    def no_room(self, error: DiskFull) -> None:
        """Somebody waits for space: there is some again at once, but not for ever."""
        self.waits.append(error)
        self.filesystem.free_bytes = None
        if len(self.waits) > 5:
            raise error

    def open(self, queue_id: int = 1, name: str = "q", version: int = 2, vhost: str = "/") -> None:
        """Open a durable queue."""
        self.names = QueueNames(vhost, name)
        self.commit(Open(queue_id, self.names, True, version))

    def take_up(self, queue_id: int = 1, name: str = "q", version: int = 2) -> None:
        """Open a durable queue that the start has found."""
        self.names = QueueNames("/", name)
        self.writer.bind(queue_id, self.names)
        self.commit(Open(queue_id, self.names, True, version))

    def append(
        self, first: int, count: int, size: int = SMALL, queue_id: int = 1
    ) -> list[FakeMessage]:
        """Append messages to a queue and make them durable."""
        made = messages(first, count, size)
        self.commit(Append(queue_id, first, list(made), None))
        return made

    def ack(self, first: int, last: int, queue_id: int = 1) -> None:
        """Acknowledge a range."""
        self.commit(Ack(queue_id, first, last, None))

    def read(self, queue_id: int = 1, first: int = 0, limit: int = 1 << 40) -> list[int]:
        """The sequence numbers that a queue's reads give."""
        found: list[int] = []
        while True:
            request = ReadRequest(queue_id, first, limit, 1000, 1 << 30, lambda *_: None)
            loaded, next_seq = self.jobs.read(request)
            found += [seq for seq, _, _ in loaded]
            if next_seq <= first:
                return found
            first = next_seq

    def paths(self, ending: str) -> list[str]:
        """The files with such a name."""
        return [path for path in self.filesystem.paths() if path.endswith(ending)]
