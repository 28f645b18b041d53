"""Counts: what each event adds and takes, and that all of it comes to nothing again."""

from __future__ import annotations

import pytest

from burrowmq.broker.queue.counts import Counts
from burrowmq.broker.queue.run import DURABLE, TRANSIENT, DeliveryRun, Kind, returned
from burrowmq.broker.report.metrics import NodeMetrics
from tests.support.messages import message


def run_of(count: int, kind: Kind = DURABLE, *, redelivered: bool = False) -> DeliveryRun:
    """Messages of four bytes."""
    return DeliveryRun(
        range(count), [message(b"four")] * count, 4 * count, kind, redelivered=redelivered
    )


def stored(count: int) -> Counts:
    """Counts of a queue to which so many persistent messages were published."""
    counts = Counts(NodeMetrics())
    counts.published(count)
    counts.stored(count, 4 * count)
    return counts


def sums(counts: Counts) -> tuple[int, ...]:
    return (
        counts.unacked_count,
        counts.unacked_bytes,
        counts.persistent_count,
        counts.persistent_bytes,
        counts.unacked_persistent_count,
        counts.unacked_persistent_bytes,
    )


def test_what_is_delivered_is_unacked_until_it_is_settled():
    counts = stored(5)
    counts.handed_out(run_of(3), False, is_delivery=True)
    assert sums(counts) == (3, 12, 5, 20, 3, 12)
    counts.settled(2, 8, DURABLE, is_acked=True)
    assert sums(counts) == (1, 4, 3, 12, 1, 4)
    counts.settled(1, 4, DURABLE, is_acked=False)
    assert sums(counts) == (0, 0, 2, 8, 0, 0)
    assert (counts.metrics.deliver, counts.metrics.ack) == (3, 2), "a rejection is no ack"


def test_without_an_ack_to_come_it_is_gone_at_once():
    counts = stored(5)
    counts.handed_out(run_of(3), True, is_delivery=True)
    assert sums(counts) == (0, 0, 2, 8, 0, 0)
    assert (counts.metrics.deliver, counts.metrics.deliver_no_ack) == (0, 3)


def test_what_comes_back_is_still_persistent():
    counts = stored(3)
    run = run_of(3)
    counts.handed_out(run, False, is_delivery=True)
    entries = returned(run.seqs, run.messages, None, DURABLE, redelivered=True)
    counts.came_back(entries[:1], 4)
    assert sums(counts) == (2, 8, 3, 12, 2, 8)
    counts.came_back(entries[1:], 8)
    assert sums(counts) == (0, 0, 3, 12, 0, 0)


def test_transient_messages_are_not_persistent():
    counts = stored(1)
    run = run_of(2, TRANSIENT)
    counts.handed_out(run, False, is_delivery=True)
    assert sums(counts) == (2, 8, 1, 4, 0, 0)
    entries = returned(run.seqs, run.messages, None, TRANSIENT, redelivered=True)
    counts.came_back(entries[:1], 4)
    counts.settled(1, 4, TRANSIENT, is_acked=True)
    counts.gone(1, 4, TRANSIENT)
    assert sums(counts) == (0, 0, 1, 4, 0, 0)


def test_a_purge_leaves_what_is_unacked():
    counts = stored(5)
    counts.handed_out(run_of(2), False, is_delivery=True)
    counts.gone(1, 4, DURABLE)
    counts.purged()
    assert sums(counts) == (2, 8, 2, 8, 2, 8)


@pytest.mark.parametrize("redelivered", [False, True])
def test_gets_are_no_deliveries_and_each_redelivery_counts_for_the_node_too(redelivered: bool):
    totals = NodeMetrics()
    counts = Counts(totals)
    for no_ack in (True, False, False):
        counts.got(no_ack=no_ack)
        counts.handed_out(run_of(1, redelivered=redelivered), no_ack, is_delivery=False)
    counts.got_nothing()
    metrics = counts.metrics
    assert (metrics.get_no_ack, metrics.get, metrics.get_empty, metrics.deliver) == (1, 2, 1, 0)
    assert metrics.redeliver == totals.messages_redelivered == 3 * redelivered


def test_what_a_start_finds_is_persistent_and_so_is_what_is_stored():
    counts = Counts(NodeMetrics())
    counts.recovered(7, 70)
    assert (counts.persistent_count, counts.persistent_bytes) == (7, 70)
    counts.stored(1, 1)
    assert (counts.persistent_count, counts.persistent_bytes) == (8, 71)


def test_what_the_store_has_lost_is_not_persistent_any_more_as_far_as_that_can_be() -> None:
    counts = stored(5)
    counts.handed_out(run_of(1), False, is_delivery=True)
    counts.lost(1, 4)
    counts.bound(2, 8, 2)
    assert (counts.persistent_count, counts.persistent_bytes) == (4, 16)
    counts.lost(3, 12)  # one of them was transient
    counts.bound(2, 8, 9)
    assert (counts.persistent_count, counts.persistent_bytes, counts.is_guess) == (3, 12, True)
    counts.bound(3, 12, 8)  # one that was read is persistent, too
    assert (counts.persistent_count, counts.persistent_bytes) == (4, 16)
    counts.bound(2, 8, 0)  # all are read
    assert (counts.persistent_count, counts.persistent_bytes, counts.is_guess) == (3, 12, False)
    counts.settled(1, 4, DURABLE, is_acked=True)
    counts.lost(2, 8)
    counts.bound(0, 0, 0)
    assert (counts.persistent_count, counts.persistent_bytes) == (0, 0)


def test_after_a_purge_nothing_is_a_guess_and_more_than_there_was_is_not_lost() -> None:
    counts = stored(2)
    counts.handed_out(run_of(1), False, is_delivery=True)
    counts.lost(3, 12)
    assert (counts.persistent_count, counts.persistent_bytes, counts.is_guess) == (1, 4, True)
    counts.purged()
    assert (counts.persistent_count, counts.persistent_bytes, counts.is_guess) == (1, 4, False)
