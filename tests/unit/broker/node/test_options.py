"""The configuration in the units and words of each part."""

from __future__ import annotations

from dataclasses import replace

import pytest

from burrowmq.broker.node import options
from burrowmq.broker.node.monitor import Intervals
from burrowmq.broker.rules.auth import Permission
from burrowmq.broker.vhost.vhost import VhostOptions
from burrowmq.config.cluster import ClusterConfig
from burrowmq.config.schema import NodeConfig, ResourceConfig
from burrowmq.config.store import AS_INSTALLED

CONFIG = NodeConfig(node_name="a@b", data_dir="d")
GIB = 1 << 30


def test_the_store_is_told_what_a_confirm_means_and_what_it_may_open() -> None:
    found = options.store(replace(AS_INSTALLED, confirm="written"), 100)
    assert (found.confirm, found.open_files, found.embed_below) == ("written", 100, 4096)


def test_only_a_connection_with_tls_may_log_in_with_its_certificate() -> None:
    login = replace(CONFIG.login, mechanisms=("PLAIN", "EXTERNAL"))
    offered = options.offered(replace(CONFIG, login=login), {"product": "RabbitMQ"})
    assert offered.secure.mechanisms == ("PLAIN", "EXTERNAL")
    assert offered.plain == replace(offered.secure, mechanisms=("PLAIN",))
    assert options.certificate_name(login).source == "distinguished_name"


def test_an_empty_data_directory_begins_with_guest() -> None:
    seed = options.seed(CONFIG.first_user)
    assert (seed.vhost, seed.user, seed.tags) == ("/", "guest", ("administrator",))
    assert seed.permission == Permission(configure=".*", write=".*", read=".*")


def test_a_vhost_knows_what_its_queues_are_when_nobody_says() -> None:
    assert options.vhost(CONFIG) == VhostOptions(default_queue_version=2, default_queue_type="")
    for urls, is_quorum in ((None, False), (("nats://a",), True)):
        cluster = ClusterConfig(urls=urls, mirrored="quorum")
        found = options.vhost(replace(CONFIG, cluster=cluster))
        assert (found.has_cluster, found.is_mirrored_quorum) == (is_quorum, is_quorum)


def test_listeners_count_in_seconds() -> None:
    accepting = options.acceptor_options(CONFIG, 50)
    assert (accepting.handshake_timeout_s, accepting.tls_handshake_timeout_s) == (10.0, 5.0)
    assert (accepting.tcp, accepting.context, accepting.sockets_max) == (CONFIG.listeners, None, 50)
    assert accepting.proxy is None
    assert options.acceptor_options(replace(CONFIG, proxy_protocol=True), 50).proxy is not None


@pytest.mark.parametrize(
    ("asked", "memory", "disk"),
    [
        (ResourceConfig(), int(0.4 * GIB), 50_000_000),
        (ResourceConfig(memory_absolute_bytes=77), 77, 50_000_000),
        (ResourceConfig(disk_relative=1.5), int(0.4 * GIB), int(1.5 * GIB)),
    ],
)
def test_limits(asked: ResourceConfig, memory: int, disk: int) -> None:
    found = options.limits(replace(CONFIG, resources=asked), GIB)
    assert (found.memory_bytes, found.disk_free_bytes) == (memory, disk)
    assert found.paging_above_bytes is None


def test_cached_queues_page_above_their_share_of_the_memory_limit() -> None:
    cached = replace(AS_INSTALLED, default_mode="cached")
    asked = ResourceConfig(memory_absolute_bytes=1000, paging_ratio=0.25)
    assert (
        options.limits(replace(CONFIG, store=cached, resources=asked), GIB).paging_above_bytes
        == 250
    )


def test_intervals_are_in_seconds() -> None:
    assert options.intervals(ResourceConfig()) == Intervals(memory_s=1.0, disk_s=10.0)
