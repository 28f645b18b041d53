"""Members over HTTP and by burrowctl: each command in each state, with the answer that an operator is given."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from burrowmq.broker.replicated import members as changes
from burrowmq.management.commands import members as commands
from tests.support.served_cluster import ServedCluster
from tests.support.served_members import http, make, status

DOWN = "no member is added or removed while a server is down: "


@pytest.fixture
def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedCluster]:
    yield from make(tmp_path, monkeypatch, "n1", "n2", "n3")


@pytest.fixture
def five(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedCluster]:
    yield from make(tmp_path, monkeypatch, "n1", "n2", "n3", "n4", "n5")


@pytest.fixture
def lacking(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[ServedCluster]:
    """One of the servers is down."""
    yield from make(tmp_path, monkeypatch)


def ctl(cluster: ServedCluster, *words: str) -> str:
    """What it says on standard error; "" where all is well."""
    output = cluster.served.ctl(*words)
    assert (output.code == 0) == (not output.err), output
    return str(output.err.removeprefix("Error:\n").removesuffix("\n"))


def table(cluster: ServedCluster, *words: str) -> list[dict[str, Any]]:
    output = cluster.served.ctl(*words, "--formatter", "json")
    assert output.code == 0, output
    found: list[dict[str, Any]] = json.loads(output.out)
    return found


def test_a_follower_and_the_leader_go_and_come_back(three: ServedCluster) -> None:
    assert status(three) == {"n1": "follower", "n2": "leader", "n3": "follower"}
    output = three.served.ctl("delete_member", "q", "n3")
    assert output == (0, "Removing a replica of queue q on node n3...\n", "")
    assert status(three) == {"n1": "follower", "n2": "leader"}
    assert http(three, "delete", "n2") == (202, "")
    assert status(three) == {"n1": "leader"}
    output = three.served.ctl("add_member", "q", "n3", "--membership", "promotable")
    assert output == (0, "Adding a replica for queue q on node n3...\n", "")
    assert status(three) == {"n1": "leader", "n3": "follower"}
    assert http(three, "add", "n2") == (204, "")
    assert status(three) == {"n1": "leader", "n2": "follower", "n3": "follower"}


def test_what_is_so_already_is_well(three: ServedCluster) -> None:
    assert ctl(three, "add_member", "q", "n1") == ""
    assert http(three, "add", "n1") == (204, "")
    ctl(three, "delete_member", "q", "n1")
    assert ctl(three, "delete_member", "q", "n1") == ""
    assert http(three, "delete", "n1") == (202, "")
    assert sorted(status(three)) == ["n2", "n3"]


def test_the_last_one_stays(three: ServedCluster) -> None:
    for name in ("n1", "n3"):
        assert ctl(three, "delete_member", "q", name) == ""
        assert ctl(three, "delete_replica", "s", name) == ""
    assert ctl(three, "delete_member", "q", "n2") == "the last node cannot be removed"
    assert http(three, "delete", "n2") == (503, "last_node")
    text = "Cannot delete the last member of a stream"
    assert ctl(three, "delete_replica", "s", "n2") == text


def test_whichever_the_servers_choose_the_named_one_keeps_it(five: ServedCluster) -> None:
    assert ctl(five, "add_member", "q", "n5") == ""  # they choose n4 first
    assert sorted(status(five)) == ["n1", "n2", "n3", "n5"]
    assert ctl(five, "delete_member", "q", "n1") == ""
    assert sorted(status(five)) == ["n2", "n3", "n5"]
    for name in ("n1", "n4"):
        assert http(five, "add", name) == (204, "")
    assert len(status(five)) == 5


def test_a_choice_that_never_fits_is_said(
    five: ServedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(changes, "MOVES_MAX", 1)
    monkeypatch.setattr(five.world, "choices", ["n4", "x", "y"])
    said = ctl(five, "add_member", "q", "n5")
    assert said == (
        "the servers chose others time and again; those that keep it now: n1, n2, n3, x"
    )


@pytest.mark.parametrize(
    ("words", "text"),
    [
        (("add_member", "classic", "n1"), "Cannot add members to a classic queue"),
        (("add_member", "s", "n1"), "Cannot add members to a stream queue"),
        (("delete_member", "classic", "n1"), "Cannot delete members from a classic queue"),
        (("delete_member", "s", "n1"), "Cannot delete members from a stream queue"),
        (("add_replica", "classic", "n1"), "Cannot add replicas to a classic queue"),
        (("add_replica", "q", "n1"), "Cannot add replicas to a quorum queue"),
        (("delete_replica", "classic", "n1"), "Cannot delete replicas from a classic queue"),
        (("delete_replica", "q", "n1"), "Cannot delete replicas from a quorum queue"),
        (("restart_stream", "classic"), "Cannot restart a classic queue"),
        (("restart_stream", "q"), "Cannot restart a quorum queue"),
        (("quorum_status", "classic"), "Cannot get quorum status of a classic queue"),
        (("quorum_status", "s"), "Cannot get quorum status of a stream queue"),
        (("stream_status", "classic"), "Cannot get stream status of a classic queue"),
        (("stream_status", "q"), "Cannot get stream status of a quorum queue"),
    ],
)  # fmt: skip
def test_what_burrowctl_refuses(three: ServedCluster, words: tuple[str, ...], text: str) -> None:
    assert ctl(three, *words) == text
    assert len(status(three)) == 3


def test_all_quorum_queues_shrink_and_grow(three: ServedCluster) -> None:
    three.declare("other")
    assert table(three, "shrink", "n3") == [
        {"vhost": "/", "name": name, "size": 2, "result": "ok"} for name in ("other", "q")
    ]
    assert table(three, "shrink", "n3") == []  # which none has
    assert ctl(three, "delete_member", "other", "n1") == ""
    even = table(three, "grow", "n3", "even")
    assert even == [{"vhost": "/", "name": "q", "size": 3, "result": "ok"}]
    assert table(three, "grow", "n3", "all", "--queue-pattern", "^q") == []
    assert table(three, "grow", "n3", "all", "--vhost-pattern", "^x") == []
    told = three.served.ctl("grow", "n3", "all", "--membership", "voter").out
    assert told.startswith("Growing all quorum queues on n3...\nvhost\tname\tsize\tresult\n")
    assert "/\tother\t2\tok" in told
    assert three.served.ctl("grow", "n3", "odd").code == 64


def test_what_cannot_shrink_is_in_the_table(three: ServedCluster) -> None:
    three.declare("other")
    for name in ("n1", "n3"):
        assert ctl(three, "delete_member", "q", name) == ""
    error = {"vhost": "/", "name": "q", "size": 1}
    error |= {"result": "error: the last node cannot be removed"}
    assert table(three, "shrink", "n2", "--errors-only") == [error]
    assert sorted(status(three, "other")) == ["n1", "n3"]
    path = "/api/queues/quorum/replicas/on/n1/"
    assert three.served.api("DELETE", path + "shrink").status == 202
    assert sorted(status(three, "other")) == ["n3"]
    body = {"strategy": "all", "vhost_pattern": ".*", "queue_pattern": "^o"}
    assert three.served.api("POST", path + "grow", body).status == 204
    assert sorted(status(three, "other")) == ["n1", "n3"]
    assert sorted(status(three)) == ["n2"]


def test_streams_say_who_writes(three: ServedCluster) -> None:
    assert ctl(three, "delete_replica", "s", "n1") == ""
    assert ctl(three, "add_replica", "s", "n1") == ""
    rows = table(three, "stream_status", "s")
    assert rows == [
        {"role": "replica", "node": "n1", "state": "running"},
        {"role": "writer", "node": "n2", "state": "running"},
        {"role": "replica", "node": "n3", "state": "running"},
    ]
    told = three.served.ctl("quorum_status", "q").out
    assert told.startswith(
        "Status of quorum queue q on node rabbit@test ...\nNode Name\tRaft State"
    )


def test_while_a_server_is_down_nothing_changes(lacking: ServedCluster) -> None:
    for words in (
        ("add_member", "q", "n1"),
        ("delete_member", "q", "n1"),
        ("add_replica", "s", "n1"),
        ("delete_replica", "s", "n1"),
        ("grow", "n1", "all"),
        ("shrink", "n1"),
    ):
        assert ctl(lacking, *words).startswith(DOWN)
    code, reason = http(lacking, "delete", "n1")
    assert (code, reason.startswith(DOWN)) == (503, True)
    path = "/api/queues/quorum/replicas/on/n1/"
    assert lacking.served.api("DELETE", path + "shrink").status == 503
    body = {"strategy": "all", "vhost_pattern": ".*", "queue_pattern": ".*"}
    assert lacking.served.api("POST", path + "grow", body).status == 503
    assert len(status(lacking)) == 3


def test_a_member_that_its_leader_does_not_hear_is_down(three: ServedCluster) -> None:
    three.world.cluster["replicas"][0]["active"] = 60_000_000_000
    said = ctl(three, "delete_member", "q", "n1")
    assert said == DOWN + "n1 (its queues' leaders do not hear it)"
    assert status(three)["n1"] == "noproc"


def test_without_an_answer_that_is_said(three: ServedCluster) -> None:
    three.lose(down_s=10.0)
    assert "is inaccessible" in ctl(three, "quorum_status", "q")
    assert ctl(three, "delete_member", "q", "n1") != ""
    three.find_again()


def test_a_stream_gets_another_writer(three: ServedCluster) -> None:
    def writer() -> str:
        rows = table(three, "stream_status", "s")
        return next(str(row["node"]) for row in rows if row["role"] == "writer")

    assert writer() == "n2"
    told = three.served.ctl("restart_stream", "s")
    assert told == (0, "Restarting stream s...\nn1\n", "")
    assert writer() == "n1"
    words = ("restart_stream", "s", "--preferred-leader-node", "n3", "-q")
    assert three.served.ctl(*words) == (0, "n3\n", "")
    assert three.served.ctl(*words).out == "n3\n"  # it does so already
    assert writer() == "n3"


def test_a_stream_that_gets_no_other_writer_keeps_the_one_it_has(
    three: ServedCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "ELECTION_S", 0.05)
    three.world.unmoved.update(three.world.streams)
    assert three.served.ctl("restart_stream", "s", "-q") == (0, "n2\n", "")


@pytest.mark.parametrize(
    ("cluster", "text"),
    [
        ({}, "the only server is no cluster: nobody else can write s"),
        (
            {"leader": "", "replicas": [{"name": "n1", "offline": True}]},
            "nobody writes s now: its servers elect who does",
        ),
    ],
)
def test_a_stream_without_another_writer_is_left_as_it_is(
    three: ServedCluster, cluster: dict[str, Any], text: str
) -> None:
    three.world.cluster = cluster
    assert ctl(three, "restart_stream", "s") == text
