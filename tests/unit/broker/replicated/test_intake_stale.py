"""A front-end without a connection: what it has pulled is others' after a while.

Covers: broker/replicated/intake.py, broker/replicated/queue.py
"""

from __future__ import annotations

from typing import Any

import pytest
from pika import spec

from burrowmq.broker.replicated.queue import ReplicatedQueue
from tests.support.bench.client import Client
from tests.support.cluster_bench import ClusterBench
from tests.support.front_ends_bench import FrontEnds, confirming, consuming, declare_queue
from tests.support.quorum_clients import publish
from tests.support.wire_client import method_bytes

SINGLE = {"x-single-active-consumer": True}


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> FrontEnds:
    return FrontEnds(monkeypatch)


def taken(client: Client) -> list[int]:
    """Numbers of the messages that have come, which are acknowledged."""
    found = [each for _, each in client.read() if each.NAME == "Basic.Deliver"]
    if found:
        client.send(method_bytes(1, spec.Basic.Ack(found[-1].delivery_tag, multiple=True)))
    return [int(each.body) for each in found]


def all_taken(ends: FrontEnds, client: Client) -> list[int]:
    numbers: list[int] = []
    while some := taken(client):
        numbers += some
        ends.settle(0.2)
    return numbers


def queue_of(bench: ClusterBench) -> ReplicatedQueue:
    found = bench.vhost.queues["q"]
    assert isinstance(found, ReplicatedQueue)
    return found


def cut_off_with_some(ends: FrontEnds, count: int, **arguments: Any) -> tuple[Client, ClusterBench]:
    """A consumer at a front-end that has pulled more than that has taken, and has lost its connection."""
    one = ends.start()
    ends.start()
    client = confirming(one)
    declare_queue(client, **arguments)
    ends.settle()
    publish(client, *[b"%d" % number for number in range(count)])
    ends.settle(0.5)
    consumer = consuming(ends, one, 100)
    assert queue_of(one)._shelf.count > 0
    one.own_link.lose()
    ends.settle(0.1)
    return consumer, one


@pytest.mark.parametrize(("arguments", "seconds"), [({}, 8.0), (SINGLE, 4.0)])
def test_what_was_pulled_is_given_out_for_a_while(
    ends: FrontEnds, arguments: dict[str, Any], seconds: float
) -> None:
    consumer, _ = cut_off_with_some(ends, 900, **arguments)
    ends.settle(seconds - 1.0)
    assert taken(consumer) == list(range(100))
    ends.settle(0.2)
    assert taken(consumer) == list(range(100, 200))
    ends.settle(2.0)
    taken(consumer)  # of before
    ends.settle(0.2)
    assert taken(consumer) == []


def test_who_comes_back_gives_nothing_out_that_others_have_acknowledged(ends: FrontEnds) -> None:
    consumer, one = cut_off_with_some(ends, 900)
    ends.settle(10.2)
    (stream,) = ends.world.streams.values()
    for sequence in sorted(stream.counts, reverse=True):
        ends.world.again(stream, sequence)
    others = all_taken(ends, consuming(ends, ends.benches[1], 100))
    assert len(others) == 900
    one.own_link.open()
    ends.settle(1)
    mine = all_taken(ends, consumer)
    assert set(mine) <= set(range(100)), "what the client held"


def test_who_comes_back_goes_on_with_what_is_still_there(ends: FrontEnds) -> None:
    consumer, one = cut_off_with_some(ends, 900)
    ends.settle(9)
    one.own_link.open()
    (stream,) = ends.world.streams.values()
    for sequence in sorted(stream.counts, reverse=True):
        ends.world.again(stream, sequence)
    ends.settle(1)
    assert set(all_taken(ends, consumer)) == set(range(900))
