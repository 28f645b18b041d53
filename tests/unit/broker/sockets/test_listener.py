"""Listeners: what is bound, with which options, and what is said when it cannot be."""

from __future__ import annotations

import contextlib
import errno
import os
import socket

import pytest

from burrowmq.broker.sockets.listener import (
    CannotListen,
    SocketOptions,
    address_of,
    bind,
    bind_all,
    check_free,
    way_out,
)


@pytest.fixture
def opened():
    with contextlib.ExitStack() as stack:
        yield stack


def test_options_are_set_before_it_listens(opened):
    options = SocketOptions(sndbuf_bytes=65536, recbuf_bytes=32768, keepalive=True)
    sock = opened.enter_context(bind("127.0.0.1", 0, options))
    # Linux doubles buffer sizes for its own bookkeeping.
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 2 * 65536
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) == 2 * 32768
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert not sock.getblocking()
    client = opened.enter_context(socket.create_connection(sock.getsockname()))
    accepted = opened.enter_context(sock.accept()[0])
    assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == 2 * 65536
    assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
    assert client.getpeername() == sock.getsockname()


def test_nothing_said_leaves_the_systems_values(opened):
    with socket.socket() as plain:
        usual = plain.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF)
    sock = opened.enter_context(bind("127.0.0.1", 0, SocketOptions()))
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) == usual
    assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 0


def test_a_port_that_is_taken_is_named_and_nothing_stays_bound(opened):
    taken = opened.enter_context(bind("127.0.0.1", 0, SocketOptions()))
    port = taken.getsockname()[1]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    with pytest.raises(CannotListen, match=rf"cannot listen on 127\.0\.0\.1:{port}: "):
        bind_all([("127.0.0.1", free), ("127.0.0.1", port)], SocketOptions())
    opened.enter_context(bind("127.0.0.1", free, SocketOptions()))


def test_a_look_names_what_is_taken_and_leaves_what_is_free(opened):
    taken = opened.enter_context(bind("127.0.0.1", 0, SocketOptions()))
    port = taken.getsockname()[1]
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        free = probe.getsockname()[1]
    with pytest.raises(CannotListen, match=rf"cannot listen on 127\.0\.0\.1:{port}: "):
        check_free([("127.0.0.1", free), ("127.0.0.1", port)], SocketOptions())
    check_free([("127.0.0.1", free)], SocketOptions())
    opened.enter_context(bind("127.0.0.1", free, SocketOptions()))


def test_nobody_can_connect_to_what_is_bound_only(opened):
    sock = opened.enter_context(bind("127.0.0.1", 0, SocketOptions(), is_listening=False))
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(sock.getsockname())


def test_an_empty_host_is_every_interface(opened):
    with socket.socket() as probe:
        probe.bind(("0.0.0.0", 0))
        port = probe.getsockname()[1]
    sockets = bind_all([("", port)], SocketOptions())
    hosts = [opened.enter_context(sock).getsockname()[0] for sock in sockets]
    assert hosts[0] == "0.0.0.0"
    assert hosts[1:] in ([], ["::"])


def test_an_address_of_another_machine_is_refused():
    with pytest.raises(CannotListen):
        bind_all([("203.0.113.1", 0)], SocketOptions())


def test_every_address_of_ipv6_has_those_of_ipv4_with_it_as_on_rabbitmq(opened, monkeypatch):
    with socket.socket() as probe:
        probe.bind(("0.0.0.0", 0))
        port = probe.getsockname()[1]

    def hosts(*endpoints):
        sockets = bind_all(endpoints, SocketOptions(), is_listening=False)
        found = sorted(address_of(sock) for sock in sockets)
        for sock in sockets:
            sock.close()
        return found

    assert hosts(("::", port)) == [f"0.0.0.0:{port}", f"[::]:{port}"]
    # Unless IPv4 is written down itself, or the system has it otherwise.
    assert hosts(("::", port), ("127.0.0.1", port)) == [f"127.0.0.1:{port}", f"[::]:{port}"]
    assert hosts(("0.0.0.0", port), ("::", port)) == [f"0.0.0.0:{port}", f"[::]:{port}"]
    monkeypatch.setattr("burrowmq.broker.sockets.listener._is_ipv6_alone", lambda: True)
    assert hosts(("::", port)) == [f"[::]:{port}"]


