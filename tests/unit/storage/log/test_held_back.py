"""What is held back from own files is read as if it were there, and is there before anything younger or durable."""

from __future__ import annotations

import errno
import random

import pytest

from burrowmq.storage.files.filesystem import File
from burrowmq.storage.log.files import OwnFile
from burrowmq.storage.log.filesystem import LogFileSystem
from burrowmq.storage.log.held_back import HeldBack
from tests.support.mounted_log import OPTIONS, QUEUE, made, mounted, moved_out, synced
from tests.support.sim_filesystem import SimFileSystem


class Nobody:
    """Who is told of own files."""


def held_files(limit: int = 100) -> tuple[HeldBack, SimFileSystem, list[OwnFile]]:
    """Two files of four bytes."""
    base = SimFileSystem()
    base.mkdir("/q")
    files: list[OwnFile] = []
    for name in ("a", "b"):
        file = base.create(f"/q/{name}")
        file.pwrite(b"base", 0)
        files.append(OwnFile(Nobody(), file))  # type: ignore[arg-type] # nothing is told here
    return HeldBack(base, limit), base, files


def test_what_is_held_back_is_read_over_what_the_file_has() -> None:
    held, base, (one, _) = held_files()
    held.hold([(one, b"AS", 1), (one, b"younger", 8), (one, b"est", 15), (one, b"S", 2)])
    for _ in range(2):
        assert one.size() == 18
        assert one.pread(100, 0) == b"bASe\0\0\0\0youngerest"
        assert [one.pread(2, offset) for offset in (0, 3, 7, 14, 17, 18)] == [
            b"bA",
            b"e\0",
            b"\0y",
            b"re",
            b"t",
            b"",
        ]
        assert held.write_out_all() == {}
    assert base.content("/q/a") == b"bASe\0\0\0\0youngerest"


def test_many_writes_behind_each_other_are_written_with_one() -> None:
    held, base, (one, other) = held_files(limit=199)
    writes = base.counters.calls["pwrite"]
    for number in range(20):
        assert not held.is_full
        held.hold([(one, b"12345", 4 + 5 * number), (other, b"12345", 4 + 5 * number)])
    assert held.is_full
    held.write_out_all()
    assert not held.is_full
    assert base.counters.calls["pwrite"] == writes + 2
    assert base.content("/q/a") == base.content("/q/b") == b"base" + b"12345" * 20


def test_nothing_younger_is_written_below_it() -> None:
    held, base, (one, _) = held_files()
    held.hold([(one, b"older", 4)])
    one._journal = mounted()[0].groups
    one.pwrite(b"beside", 9)
    assert base.content("/q/a") == b"base\0\0\0\0\0beside"
    one.pwritev([b"yo", b"ung"], 5)
    assert one.pread(100, 0) == base.content("/q/a") == b"baseoyoungeside"


def test_what_is_refused_stays_held_back_and_the_others_are_written() -> None:
    held, base, (one, other) = held_files(limit=7)
    held.hold([(one, b"more", 4), (other, b"more", 4)])
    base.fail("pwrite", errno.ENOSPC, path_part="/q/a", times=2)
    ((file, error),) = held.write_out_all().items()
    assert (file, error.errno) == (one, errno.ENOSPC)
    assert one.pread(10, 0) == other.pread(10, 0) == base.content("/q/b") == b"basemore"
    assert not held.is_full
    held.hold([(one, b"more", 8)])
    assert held.is_full
    assert held.write_out([other, one]) == {}
    assert base.content("/q/a") == b"basemoremore"
    assert not held.is_full


def test_who_reads_meanwhile_sees_all_of_it() -> None:
    held, base, (one, _) = held_files()
    held.hold([(one, b"more", 4)])
    read = base.open("/q/a").pread
    seen: list[bytes] = []

    class Between:
        """The file, written out and written over between the two looks of a reader."""

        def pread(self, size: int, offset: int) -> bytes:
            held.write_out_all()
            seen.append(read(size, offset))
            return seen[-1]

    one.base, base_file = Between(), one.base  # type: ignore[assignment] # only read
    one.base.pwrite = base_file.pwrite  # type: ignore[method-assign]
    held._base = _Writing(base_file)  # type: ignore[assignment]
    assert one.pread(10, 0) == b"basemore"
    assert seen == [b"basemore"]


class _Writing:
    def __init__(self, file: File) -> None:
        self._file = file

    def write_some(self, writes: list[tuple[File, bytes, int]]) -> int:
        for _, data, offset in writes:
            self._file.pwrite(data, offset)
        return len(writes)


