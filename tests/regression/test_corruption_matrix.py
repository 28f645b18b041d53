"""File kinds times damage, after a crash and after a clean stop: refused, or exactly the touched messages lost, or none.

The oracle is the table: how many messages of three queues are missing; what is there is right and in order.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from storage.errors import StoreRefused
from tests.support import offline_store

Damage = Callable[[Path], None]


def flip(offset: int) -> Damage:
    def change(path: Path) -> None:
        data = bytearray(path.read_bytes())
        data[offset] ^= 0x04
        path.write_bytes(bytes(data))

    return change


def append_garbage(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"\xa5\x51\x01\x00" + b"garbage" * 9)


def empty(path: Path) -> None:
    path.write_bytes(b"")


def remove(path: Path) -> None:
    path.unlink()


def duplicate(path: Path) -> None:
    number, rest = path.name.split(".", 1)
    shutil.copy(path, path.with_name(f"{int(number) + 50}.{rest}"))


ENTRIES_AT = 64 + 2 * (32 + offline_store.ENTRIES // 8)
REFUSED = -1

# file, damage, messages lost (REFUSED: the start is)
MATRIX = [
    ("STORE.json", empty, REFUSED),
    ("STORE.json", remove, REFUSED),
    ("STORE.json", flip(0), REFUSED),
    ("**/.vhost_name", flip(0), 0),
    ("**/.vhost_name", remove, 0),
    ("**/0.g0.seg", flip(8), 0),  # file header
    ("**/0.g0.seg", flip(66), 2),  # a record's head, in two queues
    ("**/0.g0.seg", flip(64 + 21), 2),  # its checksum
    ("**/0.g0.seg", flip(64 + 30), 2),  # its meta
    ("**/0.g0.seg", flip(3000), 2),  # a body
    ("**/0.g0.seg", flip(-3), 0),  # the seal, or the last record's end
    ("**/0.g0.seg", append_garbage, 0),
    ("**/0.g0.seg", duplicate, 0),
    ("**/queues/*/0.qi", flip(8), 0),  # header
    ("**/queues/*/0.qi", flip(64 + 3), 0),  # one copy of the acks
    ("**/queues/*/0.qi", flip(ENTRIES_AT + 32 * 21 + 9), 1),  # an entry
    ("**/queues/*/0.qi", append_garbage, 0),
    ("**/queues/*/0.qs", flip(8), 0),  # header
    ("**/queues/*/0.qs", flip(-9), 1),  # the last body
    ("**/queues/*/0.qs", append_garbage, 0),
]


@pytest.mark.parametrize("is_clean", [True, False])
@pytest.mark.parametrize(("pattern", "damage", "most"), MATRIX)
def test_damage_costs_what_it_touches(
    tmp_path: Path, pattern: str, damage: Damage, most: int, is_clean: bool
) -> None:
    bodies = offline_store.make_store(tmp_path, is_clean=is_clean, scale=10)
    damage(sorted(tmp_path.glob(pattern))[0])
    if most == REFUSED:
        with pytest.raises(StoreRefused):
            offline_store.open_engine(tmp_path)
        return
    found = offline_store.bodies_of(tmp_path)
    lost = 0
    for name, expected in bodies.items():
        extra = [raw for raw in found[name] if raw not in expected]
        # An ack that was not durable may be forgotten: then its message comes again.
        assert not extra or not is_clean or "qi" in pattern, name
        kept = [raw for raw in found[name] if raw in expected]
        assert kept == [raw for raw in expected if raw in set(kept)], name
        lost += len(expected) - len(kept)
    assert lost == most
    # Whatever it was, a second start finds the same.
    assert offline_store.bodies_of(tmp_path) == found
