"""Watermarks, the log, listeners, the environment; the cluster's name."""

from __future__ import annotations

from pathlib import Path

import pytest

from burrowmq.config.schema import LogConfig
from tests.support.served import Served, serving


def test_the_memory_watermark(served: Served) -> None:
    limits = served.node.monitor.limits
    path = "/api/burrowmq/memory-watermark"
    assert served.api("POST", path, {"relative": 0.25}).status == 204
    assert (limits.memory_bytes, limits.memory_relative) == (250_000_000, 0.25)
    node = served.get(f"/api/nodes/{served.node.name}")
    assert node["mem_limit"] == 250_000_000
    assert served.api("POST", path, {"absolute": 77}).status == 204
    assert (limits.memory_bytes, limits.memory_relative) == (77, None)
    assert served.node.alarms.active == {"memory"}, "it was looked at at once"
    assert served.api("POST", path, {"relative": 0.25}).status == 204
    assert served.node.alarms.active == set()


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
    assert served.bench.observer.named("set_level") == [("debug",)]


def test_the_cluster_has_a_name(served: Served) -> None:
    assert served.api("PUT", "/api/cluster-name", {"name": "rabbits"}).status == 204
    assert served.get("/api/cluster-name") == {"name": "rabbits"}
    assert served.get("/api/overview")["cluster_name"] == "rabbits"
    assert served.api("PUT", "/api/cluster-name", {}).status == 400


def test_listeners_and_the_log(served: Served) -> None:
    assert served.api("POST", "/api/burrowmq/listeners", {"accept": "x"}).status == 400
    assert served.api("GET", "/api/burrowmq/log?lines=x").status == 400


def test_the_log_ends_with_its_last_lines(tmp_path: Path) -> None:
    path = tmp_path / "node.log"
    path.write_bytes(b"one\ntwo\nthree\n")
    with serving(tmp_path / "data", log=LogConfig(file_path=str(path))) as served:
        assert served.get("/api/burrowmq/log?lines=2") == {"lines": ["two", "three"]}
        assert served.get("/api/burrowmq/log?lines=0") == {"lines": []}
        path.unlink()
        refused = served.api("GET", "/api/burrowmq/log")
    assert refused.status == 400
    assert "cannot be read" in refused.body["reason"]


def test_secrets_of_the_environment_are_hidden(served: Served, monkeypatch) -> None:
    monkeypatch.setenv("RABBITMQ_DEFAULT_PASS", "sesame")
    monkeypatch.setenv("RABBITMQ_NODENAME", "rabbit")
    found = served.get("/api/burrowmq/os-environment")
    assert (found["RABBITMQ_DEFAULT_PASS"], found["RABBITMQ_NODENAME"]) == ("(hidden)", "rabbit")
    assert "PATH" not in found


def test_maintenance_closes_every_connection_and_takes_none(served: Served) -> None:
    served.bench.clients[0].read()
    assert served.api("POST", "/api/burrowmq/maintenance", {"enabled": True}).status == 204
    assert served.node.acceptor.servers == []
    client = served.bench.clients[0]
    text = "CONNECTION_FORCED - Node was put into maintenance mode"
    ((_, close),) = client.read()
    assert (close.reply_code, close.reply_text) == (320, text)
    assert served.get("/api/nodes")[0]["being_drained"] is True
    assert served.api("POST", "/api/burrowmq/maintenance", {"enabled": False}).status == 204
    assert served.get("/api/nodes")[0]["being_drained"] is False
    assert served.api("POST", "/api/burrowmq/maintenance", {"enabled": 1}).status == 400


def test_the_watch_over_free_space_can_end(served: Served) -> None:
    for is_on in (False, True):
        assert served.api("POST", "/api/burrowmq/disk-watch", {"enabled": is_on}).status == 204
        assert served.node.monitor.is_watching_disk is is_on
    assert served.api("POST", "/api/burrowmq/disk-watch").status == 400
