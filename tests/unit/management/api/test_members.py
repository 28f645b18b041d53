"""RabbitMQ's HTTP requests about members: what they refuse, and to whom."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.served_cluster import ServedCluster
from tests.support.served_members import http, make, status


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedCluster]:
    yield from make(tmp_path, monkeypatch, "n1", "n2", "n3")


@pytest.mark.parametrize(
    ("verb", "name", "server", "answer"),
    [
        ("add", "classic", "n1", (503, "classic_queue_not_supported")),
        ("delete", "classic", "n1", (503, "classic_queue_not_supported")),
        ("add", "s", "n1", (503, "not_quorum_queue")),
        ("delete", "s", "n1", (503, "not_quorum_queue")),
        ("add", "q", "n9", (503, "node_not_running")),
        ("delete", "q", "n9", (503, "node_not_running")),
        ("add", "none", "n1", (404, "Not Found")),
        ("delete", "none", "n1", (404, "Not Found")),
    ],
)
def test_what_http_refuses(
    three: ServedCluster, verb: str, name: str, server: str, answer: tuple[int, str]
) -> None:
    assert http(three, verb, server, name) == answer


def test_http_asks_for_what_it_needs(three: ServedCluster) -> None:
    api = three.served.api
    add = api("POST", "/api/queues/quorum/%2F/q/replicas/add", {})
    assert (add.status, add.body["reason"]) == (400, "[{key_missing,node}]")
    path = "/api/queues/quorum/replicas/on/n1/grow"
    assert api("POST", path, {"strategy": "all"}).status == 400
    body = {"strategy": "odd", "vhost_pattern": ".*", "queue_pattern": ".*"}
    odd = api("POST", path, body)
    assert (odd.status, odd.body["reason"]) == (400, "strategy 'odd' is not recognised.")
    assert api("POST", path, body | {"strategy": "all", "queue_pattern": "("}).status == 400
    missing = api("POST", path.replace("n1", "n9"), body | {"strategy": "all"})
    assert missing.status == 404
    for more in ({"action": "x"}, {"action": "add", "kind": "x"}):
        assert api("POST", "/api/burrowmq/members", more).status == 400


@pytest.mark.parametrize(
    ("queue", "code", "body"),
    [
        ("%2F/classic", 503, {"status": "failed", "reason": "classic_queue_not_supported"}),
        ("%2F/s", 503, {"status": "failed", "reason": "not_quorum_queue"}),
        ("%2F/none", 404, {"error": "Object Not Found", "reason": "Not Found"}),
        ("none/q", 404, {"error": "Object Not Found", "reason": "Not Found"}),
    ],
)
def test_who_has_no_status(
    three: ServedCluster, queue: str, code: int, body: dict[str, str]
) -> None:
    answer = three.served.api("GET", f"/api/queues/quorum/{queue}/status")
    assert (answer.status, answer.body) == (code, body)


def test_only_administrators_change_members(three: ServedCluster) -> None:
    api = three.served.api
    api("PUT", "/api/users/watcher", {"password": "watcher", "tags": "monitoring"})
    asked = (
        ("POST", "/api/queues/quorum/%2F/q/replicas/add"),
        ("DELETE", "/api/queues/quorum/%2F/q/replicas/delete"),
        ("POST", "/api/queues/quorum/replicas/on/n1/grow"),
        ("DELETE", "/api/queues/quorum/replicas/on/n1/shrink"),
        ("POST", "/api/burrowmq/members"),
    )
    for method, path in asked:
        assert api(method, path, {"node": "n1"}, login="watcher:watcher").status == 401


def test_members_go_and_come_back(three: ServedCluster) -> None:
    assert http(three, "delete", "n2") == (202, "")
    assert sorted(status(three)) == ["n1", "n3"]
    assert http(three, "add", "n2") == (204, "")
    assert sorted(status(three)) == ["n1", "n2", "n3"]
