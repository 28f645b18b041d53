"""Opening the segment files that a start finds: by their seals, or by scanning their records.

Which file counts: for each segment number the one with the highest generation; but a compacted
file without a valid seal yields to any other. A file that counts for no number is left over from a
compaction that a crash interrupted, and is removed.

A file without a valid seal is scanned. Bytes that are no record are skipped up to the next record
that fits: of this segment, with a higher slot and a right checksum. So damage costs the records
that it touches and never what follows. Bad bytes between records are copied to the quarantine
directory; those at the end of the file are a torn tail and are cut off. Then the file is sealed.
Bad bytes between records are damage only when a record behind them says that what lies before it
was durable: a power cut leaves any sectors of what was not synced, in the middle too.

State: none. Called by `storage.shared.recovery` at a start. Invariants: nothing is written before
all headers are checked, so that a refusal leaves every byte as it was; a record is never taken
that does not pass its check; a second run over the result changes nothing.
"""

from __future__ import annotations

import struct
from array import array
from contextlib import suppress
from typing import Final

from burrowmq.records import NamedTuple
from burrowmq.storage import record
from burrowmq.storage.errors import ForeignStore, LimitChanged, UnknownFormat
from burrowmq.storage.files.filesystem import FileSystem
from burrowmq.storage.shared.index import StoreIndex
from burrowmq.storage.shared.segment import (
    FILE_HEADER_SIZE,
    FLAG_TELLS_SYNCS,
    SegmentFile,
    TableLayout,
    parse_file_header,
    parse_file_name,
    read_seal,
)

# Magic, type and flags of a message record: what a search after damage looks for.
_RESYNC: Final = struct.pack("<HBB", record.MAGIC, record.TYPE_MESSAGE, 0)
_PLACE = struct.Struct("<IIII")
_TOP_FLAGS: Final = record.HEADER_SIZE + 3  # the octet of a record with the highest flags
_FOLLOWS_SYNC: Final = record.FOLLOWS_SYNC >> 24
_ALL_SLOTS: Final = 1 << 32
# Exchange, routing key, and what the broker hides behind them: no longer than a table of fields may be.
_MAX_META: Final = record.META_FIXED + 2 * 256 + 4 + 128 * 1024


class ScanTerms(NamedTuple):
    """What the files of a store have to agree with, and where damage goes."""

    directory: str
    quarantine_directory: str
    identity: bytes
    size_limit: int
    seed: int
    is_durable: bool
    store_index: StoreIndex


class FileScan(NamedTuple):
    """What a scan found in one file. `bad` are the places of bad bytes, (start, end), that lie before `end`.

    `durable_end`, `durable_slots`: what lies below was durable once.
    """

    layouts: list[TableLayout]
    bad: list[tuple[int, int]]
    end: int
    durable_end: int
    durable_slots: int


class Opened(NamedTuple):
    """The files that count, what was skipped in them, and the highest segment number seen."""

    files: list[SegmentFile]
    scanned: dict[int, int]  # segments without a seal: how many of their slots were durable once
    quarantined: int
    highest: int


def open_directory(filesystem: FileSystem, terms: ScanTerms) -> Opened:
    """Open every segment file that counts. Raises StoreRefused before anything is changed."""
    names = filesystem.listdir(terms.directory)
    found = [(place, name) for name in names if (place := parse_file_name(name)) is not None]
    numbers: dict[str, int] = {}
    for _, name in found:
        number = _check_header(filesystem, f"{terms.directory}/{name}", terms)
        if number is not None:
            numbers[name] = number
    for name in names:
        if name.endswith(".tmp"):
            with suppress(OSError):  # then the next start does it
                filesystem.unlink(f"{terms.directory}/{name}")
    highest = -1
    ranked: list[tuple[bool, int, SegmentFile, FileScan | None]] = []
    for (named, generation), name in found:
        path = f"{terms.directory}/{name}"
        number = numbers.get(name, named)
        file = SegmentFile(filesystem, path, number, generation)
        scan = _load(filesystem, file, terms)
        ranked.append((file.is_sealed or generation == 0, generation, file, scan))
        highest = max([highest, number, *(table.segment_no for table in file.tables)])
    ranked.sort(key=lambda entry: (entry[0], entry[1]))
    owner: dict[int, SegmentFile] = {}
    for _, _, file, _ in ranked:
        for table in file.tables:
            owner[table.segment_no] = file
    return _keep_owners(filesystem, terms, ranked, owner, highest)