def test_a_cut_takes_what_lies_behind_it() -> None:
    held, base, (one, _) = held_files()
    one._journal = mounted()[0].groups
    held.hold([(one, b"more", 4), (one, b"far", 20)])
    base.fail("pwrite", errno.ENOSPC, times=9)  # there is no room, which is why somebody cuts
    one.truncate(6)
    assert one.pread(100, 0) == b"basemo"
    one.truncate(10)
    assert one.pread(100, 0) == b"basemo\0\0\0\0"
    base.heal()
    held.write_out_all()
    assert base.content("/q/a") == b"basemo\0\0\0\0"


def test_a_file_that_is_gone_from_its_name_writes_nothing() -> None:
    held, base, (one, other) = held_files(limit=5)
    held.hold([(one, b"more", 4), (other, b"more", 4)])
    assert held.is_full
    held.drop("/q/a")
    assert not held.is_full
    assert held.write_out_all() == {}
    assert base.content("/q/a") == b"base"
    assert one.pread(10, 0) == b"basemore", "who has it open reads it"
    held.hold([(other, b"123456", 8)])
    held.drop_below("/")
    held.drop_below("/q/b")
    assert held.is_full
    held.drop_below("/q")
    assert not held.is_full


# -- in the log's file system ----------------------------------------------------------------------------------------


def holding(
    limit: int = 1 << 20, size: int = 6
) -> tuple[LogFileSystem, SimFileSystem, File, bytes]:
    """An own file with bytes that are held back: what it has all in all."""
    filesystem, base = mounted(options=OPTIONS._replace(limit=limit, queue_limit=100))
    file = filesystem.open(moved_out(filesystem).path)
    data = random.Random(size).randbytes(size)
    short(filesystem, (file, data, 500))
    return filesystem, base, file, b"x" * 500 + data


def short(filesystem: LogFileSystem, *writes: tuple[File, bytes, int]) -> None:
    """A commit on the short way."""
    way = filesystem.short_way
    assert way.is_open
    written = way.write(list(writes))
    assert written is not None
    assert way.make_durable(written)


def test_a_commit_writes_nothing_but_the_log() -> None:
    filesystem, base, file, whole = holding()
    assert base.content(file.path) == b"x" * 500
    assert filesystem.read_file(file.path) == file.pread(1000, 0) == whole
    assert filesystem.file_size(file.path) == file.size() == 506
    again = filesystem.open(file.path)
    assert again.pread(1000, 0) == whole
    for seed in range(4):
        for found in (base.cut(random.Random(seed)), base.process_killed()):
            assert mounted(found)[0].read_file(file.path) == whole


def test_whoever_had_it_open_sees_it_too() -> None:
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20, queue_limit=100))
    small = moved_out(filesystem)
    early = filesystem.open(small.path)
    made_later = filesystem.create(f"{QUEUE}/1.qi")
    opened = filesystem.open(made_later.path)
    short(filesystem, (filesystem.open(small.path), b"more", 500), (opened, b"new", 0))
    assert small.pread(10, 498) == early.pread(10, 498) == b"xxmore"
    assert made_later.pread(9, 0) == b"new"
    assert base.content(made_later.path) == b""


def test_it_is_written_out_when_it_is_much() -> None:
    filesystem, base, file, whole = holding(limit=4000, size=900)
    assert base.content(file.path) == b"x" * 500
    short(filesystem, (file, b"more" * 50, 1400))
    assert base.content(file.path) == whole + b"more" * 50


def test_it_is_written_before_the_file_is_synced_in_place() -> None:
    filesystem, base, file, whole = holding()
    file.pwrite(b"much" * 10_000, 506)
    synced(filesystem, file)
    assert filesystem.overdue() == []
    assert base.cut(random.Random(1)).content(file.path) == whole + b"much" * 10_000
    file.fdatasync()
    short(filesystem, (file, b"m", 0))
    file.fdatasync()
    assert base.cut(random.Random(1)).content(file.path)[:2] == b"mx"


def test_it_is_written_before_a_generation_begins() -> None:
    filesystem, base, file, whole = holding()
    filesystem.groups.begin_generation()
    assert base.cut(random.Random(1)).content(file.path) == whole


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_file_that_refuses_it_as_a_generation_begins_is_as_one_whose_sync_failed(
    number: int,
) -> None:
    filesystem, base, file, whole = holding()
    base.fail("pwrite", number, path_part=file.path, times=99)
    filesystem.groups.begin_generation()
    ((told, error),) = filesystem.refused()
    assert (told, error.errno) == (file, number)
    assert filesystem.refused() == []
    assert file.pread(1000, 0) == whole
    assert not base.resynced
    base.heal()
    for seed in range(4):  # the log says it again
        assert mounted(base.cut(random.Random(seed)))[0].read_file(file.path) == whole
    aside = filesystem.create(f"{file.path}.tmp")  # whoever is told writes it elsewhere
    aside.pwrite(file.pread(1000, 0), 0)
    aside.fdatasync()
    filesystem.rename(aside.path, file.path)
    filesystem.fsync_dir(QUEUE)
    filesystem.groups.begin_generation()
    for seed in range(4):
        assert mounted(base.cut(random.Random(seed)))[0].read_file(file.path) == whole


