"""What `cluster` says is what a real nats-server understands, and its answers are what they are taken for."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest
import uvloop

from bench.jetstream import FrontEnd, Refused
from bench.nats_servers import NatsCluster
from burrowmq.cluster import api
from burrowmq.cluster.record import pack, unpack
from burrowmq.cluster.tickets import Ticket
from burrowmq.cluster.window import NAME_MAX
from burrowmq.cluster.wire import Delivered
from burrowmq.protocol.codec import join_address
from burrowmq.protocol.properties import Properties, build

NAME, SUBJECT = "Q_1", "q.1"


def run(cluster: NatsCluster, scene: Callable[[FrontEnd], Awaitable[None]]) -> None:
    async def whole() -> None:
        front = FrontEnd([each.url for each in cluster.servers])
        try:
            async with asyncio.timeout(60):
                await front.start()
                await scene(front)
        finally:
            await front.close()

    uvloop.run(whole())


async def declare(front: FrontEnd, *, messages_max: int = -1, bytes_max: int = -1) -> None:
    settings = api.StreamSettings(
        name=NAME, subjects=(SUBJECT,), messages_max=messages_max, bytes_max=bytes_max
    )
    await front.ask(api.create_stream(settings))


async def publish(front: FrontEnd, payloads: list[bytes]) -> Ticket:
    done: asyncio.Future[Ticket] = asyncio.get_running_loop().create_future()
    window = front.open_window(SUBJECT.encode(), done.set_result)
    front.publish(window, payloads)
    return await done


class Taken:
    """What a consumer was given."""

    def __init__(self, front: FrontEnd, credit: int) -> None:
        self.deliveries: list[Delivered] = []
        self._news = asyncio.Event()
        self.pulls = front.open_pulls(NAME, "all", self._take)
        self.pulls.allow(credit)

    def _take(self, deliveries: list[Delivered]) -> None:
        self.deliveries += deliveries
        self._news.set()

    async def until(self, count: int) -> list[Delivered]:
        while len(self.deliveries) < count:
            self._news.clear()
            await self._news.wait()
        return self.deliveries


async def until_left(front: FrontEnd, count: int) -> None:
    for _ in range(1_000):
        found = (await front.ask(api.stream_state(NAME)))["state"]["messages"]
        if found == count:
            return
        await asyncio.sleep(0.02)
    raise AssertionError(f"{found} messages are there")


def test_messages_go_in_and_out_whole_in_order_and_once(cluster: NatsCluster) -> None:
    async def scene(front: FrontEnd) -> None:
        await declare(front)
        sent = [
            build(join_address(b"ex", b"key"), Properties(message_id=str(number)), b"x" * number)
            for number in range(1_200)
        ]
        ticket = await publish(front, [pack(each) for each in sent])
        assert ticket.refused == []
        await front.ask(api.create_consumer(NAME, api.ConsumerSettings(name="all")))
        taken = Taken(front, credit=100)
        deliveries = []
        for count in range(100, 1_201, 100):
            deliveries = await taken.until(count)
            front.ack([each.reply for each in deliveries[count - 100 : count]])
        found = [unpack(each.payload) for each in deliveries]
        assert [(each.address, each.raw) for each in found] == [
            (each.address, each.raw) for each in sent
        ]
        places = [api.place_of(each.reply) for each in deliveries]
        assert [place and place.sequence for place in places] == list(range(1, 1_201))
        assert {place and place.delivery_count for place in places} == {1}
        await until_left(front, 0)

    run(cluster, scene)


def test_what_nobody_acknowledges_comes_again(cluster: NatsCluster) -> None:
    async def scene(front: FrontEnd) -> None:
        await declare(front)
        await publish(front, [b"0", b"1", b"2"])
        settings = api.ConsumerSettings(name="all", ack_wait_ms=1_000)
        await front.ask(api.create_consumer(NAME, settings))
        taken = Taken(front, credit=10)
        deliveries = await taken.until(3)
        front.ack([deliveries[1].reply])
        await taken.until(5)
        again = [(each.payload, api.place_of(each.reply)) for each in taken.deliveries[3:]]
        assert [(payload, place and place.delivery_count) for payload, place in again] == [
            (b"0", 2),
            (b"2", 2),
        ]

    run(cluster, scene)


@pytest.mark.parametrize(("messages_max", "bytes_max"), [(130, -1), (-1, 130_000)])
def test_a_stream_that_is_full_takes_what_has_room(
    cluster: NatsCluster, messages_max: int, bytes_max: int
) -> None:
    async def scene(front: FrontEnd) -> None:
        await declare(front, messages_max=messages_max, bytes_max=bytes_max)
        ticket = await publish(front, [b"%0800d" % number for number in range(300)])
        state = (await front.ask(api.stream_state(NAME)))["state"]
        stored = state["messages"]
        assert 100 < stored <= 150
        assert ticket.refused == list(range(stored, 300))
        await front.ask(api.purge_stream(NAME))
        assert (await publish(front, [b"x", b"y"])).refused == []

    run(cluster, scene)


def test_a_message_that_no_server_takes_does_not_end_the_connection(cluster: NatsCluster) -> None:
    async def scene(front: FrontEnd) -> None:
        await declare(front)
        ticket = await publish(front, [b"0", bytes(9 << 20), b"1"])
        assert ticket.refused == [1]
        ticket = await publish(front, [bytes((8 << 20) - 512)])
        assert ticket.refused == []
        assert front.losses == []

    run(cluster, scene)


def test_a_name_may_be_as_long_as_it_may_be(cluster: NatsCluster) -> None:
    async def scene(front: FrontEnd) -> None:
        await declare(front)
        done: asyncio.Future[Ticket] = asyncio.get_running_loop().create_future()
        window = front.open_window(SUBJECT.encode(), done.set_result)
        window._name, window._burst_number = b"n" * NAME_MAX, 10**12
        front.publish(window, [b"0", b"1"])
        assert (await done).refused == []

    run(cluster, scene)


def test_a_stream_that_is_not_there_is_named(cluster: NatsCluster) -> None:
    async def scene(front: FrontEnd) -> None:
        await declare(front)  # then there is a leader who knows
        with pytest.raises(Refused, match="stream not found"):
            await front.ask(api.stream_state("Q_other"))
        await front.ask(api.delete_stream(NAME))
        with pytest.raises(Refused, match="stream not found"):
            await front.ask(api.purge_stream(NAME))

    run(cluster, scene)


def test_another_leader_is_found(cluster: NatsCluster) -> None:
    async def scene(front: FrontEnd) -> None:
        await declare(front)
        for number in range(3):
            await front.ask(api.step_down(NAME))
            assert (await publish(front, [b"%d" % number] * 200)).refused == []
        assert (await front.ask(api.stream_state(NAME)))["state"]["messages"] == 600

    run(cluster, scene)


def test_an_id_outlives_its_message_and_a_restart_of_all_servers(cluster: NatsCluster) -> None:
    """As long as it is in the log that a restart replays (ADR 30)."""

    async def scene(front: FrontEnd) -> None:
        await declare(front)
        front.drops_answers = True
        ticket = asyncio.create_task(publish(front, [b"0", b"1", b"2"]))
        await front.ask(api.create_consumer(NAME, api.ConsumerSettings(name="all")))
        taken = Taken(front, credit=3)
        first = (await taken.until(3))[0]
        front.ack([first.reply])
        await until_left(front, 2)
        for each in cluster.servers:
            each.kill()
        for each in cluster.servers:
            await asyncio.to_thread(each.start)
        front.drops_answers = False
        assert (await ticket).refused == []
        await until_left(front, 2)

    run(cluster, scene)
