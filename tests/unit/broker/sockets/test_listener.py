"""Listeners: what is bound, with which options, and what is said when it cannot be."""

from __future__ import annotations

import contextlib
import socket

import pytest

from burrowmq.broker.sockets.listener import CannotListen, SocketOptions, bind, bind_all, check_free


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
