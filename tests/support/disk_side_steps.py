"""What happens to the queues of a `DiskSide`: damage, scrubbing, dead letters with a deletion.

Callers: tests of storage/disk.
"""

from __future__ import annotations

from burrowmq.storage.directory import quarantine
from burrowmq.storage.loop.staged_commit import (
    Ack,
    Append,
    Command,
    Delete,
    StagedCommit,
)
from burrowmq.storage.names import QueueNames
from tests.support.disk_side import SMALL, DiskSide, messages

Q, OTHER = QueueNames("/", "q"), QueueNames("/", "other")


def dead_letters(
    target: int, *commands: Command, end: int = 1, first_seq: int = 3, size: int = SMALL
) -> StagedCommit:
    """The three messages of queue 1 become dead letters in another, and with them queue `end` is deleted."""
    copies = messages(3, 3, size)
    return StagedCommit(
        90,
        [Append(target, first_seq, list(copies), None), Ack(1, 0, 2, None), Delete(end), *commands],
        [("queue", "q", None)],
        touched={1, target},
        sync=True,
        is_moving=True,
        moves={(Q[:2], ("/", "dead"))},
    )


def spoil(side: DiskSide, ending: str, from_end: int = 2) -> None:
    """Change an octet near the end of the one file with that ending."""
    (path,) = side.paths(ending)
    side.filesystem.damage(path, side.filesystem.file_size(path) - from_end, b"?")


def kept(side: DiskSide) -> list[tuple[quarantine.SetAside, bytes]]:
    """What has been set aside: what is known of each message, and its bytes."""
    found = [
        quarantine.load(side.filesystem, "/data", name)
        for name in quarantine.names(side.filesystem, "/data")
    ]
    return [each for each in found if each is not None]


def scrub(side: DiskSide, passes: int = 1) -> None:
    """Whole passes, and what the disk thread does about them meanwhile."""
    now = 0.0
    for _ in range(passes):
        side.jobs.scrub.request()
        side.jobs.scrub.step(now)
        while side.jobs.scrub.status.is_running:
            now += 1.0
            side.jobs.scrub.step(now)
            side.jobs.upkeep()