def test_a_name_is_listened_at_by_its_first_address_of_each_family(opened, monkeypatch):
    def look_up(host, *_, **named):
        assert host == "a.name"
        there = [
            ("::1", socket.AF_INET6),
            ("127.0.0.2", socket.AF_INET),
            ("127.0.0.3", socket.AF_INET),
        ]
        return [(family, socket.SOCK_STREAM, 6, "", (address, 0)) for address, family in there]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    sockets = bind_all([("a.name", 0)], SocketOptions())
    hosts = [opened.enter_context(sock).getsockname()[0] for sock in sockets]
    assert hosts == ["127.0.0.2", "::1"]


def test_a_name_that_nobody_knows_is_told(monkeypatch):
    def look_up(*_, **__):
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    with pytest.raises(CannotListen, match=r"cannot listen on a\.name:5672: Name or") as caught:
        bind_all([("a.name", 5672)], SocketOptions())
    assert way_out(caught.value.__cause__, "some.key").startswith("this machine finds no address")


@pytest.fixture
def places(monkeypatch):
    """What sockets were bound to; they are bound elsewhere, as not every machine has an address of a link."""
    found = []

    class Socket(socket.socket):
        def bind(self, place):
            found.append(place)
            super().bind(("::1", 0))

    monkeypatch.setattr(socket, "socket", Socket)
    return found


@pytest.mark.parametrize("interface", ["lo", "1"])
def test_an_address_of_a_link_is_bound_at_its_interface(opened, places, interface):
    index = socket.if_nametoindex("lo") if interface == "lo" else 1
    for sock in bind_all([(f"fe80::1%{interface}", 5672)], SocketOptions()):
        opened.enter_context(sock)
    assert places == [("fe80::1", 5672, 0, index)]


@pytest.mark.parametrize(
    ("host", "reason", "way"),
    [
        (
            "fe80::1%none0",
            r"%none0\]:0: No such device",
            "this machine has no such interface; name",
        ),
        (
            "fe80::1",
            r"fe80::1\]:0: Invalid argument",
            "is written with its interface, as fe80::1%eth0",
        ),
    ],
)
def test_an_address_of_a_link_without_its_interface_is_told(host, reason, way):
    with pytest.raises(CannotListen, match=reason) as caught:
        bind_all([(host, 0)], SocketOptions())
    assert way in way_out(caught.value.__cause__, "some.key")


@pytest.fixture
def no_ipv6(monkeypatch):
    """A kernel that was started with ipv6.disable=1 refuses the socket itself."""

    class Socket(socket.socket):
        def __init__(self, family=socket.AF_INET, *rest, **named):
            if family == socket.AF_INET6:
                raise OSError(errno.EAFNOSUPPORT, os.strerror(errno.EAFNOSUPPORT))
            super().__init__(family, *rest, **named)

    monkeypatch.setattr(socket, "socket", Socket)


def test_every_interface_of_a_machine_without_ipv6_is_ipv4(opened, no_ipv6):
    sockets = [opened.enter_context(sock) for sock in bind_all([("", 0)], SocketOptions())]
    assert [sock.getsockname()[0] for sock in sockets] == ["0.0.0.0"]


def test_an_address_of_a_family_that_is_not_there_is_named(no_ipv6):
    with pytest.raises(CannotListen, match=r"cannot listen on \[::1\]:5672: ") as caught:
        bind_all([("::1", 5672)], SocketOptions())
    assert way_out(caught.value.__cause__, "some.key") == (
        "this machine has no IPv6; name another with some.key"
    )


def test_no_descriptor_for_a_socket_is_no_matter_of_its_address(monkeypatch):
    def refuse(*_):
        raise OSError(errno.EMFILE, os.strerror(errno.EMFILE))

    monkeypatch.setattr(socket, "socket", refuse)
    with pytest.raises(
        CannotListen, match=r"cannot listen on 127\.0\.0\.1:5672: Too many open"
    ) as caught:
        bind("127.0.0.1", 5672, SocketOptions())
    assert way_out(caught.value.__cause__, "some.key").startswith("raise the limit of open files")
