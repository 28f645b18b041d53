"""An index segment as it lies on the disk: what a walk reads of it, before anybody decides what becomes of it.

State: none. Made by the walks of both versions (`storage.queue.v1.walk`, `storage.queue.v2.walk`), used by recovery and
by burrowmq-store. Invariant: nothing is left out: entries that are acked, transient or damaged are there too.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from burrowmq.records import NamedTuple, dataclass
from burrowmq.storage.errors import StoreRefused
from burrowmq.storage.queue.places import bits_of
from burrowmq.storage.record import EntryColumns


class FoundRun(NamedTuple):
    """Messages at places side by side, their bodies whole, that a journal holds, or that move as if one did."""

    first: int
    columns: EntryColumns
    path: str


def nothing_torn(_: int) -> int:
    """There is no body that is not whole."""
    return 0


@dataclass(slots=True)
class FoundSegment:
    """One index segment. Sets of places are integers, bit n for place n.

    `path` is that of its index file, which need not be there when journals hold all of it.
    """

    number: int
    version: int
    path: str
    generation: int
    columns: EntryColumns  # of all places
    present: int  # that hold an entry, those included whose body is known to be torn
    acked: int  # of those
    corrupt: int = 0  # entries that fail their check, or that a block of version 1 has lost
    torn: int = 0  # messages that never became whole and have no place here: bodies in journals, entries cut in two
    data: bytes = b""  # of the index file
    bodies_path: str = (
        ""  # of the file with the bodies that are in no journal; it need not be there
    )
    durable_end: int = 1 << 63  # of that file, so much is known to be durable
    problem: str = ""  # with its header
    refused: StoreRefused | None = None  # it is of another store, or was made with other limits
    store_end: int = 0  # as `Segment.store_end`
    # Version 1: the runs that are in journals; acks that the segment file says.
    runs: Sequence[FoundRun] = ()
    acked_in_file: int = 0
    # Version 2: of the acks that count.
    epoch: int = 0
    # Looks at the bodies of these places, as far as they may not be durable; gives those that are not whole.
    torn_bodies: Callable[[int], int] = nothing_torn

    @property
    def live(self) -> int:
        """The persistent entries that are not acked: what a start keeps, if their bodies are whole."""
        return self.present & ~self.acked & bits_of(self.columns.flags)

    @property
    def transient(self) -> int:
        """The entries that are not acked and end with the node."""
        return self.present & ~self.acked & ~bits_of(self.columns.flags)

    @property
    def in_journals(self) -> int:
        """The places whose entry, and body, is in a journal."""
        places = 0
        for run in self.runs:
            places |= bits_of(run.columns.statuses) << run.first
        return places

    @property
    def shared(self) -> int:
        """The places whose message is in the shared store."""
        return bits_of(self.columns.kinds)
