"""Small data directories with one queue each, and what every reader of their files has to find in them.

`tests/data/queues/<case>/` is a data directory as a killed node leaves it, with `expected.json` beside its files:

    entries     [sequence number, persistent, in the shared store, payload size, expiry] of all that are not acked
    bad         entries that fail their check
    unused      files that nothing refers to
    next_seq    where the queue goes on after a start
    live        sequence numbers that a start keeps

Three readers are held to it: the walk (recovery, `burrowmq-store check`) by its tests, Spark's by its own. The files
also hold the formats to what they were when they were made. To add a case, write it below and make the directory:

    python -m tests.support.golden_queues CASE

It refuses a case that is there, and prints what the walk finds: compare that with what the case was meant to be.
"""

from __future__ import annotations

import json
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

from burrowmq.storage.engine import Engine
from burrowmq.storage.files.cache import FileCache
from burrowmq.storage.files.filesystem import OsFileSystem
from burrowmq.storage.loop.queue_log import QueueLog
from burrowmq.storage.queue.directory import QueueDirectory, directory_at
from burrowmq.storage.queue.entries import FLAG_PERSISTENT, KIND_SHARED
from burrowmq.storage.queue.found import FoundSegment
from burrowmq.storage.queue.places import slots_of
from burrowmq.storage.queue.walk import Finding, Unused, Walk
from burrowmq.storage.types import StoreOptions
from tests.simulation.store_world import SilentObserver, SimDefinitions, make_message, read_all
from tests.support.sim_filesystem import SimFileSystem
from tests.support.stored_message import FakeMessage

ROOT = Path(__file__).resolve().parents[1] / "data" / "queues"
COUNT = 64
OPTIONS = StoreOptions(
    segment_size_limit=64 * 1024,
    segment_entry_count=COUNT,
    embed_below=200,
    ballast_bytes=0,
    journal_entries=100,
)
# Runs of ten messages and more go to the segment files at once.
DIRECT = replace(OPTIONS, journal_run_bytes=10 * (32 + 50), journal_direct_bytes=20_000)
SMALL, LARGE = 50, 300


@dataclass(frozen=True)
class GoldenQueue:
    """One of them."""

    name: str
    path: Path

    @property
    def expected(self) -> dict[str, Any]:
        """What is found in it."""
        return cast("dict[str, Any]", json.loads((self.path / "expected.json").read_text()))

    @property
    def directory(self) -> Path:
        """The queue's directory."""
        (found,) = self.path.glob("vhosts/*/queues/*")
        return found

    def copy_to(self, path: Path) -> Path:
        """Give a copy that may be changed."""
        shutil.copytree(self.path, path)
        (path / "expected.json").unlink()
        return path


def golden_queues() -> list[GoldenQueue]:
    """All of them."""
    return [GoldenQueue(path.name, path) for path in sorted(ROOT.iterdir())]


def place_of(path: Path) -> QueueDirectory:
    """Give a queue's directory as the walk wants it."""
    text = json.loads((path.parents[3] / "STORE.json").read_bytes())
    cache = FileCache(OsFileSystem(), 8)
    identity = bytes.fromhex(text["identity"])
    return directory_at(str(path), identity, COUNT, cache, is_durable=True)


def open_engine(path: Path, options: StoreOptions = OPTIONS) -> Engine:
    """Start on a directory, working inline."""
    engine = Engine(
        str(path),
        OsFileSystem(),
        options,
        SilentObserver(),
        FakeMessage,
        lambda _: SimDefinitions(SimFileSystem(), {("queue", "q"): {}}),
    )
    engine.recover()
    engine.start_inline()
    return engine


def live_seqs(engine: Engine) -> list[int]:
    """What a reader finds in the queue."""
    return [seq for seq, _, _ in read_all(engine.open_queue("/", "q", durable=True), 50)]


# -- making them ---------------------------------------------------------------------------------------------------


