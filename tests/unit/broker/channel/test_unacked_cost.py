"""Unacked: an ack with multiple costs what it settles, however many deliveries are out behind that.

Covers: broker/channel/unacked.py
"""

from __future__ import annotations

from burrowmq.broker.channel.unacked import Delivery, Unacked
from burrowmq.broker.queue.run import TRANSIENT, DeliveryRun
from tests.support.messages import message
from tests.support.queue_bench import QueueBench


class Watched(list[Delivery]):
    """Counts what slices copy."""

    copied = 0

    def __getitem__(self, place):
        found = super().__getitem__(place)
        if isinstance(place, slice):
            Watched.copied += len(found)
        return found


def test_acks_with_multiple_copy_nothing_that_stays_out():
    origin = QueueBench().queue.origins[0]
    unacked = Unacked()
    unacked._deliveries = Watched()
    for tag in range(1, 2001):
        unacked.add(Delivery(tag, origin, DeliveryRun((tag,), [message()], 0, TRANSIENT), None))
    Watched.copied = 0
    for tag in range(1, 1001):
        (piece,) = unacked.settle_up_to(tag)
        assert list(piece.tags) == [tag]
    assert Watched.copied < 10_000  # 1,500,000 with a copy of all that is out for each
