"""The HTTP API, burrowctl and Prometheus on a real broker process with real clients."""

from __future__ import annotations

import json
import os
import urllib.request
from collections.abc import Callable

import pika
import pytest

from tests.management.real_node import api, connect, ctl
from tests.support.black_box import eventually
from tests.support.broker_process import BrokerProcess

PERSISTENT = pika.BasicProperties(delivery_mode=2, headers={"k": 1})

pytestmark = [pytest.mark.slow, pytest.mark.needs_server]


def test_lists_follow_real_queues(own_broker: Callable[..., BrokerProcess]) -> None:
    node = own_broker()
    assert ctl(node, "await_startup", "-t", "5").returncode == 0
    connection = connect(node)
    channel = connection.channel()
    channel.confirm_delivery()
    channel.queue_declare("lazy", durable=True, arguments={"x-queue-mode": "lazy"})
    for _ in range(50):
        channel.basic_publish("", "lazy", b"x" * 1000, PERSISTENT)
    columns = (
        "name arguments messages_ram message_bytes_ram messages_persistent message_bytes_persistent"
    )
    done = ctl(node, "-s", "list_queues", *columns.split())
    assert done.stdout == 'lazy\t[{"x-queue-mode","lazy"}]\t0\t0\t50\t50000\n'
    (memory,) = ctl(node, "-s", "list_queues", "memory").stdout.split()
    assert 0 < int(memory) <= 159_000
    page = urllib.request.urlopen(f"http://127.0.0.1:{node.prometheus_port}/metrics", timeout=10)
    with page:
        assert b"\nrabbitmq_queue_messages_ready 50.0\n" in page.read()
    for name in (
        "list_connections",
        "list_channels",
        "list_bindings",
        "list_exchanges",
        "list_users",
        "status",
    ):
        assert ctl(node, name).returncode == 0, name
    assert ctl(node, "check_port_connectivity").returncode == 0
    assert (
        "Closed 1 connections"
        in ctl(node, "close_all_connections", "--global", "maintenance").stdout
    )
    with pytest.raises(
        pika.exceptions.ConnectionClosedByBroker, match=r"320, .CONNECTION_FORCED - maintenance"
    ):
        connection.process_data_events(5)
    assert ctl(node, "shutdown").returncode == 0
    assert not node.is_alive


def test_messages_in_and_out(own_broker: Callable[..., BrokerProcess]) -> None:
    node = own_broker()
    assert api(node, "PUT", "/api/queues/%2F/q", {"durable": True}).status == 201
    body = {
        "properties": {"delivery_mode": 2},
        "routing_key": "q",
        "payload": "hello",
        "payload_encoding": "string",
    }
    assert api(node, "POST", "/api/exchanges/%2F/amq.default/publish", body).body == {
        "routed": True
    }
    wanted = {"count": 5, "ackmode": "ack_requeue_true", "encoding": "auto"}
    (message,) = api(node, "POST", "/api/queues/%2F/q/get", wanted).body
    assert (message["payload"], message["redelivered"]) == ("hello", False)
    (message,) = api(
        node, "POST", "/api/queues/%2F/q/get", {**wanted, "ackmode": "ack_requeue_false"}
    ).body
    assert message["redelivered"] is True
    assert api(node, "POST", "/api/queues/%2F/q/get", wanted).body == []
    assert api(node, "GET", "/api/aliveness-test/%2F").body == {"status": "ok"}


def test_what_was_answered_survives_a_kill(own_broker: Callable[..., BrokerProcess]) -> None:
    node = own_broker()
    assert ctl(node, "add_user", "bob", "pw").returncode == 0
    assert ctl(node, "set_permissions", "bob", "^a", ".*", "").returncode == 0
    assert ctl(node, "add_vhost", "v1").returncode == 0
    assert ctl(node, "add_vhost", "v2").returncode == 0
    assert ctl(node, "delete_vhost", "v2").returncode == 0
    node.kill()
    node.start()
    assert ctl(node, "authenticate_user", "bob", "pw").returncode == 0
    assert "bob\t^a\t.*\t\n" in ctl(node, "list_permissions").stdout
    assert ctl(node, "-s", "list_vhosts").stdout == "/\nv1\n"


def test_a_memory_alarm_fails_the_checks(own_broker: Callable[..., BrokerProcess]) -> None:
    node = own_broker(vm_memory_high_watermark__absolute="1MB")
    assert eventually(lambda: ctl(node, "check_local_alarms").returncode == 69)
    assert api(node, "GET", "/api/health/checks/alarms").status == 503
    status = json.loads(ctl(node, "status", "--formatter", "json").stdout)
    (alarm,) = status["alarms"]
    assert (alarm["node"], alarm["resource"]) == (status["node"], "memory")
    assert "the watermark is" in alarm["cause"]
    assert status["pid"] != os.getpid()
