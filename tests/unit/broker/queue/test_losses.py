"""Losses: what is counted as persistent once the store has lost messages of whatever kind, until all kinds are known."""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.broker.queue.browse import Seen
from burrowmq.broker.queue.invariants import verify
from burrowmq.broker.queue.origin import Origin
from burrowmq.broker.queue.rules.settings import Settings
from burrowmq.broker.queue.run import DeliveryRun, returned
from burrowmq.broker.queue.withdraw import withdraw
from tests.support.messages import message
from tests.support.queue_bench import QueueBench

LARGE = 1_100_000
"""One of these is all that a read brings."""


def lossy(kinds: str, lost: int, *, size: int = LARGE, **settings: Any) -> QueueBench:
    """A lazy queue of persistent (p) and empty transient (t) messages; the first are lost. A read is answered later."""
    bench = QueueBench(queue_mode="lazy", answers_later=True, **settings)
    for kind in kinds:
        bench.publish(message(b"x" * size if kind == "p" else b"", persistent=kind == "p"))
    for seq in range(lost):
        del bench.engine.logs["q"].entries[seq]
    return bench


def hold(bench: QueueBench) -> list[tuple[Origin, DeliveryRun]]:
    """basic.get of one message, which is not acknowledged."""
    held = []

    def take(origin: Origin | None, run: DeliveryRun | None) -> None:
        assert origin is not None
        assert run is not None
        origin.got(run, no_ack=False)
        held.append((origin, run))

    bench.queue.get(take)
    bench.run()
    return held


def persistent(bench: QueueBench) -> tuple[int, int]:
    return bench.queue.persistent_count, bench.queue.persistent_bytes


def test_until_all_kinds_are_known_the_count_is_a_guess_and_what_is_read_bounds_it() -> None:
    bench = lossy("tppt", 1)
    held = hold(bench)
    counts = bench.queue.counts
    assert counts.is_guess
    assert 1 <= counts.persistent_count <= 3
    held += hold(bench) + hold(bench)
    assert (persistent(bench), counts.is_guess) == ((2, 2 * LARGE), False)
    for origin, run in held:
        origin.settle(run.seqs, run.messages, run.kind, run.size, is_acked=True)
    assert persistent(bench) == (0, 0)
    assert not any(level.is_watched for level in bench.queue.levels)


@pytest.mark.parametrize("is_held", [False, True])
def test_what_follows_a_loss_may_be_in_the_stores_memory_still(is_held: bool) -> None:
    bench = lossy("ttppp", 2)
    bench.get()
    bench.engine.answers_later = False
    for count in (1, 2):
        if is_held:
            hold(bench)
        else:
            bench.get()
        assert bench.queue.persistent_count >= count * is_held
    assert persistent(bench) == ((2, 2 * LARGE) if is_held else (0, 0))
    assert not bench.queue.counts.is_guess


def test_a_consumer_is_served_from_the_stores_memory_after_a_loss() -> None:
    bench = lossy("tttpppp", 3)
    bench.get()
    bench.engine.answers_later = False
    inbox = bench.consume(prefetch_count=2)
    assert len(inbox.got) == 2
    assert 2 <= bench.queue.persistent_count <= 3


def test_a_message_on_its_way_to_a_basic_get_is_counted_when_a_loss_is_found_meanwhile() -> None:
    bench = QueueBench(queue_mode="lazy")
    bench.publish(message(b"a", persistent=True, expiration="60000"))
    bench.publish(message(b"b" * LARGE, expiration="1"))
    bench.publish(*[message(b"c", persistent=True)] * 2)
    bench.queue.paging.load(bench.queue.levels[0], 2)
    assert bench.queue.ram_ready_count == 2
    for seq in (2, 3):
        del bench.engine.logs["q"].entries[seq]
    bench.scheduler.now_ms += 10
    held = hold(bench)
    assert persistent(bench) == (1, 1)
    assert len(held) == 1


def test_what_a_length_limit_drops_unread_settles_a_guess() -> None:
    bench = lossy("ttp", 0, size=1, max_length=3)
    held = hold(bench) + hold(bench)
    for origin, run in held:
        origin.requeue(returned(run.seqs, run.messages, run.expiries, run.kind, redelivered=True))
    bench.queue.paging.page_out()
    for seq in (0, 1):
        del bench.engine.logs["q"].entries[seq]
    assert bench.queue.levels[0].requeued.parked.count == 2
    bench.queue.paging.load(bench.queue.levels[0], 2)
    bench.run()
    assert (bench.queue.ready_count, persistent(bench)) == (1, (1, 1)), "the sizes say the kinds"
    for _ in range(3):
        bench.publish(message(b"t"))
    assert (bench.queue.ready_count, persistent(bench)) == (3, (0, 0))


def test_new_settings_that_drop_what_is_unread_settle_a_guess() -> None:
    bench = lossy("ttppp", 2)
    bench.get()
    assert bench.queue.counts.is_guess
    bench.engine.answers_later = False
    bench.queue.change_settings(Settings(mode="lazy", max_length=0))
    bench.run()
    assert (bench.queue.ready_count, persistent(bench)) == (0, (0, 0))
    assert not bench.queue.counts.is_guess


def test_after_a_purge_it_is_known_that_none_is_persistent() -> None:
    bench = lossy("tppp", 1)
    hold(bench)
    bench.queue.purge()
    bench.publish(message(b"p", persistent=True))
    assert persistent(bench) == (2, LARGE + 1)
    assert not bench.queue.counts.is_guess
    bench.run()
    assert persistent(bench) == (2, LARGE + 1)


def test_messages_that_are_withdrawn_settle_a_guess() -> None:
    bench = lossy("tpp", 1)
    bench.get()
    left, _ = bench.engine.logs["q"].entries[2]
    withdraw(bench.queue, [Seen(0, 2, left, 0, False)])
    bench.run()
    assert (bench.queue.ready_count, persistent(bench)) == (0, (0, 0))
    assert not bench.queue.counts.is_guess


def test_a_queue_that_is_not_durable_has_nothing_to_guess() -> None:
    bench = QueueBench(queue_mode="lazy", durable=False)
    bench.publish(*[message(b"x" * LARGE, persistent=True) for _ in range(3)])
    del bench.engine.logs["q"].entries[0]
    assert bench.get() is not None
    assert (persistent(bench), bench.queue.counts.is_guess) == ((0, 0), False)


def test_a_queue_that_is_deleted_before_the_turn_ends_settles_nothing() -> None:
    bench = lossy("tpp", 1)
    bench.queue.get(lambda *_: None)
    bench.engine.answer_reads()
    bench.queue.delete()
    bench.run()
    assert bench.queue.ready_count == 0


def test_levels_bound_a_guess_together() -> None:
    bench = QueueBench(queue_mode="lazy", answers_later=True, max_priority=1)
    for priority in (0, 1):
        for is_persistent in (False, True, True):
            bench.publish(message(b"x" * LARGE, persistent=is_persistent, priority=priority))
    high = bench.queue.levels[1].log.entries
    del high[0]
    bench.get()
    counts = bench.queue.counts
    assert counts.is_guess
    assert all(level.is_watched for level in bench.queue.levels)
    while bench.get() is not None:
        verify(bench.queue)
    assert (persistent(bench), counts.is_guess) == ((0, 0), False)
