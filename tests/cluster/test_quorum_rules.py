"""What arguments ask of a quorum queue, on three real servers and from two front-ends: time to live, limits, one consumer."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Callable
from typing import Any

import pika
import pytest
from pika.exceptions import AMQPError, ChannelClosedByBroker

from tests.support.broker_process import BrokerProcess
from tests.support.front_ends import Nodes, declare, numbers, publish, take
from tests.support.patience import patient


@pytest.mark.timeout(180)
def test_a_queue_that_no_front_end_uses_expires_at_all_of_them(nodes: Nodes) -> None:
    one, two = (nodes.channel(nodes.start(name)) for name in ("one", "two"))
    for channel in (one, two):
        declare(channel, "q", **{"x-expires": 3_000})
    one, two = (nodes.channel(process) for process in nodes.processes)
    publish(one, "q", 5)
    tag = two.basic_consume("q", lambda *_: None)
    two.connection.process_data_events(0.1)
    until = time.monotonic() + 9
    while time.monotonic() < until:
        one.connection.process_data_events(0.2)
    tags = [
        row
        for row in nodes.processes[0].ctl("list_queues", "name", "--quiet").split()
        if row == "q"
    ]
    assert tags == ["q"]
    two.basic_cancel(tag)
    until = time.monotonic() + patient(60)
    names = ["q"]
    while names and time.monotonic() < until:
        time.sleep(0.5)
        names = [
            each.ctl("list_queues", "name", "--quiet", "--no-table-headers").strip()
            for each in nodes.processes
        ]
        names = [name for name in names if name]
    assert not names
    with pytest.raises(ChannelClosedByBroker, match="no queue 'q'"):
        one.queue_declare("q", passive=True)
    one = nodes.channel(nodes.processes[0])
    assert declare(one, "q") == 0  # the messages went with it


class Taking:
    """A consumer in a thread of its own; what it is given it keeps in `found`, and acknowledges until `hold`."""

    def __init__(self, process: BrokerProcess, name: str, prefetch: int = 10) -> None:
        self.found: list[int] = []
        self.is_holding = False
        self._url, self._name, self._prefetch = process.url, name, prefetch
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work)
        self._thread.start()

    def _work(self) -> None:
        with (
            contextlib.suppress(AMQPError, OSError),
            pika.BlockingConnection(pika.URLParameters(self._url)) as connection,
        ):
            channel = connection.channel()
            channel.basic_qos(prefetch_count=self._prefetch)
            channel.basic_consume(self._name, self._take)
            while not self._stop.is_set():
                connection.process_data_events(0.05)

    def _take(self, channel: Any, method: Any, _: Any, body: bytes) -> None:
        self.found.append(int(body))
        if not self.is_holding:
            channel.basic_ack(method.delivery_tag)

    def stop(self) -> None:
        self._stop.set()
        self._thread.join()


def wait_for(what: Callable[[], bool], seconds: float) -> None:
    until = time.monotonic() + patient(seconds)
    while not what() and time.monotonic() < until:
        time.sleep(0.05)
    assert what()


@pytest.mark.timeout(240)
def test_one_consumer_of_both_front_ends_is_served_and_the_next_one_in_order(nodes: Nodes) -> None:
    single = {"x-single-active-consumer": True}
    one, two = nodes.start("one"), nodes.start("two")
    for process in (one, two):
        declare(nodes.channel(process), "q", **single)
    channel = nodes.channel(two)
    channel.confirm_delivery()
    takers = [Taking(one, "q")]
    try:
        publish(channel, "q", 20)
        wait_for(lambda: len(takers[0].found) == 20, 20)
        takers.append(Taking(two, "q"))
        takers[0].is_holding = True
        publish(channel, "q", 30, 20)
        time.sleep(20.0)  # no credit for long: it stays the one
        assert (takers[0].found, takers[1].found) == (list(range(30)), [])
        takers[0].stop()  # its ten come back before what is new
        wait_for(lambda: len(takers[1].found) == 30, 20)
        assert takers[1].found == list(range(20, 50))
        takers.append(Taking(one, "q"))
        takers[1].is_holding = True
        publish(channel, "q", 5, 50)
        wait_for(lambda: len(takers[1].found) == 35, 20)
        two.kill()
        killed = time.monotonic()
        wait_for(lambda: len(takers[2].found) == 5, 20)
        print(f"the next one after {time.monotonic() - killed:.1f} s")
        assert takers[2].found == list(range(50, 55))
        channel = nodes.channel(one)
        publish(channel, "q", 5, 55)
        wait_for(lambda: len(takers[2].found) == 10, 20)
        assert takers[2].found == list(range(50, 60))
        with pytest.raises(ChannelClosedByBroker, match=r"basic\.get operations are not supported"):
            channel.basic_get("q")
    finally:
        for taker in takers:
            taker.stop()


@pytest.mark.timeout(240)
def test_a_queue_keeps_to_its_length_whoever_publishes(nodes: Nodes) -> None:
    one, two = nodes.start("one"), nodes.start("two")
    limits = {"x-max-length": 20, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    channels = []
    declare(nodes.channel(one), "dead")
    declare(nodes.channel(two), "dead")
    for process in (one, two):
        declare(nodes.channel(process), "q", **limits)
        channels.append(nodes.channel(process))
        channels[-1].confirm_delivery()
    for number in range(0, 400, 20):
        publish(channels[number // 20 % 2], "q", 20, number)
    counts, number = [0, 0], 400
    until = time.monotonic() + patient(60)
    while counts != [20, 20] and time.monotonic() < until:
        publish(channels[0], "q", 1, number)  # both have dropped: more may be left until this
        number += 1
        time.sleep(0.5)
        counts = [declare(channel, "q", **limits) for channel in channels]
    assert counts == [20, 20]
    dead = numbers(take(nodes.channel(one), "dead", number - 20))
    assert sorted(dead) == list(range(number - 20))
    left = take(nodes.channel(two), "q", 20)
    assert sorted(numbers(left)) == list(range(number - 20, number))
    one.ctl("set_policy", "p", "^r$", '{"max-length": 3, "overflow": "reject-publish"}')
    declare(nodes.channel(one), "r")
    channel = nodes.channel(one)
    channel.confirm_delivery()
    publish(channel, "r", 3)
    with pytest.raises(pika.exceptions.NackError):
        publish(channel, "r", 1, 3)
    one.ctl("set_policy", "p", "^r$", '{"max-length-bytes": 3000, "overflow": "drop-head"}')
    for number in range(30):
        channel.basic_publish("", "r", b"%d" % number + b" " * 900)
    wait_for(lambda: 0 < declare(channel, "r") <= 3, 20)
    assert numbers(take(nodes.channel(one), "r", 1))[0] >= 27


@pytest.mark.timeout(240)
def test_dead_letters_at_least_once_outlive_the_front_end_that_could_not_store_them(
    nodes: Nodes,
) -> None:
    one = nodes.start("one")
    room = {"x-max-length": 2, "x-overflow": "reject-publish"}
    sure = {
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "dead",
        "x-dead-letter-strategy": "at-least-once",
        "x-overflow": "reject-publish",
    }
    declare(nodes.channel(one), "dead", **room)
    declare(nodes.channel(one), "q", **sure)
    channel = nodes.channel(one)
    channel.confirm_delivery()
    publish(channel, "q", 6)
    consumer = nodes.channel(one)
    taken = take(consumer, "q", 6)
    consumer.basic_nack(taken[-1][0].delivery_tag, multiple=True, requeue=False)
    wait_for(lambda: declare(channel, "dead", **room) == 2, 20)
    time.sleep(1.0)
    one.kill()
    one.start()
    channel = nodes.channel(one)
    first = take(channel, "dead", 2)
    channel.basic_ack(first[-1][0].delivery_tag, multiple=True)
    channel.cancel()
    undertaker = nodes.channel(one)
    again = take(undertaker, "q", 4)  # they come back 10 s later, as if nobody had rejected them
    assert sorted(numbers(first) + numbers(again)) == list(range(6))
    undertaker.basic_nack(again[-1][0].delivery_tag, multiple=True, requeue=False)
    taker = Taking(one, "dead")
    try:
        wait_for(lambda: len(taker.found) == 4, 30)
    finally:
        taker.stop()
    assert sorted(taker.found) == sorted(numbers(again))
    undertaker.cancel()
    assert declare(nodes.channel(one), "q", **sure) == 0
