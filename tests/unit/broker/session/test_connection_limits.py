"""burrowmq.broker.session.connection_limits: who is counted, and the texts."""

from __future__ import annotations

import pytest
from pika import spec

from burrowmq.broker.rules.auth import User
from burrowmq.broker.session.connection_limits import check_channel, check_open
from burrowmq.protocol.errors import NotAllowed
from tests.support.bench.broker import BrokerBench


def user_of(bench: BrokerBench, name: str = "bob", **limits: int) -> User:
    """A user who may enter the virtual hosts / and v; the password is the name."""
    user = bench.auth.set_password(name, name)
    bench.auth.set_limits(name, {key.replace("_", "-"): value for key, value in limits.items()})
    for vhost in ("/", "v"):
        bench.create_vhost(vhost)
        bench.auth.set_permission(vhost, name, bench.auth.permissions["/", "guest"])
    return bench.auth.users[user.name]


def test_a_vhosts_connections() -> None:
    bench = BrokerBench()
    vhost, user = bench.vhost, user_of(bench)
    bench.connect(user="bob")
    bench.connect(user="bob", vhost="v")
    bench.socket()
    assert len(bench.sessions) == 3, "one of them in the other vhost, one in none"
    vhost.limits = {"max-connections": 2}
    check_open(user, vhost, bench.sessions)
    vhost.limits = {"max-connections": 1}
    text = "access to vhost '/' refused for user 'bob': connection limit (1) is reached"
    with pytest.raises(NotAllowed) as caught:
        check_open(user, vhost, bench.sessions)
    assert str(caught.value) == text
    vhost.limits = {"max-connections": -1}
    check_open(user, vhost, bench.sessions)


def test_a_users_connections() -> None:
    bench = BrokerBench()
    user = user_of(bench, max_connections=1)
    bench.connect(user="guest")
    check_open(user, bench.vhost, bench.sessions)
    bench.connect(user="bob")
    with pytest.raises(NotAllowed, match=r"user connection limit \(1\) is reached"):
        check_open(user, bench.vhost, bench.sessions)
    with pytest.raises(NotAllowed, match=r"user connection limit \(0\) is reached"):
        check_open(User(name="bob", limits={"max-connections": 0}), bench.vhost, [])


def test_a_users_channels() -> None:
    bench = BrokerBench()
    user = user_of(bench, max_channels=3)
    bench.connect(1, 2, user="bob")
    client = bench.connect(user="bob")
    check_channel(user, bench.sessions)
    client.call(1, spec.Channel.Open())
    with pytest.raises(NotAllowed) as caught:
        check_channel(user, bench.sessions)
    assert str(caught.value) == (
        "number of channels opened for user 'bob' has reached the maximum allowed user limit of (3)"
    )
    check_channel(User(name="bob"), bench.sessions)
