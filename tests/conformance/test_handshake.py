"""Protocol header, login, tuning and opening, byte by byte.

Source: RabbitMQ's reader (rabbit_reader) and its answers on a live 3.10 node.
"""

from __future__ import annotations

import time
from collections.abc import Callable

import pika
import pytest
from pika import spec
from pika.adapters.blocking_connection import BlockingConnection

from tests.support.broker_process import Target
from tests.support.wire_client import PROTOCOL_HEADER, Closed, WireClient, frame

REFUSED = (
    "ACCESS_REFUSED - Login was refused using authentication mechanism {}."
    " For details see the broker logfile."
)


def test_start_offers_what_clients_branch_on(wire: Callable[[], WireClient]) -> None:
    started = wire().start()
    assert (started.version_major, started.version_minor) == (0, 9)
    assert set(started.mechanisms.split()) >= {b"PLAIN", b"AMQPLAIN"}
    assert started.locales == b"en_US"
    properties = started.server_properties
    assert properties["product"] == "RabbitMQ"
    assert properties["version"].startswith("3.1")
    assert {"capabilities", "cluster_name", "copyright", "information", "platform"} <= set(
        properties
    )
    for capability in (
        "publisher_confirms",
        "exchange_exchange_bindings",
        "basic.nack",
        "consumer_cancel_notify",
        "connection.blocked",
        "consumer_priorities",
        "authentication_failure_close",
        "per_consumer_qos",
        "direct_reply_to",
    ):
        assert properties["capabilities"][capability] is True


def test_version_3_13_is_announced(broker: Target, wire: Callable[[], WireClient]) -> None:
    if broker.is_rabbitmq_3_10:
        pytest.skip("only ours announces 3.13.7")
    properties = wire().start().server_properties
    assert properties["version"] == "3.13.7"
    assert properties["burrowmq_version"]


def test_header_amqp_1_1_0_9_is_taken_as_0_9_1(wire: Callable[[], WireClient]) -> None:
    client = wire()
    client.send(b"AMQP\x01\x01\x00\x09")
    assert isinstance(client.expect(spec.Connection.Start), spec.Connection.Start)


@pytest.mark.parametrize(
    "header",
    [
        b"AMQP\x00\x01\x00\x00",
        b"AMQP\x03\x01\x00\x00",
        b"AMQP\x00\x00\x09\x02",
        b"AMQP\x09\x09\x09\x09",
    ],
)
def test_other_amqp_versions_get_our_header_and_a_close(
    wire: Callable[[], WireClient], header: bytes
) -> None:
    client = wire()
    client.send(header)
    assert client.read_raw(8) == PROTOCOL_HEADER
    client.wait_closed()


@pytest.mark.parametrize("header", [b"GET / HTTP/1.1\r\n\r\n", b"\x16\x03\x01\x02\x00\x01\x00\x01"])
def test_other_protocols_are_closed(wire: Callable[[], WireClient], header: bytes) -> None:
    client = wire()
    client.send(header)
    # Linger 0 makes RabbitMQ's eight bytes vanish in the reset at times.
    assert client.wait_closed() in (b"", PROTOCOL_HEADER)


@pytest.mark.slow
def test_a_silent_handshake_ends_after_ten_seconds(wire: Callable[[], WireClient]) -> None:
    client = wire()
    client.send(b"AMQP")
    began = time.monotonic()
    assert client.wait_closed(timeout_s=14) == b""
    assert 8 < time.monotonic() - began < 13


def test_refused_login_with_the_capability_sends_403_then_closes_after_three_seconds(
    wire: Callable[[], WireClient],
) -> None:
    client = wire()
    client.start()
    client.login(b"\0guest\0wrong", capabilities={"authentication_failure_close": True})
    closing = client.expect(spec.Connection.Close)
    assert (closing.reply_code, closing.class_id, closing.method_id) == (403, 0, 0)
    assert closing.reply_text == REFUSED.format("PLAIN")
    began = time.monotonic()
    client.wait_closed()
    assert 2 < time.monotonic() - began < 6


def test_refused_login_closes_at_once_on_close_ok(wire: Callable[[], WireClient]) -> None:
    client = wire()
    client.start()
    client.login(b"\0guest\0wrong", capabilities={"authentication_failure_close": True})
    client.expect(spec.Connection.Close)
    began = time.monotonic()
    client.send_method(0, spec.Connection.CloseOk())
    client.wait_closed()
    assert time.monotonic() - began < 2


def test_refused_logins_without_the_capability_are_silent_for_three_seconds(
    wire: Callable[[], WireClient],
) -> None:
    began = time.monotonic()
    clients = []
    for mechanism, response in (
        ("PLAIN", b"\0guest\0wrong"),
        ("PLAIN", b"\0nobody\0guest"),
        ("PLAIN", b"\0guest\0"),
        ("NONE", b""),
        ("PLAIN", b"no separators"),
        ("PLAIN", b"authzid\0guest\0guest"),
    ):
        clients.append(wire())
        clients[-1].start()
        clients[-1].login(response, mechanism=mechanism)
    for client in clients:
        assert client.wait_closed() == b""
        assert 2 < time.monotonic() - began < 6


