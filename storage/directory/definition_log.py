"""A look at SQLite's write-ahead log of the definitions, before SQLite opens it.

SQLite takes the log up to the first frame whose checksum fails, and removes it with the next checkpoint. That is right
for the end that a power cut has torn, and wrong for a bit that flipped: the transactions behind it were confirmed.

All numbers are big endian, those that a checksum adds up are as the magic says:

    0     4   magic: 0x377f0682, a checksum adds up little endian words, or 0x377f0683, big endian ones
    4     4   version
    8     4   page size
    12    4   number of the checkpoint
    16    8   salt, another one for each generation of the log
    24    8   checksum of the first 24 bytes
    32    24  of each frame: page number (4), size of the database in pages where a transaction ends, else 0 (4),
              the salt (8), checksum from the one before on, over the first 8 bytes and the page (8)
    56        the page

Each transaction is synced before anything of the next one is written: a power cut tears the last one alone, by
sectors. Behind it may lie frames of an older generation, whose salt is another, or the rest of a transaction that was
undone. So the log is damaged for certain where a frame fails and, behind it or with it, one transaction ends and
another one goes on from its checksum to its own end. It is too where the header fails: it was synced before the first
frame.

What cannot be told from a torn end: a bit that flipped in the last transaction. SQLite leaves it out, as if it had not
been committed. A bit in the last but one costs both where that ends in a frame whose fields two sectors share (1 of
32): they may be of two writes. With `psow=0` a transaction's last frame would be repeated, and be taken for another
transaction: nobody opens the database so.

State: none. Called at a start (`storage.directory.definition_store`). Invariants: nothing is written; what a power cut
may leave is never refused. Costs about 80 us for each 4 KiB frame, of which there are about 1,000 at most.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import closing

from burrowmq.records import NamedTuple
from burrowmq.storage.errors import NoDescriptors, ReadFailed, StoreRefused, error_text
from burrowmq.storage.files.filesystem import NO_DESCRIPTORS, File, FileSystem

HEADER = struct.Struct(">IIII8s8s")
FRAME = struct.Struct(">II8s8s")
_MAGICS = {0x377F0682: "<", 0x377F0683: ">"}
_SUMMED = 24  # bytes of the header
_SUMMED_IN_FRAME = 8
_WORD = 0xFFFFFFFF
_PAGE_MIN, _PAGE_MAX = 512, 65536
_SECTOR = 512
_ROUGHLY = 1 << 20

Sum = tuple[int, int]
_START: Sum = (0, 0)


class Frame(NamedTuple):
    """One frame as it is in the file."""

    offset: int
    pages: int
    """The database's size if a transaction ends here, else 0."""
    salt: bytes
    checksum: Sum
    summed: bytes
    """What its checksum is of."""


