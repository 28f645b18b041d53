"""Channel: tags, prefetch, settlements, holds, the end. Driven over the wire, looked at from inside."""

from __future__ import annotations

import gc
from typing import Any
from weakref import ref

import pytest
from pika import spec

from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.wire_client import method_bytes, publish_bytes


def ready(client: Client, count: int, queue: str = "q") -> None:
    client.call(1, spec.Queue.Declare(queue=queue))
    client.send(*[publish_bytes(1, "", queue, b"%d" % n) for n in range(count)])


def bodies(found: list[tuple[int, Any]]) -> list[bytes]:
    return [method.body for _, method in found if hasattr(method, "body")]


def test_tags_rise_over_consumers_and_gets():
    client = BrokerBench().connect(1)
    ready(client, 3)
    found = client.call(1, spec.Basic.Get(queue="q"), spec.Basic.Get(queue="q", no_ack=True))
    found += client.call(1, spec.Basic.Consume(queue="q"))
    assert [m.delivery_tag for _, m in found if hasattr(m, "body")] == [1, 2, 3]
    channel = client.session.channels[1]
    assert channel.unacked.count == 2
    assert (channel.metrics.get, channel.metrics.get_no_ack, channel.metrics.deliver) == (1, 1, 1)


def test_two_consumers_share_the_global_prefetch():
    client = BrokerBench().connect(1)
    ready(client, 5, "a")
    ready(client, 5, "b")
    client.call(1, spec.Basic.Qos(prefetch_count=3, global_qos=True))
    found = client.call(
        1,
        spec.Basic.Consume(queue="a", consumer_tag="a"),
        spec.Basic.Consume(queue="b", consumer_tag="b"),
    )
    assert len(bodies(found)) == 3
    by_tag = [m.consumer_tag for _, m in found if hasattr(m, "body")]
    assert client.session.channels[1].prefetch.delivered == 3
    more = client.call(1, spec.Basic.Ack(delivery_tag=2, multiple=True))
    assert len(bodies(more)) == 2
    by_tag += [m.consumer_tag for _, m in more if hasattr(m, "body")]
    assert set(by_tag) == {"a", "b"} or by_tag == ["a"] * 5
    assert len(bodies(client.call(1, spec.Basic.Qos(prefetch_count=0, global_qos=True)))) == 5


@pytest.mark.parametrize(
    ("limit", "queues", "expected"),
    [
        (1, ["q", "q"], "aabababababa"),
        (1, ["q", "q", "q"], "aabcabcabcab"),
        (2, ["q", "q", "q", "q"], "aaabcdabcdab"),
        (1, ["q", "r"], "aabababababa"),
        (1, ["q", "r", "s"], "aabcabcabcab"),
    ],
)
def test_a_shared_prefetch_is_for_whoever_waits_longest(limit, queues, expected):
    client = BrokerBench().connect(1)
    for queue in set(queues):
        ready(client, 12, queue)
    client.call(1, spec.Basic.Qos(prefetch_count=limit, global_qos=True))
    found = []
    for tag, queue in zip("abcd", queues, strict=False):
        found += client.call(1, spec.Basic.Consume(queue=queue, consumer_tag=tag))
    served = [method for _, method in found if hasattr(method, "body")]
    for number in range(12 - limit):
        more = client.call(1, spec.Basic.Ack(delivery_tag=served[number].delivery_tag))
        served += [method for _, method in more]
    assert "".join(method.consumer_tag for method in served) == expected


def test_a_shared_prefetch_set_later_unblocks_them_in_the_order_in_which_they_came():
    client = BrokerBench().connect(1)
    ready(client, 9)
    client.call(1, spec.Basic.Qos(prefetch_count=1))
    for tag in "ab":
        client.call(1, spec.Basic.Consume(queue="q", consumer_tag=tag))
    client.call(1, spec.Basic.Qos(prefetch_count=2, global_qos=True))
    found = client.call(1, spec.Basic.Ack(delivery_tag=2, multiple=True))
    assert [method.consumer_tag for _, method in found] == ["a", "b"]