class Filling:
    """A store that is being filled."""

    def __init__(self, path: Path, version: int, options: StoreOptions = OPTIONS) -> None:
        self.path = path
        self.engine = open_engine(path, options)
        self.log: QueueLog = self.engine.open_queue("/", "q", durable=True, version=version)

    @property
    def directory(self) -> Path:
        """The queue's directory."""
        (found,) = self.path.glob("vhosts/*/queues/*")
        return found

    def publish(
        self, count: int, size: int = SMALL, *, persistent: bool = True, expiry: int = 0
    ) -> None:
        """Publish and commit."""
        first = self.log.next_seq
        made = [make_message(first + at, size, persistent) for at in range(count)]
        self.log.append(first, made, [expiry + at for at in range(count)] if expiry else None, size)
        self.commit()

    def commit(self) -> None:
        """Make it durable."""
        self.engine.require_sync()
        self.engine.hand_over()

    def idle(self) -> None:
        """Acks into the files, journals flushed, conversion ended."""
        for _ in range(6):
            self.engine.hand_over()
            self.engine.idle()

    def stop(self) -> None:
        """Stop cleanly, then forget that: all that is left is files."""
        self.engine.close()
        for name in ("CLEAN", "terms"):
            (self.path / name).unlink(missing_ok=True)


def version_2(path: Path) -> None:
    """Small, large, transient and expiring ones in two segments, with holes."""
    filling = Filling(path, 2)
    filling.publish(30)
    filling.publish(10, LARGE, expiry=1_900_000_000_000)
    filling.publish(4, persistent=False)
    filling.publish(40, expiry=1_900_000_000_000)
    filling.log.ack_many([0, 1, 2, 17, 33, 34, 50, 83])
    filling.idle()
    filling.publish(3, LARGE)


def version_1_journal(path: Path) -> None:
    """All in the journal, acks too."""
    filling = Filling(path, 1)
    for _ in range(6):
        filling.publish(5)
    filling.publish(5, LARGE, expiry=1_900_000_000_000)
    filling.publish(2, persistent=False)
    filling.log.ack_many([0, 1, 7, 31])
    filling.commit()
    filling.engine.idle()


def version_1_flushed(path: Path) -> None:
    """Segment files, acks in them, and a journal with more."""
    filling = Filling(path, 1)
    filling.publish(90, expiry=1_900_000_000_000)
    filling.publish(6, LARGE)
    filling.log.ack_many([3, 4, 80])
    filling.idle()
    filling.log.ack_many([5, 91])
    filling.idle()
    filling.publish(7)


def version_1_direct(path: Path) -> None:
    """Runs that went to the segment files at once, beside a journal."""
    filling = Filling(path, 1, DIRECT)
    for _ in range(5):
        filling.publish(20)
        filling.publish(3)
    filling.log.ack(0, 30)
    filling.commit()
    filling.engine.idle()


def converting(path: Path) -> None:
    """Segments of both versions, and one segment in files of both: the version 2 file is newer."""
    filling = Filling(path, 1)
    filling.publish(150)
    filling.publish(10, LARGE)
    filling.log.ack_many([0, 70, 71])
    filling.stop()
    kept = {file.name: file.read_bytes() for file in filling.directory.glob("*.idx")}
    filling = Filling(path, 2)
    filling.idle()
    filling.stop()
    (filling.directory / "0.idx").write_bytes(kept["0.idx"])  # as if it was not unlinked yet
    for name in ("1.qi", "1.g1.qs"):  # as if it was not converted yet
        (filling.directory / name).unlink()
    (filling.directory / "1.idx").write_bytes(kept["1.idx"])


def conversion_without_store(path: Path) -> None:
    """Both files again; the store that the newer one names is not there: the older one counts."""
    converting(path)
    (directory,) = path.glob("vhosts/*/queues/*")
    next(directory.glob("0.g*.qs")).unlink()


