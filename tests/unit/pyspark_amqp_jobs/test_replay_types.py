"""Headers that a replay does not mean to change go out octet by octet."""

from __future__ import annotations

import argparse

from pyspark_amqp.wire.table import decode_table, encode_table, fields_of, table_of
from pyspark_amqp_jobs import replay

# A short, a float, an octet, a small long, an unsigned: what decoding and encoding would make other types of.
KEPT = [
    b"\x01as\x00\x05",
    b"\x01bf\x40\x00\x00\x00",
    b"\x01cb\x05",
    b"\x01dl" + bytes(8),
    b"\x01ei\xff\xff\xff\xff",
]


def changed(octets: bytes, *words: str) -> bytes:
    parser = argparse.ArgumentParser()
    replay.add_arguments(parser)
    arguments = parser.parse_args(["--from", "/a", "--to-queue", "q", *words])
    found = replay.Change(arguments)(octets)
    assert found is not None
    return found


def test_types_stay_what_they_are() -> None:
    death = [field for _, field in fields_of(encode_table({"x-death": [{"queue": "q"}]}))]
    table = table_of([*KEPT[:2], *death, *KEPT[2:]])
    assert changed(table, "--strip-deaths") == table_of(KEPT)
    marked = changed(table_of(KEPT), "--mark", "me")
    assert [field for _, field in fields_of(marked)][:-1] == KEPT
    again = changed(marked, "--mark", "you")
    assert len(again) == len(marked) + 1
    assert decode_table(again)[replay.MARK] == "you"
