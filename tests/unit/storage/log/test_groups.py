"""A commit is one group of the log; what a failed write or sync of it may have lost goes into the other file, once."""

from __future__ import annotations

import errno
import random

from tests.support.mounted_log import (
    QUEUE,
    QUEUES,
    made,
    mounted,
    moved_out,
    synced,
)


def test_what_was_not_synced_survives_the_process_once_it_was_written() -> None:
    filesystem, base = mounted()
    made(filesystem, f"{QUEUE}/a")
    assert mounted(base.process_killed())[0].listdir(QUEUES) == []
    filesystem, base = mounted()
    made(filesystem, f"{QUEUE}/a")
    filesystem.write_noted()
    filesystem.write_noted()
    assert mounted(base.process_killed())[0].read_file(f"{QUEUE}/a") == b"data"


def test_a_log_that_fails_goes_on_in_the_other_file_and_fails_but_once() -> None:
    for operation in ("pwrite", "fdatasync"):
        filesystem, base = mounted()
        file = made(filesystem, f"{QUEUE}/a")
        base.fail(operation, path_part="0.log")
        synced(filesystem, file)
        assert mounted(base.cut(random.Random(3)))[0].read_file(f"{QUEUE}/a") == b"data"
        filesystem, base = mounted()
        file = made(filesystem, f"{QUEUE}/a")
        base.fail(operation, times=9, path_part="commit_log")
        ((item, error),) = filesystem.sync_all([file], [])
        assert (item, error.errno) == ("/data/commit_log", errno.EIO)


def test_what_only_a_failed_log_has_goes_into_the_next_generation() -> None:
    filesystem, base = mounted()
    file = moved_out(filesystem)
    file.pwrite(b"little", 500)
    synced(filesystem, file)  # into the log: the file itself is not durable
    base.fail("fdatasync", errno.ENOSPC, path_part=".log")
    base.fail("fdatasync", errno.ENOSPC, path_part="0.qi")
    made(filesystem, f"{QUEUES}/other/a")
    assert [item for item, _ in filesystem.sync_all([], [])] == ["/data/commit_log"]
    assert [item for item, _ in filesystem.sync_all([file], [])] == [file]
    synced(filesystem)  # the next generation, twice
    filesystem.groups.begin_generation()
    again, _ = mounted(base.cut(random.Random(1)))
    assert again.read_file(f"{QUEUE}/0.qi")[500:506] == b"little"
    assert again.read_file(f"{QUEUES}/other/a") == b"data"
