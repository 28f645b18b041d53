"""The walk over the files of one queue's directory: every index segment as it lies there, and what nothing uses.

It opens files for reading only. Recovery (`storage.queue.recovery`) acts on what it gives, `burrowmq-store check`
reports it. One segment is in memory at a time. State: a `Walk` while it goes on.

Which file counts is decided here and nowhere else: of two index files for one segment the one of the higher generation,
if its store file is there; of several store files of a segment the one that the index names.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import field

from burrowmq.records import dataclass
from burrowmq.storage.errors import StoreRefused
from burrowmq.storage.queue.directory import QueueDirectory
from burrowmq.storage.queue.found import FoundSegment
from burrowmq.storage.queue.v1 import walk as walk_v1
from burrowmq.storage.queue.v1.journal import file_name as journal_name
from burrowmq.storage.queue.v1.segment_files import file_name as segment_file_name
from burrowmq.storage.queue.v2 import walk as walk_v2
from burrowmq.storage.queue.v2.index import file_name as index_name
from burrowmq.storage.queue.v2.store import file_name as store_name


@dataclass(slots=True)
class Unused:
    """A file that nothing refers to: a start removes it. `is_inert`: one that stays never counts for anything."""

    path: str
    why: str
    is_inert: bool = True


@dataclass(slots=True)
class Unreadable:
    """A file that cannot be read, or is refused; the walk goes on without it for who can bear that."""

    path: str
    error: OSError | StoreRefused


Finding = FoundSegment | Unused | Unreadable


@dataclass(slots=True)
class _Names:
    """The files of a directory, sorted by what they are."""

    leftovers: list[str] = field(default_factory=list)
    indexes: list[int] = field(default_factory=list)
    segment_files: list[int] = field(default_factory=list)
    journals: list[int] = field(default_factory=list)
    stores: dict[int, list[int]] = field(default_factory=dict)  # generations by segment


def _sorted_names(names: Sequence[str]) -> _Names:
    found = _Names()
    for name in names:
        digits, _, suffix = name.partition(".")
        if name.endswith(".tmp"):
            found.leftovers.append(name)
        elif not _is_number(digits):
            continue
        elif suffix == "qi":
            found.indexes.append(int(digits))
        elif suffix == "idx":
            found.segment_files.append(int(digits))
        elif suffix == "jif":
            found.journals.append(int(digits))
        elif name.endswith(".qs"):
            generation = suffix[1:].partition(".")[0] if suffix != "qs" else "0"
            if _is_number(generation):
                found.stores.setdefault(int(digits), []).append(int(generation))
    return found


def _is_number(text: str) -> bool:
    """Tell whether it is one that the store gives to a file: of four bytes, in ASCII. Any other file is not its own."""
    return text.isascii() and text.isdecimal() and len(text) <= 10 and int(text) < 1 << 32


class Walk:
    """One walk. What it says of the whole queue is known when `findings` has come to its end."""

    def __init__(
        self, directory: QueueDirectory, names: Sequence[str], *, is_clean: bool = False
    ) -> None:
        """Walk over the files with these names. `is_clean`: the node stopped cleanly, so everything was durable."""
        self._directory = directory
        self._names = _sorted_names(names)
        self._is_clean = is_clean
        self._highest = -1
        self.journals = walk_v1.FoundJournals(directory)

    @property
    def next_seq(self) -> int:
        """The first sequence number of a segment that has no file yet and is named by none."""
        return (self._highest + 1) * self._directory.entry_count

    @property
    def has_journals(self) -> bool:
        """Whether there are journals, or segment files that speak of them."""
        return bool(self._names.journals or self._names.segment_files)

    def findings(self) -> Iterator[Finding]:
        """Give what is found, the segments of version 1 first, each kind in order."""
        names = self._names
        for name in names.leftovers:
            yield Unused(f"{self._directory.path}/{name}", "an attempt that was not finished")
        yield from self._read_journals()
        named = self.journals.segments()
        known = (*names.indexes, *names.stores, *names.segment_files, *named)
        self._highest = max(known, default=-1)
        in_version_1: set[int] = set()
        for number in sorted({*names.segment_files, *(named - set(names.indexes))}):
            for finding in self._find_v1(number):
                if isinstance(finding, FoundSegment):
                    in_version_1.add(number)
                yield finding
        yield from self._indexes(in_version_1)

    def _read_journals(self) -> Iterator[Unreadable]:
        for number in self._names.segment_files:
            try:
                self.journals.read_mentions(number)
            except OSError as error:
                yield Unreadable(self._path(segment_file_name(number)), error)
        for number in sorted(self._names.journals):
            try:
                self.journals.read(number)
            except (OSError, StoreRefused) as error:
                yield Unreadable(self._path(journal_name(number)), error)
        if self._is_clean:
            self.journals.take_all_for_durable()

    def _find_v1(self, number: int) -> Iterator[Finding]:
        """Find a segment in its segment file and in journals, unless its version 2 file counts."""
        directory, file = self._directory, None
        path = self._path(segment_file_name(number))
        try:
            if number in self._names.segment_files:
                file = walk_v1.read_segment_file(directory, number)
            has_both = file is not None and number in self._names.indexes
            if (
                file is not None
                and has_both
                and walk_v2.is_newer(directory, number, file.generation)
            ):
                yield Unused(path, "converted to version 2", is_inert=False)
                return
        except (OSError, StoreRefused) as error:
            yield Unreadable(path, error)
            return
        yield walk_v1.put_together(directory, number, file, self.journals)

    def _indexes(self, in_version_1: set[int]) -> Iterator[Finding]:
        """Find the segments that an index file of version 2 holds, and the store files that none of them uses."""
        unused = dict(self._names.stores)
        for number in sorted(self._names.indexes):
            path = self._path(index_name(number))
            if number in in_version_1:
                why = "a conversion to version 2 that was not finished, or was taken back"
                yield Unused(path, why, is_inert=False)
                continue
            generations = self._names.stores.get(number, [])
            try:
                found = walk_v2.read_index(self._directory, number, generations)
            except OSError as error:
                yield Unreadable(path, error)
                used = max(generations, default=0)
            else:
                yield found
                used = found.generation
            unused[number] = [generation for generation in generations if generation != used]
        for number, generations in unused.items():
            for generation in generations:
                yield Unused(self._path(store_name(number, generation)), "no index uses it")

    def _path(self, name: str) -> str:
        return f"{self._directory.path}/{name}"
