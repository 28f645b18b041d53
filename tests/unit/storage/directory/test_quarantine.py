"""The quarantine's files: durable, named once, only ours are read."""

from __future__ import annotations

import errno
import random
from dataclasses import replace

import pytest

from burrowmq.storage.directory import quarantine
from burrowmq.storage.directory.quarantine import SetAside
from burrowmq.storage.errors import DiskFull, StorageError, WriteFailed
from burrowmq.storage.record import pack_records
from tests.simulation.store_world import make_message
from tests.support.machine_disk import MachineDisk
from tests.support.sim_filesystem import SimFileSystem

ABOUT = quarantine.SetAside(
    vhost="/", queue="q", level=1, seq=3, expiry=9, reason="bad", source="0.qs", size=2,
    set_aside_at=77,
)  # fmt: skip


def disk() -> SimFileSystem:
    filesystem = SimFileSystem()
    filesystem.mkdir("/data")
    return filesystem


def test_a_message_is_there_after_a_power_cut() -> None:
    for seed in range(20):
        filesystem = disk()
        name = quarantine.keep(filesystem, "/data", "/x/queues/ab-1", ABOUT, b"\n\x00")
        assert name == "ab-1.3.77.msg"
        found = filesystem.cut(random.Random(seed))
        assert quarantine.load(found, "/data", name) == (ABOUT, b"\n\x00")
        assert list(quarantine.listing(found, "/data")) == [(name, ABOUT)]


@pytest.mark.parametrize("operation", ["create", "pwrite", "fdatasync", "fsync_dir", "mkdir"])
def test_what_could_not_be_kept_leaves_nothing(operation: str) -> None:
    for number, error in ((errno.ENOSPC, DiskFull), (errno.EIO, WriteFailed)):
        filesystem = disk()
        filesystem.fail(operation, number)
        with pytest.raises(error):
            quarantine.keep(filesystem, "/data", "/x/queues/ab", ABOUT, b"xy")
        assert quarantine.names(filesystem, "/data") == []
        quarantine.keep(filesystem, "/data", "/x/queues/ab", ABOUT, b"xy")


def test_nothing_else_is_read_or_removed() -> None:
    filesystem = disk()
    quarantine.keep(filesystem, "/data", "/x/queues/ab", ABOUT, b"xy")
    for name, content in (("0.g0.seg.64", b"bytes"), ("odd.msg", b"{}\n"), ("none.msg", b"[")):
        filesystem.create(f"/data/quarantine/{name}").pwrite(content, 0)
    for name in ("../STORE.json", "0.g0.seg.64", "odd.msg", "none.msg", "gone.msg", "a\0.msg"):
        assert quarantine.load(filesystem, "/data", name) is None
    assert [about for _, about in quarantine.listing(filesystem, "/data")] == [ABOUT]
    for name in ("../quarantine/ab.3.77.msg", "gone.msg", "ab.3.77.msg"):
        quarantine.remove(filesystem, "/data", name)
    assert list(quarantine.listing(filesystem, "/data")) == []
    assert quarantine.names(SimFileSystem(), "/other") == []


def test_a_record_is_taken_apart_whatever_its_checksum_says() -> None:
    message = make_message(1, 30, True)
    data, _ = pack_records([message], 5, 2, 1234)
    spoiled = data[:-3] + b"?" + data[-2:]
    parts = quarantine.parts_of(spoiled)
    assert parts is not None
    assert (parts[0], len(parts[1]), parts[2]) == (message.address, len(message.raw), message.size)
    assert quarantine.parts_of(data[:20]) is None
    assert quarantine.parts_of(b"?" + data[1:]) is None
    assert replace(ABOUT, seq=1) != ABOUT


def test_operators_see_it_and_may_empty_it() -> None:
    filesystem = disk()
    name = quarantine.keep(filesystem, "/data", "/x/queues/ab-1", ABOUT, b"\n\x00")
    kept = quarantine.Quarantine(filesystem, "/data")
    assert kept.listing() == [(name, ABOUT)]
    assert kept.load(name) == (ABOUT, None)
    assert kept.load("none.msg") is None
    kept.remove(name)
    assert kept.listing() == []


@pytest.mark.parametrize(
    ("operation", "number", "part"),
    [
        ("create", errno.ENOSPC, "quarantine"),
        ("create", errno.EMFILE, "quarantine"),
        ("fdatasync", errno.EIO, "quarantine"),
        ("fsync_dir", errno.EIO, "/data"),
    ],
)
def test_the_directory_is_durable_also_when_the_first_attempt_to_use_it_failed(
    operation: str, number: int, part: str
) -> None:
    disk = MachineDisk()
    disk.mkdir("/data")
    disk.fsync_dir("/")
    about = SetAside(
        vhost="/",
        queue="q",
        level=0,
        seq=1,
        expiry=0,
        reason="x",
        source="f",
        size=3,
        set_aside_at=5,
    )
    disk.fail(operation, number, path_part=part)
    with pytest.raises(StorageError):
        quarantine.keep(disk, "/data", "/data/vhosts/v/queues/q", about, b"abc")
    name = quarantine.keep(disk, "/data", "/data/vhosts/v/queues/q", about, b"abc")
    for seed in range(20):
        found = disk.cut(random.Random(seed))
        assert quarantine.load(found, "/data", name) == (about, b"abc")