def test_a_file_that_refuses_it_as_it_is_synced_is_told_and_the_others_are_synced() -> None:
    filesystem, base, file, whole = holding()
    other = filesystem.create(f"{QUEUE}/1.qi")
    short(filesystem, (other, b"other", 0))
    for one in (file, other):
        one.pwrite(b"much" * 10_000, 506)
    base.fail("pwrite", errno.ENOSPC, path_part=file.path, times=2)
    ((told, error),) = filesystem.sync_all([file, other], [QUEUE])
    assert (told, error.errno) == (file, errno.ENOSPC)
    assert file.pread(506, 0) == whole
    assert base.cut(random.Random(1)).content(other.path).startswith(b"other")
    assert mounted(base.cut(random.Random(1)))[0].read_file(file.path)[:506] == whole


def test_while_it_is_refused_commits_go_the_usual_way_and_it_is_tried_again() -> None:
    filesystem, base, file, whole = holding(limit=4000, size=900)
    base.fail("pwrite", errno.ENOSPC, path_part=file.path, times=2)
    short(filesystem, (file, b"more" * 50, 1400))
    assert not filesystem.short_way.is_open
    assert file.pread(2000, 0) == whole + b"more" * 50
    synced(filesystem)
    assert filesystem.short_way.is_open
    assert base.content(file.path) == whole + b"more" * 50


def test_what_goes_together_uncovers_what_it_writes_over() -> None:
    filesystem, base, file, whole = holding()
    assert filesystem.write_some([(file, b"yy", 499), (file, b"beside", 506)]) == 2
    assert file.pread(1000, 0) == whole[:499] + b"yy" + whole[501:] + b"beside"
    synced(filesystem, file)
    short(filesystem, (file, b"held", 512))
    base.fail("pwrite", errno.EIO, path_part=file.path)
    other = filesystem.create(f"{QUEUE}/1.qi")
    assert filesystem.write_some([(other, b"a", 0), (file, b"new", 513), (other, b"b", 1)]) == 1
    assert file.pread(9, 510) == b"deheld"
    assert base.content(other.path) == b"a"


def test_a_removed_file_takes_it_along() -> None:
    filesystem, base, file, whole = holding()
    filesystem.unlink(file.path)
    again = filesystem.create(file.path)
    again.pwrite(b"the next one", 0)
    assert file.pread(1000, 0) == whole
    assert filesystem.read_file(file.path) == again.pread(1000, 0) == b"the next one"
    filesystem.groups.begin_generation()
    assert base.content(again.path) == b"the next one"
    synced(filesystem, again)
    short(filesystem, (again, b"more", 12))
    filesystem.rmtree(QUEUE)
    made(filesystem, f"{QUEUE}/0.qi", b"small")
    filesystem.groups.begin_generation()
    assert mounted(base.process_killed())[0].read_file(f"{QUEUE}/0.qi") == b"small"


def test_a_renamed_file_takes_its_own_along() -> None:
    filesystem, base, file, whole = holding()
    aside = filesystem.create(f"{QUEUE}/0.qi.tmp")
    short(filesystem, (aside, b"anew", 0))
    filesystem.rename(aside.path, file.path)
    assert filesystem.read_file(file.path) == filesystem.open(file.path).pread(9, 0) == b"anew"
    assert file.pread(1000, 0) == whole
    filesystem.groups.begin_generation()
    assert base.content(file.path) == b"anew"


def test_a_second_name_is_one_for_all_of_it() -> None:
    filesystem, base, file, whole = holding()
    filesystem.link(file.path, "/data/copy")
    assert base.content("/data/copy") == whole


def test_the_usual_way_takes_over_what_the_log_refused() -> None:
    filesystem, base, file, whole = holding()
    way = filesystem.short_way
    written = way.write([(file, b"more", 506)])
    assert written is not None
    base.fail("fdatasync", path_part=".log")
    base.fail("write_through", path_part=".log")
    assert not way.make_durable(written)
    way.note(written)
    assert file.pread(1000, 0) == whole + b"more"
    synced(filesystem, file)
    assert mounted(base.cut(random.Random(1)))[0].read_file(file.path) == whole + b"more"
