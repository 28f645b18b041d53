"""A virtual host of a test's own: looking without touching, snapshots, and what is made to go wrong.

Covers: embedded/vhost.py, embedded/snapshots.py, embedded/disk_faults.py, embedded/refusals.py
"""

from __future__ import annotations

import base64
import contextlib
import errno
import http.client
import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pika
import pytest

from burrowmq.embedded import Broker, BrokerError, VirtualHost, commands

PERSISTENT = pika.DeliveryMode.Persistent


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(clock="manual") as made:
        yield made


@pytest.fixture
def vhost(broker: Broker) -> Iterator[VirtualHost]:
    with broker.vhost("own") as made:
        yield made
        broker.heal()


@pytest.fixture
def channel(vhost: VirtualHost) -> Iterator[Any]:
    connection = pika.BlockingConnection(pika.URLParameters(vhost.url))
    channel = connection.channel()
    channel.confirm_delivery()
    yield channel
    with contextlib.suppress(pika.exceptions.AMQPError):  # the test may have broken it
        connection.close()


def publish(channel: Any, body: bytes, queue: str = "q", **properties: Any) -> None:
    properties.setdefault("delivery_mode", PERSISTENT)
    channel.basic_publish("", queue, body, pika.BasicProperties(**properties))


# -- looking ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["default", "lazy"])
def test_messages_are_shown_in_order_and_nothing_is_changed(
    vhost: VirtualHost, channel: Any, mode: str
) -> None:
    channel.queue_declare("q", durable=True, arguments={"x-queue-mode": mode})
    for number in range(50):
        publish(channel, b"%d" % number, content_type="text/plain", headers={"n": number})
    channel.basic_get("q")
    channel.basic_get("q")
    channel.basic_nack(2)  # back, as one that was delivered before
    for _ in range(2):
        seen = vhost.messages("q")
        assert [each.body for each in seen] == [b"%d" % number for number in range(50)]
        assert [each.unacked for each in seen[:3]] == [True, False, False]
        assert [each.redelivered for each in seen[:3]] == [True, True, False]
        assert seen[7].headers == {"n": 7}
        assert seen[7].properties == {"content_type": "text/plain", "delivery_mode": 2}
        assert (seen[7].exchange, seen[7].routing_key, seen[7].json()) == ("", "q", 7)
    assert channel.queue_declare("q", passive=True).method.message_count == 49
    method, _, body = channel.basic_get("q")
    assert (body, method.redelivered) == (b"1", True)


def test_priorities_come_as_they_are_served(vhost: VirtualHost, channel: Any) -> None:
    channel.queue_declare("q", durable=True, arguments={"x-max-priority": 3})
    for body, priority in ((b"low", 0), (b"high", 3), (b"middle", 1)):
        publish(channel, body, priority=priority)
    assert [each.body for each in vhost.messages("q")] == [b"high", b"middle", b"low"]


def test_a_large_queue_on_disk_is_read_in_pieces(vhost: VirtualHost, channel: Any) -> None:
    channel.queue_declare("q", durable=True, arguments={"x-queue-mode": "lazy"})
    body = bytes(100_000)
    for number in range(40):
        publish(channel, b"%02d" % number + body)
    assert [each.body[:2] for each in vhost.messages("q")] == [b"%02d" % n for n in range(40)]


def test_what_clients_published_is_remembered_by_exchange(vhost: VirtualHost, channel: Any) -> None:
    channel.exchange_declare("events", "topic")
    for key in ("a.b", "c"):
        channel.basic_publish("events", key, key.encode())
    channel.queue_declare("q", durable=True)
    publish(channel, b"to the queue")
    assert [(e.routing_key, e.body) for e in vhost.published("events")] == [
        ("a.b", b"a.b"),
        ("c", b"c"),
    ]
    assert [each.body for each in vhost.published("")] == [b"to the queue"]
    with pytest.raises(BrokerError, match="there is no exchange 'orders' in virtual host 'own'"):
        vhost.published("orders")


