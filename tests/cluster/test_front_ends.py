"""Several front-ends with one set of definitions, on real servers."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import (
    AMQPError,
    ChannelClosedByBroker,
    ConnectionClosedByBroker,
    UnroutableError,
)

from tests.support.broker_process import BrokerProcess
from tests.support.front_ends import PERSISTENT, QUORUM, Nodes, declare, take
from tests.support.patience import patient


def eventually(holds: Callable[[], bool], seconds: float = 20.0) -> None:
    deadline = time.monotonic() + patient(seconds)
    while not holds():
        assert time.monotonic() < deadline
        time.sleep(0.05)


def has_exchange(nodes: Nodes, process: BrokerProcess, name: str) -> bool:
    channel = nodes.channel(process)
    try:
        channel.exchange_declare(name, passive=True)
    except ChannelClosedByBroker:
        return False
    finally:
        channel.connection.close()
    return True


def declare_all(channel: BlockingChannel) -> BlockingChannel:
    """An exchange, a queue, and what leads from the one to the other."""
    declare(channel, "q")
    channel = channel.connection.channel()
    channel.exchange_declare("x", "topic", durable=True)
    channel.queue_bind("q", "x", "k.#")
    return channel


@pytest.mark.timeout(180)
def test_what_one_front_end_declares_works_at_another_and_after_restarts(nodes: Nodes) -> None:
    one, two = nodes.start("one"), nodes.start("two")
    declare_all(nodes.channel(one))
    eventually(lambda: has_exchange(nodes, two, "x"))
    channel = nodes.channel(two)
    channel.confirm_delivery()
    channel.basic_publish("x", "k.1", b"1", PERSISTENT, mandatory=True)
    ((_, _, body),) = take(nodes.channel(one), "q", 1)
    assert body == b"1"

    two.stop()
    two.start()
    channel = nodes.channel(two)
    channel.confirm_delivery()
    channel.basic_publish("x", "k.2", b"2", PERSISTENT, mandatory=True)

    for server in nodes.cluster.servers:
        server.kill()
    two.stop()
    two.start()
    eventually(lambda: has_exchange(nodes, two, "x"))
    channel = nodes.channel(two)
    with pytest.raises(ConnectionClosedByBroker) as refused:
        channel.exchange_declare("y", durable=True)
    assert refused.value.reply_code == 541
    channel = nodes.channel(two)
    channel.queue_declare("classic", durable=True)
    channel.basic_publish("", "classic", b"3", PERSISTENT)
    ((_, _, body),) = take(channel, "classic", 1)
    assert body == b"3"


def names_at(process: BrokerProcess, kind: str) -> set[str]:
    return set(process.ctl(f"list_{kind}s", "name", "-q", "--no-table-headers").split())


def declare_until_killed(nodes: Nodes, process: BrokerProcess, prefix: str) -> tuple[int, int, int]:
    """How many exchanges, queues and bindings were answered for, at a front-end that somebody kills meanwhile."""
    counts = [0, 0, 0]
    try:
        channel = nodes.channel(process)
        for number in range(10_000):
            channel.exchange_declare(f"{prefix}x{number}", "topic", durable=True)
            counts[0] += 1
            if not number % 10:
                channel.queue_declare(f"{prefix}q{number}", durable=True, arguments=QUORUM)
                counts[1] += 1
            channel.exchange_bind(f"{prefix}x{number}", f"{prefix}x0", "k")
            counts[2] += 1
    except AMQPError:
        pass
    return counts[0], counts[1], counts[2]


@pytest.mark.timeout(300)
def test_nothing_that_was_answered_is_gone_when_a_front_end_is_killed_in_the_middle(
    nodes: Nodes,
) -> None:
    one, two = nodes.start("one"), nodes.start("two")
    declare(nodes.channel(one), "first")
    answered = {"exchange": set[str](), "queue": {"first"}}
    binding_count = 0
    for number in range(5):
        prefix = f"r{number}."
        killer = threading.Timer(0.5 + 0.37 * number, one.kill)
        killer.start()
        exchanges, queues, bindings = declare_until_killed(nodes, one, prefix)
        killer.join()
        assert exchanges, "something was declared"
        answered["exchange"] |= {f"{prefix}x{each}" for each in range(exchanges)}
        answered["queue"] |= {f"{prefix}q{10 * each}" for each in range(queues)}
        binding_count += bindings
        one.start()
    for process in (one, two):
        eventually(lambda each=process: answered["exchange"] <= names_at(each, "exchange"))
        assert answered["queue"] <= names_at(process, "queue")
        rows = process.ctl("list_bindings", "destination_kind", "-q", "--no-table-headers")
        assert rows.split().count("exchange") >= binding_count
    for kind in ("exchange", "queue"):
        assert names_at(one, kind) == names_at(two, kind)


@pytest.mark.timeout(180)
def test_of_two_that_declare_a_name_differently_at_once_one_is_refused(nodes: Nodes) -> None:
    processes = [nodes.start("one"), nodes.start("two")]
    for process in processes:
        declare(nodes.channel(process), "first")
    for number in range(20):
        channels = [nodes.channel(process) for process in processes]
        assert declared_at_once(channels, f"x{number}") == [0, 406]
    rows = [process.ctl("list_exchanges", "name", "type") for process in processes]
    assert sorted(rows[0].splitlines()) == sorted(rows[1].splitlines())


def declared_at_once(channels: list[BlockingChannel], name: str) -> list[int]:
    """What each is told who declares it as a type of its own; 0 for declare-ok."""
    told: list[int] = []

    def ask(channel: BlockingChannel, kind: str) -> None:
        try:
            channel.exchange_declare(name, kind, durable=True)
            told.append(0)
        except ChannelClosedByBroker as refused:
            told.append(refused.reply_code)

    pairs = zip(channels, ("topic", "fanout"), strict=True)
    threads = [threading.Thread(target=ask, args=pair) for pair in pairs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return sorted(told)


def served(nodes: Nodes, process: BrokerProcess, count: int) -> threading.Thread:
    """Answers so many requests from the queue `rpc`."""
    channel = nodes.channel(process)

    def answer() -> None:
        for method, properties, body in channel.consume("rpc", inactivity_timeout=patient(30)):
            assert method is not None, "a request comes"
            channel.basic_publish("", properties.reply_to, body.upper())
            channel.basic_ack(method.delivery_tag)
            if method.delivery_tag == count:
                return

    thread = threading.Thread(target=answer)
    thread.start()
    return thread


@pytest.mark.timeout(180)
@pytest.mark.parametrize("way", ["queue", "direct"])
def test_replies_reach_a_queue_at_another_front_end(nodes: Nodes, way: str) -> None:
    one, two = nodes.start("one"), nodes.start("two")
    channel = nodes.channel(one)
    declare(channel, "rpc")
    channel = channel.connection.channel()
    eventually(lambda: "rpc" in names_at(two, "queue"))
    if way == "queue":
        reply_to = channel.queue_declare("", exclusive=True).method.queue
    else:
        reply_to = "amq.rabbitmq.reply-to"
    found: list[bytes] = []

    def on_reply(_channel: object, _method: object, _properties: object, body: bytes) -> None:
        found.append(body)

    channel.basic_consume(reply_to, on_reply, auto_ack=True)
    thread = served(nodes, two, 50)
    for number in range(50):
        asking = pika.BasicProperties(reply_to=reply_to)
        channel.basic_publish("", "rpc", b"a%d" % number, asking)
        until = time.monotonic() + patient(20)
        while len(found) <= number and time.monotonic() < until:
            channel.connection.process_data_events(time_limit=0.2)
    thread.join()
    assert found == [b"A%d" % number for number in range(50)]


@pytest.mark.timeout(180)
def test_a_classic_queue_takes_from_anywhere_and_is_consumed_at_its_home(nodes: Nodes) -> None:
    one, two = nodes.start("one"), nodes.start("two")
    declare(nodes.channel(one), "first")
    nodes.channel(one).queue_declare("classic", durable=True)
    channel = nodes.channel(two)
    channel.confirm_delivery()
    took_s = []
    for number in range(50):
        began = time.monotonic()
        channel.basic_publish("", "classic", b"%d" % number, mandatory=True)
        took_s.append(time.monotonic() - began)
    print(f"forwarded and confirmed, not persistent: median {sorted(took_s)[25] * 1000:.2f} ms")
    assert len(take(nodes.channel(one), "classic", 50)) == 50
    with pytest.raises(ChannelClosedByBroker) as refused:
        next(channel.consume("classic"))
    assert refused.value.reply_code == 404
    assert "home node" in refused.value.reply_text

    one.kill()
    deadline = time.monotonic() + patient(20)
    while time.monotonic() < deadline:
        channel = nodes.channel(two)
        try:
            channel.queue_declare("classic", durable=True)
        except ChannelClosedByBroker:
            time.sleep(0.2)
        else:
            return
    raise AssertionError("the name is free once its home is gone")


@pytest.mark.timeout(180)
def test_publishes_and_dead_letters_reach_what_is_bound_at_another_front_end(nodes: Nodes) -> None:
    one, two = nodes.start("one"), nodes.start("two")
    declare_all(nodes.channel(one))
    eventually(lambda: has_exchange(nodes, two, "x"))
    home = nodes.channel(one)
    home.queue_declare("classic", durable=True)
    home.queue_bind("classic", "x", "k.classic")
    exclusive = home.queue_declare("", exclusive=True).method.queue
    home.queue_bind(exclusive, "x", "k.#")
    channel = nodes.channel(two)
    dead = {"x-dead-letter-exchange": "x", "x-dead-letter-routing-key": "k.dead"}
    channel.queue_declare("work", durable=True, arguments=dead | {"x-max-length": 1})
    channel.confirm_delivery()
    for number in range(50):
        channel.basic_publish("x", "k.classic", b"%d" % number, PERSISTENT, mandatory=True)
    for number in range(50, 53):
        channel.basic_publish("", "work", b"%d" % number, PERSISTENT)
    bodies = [b"%d" % number for number in range(52)]
    for queue, count in (("classic", 50), (exclusive, 52), ("q", 52)):
        found = [
            body for _, _, body in take(nodes.channel(one) if queue == "q" else home, queue, count)
        ]
        assert found == bodies[:count]
        home.cancel()

    one.stop()
    nodes.channel(two).queue_unbind("q", "x", "k.#")
    eventually(lambda: not is_routed(nodes, two, "k.classic"))
    one.start()
    eventually(lambda: is_routed(nodes, two, "k.classic"))


def is_routed(nodes: Nodes, process: BrokerProcess, key: str) -> bool:
    """Whether a publish there reaches any queue."""
    channel = nodes.channel(process)
    channel.confirm_delivery()
    try:
        channel.basic_publish("x", key, b"", PERSISTENT, mandatory=True)
    except UnroutableError:
        return False
    finally:
        channel.connection.close()
    return True
