"""Backups of a store that goes on working: the cut, and the copying behind it.

The cut is taken on the disk thread between two commits, under the lock of `storage.disk.jobs`: every file gets a second
name in a staging directory of the data directory, and what is in memory about files that change in place is noted
(lengths, live entries). That takes microseconds a file, and only the next commit waits for it. The copying happens on a
thread of its own, from the staged names, which no compaction, rewrite or deletion touches:

- files that never change again (sealed segments, full stores) get a name in the backup, a copy on another file system;
- files that still grow are copied up to the length that they had at the cut;
- index files are written anew: their entries as they are, and acks that say what was live at the cut, so that neither
  acknowledgements nor messages that came later count (version 1 appends both to its journal, whose length is noted);
- definitions were copied by SQLite at the cut.

The result is a data directory as a killed node leaves it, with `BACKUP.json` (docs/formats/backup.md) written last.
Until then it holds `INCOMPLETE`. State: the `Cut` of one backup; its `BackupJob` is changed by one thread at a time and
read by the loop.

Invariants: nothing in the data directory changes but the staging directory, which a start removes; no file of a
finished backup is ever written again by the node; a failure costs the backup only.
"""

from __future__ import annotations

import errno
import json
import os
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from burrowmq.records import NamedTuple, dataclass
from burrowmq.storage.directory.context import VHOST_NAME_FILE, StoreContext
from burrowmq.storage.directory.terms import (
    ENTRY_COUNT_KEY,
    STORE_FILE,
    recorded_text,
    replace_file,
)
from burrowmq.storage.errors import StorageError, error_text
from burrowmq.storage.files.cache import FileCache, parent_of
from burrowmq.storage.files.filesystem import File, FileSystem
from burrowmq.storage.files.tree import FileTree, pieces, write_pieces
from burrowmq.storage.names import NAME_FILE
from burrowmq.storage.queue.directory import directory_at
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.types import BackupJob, JsonValue

FORMAT: Final = 1
MANIFEST: Final = "BACKUP.json"
INCOMPLETE: Final = "INCOMPLETE"
STAGING: Final = ".backup"
DEFINITIONS: Final = "definitions.db"

# Between two slices of copying, so that a backup takes a share of the disk and never all of it.
_SLICE_BYTES: Final = 8 << 20
_PAUSE_S: Final = 0.005
_OPEN_FILES: Final = 4

# Waits so many seconds; gives True when the store is being closed.
Pause = Callable[[float], bool]


class BackupRefused(StorageError):
    """The backup cannot be made there, or not now."""


class _Item(NamedTuple):
    """One file: where it goes, how many of its bytes count, and how it gets there."""

    path: str  # relative to both directories
    size: int
    is_final: bool
    # Reads the file as it was, where that is not simply its first bytes.
    pieces: Callable[[File], Iterator[bytes]] | None = None


@dataclass(slots=True)
class Cut:
    """The files as they were at one moment; item n has the name n in the staging directory."""

    staging: str
    items: list[_Item]
    limits: dict[str, int]
    identity: bytes
    rescues: int = 0  # of the store, before it: another one changes entries in place


def take_cut(context: StoreContext, queues: Iterable[QueueDisk], job: BackupJob) -> Cut:
    """Give every file a second name, as it is now. Raises StorageError, and has then taken the names away again."""
    filesystem, data_dir = context.filesystem, context.data_dir
    staging = f"{data_dir}/{STAGING}"
    items: list[_Item] = []
    try:
        filesystem.rmtree(staging)
        filesystem.mkdir(staging)
        for path, item in _files(context, queues, job):
            filesystem.link(path, f"{staging}/{len(items)}")
            items.append(item)
        context.definitions.copy_to(f"{staging}/{len(items)}")
        size = filesystem.file_size(f"{staging}/{len(items)}")
        items.append(_Item(DEFINITIONS, size, is_final=False))
    except (OSError, StorageError) as error:
        discard_staging(filesystem, data_dir)
        reason = error_text(error, staging) if isinstance(error, OSError) else str(error)
        raise StorageError(f"the cut could not be taken: {reason}") from error
    job.begin(len(items), sum(item.size for item in items))
    return Cut(staging, items, dict(context.recorded.limits), context.recorded.identity)


