"""Monitor: alarms by measurement, paging while memory is short."""

from __future__ import annotations

from dataclasses import replace
from errno import EMFILE

import pytest
from pika import spec

from burrowmq.broker.machine.reclaim import WORTH_BYTES
from burrowmq.broker.machine.resources import Measurement
from burrowmq.broker.node.monitor import Monitor, ResourceLimits
from burrowmq.broker.queue.memory.ram_share import RAM_BYTES, RamShare
from tests.support.bench.broker import BrokerBench
from tests.support.wire_client import publish_bytes


class FakeAllocator:
    """What is given back is no longer resident."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.unused = 0
        self.calls = 0

    def unused_bytes(self) -> tuple[int, int]:
        return self.unused, 0

    def give_back(self) -> None:
        self.calls += 1
        before = self.world.now
        self.world.now = replace(before, rss_bytes=before.rss_bytes - self.unused)


class World:
    def __init__(self, *, paging_ratio: float | None = 0.5) -> None:
        self.bench = BrokerBench(default_mode="cached")
        self.now = Measurement(rss_bytes=0, disk_free_bytes=1000)
        self.problem: OSError | None = None
        self.allocator = FakeAllocator(self)
        self.share = RamShare()
        limits = ResourceLimits(memory_bytes=100, disk_free_bytes=500, paging_ratio=paging_ratio)
        self.monitor = Monitor(
            limits,
            self.measure,
            self.bench.alarms,
            {"/": self.bench.vhost},
            self.bench.scheduler,
            self.allocator,
            self.share,
        )

    def measure(self) -> Measurement:
        if self.problem is not None:
            raise self.problem
        return self.now

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


def test_an_alarm_says_how_much_there_is_once():
    world = World()
    for _ in range(2):
        world.look(3 << 20, free=1 << 20)
    world.look(10, free=None)
    limit = "100 B"
    assert world.bench.observer.events == [
        ("alarm_set", ("memory", f"3.15 MB used, the watermark is {limit}")),
        ("alarm_cleared", ("memory", f"10 B used, the watermark is {limit}")),
    ]


def test_an_alarm_ends_when_what_was_freed_is_given_back():
    world = World()
    world.monitor.start()
    world.now = Measurement(rss_bytes=2 * WORTH_BYTES, disk_free_bytes=1000)
    world.bench.loop.advance(1.0)
    assert set(world.bench.alarms.active) == {"memory"}
    world.allocator.unused = 2 * WORTH_BYTES - 10  # purged, but still resident
    world.bench.loop.advance(1.0)
    assert world.bench.alarms.active == set()
    assert not world.monitor.is_paging
    assert (world.allocator.calls, world.monitor.last.rss_bytes) == (1, 10)
    world.monitor.stop()


def test_what_nobody_uses_is_no_reason_for_an_alarm():
    world = World()
    client = world.bench.connect(1)
    client.call(1, spec.Queue.Declare(queue="q"))
    client.send(publish_bytes(1, "", "q", b"a"))
    world.monitor.start()
    events = list(world.bench.observer.events)
    world.allocator.unused = 2 * WORTH_BYTES
    world.now = Measurement(rss_bytes=2 * WORTH_BYTES + 40, disk_free_bytes=1000)
    world.bench.loop.advance(1.0)
    assert (world.allocator.calls, world.monitor.last.rss_bytes) == (1, 40)
    assert world.bench.observer.events == events
    assert world.bench.vhost.queues["q"].ram_ready_count == 1
    world.monitor.stop()


def test_a_machine_that_does_not_answer_is_looked_at_again():
    world = World()
    assert world.look(101, free=499) == {"memory", "disk"}
    world.monitor.start()
    world.problem = OSError(EMFILE, "Too many open files")
    world.bench.loop.advance(60.0)
    assert set(world.bench.alarms.active) == {"memory", "disk"}, "no answer is no news"
    world.problem = None
    world.now = Measurement(rss_bytes=10, disk_free_bytes=1000)
    world.bench.loop.advance(60.0)
    assert world.bench.alarms.active == set()
    world.monitor.stop()


def test_an_operator_who_asks_for_memory_ends_the_alarm():
    world = World()
    assert world.look(WORTH_BYTES) == {"memory"}
    world.allocator.unused = WORTH_BYTES - 10
    world.monitor.give_back_memory()
    assert (world.bench.alarms.active, world.monitor.last.rss_bytes) == (set(), 10)


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
    assert not queue.paging.is_short
    found = client.call(1, *[spec.Basic.Get(queue="q", no_ack=True)] * 4)
    assert [getattr(method, "body", None) for _, method in found] == [b"a", b"b", b"c", None]


def test_bounded_queues_have_no_paging_threshold():
    world = World(paging_ratio=None)
    world.look(1 << 40)
    assert not world.monitor.is_paging


def limits(**more):
    given = {"memory_bytes": 400, "disk_free_bytes": 1, "paging_ratio": 0.5}
    return ResourceLimits(**given, memory_relative=0.4, memory_total_bytes=1000, **more)


def test_an_operator_moves_the_memory_watermark_and_paging_follows():
    found = limits()
    found.set_memory(relative=0.5)
    assert (found.memory_bytes, found.memory_relative, found.paging_above_bytes) == (500, 0.5, 250)
    found.set_memory(absolute_bytes=100)
    assert (found.memory_bytes, found.memory_relative, found.paging_above_bytes) == (100, None, 50)
    found.set_memory(absolute_bytes=0)
    found.set_memory(relative=1.0)
    assert (found.memory_bytes, found.paging_above_bytes) == (1000, 500)


def test_free_space_is_looked_at_more_often_near_its_limit():
    world = World()
    gigabyte = 10**9
    for free, seconds in (
        (None, 10.0),
        (500, 10.0),
        (100 * gigabyte, 10.0),
        (gigabyte, 8.0),
        (501, 0.1),
    ):
        world.look(0, free)
        assert world.monitor.disk_interval_s() == pytest.approx(seconds, abs=0.1)


def test_it_looks_again_and_again_until_it_is_stopped():
    world = World()
    world.now = Measurement(rss_bytes=10, disk_free_bytes=10**12)
    world.monitor.start()
    world.now = Measurement(rss_bytes=200, disk_free_bytes=1)
    world.bench.loop.advance(1.0)
    assert world.bench.alarms.active == {"memory"}
    world.bench.loop.advance(9.0)
    assert world.bench.alarms.active == {"memory", "disk"}
    world.monitor.stop()
    world.now = Measurement(rss_bytes=1, disk_free_bytes=10**12)
    world.bench.loop.advance(30.0)
    assert world.bench.alarms.active == {"memory", "disk"}


def test_free_space_that_is_not_watched_sets_no_alarm_and_keeps_none():
    world = World()
    assert world.look(0, free=1) == {"disk"}
    world.monitor.watch_disk(is_on=False)
    assert world.look(0, free=1) == set()
    world.monitor.watch_disk(is_on=True)
    assert world.bench.alarms.active == {"disk"}
    world.monitor.watch_disk(is_on=True)
    world.now = Measurement(rss_bytes=0, disk_free_bytes=10**12)
    world.bench.loop.advance(10.0)
    assert world.bench.alarms.active == set()


def test_queues_may_keep_more_in_ram_while_less_than_half_of_the_watermark_is_used():
    world = World()
    world.monitor.limits.memory_bytes = 64 * RAM_BYTES
    shares = []
    for used in (0, 32 * RAM_BYTES - 1, 32 * RAM_BYTES, 0):
        world.look(used)
        shares.append(world.share.queue_bytes)
    assert shares == [2 * RAM_BYTES, 2 * RAM_BYTES, RAM_BYTES, 2 * RAM_BYTES]


@pytest.mark.parametrize("resource", ["memory", "disk"])
def test_a_look_that_fails_is_not_the_last_one(resource: str, monkeypatch: pytest.MonkeyPatch):
    world = World()
    world.monitor.start()
    world.now = Measurement(rss_bytes=101, disk_free_bytes=1)

    def fail(*_: object) -> None:
        raise RuntimeError(resource)

    with monkeypatch.context() as patched, pytest.raises(RuntimeError, match=resource):
        patched.setattr(world.monitor, f"_judge_{resource}", fail)
        world.bench.loop.advance(20.0)
    world.bench.loop.advance(20.0)
    assert world.bench.alarms.active == {"memory", "disk"}
