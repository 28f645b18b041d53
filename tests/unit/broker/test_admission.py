"""Admission: logins and entries, counted and told."""

from __future__ import annotations

import pytest

from broker.admission import Admission
from broker.auth import LoginRefused
from broker.metrics import NodeMetrics
from broker.wire import Peer
from protocol.errors import NotAllowed
from protocol.events import LoginAttempt
from tests.support.broker_bench import BrokerBench, RecordingObserver
from tests.support.topology import make_auth, make_vhost


class World:
    def __init__(self, connection_max: int | None = None) -> None:
        self.auth = make_auth()
        self.metrics = NodeMetrics()
        self.observer = RecordingObserver()
        self.bench = BrokerBench()
        self.admission = Admission(
            self.auth,
            {"/": make_vhost(), "private": make_vhost("private")},
            self.bench.sessions,
            connection_max,
            self.metrics,
            self.observer,
        )

    def log_in(self, response: bytes, *, is_loopback: bool = True):
        host = "127.0.0.1" if is_loopback else "198.51.100.7"
        peer = Peer(host=host, port=1, local_host=host, local_port=5672, is_loopback=is_loopback)
        attempt = LoginAttempt("PLAIN", response, {}, "en_US")
        return self.admission.log_in(attempt, peer)


def test_a_good_login():
    world = World()
    assert world.log_in(b"\0guest\0guest").name == "guest"
    assert (world.metrics.auth_attempts, world.metrics.auth_failures) == (1, 0)
    assert world.observer.events == []


@pytest.mark.parametrize("response", [b"\0guest\0wrong", b"\0nobody\0guest", b"\0guest\0"])
def test_a_bad_login_is_counted_and_logged(response):
    world = World()
    with pytest.raises(LoginRefused):
        world.log_in(response)
    assert (world.metrics.auth_attempts, world.metrics.auth_failures) == (1, 1)
    ((connection, mechanism, reason),) = world.observer.named("login_refused")
    assert (connection, mechanism) == ("127.0.0.1:1 -> 127.0.0.1:5672", "PLAIN")
    assert reason


def test_guest_comes_from_this_machine_only():
    with pytest.raises(LoginRefused):
        World().log_in(b"\0guest\0guest", is_loopback=False)


def test_entering():
    world = World()
    guest = world.log_in(b"\0guest\0guest")
    assert world.admission.enter(guest, "/").name == "/"
    with pytest.raises(NotAllowed, match=r"^vhost missing not found$"):
        world.admission.enter(guest, "missing")
    with pytest.raises(NotAllowed, match="access to vhost 'private' refused for user 'guest'"):
        world.admission.enter(guest, "private")


def test_the_nodes_connection_limit_counts_open_connections():
    world = World(connection_max=1)
    guest = world.log_in(b"\0guest\0guest")
    world.bench.socket()
    world.admission.enter(guest, "/")
    client = world.bench.connect()
    with pytest.raises(NotAllowed, match=r"node connection limit \(1\) is reached"):
        world.admission.enter(guest, "/")
    client.lose()
    world.admission.enter(guest, "/")
