"""Property blocks to columns of raw values: one pass over all messages for each property.

Owns no state. Called by the reading converter. Needs no Arrow.

Most producers set the same properties on every message. So blocks are grouped by their flag word, and
inside a group every step works on the whole column: as long as all strings before a property have equal
lengths its position is one number, else a list of them. Properties after the last wanted one are never
looked at.

Invariants: a malformed block makes its own row empty and no other (`split_blocks` then goes row by row).
Values: octets of strings and tables, int of octets and timestamps; None where the property is not set.
"""

from __future__ import annotations

import struct
from collections.abc import Collection, Sequence
from typing import Any, Final, TypeAlias

from pyspark_amqp.wire import properties as p

Column: TypeAlias = list[Any]
Columns: TypeAlias = dict[str, Column]

_FIXED_SIZES: Final = {p.OCTET: 1, p.STAMP: 8}


def split_blocks(blocks: Sequence[bytes], wanted: Collection[str]) -> Columns:
    """Return the wanted properties; those that no message has are left out."""
    if not blocks or not wanted:
        return {}
    flags = [block[:2] for block in blocks]
    try:
        if flags.count(flags[0]) == len(flags):
            return _split_group(blocks, flags[0], wanted)
        rows: dict[bytes, list[int]] = {}
        for row, word in enumerate(flags):
            rows.setdefault(word, []).append(row)
        found: Columns = {}
        for word, at in rows.items():
            group = _split_group([blocks[row] for row in at], word, wanted)
            _spread(found, group, at, len(blocks))
    except IndexError:
        return _split_singly(blocks, wanted)
    return found


def _spread(found: Columns, group: Columns, rows: list[int], count: int) -> None:
    """Put a group's values into their rows of the whole columns."""
    for name, values in group.items():
        column = found.setdefault(name, [None] * count)
        for row, value in zip(rows, values, strict=True):
            column[row] = value


def _split_group(blocks: Sequence[bytes], word: bytes, wanted: Collection[str]) -> Columns:
    """Split blocks that have the same flag word. Raises: IndexError when one is cut short."""
    flags = int.from_bytes(word, "big")
    present = [name for name in p.NAMES if flags & p.BITS[name]]
    while present and present[-1] not in wanted:
        present.pop()
    found: Columns = {}
    position: int | list[int] = 2
    for name in present:
        kind = p.KINDS[name]
        if isinstance(position, int):
            column, position = _step_at_one(blocks, position, kind, name in wanted)
        else:
            column, position = _step_at_many(blocks, position, kind, name in wanted)
        if column is not None:
            found[name] = column
    _refuse_cut_short(blocks, position)
    return found


def _refuse_cut_short(blocks: Sequence[bytes], ends: int | list[int]) -> None:
    """Raise IndexError when the last property that was taken from a block goes beyond the block's end."""
    if isinstance(ends, int):
        is_short = min(map(len, blocks)) < ends
    else:
        is_short = any(map(int.__lt__, map(len, blocks), ends))
    if is_short:
        raise IndexError("a property block cut short")


def _step_at_one(
    blocks: Sequence[bytes], at: int, kind: str, is_wanted: bool
) -> tuple[Column | None, int | list[int]]:
    """Take a property that begins at the same position in all blocks; return where the next begins."""
    size = _FIXED_SIZES.get(kind)
    if size is not None:
        if not is_wanted:
            return None, at + size
        if size == 1:
            return [block[at] for block in blocks], at + 1
        return _stamps([block[at : at + 8] for block in blocks]), at + 8
    if kind == p.SHORTSTR:
        sizes = [block[at] for block in blocks]
        start = at + 1
    else:
        sizes = [4 + int.from_bytes(block[at : at + 4], "big") for block in blocks]
        start = at
    if sizes.count(sizes[0]) == len(sizes):
        end = start + sizes[0]
        return [block[start:end] for block in blocks] if is_wanted else None, end
    column = None
    if is_wanted:
        column = [block[start : start + n] for block, n in zip(blocks, sizes, strict=True)]
    return column, [start + n for n in sizes]


def _step_at_many(
    blocks: Sequence[bytes], at: list[int], kind: str, is_wanted: bool
) -> tuple[Column | None, list[int]]:
    size = _FIXED_SIZES.get(kind)
    if size is not None:
        return _numbers(blocks, at, size) if is_wanted else None, [a + size for a in at]
    pairs = zip(blocks, at, strict=True)
    if kind == p.SHORTSTR:
        ends = [a + 1 + block[a] for block, a in pairs]
        starts = [a + 1 for a in at] if is_wanted else at
    else:
        ends = [a + 4 + int.from_bytes(block[a : a + 4], "big") for block, a in pairs]
        starts = at
    if not is_wanted:
        return None, ends
    return [block[a:b] for block, a, b in zip(blocks, starts, ends, strict=True)], ends


def _numbers(blocks: Sequence[bytes], at: list[int], size: int) -> Column:
    if size == 1:
        return [block[a] for block, a in zip(blocks, at, strict=True)]
    return _stamps([block[a : a + 8] for block, a in zip(blocks, at, strict=True)])


def _stamps(octets: list[bytes]) -> Column:
    """Return eight octets of each row as numbers; raises IndexError when a row has fewer."""
    joined = b"".join(octets)
    if len(joined) != 8 * len(octets):
        raise IndexError("a timestamp cut short")
    return list(struct.unpack(f">{len(octets)}Q", joined))


def _split_singly(blocks: Sequence[bytes], wanted: Collection[str]) -> Columns:
    found: Columns = {}
    for row, block in enumerate(blocks):
        try:
            group = _split_group([block], block[:2], wanted) if p.spans(block) else {}
        except p.BadProperties:
            continue
        _spread(found, group, [row], len(blocks))
    return found