def damaged_2(path: Path) -> None:
    """A bad entry, acks whose newer copy is bad, and files that an attempt to write the segment anew left."""
    filling = Filling(path, 2)
    filling.publish(100)
    filling.log.ack_many([9])
    filling.idle()
    entries_at = 64 + 2 * (32 + COUNT // 8)
    flip(filling.directory / "0.qi", entries_at + 5 * 32 + 10)
    filling.log.ack_many([70, 71])
    filling.idle()
    filling.log.ack_many([72])
    filling.idle()
    flip(filling.directory / "1.qi", 64 + 10)  # the second time it was the first copy
    (filling.directory / "0.g1.qs").write_bytes(b"left")
    (filling.directory / "0.qi.tmp").write_bytes(b"left")


def damaged_1(path: Path) -> None:
    """A block whose head is bad, a bad entry, and a header that is not whole."""
    filling = Filling(path, 1)
    filling.publish(70)
    filling.idle()
    for _ in range(4):
        filling.publish(5)
    journal = next(filling.directory.glob("*.jif"))
    block = (journal.stat().st_size - 64) // 4
    flip(journal, 64 + block + 9)
    flip(journal, 64 + 2 * block + 48 + 32 + 20)
    flip(filling.directory / "0.idx", 3)


def damaged_place_2(path: Path) -> None:
    """The disk has written an entry of the shared store to the place of another, and to its own."""
    filling = Filling(path, 2)
    filling.publish(10)
    filling.publish(10, LARGE)
    _misplace(filling.directory / "0.qi", 64 + 2 * (32 + COUNT // 8), 15, 5)


def damaged_place_1(path: Path) -> None:
    """The same in the table of a block."""
    filling = Filling(path, 1)
    filling.publish(40, LARGE)
    for _ in range(2):  # what is flushed then says that this is durable
        filling.idle()
        filling.publish(10, LARGE)
    _misplace(filling.directory / "0.idx", 64 + 48, 15, 5)


def _misplace(path: Path, entries_at: int, entry: int, place: int) -> None:
    data = bytearray(path.read_bytes())
    start, at = entries_at + 32 * entry, entries_at + 32 * place
    data[at : at + 32] = data[start : start + 32]
    path.write_bytes(bytes(data))


def torn_2(path: Path) -> None:
    """The store's end, which was not known to be durable, is cut off."""
    filling = Filling(path, 2)
    filling.publish(20)
    store = next(filling.directory.glob("0.qs"))
    with store.open("r+b") as file:
        file.truncate(store.stat().st_size - 10)


def torn_1(path: Path) -> None:
    """The journal's end is cut off, and that of a run that went to a segment file at once."""
    filling = Filling(path, 1, DIRECT)
    filling.publish(20)
    filling.publish(5)
    for name in ("0.idx", "1.jif"):
        file = filling.directory / name
        with file.open("r+b") as opened:
            opened.truncate(file.stat().st_size - 10)


def flip(path: Path, at: int) -> None:
    """Change a byte."""
    data = bytearray(path.read_bytes())
    data[at] ^= 0x10
    path.write_bytes(bytes(data))


CASES: list[Callable[[Path], None]] = [
    version_2,
    version_1_journal,
    version_1_flushed,
    version_1_direct,
    converting,
    conversion_without_store,
    damaged_2,
    damaged_1,
    damaged_place_2,
    damaged_place_1,
    torn_2,
    torn_1,
]


def walk_of(queue: GoldenQueue) -> tuple[Walk, list[Finding]]:
    """A walk over its files that has ended, and what it found."""
    names = sorted(file.name for file in queue.directory.iterdir())
    walk = Walk(place_of(queue.directory), names)
    return walk, list(walk.findings())


def found_in(queue: GoldenQueue) -> dict[str, Any]:
    """What the walk finds in a golden directory, as it is written down there."""
    walk, findings = walk_of(queue)
    segments = [one for one in findings if isinstance(one, FoundSegment)]
    entries: list[list[object]] = []
    for segment in sorted(segments, key=lambda one: one.number):
        columns = segment.columns
        entries += [
            [
                segment.number * COUNT + slot,
                columns.flags[slot] & FLAG_PERSISTENT,
                int(columns.kinds[slot] == KIND_SHARED),
                columns.payload_sizes[slot],
                columns.expiries[slot],
            ]
            for slot in slots_of(segment.present & ~segment.acked)
        ]
    return {
        "bad": sum(segment.corrupt for segment in segments),
        "unused": sorted(Path(one.path).name for one in findings if isinstance(one, Unused)),
        "next_seq": walk.next_seq,
        "entries": entries,
    }


def make(case: Callable[[Path], None]) -> None:
    """Make a case's directory and write down what the walk finds in it."""
    path = ROOT / case.__name__
    if path.exists():
        sys.exit(f"{path} is there: a golden directory is never made again")
    path.mkdir(parents=True)
    case(path)
    for name in ("ballast", "LOCK", "CLEAN", "terms"):
        (path / name).unlink(missing_ok=True)
    queue = GoldenQueue(case.__name__, path)
    found = found_in(queue)
    with tempfile.TemporaryDirectory() as copy:
        shutil.copytree(path, f"{copy}/data")
        found["live"] = live_seqs(open_engine(Path(copy, "data")))
    rows = ",\n ".join(json.dumps(row) for row in found.pop("entries"))
    text = json.dumps(found)[:-1] + ', "entries": [\n ' + rows + "\n]}\n"
    (path / "expected.json").write_text(text)
    sys.stdout.write(
        f"{case.__name__}: {json.dumps({**found, 'entries': rows.count(chr(10)) + 1})}\n"
    )


if __name__ == "__main__":
    for chosen in CASES:
        if chosen.__name__ in sys.argv[1:]:
            make(chosen)
