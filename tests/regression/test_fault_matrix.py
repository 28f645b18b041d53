"""What a store does when one kind of call on one kind of file fails: the table of docs/disk-faults.md, made anew.

A store with a queue of each version is filled; then every call of the site fails, once, for good, or for a while for
lack of room or descriptors, while both queues are published to, read, acknowledged, deleted and made. The disk is mended,
the process dies, and whatever was durable has to be found, in every cell.
`BURROWMQ_WRITE_MATRIX=1` writes the table into the page.
"""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from burrowmq.storage.errors import DiskFull, ReadFailed, StorageError
from burrowmq.storage.loop.staged_commit import Ack, Append, Delete, Open, ReadRequest
from burrowmq.storage.names import QueueNames
from tests.support.disk_side import LARGE, SMALL, DiskSide, messages
from tests.support.sim_filesystem import SimFileSystem

PAGE = Path(__file__).resolve().parents[2] / "docs" / "disk-faults.md"
BEGIN, END = "<!-- matrix: begin -->\n", "<!-- matrix: end -->\n"
FOR_GOOD = 1 << 30
# What the table calls a site: the operation, a part of the path, which such call is the first to fail.
SITES: dict[str, tuple[str, str] | tuple[str, str, int]] = {
    "reading a queue's index (`.qi`)": ("pread", ".qi"),
    "reading a queue's bodies (`.qs`)": ("pread", ".qs"),
    "reading version 1 (`.idx`)": ("pread", ".idx"),
    "reading the shared store (`.seg`)": ("pread", ".seg"),
    "opening a queue's index": ("open", ".qi"),
    "opening a queue's bodies": ("open", ".qs"),
    "opening the shared store": ("open", ".seg"),
    "writing a queue's index": ("pwrite", ".qi"),
    "writing a queue's bodies": ("pwrite", ".qs"),
    "writing version 1's segment": ("pwrite", ".idx"),
    "writing version 1's journal": ("pwrite", ".jif"),
    "sealing a segment of the shared store": ("pwrite", ".seg"),
    "writing the shared store": ("pwrite", ".seg", 3),
    "creating a queue's index": ("create", ".qi"),
    "creating a queue's bodies": ("create", ".qs"),
    "creating a journal": ("create", ".jif"),
    "creating a segment of the shared store": ("create", ".seg"),
    "making a queue's directory": ("mkdir", "/queues/"),
    "naming a queue (`.queue_name`)": ("create", ".queue_name"),
    "syncing a queue's file": ("fdatasync", "/queues/"),
    "syncing the shared store": ("fdatasync", ".seg"),
    "syncing a queue's directory": ("fsync_dir", "/queues/"),
    "syncing the shared store's directory": ("fsync_dir", "/msg_store"),
    "removing a queue's file": ("unlink", "/queues/"),
    "removing a segment of the shared store": ("unlink", ".seg"),
    "removing a queue's directory": ("rmtree", "/queues/"),
    "reserving numbers for the shared store (`STORE.json`)": ("create", "STORE.json"),
}
# SQLite's own calls: with each commit to its log, and to the database when the log is emptied.
DEFINITION_SITES = {
    "writing definitions (`definitions.db-wal`)": ("pwrite", "definitions.db-wal"),
    "syncing definitions": ("fdatasync", "definitions.db-wal"),
    "any write of SQLite's": ("pwrite", "definitions.db"),
    "any sync of SQLite's": ("fdatasync", "definitions.db"),
}
# These with a commit log; the others with files of their own for each queue (`store_commit_log = off`), whose rules
# hold for those of larger queues with a log too.
LOG_SITES = {
    "writing the commit log": ("pwrite", "commit_log/"),
    "syncing the commit log": ("fdatasync", "commit_log/"),
    "making the files of a queue that grows out of the commit log": ("create", "/queues/"),
}
FAULTS = {
    "EIO once": (errno.EIO, 1),
    "EIO for good": (errno.EIO, FOR_GOOD),
    "ENOSPC for a while": (errno.ENOSPC, 3),
    "EMFILE for a while": (errno.EMFILE, 3),
}