def test_what_was_got_before_it_counts_for_the_global_prefetch_until_it_is_acked():
    client = BrokerBench().connect(1)
    ready(client, 5)
    client.call(1, spec.Basic.Get(queue="q"))
    client.call(1, spec.Basic.Qos(prefetch_count=2, global_qos=True))
    client.call(1, spec.Basic.Get(queue="q"))
    found = client.call(1, spec.Basic.Consume(queue="q", consumer_tag="a"))
    assert bodies(found) == [b"2"]
    assert bodies(client.call(1, spec.Basic.Ack(delivery_tag=2))) == []
    assert bodies(client.call(1, spec.Basic.Ack(delivery_tag=1))) == [b"3"]


def test_an_ack_that_is_not_committed_gives_no_credit_of_the_global_prefetch():
    """RabbitMQ: the limiter is told at commit."""
    client = BrokerBench().connect(1)
    ready(client, 5)
    client.call(1, spec.Tx.Select())
    client.call(1, spec.Basic.Qos(prefetch_count=5, global_qos=True))
    assert len(bodies(client.call(1, spec.Basic.Consume(queue="q")))) == 5
    client.call(1, spec.Basic.Ack(delivery_tag=4, multiple=True))
    ready(client.bench.connect(1), 5)
    assert bodies(client.read()) == []
    assert bodies(client.call(1, spec.Tx.Rollback())) == []
    client.call(1, spec.Basic.Ack(delivery_tag=4, multiple=True))
    assert len(bodies(client.call(1, spec.Tx.Commit()))) == 4


def test_a_global_prefetch_set_between_ack_and_commit_holds():
    client = BrokerBench().connect(1)
    ready(client, 5)
    client.call(1, spec.Tx.Select())
    assert len(bodies(client.call(1, spec.Basic.Consume(queue="q")))) == 5
    client.call(1, spec.Basic.Ack(delivery_tag=5, multiple=True))
    client.call(1, spec.Basic.Qos(prefetch_count=2, global_qos=True))
    client.call(1, spec.Tx.Commit())
    ready(client.bench.connect(1), 20)
    assert len(bodies(client.read())) == 2


def test_what_was_got_counts_for_the_global_prefetch_until_its_ack_is_committed():
    client = BrokerBench().connect(1)
    ready(client, 9)
    client.call(1, spec.Tx.Select(), *[spec.Basic.Get(queue="q")] * 3)
    client.call(1, spec.Basic.Qos(prefetch_count=4, global_qos=True))
    client.call(1, spec.Basic.Ack(delivery_tag=2, multiple=True))
    assert len(bodies(client.call(1, spec.Basic.Consume(queue="q")))) == 1
    assert len(bodies(client.call(1, spec.Tx.Commit()))) == 2


def test_two_consumers_of_one_queue_take_from_one_credit():
    client = BrokerBench().connect(1)
    ready(client, 10)
    client.call(1, spec.Basic.Qos(prefetch_count=3, global_qos=True))
    found = client.call(
        1,
        spec.Basic.Consume(queue="q", consumer_tag="a"),
        spec.Basic.Consume(queue="q", consumer_tag="b"),
    )
    assert bodies(found) == [b"0", b"1", b"2"]


def test_prefetch_per_consumer_holds_for_later_consumers_only():
    client = BrokerBench().connect(1)
    ready(client, 5)
    client.call(1, spec.Basic.Qos(prefetch_count=2))
    assert len(bodies(client.call(1, spec.Basic.Consume(queue="q", consumer_tag="a")))) == 2
    client.call(1, spec.Basic.Qos(prefetch_count=1))
    assert len(bodies(client.call(1, spec.Basic.Consume(queue="q", consumer_tag="b")))) == 1
    found = client.call(1, spec.Basic.Nack(delivery_tag=0, multiple=True, requeue=False))
    assert len(bodies(found)) == 2


