"""Queues converted from one version of their files to the other."""

from __future__ import annotations

import random
from dataclasses import replace

import pytest

from burrowmq.storage.queue.v1 import blocks as queue_blocks
from burrowmq.storage.queue.v2.index import entries_at
from burrowmq.storage.record import ENTRY_SIZE
from tests.support.one_queue import LARGE, OPTIONS, OneQueue


@pytest.fixture(params=[1, 2])
def version(request: pytest.FixtureRequest) -> int:
    return int(request.param)


def test_a_queue_is_converted_while_it_is_used(version: int) -> None:
    store = OneQueue(version)
    store.publish(200)
    store.publish(30, LARGE)
    store.log.ack_many([0, 3, 100])
    store.settle()
    store.log.set_version(3 - version)
    store.publish(20)
    store.log.ack(10, 20)
    store.settle()
    suffixes = store.suffixes()
    assert suffixes == ({"qi", "qs"} if version == 1 else {"idx"})
    gone = {0, 3, 100, *range(10, 21)}
    assert store.seqs() == [seq for seq in range(250) if seq not in gone]
    assert store.engine.stats()["converting_queues"] == 0
    assert store.engine.stats()["converted_segments"] >= 4
    name = store.filesystem.read_file(f"{store.directory()}/.queue_name")
    assert name.endswith(f"INDEX: v{3 - version}\n".encode())
    store.crash(3 - version)
    assert store.seqs() == [seq for seq in range(250) if seq not in gone]
    assert store.log.recovered is not None
    assert store.log.recovered.persistent_count == 250 - len(gone)


def test_the_file_with_the_name_is_replaced_because_a_backup_may_share_it(version: int) -> None:
    store = OneQueue(version)
    store.publish(3)
    store.settle()
    path = f"{store.directory()}/.queue_name"
    before = store.filesystem.content(path)
    store.filesystem.link(path, "/backup")
    store.log.set_version(3 - version)
    store.settle()
    assert store.filesystem.content(path) != before
    assert store.filesystem.content("/backup") == before


def test_the_new_file_with_the_name_is_durable_before_it_takes_the_place(version: int) -> None:
    store = OneQueue(version)
    store.publish(3)
    store.settle()
    path = f"{store.directory()}/.queue_name"
    names = {store.filesystem.content(path)}
    store.log.set_version(3 - version)
    store.settle()
    names.add(store.filesystem.content(path))
    assert len(names) == 2
    for seed in range(12):
        assert store.filesystem.cut(random.Random(seed)).content(path) in names


def test_a_segment_with_a_damaged_entry_stays_as_it_is() -> None:
    """Whoever reads it has its message set aside, which a conversion would drop without a word."""
    store = OneQueue(2)
    store.publish(3)
    store.settle()
    path = f"{store.directory()}/0.qi"
    at = entries_at(OPTIONS.segment_entry_count) + ENTRY_SIZE + 20
    store.filesystem.damage(path, at, b"\xff")
    store.log.set_version(1)
    store.engine.hand_over()
    store.engine.idle()
    assert store.filesystem.exists(path)


def test_a_queue_that_is_never_quiet_is_converted() -> None:
    store = OneQueue(1, replace(OPTIONS, convert_slice=1))
    store.publish(200)
    store.log.set_version(2)
    for _ in range(10):  # every slice finds something in the journal
        store.publish(3)
    assert store.engine.stats()["converting_queues"] == 0
    assert store.suffixes() == {"qi", "qs"}
    assert store.seqs() == list(range(230))


def test_a_start_with_another_version_converts(version: int) -> None:
    store = OneQueue(version)
    store.publish(150)
    store.engine.close()
    store.open(3 - version)
    assert store.seqs() == list(range(150))
    store.settle()
    assert store.suffixes() == ({"qi", "qs"} if version == 1 else {"idx"})
    assert store.seqs() == list(range(150))


def test_a_conversion_takes_the_corrupt_out(version: int) -> None:
    store = OneQueue(version)
    store.publish(60)
    store.settle()
    entries = 64 + 2 * (32 + 8) if version == 2 else 64 + queue_blocks.BLOCK_SIZE
    store.damage("0.qi" if version == 2 else "0.idx", entries + 5 * 32 + 10)
    store.log.set_version(3 - version)
    store.settle()
    assert store.seqs() == [seq for seq in range(60) if seq != 5]
    assert store.observer.events["record_lost"] == 1
