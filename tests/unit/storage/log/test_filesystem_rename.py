"""A file of a queue takes another's place while the log is ahead of that one, and the disk refuses some part of it."""

from __future__ import annotations

import errno
import random

import pytest

from burrowmq.storage.files.filesystem import File
from burrowmq.storage.log.filesystem import LogFileSystem
from tests.support.mounted_log import OPTIONS, QUEUE, made, mounted, moved_out, synced
from tests.support.sim_filesystem import SimFileSystem


def _behind(*, reverts: bool = False) -> tuple[LogFileSystem, SimFileSystem, File]:
    """An own file that the log is ahead of, and a durable one that is to take its place."""
    filesystem, base = mounted(options=OPTIONS._replace(limit=1 << 20, queue_limit=100))
    base.reverts = reverts
    file = moved_out(filesystem, "0.idx")
    file.pwrite(b"acked" * 10, 500)
    synced(filesystem, file)
    aside = filesystem.create(f"{QUEUE}/0.idx.tmp")
    aside.pwrite(b"anew", 0)
    aside.fdatasync()
    return filesystem, base, file


def _found(base: SimFileSystem) -> set[bytes]:
    """What several power cuts leave of the file."""
    return {
        mounted(base.cut(random.Random(seed)))[0].read_file(f"{QUEUE}/0.idx") for seed in range(8)
    }


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_rename_that_fails_leaves_what_the_log_says_of_the_file_that_stays(number: int) -> None:
    filesystem, base, file = _behind()
    base.fail("rename", number, path_part="0.idx")
    with pytest.raises(OSError, match=r"0\.idx"):
        filesystem.rename(f"{QUEUE}/0.idx.tmp", f"{QUEUE}/0.idx")
    filesystem.unlink(f"{QUEUE}/0.idx.tmp")
    filesystem.fsync_dir(QUEUE)
    assert _found(base) == {b"x" * 500 + b"acked" * 10}
    file.pwrite(b"more", 550)
    synced(filesystem, file)
    assert _found(base) == {b"x" * 500 + b"acked" * 10 + b"more"}


@pytest.mark.parametrize("operation", ["fdatasync", "pwrite"])
def test_a_rename_that_the_log_could_not_note_does_not_happen(operation: str) -> None:
    filesystem, base, file = _behind(reverts=True)
    base.fail(operation, errno.ENOSPC, path_part="0.log")
    base.fail("fdatasync", errno.ENOSPC, path_part="0.idx")
    base.fail("fsync_dir", errno.ENOSPC, path_part="commit_log", times=2)
    with pytest.raises(OSError, match="No space left"):
        filesystem.rename(f"{QUEUE}/0.idx.tmp", f"{QUEUE}/0.idx")
    with pytest.raises(OSError, match="No space left"):  # the log may say that it takes the place
        filesystem.unlink(f"{QUEUE}/0.idx.tmp")
    assert base.content(f"{QUEUE}/0.idx") == b"x" * 500 + b"acked" * 10
    assert _found(base) <= {b"x" * 500 + b"acked" * 10, b"anew"}
    filesystem.unlink(f"{QUEUE}/0.idx.tmp")
    filesystem.fsync_dir(QUEUE)
    assert _found(base) == {b"x" * 500 + b"acked" * 10}
    assert [one.path for one, _ in filesystem.refused() if not isinstance(one, str)] in (
        [file.path],
        [],
    )


def test_a_rename_is_noted_in_the_generation_that_began_with_it() -> None:
    filesystem, base, _ = _behind()
    base.fail("fdatasync", path_part="0.log")
    base.fail("fdatasync", path_part="0.idx")  # which the new generation speaks of again
    filesystem.rename(f"{QUEUE}/0.idx.tmp", f"{QUEUE}/0.idx")
    filesystem.fsync_dir(QUEUE)
    assert _found(base) == {b"anew"}


