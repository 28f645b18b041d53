"""What is remembered of publishes: by exchange, up to a limit, whether a queue took them or not."""

from __future__ import annotations

from typing import Any

import pytest
from pika import spec

from burrowmq.broker.vhost import recorder
from burrowmq.broker.vhost.recorder import Recorder
from burrowmq.protocol.properties import body
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.wire_client import publish_bytes


def recording() -> tuple[BrokerBench, Client, Recorder]:
    bench = BrokerBench()
    client = bench.connect(1)
    client.call(1, spec.Queue.Declare(queue="q"))
    bench.vhost.tracer = found = Recorder(bench.vhost, "rabbit@here", bench.scheduler)
    return bench, client, found


def bodies(messages: list[Any]) -> list[bytes]:
    return [body(each.raw) for each in messages]


def test_publishes_are_remembered_by_their_exchange_and_deliveries_are_not() -> None:
    bench, client, found = recording()
    client.send(
        publish_bytes(1, "", "q", b"a"),
        publish_bytes(1, "amq.topic", "nowhere", b"b"),
        publish_bytes(1, "", "q", b"c"),
    )
    client.call(1, spec.Basic.Consume(queue="q", no_ack=True))
    bench.run()
    assert bodies(found.of(b"")) == [b"a", b"c"]
    assert bodies(found.of(b"amq.topic")) == [b"b"]
    assert found.of(b"amq.direct") == []


def test_the_oldest_are_forgotten(monkeypatch: Any) -> None:
    monkeypatch.setattr(recorder, "RECORDED_MAX", 2)
    _, client, found = recording()
    client.send(*[publish_bytes(1, "", "q", b"%d" % n) for n in range(4)])
    assert bodies(found.of(b"")) == [b"2", b"3"]


def test_what_is_remembered_has_a_limit_in_octets_and_may_begin_with_what_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench, client, found = recording()
    client.send(*[publish_bytes(1, "", "q", b"%d" % n * 100) for n in range(4)])
    bench.run()
    assert len(found.all()) == 4
    monkeypatch.setattr(recorder, "RECORDED_BYTES", 250)
    again = Recorder(bench.vhost, "rabbit@here", bench.scheduler, found.all())
    assert bodies(again.all()) == [b"2" * 100, b"3" * 100]
