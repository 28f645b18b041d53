"""Quorum queues as pika meets them, on three real servers: used, and when a front-end or a server is killed."""

from __future__ import annotations

import json
import threading
import time

import pika
import pytest

from tests.support.broker_process import BrokerProcess
from tests.support.front_ends import Nodes, declare, numbers, publish, take
from tests.support.patience import patient


@pytest.mark.timeout(180)
def test_a_queue_is_used_and_its_messages_outlive_the_node(nodes: Nodes) -> None:
    node = nodes.start()
    channel = nodes.channel(node)
    declare(channel, "q")
    channel = nodes.channel(node)
    channel.confirm_delivery()
    publish(channel, "q", 50)
    assert declare(channel, "q") == 50
    assert channel.basic_get("q")[2] == b"0"  # unacknowledged from here on
    consumer = nodes.channel(node)
    consumer.basic_qos(prefetch_count=7)
    found = take(consumer, "q", 7)
    assert numbers(found) == list(range(1, 8))
    assert declare(channel, "q") == 42
    consumer.basic_ack(found[3][0].delivery_tag, multiple=True)
    consumer.basic_nack(found[4][0].delivery_tag, requeue=True)
    again = take(consumer, "q", 5)
    assert 5 in numbers(again)
    returned = next(each for each in again if each[2] == b"5")
    assert (returned[0].redelivered, returned[1].headers) == (True, {"x-delivery-count": 1})
    node.stop()
    node.start()
    channel = nodes.channel(node)
    declare(channel, "q")
    rest = take(channel, "q", 46)
    assert sorted(numbers(rest)) == [0, *range(5, 50)]
    channel.basic_ack(0, multiple=True)
    assert numbers(rest)[-30:] == list(range(20, 50))


@pytest.mark.timeout(180)
def test_dead_letters_limits_purge_and_delete(nodes: Nodes) -> None:
    node = nodes.start()
    channel = nodes.channel(node)
    declare(channel, "dead")
    channel = nodes.channel(node)
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    declare(channel, "q", **to_dead, **{"x-delivery-limit": 2})
    channel.confirm_delivery()
    publish(channel, "q", 2)
    method, _, body = channel.basic_get("q")
    channel.basic_reject(method.delivery_tag, requeue=False)
    undertaker = nodes.channel(node)
    _, properties, dead = take(undertaker, "dead", 1)[0]
    assert (dead, properties.headers["x-death"][0]["reason"]) == (body, "rejected")
    for count in range(3):
        method, properties, _ = next(channel.consume("q", inactivity_timeout=patient(30)))
        assert (properties.headers or {}).get("x-delivery-count", 0) == count
        channel.basic_nack(method.delivery_tag, requeue=True)
    _, properties, _ = take(undertaker, "dead", 1)[0]
    assert properties.headers["x-death"][0]["reason"] == "delivery_limit"
    channel.cancel()
    declare(channel, "full", **{"x-max-length": 3, "x-overflow": "reject-publish"})
    publish(channel, "full", 3)
    with pytest.raises(pika.exceptions.NackError):
        publish(channel, "full", 1)
    assert channel.queue_purge("full").method.message_count == 3
    assert declare(channel, "full", **{"x-max-length": 3, "x-overflow": "reject-publish"}) == 0
    publish(channel, "full", 2)
    assert channel.queue_delete("full").method.message_count == 2
    assert declare(channel, "full") == 0


@pytest.mark.timeout(180)
def test_a_front_end_that_is_killed_loses_nothing_and_nothing_acknowledged_comes_again(
    nodes: Nodes,
) -> None:
    one = nodes.start("one")
    channel = nodes.channel(one)
    declare(channel, "q")
    channel = nodes.channel(one)
    channel.confirm_delivery()
    publish(channel, "q", 200)
    consumer = nodes.channel(one)
    consumer.basic_qos(prefetch_count=100)
    held = take(consumer, "q", 100)
    consumer.basic_ack(held[39][0].delivery_tag, multiple=True)
    two = nodes.start("two")
    other = nodes.channel(two)
    assert declare(other, "q") >= 100
    time.sleep(0.5)  # acknowledgements have no answer
    one.kill()
    killed = time.monotonic()
    found = take(other, "q", 160)
    assert time.monotonic() - killed < patient(14)
    assert sorted(numbers(found)) == list(range(40, 200))
    other.basic_ack(0, multiple=True)