class Cell:
    """One site and one fault."""

    def __init__(self, *, has_log: bool = False, has_sqlite: bool = False) -> None:
        self.has_log = has_log
        self.has_sqlite = has_sqlite
        self.side = self.start()
        self.troubled: set[str] = set()
        self.side.writer.troubles.tell = lambda _, kind, why: self.troubled.add(kind)
        self.refused_reads = self.has_waited = self.is_stuck = False
        self.live: dict[int, set[int]] = {1: set(), 2: set()}
        self.owed: dict[int, set[int]] = {1: set(), 2: set()}
        for queue_id, version in ((1, 1), (2, 2)):
            self.side.open(queue_id, f"q{version}", version)
        for first in (0, 10, 20):
            self.put(first, 5, SMALL)
            self.put(first + 5, 5, LARGE)
        self.ack(0, 17)
        self.side.jobs.idle()
        self.side.context.release_clean_files()

    def start(self, filesystem: SimFileSystem | None = None) -> DiskSide:
        return DiskSide(
            filesystem,
            has_sqlite=self.has_sqlite,
            segment_entry_count=16,
            segment_size_limit=30_000,
            has_log=self.has_log,
            log_queue_limit=4000,
        )

    def put(self, first: int, count: int, size: int) -> None:
        for queue_id in (1, 2):
            run = messages(first, count, size)
            commit = self.side.commit(
                Append(queue_id, first, list(run), None), definitions=[("policy", "p", first)]
            )
            kept = self.owed if queue_id in commit.refused else self.live
            kept[queue_id].update(range(first, first + count))

    def ack(self, first: int, last: int) -> None:
        for queue_id in (1, 2):
            self.live[queue_id] -= set(range(first, last + 1))
            self.owed[queue_id] -= set(range(first, last + 1))
            self.side.commit(Ack(queue_id, first, last, None))

    def read(self) -> None:
        for queue_id in (1, 2):
            try:
                self.side.jobs.read(
                    ReadRequest(queue_id, 0, 1 << 40, 1000, 1 << 30, lambda *_: None)
                )
            except ReadFailed:
                self.refused_reads = True
            except DiskFull:  # no descriptor: tried again, too
                self.has_waited = True

    def use(self) -> None:
        """Everything that a store does."""
        self.side.context.recorded.ceiling = 0  # as after some thousand segments
        self.read()
        self.put(30, 4, SMALL)
        self.put(34, 8, LARGE)
        self.ack(20, 25)
        self.side.jobs.idle()
        self.side.context.release_clean_files()
        self.side.commit(Open(3, QueueNames("/", "q3"), True, 2))
        self.side.commit(Append(3, 0, list(messages(0, 20)), None))
        self.side.jobs.idle()
        self.side.commit(Delete(3))
        self.ack(26, 33)
        self.side.jobs.idle()
        self.read()

    def outcome(self, fault: tuple[int, int], operation: str, part: str, nth: int = 1) -> str:
        """Let the calls fail, and see."""
        number, times = fault
        self.side.filesystem.fail(operation, number, nth=nth, times=times, path_part=part)
        try:
            self.use()
            ended = False
        except StorageError:
            ended = True
        leftovers = self.side.context.leftover_count or any(
            store._segments._leftovers
            for store in (self.side.vhost().persistent, self.side.vhost().transient)
        )
        self.side.filesystem.heal()
        if not ended:
            self.side.jobs.idle()
            self.side.jobs.upkeep()
            refusals = self.side.writer.refusals
            self.is_stuck = bool(refusals)
            for queue_id in (1, 2):
                if not refusals.has(queue_id):
                    self.live[queue_id] |= self.owed[queue_id]
            self.check(self.side)
        again = self.start(self.side.filesystem.process_killed())
        for queue_id, version in ((1, 1), (2, 2)):
            again.take_up(queue_id, f"q{version}", version)
        self.check(again)
        # SQLite syncs its log once more before the database has it all, and trusts the database alone.
        resynced = [path for path in self.side.filesystem.resynced if "definitions.db" not in path]
        assert not resynced
        assert self.side.observer.events["record_lost"] == 0
        if ended:
            return "the store ends"
        if self.is_stuck:
            return "blocks the queue until a restart"
        said = []
        if self.side.waits or self.has_waited:
            said.append("waits")
        if self.side.writer.counters.rescues:
            said.append("written elsewhere")
        if self.troubled or self.refused_reads:
            said.append("blocks the queue")
        if leftovers:
            said.append("leftover")
        return ", ".join(said) or "goes on"

    def check(self, side: DiskSide) -> None:
        """What was reported durable is there, and in order."""
        for queue_id in (1, 2):
            if side.writer.refusals.has(queue_id):
                continue
            found = side.read(queue_id)
            assert found == sorted(found)
            missing = self.live[queue_id] - set(found)
            assert not missing, (queue_id, missing)


def made() -> str:
    """The table, as it is."""
    lines = [f"| what fails | {' | '.join(FAULTS)} |", "|---|" + "---|" * len(FAULTS)]
    for site, where in (SITES | DEFINITION_SITES | LOG_SITES).items():
        how = {"has_log": site in LOG_SITES, "has_sqlite": site in DEFINITION_SITES}
        cells = [Cell(**how).outcome(fault, *where) for fault in FAULTS.values()]
        lines.append(f"| {site} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


@pytest.mark.slow
def test_the_page_says_what_happens() -> None:
    text = PAGE.read_text(encoding="utf-8")
    head, _, rest = text.partition(BEGIN)
    before, _, tail = rest.partition(END)
    table = made()
    if os.environ.get("BURROWMQ_WRITE_MATRIX"):
        PAGE.write_text(head + BEGIN + table + END + tail, encoding="utf-8")
    assert table == before
