"""burrowmq.broker.channel.prefetch: what counts for the shared limit, and who is next when there is room."""

from __future__ import annotations

import pytest

from burrowmq.broker.channel.prefetch import Prefetch
from burrowmq.broker.queue.serve.consumer import Consumer
from tests.support.queue_bench import Inbox


@pytest.fixture
def prefetch() -> Prefetch:
    return Prefetch()


def consumers(*tags: str) -> list[Consumer]:
    channel = Inbox()
    return [Consumer(tag, channel) for tag in tags]


def test_what_consumers_were_sent_counts_for_the_shared_limit(prefetch: Prefetch) -> None:
    (consumer,) = consumers("a")
    prefetch.share(5)
    prefetch.sent(consumer, 3)
    assert (prefetch.room, consumer.unacked_count) == (2, 3)
    prefetch.settled(consumer, 2)
    assert (prefetch.room, consumer.unacked_count) == (4, 1)


def test_of_what_was_got_only_that_before_the_limit_counts_until_it_is_acked(
    prefetch: Prefetch,
) -> None:
    prefetch.sent(None, 2)
    prefetch.share(5)
    prefetch.sent(None, 4)
    assert prefetch.room == 3
    prefetch.share(6)  # still the same sharing
    assert prefetch.room == 4
    prefetch.settled(None, 5)
    assert prefetch.room == 5


def test_a_limit_for_each_ends_the_shared_one(prefetch: Prefetch) -> None:
    prefetch.share(5)
    prefetch.limit_each(7)
    assert (prefetch.for_each, prefetch.shared) == (7, 0)
    prefetch.share(2)
    assert (prefetch.for_each, prefetch.shared) == (7, 2)


def test_blocked_consumers_have_places_in_the_order_in_which_they_began_to_wait(
    prefetch: Prefetch,
) -> None:
    first, second, third = consumers("a", "b", "c")
    prefetch.wait(third)
    assert not third.waiting_place  # nothing is shared
    prefetch.share(1)
    for each in (second, third, first, second):
        prefetch.wait(each)
    assert [each.waiting_place for each in (second, third, first)] == [1, 2, 3]
