"""A change reaches the end of the turn, a refused one does not; each resource's own test is in tests/unit/management/api.

Covers: management/commands/topology.py, management/commands/users.py, management/commands/parameters.py,
 management/commands/sessions.py, management/commands/node.py
"""

from __future__ import annotations

import pytest

from burrowmq.management.answers.reply import ApiError
from burrowmq.management.commands import node as commands_node
from burrowmq.management.commands import parameters, sessions, topology, users
from tests.support.fake_node import small_world


def test_a_change_reaches_the_end_of_the_turn() -> None:
    node = small_world()
    topology.purge(node, "/", "lazy")
    users.put_user(node, "bob", "x", None, ["management"])
    assert node.turn.touches == 2


def test_a_change_that_is_refused_does_not() -> None:
    node = small_world()
    with pytest.raises(ApiError, match="404"):
        parameters.delete_policy(node, "/", "nope", is_operator=False)
    with pytest.raises(ApiError, match="404"):
        topology.delete_queue(node, "/", "nope")
    assert node.turn.touches == 0


def test_sessions_are_found_and_closed_with_just_the_reason() -> None:
    node = small_world()
    (session,) = node.sessions
    assert sessions.sessions_named(node, session.name) == [session]
    assert sessions.close_sessions([session], "enough") == 1
    assert session.closed_with == ["enough"]


def test_an_unknown_log_level_is_not_set() -> None:
    node = small_world()
    assert not commands_node.set_log_level(node, "loud")
    assert commands_node.set_log_level(node, "debug")
    assert node.observer.level == "debug"
