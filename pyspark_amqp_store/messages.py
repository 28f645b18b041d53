"""Messages of queues as Arrow batches: the index first, bodies only when somebody asks for what is in them.

State: a MessageReader owns the open files of one task. Called by the data source's tasks and by whoever wants batches
without Spark:

    reader = MessageReader(Store("/backups/monday"), columns_of("messages", ["queue", "body"]))
    for part in plan(reader.store): ...  reader.batches(part)

What has disappeared from a live directory was acknowledged meanwhile, and is left out: a killed node removes a file,
too, before all acknowledgements of what was in it are written. In a backup, after a clean stop, and where a check
fails, it is a loss: an error, or with `fails_on_loss=False` a missing row that `lost_count` counts.

Invariants: rows come in the order of the queue; no row has bytes whose check failed unless checks are off.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any, Final

import pyarrow as pa

from pyspark_amqp.convert import Reader, schema_of
from pyspark_amqp.wire.deliveries import Deliveries
from pyspark_amqp_store import formats as f
from pyspark_amqp_store.columns import CONTENT_NAMES
from pyspark_amqp_store.files import (
    TRANSIENT_SEGMENTS,
    Gone,
    OpenFiles,
    QueueFiles,
    SharedStore,
    Store,
)
from pyspark_amqp_store.index_v1 import Journals
from pyspark_amqp_store.indexes import KIND_SHARED, PERSISTENT, SLOT_MASK, IndexFile

BATCH_ROWS: Final = 8192
BATCH_BYTES: Final = 64 << 20
PART_BYTES: Final = 64 << 20
_ATTEMPTS: Final = 3


class StoreLoss(Exception):
    """A message cannot be read."""


@dataclass(frozen=True, slots=True)
class Wanted:
    """Which messages of a store."""

    vhosts: frozenset[str] | None = None
    queues: frozenset[str] | None = None
    seq_from: int = 0
    seq_to: int | None = None
    """The last one, None for no end."""
    is_acked_too: bool = False


@dataclass(frozen=True, slots=True)
class Part:
    """Index segments of one queue that one task reads."""

    queue: QueueFiles
    numbers: tuple[int, ...]


@dataclass(slots=True)
class _Rows:
    """Entries of one index segment that become one batch."""

    index: IndexFile
    places: list[int]
    contents: list[tuple[bytes, bytes, bytes] | None] = field(default_factory=list)


def plan(store: Store, wanted: Wanted, part_bytes: int = PART_BYTES) -> list[Part]:
    """Cut the queues that are wanted into parts of about that many bytes. Raises: BadStore."""
    entry_count = int(store.limits.get("queue_index_segment_entry_count", 0))
    parts: list[Part] = []
    for queue in store.queues(wanted.vhosts, wanted.queues):
        if wanted.vhosts is not None and queue.vhost not in wanted.vhosts:
            continue
        if wanted.queues is not None and queue.name not in wanted.queues:
            continue
        known = store.segment_numbers(queue)
        numbers = [number for number in known if _overlaps(number, entry_count, wanted)]
        if not numbers:
            continue
        each = max(1, queue.size_bytes // len(known))
        count = max(1, part_bytes // each)
        parts += [
            Part(queue, tuple(numbers[at : at + count])) for at in range(0, len(numbers), count)
        ]
    return parts


def refuse_damaged_log(store: Store) -> None:
    """Raise where the commit log has lost commits: the queues that are only there may be in none of its plan's parts.

    Raises: StoreLoss.
    """
    for text in store.disk.damaged:
        raise StoreLoss(f"{store.root}: {text} (failOnDataLoss=false goes on without it)")


def _overlaps(number: int, entry_count: int, wanted: Wanted) -> bool:
    if not entry_count:
        return True
    first = number * entry_count
    return first + entry_count > wanted.seq_from and (
        wanted.seq_to is None or first <= wanted.seq_to
    )


class MessageReader:
    """Reads parts of one store."""

    def __init__(
        self,
        store: Store,
        schema: pa.Schema,
        wanted: Wanted | None = None,
        *,
        is_checked: bool = True,
        fails_on_loss: bool = True,
    ) -> None:
        self.store = store
        self.schema = schema
        self.lost_count = 0
        self._wanted = wanted or Wanted()
        self._is_checked = is_checked
        self._fails_on_loss = fails_on_loss
        self._files = OpenFiles(store.disk)
        self._shared: dict[tuple[str, bool], SharedStore] = {}
        content = [name for name in schema.names if name in CONTENT_NAMES]
        self._content = Reader(schema_of(content)) if content else None
        self._has_body = "body" in content
        self._journals: Journals | None = None  # of the queue of the part that is read

    def close(self) -> None:
        """Close the files."""
        self._files.close()

    def batches(self, part: Part) -> Iterator[pa.RecordBatch]:
        """Yield the messages of a part. Raises: StoreLoss, BadStore, OSError."""
        self._journals = None
        self._tell_of_the_log()
        for number in part.numbers:
            yield from self._segment(part.queue, number)

    def _segment(self, queue: QueueFiles, number: int) -> Iterator[pa.RecordBatch]:
        done_to = -1
        for attempt in range(_ATTEMPTS):
            index = self._index(queue, number, is_again=attempt > 0)
            if index is None:
                if attempt + 1 < _ATTEMPTS:
                    continue  # perhaps it was just converted: then it is there under its other name
                is_gone = not self._exists(queue, number)
                if is_gone and not self.store.is_backup:
                    return  # it was there for the driver, who may have looked before the node stopped
                self._miss(queue, f"index segment {number} cannot be read", is_gone=is_gone)
                return
            if index.bad_count and not attempt:
                text = (
                    f"{queue.directory}: index segment {number} has {index.bad_count} bad entries"
                )
                self._lose(text, index.bad_count)
            try:
                for rows in self._cut(index, done_to):
                    if self._content is not None:
                        rows.contents = self._read(queue, rows)
                    yield self._batch(queue, rows)
                    done_to = rows.places[-1]
            except Gone:
                continue  # written anew meanwhile: the index names another store now
            return
        self._miss(queue, f"the store of index segment {number} is gone", is_gone=True)

    def _tell_of_the_log(self) -> None:
        """What a damaged commit held is not known: of which queue, and how many messages."""
        damaged, self.store.disk.damaged = self.store.disk.damaged, []
        for text in damaged:
            self._lose(f"{self.store.root}: {text}", 1)

    def _index(self, queue: QueueFiles, number: int, *, is_again: bool) -> IndexFile | None:
        """Return an index segment; a queue's journals are looked at once, and again when a file went."""
        if is_again or (queue.has_version_1 and self._journals is None):
            self._journals = self.store.journals(queue)
        return self.store.index(queue, number, self._journals)

    def _exists(self, queue: QueueFiles, number: int) -> bool:
        disk = self.store.disk
        return any(disk.exists(f"{queue.directory}/{number}.{end}") for end in ("qi", "idx"))

    def _cut(self, index: IndexFile, done_to: int) -> Iterator[_Rows]:
        wanted = self._wanted
        base = index.number * index.entry_count
        low = max(done_to + 1, wanted.seq_from - base)
        high = index.entry_count if wanted.seq_to is None else wanted.seq_to - base + 1
        places = [
            place for place in index.places(is_acked_too=wanted.is_acked_too) if low <= place < high
        ]
        if self.store.is_backup:
            # Of transient ones the index may tell, and the shared store has nothing.
            places = [place for place in places if index.flags[place] & PERSISTENT]
        first = size = 0
        for at, place in enumerate(places):
            size += index.payload_sizes[place] if self._has_body else 0
            if at > first and (at - first >= BATCH_ROWS or size > BATCH_BYTES):
                yield _Rows(index, places[first:at])
                first, size = at, index.payload_sizes[place]
        if places:
            yield _Rows(index, places[first:])

    # -- bodies --------------------------------------------------------------------------------------------------

    def _read(self, queue: QueueFiles, rows: _Rows) -> list[tuple[bytes, bytes, bytes] | None]:
        """Return (route, properties, body) of each row, None where there is nothing to show."""
        index = rows.index
        contents: list[tuple[bytes, bytes, bytes] | None] = [None] * len(rows.places)
        own = [at for at, place in enumerate(rows.places) if index.kinds[place] != KIND_SHARED]
        for path, places in groupby(
            own, key=lambda at: self.store.body_path(queue, index, rows.places[at])
        ):
            self._read_own(queue, rows, path, list(places), contents)
        shared = [at for at, place in enumerate(rows.places) if index.kinds[place] == KIND_SHARED]
        for segment, group in groupby(
            shared, key=lambda at: index.locations[rows.places[at]] >> 32
        ):
            self._read_shared(queue, rows, segment, list(group), contents)
        return contents

    def _read_own(
        self,
        queue: QueueFiles,
        rows: _Rows,
        path: str,
        chosen: list[int],
        contents: list[tuple[bytes, bytes, bytes] | None],
    ) -> None:
        index = rows.index
        seed = self.store.queue_seed(queue)
        places = [rows.places[at] for at in chosen]
        ranges = [
            (index.locations[place], index.locations[place] + index.sizes[place])
            for place in places
        ]
        try:
            for position, data, offset in self._files.read_ranges(path, ranges):
                place = (index.number, places[position])
                contents[chosen[position]] = self._content_at(data, offset, seed, place, path)
        except FileNotFoundError as error:
            if self.store.is_still:
                self._lose(f"{path} is missing", len(chosen))
                return
            raise Gone(path) from error

    def _read_shared(
        self,
        queue: QueueFiles,
        rows: _Rows,
        segment: int,
        chosen: list[int],
        contents: list[tuple[bytes, bytes, bytes] | None],
    ) -> None:
        shared = self._shared_store(
            queue.vhost_directory, is_transient=segment >= TRANSIENT_SEGMENTS
        )
        for attempt in range(_ATTEMPTS):
            try:
                self._read_segment(queue, rows, shared, segment, chosen, contents)
            except FileNotFoundError:  # compacted since its tables were read
                if attempt + 1 == _ATTEMPTS:
                    raise
                shared.forget_files()
            else:
                return

    def _shared_store(self, vhost_directory: str, *, is_transient: bool) -> SharedStore:
        found = self._shared.get((vhost_directory, is_transient))
        if found is None:
            found = SharedStore(self.store, vhost_directory, self._files, is_transient=is_transient)
            self._shared[vhost_directory, is_transient] = found
        return found

    def _read_segment(
        self,
        queue: QueueFiles,
        rows: _Rows,
        shared: SharedStore,
        segment: int,
        chosen: list[int],
        contents: list[tuple[bytes, bytes, bytes] | None],
    ) -> None:
        """Read rows of one segment. Raises: FileNotFoundError, and has then read nothing."""
        slots = [rows.index.locations[rows.places[at]] & SLOT_MASK for at in chosen]
        found = shared.ranges(segment, slots)
        if found is None:
            self._miss(queue, f"segment {segment} is gone", is_gone=True, count=len(chosen))
            return
        path, places = found[0].path, found[1]
        there = [
            (at, slot, place)
            for at, slot, place in zip(chosen, slots, places, strict=True)
            if place
        ]
        for position, data, offset in self._files.read_ranges(
            path, [place for _, _, place in there]
        ):
            at, slot, _ = there[position]
            contents[at] = self._content_at(data, offset, shared.seed, (segment, slot), path)
        missing_count = len(chosen) - len(there)
        if missing_count:
            text = f"{path}: records are missing"
            self._miss(queue, text, is_gone=found[0].is_sealed, count=missing_count)

    def _content_at(
        self, data: memoryview, offset: int, seed: int, place: tuple[int, int], path: str
    ) -> tuple[bytes, bytes, bytes] | None:
        head = f.record_at(data, offset, seed, is_checked=self._is_checked)
        if head is None or not head.is_good or (head.segment, head.slot) != place:
            self._lose(f"{path}: the record of slot {place[1]} is damaged", 1)
            return None
        raw = data[head.raw_at : head.end]
        properties, body_at = f.split_content(raw)
        body = f.body_of(raw, body_at) if self._has_body else b""
        return f.route_of(data, head), properties, body

    def _miss(self, queue: QueueFiles, text: str, *, is_gone: bool, count: int = 1) -> None:
        """Note that something is missing: in a live directory, because nobody needs it any more."""
        if not is_gone or (self.store.is_still and not self._wanted.is_acked_too):
            self._lose(f"{queue.directory}: {text}", count)

    def _lose(self, text: str, count: int) -> None:
        self.lost_count += count
        if self._fails_on_loss:
            raise StoreLoss(f"{text} (failOnDataLoss=false leaves such messages out)")

    # -- batches -------------------------------------------------------------------------------------------------

    def _batch(self, queue: QueueFiles, rows: _Rows) -> pa.RecordBatch:
        made: dict[str, pa.Array] = {}
        places = rows.places
        if self._content is not None:
            places = [
                place for place, content in zip(places, rows.contents, strict=True) if content
            ]
            deliveries = Deliveries(queue.name)
            kept = [content for content in rows.contents if content]
            deliveries.routes = [content[0] for content in kept]
            deliveries.properties = [content[1] for content in kept]
            deliveries.bodies = [content[2] for content in kept]
            batch = self._content.batch(deliveries)
            made = dict(zip(batch.schema.names, batch.columns, strict=True))
        for name in self.schema.names:
            if name == "file":
                made[name] = self._file_names(queue, rows.index, places)
            elif name not in made:
                made[name] = _column(name, queue, rows.index, places, self.schema.field(name).type)
        return pa.RecordBatch.from_arrays(
            [made[name] for name in self.schema.names], schema=self.schema
        )

    def _file_names(self, queue: QueueFiles, index: IndexFile, places: Sequence[int]) -> pa.Array:
        """Return the files of the queue's own records; a shared one's is for the store to know."""
        journals = index.journals or bytes(index.entry_count)
        is_own = [index.kinds[place] != KIND_SHARED for place in places]
        first: dict[int, int] = {}  # a place for each journal; 0: the segment's own file
        for place, own in zip(places, is_own, strict=True):
            if own:
                first.setdefault(journals[place], place)
        known = {
            journal: self.store.relative(self.store.body_path(queue, index, place))
            for journal, place in first.items()
        }
        names = [
            known[journals[place]] if own else None
            for place, own in zip(places, is_own, strict=True)
        ]
        return pa.array(names, pa.string())


