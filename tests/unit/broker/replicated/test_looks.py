"""When a queue looks at its stream."""

from __future__ import annotations

from burrowmq.broker.replicated.looks import (
    IDLE_MS,
    LOOK_MS,
    NEW_MS,
    SETTLED_MS,
    TRIM_BYTES,
    TRIM_COUNT,
    Looks,
)


def test_where_nothing_happens_a_look_is_rare_and_not_all_come_at_once() -> None:
    looks = Looks(1_000.0)
    looks.looked(50_000.0)
    assert looks.due_ms() == 50_000.0 + IDLE_MS
    other = Looks(0.0, 0.5)
    other.looked(50_000.0)
    assert other.due_ms() == 50_000.0 + 1.5 * IDLE_MS


def test_a_queue_that_is_new_is_looked_at_once_its_servers_have_heard_each_other() -> None:
    """Else it is shown as one that lacks a member, for a minute or two."""
    looks = Looks(1_000.0)
    looks.looked(1_100.0)  # somebody was in a hurry
    assert looks.due_ms() == 1_000.0 + NEW_MS
    looks.looked(1_000.0 + NEW_MS)
    assert looks.due_ms() == 1_000.0 + NEW_MS + IDLE_MS
    assert Looks(0.0, 0.5).due_ms() == 1.5 * NEW_MS


def test_a_look_comes_a_while_after_the_last_and_once_more_when_all_has_arrived() -> None:
    looks = Looks(0.0)
    looks.stirred(100_000.0)
    assert looks.due_ms() == LOOK_MS
    looks.looked(100_000.0 + SETTLED_MS - 1)
    assert looks.due_ms() == 100_000.0 + SETTLED_MS - 1 + LOOK_MS
    looked_ms = looks.due_ms()
    looks.looked(looked_ms)
    assert looks.due_ms() == looked_ms + IDLE_MS


def test_much_that_is_acknowledged_is_trimmed_at_once() -> None:
    for count, size in ((TRIM_COUNT, 1.0), (1, float(TRIM_BYTES))):
        looks = Looks(0.0)
        looks.acknowledged(count, size, 10.0)
        assert looks.due_ms() == 0.0
        looks.looked(10.0)
        assert looks.due_ms() == 10.0 + LOOK_MS
