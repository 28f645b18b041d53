"""The ballast: reserved where there is room, given up when there is none, and back before publishers go on."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from burrowmq.storage.files.filesystem import OsFileSystem
from burrowmq.storage.files.space import BALLAST_FILE, Space
from tests.simulation.store_world import SilentObserver
from tests.support.sim_filesystem import SimFileSystem

SIZE = 1000
PATH = f"/data/{BALLAST_FILE}"


def space_on(free_bytes: int | None) -> tuple[SimFileSystem, Space, list[bool]]:
    filesystem = SimFileSystem()
    filesystem.mkdir("/data")
    filesystem.free_bytes = free_bytes
    told: list[bool] = []
    return filesystem, Space(filesystem, "/data", SIZE, SilentObserver(), told.append), told


def test_it_is_given_up_and_comes_back_with_the_room() -> None:
    filesystem, space, told = space_on(100 * SIZE)
    assert filesystem.file_size(PATH) == SIZE
    space.look()
    assert told == []
    space.ran_out("no room")
    space.ran_out("still none")
    assert told == [True]
    assert not filesystem.exists(PATH)
    filesystem.free_bytes = 2 * SIZE
    space.look()
    assert told == [True]
    assert space.is_short
    filesystem.free_bytes = 3 * SIZE
    space.look()
    assert told == [True, False]
    assert filesystem.file_size(PATH) == SIZE


def test_a_small_disk_has_none() -> None:
    for free_bytes in (0, 7 * SIZE):
        filesystem, space, told = space_on(free_bytes)
        assert not filesystem.exists(PATH)
        space.ran_out("no room")
        space.look()
        assert told == [True, False]


def test_one_that_cannot_be_reserved_again_keeps_publishers_waiting() -> None:
    filesystem, space, told = space_on(None)
    space.ran_out("no room")
    filesystem.fail("pwrite", path_part=BALLAST_FILE)
    space.look()
    assert told == [True]
    assert not filesystem.exists(PATH)
    space.look()
    assert told == [True, False]


@pytest.mark.parametrize(
    ("number", "goes_on"), [(errno.EIO, True), (errno.EOPNOTSUPP, True), (errno.EDQUOT, False)]
)
def test_publishers_do_not_wait_for_ever_for_one_that_is_refused_though_there_is_room(
    number: int, goes_on: bool
) -> None:
    filesystem, space, told = space_on(None)
    filesystem.fail("pwrite", number, times=1 << 30, path_part=BALLAST_FILE)
    space.ran_out("no room")
    for _ in range(100):
        space.look()
    assert told == ([True, False] if goes_on else [True])
    filesystem.heal()
    space.ran_out("no room again")
    space.look()
    assert told[-2:] == [True, False]
    assert filesystem.exists(PATH), "the next time there is one again"


def test_an_earlier_run_left_it(tmp_path: Path) -> None:
    filesystem = OsFileSystem()
    for _ in range(2):
        Space(filesystem, str(tmp_path), 4096, SilentObserver(), lambda _: None)
        assert (tmp_path / BALLAST_FILE).stat().st_blocks * 512 >= 4096


def test_a_full_disk_gives_way_to_acknowledgements() -> None:
    """Without the ballast the batch that waits for room would keep the acks behind it waiting for ever."""
    from dataclasses import replace

    from tests.simulation.store_world import OPTIONS, World

    world = World(3, strict=True, options=replace(OPTIONS, ballast_bytes=200_000))
    world.declare()
    world.sync()
    spaces: list[bool] = []
    world.engine.on_space = spaces.append
    filesystem = world.filesystem
    filesystem.free_bytes = 500
    unlink = filesystem.unlink

    def unlink_and_free(path: str) -> None:
        size = filesystem.file_size(path)
        unlink(path)
        assert filesystem.free_bytes is not None
        filesystem.free_bytes += size

    filesystem.unlink = unlink_and_free  # type: ignore[method-assign]
    for _ in range(12):
        world.publish()
    world.sync()
    assert spaces == [True]
    for queue in world.queues.values():
        live = queue.live()
        queue.log.ack_many(live)
        for seq in live:
            queue.entries[seq].ack_epoch = world.engine.epoch
    world.sync()
    filesystem.free_bytes += 1_000_000
    world.engine.idle()
    assert spaces == [True, False]
    world.read_back()


def test_one_of_an_earlier_run_is_given_up_where_a_new_one_would_not_be_reserved() -> None:
    """A node that is started again because its disk is nearly full."""
    filesystem, _, _ = space_on(100 * SIZE)
    filesystem.free_bytes = 7 * SIZE
    space = Space(filesystem, "/data", SIZE, SilentObserver(), lambda _: None)
    filesystem.free_bytes = 0
    assert space.ran_out("no room")
    assert not filesystem.exists(PATH)


@pytest.mark.parametrize(("free_bytes", "size"), [(8 * SIZE, SIZE), (7 * SIZE, 100)])
def test_one_that_a_kill_cut_off_is_made_whole_where_a_new_one_would_be(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_bytes: int, size: int
) -> None:
    """Else it would free next to nothing for ever."""
    monkeypatch.setattr(OsFileSystem, "disk_free", lambda *_: free_bytes)
    (tmp_path / BALLAST_FILE).write_bytes(bytes(100))
    space = Space(OsFileSystem(), str(tmp_path), SIZE, SilentObserver(), lambda _: None)
    assert space.has_ballast
    assert (tmp_path / BALLAST_FILE).stat().st_size == size
