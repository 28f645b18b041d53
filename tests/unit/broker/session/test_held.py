"""HeldInput: order per channel, one bound for all."""

from __future__ import annotations

from burrowmq.broker.session.held import HELD_MAX, HeldInput
from burrowmq.protocol.events import MethodReceived
from burrowmq.protocol.methods import Basic


def event(channel: int, tag: int) -> MethodReceived:
    return MethodReceived(channel, Basic.Ack(delivery_tag=tag))


def test_each_channel_has_its_order():
    held = HeldInput()
    events = [event(1, 1), event(2, 2), event(1, 3)]
    for each in events:
        held.defer(each.channel, each)
    assert [held.pop(1), held.pop(1), held.pop(1)] == [events[0], events[2], None]
    assert [held.pop(2), held.pop(2), held.pop(3)] == [events[1], None, None]


def test_all_channels_share_the_bound():
    held = HeldInput()
    for index in range(HELD_MAX):
        assert not held.is_full
        held.defer(index % 7, event(index % 7, index))
    assert held.is_full
    held.pop(3)
    assert not held.is_full
