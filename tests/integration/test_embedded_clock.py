"""The clock of an embedded broker: what has a deadline happens when it is moved there, in order, and not before.

Covers: embedded/clock.py, embedded/base.py, embedded/hosted_node.py, broker/node/advance.py
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from datetime import timedelta
from typing import Any

import pika
import pytest

from burrowmq.embedded import Broker, BrokerError
from burrowmq.management import messages

DAY_S = 86_400
PERSISTENT = pika.DeliveryMode.Persistent


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(clock="manual") as made:
        yield made


@pytest.fixture
def channel(broker: Broker) -> Iterator[Any]:
    """A channel in which no queue of an earlier test is left: each expires after a year."""
    broker.clock.advance(366 * DAY_S)
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        yield connection.channel()


def declare(channel: Any, name: str, durable: bool = True, **arguments: object) -> None:
    named = {f"x-{key.replace('_', '-')}": value for key, value in arguments.items()}
    channel.queue_declare(
        name, durable=durable, arguments={"x-expires": 365 * DAY_S * 1000, **named}
    )


def count(channel: Any, name: str) -> int:
    return int(channel.queue_declare(name, passive=True).method.message_count)


def publish(channel: Any, queue: str, body: bytes = b"x", expiration: str | None = None) -> None:
    channel.confirm_delivery()
    properties = pika.BasicProperties(delivery_mode=PERSISTENT, expiration=expiration)
    channel.basic_publish("", queue, body, properties)


def exists(broker: Broker, name: str) -> bool:
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        try:
            connection.channel().queue_declare(name, passive=True)
        except pika.exceptions.ChannelClosedByBroker:
            return False
    return True


def test_a_message_expires_when_the_clock_was_moved_so_far_to_the_millisecond(
    broker: Broker, channel: Any
) -> None:
    declare(channel, "q", message_ttl=60_000)
    publish(channel, "q")
    publish(channel, "q", expiration="1000")  # behind the first: it waits for it
    broker.clock.advance(59.999)
    assert count(channel, "q") == 2
    broker.clock.advance(0.001)
    assert count(channel, "q") == 0


def test_it_stands_still(broker: Broker, channel: Any) -> None:
    declare(channel, "q", message_ttl=1)
    publish(channel, "q")
    before, until = broker.clock.now(), time.monotonic() + 0.02
    while time.monotonic() < until:
        channel.connection.process_data_events(0.005)
    assert count(channel, "q") == 1
    assert broker.clock.now() == before


def test_one_move_goes_through_every_queue_of_a_chain_at_the_times_at_which_it_would(
    broker: Broker, channel: Any
) -> None:
    """a, for 10 s, then b, for 20 s, then c, which keeps it for 30: there 35 s after it was published."""
    for name, ttl_s, after in (("a", 10, "b"), ("b", 20, "c")):
        declare(
            channel,
            name,
            message_ttl=ttl_s * 1000,
            dead_letter_exchange="",
            dead_letter_routing_key=after,
        )
    declare(channel, "c", message_ttl=30_000)
    publish(channel, "a")
    began = broker.clock.now()
    broker.clock.advance(35)
    assert [count(channel, name) for name in "abc"] == [0, 0, 1]
    _, properties, _ = channel.basic_get("c")
    channel.basic_nack(1)  # back to its place, with the deadline that it has
    deaths = {each["queue"]: each["time"] for each in properties.headers["x-death"]}
    for queue, after_s in (("a", 10), ("b", 30)):
        died = deaths[queue].timestamp() if hasattr(deaths[queue], "timestamp") else deaths[queue]
        assert abs(died - (began + timedelta(seconds=after_s)).timestamp()) <= 1
    broker.clock.advance(24.999)
    assert count(channel, "c") == 1
    broker.clock.advance(0.001)
    assert count(channel, "c") == 0


def test_heads_that_lie_on_disk_expire_at_their_own_time_too(broker: Broker, channel: Any) -> None:
    declare(
        channel, "q", queue_mode="lazy", dead_letter_exchange="", dead_letter_routing_key="dead"
    )
    declare(channel, "dead")
    for at_s in range(1, 41):
        publish(channel, "q", b"%d" % at_s, expiration=str(at_s * 1000))
    broker.clock.advance(20)
    assert (count(channel, "q"), count(channel, "dead")) == (20, 20)
    broker.clock.advance(100)
    assert (count(channel, "q"), count(channel, "dead")) == (0, 40)
    bodies = [channel.basic_get("dead", auto_ack=True)[2] for _ in range(40)]
    assert bodies == [b"%d" % at_s for at_s in range(1, 41)]


def test_a_queue_that_nobody_uses_ends_when_its_lease_does(broker: Broker, channel: Any) -> None:
    declare(channel, "leased", expires=5_000)
    broker.clock.advance(4.999)
    assert exists(broker, "leased")
    declare(channel, "leased", expires=5_000)  # begins anew
    broker.clock.advance(4.999)
    assert exists(broker, "leased")
    broker.clock.advance(5)
    assert not exists(broker, "leased")


def test_a_delivery_that_nobody_answers_times_out(broker: Broker, channel: Any) -> None:
    declare(channel, "q", consumer_timeout=1_800_000)
    publish(channel, "q")
    assert channel.basic_get("q")[0] is not None
    broker.clock.advance(1_800)
    channel.connection.process_data_events(0)
    assert channel.is_open
    broker.clock.advance(0.002)
    with pytest.raises(pika.exceptions.ChannelClosedByBroker, match="timed out"):
        channel.queue_declare("q", passive=True)
    other = channel.connection.channel()
    assert count(other, "q") == 1


@pytest.mark.parametrize("end", ["restart", "kill"])
def test_it_goes_on_after_the_end_of_the_broker_where_it_was(end: str) -> None:
    with Broker(clock="manual") as broker:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            channel = connection.channel()
            declare(channel, "q", message_ttl=60_000)
            publish(channel, "q")
        broker.clock.advance(30)
        before = broker.clock.now()
        if end == "restart":
            broker.restart()
        else:
            broker.kill()
            broker.start()
        assert broker.clock.now() == before
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            channel = connection.channel()
            broker.clock.advance(29.999)
            assert count(channel, "q") == 1
            broker.clock.advance(0.001)
            assert count(channel, "q") == 0


def test_heartbeats_go_by_the_real_clock(broker: Broker) -> None:
    parameters = pika.URLParameters(broker.url + "?heartbeat=60")
    with pika.BlockingConnection(parameters) as connection:
        channel = connection.channel()
        broker.clock.advance(3600)
        channel.exchange_declare("still-there", passive=False, auto_delete=True)


@pytest.mark.parametrize(
    "seconds", [-1, -0.001, float("nan"), float("inf"), "1", None, True, 101 * 365 * DAY_S]
)
def test_what_is_no_time_is_refused_and_moves_nothing(broker: Broker, seconds: Any) -> None:
    before = broker.clock.now()
    with pytest.raises(BrokerError, match="give seconds, 0 to 3153600000"):
        broker.clock.advance(seconds)
    assert broker.clock.now() == before


def test_the_machines_clock_is_not_to_be_moved() -> None:
    with Broker() as broker, pytest.raises(BrokerError, match="make it with clock='manual'"):
        broker.clock.advance(1)
    with pytest.raises(BrokerError, match="clock is 'fast': give 'real', or 'manual'"):
        Broker(clock="fast")


def test_a_broker_that_does_not_run_has_no_time_to_pass() -> None:
    broker = Broker(clock="manual")
    with pytest.raises(BrokerError, match="does not run"):
        broker.clock.advance(1)
    broker.stop()


@pytest.mark.slow
def test_a_thousand_queues_with_ttl_and_lease_over_a_month(broker: Broker, channel: Any) -> None:
    names = [f"month-{number}" for number in range(1_000)]
    for number, name in enumerate(names):
        declare(
            channel,
            name,
            durable=False,
            message_ttl=DAY_S * 1000 + number,
            expires=30 * DAY_S * 1000 + number,
        )
        channel.basic_publish("", name, b"x")
    broker.clock.advance(DAY_S + 0.499)
    assert [count(channel, names[at]) for at in (0, 499, 500, 999)] == [0, 0, 1, 1]
    channel.connection.close()
    began = time.monotonic()
    broker.clock.advance(31 * DAY_S)
    assert time.monotonic() - began < 2  # the figure that counts is measured elsewhere
    assert not any(exists(broker, name) for name in names[::111])


def test_what_came_in_the_same_turn_is_taken_in_before_time_passes() -> None:
    """Else it would have no deadline yet, and stay in the first queue until the end of the move."""

    async def main() -> list[int]:
        async with Broker.serve(clock="manual") as broker:
            node = broker._node
            assert node is not None
            vhost = node.running.vhosts["/"]

            def declare_all() -> None:
                with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
                    channel = connection.channel()
                    for name, after in (("a", "b"), ("b", "c")):
                        declare(
                            channel,
                            name,
                            queue_mode="lazy",
                            message_ttl=10_000,
                            dead_letter_exchange="",
                            dead_letter_routing_key=after,
                        )
                    declare(channel, "c")

            await asyncio.to_thread(declare_all)
            assert messages.hand_in(node.running, "/", "", "a", {"delivery_mode": 2}, b"x")
            await broker.clock.advance(25)  # nothing has been awaited in between
            return [vhost.queues[name].ready_count for name in "abc"]

    assert asyncio.run(main()) == [0, 0, 1]


def test_what_is_delivered_at_the_end_of_a_turn_was_delivered_before_time_passes() -> None:
    """Else it would be delivered at the end of the move, and its consumer would have had no time to answer."""

    async def main() -> list[tuple[int, int]]:
        async with Broker.serve(clock="manual") as broker:
            node = broker._node
            assert node is not None
            connection = await asyncio.to_thread(
                pika.BlockingConnection, pika.URLParameters(broker.url)
            )
            channel = await asyncio.to_thread(connection.channel)

            def begin() -> None:
                channel.queue_declare("q")
                channel.basic_qos(prefetch_count=1)
                channel.basic_consume("q", lambda *_: None)
                for body in (b"1", b"2"):
                    channel.basic_publish("", "q", body)
                channel.queue_declare("q", passive=True)

            await asyncio.to_thread(begin)
            await broker.clock.advance(1)  # nothing is left to do
            acked = asyncio.ensure_future(asyncio.to_thread(channel.basic_ack, 1))
            while node.running.scheduler.is_quiet:  # noqa: ASYNC110 - one step of the loop after the other
                await asyncio.sleep(0)
            queue, counts = node.running.vhosts["/"].queues["q"], []
            for seconds in (
                29 * 60,
                2 * 60,
            ):  # the first begins where the turn of the ack has not ended
                await broker.clock.advance(seconds)
                counts.append((queue.ready_count, queue.unacked_count))
            await acked
            await asyncio.to_thread(connection.close)
            return counts

    assert asyncio.run(main()) == [(0, 1), (1, 0)]
