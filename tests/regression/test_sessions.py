"""Sessions and turns that went wrong: what a review found in the broker's upper half."""

from __future__ import annotations

from typing import Any

import pytest
from pika import spec

from burrowmq.broker.turn.loop_scheduler import LoopScheduler
from burrowmq.protocol.constants import ReplyCode
from burrowmq.protocol.errors import PreconditionFailed
from burrowmq.protocol.properties import Properties, build
from tests.support.bench.broker import BrokerBench
from tests.support.bench.loop import ManualLoop
from tests.support.wire_client import method_bytes


def settle(bench: BrokerBench) -> None:
    """Let turns end, and the disk sync what they handed over."""
    bench.run()
    while bench.engine.in_flight is not None:
        bench.commit()
        bench.run()


def declare(client: Any, name: str, *, durable: bool = False, **arguments: Any) -> None:
    client.call(1, spec.Queue.Declare(queue=name, durable=durable, arguments=arguments))
    settle(client.bench)
    client.read()


def publish(address: bytes, properties: Properties, body: bytes, *, channel: int = 1) -> bytes:
    exchange_end = 1 + address[0]
    method = spec.Basic.Publish(
        exchange=address[1:exchange_end].decode(), routing_key=address[exchange_end + 1 :].decode()
    )
    raw = build(address, properties, body).raw
    assert channel == 1
    return method_bytes(channel, method) + raw


def test_what_came_with_a_connection_error_does_not_hide_it():
    client = BrokerBench().connect(1)
    wrong = spec.Basic.Qos(prefetch_size=1)  # 540
    found = client.call(1, wrong, spec.Basic.Qos(prefetch_count=5))
    assert [type(method).__name__ for _, method in found] == ["Close"]
    assert found[0][1].reply_code == ReplyCode.NOT_IMPLEMENTED


def test_an_exception_in_one_queue_leaves_the_others_alive():
    loop = ManualLoop()
    loop.call_exception_handler = lambda context: None  # type: ignore[attr-defined]
    scheduler = LoopScheduler(loop, lambda: None)  # type: ignore[arg-type]
    pumped: list[str] = []

    class Part:
        def __init__(self, name: str, *, is_broken: bool = False) -> None:
            self.name = name
            self.is_broken = is_broken
            self.is_dirty = False

        def pump(self) -> None:
            if self.is_broken:
                raise RecursionError
            pumped.append(self.name)

        def flush(self) -> None:
            self.pump()

    broken, sound = Part("broken", is_broken=True), Part("sound")
    output = Part("output")
    broken_output = Part("broken output", is_broken=True)
    for _ in range(2):
        scheduler.queue_dirty(broken)
        scheduler.queue_dirty(sound)
        scheduler.output_dirty(broken_output)
        scheduler.output_dirty(output)
        loop.run()
    assert pumped == ["sound", "output"] * 2


def test_a_waiter_that_fails_does_not_keep_the_others_from_running():
    loop = ManualLoop()
    loop.call_exception_handler = lambda context: None  # type: ignore[attr-defined]
    scheduler = LoopScheduler(loop, lambda: None)  # type: ignore[arg-type]
    done: list[int] = []

    def fail() -> None:
        raise RuntimeError

    scheduler.when_committed(1, fail)
    scheduler.when_committed(1, lambda: done.append(1))
    scheduler.on_committed(1)
    assert done == [1]


def test_a_dead_letter_routing_key_longer_than_the_wire_allows_is_no_bug():
    bench = BrokerBench()
    client = bench.connect(1)
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "k" * 300}
    found = client.call(
        1,
        spec.Queue.Declare(queue="q", arguments={**arguments, "x-max-length": 0}),
    )
    names = [type(method).__name__ for _, method in found]
    if names == ["DeclareOk"]:
        client.send(publish(b"\0\1q", Properties(), b"x"))
        bench.run()
        assert client.read() == []
    assert not bench.observer.named("bug_found")


@pytest.mark.slow
def test_a_message_passes_a_long_chain_of_dead_letter_queues():
    bench = BrokerBench()
    client = bench.connect(1)
    for at in range(300):
        declare(
            client,
            f"q{at}",
            **{
                "x-message-ttl": 0,
                "x-dead-letter-exchange": "",
                "x-dead-letter-routing-key": f"q{at + 1}",
            },
        )
    declare(client, "q300")
    client.send(publish(b"\0\2q0", Properties(), b"x"))
    bench.run()
    assert not bench.observer.named("bug_found")
    assert not bench.observer.named("dead_letter_impossible")
    assert [name for name, queue in bench.vhost.queues.items() if queue.ready_count] == ["q300"]


def test_replies_to_who_reads_are_not_lost_when_many_come_at_once():
    bench = BrokerBench()
    client = bench.connect(1)
    client.call(1, spec.Basic.Consume(queue="amq.rabbitmq.reply-to", consumer_tag="r", no_ack=True))
    target = client.session.channels[1].reply_target
    assert target is not None
    large = build(b"\0\1q", Properties(), b"x" * 700_000)
    for _ in range(4):
        target.publish([large], 0, large.size)
    bench.run()
    assert len(client.read()) == 4


def test_the_input_of_a_held_channel_is_bounded_in_bytes():
    bench = BrokerBench()
    client = bench.connect(1)
    client.session.receive(method_bytes(1, spec.Queue.Declare(queue="d", durable=True)))
    bench.loop.run()
    body = b"x" * 100_000
    at = 0
    while not client.pauses and at < 200:
        client.session.receive(publish(b"\0\1d", Properties(), body))
        at += 1
    assert at < 20
    bench.commit()
    assert not client.pauses
    assert bench.vhost.queues["d"].ready_count == at