def discard_staging(filesystem: FileSystem, data_dir: str) -> None:
    """Remove what a cut holds on to; a failure is left to the next start."""
    try:
        filesystem.rmtree(f"{data_dir}/{STAGING}")
    except OSError:
        return


def _files(
    context: StoreContext, queues: Iterable[QueueDisk], job: BackupJob
) -> Iterator[tuple[str, _Item]]:
    """Give each file's path and what becomes of it."""
    filesystem = context.filesystem
    prefix = len(context.data_dir) + 1

    def name_file(path: str) -> Iterator[tuple[str, _Item]]:
        # One that somebody has removed is not needed: what lies beside it says whose it is.
        if filesystem.exists(path):
            yield path, _Item(path[prefix:], filesystem.file_size(path), is_final=True)

    path = f"{context.data_dir}/{STORE_FILE}"
    without_log = recorded_text(replace(context.recorded, has_log=False))
    item = _Item(
        STORE_FILE, len(without_log), is_final=False, pieces=lambda _: iter((without_log,))
    )
    yield path, item
    for vhost in context.vhosts():
        yield from name_file(f"{vhost.directory}/{VHOST_NAME_FILE}")
        for path, size, is_final in vhost.persistent.cut():
            yield path, _Item(path[prefix:], size, is_final)
    for queue in queues:
        if not queue.durable or not queue.index.numbers:
            continue
        job.count_queue(sum(segment.live for segment in queue.index))
        if queue.is_made:
            yield from name_file(f"{queue.directory}/{NAME_FILE}")
        for file in queue.cut():
            yield file.path, _Item(file.path[prefix:], file.size, file.is_final, file.pieces)


# -- the copying -------------------------------------------------------------------------------------------------


def make_backup(filesystem: FileSystem, cut: Cut, job: BackupJob, pause: Pause) -> None:
    """Build the backup from a cut. Raises StorageError; the directory stays marked as incomplete then."""
    try:
        refuse_directory(filesystem, job.directory, parent_of(cut.staging))
        _prepare(filesystem, job)
        _Copying(filesystem, cut, job, pause).run()
    except OSError as error:
        raise StorageError(_reason(error, job.directory, parent_of(cut.staging))) from error
    finally:
        discard_staging(filesystem, parent_of(cut.staging))


def _reason(error: OSError, directory: str, data_dir: str) -> str:
    """What failed where, and what an operator can do about a place that is not the node's to write to."""
    text = error_text(error, directory)
    if str(error.filename or directory).startswith(f"{data_dir}/"):
        return text
    if error.errno in (errno.EACCES, errno.EPERM):
        who = f"the user who runs the node (user id {os.geteuid()})"
        return f"{text}; {who} must be able to write there"
    if error.errno == errno.EROFS:
        return (
            f"{text}; the node may only read there: systemd's unit can name it in ReadWritePaths="
        )
    return text


def refuse_directory(filesystem: FileSystem, directory: str, data_dir: str) -> None:
    """Refuse a directory that a backup must not go to. Raises BackupRefused, OSError."""
    if not directory.startswith("/"):
        raise BackupRefused(f"'{directory}' is not an absolute path")
    inside = os.path.realpath(directory) + "/"
    if inside.startswith(os.path.realpath(data_dir) + "/"):
        raise BackupRefused(f"{directory} is inside the data directory")
    if not filesystem.exists(directory):
        return
    try:
        names = filesystem.listdir(directory)
    except NotADirectoryError as error:
        raise BackupRefused(f"{directory} is not a directory") from error
    if MANIFEST in names and INCOMPLETE not in names:
        raise BackupRefused(f"{directory} holds a backup already")
    if names and INCOMPLETE not in names:
        raise BackupRefused(f"{directory} is not empty")


def _prepare(filesystem: FileSystem, job: BackupJob) -> None:
    """Make the directory, empty but for the mark that it is incomplete. Raises OSError."""
    directory, mark = job.directory, f"{job.directory}/{INCOMPLETE}"
    filesystem.mkdir(directory)
    job.is_marked = filesystem.exists(mark)
    for name in filesystem.listdir(directory):  # what an earlier attempt left
        path = f"{directory}/{name}"
        if name == INCOMPLETE:
            continue
        filesystem.rmtree(path)
        if filesystem.exists(path):
            filesystem.unlink(path)
    if not job.is_marked:
        filesystem.create(mark).close()
        job.is_marked = True
    for changed in (directory, parent_of(directory) or "/"):
        filesystem.fsync_dir(changed)


