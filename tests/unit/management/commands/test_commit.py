"""A change reaches the end of the turn, a refused one does not; each resource's own test is in tests/unit/management/api.

Covers: management/commands/topology.py, management/commands/users.py, management/commands/parameters.py,
 management/commands/sessions.py, management/commands/node.py
"""

from __future__ import annotations

import pytest

from burrowmq.management.answers.reply import ApiError
from burrowmq.management.commands import node as commands_node
from burrowmq.management.commands import parameters, sessions, topology, users
from tests.support.bench.node import NodeBench


def test_a_change_reaches_the_end_of_the_turn(bench: NodeBench) -> None:
    node, lazy = bench.node, bench.node.vhosts["/"].queues["lazy"]
    bench.perform(lambda: topology.purge(node, "/", "lazy"))
    assert lazy.ready_count == 0
    turns = node.scheduler.turns
    bench.perform(lambda: users.put_user(node, "bob", "x", None, ["management"]))
    assert node.scheduler.turns > turns
    assert ("user", '["bob"]') in [row[:2] for row in bench.store.load()]


def test_a_change_that_is_refused_does_not(bench: NodeBench) -> None:
    node = bench.node
    turns = node.scheduler.turns

    def refused() -> None:
        with pytest.raises(ApiError, match="404"):
            parameters.delete_policy(node, "/", "nope", is_operator=False)
        with pytest.raises(ApiError, match="404"):
            topology.delete_queue(node, "/", "nope")

    bench.perform(refused)
    assert node.scheduler.turns == turns


def test_sessions_are_found_and_closed_with_just_the_reason(bench: NodeBench) -> None:
    (client,) = bench.clients
    (session,) = bench.node.sessions
    assert sessions.sessions_named(bench.node, session.name) == [client.session]
    assert bench.perform(lambda: sessions.close_sessions([session], "enough")) == 1
    ((_, close),) = client.read()
    assert (close.reply_code, close.reply_text) == (320, "CONNECTION_FORCED - enough")


def test_an_unknown_log_level_is_not_set(bench: NodeBench) -> None:
    assert not commands_node.set_log_level(bench.node, "loud")
    assert bench.observer.named("set_level") == []
    assert commands_node.set_log_level(bench.node, "debug")
    assert bench.observer.named("set_level") == [("debug",)]
