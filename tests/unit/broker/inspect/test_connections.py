"""Connections, channels, alarms as rows."""

from __future__ import annotations

from burrowmq.broker import inspect
from tests.support.fake_node import FakeConfirms, small_world


def test_states() -> None:
    node = small_world()
    (session,) = node.sessions
    assert inspect.session_state(node, session) == "running"
    node.alarms.active.add("store")
    assert inspect.session_state(node, session) == "blocking"
    session.is_blocked = True
    assert inspect.session_state(node, session) == "blocked"
    assert inspect.alarms(node) == [{"node": "rabbit@test", "resource": "disk"}]


def test_before_login_and_open() -> None:
    node = small_world()
    (session,) = node.sessions
    session.vhost = None
    assert inspect.connections(node)[0]["vhost"] == ""
    assert inspect.connections(node, "/") == []


def test_channel_modes() -> None:
    node = small_world()
    (session,) = node.sessions
    channel = session.channels[1]
    channel.confirms = FakeConfirms(3)
    (row,) = inspect.channels(node)
    assert (row["confirm"], row["transactional"], row["messages_unconfirmed"]) == (True, False, 3)
