"""tx.*: nothing is seen before the commit, everything after it."""

from __future__ import annotations

from typing import Any

import pytest
from pika import BasicProperties, spec

from burrowmq.broker.channel import transaction as transaction_module
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.fake_ticket import bind_elsewhere
from tests.support.wire_client import method_bytes, publish_bytes


def names(found: list[tuple[int, Any]]) -> list[str]:
    return [type(method).__name__ for _, method in found]


def transactional(bench: BrokerBench, **options: Any) -> Client:
    client = bench.connect(1)
    client.send(method_bytes(1, spec.Queue.Declare(queue="q", **options)))
    if options.get("durable"):
        bench.commit()
    client.read()
    assert names(client.call(1, spec.Tx.Select(), spec.Tx.Select())) == ["SelectOk", "SelectOk"]
    return client


def test_commit_publishes_and_waits_for_the_disk():
    bench = BrokerBench()
    client = transactional(bench, durable=True)
    queue = bench.vhost.queues["q"]
    client.send(publish_bytes(1, "", "q", b"1", properties=BasicProperties(delivery_mode=2)))
    assert queue.ready_count == 0
    assert client.call(1, spec.Tx.Commit()) == []
    assert queue.ready_count == 1
    bench.commit()
    assert client.names() == ["Tx.CommitOk"]


def test_settlements_take_effect_at_commit():
    bench = BrokerBench()
    client = transactional(bench)
    queue = bench.vhost.queues["q"]
    client.send(*[publish_bytes(1, "", "q", b"%d" % n) for n in range(3)])
    assert names(client.call(1, spec.Tx.Commit())) == ["CommitOk"]
    client.call(1, *[spec.Basic.Get(queue="q")] * 3)
    client.call(1, spec.Basic.Ack(1), spec.Basic.Reject(2, requeue=True))
    assert (queue.unacked_count, queue.ready_count) == (3, 0)
    assert names(client.call(1, spec.Tx.Commit())) == ["CommitOk"]
    assert (queue.unacked_count, queue.ready_count) == (1, 1)


def test_rollback_forgets_publishes_and_keeps_deliveries_outstanding():
    bench = BrokerBench()
    client = transactional(bench)
    queue = bench.vhost.queues["q"]
    bench.connect(1).send(publish_bytes(1, "", "q", b"x"))
    client.call(1, spec.Basic.Get(queue="q"))
    client.send(publish_bytes(1, "", "q", b"never"), method_bytes(1, spec.Basic.Ack(1)))
    assert names(client.call(1, spec.Tx.Rollback())) == ["RollbackOk"]
    assert (queue.unacked_count, queue.ready_count) == (1, 0)
    client.call(1, spec.Basic.Ack(1))
    client.call(1, spec.Tx.Commit())
    assert queue.unacked_count == 0


@pytest.mark.parametrize("is_committed", [True, False])
def test_publishes_are_counted_with_the_commit_and_never_if_rolled_back(*, is_committed: bool):
    bench = BrokerBench()
    client = transactional(bench)
    channel, totals = client.session.channels[1].metrics, client.session.metrics
    exchange = bench.vhost.exchanges[""]

    def counted() -> tuple[int, ...]:
        return (
            exchange.publish_in,
            channel.publish,
            channel.drop_unroutable,
            totals.messages_published,
        )

    for key in ("q", "none", "q"):
        client.send(publish_bytes(1, "", key, b"x"))
    assert counted() == (0, 0, 0, 0)
    assert (totals.messages_received, totals.messages_received_confirm) == (3, 3)
    client.call(1, spec.Tx.Commit() if is_committed else spec.Tx.Rollback())
    assert counted() == ((3, 3, 1, 3) if is_committed else (0, 0, 0, 0))
    assert exchange.publish_out == (2 if is_committed else 0)
    assert bench.vhost.queues["q"].metrics.publish == (2 if is_committed else 0)
    assert (totals.messages_received, totals.messages_received_confirm) == (3, 3)
    other = bench.connect(1)
    other.send(publish_bytes(1, "", "q", b"x"))
    assert totals.messages_published == (4 if is_committed else 1)