class _Copying:
    """The way from a cut to a backup."""

    def __init__(self, filesystem: FileSystem, cut: Cut, job: BackupJob, pause: Pause) -> None:
        self._filesystem = filesystem
        self._cut = cut
        self._job = job
        self._pause = pause
        self._tree = FileTree(filesystem, job.directory)
        self._since_pause = 0

    def run(self) -> None:
        job = self._job
        rows: list[JsonValue] = []
        for number, item in enumerate(self._cut.items):
            check = self._bring(f"{self._cut.staging}/{number}", item)
            self._filesystem.unlink(f"{self._cut.staging}/{number}")
            rows.append([item.path, item.size, check])
            job.count_file()
        self._tree.sync(self._tree.directories)
        job.message_count = self._count_messages()
        manifest: dict[str, JsonValue] = {
            "format": FORMAT,
            **job.labels,
            "identity": self._cut.identity.hex(),
            **self._cut.limits,
            "queues": job.queue_count,
            "messages": job.message_count,
            "bytes": job.byte_count,
            "files": rows,
        }
        text = json.dumps(manifest, indent=1).encode()
        replace_file(self._filesystem, f"{job.directory}/{MANIFEST}", text)
        self._filesystem.unlink(f"{job.directory}/{INCOMPLETE}")
        self._filesystem.fsync_dir(job.directory)

    def _count_messages(self) -> int:
        """Count what a restore brings back: of the messages that were live at the cut those that are persistent.

        Only the entries say which are, and to read them all would hold the cut up. Raises OSError.
        """
        from burrowmq.storage.queue.found import FoundSegment  # noqa: PLC0415 - a start does without
        from burrowmq.storage.queue.walk import Unreadable, Walk  # noqa: PLC0415

        filesystem, cut = self._filesystem, self._cut
        cache = FileCache(filesystem, _OPEN_FILES, 0, is_checked=True)
        count = 0
        for queue in sorted({parent_of(one.path) for one in cut.items if "/queues/" in one.path}):
            path, entry_count = f"{self._job.directory}/{queue}", cut.limits[ENTRY_COUNT_KEY]
            place = directory_at(path, cut.identity, entry_count, cache, is_durable=False)
            for finding in Walk(place, filesystem.listdir(path), is_clean=True).findings():
                if isinstance(finding, Unreadable) and isinstance(finding.error, OSError):
                    raise finding.error
                if isinstance(finding, FoundSegment):
                    count += finding.live.bit_count()
                    self._rest(len(finding.data))
        return count

    def _bring(self, staged: str, item: _Item) -> int | None:
        """Bring one file; gives its CRC-32 unless it was only given a name."""
        target = f"{self._job.directory}/{item.path}"
        self._tree.make_directory(parent_of(target))
        if item.is_final:
            try:
                self._filesystem.link(staged, target)
            except OSError as error:
                if error.errno not in (errno.EXDEV, errno.EPERM, errno.EMLINK):
                    raise
            else:
                self._take(self._filesystem.open(target), item.size, is_linked=True)
                return None
        source, file = self._filesystem.open(staged), self._filesystem.create(target)
        bodies = item.pieces(source) if item.pieces else pieces(source, item.size)
        size, check = write_pieces(file, bodies, self._rest)
        if size != item.size:
            raise StorageError(f"{item.path} has {size} bytes instead of {item.size}")
        self._take(file, item.size, is_linked=False)
        return check

    def _take(self, file: File, size: int, *, is_linked: bool) -> None:
        self._job.count_bytes(size, is_linked=is_linked)
        self._rest(0)
        self._tree.take(file)

    def _rest(self, size: int) -> None:
        """Pause after each slice, so that others get at the disk. Raises StorageError while the store is closed."""
        self._since_pause += size
        wait_s = 0.0
        if self._since_pause >= _SLICE_BYTES:
            self._since_pause, wait_s = 0, _PAUSE_S
        if self._pause(wait_s):
            raise StorageError("the node is stopping")