def _column(
    name: str, queue: QueueFiles, index: IndexFile, places: Sequence[int], kind: pa.DataType
) -> pa.Array:
    """Return a column that the index alone tells."""
    if name in ("vhost", "queue"):
        value = queue.vhost if name == "vhost" else queue.name
        return pa.repeat(pa.scalar(value, pa.string()), len(places))
    if name == "level":
        return pa.repeat(pa.scalar(queue.level, kind), len(places))
    base = index.number * index.entry_count
    values: list[Any]
    if name == "seq":
        values = [base + place for place in places]
    elif name == "body_size":
        values = [index.payload_sizes[place] for place in places]
    elif name == "persistent":
        values = [bool(index.flags[place] & PERSISTENT) for place in places]
    elif name == "expires_at":
        stamps = [index.expiries[place] * 1000 or None for place in places]
        return pa.array(
            [stamp if stamp and stamp < 1 << 62 else None for stamp in stamps], pa.int64()
        ).cast(kind)
    elif name == "state":
        values = ["acked" if index.acked >> place & 1 else "live" for place in places]
    elif name == "store":
        values = ["shared" if index.kinds[place] == KIND_SHARED else "queue" for place in places]
    elif name == "segment":
        values = [
            index.locations[place] >> 32 if index.kinds[place] == KIND_SHARED else index.number
            for place in places
        ]
    else:
        values = [
            index.locations[place] & SLOT_MASK if index.kinds[place] == KIND_SHARED else place
            for place in places
        ]
    return pa.array(values, kind)