def test_acknowledgements_of_nothing_are_not_kept():
    client = transactional(BrokerBench())
    transaction = client.session.channels[1].transaction
    assert transaction is not None
    for _ in range(10):
        client.call(1, spec.Basic.Ack(0, True))
        client.call(1, spec.Basic.Nack(0, multiple=True, requeue=True))
    assert transaction.settlements == []
    assert names(client.call(1, spec.Tx.Commit())) == ["CommitOk"]


def test_closing_rolls_back():
    bench = BrokerBench()
    client = transactional(bench)
    bench.connect(1).send(publish_bytes(1, "", "q", b"x"))
    client.call(1, spec.Basic.Get(queue="q"))
    client.send(publish_bytes(1, "", "q", b"never"), method_bytes(1, spec.Basic.Ack(1)))
    client.call(1, spec.Channel.Close(200, "", 0, 0))
    queue = bench.vhost.queues["q"]
    assert (queue.unacked_count, queue.ready_count) == (0, 1)


def requester_of(bench: BrokerBench) -> tuple[Client, str]:
    """A client that consumes replies, and the key that they are sent to."""
    client = bench.connect(1)
    client.call(1, spec.Basic.Consume(queue="amq.rabbitmq.reply-to", consumer_tag="r", no_ack=True))
    return client, client.session.channels[1].reply_target.key.decode()


def test_a_direct_reply_does_not_wait_for_the_commit():
    """As in RabbitMQ, where it is sent while routing; a mandatory one comes back at commit as unroutable."""
    bench = BrokerBench()
    requester, key = requester_of(bench)
    client = transactional(bench)
    cc = BasicProperties(headers={"CC": ["q"]})
    client.send(publish_bytes(1, "", key, b"1", mandatory=True))
    client.send(publish_bytes(1, "", key, b"2", properties=cc))
    assert [method.body for _, method in requester.read()] == [b"1", b"2"]
    assert bench.vhost.queues["q"].ready_count == 0
    assert client.read() == []
    assert names(client.call(1, spec.Tx.Commit()))[0] == "Return"
    assert bench.vhost.queues["q"].ready_count == 1
    assert requester.read() == []
    client.send(publish_bytes(1, "", key, b"3"))
    client.call(1, spec.Tx.Rollback())
    assert [method.body for _, method in requester.read()] == [b"3"]


def test_a_commit_sends_nothing_on_a_requesters_closed_channel():
    bench = BrokerBench()
    requester, key = requester_of(bench)
    client = transactional(bench)
    client.send(publish_bytes(1, "", key, b"late"))
    requester.read()
    assert names(requester.call(1, spec.Channel.Close(200, "", 0, 0))) == ["CloseOk"]
    client.call(1, spec.Tx.Commit())
    assert requester.read() == []


@pytest.mark.parametrize("method", [spec.Tx.Commit(), spec.Tx.Rollback()])
def test_only_on_transactional_channels(method):
    ((_, close),) = BrokerBench().connect(1).call(1, method)
    assert close.reply_text == "PRECONDITION_FAILED - channel is not transactional"


def test_not_on_a_channel_in_confirm_mode():
    client = BrokerBench().connect(1)
    client.call(1, spec.Confirm.Select())
    ((_, close),) = client.call(1, spec.Tx.Select())
    assert close.reply_text == "PRECONDITION_FAILED - cannot switch from confirm to tx mode"


def test_a_queue_that_refuses_makes_the_commit_partial():
    bench = BrokerBench()
    arguments = {"x-max-length": 1, "x-overflow": "reject-publish"}
    client = transactional(bench, arguments=arguments)
    client.send(*[publish_bytes(1, "", "q", b"x")] * 2)
    ((_, close),) = client.call(1, spec.Tx.Commit())
    assert close.reply_text == "PRECONDITION_FAILED - partial tx completion"
    assert bench.vhost.queues["q"].ready_count == 1