def test_what_was_sent_before_connection_close_takes_effect():
    bench = BrokerBench()
    client = bench.connect(1)
    body = publish(b"\0\1d", Properties(), b"x")
    client.send(
        method_bytes(1, spec.Queue.Declare(queue="d", durable=True))
        + body * 5
        + method_bytes(0, spec.Connection.Close(200, "", 0, 0))
    )
    assert client.read() == []  # the declaration waits for the disk, and what follows for it
    bench.commit()
    assert client.names() == ["Queue.DeclareOk", "Connection.CloseOk"]
    assert bench.vhost.queues["d"].ready_count == 5


def test_acks_sent_before_connection_close_take_effect():
    bench = BrokerBench()
    client = bench.connect(1)
    declare(client, "q")
    client.send(publish(b"\0\1q", Properties(), b"x") * 3)
    client.call(1, *[spec.Basic.Get(queue="q")] * 3)
    client.send(
        method_bytes(1, spec.Queue.Declare(queue="d", durable=True))
        + method_bytes(1, spec.Basic.Ack(3, multiple=True))
        + method_bytes(0, spec.Connection.Close(200, "", 0, 0))
    )
    bench.commit()
    assert client.names() == ["Queue.DeclareOk", "Connection.CloseOk"]
    queue = bench.vhost.queues["q"]
    assert (queue.ready_count, queue.unacked_count) == (0, 0)


def test_a_connection_that_is_closed_waits_for_no_channel_that_has_failed():
    bench = BrokerBench()
    client = bench.connect(1, 2)
    held = method_bytes(1, spec.Queue.Declare(queue="d", durable=True))
    client.send(held + method_bytes(0, spec.Connection.Close(200, "", 0, 0)))
    client.session.fail_channel(client.session.channels[1], PreconditionFailed("too late"))
    bench.run()
    assert client.names() == ["Channel.Close", "Connection.CloseOk"]


def test_single_acks_before_one_that_fails_hold():
    bench = BrokerBench()
    client = bench.connect(1)
    declare(client, "q")
    client.send(publish(b"\0\1q", Properties(), b"x") * 4)
    client.call(1, *[spec.Basic.Get(queue="q")] * 4)
    client.call(1, spec.Basic.Ack(3))
    found = client.call(1, spec.Basic.Ack(1), spec.Basic.Ack(2), spec.Basic.Ack(3))
    assert found[0][1].reply_text == "PRECONDITION_FAILED - unknown delivery tag 3"
    queue = bench.vhost.queues["q"]
    assert (queue.ready_count, queue.unacked_count) == (1, 0)  # the fourth, which came back


@pytest.mark.parametrize("durable", [False, True])
def test_a_late_cancel_is_not_for_the_next_consumer_of_its_tag(durable: bool):
    bench = BrokerBench()
    client = bench.connect(1, consumer_cancel_notify=True)
    declare(client, "a", durable=durable)
    declare(client, "b", durable=durable)
    client.call(1, spec.Basic.Consume(queue="a", consumer_tag="c"))
    client.send(
        method_bytes(1, spec.Queue.Delete(queue="a"))
        + method_bytes(1, spec.Basic.Consume(queue="b", consumer_tag="c"))
    )
    settle(bench)
    assert client.names() == ["Queue.DeleteOk", "Basic.ConsumeOk"]


def test_a_late_cancel_is_not_for_the_next_channel_of_its_number():
    bench = BrokerBench()
    client, other = bench.connect(1, consumer_cancel_notify=True), bench.connect(1)
    declare(client, "a", durable=True)
    client.call(1, spec.Basic.Consume(queue="a", consumer_tag="c"))
    other.session.receive(method_bytes(1, spec.Queue.Delete(queue="a")))
    bench.run()  # the deletion waits for the disk
    assert len(client.call(1, spec.Channel.Close(200, "", 0, 0))) == 1
    assert len(client.call(1, spec.Channel.Open())) == 1
    settle(bench)
    assert client.names() == []


def test_a_channel_is_closed_once_by_two_errors_that_were_read_together():
    client = BrokerBench().connect(1)
    too_large = bytearray(publish(b"\0\1q", Properties(), b"x" * 10))
    size_at = too_large.index(b"\x02\x00\x01") + 7 + 4
    too_large[size_at : size_at + 8] = (1 << 40).to_bytes(8, "big")
    missing = spec.Queue.Declare(queue="missing", passive=True)
    client.send(method_bytes(1, missing) + bytes(too_large))
    assert client.names() == ["Channel.Close"]


def fail_store(bench: BrokerBench) -> None:
    bench.engine.failure = "gone"
    bench.scheduler.on_failed()
    bench.run()


def test_what_a_failed_store_did_not_take_is_refused():
    bench = BrokerBench()
    client = bench.connect(1)
    declare(client, "d", durable=True)
    client.call(1, spec.Confirm.Select())
    persistent = publish(b"\0\1d", Properties(delivery_mode=2), b"x")
    client.send(persistent + persistent)
    assert client.read() == []
    fail_store(bench)
    ((_, nack),) = client.read()
    assert (type(nack).__name__, nack.delivery_tag, nack.multiple) == ("Nack", 2, True)
    client.send(persistent)
    ((_, nack),) = client.read()
    assert (type(nack).__name__, nack.delivery_tag) == ("Nack", 3)


def test_nothing_waits_for_a_store_that_has_failed():
    bench = BrokerBench()
    client = bench.connect(1)
    fail_store(bench)
    found = client.call(1, spec.Queue.Declare(queue="d", durable=True))
    assert [type(method).__name__ for _, method in found] == ["Close"]
    assert found[0][1].reply_code == ReplyCode.INTERNAL_ERROR
