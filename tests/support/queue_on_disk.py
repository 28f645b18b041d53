"""One queue's disk side on a simulated disk, without an engine: for tests of the objects that own its files."""

from __future__ import annotations

from burrowmq.storage.files.cache import FileCache
from burrowmq.storage.loop.staged_commit import ReadRequest
from burrowmq.storage.names import QueueNames
from burrowmq.storage.queue.directory import QueueDirectory, directory_at
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.journal_limits import JournalLimits
from burrowmq.storage.queue.read import fetch_records, plan_read
from burrowmq.storage.shared.vhost_store import VhostStore
from tests.simulation.store_world import make_message
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage

PATH = "/q"
COUNT = 64
IDENTITY = b"i" * 16


def place_on(
    filesystem: SimFileSystem,
    path: str = PATH,
    *,
    entry_count: int = COUNT,
    is_durable: bool = True,
) -> QueueDirectory:
    """A queue's directory, made."""
    filesystem.mkdir(path)
    cache = FileCache(filesystem, 8)
    return directory_at(path, IDENTITY, entry_count, cache, is_durable=is_durable)


def queue_on(
    filesystem: SimFileSystem,
    version: int = 2,
    *,
    limits: JournalLimits | None = None,
    is_durable: bool = True,
) -> QueueDisk:
    """A queue of this version that has nothing yet."""
    place = place_on(filesystem, is_durable=is_durable)
    queue = QueueDisk(QueueNames("/", "q"), place, limits or JournalLimits())
    queue.set_version(version)
    return queue


def messages(
    first: int, count: int, size: int = 50, *, persistent: bool = True, handle: int = -1
) -> list[FakeMessage]:
    """Messages that say which they are; with a handle they are in the shared store, one behind the other."""
    made = [make_message(first + at, size, persistent) for at in range(count)]
    if handle >= 0:
        for at, message in enumerate(made):
            message.handle = handle + at
    return made


def seqs_of(queue: QueueDisk) -> list[int]:
    """The live messages."""
    base = queue.index.entry_count
    return [
        segment.number * base + slot
        for segment in queue.index
        for slot in segment.live_slots(0, base)
    ]


def bodies_of(queue: QueueDisk, store: VhostStore | None = None) -> list[bytes | None]:
    """What a reader finds of the messages that are not in the shared store."""
    found: list[bytes | None] = []
    seq = 0
    end = (queue.index.numbers[-1] + 1) * queue.index.entry_count if queue.index.numbers else 0
    while seq < end:
        plan = plan_read(queue, ReadRequest(0, seq, end, 50, 1 << 20, _unanswered))
        records, _ = fetch_records(plan, store)  # type: ignore[arg-type]
        found += [None if record is None else record[1] for record in records]
        seq = plan.next_seq
    return found


def _unanswered(*_: object) -> None:
    raise AssertionError("a plan answers nobody")


def files_in(filesystem: SimFileSystem, path: str = PATH) -> set[str]:
    """The names of the files in a directory."""
    return {name for name in filesystem.listdir(path) if not name.startswith(".")}
