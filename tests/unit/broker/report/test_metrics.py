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
    reasons = ("rejected", "expired", "maxlen")
    assert {f"dead_lettered_{reason}" for reason in reasons} <= names
    assert {f"dropped_{reason}" for reason in reasons} <= names