def _keep_owners(
    filesystem: FileSystem,
    terms: ScanTerms,
    ranked: list[tuple[bool, int, SegmentFile, FileScan | None]],
    owner: dict[int, SegmentFile],
    highest: int,
) -> Opened:
    """Remove the files that count for nothing; repair and seal those without a seal."""
    files: list[SegmentFile] = []
    scanned: dict[int, int] = {}
    quarantined = 0
    if terms.is_durable and any(file.generation for _, _, file, _ in ranked):
        # It may have its name from a process that was killed before it synced it. What it was made of goes now, as far
        # as it counts nowhere, and soon if nobody refers to what it counts for.
        filesystem.fsync_dir(terms.directory)
    for _, _, file, scan in ranked:
        for table in file.tables:
            if owner[table.segment_no] is not file:
                table.discard()
        file.keep_tables([table for table in file.tables if owner[table.segment_no] is file])
        if scan is not None:
            quarantined += len(scan.bad)
            _quarantine(filesystem, terms, file, scan.bad)
        if not file.tables:
            file.release()
            with suppress(
                OSError
            ):  # as one that a compaction leaves: nobody refers to what is in it
                filesystem.unlink(file.path)
            continue
        if scan is not None:
            scanned.update((table.segment_no, scan.durable_slots) for table in file.tables)
            _seal_scanned(file, terms)
        files.append(file)
    return Opened(files, scanned, quarantined, highest)


def _check_header(filesystem: FileSystem, path: str, terms: ScanTerms) -> int | None:
    """Refuse a file that was made under other terms; gives its number unless that is damaged."""
    header = parse_file_header(filesystem.open(path).pread(FILE_HEADER_SIZE, 0))
    if header is None:
        return None
    if header.identity != terms.identity:
        raise ForeignStore(f"{path} belongs to another store")
    if header.size_limit != terms.size_limit:
        raise LimitChanged(
            f"{path} was made with msg_store_file_size_limit = {header.size_limit} and the"
            f" configured value is {terms.size_limit}; restore the former value"
        )
    return header.segment_no


def _load(filesystem: FileSystem, file: SegmentFile, terms: ScanTerms) -> FileScan | None:
    """Fill in a file's tables, from its seal or by a scan; gives what a scan found."""
    seed = terms.seed
    sealed = read_seal(file.file(), seed)
    if sealed is not None:
        end, layouts = sealed
        tables = [terms.store_index.table(file, layout) for layout in layouts]
        file.found(tables, end, file.file().size(), is_sealed=True)
        file.release()
        return None
    expected = file.segment_no if file.generation == 0 else None
    scan = scan_records(filesystem.read_file(file.path), expected, seed)
    tables = [terms.store_index.table(file, layout) for layout in scan.layouts]
    file.found(tables, scan.end, scan.end, is_sealed=False)
    return scan


def scan_records(data: bytes, expected: int | None, seed: int) -> FileScan:
    """Find the records of a whole file; `expected` is its only segment number, None for any."""
    walk = _Walk(data, expected, seed)
    at: int | None = FILE_HEADER_SIZE
    while at is not None:
        at = walk.resync(walk.take(at))
    durable = walk.durable if _tells_syncs(data) else (walk.end, _ALL_SLOTS)
    return FileScan(walk.layouts(), walk.bad, walk.end, *durable)