def test_a_rename_that_no_generation_takes_note_of_does_not_happen() -> None:
    filesystem, base, _ = _behind()
    for nth in (1, 2, 3):  # each call that fails is counted by one alone: others come in between
        base.fail("fdatasync", nth=nth, path_part=".log")
    base.fail("fdatasync", path_part="0.idx")
    with pytest.raises(OSError, match="takes no note"):
        filesystem.rename(f"{QUEUE}/0.idx.tmp", f"{QUEUE}/0.idx")
    filesystem.unlink(f"{QUEUE}/0.idx.tmp")
    filesystem.fsync_dir(QUEUE)
    assert _found(base) == {b"x" * 500 + b"acked" * 10}


def test_what_one_rename_has_left_is_seen_to_before_the_next() -> None:
    filesystem, base, file = _behind()
    other = made(filesystem, f"{QUEUE}/1.idx", b"other")
    synced(filesystem, other)
    aside = made(filesystem, f"{QUEUE}/1.idx.tmp", b"other anew")
    aside.fdatasync()
    base.fail("rename", path_part="0.idx")
    base.fail("fsync_dir", path_part="commit_log", times=2)
    with pytest.raises(OSError, match="commit_log"):
        filesystem.rename(f"{QUEUE}/0.idx.tmp", f"{QUEUE}/0.idx")
    filesystem.rename(f"{QUEUE}/1.idx.tmp", f"{QUEUE}/1.idx")
    filesystem.unlink(f"{QUEUE}/0.idx.tmp")
    filesystem.fsync_dir(QUEUE)
    assert _found(base) == {b"x" * 500 + b"acked" * 10}
    assert mounted(base.cut(random.Random(1)))[0].read_file(f"{QUEUE}/1.idx") == b"other anew"
    synced(filesystem, file)


def test_a_rename_that_a_killed_process_had_noted_and_not_made_is_made_by_the_next_start() -> None:
    filesystem, base, _ = _behind()
    base.fsync_dir(QUEUE)
    filesystem.groups.note_rename(f"{QUEUE}/0.idx.tmp", f"{QUEUE}/0.idx")
    assert _found(base) == {b"anew"}
    again, _ = mounted(base.process_killed())
    assert again.listdir(QUEUE) == ["0.idx"]


def test_what_was_written_over_what_the_log_says_ends_with_a_rename() -> None:
    filesystem, base, file = _behind()
    file.pwrite(b"again" * 10, 500)
    filesystem.rename(f"{QUEUE}/0.idx.tmp", f"{QUEUE}/0.idx")
    filesystem.fsync_dir(QUEUE)
    assert _found(base) == {b"anew"}
    filesystem, base, file = _behind()
    file.pwrite(b"again" * 10, 500)
    base.fail("rename", errno.EIO, path_part="0.idx")
    with pytest.raises(OSError, match=r"0\.idx"):
        filesystem.rename(f"{QUEUE}/0.idx.tmp", f"{QUEUE}/0.idx")
    assert _found(base) == {b"x" * 500 + b"again" * 10}


def test_what_was_written_over_a_file_that_is_gone_is_no_successors() -> None:
    filesystem, base, file = _behind()
    file.pwrite(b"again" * 10, 500)
    filesystem.unlink(f"{QUEUE}/0.idx")
    filesystem.write_noted()
    filesystem.create(f"{QUEUE}/0.idx").pwrite(b"anew", 0)
    filesystem.write_noted()
    assert mounted(base.process_killed())[0].read_file(f"{QUEUE}/0.idx") == b"anew"
    filesystem, base, file = _behind()
    file.pwrite(b"again" * 10, 500)
    filesystem.rmtree(QUEUE)
    filesystem.write_noted()
    made(filesystem, f"{QUEUE}/0.idx", b"anew")
    filesystem.write_noted()
    assert mounted(base.process_killed())[0].read_file(f"{QUEUE}/0.idx") == b"anew"
