"""A few small writes are in their files and in the log, or are as if nobody had asked."""

from __future__ import annotations

import errno
import random

import pytest

from burrowmq.storage.files.filesystem import Write
from tests.support.mounted_log import OPTIONS, QUEUE, QUEUES, made, mounted, moved_out, synced


def test_own_and_small_files_go_together() -> None:
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20))
    own, small = moved_out(filesystem), made(filesystem, f"{QUEUES}/small/a")
    way = filesystem.short_way
    assert way.is_open
    syncs = base.counters.calls["fdatasync"]
    written = way.write([(own, b"little", 500), (small, b"more", 4)])
    assert written is not None
    assert [file.path for file, _, _ in written] == [own.path]
    assert way.make_durable(written)
    assert base.counters.calls["fdatasync"] == syncs + 1
    found, _ = mounted(base.cut(random.Random(1)))
    assert found.read_file(own.path)[500:] == b"little"
    assert found.read_file(small.path) == b"datamore"


@pytest.mark.parametrize("is_refused", [False, True])
def test_what_is_too_much_or_refused_is_written_nowhere_but_there(is_refused: bool) -> None:
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20))
    own, small = moved_out(filesystem), made(filesystem, f"{QUEUES}/small/a")
    if is_refused:
        base.fail("pwrite", errno.EIO, path_part=QUEUE)
    writes: list[Write] = [(small, b"more", 4), (own, bytes(6 if is_refused else 40_000), 500)]
    assert filesystem.short_way.write(writes) is None
    assert filesystem.read_file(small.path) == b"data"
    assert filesystem.short_way.is_open


def test_it_is_closed_while_a_sync_would_do_more() -> None:
    filesystem, _ = mounted(options=OPTIONS._replace(limit=1 << 20, behind_limit=0))
    way, own = filesystem.short_way, moved_out(filesystem)
    filesystem.distrust()
    assert not way.is_open
    filesystem.settle()
    assert way.is_open
    own.pwrite(b"little", 500)
    synced(
        filesystem, own
    )  # the log is ahead of more files than it may be: the next generation is due
    assert not way.is_open


def test_the_usual_way_goes_on_from_there() -> None:
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20))
    own, way = moved_out(filesystem), filesystem.short_way
    written = way.write([(own, b"little", 500)])
    assert written is not None
    base.fail("fdatasync", path_part=".log")
    assert not way.make_durable(written)
    way.note(written)
    synced(filesystem, own)
    assert mounted(base.cut(random.Random(1)))[0].read_file(own.path)[500:] == b"little"
