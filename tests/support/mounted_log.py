"""A file system with a commit log over a simulated disk, and what its tests do with one."""

from __future__ import annotations

from burrowmq.storage.files.filesystem import File
from burrowmq.storage.log.filesystem import LogFileSystem
from burrowmq.storage.log.groups import LogOptions
from burrowmq.storage.log.mount import mount
from tests.support.machine_disk import MachineDisk
from tests.support.sim_filesystem import SimFileSystem

IDENTITY = b"i" * 16
QUEUES = "/data/vhosts/v/queues"
QUEUE = f"{QUEUES}/q"
OPTIONS = LogOptions(limit=20_000, queue_limit=400, total_limit=4000)


def mounted(
    base: SimFileSystem | None = None, options: LogOptions = OPTIONS
) -> tuple[LogFileSystem, SimFileSystem]:
    """Begin a log on a new disk, or take up the one of an older."""
    is_new = base is None
    if base is None:
        base = SimFileSystem()
        base.mkdir(QUEUES)
    return mount(base, "/data", IDENTITY, options, is_new=is_new)[0], base


def made(filesystem: LogFileSystem, path: str, data: bytes = b"data") -> File:
    """Make a file with its directory."""
    filesystem.mkdir(path.rpartition("/")[0])
    file = filesystem.create(path)
    file.pwrite(data, 0)
    return file


def synced(filesystem: LogFileSystem, *files: File) -> None:
    """All of these are made durable."""
    assert filesystem.sync_all(files, []) == []


def moved_out(filesystem: LogFileSystem, name: str = "0.qi") -> File:
    """A file of a queue that has moved out."""
    file = made(filesystem, f"{QUEUE}/{name}", b"x" * 500)
    synced(filesystem, file)
    synced(filesystem)
    return file


def on_forgetful_disk() -> tuple[MachineDisk, LogFileSystem]:
    """A log on a disk whose names may come back, or go, with the power."""
    base = MachineDisk()
    base.mkdir(QUEUES)
    for directory in ("/", "/data", "/data/vhosts", "/data/vhosts/v"):
        base.fsync_dir(directory)
    return base, mount(base, "/data", IDENTITY, OPTIONS, is_new=True)[0]


def one_file_behind() -> tuple[MachineDisk, LogFileSystem, File]:
    """A queue's file that the log is ahead of, on a disk whose names may come back with the power."""
    base, filesystem = on_forgetful_disk()
    file = moved_out(filesystem)
    file.pwrite(b"acked", 500)
    synced(filesystem, file)
    return base, filesystem, file


def replaced(filesystem: LogFileSystem, file: File, data: bytes = b"anew" * 100) -> None:
    """Another file takes the place of one."""
    aside = filesystem.create(f"{file.path}.tmp")
    aside.pwrite(data, 0)
    aside.fdatasync()
    filesystem.rename(aside.path, file.path)


def names_left(disk: SimFileSystem) -> list[str]:
    """The queue's file, if it is there."""
    return [path for path in disk.paths() if path == f"{QUEUE}/0.qi"]


def calls(base: SimFileSystem) -> tuple[int, int]:
    """How often files and directories were synced."""
    counted = base.counters.calls
    return counted.get("fdatasync", 0), counted.get("fsync_dir", 0)
