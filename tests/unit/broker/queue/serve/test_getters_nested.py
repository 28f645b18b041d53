"""Getters: many channels that wait for one read, each with another basic.get behind it, do not answer inside one another.

Covers: broker/queue/serve/getters.py
"""

from __future__ import annotations

import pytest
from pika import spec

from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.wire_client import method_bytes, publish_bytes

CHANNELS = 200
PERSISTENT = spec.BasicProperties(delivery_mode=2)


def lazy_queue(count: int) -> tuple[BrokerBench, Client]:
    bench = BrokerBench(answers_later=True, is_verified=False)
    client = bench.connect(1)
    client.call(1, spec.Queue.Declare(queue="q", arguments={"x-queue-mode": "lazy"}))
    client.send(publish_bytes(1, "", "q", b"x", properties=PERSISTENT) * count)
    # So many were taken of late that a read brings many.
    client.send(method_bytes(1, spec.Basic.Get(queue="q", no_ack=True)) * 1500)
    while bench.engine.reads:
        bench.perform(bench.engine.answer_reads)
    bench.vhost.queues["q"].paging.page_out()  # type: ignore[attr-defined]
    return bench, client


def two_gets_on_each_channel(bench: BrokerBench) -> Client:
    client = bench.connect(1)
    for number in range(2, CHANNELS + 1):
        client.call(number, spec.Channel.Open())
    gets = [method_bytes(number, spec.Basic.Get(queue="q")) for number in range(1, CHANNELS + 1)]
    client.send(*gets, *gets)
    assert all(channel.is_held for channel in client.session.channels.values())
    return client


@pytest.mark.parametrize("is_purged", [False, True])
def test_as_many_channels_as_wait_are_answered(is_purged: bool) -> None:
    bench, other = lazy_queue(4000)
    client = two_gets_on_each_channel(bench)
    if is_purged:
        other.call(1, spec.Queue.Purge(queue="q"))
    while bench.engine.reads:
        bench.perform(bench.engine.answer_reads)
    wanted = spec.Basic.GetEmpty if is_purged else spec.Basic.GetOk
    assert [type(found) for _, found in client.read()] == [wanted] * 2 * CHANNELS


def test_as_many_queues_as_wait_are_served() -> None:
    """Each channel waits for a queue of its own, and then asks the next one, which waits for the same turn."""
    bench = BrokerBench(answers_later=True, is_verified=False)
    client = bench.connect(1)
    numbers = range(1, CHANNELS + 1)
    for number in numbers:
        if number > 1:
            client.call(number, spec.Channel.Open())
        client.call(1, spec.Queue.Declare(queue=f"{number}", arguments={"x-queue-mode": "lazy"}))
        client.send(publish_bytes(1, "", f"{number}", b"x", properties=PERSISTENT) * 2)
        bench.vhost.queues[f"{number}"].paging.page_out()  # type: ignore[attr-defined]
    firsts = [method_bytes(number, spec.Basic.Get(queue=f"{number}")) for number in numbers]
    nexts = [
        method_bytes(number, spec.Basic.Get(queue=f"{number % CHANNELS + 1}")) for number in numbers
    ]
    client.send(*firsts, *nexts)
    assert all(channel.is_held for channel in client.session.channels.values())
    while bench.engine.reads:
        bench.perform(bench.engine.answer_reads)
    assert [type(found) for _, found in client.read()] == [spec.Basic.GetOk] * 2 * CHANNELS
