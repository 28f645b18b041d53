"""Counters: all start at nothing, and the node's have a field for each total that is added to."""

from __future__ import annotations

from dataclasses import fields

import pytest

from burrowmq.broker.report.metrics import ChannelMetrics, NodeMetrics, QueueMetrics


@pytest.mark.parametrize("kind", [QueueMetrics, ChannelMetrics, NodeMetrics])
def test_counters_start_at_zero_and_take_no_other_names(kind):
    counters = kind()
    assert {getattr(counters, each.name) for each in fields(kind)} == {0}
    with pytest.raises(AttributeError):
        counters.misspelt = 1


def test_every_reason_of_dead_lettering_has_a_counter():
    names = {each.name for each in fields(NodeMetrics)}
    reasons = ("rejected", "expired", "maxlen", "delivery_limit")
    wanted = ("dead_lettered", "dropped", "quorum_dead_lettered", "quorum_stored", "quorum_dropped")
    assert {f"{what}_{reason}" for what in wanted for reason in reasons} <= names


def test_what_is_of_quorum_queues_is_counted_among_all():
    counters = NodeMetrics()
    counters.count_dead_lettered("expired", 2)
    counters.count_dead_lettered("expired", 3, of_quorum=True)
    counters.count_stored("expired", 5)
    counters.count_dropped("maxlen", 7, of_quorum=True)
    assert counters.dead_lettered_expired == 10
    assert (counters.quorum_dead_lettered_expired, counters.quorum_stored_expired) == (3, 5)
    assert (counters.dropped_maxlen, counters.quorum_dropped_maxlen) == (7, 7)


def test_what_a_queue_that_is_gone_has_counted_stays():
    gone, kept = QueueMetrics(deliver=2, ack=1), QueueMetrics(deliver=3)
    kept.add(gone)
    assert kept == QueueMetrics(deliver=5, ack=1)
