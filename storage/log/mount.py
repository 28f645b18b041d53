"""A store's file system with its commit log: replayed when the store is opened, emptied when it is to have none.

State: none. Called by recovery before anything looks at a queue. Invariants: what is replayed is the same however often
a start is cut off; the log's old generation is written over only after all that it said of own files is durable, and
the one that counts is.
"""

from __future__ import annotations

from collections.abc import Sequence

from burrowmq.storage.errors import SyncFailed, error_text
from burrowmq.storage.files.filesystem import File, FileSystem
from burrowmq.storage.log.commit_log import DIRECTORY, paths
from burrowmq.storage.log.filesystem import LogFileSystem
from burrowmq.storage.log.groups import LogOptions
from burrowmq.storage.log.moving_out import move_out
from burrowmq.storage.log.replay import Replayed, replay

# Own files that are written and synced together.
_STEP = 64
_PAGES = 256 * 1024


def mount(
    base: FileSystem, data_dir: str, identity: bytes, options: LogOptions, *, is_new: bool
) -> tuple[LogFileSystem, list[str]]:
    """Give the file system with what the log says in it, and the damaged places. Raises StorageError or OSError.

    `is_new`: the store has no log yet.
    """
    root = f"{data_dir}/vhosts"
    if is_new:
        _hold_on_to_queues(base, root)
    found = Replayed()
    if not is_new:
        found = replay(base, data_dir, identity)
        _hold_on_to_generation(base, paths(data_dir)[found.counting])
    _put_own_files_right(base, root, found)
    _drop_what_is_elsewhere(base, root, found)
    filesystem = LogFileSystem(base, data_dir, identity, options, found)
    filesystem.groups.begin_generation()
    return filesystem, found.damaged


def unmount(filesystem: LogFileSystem) -> FileSystem:
    """Let all small queues move out: nothing is in the log then. Gives the real file system. Raises OSError."""
    base, groups = filesystem.base, filesystem.groups
    names = groups.small.names()
    for at in range(0, len(names), _STEP):
        move_out(base, groups, names[at : at + _STEP])
    groups.flush()
    return base


def remove_log(base: FileSystem, data_dir: str) -> None:
    """Remove a log that nothing is in, durably. Raises OSError."""
    if base.exists(f"{data_dir}/{DIRECTORY}"):
        # A start before this one may have said in STORE.json that there is no log, and been killed before that was
        # durable: with the power it would say again that there is one, and nothing would be started without it.
        base.fsync_dir(data_dir)
        base.rmtree(f"{data_dir}/{DIRECTORY}")
        base.fsync_dir(data_dir)


def _hold_on_to_queues(base: FileSystem, root: str) -> None:
    """Have the names of all queues' directories durable: the log knows of those only that come and go from here on.

    A process that was killed, and had no log, may have made some and not synced them.
    """
    vhosts = base.listdir(root) if base.exists(root) else []
    directories = [f"{root}/{vhost}/queues" for vhost in vhosts]
    _sync(base, [], [path for path in directories if base.exists(path)])


def _hold_on_to_generation(base: FileSystem, path: str) -> None:
    """Have the generation that counts durable, before the next one is written over the one before.

    A process that was killed may have written its snapshot and not synced it; with the power it would be gone. Nor is a
    sync enough where one has failed in that process: its pages count as written, and may be in memory alone.
    """
    file = base.open(path)
    try:
        for at in range(0, file.size(), _PAGES):
            data = file.pread(_PAGES, at)
            if data.count(0) < len(data):  # behind its end nothing of it is there
                file.pwrite(data, at)
        _sync(base, [file], [])
    finally:
        file.close()


def _put_own_files_right(base: FileSystem, root: str, found: Replayed) -> None:
    """Have own files as the log says, durably: the next generation does not say it again.

    What a killed process removed or renamed may not be durable. With the power the old file would be there again,
    without what only this generation has of it.
    """
    changed: dict[str, None] = {}
    for source, target in found.own_renames:
        if base.exists(f"{root}/{source}"):
            base.rename(f"{root}/{source}", f"{root}/{target}")
        changed[f"{root}/{target}".rpartition("/")[0]] = None
    paths: list[str] = []
    for path in found.own_writes:
        if base.exists(f"{root}/{path}"):
            paths.append(path)
        else:
            changed[f"{root}/{path}".rpartition("/")[0]] = None
    for at in range(0, len(paths), _STEP):
        files: list[File] = []
        for path in paths[at : at + _STEP]:
            file = base.open(f"{root}/{path}")
            for offset, data in found.own_writes[path]:
                file.pwrite(data, offset)
            files.append(file)
        _sync(base, files, [])
    for path in found.removed:
        if base.exists(f"{root}/{path}"):
            base.rmtree(f"{root}/{path}")
        changed[f"{root}/{path}".rpartition("/")[0]] = None
    _sync(base, [], list({_there(base, path): None for path in changed}))


def _there(base: FileSystem, path: str) -> str:
    """Give a directory, or the nearest above it that is there: that it is gone may not be durable."""
    while not base.exists(path):
        path = path.rpartition("/")[0]
    return path


def _drop_what_is_elsewhere(base: FileSystem, root: str, found: Replayed) -> None:
    """Remove what a move that was cut off left on the disk, and small queues whose vhost is gone."""
    by_parent: dict[str, list[str]] = {}
    for name in found.directories:
        by_parent.setdefault(name.rpartition("/")[0], []).append(name)
    for parent, names in by_parent.items():
        directory = f"{root}/{parent}"
        if not base.exists(directory):
            for name in names:
                del found.directories[name]
            continue
        present = set(base.listdir(directory))
        left = [name for name in names if name.rpartition("/")[2] in present]
        for name in left:
            base.rmtree(f"{root}/{name}")
        if left:
            _sync(base, [], [directory])


def _sync(base: FileSystem, files: Sequence[File], directories: Sequence[str]) -> None:
    for item, error in base.sync_all(files, directories):
        path = item if isinstance(item, str) else item.path
        raise SyncFailed(error_text(error, path))
