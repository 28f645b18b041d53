"""Monitor: alarms by measurement, paging while memory is short."""

from __future__ import annotations

from pika import spec

from broker.monitor import Monitor, ResourceLimits
from broker.resources import Measurement
from tests.support.broker_bench import BrokerBench
from tests.support.wire_client import publish_bytes


class World:
    def __init__(self, *, paging_above: int | None = 50) -> None:
        self.bench = BrokerBench(default_mode="cached")
        self.now = Measurement(rss_bytes=0, disk_free_bytes=1000)
        limits = ResourceLimits(
            memory_bytes=100, disk_free_bytes=500, paging_above_bytes=paging_above
        )
        self.monitor = Monitor(
            limits,
            lambda: self.now,
            self.bench.alarms,
            {"/": self.bench.vhost},
            self.bench.turn,
        )

    def look(self, rss: int, free: int | None = 1000) -> set[str]:
        self.now = Measurement(rss_bytes=rss, disk_free_bytes=free)
        self.monitor.look()
        self.bench.run()
        return set(self.bench.alarms.active)


def test_alarms():
    world = World()
    assert world.look(100) == set()
    assert world.look(101) == {"memory"}
    assert world.look(10, free=499) == {"disk"}
    assert world.look(10, free=None) == {"disk"}, "no answer is no news"
    assert world.look(10) == set()
    assert world.monitor.last.rss_bytes == 10


def test_queues_page_out_while_memory_is_short():
    world = World()
    client = world.bench.connect(1)
    client.call(1, spec.Queue.Declare(queue="q"))
    client.send(publish_bytes(1, "", "q", b"a"), publish_bytes(1, "", "q", b"b"))
    queue = world.bench.vhost.queues["q"]
    world.look(50)
    assert queue.ram_ready_count == 2
    world.look(51)
    assert (queue.ram_ready_count, queue.ready_count) == (0, 2)
    client.send(publish_bytes(1, "", "q", b"c"))
    assert queue.ram_ready_count == 0
    world.look(10)
    assert not queue.is_paging
    found = client.call(1, *[spec.Basic.Get(queue="q", no_ack=True)] * 4)
    assert [getattr(method, "body", None) for _, method in found] == [b"a", b"b", b"c", None]


def test_bounded_queues_have_no_paging_threshold():
    world = World(paging_above=None)
    world.look(1 << 40)
    assert not world.monitor.is_paging
