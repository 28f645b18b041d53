"""Small queues that have grown get files of their own, when the disk lets them."""

from __future__ import annotations

import random

import pytest

from tests.support.mounted_log import (
    OPTIONS,
    QUEUE,
    QUEUES,
    made,
    mounted,
    moved_out,
    synced,
)


def test_a_queue_that_grows_moves_out_and_who_has_its_file_goes_on() -> None:
    filesystem, base = mounted()
    file = moved_out(filesystem)
    assert base.content(f"{QUEUE}/0.qi") == b"x" * 500
    file.pwrite(b"y", 500)
    file.pwritev([b"z"], 501)
    assert file.pread(9, 499) == b"xyz"
    assert file.size() == 502
    synced(filesystem, file)
    again, _ = mounted(base.cut(random.Random(3)))
    assert again.groups.small.names() == []
    assert again.read_file(f"{QUEUE}/0.qi") == b"x" * 500 + b"yz"
    file.truncate(10)
    file.fdatasync()
    assert mounted(base.cut(random.Random(3)))[0].file_size(f"{QUEUE}/0.qi") == 10


def test_a_file_that_ends_with_zeros_has_its_length_where_it_moves_to() -> None:
    filesystem, base = mounted()
    file = made(filesystem, f"{QUEUE}/0.qi", b"x" * 500)
    file.truncate(900)
    synced(filesystem, file)
    synced(filesystem)
    assert base.file_size(f"{QUEUE}/0.qi") == file.size() == 900


@pytest.mark.parametrize("operation", ["mkdir", "create", "fdatasync"])
def test_a_queue_that_the_disk_refuses_stays_small_until_it_has_twice_as_much(
    operation: str,
) -> None:
    filesystem, base = mounted(options=OPTIONS._replace(total_limit=1 << 20))
    files = [made(filesystem, f"{QUEUES}/{name}/0.qi", b"x" * 500) for name in ("good", "q")]
    base.fail(operation, times=100, path_part=QUEUE)
    synced(filesystem, *files)
    small = filesystem.groups.small
    assert small.names() == [QUEUE], "the other one is not held up"
    calls = base.counters.calls.copy()
    files[1].pwrite(b"y", 500)
    synced(filesystem, files[1])
    assert base.counters.calls[operation] - calls[operation] <= (operation == "fdatasync")
    base.heal()
    files[1].pwrite(b"y" * 500, 501)
    synced(filesystem, files[1])
    assert small.names() == []
    assert mounted(base.cut(random.Random(3)))[0].file_size(f"{QUEUE}/0.qi") == 1001


def test_a_queue_that_the_disk_refused_for_hours_need_not_have_twice_as_much_once_it_does_not() -> (
    None
):
    """It has grown all the time; each write to a small file costs what is in it, and each generation has all of it."""
    filesystem, base = mounted(options=OPTIONS._replace(total_limit=1 << 20))
    file = made(filesystem, f"{QUEUE}/0.qi", b"x" * 500)
    base.fail("mkdir", times=1 << 30, path_part=QUEUE)
    for at in range(500, 30_000, 500):
        file.pwrite(b"x" * 500, at)
        synced(filesystem, file)
    assert filesystem.groups.small.names() == [QUEUE]
    base.heal()
    for _ in range(130):
        file.pwrite(b"y" * 500, 0)
        synced(filesystem, file)
    assert filesystem.groups.small.names() == []
    assert mounted(base.cut(random.Random(3)))[0].file_size(f"{QUEUE}/0.qi") == 30_000


@pytest.mark.parametrize("is_removal_refused", [False, True])
def test_a_queue_that_could_not_move_out_leaves_nothing_to_one_that_is_declared_again(
    is_removal_refused: bool,
) -> None:
    filesystem, base = mounted(options=OPTIONS._replace(total_limit=1 << 20))
    base.fail("fdatasync", times=2, path_part=QUEUE)
    synced(filesystem, made(filesystem, f"{QUEUE}/0.qi", b"x" * 500))
    assert filesystem.groups.small.names() == [QUEUE]
    if is_removal_refused:
        base.fail("rmtree")
        with pytest.raises(OSError, match=QUEUE):
            filesystem.rmtree(QUEUE)
    filesystem.rmtree(QUEUE)
    synced(filesystem, made(filesystem, f"{QUEUE}/0.qi", b"new"))
    assert filesystem.groups.small.names() == [QUEUE]
    assert mounted(base.process_killed())[0].read_file(f"{QUEUE}/0.qi") == b"new"


def test_all_small_queues_together_have_a_bound() -> None:
    filesystem, base = mounted()
    for number in range(40):
        synced(filesystem, made(filesystem, f"{QUEUES}/q{number}/a", b"x" * 300))
    stored = sum(len(filesystem.listdir(path)) * 300 for path in filesystem.groups.small.names())
    assert 3000 < stored < 5000
    assert len(mounted(base.cut(random.Random(3)))[0].listdir(QUEUES)) == 40