def _tells_syncs(data: bytes) -> bool:
    try:
        header = parse_file_header(data[:FILE_HEADER_SIZE])
    except UnknownFormat:
        return False
    return header is not None and bool(header.flags & FLAG_TELLS_SYNCS)


class _Walk:
    """One scan: the records so far, in file order, and the places of bad bytes between them."""

    def __init__(self, data: bytes, expected: int | None, seed: int) -> None:
        self._data = data
        self._expected = expected
        self._seed = seed
        self._last = (-1 if expected is None else expected, -1)
        self._found: dict[int, list[tuple[int, int, int]]] = {}
        self.bad: list[tuple[int, int]] = []
        self.end = FILE_HEADER_SIZE
        self.durable = (
            FILE_HEADER_SIZE,
            0,
        )  # end and slots, as the last record that follows a sync says

    def take(self, at: int) -> int:
        """Take the records from a place on; gives where the next one is not right."""
        scan = record.scan(self._data, at, self._seed)
        for segment, slot, offset, size in zip(*scan[:4], strict=True):
            if not self._fits(segment, slot):
                return offset
            if offset > self.end:
                self.bad.append((self.end, offset))
            if self._data[offset + _TOP_FLAGS] & _FOLLOWS_SYNC:
                self.durable = (offset, slot)
            self._last = (segment, slot)
            self._found.setdefault(segment, []).append((slot, offset, size))
            self.end = offset + size
        return max(at, scan.end)

    def _fits(self, segment: int, slot: int) -> bool:
        if self._expected is not None and segment != self._expected:
            return False
        return (segment, slot) > self._last

    def resync(self, at: int) -> int | None:
        """Find the next place after a bad one where a record may begin that fits."""
        data = self._data
        at = data.find(_RESYNC, at + 1)
        while at >= 0 and at + record.HEADER_SIZE <= len(data):
            segment, slot, meta, body = _PLACE.unpack_from(data, at + 4)
            # Sanity before any check, so that bodies full of our magic cost little.
            if (
                self._fits(segment, slot)
                and record.META_FIXED <= meta <= _MAX_META
                and at + record.HEADER_SIZE + meta + body <= len(data)
                and record.unpack_record(data, at, segment, slot, self._seed) is not None
            ):
                return at
            at = data.find(_RESYNC, at + 1)
        return None

    def layouts(self) -> list[TableLayout]:
        """Give the tables: dense for one appended segment, sparse for a merged file's."""
        if self._expected is None:
            return [
                TableLayout(
                    segment,
                    array("I", [*(place[1] for place in places), places[-1][1] + places[-1][2]]),
                    array("I", [place[0] for place in places]),
                )
                for segment, places in self._found.items()
            ]
        offsets = array("I")
        for slot, offset, _ in self._found.get(self._expected, ()):
            # A lost slot has size 0; the bad bytes count to the slot before it.
            offsets.extend([offset] * (slot + 1 - len(offsets)))
        offsets.append(self.end)
        return [TableLayout(self._expected, offsets, None)]


def _quarantine(
    filesystem: FileSystem, terms: ScanTerms, file: SegmentFile, bad: list[tuple[int, int]]
) -> None:
    """Copy bad bytes aside, a file for each place."""
    if not bad:
        return
    filesystem.mkdir(terms.quarantine_directory)
    name = file.path.rpartition("/")[2]
    for start, end in bad:
        path = f"{terms.quarantine_directory}/{name}.{start}"
        if not filesystem.exists(path):
            filesystem.create(path).pwrite(file.file().pread(end - start, start), 0)


def _seal_scanned(file: SegmentFile, terms: ScanTerms) -> None:
    """Cut the torn tail, make the records durable, then seal the file."""
    handle = file.file()
    handle.truncate(file.end)
    if terms.is_durable:
        handle.fdatasync()
    file.write_seal(terms.seed)
    if terms.is_durable:
        handle.fdatasync()
