"""Transition: the order in which new settings reach a queue that has messages."""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.broker.queue.outcome import Rejected
from burrowmq.broker.queue.rules.settings import Settings
from tests.support.messages import message
from tests.support.queue_bench import QueueBench


def filled(*, answers_later: bool = False, mode: str = "cached", **settings: Any) -> QueueBench:
    """A queue with five messages."""
    bench = QueueBench(mode=mode, answers_later=answers_later, **settings)
    bench.publish(*[message(b"%d" % n, persistent=True) for n in range(5)])
    return bench


def being_read() -> QueueBench:
    """A queue with five messages on disk, which must be read before they are dropped, since they are dead letters."""
    return filled(answers_later=True, queue_mode="lazy", dead_letter_exchange="")


def lazy(**settings: Any) -> Settings:
    return Settings(mode="lazy", dead_letter_exchange="", **settings)


def test_limits_come_before_the_overflow_behaviour() -> None:
    bench = filled()
    bench.queue.change_settings(Settings(max_length=2, overflow="reject-publish"))
    assert bench.queue.ready_count == 2
    assert isinstance(bench.publish(message(b"5")), Rejected)
    assert bench.drain() == [b"3", b"4"]


def test_with_rejecting_already_in_force_there_is_no_dropping() -> None:
    bench = filled(overflow="reject-publish")
    bench.queue.change_settings(Settings(max_length=1, overflow="reject-publish-dlx"))
    assert bench.queue.ready_count == 5
    assert bench.queue.settings.overflow == "reject-publish-dlx"


def test_rejecting_waits_for_the_excess_that_must_be_read() -> None:
    bench = being_read()
    wanted = lazy(max_length=2, overflow="reject-publish")
    bench.queue.change_settings(wanted)
    bench.queue.pump()
    assert (bench.queue.settings.overflow, bench.queue.ready_count) == ("drop-head", 5)
    bench.run()
    assert (bench.queue.settings, bench.queue.ready_count) == (wanted, 2)
    assert bench.dead == [("maxlen", b"0"), ("maxlen", b"1"), ("maxlen", b"2")]


@pytest.mark.parametrize("max_length", [2, 4])
def test_settings_that_came_meanwhile_stay(max_length: int) -> None:
    bench = being_read()
    bench.queue.change_settings(lazy(max_length=2, overflow="reject-publish"))
    newer = lazy(
        max_length=max_length
    )  # the first of these are what is in force until the excess is gone
    bench.queue.change_settings(newer)
    bench.run()
    assert bench.queue.settings == newer


def test_a_queue_that_is_deleted_meanwhile_keeps_the_settings_that_it_had() -> None:
    bench = being_read()
    bench.queue.change_settings(lazy(max_length=2, overflow="reject-publish"))
    bench.queue.delete()
    bench.run()
    assert bench.queue.settings.overflow == "drop-head"


def test_settings_already_in_force_change_nothing() -> None:
    bench = filled(max_length=9)
    bench.scheduler.queues.clear()
    bench.queue.is_dirty = False
    bench.queue.change_settings(Settings(max_length=9))
    assert bench.queue.ready_count == 5
    assert bench.scheduler.queues == []


def test_a_changed_version_is_the_stores_business() -> None:
    bench = filled()
    log = bench.engine.logs["q"]
    bench.queue.change_settings(Settings(version=1))
    assert log.version == 1
    log.version = 0
    bench.queue.change_settings(Settings(version=1, max_length=9))
    assert log.version == 0, "nothing was said, since the version is the same"
    bench.queue.change_settings(Settings(version=2, max_length=9))
    assert log.version == 2


def test_modes() -> None:
    bench = filled()
    bench.queue.change_settings(Settings(mode="lazy"))
    assert bench.queue.ram_ready_count == 0
    bench.queue.change_settings(Settings(mode="default"))
    assert bench.queue.ram_ready_count == 5, "one start batch"
    assert bench.drain() == [b"0", b"1", b"2", b"3", b"4"]
