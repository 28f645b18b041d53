"""rabbitmq-upgrade and rabbitmq-queues on a node that is its whole cluster."""

from __future__ import annotations

import pytest

from tests.support.served import Served

ALONE = (
    "Target node seems to be the only one in a single node cluster, the command does not apply\n"
)


def test_a_drained_node_takes_no_clients_until_it_is_revived(served: Served) -> None:
    maintenance = "Will put node rabbit@test into maintenance mode. The node will no longer serve any client traffic!\n"
    for _ in range(2):
        assert served.ctl("drain").out == maintenance
    assert served.node.acceptor.servers == []
    assert served.get("/api/nodes")[0]["being_drained"] is True
    assert "Is under maintenance?: true" in served.ctl("status").out
    assert "status: marked for maintenance" in served.ctl("cluster_status").out
    for _ in range(2):
        assert "back into regular operating mode." in served.ctl("revive").out
    assert len(served.node.acceptor.servers) == 1
    assert served.get("/api/nodes/rabbit%40test")["being_drained"] is False


@pytest.mark.parametrize(
    ("words", "out"),
    [
        (("await_online_quorum_plus_one",),
         "Will wait for a quorum + 1 of nodes to be online for all quorum queues for 120 seconds...\n" + ALONE),
        (("await_online_synchronized_mirror", "-t", "5"),
         "Will wait for a synchronised mirror be online for all classic mirrored queues for 5 seconds...\n" + ALONE),
        (("await_online_quorum_plus_one", "-t", "infinity"),
         "Will wait for a quorum + 1 of nodes to be online for all quorum queues for inf seconds...\n" + ALONE),
        (("post_upgrade",), "Executing post upgrade tasks...\nRebalancing queue masters...\n\n"),
        (("rebalance", "all", "--formatter", "json"), "[]\n"),
    ],
)  # fmt: skip
def test_there_is_nothing_to_do(served: Served, words: tuple[str, ...], out: str) -> None:
    assert served.ctl(*words) == (0, out, "")


def test_rebalancing_changes_nothing(served: Served) -> None:
    told = served.ctl("rebalance", "classic").out
    assert told.startswith("Re-balancing leaders of classic queues...\n")
    assert "[]" in told
    output = served.ctl("rebalance", "streams")
    assert output == (
        69,
        "",
        "Error:\ntype streams is not supported. Try one of all, classic, quorum, stream.\n",
    )
