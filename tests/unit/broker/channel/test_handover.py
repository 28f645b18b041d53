"""What was routed several ways: each queue's share and its order, refusals, returns, confirms booked once."""

from __future__ import annotations

from typing import Any

from pika import BasicProperties, spec

from burrowmq.broker.exchange.binding import Edge
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.fake_ticket import bind_elsewhere
from tests.support.wire_client import publish_bytes


def publisher(bench: BrokerBench) -> Client:
    client = bench.connect(1)
    client.call(1, spec.Confirm.Select())
    return client


def publish(exchange: str, key: str, body: bytes, **options: Any) -> bytes:
    return publish_bytes(1, exchange, key, body, **options)


def answers(client: Client) -> list[tuple[str, int, bool]]:
    return [
        (m.NAME, m.delivery_tag, m.multiple) for _, m in client.read() if "Return" not in m.NAME
    ]


def test_refused_messages_are_told_by_their_own_numbers() -> None:
    bench = BrokerBench()
    bench.queue("free")
    bench.queue("full", arguments={"x-max-length": 1, "x-overflow": "reject-publish"})
    client = publisher(bench)
    client.send(
        publish("", "free", b"1"),
        publish("", "full", b"2"),
        publish("", "full", b"3"),
        publish("", "free", b"4"),
        publish("", "full", b"5"),
        publish("", "free", b"6"),
    )
    assert answers(client) == [
        ("Basic.Ack", 2, True),
        ("Basic.Nack", 3, True),
        ("Basic.Ack", 4, False),
        ("Basic.Nack", 5, True),
        ("Basic.Ack", 6, False),
    ]
    assert bench.vhost.queues["free"].ready_count == 3


def test_returns_of_several_exchanges_leave_as_the_messages_came_and_before_the_confirm() -> None:
    bench = BrokerBench()
    bench.queue("there")
    client = publisher(bench)
    addresses = [("", "a"), ("amq.direct", "b"), ("", "there"), ("", "c"), ("amq.direct", "d")]
    client.send(*[publish(exchange, key, b"", mandatory=True) for exchange, key in addresses])
    found = client.read()
    keys = [method.routing_key for _, method in found[:-1]]
    assert keys == ["a", "b", "c", "d"]
    assert (found[-1][1].NAME, found[-1][1].delivery_tag) == ("Basic.Ack", 5)
    assert bench.metrics.messages_unroutable_returned == 4


def test_a_queue_that_two_ways_lead_to_has_its_messages_in_their_order() -> None:
    bench = BrokerBench(default_mode="cached")
    for name in ("odd", "even", "all"):
        bench.queue(name)
    for queue, pattern in (("odd", b"odd.*"), ("even", b"even.*"), ("all", b"#")):
        bench.vhost.bind(Edge("amq.topic", "queue", queue, pattern, {}))
    client = publisher(bench)
    client.send(
        *[
            publish("amq.topic", f"{'even' if at % 2 else 'odd'}.{at}", b"%d" % at)
            for at in range(6)
        ]
    )
    held = {
        name: [message.raw[-2:-1] for message in queue.levels[0].ram.messages]
        for name, queue in bench.vhost.queues.items()
    }
    assert held == {
        "odd": [b"0", b"2", b"4"],
        "even": [b"1", b"3", b"5"],
        "all": [b"%d" % at for at in range(6)],
    }
    assert answers(client) == [("Basic.Ack", 6, True)]
    exchange = bench.vhost.exchange("amq.topic")
    assert (exchange.publish_in, exchange.publish_out) == (6, 12)


def test_one_queue_on_disk_makes_the_whole_run_wait_for_its_commit() -> None:
    bench = BrokerBench()
    bench.queue("kept", durable=True)
    bench.queue("passing")
    client = publisher(bench)
    persistent = BasicProperties(delivery_mode=2)
    client.send(*[publish("", key, b"x", properties=persistent) for key in ("passing", "kept")])
    assert answers(client) == []
    bench.commit()
    assert answers(client) == [("Basic.Ack", 2, True)]


def test_a_fan_out_waits_for_the_disk_and_for_what_is_kept_elsewhere() -> None:
    bench = BrokerBench()
    bench.queue("here", durable=True)
    bench.vhost.bind(Edge("amq.fanout", "queue", "here", b"", {}))
    elsewhere = bind_elsewhere(bench, "amq.fanout", b"")
    client = publisher(bench)
    persistent = BasicProperties(delivery_mode=2)
    client.send(publish("amq.fanout", "", b"1", properties=persistent))
    bench.commit()
    assert answers(client) == []
    elsewhere.tickets[0].finish()
    bench.run()
    assert answers(client) == [("Basic.Ack", 1, False)]
    client.send(publish("amq.fanout", "", b"2", properties=persistent))
    elsewhere.tickets[1].finish(0)
    bench.run()
    assert answers(client) == []
    bench.commit()
    assert answers(client) == [("Basic.Nack", 2, True)]


def test_a_queue_that_waits_holds_up_nobody_else() -> None:
    bench = BrokerBench()
    bench.queue("here", durable=True)
    elsewhere = bind_elsewhere(bench, "amq.direct", b"there")
    client = publisher(bench)
    persistent = BasicProperties(delivery_mode=2)
    client.send(
        publish("amq.direct", "there", b"1"),
        publish("", "here", b"2", properties=persistent),
        publish("amq.direct", "there", b"3"),
        publish("amq.direct", "there", b"4"),
        publish("amq.direct", "none", b"5"),
    )
    bench.commit()
    assert answers(client) == [("Basic.Ack", 2, False), ("Basic.Ack", 5, False)]
    one, two = elsewhere.tickets
    assert (one.count, two.count) == (1, 2)
    two.finish(0)
    bench.run()
    assert answers(client) == [("Basic.Nack", 3, False), ("Basic.Ack", 4, False)]
    one.finish()
    bench.run()
    assert answers(client) == [("Basic.Ack", 1, False)]


def test_of_one_run_what_is_kept_here_does_not_wait_for_what_is_kept_elsewhere() -> None:
    bench = BrokerBench()
    bench.queue("here", durable=True)
    bench.vhost.bind(Edge("amq.direct", "queue", "here", b"here", {}))
    elsewhere = bind_elsewhere(bench, "amq.direct", b"there")
    client = publisher(bench)
    persistent = BasicProperties(delivery_mode=2)
    client.send(
        publish("amq.direct", "there", b"1", properties=persistent)
        + publish("amq.direct", "here", b"2", properties=persistent)
    )
    bench.commit()
    assert answers(client) == [("Basic.Ack", 2, False)]
    client.send(publish("amq.direct", "there", b"3") + publish("amq.direct", "none", b"4"))
    bench.run()
    assert answers(client) == [("Basic.Ack", 4, False)]
    for ticket in elsewhere.tickets:
        ticket.finish()
    bench.run()
    assert answers(client) == [("Basic.Ack", 1, False), ("Basic.Ack", 3, False)]