def test_amqplain_logs_in(wire: Callable[[], WireClient]) -> None:
    client = wire()
    client.start()
    client.login(b"\x05LOGINS\0\0\0\x05guest\x08PASSWORDS\0\0\0\x05guest", mechanism="AMQPLAIN")
    client.expect(spec.Connection.Tune)


def test_tune_proposes_rabbitmqs_figures(wire: Callable[[], WireClient]) -> None:
    client = wire()
    client.start()
    client.login()
    tune = client.expect(spec.Connection.Tune)
    assert (tune.channel_max, tune.frame_max, tune.heartbeat) == (2047, 131072, 60)


def test_tune_ok_outside_the_limits_is_dropped(wire: Callable[[], WireClient]) -> None:
    clients = []
    for channel_max, frame_max in (
        (2047, 0),
        (2047, 100),
        (2047, 131073),
        (0, 131072),
        (2048, 131072),
    ):
        clients.append(wire())
        clients[-1].start()
        clients[-1].login()
        clients[-1].expect(spec.Connection.Tune)
        clients[-1].send_method(0, spec.Connection.TuneOk(channel_max, frame_max, 0))
        clients[-1].send_method(0, spec.Connection.Open(virtual_host="/"))
    for client in clients:
        left = client.wait_closed()
        assert left == b"" or b"negotiated" in left


@pytest.mark.parametrize(("channel_max", "frame_max"), [(1, 4096), (2047, 131072)])
def test_tune_ok_at_the_limits_is_taken(
    wire: Callable[[], WireClient], channel_max: int, frame_max: int
) -> None:
    wire().open(channel_max=channel_max, frame_max=frame_max).channel(1)


def test_unknown_vhost_is_530(wire: Callable[[], WireClient]) -> None:
    client = wire()
    client.start()
    client.login()
    client.expect(spec.Connection.Tune)
    client.send_method(0, spec.Connection.TuneOk(2047, 131072, 0))
    client.send_method(0, spec.Connection.Open(virtual_host="nowhere"))
    closing = client.expect(spec.Connection.Close)
    assert (closing.reply_code, closing.reply_text) == (
        530,
        "NOT_ALLOWED - vhost nowhere not found",
    )


def test_pika_reports_a_wrong_password(connect: Callable[..., BlockingConnection]) -> None:
    with pytest.raises(pika.exceptions.ProbableAuthenticationError):
        connect(credentials=pika.PlainCredentials("guest", "wrong"))


def test_start_ok_larger_than_4096_bytes_is_dropped_before_login(
    wire: Callable[[], WireClient],
) -> None:
    client = wire()
    client.start()
    try:
        client.login(b"\0guest\0" + b"x" * 5000)
        assert client.wait_closed() == b""
    except Closed:
        pass


def test_open_before_login_is_not_answered(wire: Callable[[], WireClient]) -> None:
    client = wire()
    client.start()
    client.send_method(0, spec.Connection.Open(virtual_host="/"))
    assert client.wait_closed() == b""


def test_channel_frame_before_open_is_not_answered(wire: Callable[[], WireClient]) -> None:
    client = wire()
    client.start()
    client.send_method(1, spec.Channel.Open())
    assert client.wait_closed() == b""


def test_heartbeat_before_open_is_accepted(wire: Callable[[], WireClient]) -> None:
    client = wire()
    client.start()
    client.login()
    client.expect(spec.Connection.Tune)
    client.send_method(0, spec.Connection.TuneOk(2047, 131072, 30))
    client.send(frame(8, 0, b""))
    client.send_method(0, spec.Connection.Open(virtual_host="/"))
    client.expect(spec.Connection.OpenOk)


def test_client_close_is_answered_with_close_ok(wire: Callable[[], WireClient]) -> None:
    client = wire().open()
    client.close()


@pytest.mark.slow
def test_heartbeats_are_sent_and_a_silent_peer_is_dropped(wire: Callable[[], WireClient]) -> None:
    client = wire().open(heartbeat=1)
    began = time.monotonic()
    left = client.wait_closed(timeout_s=10)
    # Two checks without a byte, one second apart; the phase of the timer adds up to one more.
    assert 1.5 < time.monotonic() - began < 5
    assert left.startswith(b"\x08\0\0\0\0\0\0\xce")


@pytest.mark.slow
def test_any_byte_keeps_the_connection_alive(wire: Callable[[], WireClient]) -> None:
    client = wire().open(heartbeat=1).channel(1)
    until = time.monotonic() + 5
    while time.monotonic() < until:
        client.send_method(1, spec.Basic.Qos(prefetch_count=1))
        client.expect(spec.Basic.QosOk)
        time.sleep(0.4)  # the pace is the test: faster than the heartbeat
    client.close()
