"""A small file's bytes: what is read is what was written, and holes cost nothing."""

from __future__ import annotations

import random

from burrowmq.storage.log.content import Content, painted, without_holes


def test_it_reads_like_a_file() -> None:
    for seed in range(300):
        rng = random.Random(seed)
        content, file = Content(), bytearray()
        for _ in range(rng.randint(1, 30)):
            offset, size = rng.randint(0, 500), rng.randint(1, 120)
            if rng.random() < 0.15:
                content.resize(offset)
                del file[offset:]
                file.extend(bytes(offset - len(file)))
            else:
                data = rng.randbytes(size) if rng.random() < 0.7 else bytes(size)
                content.write(data, offset)
                file.extend(bytes(max(0, offset - len(file))))
                file[offset : offset + size] = data
            at, count = rng.randint(0, 700), rng.randint(0, 700)
            assert content.read(count, at) == file[at : at + count], seed
        assert content.size == len(file)
        content.join()
        assert content.read(1000, 0) == file, seed


def test_holes_are_not_kept() -> None:
    content = Content()
    content.write(b"head", 0)
    content.write(b"a" + bytes(2000) + b"b", 64)
    content.write(b"entry", 4224)
    content.join()
    assert content.size == 4229
    assert [len(data) for _, data in content.pieces] == [65, 1, 5]


def test_pieces_stay_few() -> None:
    content = Content()
    for number in range(500):
        content.write(b"%03d" % number, number * 3)
        content.write(b"x", 0)
    assert len(content.pieces) < 12
    assert content.stored <= 2 * content.size


def test_what_ends_in_the_middle_of_a_hole() -> None:
    assert without_holes(b"") == []
    assert without_holes(bytes(200)) == []
    assert without_holes(b"a" + bytes(63) + b"b") == [(0, b"a" + bytes(63) + b"b")]
    assert without_holes(b"a" + bytes(64) + b"b") == [(0, b"a"), (65, b"b")]
    assert painted([(2, b"xy")], 1, 3, b"abc") == b"axy"
    assert painted([], 0, -1) == b""