class _Log(NamedTuple):
    file: File
    order: str
    page_size: int
    salt: bytes
    checksum: Sum

    def frames(self) -> Iterator[Frame]:
        """Give all that are whole in length."""
        size = FRAME.size + self.page_size
        step = max(1, _ROUGHLY // size) * size
        offset = HEADER.size
        while data := self.file.pread(step, offset):
            for at in range(0, len(data) - size + 1, size):
                _, pages, salt, checksum = FRAME.unpack_from(data, at)
                summed = data[at : at + _SUMMED_IN_FRAME] + data[at + FRAME.size : at + size]
                yield Frame(offset + at, pages, salt, _stored(checksum), summed)
            offset += step

    def sum_of(self, frame: Frame, before: Sum) -> Sum:
        return checksum_of(frame.summed, self.order, before)


def check_log(filesystem: FileSystem, path: str) -> None:
    """Look at the log at `path`, if there is one.

    Raises StoreRefused where it has lost something that was committed, ReadFailed, NoDescriptors.
    """
    try:
        offset = _lost_at(filesystem, path)
    except OSError:
        try:
            offset = _lost_at(filesystem, path)
        except OSError as error:
            kind = NoDescriptors if error.errno in NO_DESCRIPTORS else ReadFailed
            raise kind(error_text(error, path)) from error
    if offset is not None:
        raise StoreRefused(
            f"{path} is damaged at byte {offset}, and later changes lie behind it; put a backup of the definitions"
            " back, or move this file away and start without the changes in it: messages of queues that are then not"
            " declared are kept until they are declared again"
        )


def _lost_at(filesystem: FileSystem, path: str) -> int | None:
    """Where damage begins that no power cut explains. Raises OSError."""
    if not filesystem.exists(path):
        return None
    with closing(filesystem.open(path)) as file:
        head = file.pread(HEADER.size, 0)
        if len(head) < HEADER.size or not any(head):
            return None
        log = _opened(file, head)
        if log is None:
            return 0 if _has_content(file) else None
        return _lost_in(log)


def _opened(file: File, head: bytes) -> _Log | None:
    magic, _, page_size, _, salt, checksum = HEADER.unpack(head)
    order, found = _MAGICS.get(magic), _stored(checksum)
    is_size = _PAGE_MIN <= page_size <= _PAGE_MAX and not page_size & (page_size - 1)
    if order is None or not is_size or checksum_of(head[:_SUMMED], order, _START) != found:
        return None
    return _Log(file, order, page_size, salt, found)


def _has_content(file: File) -> bool:
    offset = HEADER.size
    while data := file.pread(_ROUGHLY, offset):
        if any(data):
            return True
        offset += len(data)
    return False


def _lost_in(log: _Log) -> int | None:
    """Where the first frame is that fails, if a later transaction than its own is whole."""
    frames, before = log.frames(), log.checksum
    for frame in frames:
        checksum = log.sum_of(frame, before)
        if frame.salt != log.salt or checksum != frame.checksum:
            is_over = _ends(log, frame, before)
            # Where only the stored one is wrong, the next frame goes on from the right one.
            seeds = {frame.checksum, checksum}
            return frame.offset if _has_later(log, frames, seeds, is_over=is_over) else None
        before = checksum
    return None


def _has_later(log: _Log, frames: Iterator[Frame], seeds: set[Sum], *, is_over: bool) -> bool:
    """Whether a transaction ends, and another one goes on from it to its own end.

    `is_over`: one ends with the frame before, whose checksum is one of the `seeds`.
    """
    for frame in frames:
        is_next = frame.salt == log.salt and any(
            log.sum_of(frame, seed) == frame.checksum for seed in seeds
        )
        if not is_next:
            is_over = False
        elif is_over and frame.pages:
            return True
        if frame.pages and (is_next or _is_whole(log, frame)):
            is_over = True
        seeds = {frame.checksum}
    return False


def _is_whole(log: _Log, frame: Frame) -> bool:
    """Whether the fields of a frame that fails are of this generation, all of them.

    A power cut leaves some sectors as they were: fields in one sector are of one write.
    """
    is_split = (frame.offset + FRAME.size - 1) // _SECTOR != (frame.offset + 4) // _SECTOR
    return frame.salt == log.salt and not is_split


def _ends(log: _Log, frame: Frame, before: Sum) -> bool:
    """Whether a transaction ends with the first frame that fails, also where the bit that says so has flipped."""
    if log.sum_of(frame, before) == frame.checksum:
        return frame.pages > 0
    for bit in range(32):
        pages = frame.pages ^ 1 << bit
        summed = frame.summed[:4] + pages.to_bytes(4, "big") + frame.summed[8:]
        if checksum_of(summed, log.order, before) == frame.checksum:
            return pages > 0
    return frame.pages > 0 and _is_whole(log, frame)


def _stored(checksum: bytes) -> Sum:
    return int.from_bytes(checksum[:4], "big"), int.from_bytes(checksum[4:], "big")


def checksum_of(data: bytes, order: str, before: Sum) -> Sum:
    """Give SQLite's checksum of data whose length is a multiple of 8, from the one `before` it on."""
    words = struct.unpack(f"{order}{len(data) // 4}I", data)
    first, second = before
    for one, other in zip(words[::2], words[1::2], strict=True):
        first = (first + one + second) & _WORD
        second = (second + other + first) & _WORD
    return first, second
