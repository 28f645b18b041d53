"""What all files of a queue have in common."""

from __future__ import annotations

from burrowmq.storage.files.cache import FileCache
from burrowmq.storage.queue.directory import directory_at
from tests.support.sim_filesystem import SimFileSystem

IDENTITY = b"i" * 16


def test_no_other_queue_or_store_has_the_same_seed() -> None:
    cache = FileCache(SimFileSystem(), 4)
    seeds = {
        directory_at(f"/data/vhosts/v/queues/{name}", identity, 64, cache, is_durable=True).seed
        for name in ("a" * 24, "b" * 24)
        for identity in (IDENTITY, b"j" * 16)
    }
    assert len(seeds) == 4


def test_a_directory_may_be_moved() -> None:
    """A backup and a restore keep the name, not what is above it."""
    cache = FileCache(SimFileSystem(), 4)
    one, other = (
        directory_at(f"{root}/{'a' * 24}", IDENTITY, 64, cache, is_durable=True)
        for root in ("/data/vhosts/v/queues", "/elsewhere")
    )
    assert one.seed == other.seed


def test_messages_are_read_as_the_cache_says() -> None:
    for buffer_bytes, is_checked in ((0, True), (4096, False)):
        cache = FileCache(SimFileSystem(), 4, buffer_bytes, is_checked)
        place = directory_at("/q", IDENTITY, 64, cache, is_durable=True)
        assert place.buffer_bytes == max(buffer_bytes, 1)
        assert place.reader == (place.seed, max(buffer_bytes, 1), is_checked)
