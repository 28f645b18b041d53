"""Rows that the reader of store files gives, messages to write into them, and damage. Needs pyarrow."""

from __future__ import annotations

import random
from pathlib import Path

from pyspark_amqp_store.columns import MESSAGES, columns_of
from pyspark_amqp_store.files import Store
from pyspark_amqp_store.messages import MessageReader, Wanted, plan


def rows(
    path: Path,
    names: list[str],
    wanted: Wanted | None = None,
    *,
    part_bytes: int = 64 << 20,
    store: Store | None = None,
    **options: bool,
) -> list[tuple]:
    """Read these columns of a store, part by part; `store` is one that was opened before."""
    store = store or Store(str(path))
    reader = MessageReader(store, columns_of(MESSAGES, names), wanted, **options)
    found = []
    for part in plan(store, wanted or Wanted(), part_bytes):
        for batch in reader.batches(part):
            found += [tuple(row.values()) for row in batch.to_pylist()]
    reader.close()
    return found


def bodies(count: int, sizes: tuple[int, ...] = (20, 700, 5000), seed: int = 1) -> list[bytes]:
    """Numbered, of sizes below, at and above those that a queue's own files take."""
    source = random.Random(seed)
    return [b"%06d" % at + source.randbytes(source.choice(sizes)) for at in range(count)]


def damage(path: Path, at: int) -> None:
    """Flip a bit of the octet at this place."""
    data = bytearray(path.read_bytes())
    data[at] ^= 1
    path.write_bytes(data)
