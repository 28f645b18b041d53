"""burrowmq.config.store: what a node keeps and promises when its configuration says nothing about the store."""

from __future__ import annotations

from burrowmq.config.schema import NodeConfig
from burrowmq.config.store import AS_INSTALLED


def test_a_confirm_means_fsync_and_a_queue_the_bounded_mode() -> None:
    store = NodeConfig(node_name="a@b", data_dir="d").store
    assert store is AS_INSTALLED
    assert (store.confirm, store.default_mode, store.default_version) == ("fsync", "bounded", 2)


def test_sizes_are_bytes() -> None:
    assert AS_INSTALLED.segment_size_limit_bytes == 16 * 1024 * 1024
    assert AS_INSTALLED.backlog_limit_bytes == 8 * 1024 * 1024
    assert AS_INSTALLED.embed_below_bytes == 4096