def test_a_transaction_that_grows_without_end_ends_its_connection(monkeypatch):
    monkeypatch.setattr(transaction_module, "TRANSACTION_BYTES", 10_000)
    bench = BrokerBench()
    client = transactional(bench)
    client.send(*[publish_bytes(1, "", "q", b"x" * 1000)] * 8)
    ((channel, close),) = client.read()
    assert (channel, close.reply_code) == (0, 506)
    assert close.reply_text == "RESOURCE_ERROR - transaction exceeds 10000 bytes"
    assert bench.vhost.queues["q"].ready_count == 0


def test_a_commit_that_waits_for_the_disk_demands_its_acks():
    bench = BrokerBench()
    client = bench.connect(1)
    queue = bench.queue("d", durable=True)
    persistent = publish_bytes(1, "", "d", b"x", properties=BasicProperties(delivery_mode=2))
    client.send(persistent)
    client.call(1, spec.Basic.Get(queue="d"))
    client.call(1, spec.Tx.Select())
    client.call(1, spec.Basic.Ack(1))
    client.send(persistent)
    client.call(1, spec.Tx.Commit())
    assert bench.engine.acks_required == [{queue.levels[0].log.queue_id}]


def test_a_commit_of_what_need_not_last_is_answered_at_once_unless_it_acknowledges_what_does():
    bench = BrokerBench()
    client = transactional(bench, durable=True)
    assert names(client.call(1, spec.Tx.Commit())) == ["CommitOk"]
    client.send(publish_bytes(1, "", "q", b"transient"))
    assert names(client.call(1, spec.Tx.Commit())) == ["CommitOk"]
    assert bench.engine.in_flight is None
    other = bench.connect(1)
    other.send(publish_bytes(1, "", "q", b"1", properties=BasicProperties(delivery_mode=2)))
    client.call(1, *[spec.Basic.Get(queue="q")] * 2)
    client.call(1, spec.Basic.Ack(2))
    client.send(publish_bytes(1, "", "q", b"transient"))
    assert client.call(1, spec.Tx.Commit()) == []
    bench.commit()
    assert client.names() == ["Tx.CommitOk"]


def test_a_commit_waits_for_the_dead_letter_of_what_expires_on_arrival():
    bench = BrokerBench()
    client = transactional(bench, durable=True)
    arguments = {"x-message-ttl": 0, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"}
    client.send(method_bytes(1, spec.Queue.Declare(queue="now", durable=True, arguments=arguments)))
    bench.commit()
    client.read()
    client.send(publish_bytes(1, "", "now", b"1", properties=BasicProperties(delivery_mode=2)))
    assert client.call(1, spec.Tx.Commit()) == []
    assert bench.vhost.queues["q"].ready_count == 1
    bench.commit()
    assert client.names() == ["Tx.CommitOk"]


@pytest.mark.parametrize("is_refused", [False, True])
@pytest.mark.parametrize("is_first", [False, True])
def test_commit_waits_for_what_is_kept_elsewhere(is_refused: bool, is_first: bool) -> None:
    bench = BrokerBench()
    client = transactional(bench, durable=True)
    elsewhere = bind_elsewhere(bench, "amq.direct", b"there")
    persistent = BasicProperties(delivery_mode=2)
    client.send(
        publish_bytes(1, "amq.direct", "there", b"1"),
        publish_bytes(1, "", "q", b"2", properties=persistent),
    )
    assert client.call(1, spec.Tx.Commit()) == []
    steps = [lambda: elsewhere.tickets[0].finish(*[0][:is_refused]), bench.commit]
    for step in steps if is_first else reversed(steps):
        assert client.names() == []
        step()
    bench.run()
    assert client.names() == (["Channel.Close"] if is_refused else ["Tx.CommitOk"])