@pytest.mark.parametrize(
    "method", [spec.Basic.Ack(9), spec.Basic.Reject(9), spec.Basic.Nack(9), spec.Basic.Ack(9, True)]
)
def test_an_unknown_tag_closes_the_channel(method):
    client = BrokerBench().connect(1)
    ((_, close),) = client.call(1, method)
    assert close.reply_text == "PRECONDITION_FAILED - unknown delivery tag 9"


@pytest.mark.parametrize(
    "method", [spec.Basic.Reject(1, requeue=False), spec.Basic.Nack(1, requeue=False)]
)
def test_what_is_rejected_is_not_counted_as_acked(method):
    client = BrokerBench().connect(1)
    ready(client, 2)
    client.call(1, spec.Basic.Get(queue="q"), spec.Basic.Get(queue="q"))
    channel, queue = client.session.channels[1], client.bench.vhost.queues["q"]
    counted = channel.session.metrics
    client.call(1, method)
    assert (channel.metrics.ack, queue.metrics.ack, counted.messages_acknowledged) == (0, 0, 0)
    assert queue.unacked_count == 1
    client.call(1, spec.Basic.Ack(2))
    assert (channel.metrics.ack, queue.metrics.ack, counted.messages_acknowledged) == (1, 1, 1)


def test_closing_gives_back_in_order_and_ends_consumers():
    bench = BrokerBench()
    client = bench.connect(1)
    ready(client, 3)
    client.call(1, spec.Basic.Consume(queue="q", consumer_tag="c"))
    channel = client.session.channels[1]
    client.call(1, spec.Channel.Close(200, "", 0, 0))
    queue = bench.vhost.queues["q"]
    assert (queue.ready_count, queue.unacked_count, queue.consumer_count) == (3, 0, 0)
    assert channel.credit() == 0
    channel.close()
    client.call(1, spec.Channel.Open())
    found = client.call(1, *[spec.Basic.Get(queue="q")] * 3)
    assert bodies(found) == [b"0", b"1", b"2"]
    assert all(m.redelivered for _, m in found)


def test_a_deleted_queue_cancels_its_consumers_where_clients_want_to_know():
    bench = BrokerBench()
    plain, informed = bench.connect(1), bench.connect(1, consumer_cancel_notify=True)
    ready(plain, 0)
    for client in (plain, informed):
        client.call(1, spec.Basic.Consume(queue="q", consumer_tag="c"))
    plain.call(1, spec.Queue.Delete(queue="q"))
    assert plain.read() == []
    ((_, cancel),) = informed.read()
    assert (type(cancel).__name__, cancel.consumer_tag) == ("Cancel", "c")
    assert informed.session.channels[1].consumers == {}


def test_what_leaves_after_the_channel_was_closed_is_not_sent():
    bench = BrokerBench()
    client = bench.connect(1)
    client.send(method_bytes(1, spec.Queue.Declare(queue="d", durable=True)))
    channel = client.session.channels[1]
    client.lose()
    assert channel.is_closed
    bench.engine.commit()
    bench.run()
    assert client.read() == []


@pytest.mark.parametrize("is_publishing", [False, True])
def test_who_gives_up_while_the_disk_takes_nothing_is_not_kept(is_publishing: bool):
    bench = BrokerBench(is_verified=False)
    bench.connect(1).call(1, spec.Queue.Declare(queue="d", durable=True))
    persistent = spec.BasicProperties(delivery_mode=2)
    gone = []
    for _ in range(3):
        client = bench.connect(1)
        if is_publishing:
            client.call(1, spec.Confirm.Select())
            client.send(publish_bytes(1, "", "d", b"x", properties=persistent))
        else:
            client.send(method_bytes(1, spec.Queue.Declare(queue="d", durable=True)))
        assert client.session.channels[1].is_waiting
        gone.append(ref(client.session))
        client.lose()
        del client
    gc.collect()
    assert [each() for each in gone] == [None, None, None]
    waits = bench.connect(1)
    waits.send(method_bytes(1, spec.Queue.Declare(queue="d", durable=True)))
    bench.commit()
    bench.commit()
    assert [type(method).__name__ for _, method in waits.read()] == ["DeclareOk"]