@pytest.mark.parametrize("mode", ["thread", pytest.param("process", marks=pytest.mark.slow)])
def test_what_was_published_is_remembered_over_a_restart_and_recorded_after_a_kill(
    mode: str,
) -> None:
    def publish_one(vhost: VirtualHost, body: bytes) -> None:
        with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
            own = connection.channel()
            own.confirm_delivery()
            own.basic_publish("amq.topic", "k", body)

    with Broker(mode=mode) as broker, broker.vhost("own") as vhost:
        publish_one(vhost, b"before")
        vhost.restart()
        publish_one(vhost, b"after")
        assert [each.body for each in vhost.published("amq.topic")] == [b"before", b"after"]
        broker.kill()
        broker.start()
        publish_one(vhost, b"later")
        assert [each.body for each in vhost.published("amq.topic")] == [b"later"]


def test_waiting_for_messages(vhost: VirtualHost, channel: Any) -> None:
    channel.queue_declare("q", durable=True)
    publish(channel, b"one")
    assert [each.body for each in vhost.wait_for("q", 1)] == [b"one"]
    with pytest.raises(AssertionError, match=r"queue 'q' has 1 messages after 0\.01 s, not 2"):
        vhost.wait_for("q", 2, timeout=0.01)
    with pytest.raises(AssertionError, match="there is no queue 'other' after 0 s"):
        vhost.wait_for("other", 1, timeout=0)
    for count in (-1, True, None, 1.5):
        with pytest.raises(BrokerError, match="give a number from 0 on"):
            vhost.wait_for("q", count)  # type: ignore[arg-type]
    for timeout in (-1, float("nan"), "1"):
        with pytest.raises(BrokerError, match="give seconds, 0 to 3600"):
            vhost.wait_for("q", 1, timeout)  # type: ignore[arg-type]


def test_what_is_not_there_is_said(broker: Broker, vhost: VirtualHost) -> None:
    with pytest.raises(BrokerError, match="there is no queue 'q' in virtual host 'own'"):
        vhost.messages("q")
    with pytest.raises(BrokerError, match="there is a virtual host 'own' already"):
        broker.vhost("own").make()
    gone = broker.vhost("gone")
    gone.delete()
    with pytest.raises(BrokerError, match="there is no virtual host 'gone'"):
        gone.messages("q")
    with pytest.raises(BrokerError, match="no name for a virtual host"):
        broker.vhost("").make()


# -- snapshots ----------------------------------------------------------------------------------------------------------


def test_a_virtual_host_is_put_back_as_it_was(
    broker: Broker, vhost: VirtualHost, channel: Any
) -> None:
    channel.exchange_declare("in", "topic", durable=True)
    channel.exchange_declare("deeper", "fanout")
    channel.exchange_bind("deeper", "in", "#")
    channel.queue_declare("q", durable=True, arguments={"x-message-ttl": 60_000})
    channel.queue_declare("soft", arguments={"x-max-priority": 2})
    channel.queue_bind("q", "deeper")
    channel.queue_declare("", exclusive=True)
    for number in range(5):
        channel.basic_publish("in", "k", b"%d" % number, pika.BasicProperties(delivery_mode=2))
    channel.basic_publish("", "soft", b"first", pika.BasicProperties(priority=2))
    channel.basic_publish("", "soft", b"last")
    channel.basic_get("q")  # one is out when the snapshot is taken
    taken = vhost.snapshot()
    broker.clock.advance(50)
    channel.queue_delete("soft")
    channel.queue_purge("q")
    channel.queue_declare("new")
    for _ in range(2):
        vhost.restore(taken)
        assert [each.body for each in vhost.messages("q")] == [b"%d" % n for n in range(5)]
        assert [each.body for each in vhost.messages("soft")] == [b"first", b"last"]
    with pytest.raises(BrokerError, match="no queue 'new'"):
        vhost.messages("new")
    with pytest.raises(pika.exceptions.AMQPError):
        channel.queue_declare("q", passive=True)  # its connection has ended
    with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
        connection.channel().basic_publish("in", "k", b"5")
        assert [each.body for each in vhost.wait_for("q", 6)][-1] == b"5"
    broker.clock.advance(59.999)  # they have the time that they had left when it was taken
    assert len(vhost.messages("q")) == 6
    broker.clock.advance(0.001)
    assert vhost.messages("q") == []


