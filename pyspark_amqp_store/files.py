"""The files of one data directory or backup: which there are, and reading from them.

State: what was found when a `Store` was made, and for the shared segments the tables that were read so far (at most
TABLES_MAX). Called on the driver to plan, and by each task on a `Store` of its own.

A live node compacts and deletes while we read. Slots keep their numbers then, so a segment file that disappeared is
looked for under its new name; what is found nowhere was acknowledged (`Gone`). In a backup nothing disappears.

Invariants: opens files for reading only; holds at most FILES_MAX of them open.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final, NamedTuple

from pyspark_amqp_store import formats as f
from pyspark_amqp_store import index_v1 as v1
from pyspark_amqp_store.commit_log import Disk
from pyspark_amqp_store.indexes import KIND_SHARED, IndexFile, parse_index
from pyspark_amqp_store.segments import (
    TRAILER_SIZE,
    SlotTable,
    check_segment_header,
    parse_seal,
    scanned_tables,
    seal_offset,
)

TABLES_MAX: Final = 128
FILES_MAX: Final = 32
FORMAT: Final = 3
"""The newest of the whole store; 1 is from before version 0.1.0, 3 has a commit log."""
_WITH_LOG: Final = 3
_READ_GAP: Final = 16 * 1024
_READ_MAX: Final = 4 << 20
_ATTEMPTS: Final = 3
TRANSIENT_SEGMENTS: Final = 1 << 30
"""From this number on segments are those of transient messages."""
_FILES: Final = (".qi", ".qs", ".idx", ".jif")


class Gone(Exception):
    """A file disappeared while it was read: a live node no longer needs it."""


@dataclass(frozen=True, slots=True)
class QueueFiles:
    """One directory of a queue; with priorities it has one for each level."""

    vhost: str
    name: str
    level: int
    vhost_directory: str
    directory: str
    indexes: tuple[int, ...]
    """Numbers of the index segments that have files, in order; journals may name more."""
    size_bytes: int
    has_version_1: bool = False
    """It has journals or index files of version 1."""


class SharedFile(NamedTuple):
    """A segment file of a shared store."""

    path: str
    segment: int
    generation: int


class Segments(NamedTuple):
    """What one segment file holds: where its records end, whether a seal says so, and its tables."""

    path: str
    end: int
    is_sealed: bool
    tables: dict[int, SlotTable]


class Store:
    """A data directory or a backup, opened for reading."""

    def __init__(self, root: str) -> None:
        """Raises: BadStore when it is neither."""
        self.root = os.path.abspath(root)
        self._rest = self._rest_mark()  # before anything else is looked at
        self.is_backup = os.path.exists(f"{self.root}/BACKUP.json")
        if os.path.exists(f"{self.root}/INCOMPLETE"):
            raise f.BadStore(f"{root} is a backup that was not finished")
        try:
            text = f.parse_record(Path(self.root, "STORE.json").read_bytes())
            self.identity = bytes.fromhex(text["identity"])
            self.limits = {name: value for name, value in text.items() if isinstance(value, int)}
            # A takeover that was cut off leaves names of format 1.
            self.format = 1 if text.get("taking_over") else int(text["format"])
        except FileNotFoundError as error:
            raise f.BadStore(
                f"{root} has no STORE.json: no data directory and no backup"
            ) from error
        except OSError as error:
            raise f.BadStore(f"{root}/STORE.json cannot be read: {error.strerror}") from error
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise f.BadStore(
                f"{root}/STORE.json cannot be read: {error!r}; restore that file"
            ) from error
        if not 1 <= self.format <= FORMAT:
            raise f.BadStore(f"{root}/STORE.json: format {self.format} is newer than this reader")
        try:
            self.disk = Disk(self.root, self.identity if self.format >= _WITH_LOG else None)
        except (OSError, ValueError) as error:
            raise f.BadStore(f"{root}: the commit log cannot be read: {error}") from error

    @property
    def is_still(self) -> bool:
        """Whether nothing has gone since this was opened: a backup, or a directory between a clean stop and a start."""
        return self.is_backup or (self._rest is not None and self._rest_mark() == self._rest)

    def _rest_mark(self) -> tuple[int, int] | None:
        """Which clean stop was the last thing that happened here; a start removes the file before it does anything."""
        try:
            found = os.stat(f"{self.root}/CLEAN")
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns

    def queues(
        self, vhosts: Iterable[str] | None = (), names: Iterable[str] | None = ()
    ) -> list[QueueFiles]:
        """Return the durable queues that have messages on disk, by vhost, name and level.

        A queue whose name file is damaged or missing is found where it is one of these, else shown by its directory.
        """
        found = []
        for vhost, known in self.vhosts(vhosts):
            for directory in self.disk.directories(f"{vhost}/queues"):
                queue = _queue(self.disk, vhost, directory, self.format, (known, names or ()))
                if queue is not None:
                    found.append(queue)
        return sorted(found, key=lambda queue: (queue.vhost, queue.name, queue.level))

    def vhosts(self, names: Iterable[str] | None = ()) -> list[tuple[str, str]]:
        """Return (directory, name) of each vhost; one that nothing names, nor these do, goes by its directory."""
        return [
            (directory, self._vhost_name(directory, names or ()))
            for directory in self.disk.directories(f"{self.root}/vhosts")
        ]

    def _vhost_name(self, directory: str, names: Iterable[str]) -> str:
        own = os.path.basename(directory)
        try:
            said = Path(directory, ".vhost_name").read_text(encoding="utf-8", errors="replace")
        except OSError:
            said = ""
        for name in (said, *names):
            if f.directory_name(name) == own:
                return name
        for queue in self.disk.directories(f"{directory}/queues"):
            found = _names_in(self.disk, queue, self.format)
            if found is not None and f.directory_name(found.vhost) == own:
                return found.vhost
        return own

    def index(
        self, queue: QueueFiles, number: int, journals: v1.Journals | None = None
    ) -> IndexFile | None:
        """Return an index segment; None when it is gone or its header is damaged.

        Of two files for one segment the higher generation counts. `journals` were read before. Raises: BadStore.
        """
        path, old_path = f"{queue.directory}/{number}.qi", v1.segment_path(queue.directory, number)
        old_data, data = self._read(old_path), self._read(path)
        found = None
        if data is not None:
            found = parse_index(data, path, self.identity, self.queue_seed(queue), number)
            if old_data is None:
                return found
        if journals is None:
            journals = self.journals(queue)
        entry_count = int(self.limits.get("queue_index_segment_entry_count", 16384))
        old = journals.index(number, entry_count, old_data or b"", old_path, self.identity)
        if found is None or old is None:
            return old
        is_newer = found.generation >= old.generation
        return found if is_newer and self._has_store(queue, found) else old

    def _has_store(self, queue: QueueFiles, index: IndexFile) -> bool:
        """Whether the store that an index names is there, or is not needed."""
        path = self.store_path(queue, index.number, index.generation)
        return all(
            index.kinds[place] == KIND_SHARED for place in index.places(is_acked_too=False)
        ) or self.disk.exists(path)

    def _read(self, path: str) -> bytes | None:
        try:
            return self.disk.read(path)
        except FileNotFoundError:
            return None

    def journals(self, queue: QueueFiles) -> v1.Journals:
        """Return what a queue's journals say now. Raises: BadStore, OSError."""
        seed = self.queue_seed(queue)
        return v1.Journals(
            self.disk, queue.directory, self.identity, seed, is_complete=self.is_backup
        )

    def segment_numbers(self, queue: QueueFiles) -> list[int]:
        """Return the index segments of a queue, those that only a journal names too. Raises: BadStore, OSError."""
        if not queue.has_version_1:
            return list(queue.indexes)
        return sorted({*queue.indexes, *self.journals(queue).segments()})

    def body_path(self, queue: QueueFiles, index: IndexFile, place: int) -> str:
        """Return the path of the file that a message's own body is in."""
        if index.journals is None:
            return self.store_path(queue, index.number, index.generation)
        journal = index.journals[place]
        if journal:
            return v1.journal_path(queue.directory, journal)
        return v1.segment_path(queue.directory, index.number)

    def queue_seed(self, queue: QueueFiles) -> int:
        """Return what the checksums of a queue's own files start from."""
        return f.seed_of(self.identity, os.path.basename(queue.directory))

    def store_path(self, queue: QueueFiles, number: int, generation: int) -> str:
        """Return the path of an index segment's own store."""
        name = f"{number}.g{generation}.qs" if generation else f"{number}.qs"
        return f"{queue.directory}/{name}"

    def relative(self, path: str) -> str:
        """Return a path as it is shown."""
        return os.path.relpath(path, self.root)


