"""What an index segment has at one moment, to be read afterwards without holding anybody up.

A `SegmentView` is taken under the lock of `storage.disk.jobs`, which costs as much as opening two files, and read
without it. Its files stay readable whatever becomes of the segment: it may be written to, written anew, converted or
removed meanwhile; then what it gives is only old. State: none but the open files. Made by the `IndexFiles` of either
version, read by `storage.queue.verify` on the reader thread.

Invariant: what is found wrong in a view is a suspicion. Whoever acts on it looks again, under the lock.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import field

from burrowmq.records import NamedTuple, dataclass
from burrowmq.storage.files.filesystem import File
from burrowmq.storage.record import EntryColumns


class Part(NamedTuple):
    """The entries of places side by side, from `first` on, or None on the way to them; `size` bytes were read."""

    first: int
    columns: EntryColumns | None
    size: int


class FileProblem(NamedTuple):
    """Something of a file that is damaged and belongs to no message."""

    path: str
    what: str


def no_file(_: int, __: int) -> None:
    """There are no bodies beside the entries."""


@dataclass(slots=True)
class SegmentView:
    """One segment. `live` has a bit for each place that holds a live entry."""

    number: int
    generation: int
    live: int
    # Reads the entries bit by bit; raises OSError. It fills in the two below.
    parts: Callable[[], Iterator[Part]]
    # (kind, place): the file that the body is in, None when it is not there.
    body_file: Callable[[int, int], File | None] = no_file
    problems: list[FileProblem] = field(default_factory=list)
    # The files do not say all acks that they did: those of these places, or (0) one of two copies of them.
    has_lost_acks: bool = False
    lost_acks: int = 0

    def note(self, path: str, what: str) -> None:
        """Something is wrong with a file."""
        self.problems.append(FileProblem(path, what))

    def miss_acks(self, places: int = 0) -> None:
        """The acks of these places cannot be read any more, or those of one of two copies."""
        self.has_lost_acks = True
        self.lost_acks |= places