def test_bindings_to_exchanges_that_are_always_there_are_put_back_and_later_ones_are_not(
    vhost: VirtualHost, channel: Any
) -> None:
    channel.exchange_declare("in", "fanout")
    channel.exchange_bind("amq.fanout", "in")
    channel.queue_declare("q")
    channel.queue_bind("q", "amq.fanout")
    taken = vhost.snapshot()
    channel.exchange_unbind("amq.fanout", "in")
    channel.exchange_bind("amq.fanout", "amq.direct", "later")
    vhost.restore(taken)
    with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
        there = connection.channel()
        there.confirm_delivery()
        there.basic_publish("in", "", b"as it was")
        there.basic_publish("amq.direct", "later", b"bound later")
    assert [each.body for each in vhost.messages("q")] == [b"as it was"]


def test_a_snapshot_has_all_of_a_queue_or_is_refused(
    vhost: VirtualHost, channel: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    channel.queue_declare("q", durable=True)
    for number in range(4):
        publish(channel, b"%d" % number)
    monkeypatch.setattr(commands, "MESSAGES_MAX", 3)
    assert len(vhost.messages("q")) == 3
    assert len(vhost.snapshot().messages["q"]) == 4
    monkeypatch.setattr(commands, "SNAPSHOT_MAX", 3)
    with pytest.raises(BrokerError, match="queue 'q' has 4 messages: a snapshot keeps 3 of one"):
        vhost.snapshot()


@pytest.mark.slow
def test_each_message_is_shown_once_while_consumers_work(vhost: VirtualHost, channel: Any) -> None:
    """A lazy queue is read from the disk, with two levels: messages change hands meanwhile."""
    channel.queue_declare(
        "q", durable=True, arguments={"x-queue-mode": "lazy", "x-max-priority": 1}
    )
    plain = channel.connection.channel()
    bodies = [b"%04d" % number + bytes(6_000) for number in range(600)]
    for number, body in enumerate(bodies):
        properties = pika.BasicProperties(delivery_mode=2, priority=number % 2)
        plain.basic_publish("", "q", body, properties)
    vhost.wait_for("q", len(bodies))
    consumer = channel.connection.channel()
    consumer.basic_qos(prefetch_count=50)
    held: list[int] = []
    consumer.basic_consume("q", lambda _, method, __, ___: held.append(method.delivery_tag))
    with ThreadPoolExecutor(1) as looking:
        for _ in range(8):
            shown = looking.submit(vhost.messages, "q")
            while not shown.done():
                channel.connection.process_data_events(0)
                while len(held) > 40:
                    consumer.basic_nack(held.pop(0))
            seen = [each.body[:4] for each in shown.result()]
            assert sorted(seen) == [body[:4] for body in bodies]


def test_what_was_put_back_is_durable_as_it_was(vhost: VirtualHost, channel: Any) -> None:
    channel.queue_declare("q", durable=True)
    publish(channel, b"x" * 10_000)
    taken = vhost.snapshot()
    vhost.restore(taken)
    vhost.restart()
    assert [len(each.body) for each in vhost.messages("q")] == [10_000]


# -- faults -------------------------------------------------------------------------------------------------------------


def test_connections_of_this_virtual_host_break_and_no_others(
    broker: Broker, vhost: VirtualHost, channel: Any
) -> None:
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as other:
        assert vhost.drop_connections() == 1
        with pytest.raises(pika.exceptions.AMQPConnectionError):
            channel.connection.process_data_events(5)
        other.channel().queue_declare("still-there", auto_delete=True)
    assert vhost.drop_connections() == 0


@pytest.mark.parametrize("wrong", [None, "x", ()])
def test_what_is_no_snapshot_takes_nothing_away(
    vhost: VirtualHost, channel: Any, wrong: Any
) -> None:
    channel.queue_declare("q", durable=True)
    publish(channel, b"stays")
    with pytest.raises(TypeError, match=r"restore takes what snapshot\(\) gave, not "):
        vhost.restore(wrong)
    assert [each.body for each in vhost.messages("q")] == [b"stays"]
    assert vhost.drop_connections() == 1


def test_a_shovel_in_it_is_dropped_restored_and_deleted_with_it() -> None:
    with Broker(management=True) as broker:
        address = urlsplit(broker.management_url)

        def put(path: str, body: object) -> None:
            asked = http.client.HTTPConnection("127.0.0.1", address.port or 0, timeout=10)
            login = base64.b64encode(f"{broker.user}:{broker.password}".encode()).decode()
            headers = {"Authorization": f"Basic {login}"}
            asked.request("PUT", path, json.dumps(body), headers)
            assert asked.getresponse().status == 201
            asked.close()

        vhost = broker.vhost("own").make()
        put("/api/queues/own/a", {})
        ends = {"src-uri": "amqp:///own", "dest-uri": "amqp:///own"}
        value = {**ends, "src-queue": "a", "dest-queue": "b", "reconnect-delay": 0.01}
        put("/api/parameters/shovel/own/s", {"value": value})
        client = pika.BlockingConnection(pika.URLParameters(vhost.url))
        publish(client.channel(), b"moved", "a")
        assert [each.body for each in vhost.wait_for("b", 1)] == [b"moved"]
        vhost.wait_for(
            "a", 0
        )  # else the shovel moves it again: it acks once the other end has confirmed
        taken = vhost.snapshot()
        assert vhost.drop_connections() == 3
        vhost.restore(taken)
        assert [each.body for each in vhost.wait_for("b", 1)] == [b"moved"]
        vhost.delete()
        with pytest.raises(BrokerError, match="there is no virtual host"):
            vhost.messages("b")


def test_a_broker_that_is_short_of_memory_blocks_publishers(
    vhost: VirtualHost, channel: Any
) -> None:
    told: list[str] = []
    channel.connection.add_on_connection_blocked_callback(lambda *_: told.append("blocked"))
    channel.connection.add_on_connection_unblocked_callback(lambda *_: told.append("unblocked"))
    channel.queue_declare("q", durable=True)
    vhost.block()
    transient = pika.BasicProperties(delivery_mode=1)
    with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
        connection.add_on_connection_blocked_callback(lambda *_: told.append("blocked"))
        connection.channel().basic_publish("", "q", b"waits", transient)
        until = time.monotonic() + 5
        while "blocked" not in told and time.monotonic() < until:
            connection.process_data_events(0.01)
        assert told == ["blocked"]
        assert vhost.messages("q") == []
        vhost.heal()
        assert [each.body for each in vhost.wait_for("q", 1)] == [b"waits"]


def test_the_next_publishes_are_nacked_and_go_nowhere(vhost: VirtualHost, channel: Any) -> None:
    channel.queue_declare("q", durable=True)
    vhost.nack_next(2)
    for body in (b"a", b"b"):
        with pytest.raises(pika.exceptions.NackError):
            publish(channel, body)
    publish(channel, b"c")
    assert [each.body for each in vhost.messages("q")] == [b"c"]
    assert [each.body for each in vhost.published("")] == [b"c"]
    vhost.nack_next()
    vhost.heal()
    publish(channel, b"d")
    for count in (-1, True, "2"):
        with pytest.raises(BrokerError, match="give a number from 0 on"):
            vhost.nack_next(count)  # type: ignore[arg-type]


def test_a_connection_that_comes_later_is_refused_too_and_others_are_not(
    broker: Broker, vhost: VirtualHost
) -> None:
    vhost.nack_next()
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        other = connection.channel()
        other.confirm_delivery()
        other.queue_declare("o", auto_delete=True)
        other.basic_publish("", "o", b"fine")
    with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
        plain = connection.channel()
        plain.queue_declare("q")
        plain.basic_publish("", "q", b"nobody to answer")
        confirming = connection.channel()
        confirming.confirm_delivery()
        with pytest.raises(pika.exceptions.NackError):
            confirming.basic_publish("", "q", b"refused")
    assert [each.body for each in vhost.messages("q")] == [b"nobody to answer"]


def test_a_full_disk_holds_confirms_back_until_there_is_room(
    vhost: VirtualHost, channel: Any
) -> None:
    channel.queue_declare("q", durable=True)
    publish(channel, b"before")
    vhost.fail_disk(errno.ENOSPC)
    told: list[str] = []
    with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
        connection.add_on_connection_blocked_callback(
            lambda _, frame: told.append(frame.method.reason)
        )
        waiting = connection.channel()
        waiting.basic_publish("", "q", b"waits", pika.BasicProperties(delivery_mode=2))
        until = time.monotonic() + 5
        while not told and time.monotonic() < until:
            waiting.basic_publish("", "q", b"waits", pika.BasicProperties(delivery_mode=2))
            connection.process_data_events(0.01)
        assert told == ["low on disk"]
        vhost.heal()
        publish(channel, b"after")
    bodies = [each.body for each in vhost.messages("q")]
    assert (bodies[0], bodies.count(b"after")) == (b"before", 1)


def test_a_slow_disk_makes_confirms_late(vhost: VirtualHost, channel: Any) -> None:
    channel.queue_declare("q", durable=True)
    vhost.slow_disk(30)
    began = time.monotonic()
    publish(channel, b"x")
    assert time.monotonic() - began >= 0.03
    vhost.heal()
    for ms in (-1, "1", float("nan"), 10**9):
        with pytest.raises(BrokerError, match="give 0 to 60000"):
            vhost.slow_disk(ms)  # type: ignore[arg-type]


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_the_end_of_a_test_that_wanted_a_bad_disk_is_no_error(end: str) -> None:
    with Broker() as broker, broker.vhost("own") as vhost:
        channel = pika.BlockingConnection(pika.URLParameters(vhost.url)).channel()
        vhost.fail_disk(errno.EIO)
        with pytest.raises(pika.exceptions.AMQPError):
            channel.queue_declare("q", durable=True)
        if end == "kill":
            broker.kill()


def test_a_broken_disk_is_told_and_a_new_start_has_what_was_confirmed() -> None:
    with Broker() as broker, broker.vhost("own") as vhost:
        connection = pika.BlockingConnection(pika.URLParameters(vhost.url))
        channel = connection.channel()
        channel.confirm_delivery()
        channel.queue_declare("q", durable=True)
        publish(channel, b"confirmed")
        vhost.fail_disk(errno.EIO)
        with pytest.raises(pika.exceptions.AMQPError):
            publish(channel, b"refused")
        vhost.heal()  # the disk is well again, the store is not
        with pytest.raises(BrokerError, match="the broker's store has failed"):
            vhost.messages("q")
        broker.restart()
        assert [each.body for each in vhost.messages("q")] == [b"confirmed"]
        again = pika.BlockingConnection(pika.URLParameters(vhost.url)).channel()
        vhost.fail_disk(errno.EIO)
        with pytest.raises(pika.exceptions.AMQPError):
            again.queue_declare("other", durable=True)
        broker.kill()
        broker.start()
        assert [each.body for each in vhost.messages("q")] == [b"confirmed"]
        with pytest.raises(BrokerError, match="give ENOSPC, EDQUOT or EIO"):
            vhost.fail_disk(errno.EPERM)