def _names_in(disk: Disk, directory: str, store_format: int) -> f.Names | None:
    """Return whose a directory is, as the file in it says; None when that is damaged, missing or another's."""
    try:
        names = f.parse_names(disk.read(f"{directory}/.queue_name"), store_format)
    except FileNotFoundError:
        return None
    is_right = names is not None and names.are_of(os.path.basename(directory), store_format)
    return names if is_right else None


def _queue(
    disk: Disk,
    vhost_directory: str,
    directory: str,
    store_format: int,
    known: tuple[str, Iterable[str]],
) -> QueueFiles | None:
    """Return the files of a queue; None when it is gone. `known`: its vhost, and names that it may have."""
    names = _names_in(disk, directory, store_format)
    try:
        entries = disk.sizes(directory)
    except FileNotFoundError:
        return None
    if names is None and not any(name.endswith(_FILES) for name, _ in entries):
        return None  # one that is being made, or goes
    indexes = {
        int(stem)
        for stem, _, suffix in (name.partition(".") for name, _ in entries)
        if suffix in ("qi", "idx") and stem.isdecimal()
    }
    if names is None:
        names = _presumed(os.path.basename(directory), store_format, known)
    size_bytes = sum(size for _, size in entries)
    has_version_1 = any(name.endswith((".jif", ".idx")) for name, _ in entries)
    return QueueFiles(
        *names, vhost_directory, directory, tuple(sorted(indexes)), size_bytes, has_version_1
    )