@pytest.mark.timeout(180)
def test_messages_expire_with_and_without_a_consumer(nodes: Nodes) -> None:
    node = nodes.start()
    channel = nodes.channel(node)
    declare(channel, "dead")
    channel = nodes.channel(node)
    to_dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    declare(channel, "q", **to_dead, **{"x-message-ttl": 2_000})
    began = time.monotonic()
    publish(channel, "q", 500)
    found = take(nodes.channel(node), "dead", 500)
    assert 1.9 < time.monotonic() - began < patient(20)
    assert numbers(found) == list(range(500))
    assert {each[1].headers["x-death"][0]["reason"] for each in found} == {"expired"}
    assert declare(channel, "q", **to_dead, **{"x-message-ttl": 2_000}) == 0
    declare(channel, "own")
    consumer = nodes.channel(node)
    consumer.basic_qos(prefetch_count=1)
    publish(channel, "own", 1)
    held = take(consumer, "own", 1)
    for number, expiration in ((1, "1000"), (2, None)):
        properties = pika.BasicProperties(delivery_mode=2, expiration=expiration)
        channel.basic_publish("", "own", b"%d" % number, properties)
    time.sleep(3.0)
    consumer.basic_ack(held[0][0].delivery_tag)
    assert numbers(take(consumer, "own", 1)) == [2]


def counted(process: BrokerProcess) -> str:
    """What an operator of this node sees."""
    return process.ctl("list_queues", "--quiet", "--no-table-headers", "name", "messages").strip()


@pytest.mark.timeout(180)
def test_an_operator_sees_what_other_front_ends_do(nodes: Nodes) -> None:
    busy, idle = nodes.start("busy"), nodes.start("idle")
    for node in (busy, idle):
        declare(nodes.channel(node), "q")
    channel = nodes.channel(busy)
    channel.confirm_delivery()
    for step, expected in (
        (lambda: publish(channel, "q", 30), "q\t30"),
        (lambda: channel.queue_purge("q"), "q\t0"),
    ):
        step()
        until = time.monotonic() + patient(8)
        while counted(idle) != expected and time.monotonic() < until:
            time.sleep(0.2)
        assert counted(idle) == expected
    row = json.loads(idle.ctl("list_queues", "leader", "members", "online", "--formatter", "json"))[
        0
    ]
    assert (row["members"], row["online"]) == (["n1", "n2", "n3"], ["n1", "n2", "n3"])
    assert row["leader"] in row["members"]


@pytest.mark.timeout(240)
def test_a_server_that_is_killed_costs_no_confirmed_message(nodes: Nodes) -> None:
    node = nodes.start()
    channel = nodes.channel(node)
    declare(channel, "q")
    confirmed: list[int] = []
    stop = threading.Event()

    def work() -> None:
        own = pika.BlockingConnection(pika.URLParameters(node.url))
        with own:
            publisher = own.channel()
            publisher.confirm_delivery()
            number = 0
            while not stop.is_set():
                publish(publisher, "q", 1, number)
                confirmed.append(number)
                number += 1

    thread = threading.Thread(target=work)
    thread.start()
    try:
        for server in nodes.cluster.servers:  # one of them leads the stream
            time.sleep(1.0)
            before = len(confirmed)
            server.kill()
            deadline = time.monotonic() + patient(30)
            while len(confirmed) < before + 20 and time.monotonic() < deadline:
                time.sleep(0.1)
            assert len(confirmed) >= before + 20, "it goes on with two"
            server.start()
            time.sleep(3.0)
    finally:
        stop.set()
        thread.join()
    found = numbers(take(nodes.channel(node), "q", len(confirmed)))
    assert found == confirmed
