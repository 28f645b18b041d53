"""Watermarks, the log's level, cluster name, hashes."""

from __future__ import annotations

import base64

import pytest

from broker.auth import User, password_fits
from tests.support.served import Served


def test_the_memory_watermark(served: Served) -> None:
    limits = served.node.monitor.limits
    path = "/api/burrowmq/memory-watermark"
    assert served.api("POST", path, {"relative": 0.25}).status == 204
    assert (limits.memory_bytes, limits.memory_relative) == (250_000_000, 0.25)
    node = served.get(f"/api/nodes/{served.node.name}")
    assert node["mem_limit"] == 250_000_000
    assert served.api("POST", path, {"absolute": 77}).status == 204
    assert (limits.memory_bytes, limits.memory_relative) == (77, None)
    assert served.node.monitor.looks == 2


def test_the_disk_limit(served: Served) -> None:
    limits = served.node.monitor.limits
    path = "/api/burrowmq/disk-free-limit"
    assert served.api("POST", path, {"absolute": 99}).status == 204
    assert limits.disk_free_bytes == 99
    assert served.api("POST", path, {"mem_relative": 1.5}).status == 204
    assert limits.disk_free_bytes == 1_500_000_000


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("memory-watermark", {}),
        ("memory-watermark", {"relative": 1.5}),
        ("memory-watermark", {"relative": -1}),
        ("memory-watermark", {"relative": True}),
        ("memory-watermark", {"relative": "x"}),
        ("memory-watermark", {"relative": 0.1, "absolute": 1}),
        ("disk-free-limit", {}),
        ("disk-free-limit", {"absolute": 1e300}),
        ("log-level", {"level": "loud"}),
    ],
)
def test_what_is_refused(served: Served, path: str, body: dict[str, object]) -> None:
    assert served.api("POST", f"/api/burrowmq/{path}", body).status == 400


def test_the_log_level(served: Served) -> None:
    assert served.api("POST", "/api/burrowmq/log-level", {"level": "debug"}).status == 204
    assert served.node.observer.level == "debug"


def test_the_cluster_has_a_name(served: Served) -> None:
    assert served.api("PUT", "/api/cluster-name", {"name": "rabbits"}).status == 204
    assert served.get("/api/cluster-name") == {"name": "rabbits"}
    assert served.get("/api/overview")["cluster_name"] == "rabbits"
    assert served.api("PUT", "/api/cluster-name", {}).status == 400


def test_a_hash_fits_its_password(served: Served) -> None:
    for answer in (
        served.get("/api/auth/hash_password/s%C3%A9sam"),
        served.api("POST", "/api/burrowmq/hash-password", {"password": "s\xe9sam"}).body,
    ):
        assert len(base64.b64decode(answer["ok"])) == 36
        assert password_fits(User(name="u", password_hash=answer["ok"]), "s\xe9sam")
