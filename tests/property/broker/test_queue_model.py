"""Queue = a list model: any sequence of publish, deliver, ack, requeue, purge, page-out and late reads."""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from burrowmq.broker.queue.invariants import verify
from tests.support.messages import message
from tests.support.queue_bench import Inbox, QueueBench


class QueueModel(RuleBasedStateMachine):
    """The model is two lists: ready numbers in order, and unacked ones."""

    @initialize(
        mode=st.sampled_from(["bounded", "cached"]),
        lazy=st.booleans(),
        later=st.booleans(),
        durable=st.booleans(),
        large_from=st.sampled_from([2, 1 << 62]),
    )
    def start(self, mode: str, lazy: bool, later: bool, durable: bool, large_from: int) -> None:
        self.bench = QueueBench(
            durable=durable,
            mode=mode,
            queue_mode="lazy" if lazy else "default",
            answers_later=later,
        )
        self.bench.engine.large_from = large_from
        self.next = 0
        self.ready: list[int] = []
        self.unacked: list[int] = []
        self.inbox = Inbox(limit=0)
        self.bench.consume(self.inbox)
        self.seen = 0

    @rule(count=st.integers(1, 40), persistent=st.booleans())
    def publish(self, count: int, persistent: bool) -> None:
        numbers = range(self.next, self.next + count)
        self.next += count
        self.bench.publish(*[message(b"%d" % n, persistent=persistent) for n in numbers])
        self.ready.extend(numbers)

    @rule(count=st.integers(1, 30))
    def deliver(self, count: int) -> None:
        consumer = next(iter(self.bench.queue.consumers))
        consumer.prefetch_count = consumer.unacked_count + count
        self.inbox.limit = count
        self.bench.queue.consumer_unblocked(consumer)
        self.bench.scheduler.queue_dirty(self.bench.queue)
        self.bench.run()
        self.inbox.limit = 0
        expected = self.ready[: len(self.inbox.bodies) - self.seen]
        assert [int(body) for body in self.inbox.bodies[self.seen :]] == expected
        assert len(expected) == min(len(self.ready), count) or len(expected) >= min(
            len(self.ready), 1
        )
        self.seen = len(self.inbox.bodies)
        del self.ready[: len(expected)]
        self.unacked.extend(expected)

    @precondition(lambda self: self.unacked)
    @rule(data=st.data())
    def ack(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.unacked) - 1))
        self.unacked.pop(index)
        self.inbox.ack(index)

    @precondition(lambda self: self.unacked)
    @rule(data=st.data())
    def requeue(self, data: st.DataObject) -> None:
        index = data.draw(st.integers(0, len(self.unacked) - 1))
        self.ready.append(self.unacked.pop(index))
        self.ready.sort()
        self.inbox.requeue(index)
        self.bench.run()

    @rule()
    def get(self) -> None:
        found = self.bench.get()
        expected = self.ready.pop(0) if self.ready else None
        assert (None if found is None else int(found)) == expected

    @rule()
    def purge(self) -> None:
        assert self.bench.queue.purge() == len(self.ready)
        self.ready.clear()

    @rule()
    def page_out(self) -> None:
        self.bench.queue.paging.page_out()

    @rule(count=st.integers(0, 5))
    def park(self, count: int) -> None:
        self.bench.queue.levels[0].park(count, 1 << 20)

    @rule()
    def idle(self) -> None:
        self.bench.scheduler.advance(1500)
        self.bench.run()

    @rule(count=st.sampled_from([3, 16_384]))
    def start_batch(self, count: int) -> None:
        self.bench.queue.levels[0].load_start_batch(count, 1 << 20)

    @invariant()
    def counts_agree(self) -> None:
        if not hasattr(self, "bench"):
            return
        queue = self.bench.queue
        assert queue.ready_count == len(self.ready)
        assert queue.unacked_count == len(self.unacked)
        assert queue.ready_bytes == sum(len(str(n)) for n in self.ready)
        assert queue.unacked_bytes == sum(len(str(n)) for n in self.unacked)
        assert 0 <= queue.ram_ready_bytes <= queue.ready_bytes
        assert 0 <= queue.ram_ready_count <= queue.ready_count
        verify(queue)


QueueModel.TestCase.settings = settings(max_examples=80, stateful_step_count=40, deadline=None)
TestQueueModel = QueueModel.TestCase
