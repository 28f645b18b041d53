"""Rows without AMQP: a front-end in this process before three nats-servers, records of persistent AMQP messages."""

import asyncio

from bench.cluster.measures import RUN, Load, Meter, Row
from bench.jetstream import FrontEnd
from bench.nats_servers import NatsCluster
from burrowmq.cluster import api
from burrowmq.cluster.record import pack, unpack
from burrowmq.cluster.tickets import Ticket
from burrowmq.cluster.window import Window, WindowLimits
from burrowmq.cluster.wire import Delivered
from burrowmq.protocol.codec import Message, join_address
from burrowmq.protocol.properties import Properties, build
from tests.cluster.resend import EachWithId


def _bursts(count: int) -> WindowLimits:
    return WindowLimits(collect_count=min(count, 128), burst_count=count)


WINDOWS: dict[str, tuple[type[Window], WindowLimits]] = {
    "atomic batches of up to 512": (Window, _bursts(512)),
    "atomic batches of up to 128": (Window, _bursts(128)),
    "an id for each message, bursts of up to 512": (EachWithId, _bursts(512)),
    "an id for each message, bursts of up to 128": (EachWithId, _bursts(128)),
}


def _message(size: int) -> Message:
    return build(join_address(b"", b"bench"), Properties(delivery_mode=2), b"x" * size)


class JetStreamBench:
    """One cluster and one front-end for all rows; each row has a stream of its own."""

    def __init__(self, cluster: NatsCluster, load: Load) -> None:
        self._cluster = cluster
        self._load = load
        self._number = 0
        self._front = FrontEnd([each.url for each in cluster.servers])

    async def start(self) -> None:
        await self._front.start()

    async def close(self) -> None:
        await self._front.close()

    def _meter(self) -> Meter:
        return Meter([each.pid for each in self._cluster.servers])

    async def _stream(self) -> str:
        self._number += 1
        name = f"Q_bench{self._number}"
        await self._front.ask(
            api.create_stream(api.StreamSettings(name=name, subjects=(f"q.{name}",)))
        )
        return name

    async def _fill(self, name: str, kind: type[Window], limits: WindowLimits, count: int) -> None:
        """Publish `count` messages, and return when all are confirmed."""
        done = asyncio.Event()
        left = {"to_send": count, "open": 0}
        messages = [_message(self._load.size)] * RUN

        def more() -> None:
            while left["to_send"] and left["open"] + RUN <= self._load.open_max:
                left["to_send"] -= RUN
                left["open"] += RUN
                self._front.publish(window, [pack(each) for each in messages])

        def settled(ticket: Ticket) -> None:
            assert not ticket.refused, window.last_refusal
            left["open"] -= ticket.count
            more()
            if not left["open"]:
                done.set()

        window = self._front.open_window(f"q.{name}".encode(), settled, kind, limits)
        more()
        async with asyncio.timeout(300):
            await done.wait()
        assert not window.resent_count, "nothing was sent twice"

    async def publish(self, kind: type[Window], limits: WindowLimits) -> Row:
        name = await self._stream()
        await self._fill(name, kind, limits, RUN * 50)
        meter = self._meter()
        await self._fill(name, kind, limits, self._load.messages)
        row = meter.row(self._load.messages)
        await self._front.ask(api.delete_stream(name))
        return row

    async def consume(self) -> Row:
        name, count = await self._stream(), self._load.messages
        await self._fill(name, Window, _bursts(512), count)
        await self._front.ask(api.create_consumer(name, api.ConsumerSettings(name="all")))
        done = asyncio.Event()
        seen = 0

        def taken(deliveries: list[Delivered]) -> None:
            nonlocal seen
            for each in deliveries:
                unpack(each.payload)
                place = api.place_of(each.reply)
                assert place is not None
                assert place.delivery_count == 1
            seen += len(deliveries)
            self._front.ack([each.reply for each in deliveries])
            if seen >= count:
                done.set()

        meter = self._meter()
        self._front.open_pulls(name, "all", taken).allow(self._load.credit)
        async with asyncio.timeout(300):
            await done.wait()
        row = meter.row(count)
        assert seen == count
        await self._until_empty(name)
        await self._front.ask(api.delete_stream(name))
        return row

    async def _until_empty(self, name: str) -> None:
        for _ in range(200):
            state = await self._front.ask(api.stream_state(name))
            if not state["state"]["messages"]:
                return
            await asyncio.sleep(0.05)
        raise AssertionError("acknowledgements were lost")
