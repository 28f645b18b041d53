"""The bytes of a small file that lies in the log: a few pieces, and zeros between them.

State: the pieces, in the order in which they were written, and the file's size. Called by `storage.log.files` on the
disk thread; `read` also on the reader thread, which sees the pieces as they were before or after a write. Invariant: a
later piece covers an earlier one; a hole costs nothing, so an index whose first entry lies behind 4 KB of
acknowledgements costs that entry.
"""

from __future__ import annotations

from collections.abc import Sequence

# Zeros of this length and more are not kept.
_HOLE = 64
_ZEROS = bytes(_HOLE)
# Pieces are joined when there are more than these, and twice as many as the last time.
_PIECES_MIN = 4

Piece = tuple[int, bytes]


class Content:
    """See the module."""

    __slots__ = ("_join_above", "pieces", "size", "stored")

    def __init__(self, pieces: tuple[Piece, ...] = (), size: int = -1) -> None:
        """Begin with pieces that do not overlap; without a size, with that of the last."""
        self.pieces = pieces
        self.size = max(self.end, 0) if size < 0 else size
        self.stored = sum(len(data) for _, data in pieces)  # bytes in the pieces
        self._join_above = _PIECES_MIN

    @property
    def end(self) -> int:
        """Where the last piece ends."""
        return end_of(self.pieces)

    def write(self, data: bytes, offset: int) -> None:
        """Write at an offset."""
        end = offset + len(data)
        pieces = self.pieces
        if pieces and pieces[-1][0] + len(pieces[-1][1]) == offset:
            self.pieces = (*pieces[:-1], (pieces[-1][0], pieces[-1][1] + data))
        else:
            self.pieces = (*pieces, (offset, data))
        self.stored += len(data)
        self.size = max(self.size, end)
        if len(self.pieces) > self._join_above or self.stored > 2 * self.size:
            self.join()

    def resize(self, size: int) -> None:
        """Cut or extend."""
        if size < self.size:
            kept = [
                (offset, data[: size - offset]) for offset, data in self.pieces if offset < size
            ]
            self.pieces = tuple(kept)
            self.stored = sum(len(data) for _, data in kept)
        self.size = size

    def read(self, size: int, offset: int) -> bytes:
        """Give up to so many bytes."""
        return painted(self.pieces, offset, min(size, self.size - offset))

    def join(self) -> None:
        """Make as few pieces as there can be, without holes in them."""
        self.pieces = tuple(without_holes(painted(self.pieces, 0, self.size)))
        self.stored = sum(len(data) for _, data in self.pieces)
        self._join_above = max(_PIECES_MIN, 2 * len(self.pieces))


def end_of(pieces: Sequence[Piece]) -> int:
    """Give where the last of some pieces ends; -1 of none."""
    return max((offset + len(data) for offset, data in pieces), default=-1)


def painted(pieces: Sequence[Piece], offset: int, size: int, ground: bytes = b"") -> bytes:
    """Give `size` bytes from an offset on: the pieces, one over the other, over what is there."""
    if size <= 0:
        return b""
    found = bytearray(ground[:size].ljust(size, b"\0"))
    for at, data in pieces:
        first, last = max(at, offset), min(at + len(data), offset + size)
        if first < last:
            found[first - offset : last - offset] = data[first - at : last - at]
    return bytes(found)


def without_holes(data: bytes) -> list[Piece]:
    """Give the pieces of some bytes that are not zeros."""
    pieces: list[Piece] = []
    at = 0
    while True:
        rest = data[at:]
        at += len(rest) - len(rest.lstrip(b"\0"))
        if at >= len(data):
            return pieces
        hole = data.find(_ZEROS, at)
        end = len(data) if hole < 0 else hole
        pieces.append((at, data[at:end]))
        at = end