def _presumed(own: str, store_format: int, known: tuple[str, Iterable[str]]) -> f.Names:
    """Return whose a directory is that no file names: a damaged name costs nothing else."""
    vhost, candidates = known
    digits = own.partition("-")[2]
    level = int(digits) if digits.isdecimal() else 0
    for name in candidates:
        # In a store of format 1 no directory says its level.
        for at in range(256) if store_format == 1 else (level,):
            names = f.Names(vhost, name, at)
            if names.are_of(own, store_format):
                return names
    return f.Names(vhost, own, level)


class OpenFiles:
    """Files that are open for reading, the least recently used closed first."""

    def __init__(self, disk: Disk) -> None:
        self._disk = disk
        self._open: OrderedDict[str, int] = OrderedDict()

    def read(self, path: str, size: int, offset: int) -> bytes:
        """Return up to `size` bytes. Raises: FileNotFoundError, OSError."""
        small = self._disk.small_file(path)
        if small is not None:
            return small[offset : offset + size]
        descriptor = self._open.get(path)
        if descriptor is None:
            descriptor = self._open[path] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            if len(self._open) > FILES_MAX:
                os.close(self._open.popitem(last=False)[1])
        self._open.move_to_end(path)
        return os.pread(descriptor, size, offset)

    def size(self, path: str) -> int:
        """Return a file's length. Raises: FileNotFoundError, OSError."""
        small = self._disk.small_file(path)
        if small is not None:
            return len(small)
        self.read(path, 0, 0)
        return os.fstat(self._open[path]).st_size

    def close(self) -> None:
        """Close all."""
        while self._open:
            os.close(self._open.popitem()[1])

    def read_ranges(
        self, path: str, ranges: Sequence[tuple[int, int]]
    ) -> Iterator[tuple[int, memoryview, int]]:
        """Yield (position in `ranges`, buffer, offset in it), neighbours with one read. Raises: OSError."""
        first = 0
        while first < len(ranges):
            start, end = ranges[first]
            last = first + 1
            while last < len(ranges):
                at, past = ranges[last]
                if not end <= at <= end + _READ_GAP or past - start > _READ_MAX:
                    break
                end = past
                last += 1
            data = memoryview(self.read(path, end - start, start))
            for position in range(first, last):
                yield position, data, ranges[position][0] - start
            first = last


