"""Refused acks that transactions wait for, as confirms do: told once, and to all that were sent before that was seen.

Covers: broker/channel/channel.py, broker/session/session.py
"""

from __future__ import annotations

from typing import Any

import pytest
from pika import spec

from burrowmq.broker.queue.queue import Queue
from tests.support.bench.client import Client
from tests.support.bench.durable import (
    PERSISTENT,
    connect,
    declare,
    names,
    published,
    refuse,
    slow_disk,
)
from tests.support.bench.node import NodeBench
from tests.support.fake_ticket import FakeTicket
from tests.support.wire_client import method_bytes, publish_bytes


def acking(bench: NodeBench) -> Client:
    """Who has two messages of queue bad, whose acks the disk refuses, and publishes to queue good."""
    client = connect(bench)
    for name in ("bad", "good"):
        declare(client, name)
    client.call(1, spec.Confirm.Select())
    client.send(published("bad"), published("bad"))
    assert names(client) == ["Basic.Ack"]
    client.call(1, spec.Basic.Consume(queue="bad", consumer_tag="c"))
    client.read()
    for number in (2, 3):
        client.call(number, spec.Channel.Open())
        client.call(number, spec.Tx.Select())
    refuse(bench)
    return client


def transaction(number: int) -> bytes:
    """One persistent message to queue good, and its commit."""
    sent = publish_bytes(number, "", "good", b"body", properties=PERSISTENT)
    return sent + method_bytes(number, spec.Tx.Commit())


def test_a_transaction_that_fails_for_refused_acks_has_told_of_them(bench: NodeBench) -> None:
    client = acking(bench)
    client.call(1, spec.Basic.Ack(delivery_tag=1))
    client.send(transaction(2))
    assert names(client) == ["Channel.Close"]
    client.send(transaction(3))
    assert names(client) == ["Tx.CommitOk"]
    client.call(1, spec.Basic.Ack(delivery_tag=2))
    client.send(published("good"))
    assert names(client) == ["Basic.Nack"], "another ack, of which nobody was told"


@pytest.mark.parametrize("first", ["confirm", "transaction"])
def test_a_transaction_sent_before_anybody_was_told_fails_too(bench: NodeBench, first: str) -> None:
    client = acking(bench)
    with slow_disk(bench) as done:
        told = published("good") if first == "confirm" else transaction(2)
        client.send(method_bytes(1, spec.Basic.Ack(delivery_tag=1)), told)
        client.send(transaction(3))
        assert names(client) == []
        done()
    assert sorted(names(client)) == sorted(
        ["Basic.Nack" if first == "confirm" else "Channel.Close", "Channel.Close"]
    )


def test_a_nack_that_a_ticket_holds_up_has_told_nobody_yet(
    bench: NodeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = acking(bench)
    declare(client, "elsewhere")
    for name in ("good", "elsewhere"):
        client.call(1, spec.Queue.Bind(queue=name, exchange="amq.fanout"))
    ticket, publish = FakeTicket(1), Queue.publish

    def publish_there(queue: Queue, *run: Any) -> Any:
        return ticket if queue.name == "elsewhere" else publish(queue, *run)

    monkeypatch.setattr(Queue, "publish", publish_there)
    client.call(1, spec.Basic.Ack(delivery_tag=1))
    client.send(publish_bytes(1, "amq.fanout", "", b"body", properties=PERSISTENT))
    assert names(client) == []
    client.send(published("good"))
    assert names(client) == ["Basic.Nack"], "the first that the client hears of it"
    client.send(published("good"))
    assert names(client) == ["Basic.Ack"]
    bench.perform(ticket.finish)
    assert names(client) == ["Basic.Nack"]
