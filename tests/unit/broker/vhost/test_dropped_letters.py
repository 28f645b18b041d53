"""burrowmq.broker.vhost.dropped_letters: one line for each queue, and no more kept of them than there should be."""

from __future__ import annotations

from typing import Any, cast

import pytest
from pika import spec

from burrowmq.broker.vhost import dropped_letters
from burrowmq.broker.vhost.dropped_letters import DroppedLetters
from tests.support.bench.broker import BrokerBench
from tests.support.bench.observer import RecordingObserver
from tests.support.wire_client import publish_bytes


def test_each_queue_and_reason_is_said_once() -> None:
    observer = RecordingObserver()
    dropped = DroppedLetters("v", cast("Any", observer))
    for _ in range(3):
        dropped.cycle_cut("a")
        dropped.cycle_cut("b")
        dropped.impossible("a", "too long")
    assert observer.named("dead_letter_cycle_cut") == [("v", "a"), ("v", "b")]
    assert observer.named("dead_letter_impossible") == [("v", "a", "too long")]


def test_names_that_never_come_again_take_no_room(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dropped_letters, "SAID_MAX", 10)
    observer = RecordingObserver()
    dropped = DroppedLetters("v", cast("Any", observer))
    for number in range(100):
        dropped.cycle_cut(f"q{number}")
        assert len(dropped._said) <= 10
    assert len(observer.named("dead_letter_cycle_cut")) == 100


def test_a_queue_that_drops_all_that_it_is_given_is_one_line_in_the_log() -> None:
    bench = BrokerBench()
    client = bench.connect(1)
    again = {"x-message-ttl": 0, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    client.call(1, spec.Queue.Declare(queue="q", arguments=again))
    for _ in range(10):
        client.send(publish_bytes(1, "", "q", b"x") * 10)
    assert bench.metrics.dead_lettered_expired == 100
    assert bench.observer.named("dead_letter_cycle_cut") == [("/", "q")]
