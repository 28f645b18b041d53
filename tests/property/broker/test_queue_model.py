"""Queue = a list model: any sequence of publish, deliver, ack, requeue, purge, page-out, late reads, and starts.

What the store has of persistent messages is what is ready or unacked, each under the id that an ack of it names.
"""

from __future__ import annotations

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from burrowmq.broker.queue.dormant import DormantQueue
from burrowmq.broker.queue.invariants import verify
from burrowmq.broker.queue.rules.settings import Settings
from burrowmq.protocol.constants import PERSISTENT
from burrowmq.storage.names import QueueNames
from burrowmq.storage.types import RecoveredQueue
from tests.support.memory_log import MemoryLog
from tests.support.messages import body_of, message
from tests.support.queue_bench import Inbox, QueueBench


def found_by(bench: QueueBench, before: MemoryLog, *, is_clean: bool) -> MemoryLog:
    """What a start finds of a queue's log; after a kill all that there is may have been delivered."""
    log = MemoryLog(bench.engine, durable=True)
    log.entries = {
        seq: entry for seq, entry in sorted(before.entries.items()) if entry[0].flags & PERSISTENT
    }
    log.end_seq = before.end_seq
    delivered = before.next_deliver_seq if is_clean else before.end_seq
    count, size = len(log.entries), sum(entry[0].size for entry in log.entries.values())
    first = min(log.entries, default=log.end_seq)
    log.recovered = RecoveredQueue(  # type: ignore[assignment] # None until a start finds one
        QueueNames("/", "q"), first, log.end_seq, delivered, count, size, count, size
    )
    return log


class QueueModel(RuleBasedStateMachine):
    """The model is two lists: ready numbers in order, and unacked ones."""

    @initialize(
        mode=st.sampled_from(["bounded", "cached"]),
        lazy=st.booleans(),
        later=st.booleans(),
        durable=st.booleans(),
        large_from=st.sampled_from([2, 1 << 62]),
        kept=st.integers(0, 6),
        gone=st.integers(0, 3),
    )
    def start(
        self,
        mode: str,
        lazy: bool,
        later: bool,
        durable: bool,
        large_from: int,
        kept: int,
        gone: int,
    ) -> None:
        """So many persistent messages, and transient ones behind them, were on disk before a clean stop."""
        self.durable = durable
        self.options = {"mode": mode, "answers_later": later}
        self.settings = Settings(mode="lazy" if lazy else "default")
        self.large_from = large_from
        self.next = 0
        self.ready: list[int] = []
        self.unacked: list[int] = []
        self.persistent: set[int] = set()
        self.delivered: set[int] = set()
        self.bench = QueueBench(durable=durable, queue_mode=self.settings.mode, **self.options)
        self.connect()
        if durable and kept:
            self.publish(count=kept, persistent=True)
            if gone:
                self.publish(count=gone, persistent=False)
            self.restart(is_clean=True, is_paged_out=True)

    def connect(self) -> None:
        """Let a consumer come that is given nothing yet."""
        self.bench.engine.large_from = self.large_from
        self.inbox = Inbox(limit=0)
        self.bench.consume(self.inbox)
        self.seen = 0

    @rule(count=st.integers(1, 40), persistent=st.booleans())
    def publish(self, count: int, persistent: bool) -> None:
        numbers = range(self.next, self.next + count)
        self.next += count
        self.bench.publish(*[message(b"%d" % n, persistent=persistent) for n in numbers])
        self.ready.extend(numbers)
        if persistent:
            self.persistent.update(numbers)

    @rule(count=st.integers(1, 30))
    def deliver(self, count: int) -> None:
        consumer = next(iter(self.bench.queue.consumers))
        consumer.unacked_max = consumer.unacked_count + count
        self.inbox.limit = count
        self.bench.queue.consumer_unblocked(consumer)
        self.bench.scheduler.queue_dirty(self.bench.queue)
        self.bench.run()
        self.inbox.limit = 0
        expected = self.ready[: len(self.inbox.bodies) - self.seen]
        assert [int(body) for body in self.inbox.bodies[self.seen :]] == expected
        assert len(expected) == min(len(self.ready), count)
        again = [got[5] for got in self.inbox.got[len(self.inbox.got) - len(expected) :]]
        assert all(
            is_again for is_again, n in zip(again, expected, strict=True) if n in self.delivered
        )
        self.delivered.update(expected)
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

    @precondition(lambda self: self.durable)
    @rule(is_clean=st.booleans(), is_paged_out=st.booleans())
    def restart(self, is_clean: bool, is_paged_out: bool) -> None:
        """What was persistent is ready again, under the ids that it had; the others' are not used again."""
        old = self.bench
        if is_paged_out:
            self.page_out()
        if is_clean:
            old.queue.note_delivered()
        before = old.engine.logs.get("q")
        self.ready = sorted(n for n in (*self.ready, *self.unacked) if n in self.persistent)
        self.unacked = []
        self.bench = QueueBench(durable=True, **self.options)
        if before is not None:
            self.bench.engine.logs["q"] = found_by(self.bench, before, is_clean=is_clean)
            self.bench.queue = DormantQueue("q", self.settings, self.bench.context, durable=True)
            self.bench.queue.recover(lambda name, level: not level)
        else:
            self.bench = QueueBench(durable=True, queue_mode=self.settings.mode, **self.options)
        self.connect()

    @invariant()
    def the_store_agrees(self) -> None:
        if not hasattr(self, "bench") or not self.durable or "q" not in self.bench.engine.logs:
            return
        entries = self.bench.engine.logs["q"].entries.values()
        stored = sorted(int(body_of(each.raw)) for each, _ in entries if each.flags & PERSISTENT)
        assert stored == sorted(self.persistent.intersection((*self.ready, *self.unacked)))

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


QueueModel.TestCase.settings = settings(max_examples=160, stateful_step_count=40, deadline=None)
TestQueueModel = QueueModel.TestCase