class SharedStore:
    """A shared store of one vhost: that of persistent messages, or that of transient ones, which ends with the node."""

    def __init__(
        self, store: Store, vhost_directory: str, files: OpenFiles, *, is_transient: bool = False
    ) -> None:
        kind = "transient" if is_transient else "persistent"
        self._directory = f"{vhost_directory}/msg_store_{kind}"
        self._identity = store.identity
        self._seed = f.seed_of(store.identity)
        self._files = files
        self._loaded: OrderedDict[str, Segments] = OrderedDict()
        self._listed: list[SharedFile] = []
        self._growing: tuple[str, int, Segments] | None = None

    @property
    def seed(self) -> int:
        """What its checksums start from."""
        return self._seed

    def files(self) -> list[SharedFile]:
        """Return the segment files, newest generation first for each number."""
        found = []
        try:
            names = os.listdir(self._directory)
        except FileNotFoundError:
            return []
        for name in names:
            number, _, rest = name.partition(".g")
            generation, _, suffix = rest.partition(".")
            if suffix == "seg" and number.isdecimal() and generation.isdecimal():
                found.append(SharedFile(f"{self._directory}/{name}", int(number), int(generation)))
        return sorted(found, key=lambda file: (file.segment, -file.generation))

    def forget_files(self) -> None:
        """A file has gone whose tables were read before: look again at what is there."""
        self._listed = self.files()
        there = {file.path for file in self._listed}
        for path in [path for path in self._loaded if path not in there]:
            del self._loaded[path]

    def load(self, file: SharedFile) -> Segments:
        """Return what a file holds. Raises: BadStore, FileNotFoundError, OSError."""
        known = self._loaded.get(file.path)
        if known is not None:
            self._loaded.move_to_end(file.path)
            return known
        size = self._files.size(file.path)
        check_segment_header(
            self._files.read(file.path, f.HEADER_SIZE, 0), file.path, self._identity
        )
        found = self._sealed(file.path, size)
        if found is None:
            return self._scanned(file.path, size)
        self._loaded[file.path] = found
        if len(self._loaded) > TABLES_MAX:
            self._loaded.popitem(last=False)
        return found

    def _scanned(self, path: str, size: int) -> Segments:
        """Return what a file without a seal holds; the last one is kept as long as it does not grow."""
        if self._growing is not None and self._growing[:2] == (path, size):
            return self._growing[2]
        data = self._files.read(path, size, 0)
        end, tables = scanned_tables(memoryview(data), self._seed)
        found = Segments(path, end, False, tables)
        self._growing = path, size, found
        return found

    def _sealed(self, path: str, size: int) -> Segments | None:
        trailer = self._files.read(path, TRAILER_SIZE, max(0, size - TRAILER_SIZE))
        offset = seal_offset(trailer, size)
        if offset is None:
            return None
        parsed = parse_seal(self._files.read(path, size - offset, offset), size, self._seed)
        return None if parsed is None else Segments(path, parsed[0], True, parsed[1])

    def ranges(
        self, segment: int, slots: Sequence[int]
    ) -> tuple[Segments, list[tuple[int, int] | None]] | None:
        """Return a segment's file and where these slots lie in it; None when the segment is gone.

        A slot that is missing from a sealed file was removed by a compaction, from another one it is damaged.

        Raises: BadStore, OSError.
        """
        for attempt in range(_ATTEMPTS):
            if attempt or not self._listed:
                self._listed = self.files()
            try:
                found = self._find(segment, max(slots))
            except FileNotFoundError:
                continue  # compacted meanwhile
            if found is not None:
                table = found.tables[segment]
                return found, [table.place(slot) for slot in slots]
        return None

    def _find(self, segment: int, highest: int) -> Segments | None:
        """Return the file that counts for a segment: the newest that has it; a compacted one needs its seal."""
        exact = [file for file in self._listed if file.segment == segment]
        others = [file for file in self._listed if file.segment < segment and file.generation]
        best: tuple[int, Segments] | None = None
        for file in exact or others:
            found = self.load(file)
            counts = segment in found.tables and (found.is_sealed or not file.generation)
            if counts and (best is None or file.generation > best[0]):
                best = file.generation, found
        if best is None and exact:
            for file in others:
                found = self.load(file)
                if segment in found.tables and found.is_sealed:
                    return found
        return best[1] if best else None
