"""/api/burrowmq/pages/node, log-tail and configuration."""

from __future__ import annotations

import pytest

from tests.support.served import Served

PAGE = "/api/burrowmq/pages/node"
TAIL = "/api/burrowmq/log-tail"


def test_the_node_in_one_answer(served: Served) -> None:
    page = served.get(PAGE)
    row = served.get("/api/nodes")[0]
    assert page["node"]["mem_limit"] == row["mem_limit"]
    assert (page["node"]["confirm"], page["node"]["codec"]) == (
        "fsync",
        served.node.process.codec_name,
    )
    assert [part["part"] for part in page["memory"]][-1] == "the rest"
    assert {"queues", "waiting for the disk"} <= {part["part"] for part in page["memory"]}
    assert {"shared_live_messages", "commits", "converting_queues"} <= set(page["store"])
    assert set(page["spreads"]) == {"stall_s", "sync_s", "commit_bytes"}
    for spread in page["spreads"].values():
        edges, counts = zip(*spread["buckets"], strict=True)
        assert (edges[-1], list(counts)) == (None, sorted(counts))
    assert page["spreads"]["commit_bytes"]["buckets"][-1][1] == page["store"]["commits"]


def test_the_log_is_read_wherever_it_goes(served: Served) -> None:
    tail = served.node.process.log_tail
    tail.write("2026-01-01 00:00:00 [info] opened user=a\n")
    tail.write("2026-01-01 00:00:00 [error] failed user=b\n")
    assert [line["number"] for line in served.get(TAIL)["lines"]] == [1, 2]
    assert [line["level"] for line in served.get(f"{TAIL}?level=warning")["lines"]] == ["error"]
    assert [line["number"] for line in served.get(f"{TAIL}?text=USER%3DA&lines=5")["lines"]] == [1]
    assert served.get(f"{TAIL}?lines=0")["lines"] == []


@pytest.mark.parametrize(
    "query", ["level=loud", "lines=x", "lines=-1", "lines=%C2%B2", f"text={'x' * 201}"]
)
def test_a_question_that_makes_no_sense(served: Served, query: str) -> None:
    assert served.api("GET", f"{TAIL}?{query}").status == 400


def test_the_configuration_names_its_sources(served: Served) -> None:
    page = served.get("/api/burrowmq/configuration")
    assert page["files"] == ["/etc/rabbitmq/rabbitmq.conf"]
    rows = {row["key"]: row for row in page["rows"]}
    assert (rows["heartbeat"]["default"], rows["heartbeat"]["source"]) == ("60", "")


@pytest.mark.parametrize(
    ("tag", "allowed"),
    [("management", set()), ("policymaker", set()), ("monitoring", {PAGE, TAIL})],
)
def test_who_may_look(served: Served, tag: str, allowed: set[str]) -> None:
    served.api("PUT", "/api/users/u", {"password": "x", "tags": tag})
    paths = (PAGE, TAIL, "/api/burrowmq/configuration")
    seen = {path for path in paths if served.api("GET", path, login="u:x").status == 200}
    assert seen == allowed
