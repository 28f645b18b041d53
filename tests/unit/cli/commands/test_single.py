"""Commands that one node without Erlang has no use for: one clear sentence, rabbitmqctl's exit code."""

from __future__ import annotations

import pytest

from burrowmq.cli.registry import COMMANDS
from tests.support.served import Served

NAMES = [
    name
    for name, command in COMMANDS.items()
    if command.function in ("needs_stopped_app", "quorum", "not_here", "no_erlang")
]


@pytest.mark.parametrize("name", NAMES)
def test_a_sentence_and_a_code(served: Served, name: str) -> None:
    output = served.ctl(name, "x")
    assert output.code == (64 if COMMANDS[name].function == "needs_stopped_app" else 69)
    assert output.err.startswith("Error:")
    assert len(output.err.splitlines()) <= 2
    assert output.out == ""


@pytest.mark.parametrize(
    ("words", "code", "out", "err"),
    [
        (("sync_queue", "q"), 69, "Synchronising queue 'q' in vhost '/' ...\n", "Error:\nnot_mirrored\n"),
        (("cancel_sync_queue", "q"), 69, "Stopping synchronising queue 'q' in vhost '/' ...\n",
         "Error:\nnot_mirrored\n"),
        (("forget_cluster_node", "x@y"), 69, "Removing node x@y from the cluster\n",
         "Error:\n{:not_a_cluster_node, 'The node selected is not in the cluster.'}\n"),
        (("hipe_compile", "x"), 0,
         "This command is a no-op. HiPE is no longer supported by modern Erlang versions\n", ""),
        (("await_online_nodes", "1"), 0,
         "Will wait for at least 1 nodes to join the cluster of rabbit@test. Timeout: 300 seconds.\n", ""),
        (("restart_vhost",), 0,
         "Trying to restart vhost '/' on node 'rabbit@test' ...\nVhost '/' is already running on node 'rabbit@test'\n",
         ""),
        (("discover_peers",), 0, "Discovering peers nodes ...\nNo peers discovered\n", ""),
    ],
)  # fmt: skip
def test_texts(served: Served, words: tuple[str, ...], code: int, out: str, err: str) -> None:
    assert served.ctl(*words) == (code, out, err)


def test_more_nodes_than_one_never_come(served: Served) -> None:
    output = served.ctl("await_online_nodes", "2", "-t", "1")
    assert (output.code, "Not enough nodes joined" in output.err) == (70, True)
    assert served.ctl("await_online_nodes", "9" * 5000).code == 70
    assert served.ctl("await_online_nodes", "1", "-t", "infinity").code == 0
    for text in ("x", "²"):
        assert served.ctl("await_online_nodes", text).code == 64


def test_eval_answers_who_is_there_and_nothing_else(served: Served) -> None:
    assert served.ctl("eval", "node().").out == "rabbit@test\n"
    assert served.ctl("eval", "rabbit_misc:version().").out == '"3.13.7"\n'
    assert served.ctl("eval", "1 + 1.").code == 69


@pytest.mark.parametrize("name", ["reset", "force_reset"])
def test_a_reset_is_refused_on_a_stopped_node_too(stays_stopped: Served, name: str) -> None:
    assert stays_stopped.ctl(name) == (
        69, "", "Error:\nto empty a node, stop it and remove its data directory\n"
    )  # fmt: skip


def test_no_vhost_that_is_missing_runs(served: Served) -> None:
    output = served.ctl("restart_vhost", "-p", "nope")
    assert output.code == 70
    assert output.err.startswith("Error:\nFailed to start vhost 'nope' on node")
