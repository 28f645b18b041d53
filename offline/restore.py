"""`burrowmq-store restore`: a backup back into an empty data directory.

Every file is compared with the manifest before anything is written, then copied; the result is checked as `check` does.
`STORE.json` comes last: a directory that has a store but no `STORE.json` is refused by the node, so that a restore
which was interrupted is never taken for a whole one.

State: none but what one run copies. Invariants: the backup is only read; nothing is written into a directory that holds
anything but a lock; what was copied is durable when the command ends.
"""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Callable
from typing import Final, NamedTuple

from burrowmq.offline.check import DAMAGED, OK, Check
from burrowmq.offline.directory import (
    CannotUse,
    StoreDirectory,
    directory_name,
    open_directory,
)
from burrowmq.offline.progress import Progress, size_text
from burrowmq.offline.streams import Streams
from burrowmq.storage.directory.backup import FORMAT, INCOMPLETE, MANIFEST
from burrowmq.storage.directory.terms import STORE_FILE
from burrowmq.storage.errors import StorageError, UnknownFormat
from burrowmq.storage.files.cache import parent_of
from burrowmq.storage.files.filesystem import FileSystem
from burrowmq.storage.files.tree import FileTree, pieces, write_pieces

MUST_EXIST: Final = False
_LOCK: Final = "LOCK"

# Is told how many bytes more are done.
OnBytes = Callable[[int], None]


class NotABackup(StorageError):
    """The directory is no finished backup, or its files are not what its manifest says."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    parser.add_argument(
        "backup",
        type=directory_name,
        metavar="BACKUP",
        help="a directory that `burrowctl backup` made",
    )


def run(directory: StoreDirectory, arguments: argparse.Namespace, streams: Streams) -> int:
    """Restore into the locked directory, then check it."""
    filesystem = directory.filesystem
    backup = os.path.abspath(arguments.backup)
    try:
        manifest = prepare(filesystem, backup, directory.path)
    except (NotABackup, UnknownFormat) as error:
        raise CannotUse(str(error)) from error
    with Progress(streams.errors, "restoring", manifest.byte_count) as progress:
        restore(filesystem, backup, directory.path, manifest, progress.add)
    streams.report.write(
        f"restored {manifest.message_count} messages in {manifest.queue_count} queues,"
        f" {size_text(manifest.byte_count)}, as of {manifest.made_at} on {manifest.node}\n"
    )
    directory.close()
    with open_directory(directory.path) as restored:
        total = sum(filesystem.file_size(path) for path in restored.files())
        with Progress(streams.errors, "checking", total) as progress:
            check = Check(restored, progress)
            for report in check.files():
                if report.problems:
                    streams.report.write(report.line(restored.path) + "\n")
    streams.report.write(check.totals.text() + "\n")
    return DAMAGED if check.totals.damaged_files or check.totals.lost_messages else OK


class BackupFile(NamedTuple):
    """One file of a backup; a linked one has no CRC-32 in the manifest."""

    path: str
    size: int
    check: int | None


class Manifest(NamedTuple):
    """What a backup says about itself."""

    queue_count: int
    message_count: int
    byte_count: int
    made_at: str
    node: str
    files: list[BackupFile]


def read_manifest(filesystem: FileSystem, backup: str) -> Manifest:
    """Give a backup's manifest. Raises NotABackup, UnknownFormat, OSError."""
    path = f"{backup}/{MANIFEST}"
    if filesystem.exists(f"{backup}/{INCOMPLETE}"):
        raise NotABackup(f"{backup} is a backup that was not finished: it holds {INCOMPLETE}")
    if not filesystem.exists(path):
        raise NotABackup(f"{backup} is not a backup: there is no {MANIFEST}")
    try:
        text = json.loads(filesystem.read_file(path))
        version = int(text["format"])
        if version != FORMAT:
            raise UnknownFormat(f"{path}: format {version} is not known")
        files = [BackupFile(str(row[0]), int(row[1]), row[2]) for row in text["files"]]
        manifest = Manifest(
            int(text["queues"]),
            int(text["messages"]),
            int(text["bytes"]),
            str(text.get("made_at", "")),
            str(text.get("node", "")),
            files,
        )
    except (ValueError, KeyError, TypeError, IndexError, OverflowError, RecursionError) as error:
        raise NotABackup(f"{path} cannot be read: {error!r}") from error
    for file in files:
        if file.path.startswith("/") or "\0" in file.path or ".." in file.path.split("/"):
            raise NotABackup(f"{path} names {file.path!r}, which is not a file of a backup")
    return manifest


def prepare(filesystem: FileSystem, backup: str, data_dir: str) -> Manifest:
    """Look whether a backup can go into a data directory; nothing is written.

    Raises NotABackup, UnknownFormat, CannotUse, OSError.
    """
    manifest = read_manifest(filesystem, backup)
    names = filesystem.listdir(data_dir) if filesystem.exists(data_dir) else []
    held = [name for name in names if name != _LOCK]
    if held:
        raise CannotUse(f"{data_dir} is not empty: it holds {held[0]}")
    for file in manifest.files:
        _compare(filesystem, backup, file)
    return manifest


def restore(
    filesystem: FileSystem, backup: str, data_dir: str, manifest: Manifest, on_bytes: OnBytes
) -> None:
    """Copy what `prepare` looked at. Raises NotABackup for a damaged file, StorageError, OSError."""
    _Restoring(filesystem, backup, data_dir, on_bytes).run(manifest)


def _compare(filesystem: FileSystem, backup: str, file: BackupFile) -> None:
    path = f"{backup}/{file.path}"
    if not filesystem.exists(path):
        raise NotABackup(f"{path} is missing")
    size = filesystem.file_size(path)
    if size != file.size:
        raise NotABackup(f"{path} has {size} bytes instead of {file.size}")


class _Restoring:
    """One restore: the files on their way from the backup to the data directory."""

    def __init__(
        self, filesystem: FileSystem, backup: str, data_dir: str, on_bytes: OnBytes
    ) -> None:
        self._filesystem = filesystem
        self._backup = backup
        self._data_dir = data_dir
        self._on_bytes = on_bytes
        self._tree = FileTree(filesystem, data_dir)

    def run(self, manifest: Manifest) -> None:
        filesystem, data_dir = self._filesystem, self._data_dir
        filesystem.mkdir(data_dir)
        # What makes a node refuse the directory until STORE.json is there.
        self._tree.make_directory(f"{data_dir}/vhosts")
        last: list[BackupFile] = []
        for file in manifest.files:
            if file.path == STORE_FILE:
                last.append(file)
                continue
            self._copy(file)
        self._tree.sync(self._tree.directories)
        for file in last:
            self._copy(file)
        self._tree.sync([data_dir, parent_of(data_dir) or "/"])

    def _copy(self, file: BackupFile) -> None:
        target = f"{self._data_dir}/{file.path}"
        self._tree.make_directory(parent_of(target))
        source, copy = (
            self._filesystem.open(f"{self._backup}/{file.path}"),
            self._filesystem.create(target),
        )
        size, check = write_pieces(copy, pieces(source, file.size), self._on_bytes)
        if size != file.size or file.check not in (None, check):
            # With STORE.json a node might take the directory for a whole store.
            self._filesystem.unlink(target)
            raise NotABackup(
                f"{self._backup}/{file.path} is damaged: its CRC-32 is not the recorded one"
            )
        self._tree.take(copy)
