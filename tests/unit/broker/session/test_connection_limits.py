"""burrowmq.broker.session.connection_limits: who is counted, and the texts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import pytest

from burrowmq.broker.rules.auth import User
from burrowmq.broker.session.connection_limits import check_channel, check_open
from burrowmq.protocol.errors import NotAllowed
from tests.support.topology import make_vhost


@dataclass
class Session:
    user: User
    vhost: Any
    is_open: bool = True
    channels: dict[int, object] = field(default_factory=dict)


def test_a_vhosts_connections() -> None:
    vhost, other, user = make_vhost(), make_vhost("v"), User(name="bob")
    sessions = [Session(user, vhost), Session(user, other), Session(user, vhost, is_open=False)]
    vhost.limits = {"max-connections": 2}
    check_open(user, vhost, sessions)
    vhost.limits = {"max-connections": 1}
    text = "access to vhost '/' refused for user 'bob': connection limit (1) is reached"
    with pytest.raises(NotAllowed) as caught:
        check_open(user, vhost, sessions)
    assert str(caught.value) == text
    vhost.limits = {"max-connections": -1}
    check_open(user, vhost, sessions)


def test_a_users_connections() -> None:
    vhost = make_vhost()
    user, other = User(name="bob", limits={"max-connections": 1}), User(name="eve")
    check_open(user, vhost, [Session(other, vhost)])
    with pytest.raises(NotAllowed, match=r"user connection limit \(1\) is reached"):
        check_open(user, vhost, [Session(user, vhost)])
    with pytest.raises(NotAllowed, match=r"user connection limit \(0\) is reached"):
        check_open(User(name="bob", limits={"max-connections": 0}), vhost, [])


def test_a_users_channels() -> None:
    vhost, user = make_vhost(), User(name="bob", limits={"max-channels": 3})
    sessions = [Session(user, vhost, channels={1: 0, 2: 0}), Session(user, vhost)]
    check_channel(user, sessions)
    sessions[1].channels[1] = 0
    with pytest.raises(NotAllowed) as caught:
        check_channel(user, sessions)
    assert str(caught.value) == (
        "number of channels opened for user 'bob' has reached the maximum allowed user limit of (3)"
    )
    check_channel(User(name="bob"), sessions)
