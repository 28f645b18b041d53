"""The file system with a commit log against a model of names and octets, over any sequence of calls, kills and power cuts.

The store's own tests see what its files need of the log. Here files mean nothing: each has places of 16 octets that are
written, over and over, and names that come and go. The model knows of each place, and of each name, what it has been
since it was last durable, and since it last survived the process: a power cut leaves any of the former, a kill any of the
latter, and nothing else, whatever was made durable in between by a sync of something else.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from burrowmq.storage.files.filesystem import File
from burrowmq.storage.log.filesystem import LogFileSystem
from burrowmq.storage.log.groups import LogOptions
from burrowmq.storage.log.mount import mount
from tests.support.machine_disk import MachineDisk
from tests.support.mounted_log import IDENTITY, QUEUES
from tests.support.sim_filesystem import PowerCut

DIRECTORIES = tuple(f"{QUEUES}/q{number}" for number in range(2))


T = TypeVar("T")


PATHS = tuple(f"{directory}/{name}" for directory in DIRECTORIES for name in ("0.qi", "0.qs"))


NO_OCTETS: frozenset[int] = frozenset()


PLACES = 12


SIZE = 16


FAR, FAR_SIZE = 4096, 33_000
"""A place that the log does not take."""


def ends(place: int) -> tuple[int, int]:
    """Where a place begins and ends; the one behind the others is far off and large."""
    return (
        (FAR, FAR + FAR_SIZE) if place == PLACES else (64 + place * SIZE, 64 + (place + 1) * SIZE)
    )


@dataclass
class Past(Generic[T]):
    """What something has been: `states[durable:]` may be there after a power cut, `states[noted:]` after a kill."""

    states: list[T]
    durable: int = 0
    noted: int = 0

    @property
    def now(self) -> T:
        return self.states[-1]

    def become(self, state: T) -> None:
        self.states.append(state)

    def hold(self) -> None:
        """It is durable."""
        self.durable = self.noted = len(self.states) - 1

    def note(self) -> None:
        """It survives the process."""
        self.noted = len(self.states) - 1

    def left(self, *, is_power: bool) -> list[T]:
        return self.states[self.durable if is_power else self.noted :]


@dataclass(eq=False)
class Body:
    """A file, whatever its name: each place is one octet, many times, or two where the power tore a write."""

    number: int
    places: list[Past[frozenset[int]]] = field(
        default_factory=lambda: [Past([frozenset({0})]) for _ in range(PLACES + 1)]
    )


class CommitLogModel(RuleBasedStateMachine):
    """Each rule does the same to the file system and to the model."""

    @initialize(
        limit=st.sampled_from((1500, 6000, 40_000)),
        queue_limit=st.sampled_from((0, 200, 16_384)),
        total_limit=st.sampled_from((1000, 100_000)),
        behind_limit=st.sampled_from((0, 2, 256)),
        sector=st.sampled_from((512, 4096)),
        is_built=st.booleans(),
        seed=st.integers(0, 100_000),
    )
    def begin(
        self,
        limit: int,
        queue_limit: int,
        total_limit: int,
        behind_limit: int,
        sector: int,
        is_built: bool,
        seed: int,
    ) -> None:
        self.rng = random.Random(seed)
        self.options = LogOptions(limit, queue_limit, total_limit, behind_limit)
        self.disk = MachineDisk()
        self.disk.sector = sector
        self.disk.mkdir(QUEUES)
        for directory in ("/", "/data", "/data/vhosts", "/data/vhosts/v"):
            self.disk.fsync_dir(directory)
        self.names: dict[str, Past[Body | None]] = {path: Past([None]) for path in PATHS}
        self.written = 0
        self.bodies = 0
        self.files: dict[str, File] = {}
        self.filesystem = self._mounted(self.disk, is_new=True)
        for path in PATHS if is_built else ():
            self.create(path)
            self._write(self.files[path], self._body(path), PLACES - 1)
        self.sync(set(PATHS), has_names=True)

    def _mounted(self, disk: MachineDisk, *, is_new: bool = False) -> LogFileSystem:
        filesystem, damaged = mount(disk, "/data", IDENTITY, self.options, is_new=is_new)
        assert damaged == []
        return filesystem

    def _there(self) -> list[str]:
        return [path for path in PATHS if self.names[path].now is not None]

    def _picked(self, pick: int) -> str:
        there = self._there()
        return there[pick % len(there)]

    def _body(self, path: str) -> Body:
        body = self.names[path].now
        assert body is not None
        return body

    def _value(self) -> int:
        self.written = self.written % 255 + 1
        return self.written

    def _new_body(self) -> Body:
        self.bodies += 1
        return Body(self.bodies)

    def _write(self, file: File, body: Body, place: int) -> bool:
        """Write a place; whether that is done."""
        value = self._value()
        begin, end = ends(place)
        file.pwrite(bytes([value]) * (end - begin), begin)
        body.places[place].become(frozenset({value}))
        return True

    def _hold(self, path: str) -> None:
        for place in self._body(path).places:
            place.hold()

    def _note(self) -> None:
        for past in self.names.values():
            past.note()
            for body in past.states:
                for place in body.places if body is not None else ():
                    place.note()

    # -- calls ----------------------------------------------------------------------------------------------------

    @rule(path=st.sampled_from(PATHS))
    def create(self, path: str) -> None:
        if self.names[path].now is not None:
            return
        self.filesystem.mkdir(path.rpartition("/")[0])
        self.files[path] = self.filesystem.create(path)
        self.names[path].become(self._new_body())

    @precondition(lambda self: self._there())
    @rule(pick=st.integers(0, 5), places=st.lists(st.integers(0, PLACES), min_size=1, max_size=4))
    def write(self, pick: int, places: list[int]) -> None:
        path = self._picked(pick)
        for place in places:
            self._write(self.files[path], self._body(path), place)

    @precondition(lambda self: self._there())
    @rule(
        pick=st.integers(0, 5), places=st.lists(st.integers(0, PLACES - 1), min_size=1, max_size=3)
    )
    def write_the_short_way(self, pick: int, places: list[int]) -> None:
        """As `storage.disk.short_commits` does."""
        way = self.filesystem.short_way
        path = self._picked(pick)
        if not way.is_open or self._has_new_names:
            return
        chosen = sorted(set(places))
        values = [self._value() for _ in chosen]
        own = way.write(
            [
                (self.files[path], bytes([value]) * SIZE, ends(place)[0])
                for place, value in zip(chosen, values, strict=True)
            ]
        )
        if own is None:
            return
        body = self._body(path)
        for place, value in zip(chosen, values, strict=True):
            body.places[place].become(frozenset({value}))
        assert way.make_durable(own)
        for place in chosen:
            body.places[place].hold()

    @precondition(lambda self: self._there())
    @rule(pick=st.integers(0, 5))
    def unlink(self, pick: int) -> None:
        path = self._picked(pick)
        self.filesystem.unlink(path)
        self.names[path].become(None)
        del self.files[path]

    @precondition(lambda self: self._there())
    @rule(pick=st.integers(0, 5), places=st.lists(st.integers(0, PLACES), max_size=3))
    def write_anew(self, pick: int, places: list[int]) -> None:
        """Another file takes the place of one, once it is durable."""
        path = self._picked(pick)
        aside = f"{path}.tmp"
        if self.filesystem.exists(aside):
            self.filesystem.unlink(aside)
        file, body = self.filesystem.create(aside), self._new_body()
        for place in places:
            self._write(file, body, place)
        file.fdatasync()
        for each in body.places:
            each.hold()
        self.filesystem.rename(aside, path)
        self.names[path].become(body)
        self.files[path] = file if self._is_small(path) else self.filesystem.open(path)

    def _is_small(self, path: str) -> bool:
        return not self.filesystem.base.exists(path)

    @rule(directory=st.sampled_from(DIRECTORIES))
    def remove(self, directory: str) -> None:
        """As `StoreContext.remove_queue` does with a queue that is declared again."""
        if not self.filesystem.exists(directory):
            return
        self.bodies += 1
        apart = f"{directory}.{self.bodies}.gone"
        with suppress(FileNotFoundError):  # of one that is in the log alone
            self.filesystem.rename(directory, apart)
        self.filesystem.rmtree(directory)
        self.filesystem.fsync_dir(QUEUES)
        self.filesystem.rmtree(apart)
        for path in PATHS:
            if path.startswith(f"{directory}/"):
                self.names[path].become(None)
                self.names[path].hold()
                self.files.pop(path, None)

    # -- what makes durable -------------------------------------------------------------------------------------

    @property
    def _has_new_names(self) -> bool:
        """Whether any name is not durable: a sync of files is one of those, too (`storage.files.cache`)."""
        return any(past.durable < len(past.states) - 1 for past in self.names.values())

    @rule(chosen=st.sets(st.sampled_from(PATHS)), has_names=st.booleans())
    def sync(self, chosen: set[str], has_names: bool) -> None:
        """Some files, and all names or none."""
        has_names = has_names or self._has_new_names
        paths = [path for path in self._there() if path in chosen]
        files = [self.files[path] for path in paths]
        others = [file for file in self.filesystem.overdue() if file.path not in paths]
        known = [path for path in DIRECTORIES if self.filesystem.exists(path)]
        directories = [*known, QUEUES] if has_names else []
        failed, holds_names = self._told(self.filesystem.sync_all([*files, *others], directories))
        for path in paths:
            if path not in failed:
                self._hold(path)
        if has_names and holds_names:
            for past in self.names.values():
                past.hold()

    def _told(self, told: list[tuple[File | str, OSError]]) -> tuple[set[str], bool]:
        """What a sync says of files and directories: the paths that failed, and whether all names hold."""
        assert told == []
        return set(), True

    @rule()
    def sync_the_queues_names(self) -> None:
        self.filesystem.fsync_dir(QUEUES)

    @rule()
    def write_noted(self) -> None:
        self.filesystem.write_noted()
        self.filesystem.look_at_grown()
        self._note()

    @rule()
    def begin_generation(self) -> None:
        self.filesystem.groups.begin_generation()

    @rule()
    def rest(self) -> None:
        self.filesystem.pack_idle()

    # -- the end ------------------------------------------------------------------------------------------------

    @rule(
        end=st.sampled_from(("kill", "power", "power and again at the start")),
        at=st.integers(1, 12),
    )
    def end(self, end: str, at: int) -> None:
        """The process is killed, or the power is cut, perhaps once more before the start has done so many calls."""
        is_power = end != "kill"
        self.disk = self.disk.cut(self.rng) if is_power else self.disk.process_killed()
        if end.endswith("start"):
            self.disk.cut_before = self.disk.operations + at
            try:
                self._mounted(self.disk)
            except PowerCut:
                self.disk = self.disk.cut(self.rng)
            self.disk.cut_before = None
        self._start(is_power=is_power)

    @invariant()
    def any_end_leaves_what_may_be_left(self) -> None:
        """On a copy of the disk, which nobody goes on with."""
        for disk in (self.disk.cut(self.rng), self.disk.cut(self.rng, names=False)):
            self._compared(self._mounted(disk), is_power=True)

    def _start(self, *, is_power: bool) -> None:
        self.filesystem = self._mounted(self.disk)
        found = self._compared(self.filesystem, is_power=is_power)
        if not is_power:
            self.filesystem.distrust()
        for path, body in found.items():
            self._go_on(path, body, is_power=is_power)
        self.files = {path: self.filesystem.open(path) for path in self._there()}
        if not is_power:  # as a start does (`storage.directory.recovery`)
            self.sync(set(PATHS), has_names=True)
            self.filesystem.settle()

    def _compared(self, filesystem: LogFileSystem, *, is_power: bool) -> dict[str, Body | None]:
        """Compare what is there with what may be; give which file each is."""
        return {
            path: self._found_at(filesystem, path, past.left(is_power=is_power), is_power)
            for path, past in self.names.items()
        }

    def _found_at(
        self, filesystem: LogFileSystem, path: str, possible: Sequence[Body | None], is_power: bool
    ) -> Body | None:
        if not filesystem.exists(path):
            assert None in possible, f"{path} is gone, may be {possible}"
            return None
        content = filesystem.read_file(path)
        reasons: list[str] = []
        for body in reversed(possible):
            if body is not None:
                reasons.append(self._why_not(body, content, is_power=is_power))
                if not reasons[-1]:
                    return body
        raise AssertionError(f"{path}: {reasons or 'nothing may be there'}")

    def _why_not(self, body: Body, content: bytes, *, is_power: bool) -> str:
        """What in a content this file cannot have; empty when it can have all of it."""
        for number, place in enumerate(body.places):
            begin, end = ends(number)
            found = frozenset(content[begin:end].ljust(end - begin, b"\0"))
            possible = NO_OCTETS.union(*place.left(is_power=is_power))
            if not found <= possible:
                return f"file {body.number}, place {number}: {set(found)}, may be {set(possible)}"
        return ""

    def _go_on(self, path: str, body: Body | None, *, is_power: bool) -> None:
        past = self.names[path]
        if past.now is not body:
            past.become(body)
        past.note()
        if is_power:
            past.hold()
        if body is None:
            return
        content = self.filesystem.read_file(path)
        for number, place in enumerate(body.places):
            begin, end = ends(number)
            found = frozenset(content[begin:end].ljust(end - begin, b"\0"))
            if found != place.now:
                place.become(found)
            place.note()
            if is_power:
                place.hold()
