"""A small queue gets files of its own.

State: none. Called by `storage.log.syncs` after a commit, synced or not, and by `storage.log.mount` when there is to be
no log, on the disk thread. Invariants: the log says so only after files and names are durable; until then the queue is
a small one, and what is on the disk of it is made again by the next attempt and removed by the next start.
"""

from __future__ import annotations

from collections.abc import Sequence

from burrowmq.storage.files.filesystem import File, FileSystem
from burrowmq.storage.log.files import OwnFile
from burrowmq.storage.log.groups import Groups
from burrowmq.storage.log.records import Kind


def move_out(base: FileSystem, groups: Groups, directories: Sequence[str]) -> None:
    """Make the files of small queues their own. Raises OSError: then they stay small."""
    small = groups.small
    made: dict[str, File] = {}
    for directory in directories:
        base.rmtree(directory)
        base.mkdir(directory)
        for name, content in (small.contents(directory) or {}).items():
            path = f"{directory}/{name}"
            own = made[path] = base.create(path)
            for offset, data in content.pieces:
                own.pwrite(data, offset)
            own.truncate(content.size)
    parents = {directory.rpartition("/")[0] for directory in directories}
    for _, error in base.sync_all(list(made.values()), [*directories, *parents]):
        raise error
    with small.lock:
        for path, own in made.items():
            file = small.opened(path)
            if file is not None:
                file.move_out(OwnFile(groups, own))
        for directory in directories:
            small.let_go(directory)
            groups.note(Kind.MOVED_OUT, directory)
