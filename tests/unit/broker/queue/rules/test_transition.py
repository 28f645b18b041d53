"""burrowmq.broker.queue.rules.transition: the order in which new settings reach a queue that has messages."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from burrowmq.broker.queue.context import QueueOptions
from burrowmq.broker.queue.rules.settings import Settings
from burrowmq.broker.queue.rules.transition import put_in_force


class Level:
    is_loading = False


class Context:
    options = QueueOptions()


class RecordingQueue:
    """A queue that is over its limit until what it loads has come."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.context = Context()
        self.levels = [Level()]
        self.is_deleted = False
        self.ready_count = 5
        self.ready_bytes = 0
        self.calls: list[str] = []
        self.waiting: list[Callable[[], None]] = []

    def apply_settings(self, settings: Settings) -> None:
        self.settings = settings
        self.calls.append(settings.overflow)

    def after_pump(self, callback: Callable[[], None]) -> None:
        self.waiting.append(callback)

    def pump(self) -> None:
        waiting, self.waiting = self.waiting, []
        for callback in waiting:
            callback()

    def page_out(self) -> int:
        self.calls.append("page_out")
        return 0

    def convert(self, version: int) -> None:
        self.calls.append(f"convert to {version}")

    def load_start_batch(self, max_bytes: int) -> None:
        self.calls.append("load")


def queue_with(**settings: Any) -> Any:
    return RecordingQueue(Settings(**settings))


def test_limits_come_before_the_overflow_behaviour() -> None:
    queue = queue_with()
    put_in_force(queue, Settings(max_length=9, overflow="reject-publish"))
    assert queue.calls == ["drop-head", "reject-publish"]


def test_with_rejecting_already_in_force_there_is_no_dropping() -> None:
    queue = queue_with(overflow="reject-publish")
    put_in_force(queue, Settings(max_length=1, overflow="reject-publish-dlx"))
    assert queue.calls == ["reject-publish-dlx"]


def test_rejecting_waits_for_the_excess_that_must_be_read() -> None:
    queue = queue_with()
    queue.levels[0].is_loading = True
    wanted = Settings(max_length=2, overflow="reject-publish")
    put_in_force(queue, wanted)
    queue.pump()
    assert queue.calls == ["drop-head"]
    queue.ready_count, queue.levels[0].is_loading = 2, False
    queue.pump()
    assert queue.settings == wanted


def test_settings_that_came_meanwhile_stay() -> None:
    queue = queue_with()
    queue.levels[0].is_loading = True
    put_in_force(queue, Settings(max_length=2, overflow="reject-publish"))
    newer = Settings(max_length=7)
    put_in_force(queue, newer)
    queue.pump()
    assert queue.settings == newer
    put_in_force(queue, Settings(max_length=2, overflow="reject-publish"))
    queue.is_deleted = True
    queue.pump()
    assert queue.settings.overflow == "drop-head"


def test_settings_like_those_that_drop_the_excess_stay_too() -> None:
    queue = queue_with()
    queue.levels[0].is_loading = True
    put_in_force(queue, Settings(max_length=2, overflow="reject-publish"))
    put_in_force(queue, Settings(max_length=2))
    queue.ready_count, queue.levels[0].is_loading = 2, False
    queue.pump()
    assert queue.settings == Settings(max_length=2)


def test_settings_already_in_force_change_nothing() -> None:
    queue = queue_with(max_length=2)
    put_in_force(queue, Settings(max_length=2))
    assert queue.calls == []


def test_a_changed_version_is_the_stores_business() -> None:
    queue = queue_with()
    put_in_force(queue, Settings(version=1))
    put_in_force(queue, Settings(version=1, max_length=9))
    put_in_force(queue, Settings(version=2, max_length=9))
    assert [call for call in queue.calls if "convert" in call] == ["convert to 1", "convert to 2"]


def test_modes() -> None:
    queue = queue_with()
    put_in_force(queue, Settings(mode="lazy"))
    put_in_force(queue, Settings(mode="lazy", max_length=9))
    put_in_force(queue, Settings(mode="default"))
    assert queue.calls == ["drop-head", "page_out", "drop-head", "drop-head", "load"]
