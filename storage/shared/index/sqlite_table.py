"""The store index `sqlite`: a row for each slot in a database beside the segments.

Almost nothing of a message is in memory: the database's page cache is bounded, and of a table there are two totals. A
look-up costs some 10 microseconds instead of 1. The database is not durable and need not be: a start removes it and
fills a new one, like every other index.

State owned: the connection, shared by all threads under one lock; the totals of each table. Invariants: what raises has
changed nothing; a count that is 0 never rises.
"""

from __future__ import annotations

import sqlite3
import threading
from array import array
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from itertools import accumulate

from burrowmq.storage.errors import DiskFull, StorageError
from burrowmq.storage.files.cache import write_error
from burrowmq.storage.files.filesystem import FileSystem
from burrowmq.storage.shared.segment import (
    FILE_HEADER_SIZE,
    SegmentFile,
    Table,
    TableGone,
    TableLayout,
)

_LARGE = 255
# The primary code of an extended one.
_PRIMARY = 0xFF
_CACHE_KB = 4096
_SCHEMA = """
CREATE TABLE slot (
    place INTEGER NOT NULL, number INTEGER NOT NULL, start INTEGER NOT NULL, past INTEGER NOT NULL,
    refs INTEGER NOT NULL, PRIMARY KEY (place, number)
) WITHOUT ROWID
"""


class _IndexClosed(StorageError):
    """Nothing is asked of a closed index but by a reader that comes late."""


