"""Spark's reader finds in a queue's files what the node's own walk finds: the golden directories."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from pyspark_amqp_store import formats
from pyspark_amqp_store.files import QueueFiles, Store
from pyspark_amqp_store.indexes import KIND_SHARED, PERSISTENT, IndexFile, parse_index
from tests.support.golden_queues import GoldenQueue, golden_queues
from tests.support.queue_on_disk import IDENTITY, messages, queue_on
from tests.support.sim_filesystem import SimFileSystem


@pytest.fixture(params=golden_queues(), ids=lambda queue: queue.name)
def golden(request: pytest.FixtureRequest) -> GoldenQueue:
    """Give each golden directory."""
    found: GoldenQueue = request.param
    return found


def indexes(store: Store, queue: QueueFiles) -> list[IndexFile]:
    found = [store.index(queue, number) for number in store.segment_numbers(queue)]
    return [index for index in found if index is not None]


def test_what_is_in_the_golden_directories_is_found(golden: GoldenQueue) -> None:
    store = Store(str(golden.path))
    (queue,) = store.queues()
    assert (queue.vhost, queue.name, queue.level) == ("/", "q", 0)
    found = indexes(store, queue)
    entries = [
        [
            index.number * index.entry_count + place,
            index.flags[place] & PERSISTENT,
            int(index.kinds[place] == KIND_SHARED),
            index.payload_sizes[place],
            index.expiries[place],
        ]
        for index in found
        for place in index.places(is_acked_too=False)
    ]
    expected = golden.expected
    assert entries == expected["entries"]
    assert sum(index.bad_count for index in found) == expected["bad"]


def test_a_queue_that_was_deleted_and_is_not_removed_yet_is_not_read(
    golden: GoldenQueue, tmp_path: Path
) -> None:
    root = tmp_path / "store"
    shutil.copytree(golden.path, root)
    (queue,) = root.glob("vhosts/*/queues/*")
    shutil.copytree(queue, queue.with_name(f"{queue.name}.1700000000.gone"))
    assert [Path(found.directory) for found in Store(str(root)).queues()] == [queue]


def test_bodies_are_where_the_index_says(golden: GoldenQueue) -> None:
    """But for those that the crash tore off, which a start would drop."""
    store = Store(str(golden.path))
    (queue,) = store.queues()
    seed = store.queue_seed(queue)
    whole: list[int] = []
    for index in indexes(store, queue):
        for place in index.places(is_acked_too=False):
            seq = index.number * index.entry_count + place
            if index.kinds[place] == KIND_SHARED or not index.flags[place]:
                continue
            with open(store.body_path(queue, index, place), "rb") as file:
                file.seek(index.locations[place])
                data = memoryview(file.read(index.sizes[place]))
            head = formats.record_at(data, 0, seed) if len(data) == index.sizes[place] else None
            if (
                head is not None
                and head.is_good
                and (head.segment, head.slot)
                == (
                    index.number,
                    place,
                )
            ):
                whole.append(seq)
    expected = golden.expected
    shared = {seq for seq, _, is_shared, _, _ in expected["entries"] if is_shared}
    assert whole == [seq for seq in expected["live"] if seq not in shared]


def test_an_index_entry_that_a_power_cut_tore_in_two_is_not_counted_as_bad() -> None:
    """As at a start (`storage.queue.v2.walk`): across the edge of a sector, with nothing on one side."""
    filesystem = SimFileSystem()
    queue = queue_on(filesystem)
    queue.put(0, messages(0, 20), None)
    filesystem.damage("/q/0.qi", 512, bytes(16))
    terms = ("/q/0.qi", IDENTITY, queue.place.seed, 0)
    found = parse_index(filesystem.read_file("/q/0.qi"), *terms)
    assert found is not None
    assert (found.bad_count, len(found.places(is_acked_too=True))) == (0, 19)
    filesystem.damage("/q/0.qi", 512, b"\1")
    found = parse_index(filesystem.read_file("/q/0.qi"), *terms)
    assert found is not None
    assert found.bad_count == 1
