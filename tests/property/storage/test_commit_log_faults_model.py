"""The file system with a commit log against its model, on a disk that refuses calls: what was durable stays so.

Beside what `CommitLogModel` looks at: no file is synced again after a sync of it failed, but what a start finds. What a
failed call was for may be there or not. A file whose sync failed is not written or synced any more, only written anew or
removed, as the store does; what a start reads of it proves nothing. Where the log itself fails the process ends.
"""

from __future__ import annotations

import errno
from collections.abc import Callable, Iterable
from contextlib import suppress

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule

from burrowmq.storage.files.filesystem import File
from tests.property.storage.commit_log_model import (
    DIRECTORIES,
    PATHS,
    PLACES,
    SIZE,
    Body,
    CommitLogModel,
    ends,
)

LOG = "/data/commit_log"
OPERATIONS = (
    "fdatasync",
    "fsync_dir",
    "pwrite",
    "write_through",
    "rename",
    "create",
    "truncate",
    "unlink",
)
PARTS = (".log", ".qi", ".qs", ".tmp", "q0", "queues", "commit_log", "")
Told = Iterable[tuple[File | str, OSError]]


class _LogFailed(Exception):
    """The store would end."""


class CommitLogFaultsModel(CommitLogModel):
    """Each rule may meet a call that fails."""

    def __init__(self) -> None:
        super().__init__()
        self.reverts = False
        self.failed: set[Body] = set()  # not to be written to in this process
        self.suspect: set[Body] = set()  # nobody knows what of these is durable

    @initialize(reverts=st.booleans())
    def let_failed_syncs_revert(self, reverts: bool) -> None:
        self.reverts = reverts

    @rule(
        operation=st.sampled_from(OPERATIONS),
        part=st.sampled_from(PARTS),
        nth=st.integers(1, 3),
        times=st.integers(1, 3),
        number=st.sampled_from((errno.EIO, errno.ENOSPC)),
    )
    def fail(self, operation: str, part: str, nth: int, times: int, number: int) -> None:
        self.disk.reverts = self.reverts
        self.disk.fail(operation, number, nth=nth, times=times, path_part=part)

    @rule()
    def heal(self) -> None:
        self.disk.heal()

    @invariant()
    def nothing_is_synced_again(self) -> None:
        assert self.disk.resynced == []

    def _why_not(self, body: Body, content: bytes, *, is_power: bool) -> str:
        return super()._why_not(body, content, is_power=is_power or body in self.suspect)

    def _hold(self, path: str) -> None:
        if self._body(path) not in self.suspect:
            super()._hold(path)

    # -- calls ----------------------------------------------------------------------------------------------------

    def _write(self, file: File, body: Body, place: int) -> bool:
        value = frozenset({self._value()})
        begin, end = ends(place)
        past = body.places[place]
        try:
            file.pwrite(bytes(value) * (end - begin), begin)
        except OSError:
            past.become(value)
            past.become(past.states[-2] | value)
            return False
        past.become(value)
        return True

    def _write_all(self, file: File, body: Body, places: list[int]) -> bool:
        return all(self._write(file, body, place) for place in places)

    @rule(path=st.sampled_from(PATHS))
    def create(self, path: str) -> None:
        with suppress(OSError):
            super().create(path)

    @precondition(lambda self: self._there())
    @rule(pick=st.integers(0, 5), places=st.lists(st.integers(0, PLACES), min_size=1, max_size=4))
    def write(self, pick: int, places: list[int]) -> None:
        path = self._picked(pick)
        body = self._body(path)
        if body not in self.failed:
            self._write_all(self.files[path], body, places)

    @precondition(lambda self: self._there())
    @rule(pick=st.integers(0, 5), places=st.lists(st.integers(0, PLACES - 1), min_size=1))
    def write_the_short_way(self, pick: int, places: list[int]) -> None:
        way = self.filesystem.short_way
        path = self._picked(pick)
        body = self._body(path)
        if body in self.failed or not way.is_open or self._has_new_names:
            return
        values = {place: frozenset({self._value()}) for place in places}
        own = way.write(
            [(self.files[path], bytes(value) * SIZE, ends(at)[0]) for at, value in values.items()]
        )
        for place, value in values.items():
            body.places[place].become(value)
        if own is None:  # some may be written: the usual way writes all of it again
            for place in values:
                past = body.places[place]
                past.become(past.states[-2] | past.now)
                self._write(self.files[path], body, place)
        elif way.make_durable(own):
            for place in values:
                body.places[place].hold()
        else:
            way.note(own)

    @precondition(lambda self: self._there())
    @rule(pick=st.integers(0, 5))
    def unlink(self, pick: int) -> None:
        with suppress(OSError):
            super().unlink(pick)

    @precondition(lambda self: self._there())
    @rule(pick=st.integers(0, 5), places=st.lists(st.integers(0, PLACES), max_size=3))
    def write_anew(self, pick: int, places: list[int]) -> None:
        path = self._picked(pick)
        aside, old, body = f"{path}.tmp", self._body(path), self._new_body()
        try:
            if self.filesystem.exists(aside):
                self.filesystem.unlink(aside)
            file = self.filesystem.create(aside)
            if not self._write_all(file, body, places):
                raise OSError(errno.EIO, "not written", aside)
            file.fdatasync()
        except OSError:
            with suppress(OSError):
                self.filesystem.unlink(aside)
            return
        for each in body.places:
            each.hold()
        self.names[path].become(body)
        try:
            self.filesystem.rename(aside, path)
        except OSError:  # with the power it may have happened
            self.names[path].become(old)
            with suppress(OSError):
                self.filesystem.unlink(aside)
            return
        self.files[path] = file if self._is_small(path) else self.filesystem.open(path)

    @rule(directory=st.sampled_from(DIRECTORIES))
    def remove(self, directory: str) -> None:
        self.disk.heal()
        super().remove(directory)

    # -- what makes durable -------------------------------------------------------------------------------------

    @rule(chosen=st.sets(st.sampled_from(PATHS)), has_names=st.booleans())
    def sync(self, chosen: set[str], has_names: bool) -> None:
        whole = {path for path in self._there() if self._body(path) not in self.failed}
        self._or_end(lambda: super(CommitLogFaultsModel, self).sync(chosen & whole, has_names))

    def _told(self, told: Told) -> tuple[set[str], bool]:
        """Take in what a sync says of files and directories; gives the paths that failed, and whether all names hold."""
        items = [item for item, _ in (*told, *self.filesystem.refused())]
        if LOG in items:
            raise _LogFailed
        failed = {item.path for item in items if not isinstance(item, str)}
        bodies = {self._body(path) for path in failed if path in self._there()}
        self.failed |= bodies
        self.suspect |= bodies
        return failed, not any(isinstance(item, str) for item in items)

    @rule()
    def sync_the_queues_names(self) -> None:
        with suppress(OSError):
            super().sync_the_queues_names()

    @rule()
    def write_noted(self) -> None:
        self._or_end(super().write_noted)

    @rule()
    def begin_generation(self) -> None:
        self._or_end(super().begin_generation)

    def _or_end(self, step: Callable[[], None]) -> None:
        try:
            step()
        except OSError as error:
            if error.errno != errno.ENOSPC:
                self._end_of_the_log()
        except _LogFailed:
            self._end_of_the_log()

    def _end_of_the_log(self) -> None:
        """What was only written to it may be lost with the process."""
        for past in self.names.values():
            past.noted = past.durable
            self.suspect |= {body for body in past.states if body is not None}
        self.end("kill", 1)

    @rule(
        end=st.sampled_from(("kill", "power", "power and again at the start")),
        at=st.integers(1, 12),
    )
    def end(self, end: str, at: int) -> None:
        self.disk.heal()
        for path in self._there():
            if self.filesystem.base.exists(path) and self.disk._find(path).failures:
                self.suspect.add(self._body(path))
        self.failed.clear()
        super().end(end, at)
        self.disk.resynced.clear()  # a start knows nothing of what failed


TestCommitLogFaultsModel = CommitLogFaultsModel.TestCase
TestCommitLogFaultsModel.settings = settings(
    max_examples=80,
    stateful_step_count=40,
    deadline=None,
    suppress_health_check=list(HealthCheck),
)
