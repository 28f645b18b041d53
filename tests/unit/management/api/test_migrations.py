"""/api/burrowmq/migrations and burrowctl migrate_queues, with a cluster in memory.

Covers: management/commands/migrations.py
Covers: cli/commands/migrate.py
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.patience import patient
from tests.support.served import Served
from tests.support.served_cluster import ServedCluster, serving_with_cluster
from tests.support.wire_client import publish_bytes

PATH = "/api/burrowmq/migrations"


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedCluster]:
    with serving_with_cluster(tmp_path / "data", monkeypatch) as found:
        bench = found.served.bench
        for name, arguments in (("a.one", {}), ("a.two", {}), ("a.high", {"x-max-priority": 3})):
            body = {"durable": True, "arguments": arguments}
            found.served.api("PUT", f"/api/queues/%2F/{name}", body)
        client = bench.connect(1)
        client.send(*[publish_bytes(1, "", "a.one", b"m")] * 5)
        yield found


def kinds(served: Served) -> dict[str, str]:
    return {row["name"]: row["type"] for row in served.get("/api/queues?columns=name,type")}


def test_candidates_and_what_prevents_others(cluster: ServedCluster) -> None:
    found = cluster.served.get(f"{PATH}/%2F?pattern=%5Ea%5C.")
    assert [(row["name"], row["messages"], bool(row["obstacle"])) for row in found] == [
        ("a.high", 0, True),
        ("a.one", 5, False),
        ("a.two", 0, False),
    ]
    assert "x-max-priority" in found[0]["obstacle"]
    assert cluster.served.api("GET", f"{PATH}/%2F?pattern=(").status == 400


def test_one_is_moved(cluster: ServedCluster) -> None:
    served = cluster.served
    assert served.api("POST", f"{PATH}/%2F/nosuch", {}).status == 404
    assert served.api("POST", f"{PATH}/%2F/a.high", {}).status == 400
    assert served.api("POST", f"{PATH}/%2F/a.one", {}).status == 202
    deadline = time.monotonic() + patient(20)
    while served.get(PATH):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    row = served.get("/api/queues/%2F/a.one")
    assert (row["type"], row["messages"]) == ("quorum", 5)
    assert served.api("POST", f"{PATH}/%2F/a.one", {}).body["reason"] == "it is a quorum queue"
    names = [row["name"] for row in served.get("/api/global-parameters")]
    assert not [name for name in names if "migration" in name]


def test_one_under_way_is_shown_and_asked_for_again_goes_on(cluster: ServedCluster) -> None:
    served = cluster.served
    world = cluster.world
    stored = world._stored
    world._stored = lambda *_: None  # type: ignore[method-assign]
    assert served.api("POST", f"{PATH}/%2F/a.one", {}).status == 202
    (row,) = served.get(PATH)
    assert (row["name"], row["state"], row["left_count"]) == ("a.one", "moving", 5)
    assert served.api("POST", f"{PATH}/%2F/a.one", {}).status == 202
    assert served.get("/api/queues/%2F/a.one")["consumer_details"] == []
    assert served.get("/api/consumers") == []
    assert served.get(f"{PATH}/%2F?pattern=one")[0]["is_under_way"] is True
    world._stored = stored  # type: ignore[method-assign]
    output = served.ctl("migrate_queues", "one")
    assert (output.code, output.out.splitlines()[-1]) == (0, "a.one: is a quorum queue")


def test_names_reach_a_terminal_as_escapes(cluster: ServedCluster) -> None:
    served = cluster.served
    served.api("PUT", "/api/queues/%2F/esc%1B[31m", {"durable": True})
    output = served.ctl("-q", "migrate_queues", "--dry-run", "^esc")
    assert output.out == "esc\\033[31m: would be moved, messages: 0\n"
    assert served.ctl("-q", "migrate_queues", "^esc").out == "esc\\033[31m: is a quorum queue\n"


def test_the_command_says_what_it_would_do_and_does_it(cluster: ServedCluster) -> None:
    served = cluster.served
    output = served.ctl("migrate_queues", "--dry-run", "^a")
    lines = output.out.splitlines()
    assert output.code == 0
    assert lines[0] == "Migrating classic queues that match '^a' in vhost '/' ..."
    assert lines[1].startswith("a.high: stays a classic queue: invalid arg 'x-max-priority'")
    assert lines[2:] == [
        "a.one: would be moved, messages: 5",
        "a.two: would be moved, messages: 0",
    ]
    rows = json.loads(served.ctl("migrate_queues", "--dry-run", "^a", "--formatter", "json").out)
    assert [row["name"] for row in rows] == ["a.high", "a.one", "a.two"]
    assert set(kinds(served).values()) == {"classic"}
    output = served.ctl("migrate_queues", "^a")
    assert output.code == 69
    assert output.out.splitlines()[2:] == ["a.one: is a quorum queue", "a.two: is a quorum queue"]
    assert output.err == "Error:\n1 of 3 queues are not migrated\n"
    found = kinds(served)
    assert (found["a.high"], found["a.one"], found["a.two"]) == ("classic", "quorum", "quorum")
    assert served.ctl("migrate_queues", "one").out.splitlines()[1:] == []


def test_what_a_full_queue_does_is_not_changed_without_a_word(cluster: ServedCluster) -> None:
    served = cluster.served
    for name, arguments in (
        ("b.argument", {"x-max-length": 9, "x-overflow": "reject-publish-dlx"}),
        ("b.other", {"x-max-length": 9, "x-overflow": "reject-publish"}),
    ):
        served.api("PUT", f"/api/queues/%2F/{name}", {"durable": True, "arguments": arguments})
    assert served.ctl("migrate_queues", "--dry-run", "^b").out.splitlines()[1:] == [
        "b.argument: stays a classic queue: a quorum queue takes reject-publish-dlx for drop-head",
        "b.other: would be moved, messages: 0",
    ]
    assert served.ctl("set_policy", "p", "^b", '{"overflow":"drop-head"}').code == 0
    moved = [
        "overflow reject-publish-dlx becomes drop-head",
        "overflow reject-publish becomes drop-head",
    ]
    assert served.ctl("migrate_queues", "--dry-run", "^b").out.splitlines()[1:] == [
        f"b.argument: would be moved, messages: 0; {moved[0]}",
        f"b.other: would be moved, messages: 0; {moved[1]}",
    ]
    assert served.ctl("migrate_queues", "^b").out.splitlines()[1:] == [
        f"b.argument: is a quorum queue; {moved[0]}",
        f"b.other: is a quorum queue; {moved[1]}",
    ]


def test_without_the_cluster_nothing_begins(cluster: ServedCluster) -> None:
    cluster.lose(down_s=0)
    answer = cluster.served.api("POST", f"{PATH}/%2F/a.one", {})
    assert answer.status == 503
    assert "inaccessible" in answer.body["reason"]
    output = cluster.served.ctl("migrate_queues", "two")
    assert output.code == 69
    assert "a.two: stays a classic queue: " in output.out
    assert cluster.served.get("/api/queues/%2F/a.one")["messages"] == 5


def test_a_node_without_a_cluster_says_so(served: Served) -> None:
    served.api("PUT", "/api/queues/%2F/plain", {"durable": True})
    answer = served.api("POST", f"{PATH}/%2F/plain", {})
    assert (answer.status, answer.body["reason"]) == (400, "quorum queues need cluster.urls")
