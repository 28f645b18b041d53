"""Commits that the loop writes and syncs itself, where it has nothing else to do while the disk thread would.

The way to the disk thread and back is two wake-ups, and each thread waits for the interpreter of the other: half of
what a publisher waits that is alone and waits for each confirm. So the engine offers such a commit here first
(`broker.turn.commit_pacing` knows whether its publisher is alone). It is taken if the disk thread waits for something
to do, the short way takes it (`storage.disk.short_commits`), and the disk is quick.

What a slow disk does to the loop is bounded (ADR 33). After a commit that has taken longer than `QUICK_S`, here or on
the disk thread, the disk thread has all of them for a time that grows with the square of that: 60 ms after 5 ms, 25
seconds after 100 ms, an hour at most. A loop that a disk stops for 10 ms each time has 96 % of its time for others, and
the more the slower the disk is. Nothing is waited for but that one sync: no lock, no room on the disk, no other file.

State: until when the disk thread has all commits, and how much the loop may write before that has its turn (small
queues that have grown, acks that are due, compaction: all that the disk thread does between commits). `apply` is called
by `storage.disk.threads` on the loop, which sees to it that the disk thread does nothing meanwhile; all else on that.
"""

from __future__ import annotations

import threading

from burrowmq.storage import real_time as time
from burrowmq.storage.disk.short_commits import ShortCommits
from burrowmq.storage.disk.writer import Writer
from burrowmq.storage.loop.staged_commit import Append, StagedCommit

QUICK_S = 0.001
"""So long nobody minds: what the loop does for one read may take as long."""
STALL_S = 0.02
"""After a commit that has taken so long the disk thread has all for a second; for 100 after ten times that."""
LONGEST_REST_S = 3600.0
"""After a disk that stood still for a minute it would be months."""
COMMANDS = 4
COMMIT_BYTES = 32 * 1024
"""Of more, the disk is to write one half while the loop reads the other."""
TURN_BYTES = 256 * 1024
TURN_S = 0.1
"""After so much the disk thread has its turn."""


class AtOnce:
    """See the module."""

    def __init__(self, writer: Writer, short: ShortCommits, lock: threading.Lock) -> None:
        self._writer = writer
        self._short = short
        self._lock = lock
        self._rests_until = 0.0
        self._turn_ends = 0.0
        self._left_bytes = 0
        # Of the last commit, which was written here: it is on its way to the disk thread.
        self.is_sync_owed = False

    def begin_turn(self, now: float) -> None:
        """The disk thread has done all that is due between commits."""
        self._turn_ends = now + TURN_S
        self._left_bytes = TURN_BYTES

    def note(self, took_s: float, now: float) -> None:
        """A small commit has taken so long."""
        if took_s > QUICK_S:
            rest_s = min((took_s / STALL_S) ** 2, LONGEST_REST_S)
            self._rests_until = max(self._rests_until, now + rest_s)

    def take_owed(self) -> bool:
        """Whether the commit that comes now was written here, and only its sync failed."""
        is_owed, self.is_sync_owed = self.is_sync_owed, False
        return is_owed

    def apply(self, commit: StagedCommit) -> bool:
        """Write a commit and sync it; False: the disk thread has to, or has to go on with it. Raises StorageError."""
        began = time.monotonic()
        if not self._takes(commit, began) or not self._lock.acquire(blocking=False):
            return False
        try:
            written = self._short.write(commit)
        finally:
            self._lock.release()
        if written is None:
            return False
        self._left_bytes -= commit.size
        is_durable = self._short.make_durable(written)
        now = time.monotonic()
        self.note(now - began, now)
        if is_durable:
            self._writer.unsynced_bytes = 0
            return True
        with self._lock:
            self._writer.refused.begin(commit)
            self._short.give_back(written)
        self.is_sync_owed = True
        return False

    def _takes(self, commit: StagedCommit, now: float) -> bool:
        commands = commit.commands
        return (
            self._rests_until <= now < self._turn_ends
            and commit.size <= min(COMMIT_BYTES, self._left_bytes)
            and len(commands) <= COMMANDS
            and all(command.__class__ is Append for command in commands)
            and not self._writer.has_more_to_sync
        )
