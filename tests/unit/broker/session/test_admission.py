"""Admission: logins and entries, counted and told."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest

from burrowmq.broker.peer.certificate import Certificate
from burrowmq.broker.peer.tls import TlsPeer
from burrowmq.broker.peer.wire import Peer
from burrowmq.broker.rules.auth import LoginRefused
from burrowmq.broker.session.admission import Admission, CertificateName
from burrowmq.broker.session.connection_limits import NodeLimits
from burrowmq.protocol.errors import NotAllowed
from burrowmq.protocol.events import LoginAttempt
from tests.support.bench.broker import BrokerBench


class World:
    def __init__(
        self,
        connection_max: int | None = None,
        channel_max: int | None = None,
        certificate_name: CertificateName = CertificateName(),
    ) -> None:
        self.bench = BrokerBench()
        self.bench.create_vhost("private")
        self.auth = self.bench.auth
        self.metrics = self.bench.metrics
        self.observer = self.bench.observer
        self.admission = Admission(
            self.auth,
            self.bench.vhosts,
            self.bench.sessions,
            NodeLimits(
                node_name="rabbit@test", connection_max=connection_max, channel_max=channel_max
            ),
            self.metrics,
            self.observer,
            certificate_name=certificate_name,
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


def certificate(**more: str) -> Certificate:
    now = datetime.now(UTC)
    parts = tuple(((oid, value),) for oid, value in (("2.5.4.10", "client"), ("2.5.4.3", "bob")))
    return Certificate(
        subject_parts=parts if not more else (),
        issuer_parts=(),
        not_before=now,
        not_after=now,
        alternative_names=(),
    )


def by_certificate(
    world: World, found: Certificate | None, *, is_tls: bool = True, host: str = "127.0.0.1"
):
    tls = TlsPeer(
        protocol="tlsv1.3", key_exchange="any", cipher="c", hash="aead", certificate=found
    )
    peer = Peer(
        host=host,
        port=1,
        local_host=host,
        local_port=5671,
        is_loopback=host == "127.0.0.1",
        tls=tls if is_tls else None,
    )
    return world.admission.log_in(LoginAttempt("EXTERNAL", b"ignored", {}, "en_US"), peer)


def test_a_certificate_logs_its_user_in_without_a_password():
    world = World()
    world.auth.put_user("CN=bob,O=client", "")
    assert by_certificate(world, certificate()).name == "CN=bob,O=client"
    assert world.metrics.auth_failures == 0


@pytest.mark.parametrize(
    ("found", "is_tls", "source", "reason"),
    [
        (certificate(), True, "distinguished_name", "user 'CN=bob,O=client' - invalid credentials"),
        (None, True, "distinguished_name", "connection peer presented no TLS (x.509) certificate"),
        (None, False, "distinguished_name", "connection peer presented no TLS (x.509) certificate"),
        (certificate(no="name"), True, "common_name", "no name found"),
    ],
)
def test_a_certificate_that_names_nobody(found, is_tls, source, reason):
    world = World(certificate_name=CertificateName(source=source))
    with pytest.raises(LoginRefused):
        by_certificate(world, found, is_tls=is_tls)
    ((_, mechanism, said),) = world.observer.named("login_refused")
    assert (mechanism, said) == ("EXTERNAL", reason)


def test_a_certificate_does_not_free_a_user_of_this_machine():
    world = World(certificate_name=CertificateName(source="common_name"))
    world.auth.put_user("bob", "")
    assert by_certificate(world, certificate()).name == "bob"
    world.auth.loopback_users = frozenset({"bob"})
    with pytest.raises(LoginRefused):
        by_certificate(world, certificate(), host="198.51.100.7")


def test_entering():
    world = World()
    guest = world.log_in(b"\0guest\0guest")
    assert world.admission.enter(guest, "/").name == "/"
    with pytest.raises(NotAllowed, match=r"^vhost missing not found$"):
        world.admission.enter(guest, "missing")
    with pytest.raises(NotAllowed, match="access to vhost 'private' refused for user 'guest'"):
        world.admission.enter(guest, "private")


def test_the_nodes_channel_limit_counts_those_of_all_connections():
    world = World(channel_max=2)
    guest = world.log_in(b"\0guest\0guest")
    world.admission.open_channel(guest)
    clients = [world.bench.connect(1), world.bench.connect(1)]
    text = (
        r"^number of channels opened on node 'rabbit@test' has reached the maximum allowed"
        r" limit of \(2\)$"
    )
    with pytest.raises(NotAllowed, match=text):
        world.admission.open_channel(guest)
    clients[0].lose()
    world.admission.open_channel(guest)


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
