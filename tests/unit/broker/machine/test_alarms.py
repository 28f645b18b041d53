"""Alarms: when publishers are told, and what."""

from __future__ import annotations

from burrowmq.broker.machine.alarms import Alarms
from tests.support.bench.observer import RecordingObserver


def test_only_the_first_and_the_last_change_anything():
    changes: list[bool] = []
    observer = RecordingObserver()
    alarms = Alarms(observer, changes.append)
    for resource, is_on in [
        ("memory", True),
        ("memory", True),
        ("disk", True),
        ("memory", False),
        ("disk", False),
        ("disk", False),
    ]:
        alarms.update(resource, is_on)
    assert changes == [True, False]
    assert [name for name, _ in observer.events] == [
        "alarm_set",
        "alarm_set",
        "alarm_cleared",
        "alarm_cleared",
    ]


def test_each_alarm_has_its_cause_while_it_is_on() -> None:
    now = [100.0]
    alarms = Alarms(RecordingObserver(), lambda _: None, lambda: now[0])
    alarms.update("memory", True, "much used")
    now[0] = 200.0
    alarms.update("memory", True, "more used")
    alarms.update("disk", True, "little free")
    assert alarms.causes == {"memory": "much used", "disk": "little free"}
    assert alarms.since_s == {"memory": 100.0, "disk": 200.0}
    alarms.update("memory", False)
    assert set(alarms.causes) == set(alarms.since_s) == {"disk"}


def test_the_reason_names_each_resource_once():
    alarms = Alarms(RecordingObserver(), lambda _: None)
    for resource in ("disk", "memory", "store"):
        alarms.update(resource, True)
    assert alarms.reason == "low on disk & memory"
