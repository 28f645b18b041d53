"""Quorum queues over the HTTP API: what the cluster does not do is not said to be done.

Covers: management/api/queues.py
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.served_cluster import ServedCluster, serving_with_cluster

PATH = "/api/queues/%2F/q"
BODY = {"durable": True, "arguments": {"x-queue-type": "quorum"}}
BY_NAME = {"vhost": "/", "name": "q"}


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedCluster]:
    with serving_with_cluster(tmp_path / "data", monkeypatch) as found:
        yield found


def fill(cluster: ServedCluster, *bodies: str) -> None:
    for body in bodies:
        asked = {"properties": {}, "routing_key": "q", "payload": body}
        path = "/api/exchanges/%2F/amq.default/publish"
        answer = cluster.served.api("POST", path, {**asked, "payload_encoding": "string"})
        assert answer.body == {"routed": True}


def test_one_that_cannot_be_made_is_not_there(cluster: ServedCluster) -> None:
    cluster.lose(down_s=0.0)
    refused = cluster.served.api("PUT", PATH, BODY)
    assert (refused.status, refused.body["error"]) == (503, "unavailable")
    assert refused.body["reason"].startswith("queue 'q' in vhost '/' is inaccessible: ")
    assert cluster.served.api("GET", PATH).status == 404
    cluster.find_again()
    assert cluster.served.api("PUT", PATH, BODY).status == 201
    cluster.lose(down_s=0.0)
    assert cluster.served.api("PUT", PATH, BODY).status == 503
    assert cluster.served.api("GET", PATH).status == 200, "it was there before"


def test_what_cannot_be_purged_or_deleted_stays(cluster: ServedCluster) -> None:
    cluster.declare("q")
    fill(cluster, "one")
    cluster.lose(down_s=0.0)
    for refused in (
        cluster.served.api("DELETE", f"{PATH}/contents"),
        cluster.served.api("DELETE", PATH),
        cluster.served.api("POST", "/api/burrowmq/delete-queue", BY_NAME),
    ):
        assert (refused.status, refused.body["error"]) == (503, "unavailable")
    cluster.find_again()
    (stream,) = cluster.world.streams.values()
    assert len(stream.messages) == 1
    assert cluster.served.api("DELETE", f"{PATH}/contents").status == 204
    assert not stream.messages
    assert cluster.served.api("DELETE", PATH).status == 204
    assert not cluster.world.streams


def test_its_end_by_name_says_how_many_were_in_it(cluster: ServedCluster) -> None:
    cluster.declare("q")
    fill(cluster, "one", "two")
    deleted = cluster.served.ctl("delete_queue", "q")
    assert "2 ready messages" in deleted.out
    assert not cluster.world.streams


def test_a_stream_says_what_it_cannot_do_as_over_amqp(cluster: ServedCluster) -> None:
    arguments = {"x-queue-type": "stream", "x-max-age": "1D"}
    api = cluster.served.api
    assert api("PUT", PATH, {"durable": True, "arguments": arguments}).status == 201
    fill(cluster, "one", "two")
    row = api("GET", PATH).body
    assert (row["type"], row["messages"], row["messages_unacknowledged"]) == ("stream", 2, 0)
    assert row["members"] == ["n1", "n2", "n3"]
    asked = {"count": 1, "ackmode": "ack_requeue_true", "encoding": "auto"}
    for refused, what in (
        (api("POST", f"{PATH}/get", asked), "basic.get"),
        (api("DELETE", f"{PATH}/contents"), "queue.purge"),
    ):
        assert (refused.status, refused.body["error"]) == (400, "bad_request")
        assert refused.body["reason"] == (
            f"540 NOT_IMPLEMENTED - {what} not supported by stream queues queue 'q' in vhost '/'"
        )
    refused = api("PUT", "/api/queues/%2F/r", {"durable": False, "arguments": arguments})
    assert (refused.status, refused.body["reason"]) == (
        400,
        "invalid property 'non-durable' for queue 'r' in vhost '/'",
    )
    assert api("DELETE", PATH).status == 204
    assert not cluster.world.streams


@pytest.mark.parametrize("kind", ["quorum", "stream"])
def test_the_configured_type_is_that_of_new_virtual_hosts(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    with serving_with_cluster(tmp_path, monkeypatch, default_queue_type=kind) as cluster:
        api = cluster.served.api
        assert api("PUT", "/api/vhosts/new", {}).status == 201
        for vhost in ("%2F", "new"):
            for name, body in (("lasting", {"durable": True}), ("light", {"durable": False})):
                assert api("PUT", f"/api/queues/{vhost}/{name}", body).status == 201
            found = {row["name"]: row["type"] for row in cluster.served.get(f"/api/queues/{vhost}")}
            assert found == {"lasting": kind, "light": "classic"}
            assert cluster.served.get(f"/api/vhosts/{vhost}")["default_queue_type"] == kind