class SqliteTable:
    """`segment.Table` whose slots are rows; `place` is its number in the database."""

    __slots__ = (
        "_count",
        "_end",
        "_index",
        "_is_named",
        "_place",
        "file",
        "live_bytes",
        "live_count",
        "segment_no",
    )

    def __init__(
        self, index: SqliteIndex, place: int, file: SegmentFile, layout: TableLayout
    ) -> None:
        self.file = file
        self.segment_no, offsets, names = layout
        self.live_bytes = 0
        self.live_count = 0
        self._index = index
        self._place = place
        self._count = len(offsets) - 1
        self._end = offsets[-1]
        self._is_named = names is not None
        numbers = range(self._count) if names is None else names
        with index.changing() as run:
            run.executemany(
                "INSERT INTO slot VALUES (?, ?, ?, ?, 0)",
                zip([place] * self._count, numbers, offsets, offsets[1:], strict=False),
            )

    def __len__(self) -> int:
        return self._count

    def extend(self, sizes: Sequence[int]) -> None:
        """Add slots at the end, referred to once each."""
        bounds = list(accumulate(sizes, initial=self._end))
        first = self._count
        with self._index.changing() as run:
            run.executemany(
                "INSERT INTO slot VALUES (?, ?, ?, ?, 1)",
                [
                    (self._place, first + at, bounds[at], bounds[at + 1])
                    for at in range(len(bounds) - 1)
                ],
            )
        self._count += len(bounds) - 1
        self.live_count += len(bounds) - 1
        self.live_bytes += bounds[-1] - self._end
        self._end = bounds[-1]

    def seal(self) -> None:
        """Nothing to do."""

    def drop(self, first: int, last: int) -> int:
        """Take one reference from each slot of a range."""
        bounds = (self._place, first, last)
        with self._index.changing() as run:
            gone = run.execute(
                "SELECT count(*), total(past - start) FROM slot"
                " WHERE place = ? AND number BETWEEN ? AND ? AND refs = 1",
                bounds,
            ).fetchone()
            changed = run.execute(
                "UPDATE slot SET refs = refs - 1"
                " WHERE place = ? AND number BETWEEN ? AND ? AND refs > 0",
                bounds,
            ).rowcount
        self.live_count -= gone[0]
        self.live_bytes -= int(gone[1])
        return last + 1 - first - int(changed)

    def add(self, first: int, last: int, count: int) -> int:
        """Add references to live slots of a range."""
        with self._index.changing() as run:
            changed = run.execute(
                "UPDATE slot SET refs = refs + ?"
                " WHERE place = ? AND number BETWEEN ? AND ? AND refs > 0",
                (count, self._place, first, last),
            ).rowcount
        return last + 1 - first - int(changed)

    def refs_of(self, slot: int) -> int:
        """Give the reference count of a slot."""
        rows = self._rows(
            "SELECT refs FROM slot WHERE place = ? AND number = ? AND past > start", slot
        )
        return int(rows[0][0]) if rows else 0

    def places(self, slots: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        """Give where records begin and end. Raises TableGone."""
        try:
            return self._places(slots)
        except _IndexClosed as error:  # a reader came while its vhost was deleted
            raise TableGone(self.segment_no) from error

    def _places(self, slots: Sequence[int]) -> tuple[Sequence[int], Sequence[int]]:
        first, last = min(slots), max(slots)
        found: dict[int, tuple[int, int]] = {}
        if last - first < 4 * len(slots):
            query = (
                "SELECT number, start, past FROM slot WHERE place = ? AND number BETWEEN ? AND ?"
            )
            found = {
                number: (start, past) for number, start, past in self._rows(query, first, last)
            }
        else:
            query = "SELECT start, past FROM slot WHERE place = ? AND number = ?"
            found = {
                slot: (rows[0][0], rows[0][1])
                for slot in slots
                if (rows := self._rows(query, slot))
            }
        pairs = [found.get(slot, (0, 0)) for slot in slots]
        return [start for start, _ in pairs], [past for _, past in pairs]

    def is_beyond(self, slot: int) -> bool:
        """Tell whether a slot was never in this table."""
        return not self._is_named and slot >= self._count

    def layout(self) -> TableLayout:
        """Give the places."""
        rows = self._rows("SELECT number, start FROM slot WHERE place = ? ORDER BY number")
        offsets = array("I", [start for _, start in rows])
        offsets.append(self._end)
        names = array("I", [number for number, _ in rows]) if self._is_named else None
        return TableLayout(self.segment_no, offsets, names)

    def counts(self) -> tuple[bytes | bytearray, Mapping[int, int]]:
        """Give all counts, and the large ones."""
        refs = [row[0] for row in self._rows(_REFS)]
        large = {index: count for index, count in enumerate(refs) if count >= _LARGE}
        return bytes(min(count, _LARGE) for count in refs), large

    def live_indexes(self) -> list[int]:
        """Give the indexes that have references."""
        return [index for index, row in enumerate(self._rows(_REFS)) if row[0]]

    def restore(self, refs: bytes, large: Mapping[int, int]) -> None:
        """Set all counts anew, by index."""
        assert len(refs) == self._count
        numbers = [row[0] for row in self._rows(_NUMBERS)]
        self._restore(
            (large.get(index, count), number)
            for index, (number, count) in enumerate(zip(numbers, refs, strict=True))
            if count
        )

    def restore_slots(self, refs: bytearray, large: Mapping[int, int]) -> list[int]:
        """Set all counts anew, by slot."""
        there = {row[0] for row in self._rows(_NUMBERS + " AND past > start")}
        self._restore(
            (large.get(slot, count), slot)
            for slot, count in enumerate(refs)
            if count and slot in there
        )
        return [slot for slot, count in enumerate(refs) if count and slot not in there]

    def _restore(self, counts: Iterator[tuple[int, int]]) -> None:
        """Set the counts (count, slot), all others to 0."""
        place = self._place
        with self._index.changing() as run:
            run.execute("UPDATE slot SET refs = 0 WHERE place = ?", (place,))
            run.executemany(
                "UPDATE slot SET refs = ? WHERE place = ? AND number = ?",
                ((count, place, number) for count, number in counts),
            )
            found = run.execute(
                "SELECT count(*), total(past - start) FROM slot WHERE place = ? AND refs > 0",
                (place,),
            ).fetchone()
        self.live_count, self.live_bytes = found[0], int(found[1])

    def discard(self) -> None:
        """Remove the rows; where there is no room for that they stay until the next start, which begins anew."""
        with suppress(DiskFull), self._index.changing() as run:
            run.execute("DELETE FROM slot WHERE place = ?", (self._place,))
        self._place = -1

    def _rows(self, query: str, *values: int) -> list[tuple[int, ...]]:
        with self._index.changing() as run:
            if self._place < 0:
                raise TableGone(self.segment_no)
            return run.execute(query, (self._place, *values)).fetchall()


_REFS = "SELECT refs FROM slot WHERE place = ? ORDER BY number"
_NUMBERS = "SELECT number FROM slot WHERE place = ?"


class SqliteIndex:
    """`storage.shared.index.StoreIndex` in one database."""

    def __init__(self, filesystem: FileSystem, directory: str, path: str | None = None) -> None:
        self._filesystem = filesystem
        self._directory = directory
        self._path = path or f"{directory}/index.sqlite"
        self._lock = threading.Lock()
        self._connection: sqlite3.Connection | None = None
        self._made = 0

    def open(self) -> None:
        """Begin anew."""
        self.close()
        if self._filesystem.exists(self._directory):
            self._filesystem.rmtree(self._directory)
        self._filesystem.mkdir(self._directory)
        try:
            self._connection = self._connect()
        except sqlite3.Error as error:
            raise self._error(error) from error

    def _connect(self) -> sqlite3.Connection:
        connection = sqlite3.connect(self._path, check_same_thread=False, isolation_level=None)
        try:
            connection.execute("PRAGMA synchronous=OFF")
            connection.execute("PRAGMA journal_mode=MEMORY")
            connection.execute("PRAGMA temp_store=MEMORY")
            connection.execute(f"PRAGMA cache_size=-{_CACHE_KB}")
            connection.execute(_SCHEMA)
        except sqlite3.Error:
            connection.close()
            raise
        return connection

    def _error(self, error: sqlite3.Error) -> StorageError:
        """Give what it means; where it cannot be opened, a file of ours may say why: no descriptor is left."""
        code = getattr(error, "sqlite_errorcode", 0) & _PRIMARY
        text = f"{self._path}: {error}"
        if code == sqlite3.SQLITE_FULL:
            return DiskFull(text)
        if code == sqlite3.SQLITE_CANTOPEN:
            probe = f"{self._path}.probe"
            try:
                self._filesystem.create(probe).close()
                self._filesystem.unlink(probe)
            except OSError as refused:
                return write_error(self._path, refused)
        return StorageError(text)

    def begin(self, file: SegmentFile, segment_no: int) -> Table:
        """Make the table of a new segment."""
        return self.table(file, TableLayout(segment_no, array("I", [FILE_HEADER_SIZE]), None))

    def table(self, file: SegmentFile, layout: TableLayout) -> Table:
        """Make the table of a file that is there."""
        self._made += 1
        return SqliteTable(self, self._made, file, layout)

    @contextmanager
    def changing(self) -> Iterator[sqlite3.Connection]:
        """Run statements as one change. Raises DiskFull or StorageError."""
        with self._lock:
            connection = self._connection
            if connection is None:
                raise _IndexClosed("the store's index is closed")
            try:
                connection.execute("BEGIN")
                yield connection
                connection.execute("COMMIT")
            except sqlite3.Error as error:
                raise self._error(error) from error
            finally:
                if connection.in_transaction:
                    with suppress(sqlite3.Error):  # the next BEGIN says that it is not done
                        connection.execute("ROLLBACK")

    def close(self) -> None:
        """Close the database."""
        with self._lock:
            connection, self._connection = self._connection, None
            if connection is not None:
                connection.close()
