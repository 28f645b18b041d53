"""basic.get, consume, cancel, qos, settlements."""

from __future__ import annotations

from typing import Any

import pytest
from pika import BasicProperties, spec

from burrowmq.broker.queue.serve.consumer import HANDOVER_S
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.wire_client import method_bytes, publish_bytes


def names(found: list[tuple[int, Any]]) -> list[str]:
    return [type(method).__name__ for _, method in found]


def bodies(found: list[tuple[int, Any]]) -> list[bytes]:
    return [method.body for _, method in found if hasattr(method, "body")]


def ready(client: Client, count: int, **options: Any) -> None:
    client.call(1, spec.Queue.Declare(queue="q", **options))
    client.send(*[publish_bytes(1, "", "q", b"%d" % n) for n in range(count)])


def closed(found: list[tuple[int, Any]]) -> tuple[int, str]:
    ((_, close),) = found
    return close.reply_code, close.reply_text


def test_get_tells_how_many_are_left():
    bench = BrokerBench()
    client = bench.connect(1)
    ready(client, 2)
    found = client.call(1, *[spec.Basic.Get(queue="q")] * 3)
    assert names(found) == ["GetOk", "GetOk", "GetEmpty"]
    assert [m.message_count for _, m in found[:2]] == [1, 0]
    assert (bench.metrics.messages_get_manual_ack, bench.metrics.messages_get_empty) == (2, 1)


def test_get_waits_for_the_disk_and_holds_back_what_follows():
    bench = BrokerBench(answers_later=True)
    client = bench.connect(1)
    ready(client, 2, arguments={"x-queue-mode": "lazy"})
    client.send(
        method_bytes(1, spec.Basic.Get(queue="q", no_ack=True)),
        method_bytes(1, spec.Queue.Declare(queue="other")),
    )
    assert client.read() == []
    bench.engine.answer_reads()
    bench.run()
    assert names(client.read()) == ["GetOk", "DeclareOk"]


def test_a_get_whose_channel_closed_meanwhile_loses_nothing():
    bench = BrokerBench(answers_later=True)
    client = bench.connect(1)
    ready(client, 2, arguments={"x-queue-mode": "lazy"})
    client.send(method_bytes(1, spec.Basic.Get(queue="q", no_ack=True)))
    client.lose()
    bench.engine.answer_reads()
    bench.run()
    queue = bench.vhost.queues["q"]
    assert (queue.ready_count, queue.unacked_count) == (2, 0)


def test_the_last_declared_queue_has_the_empty_name():
    client = BrokerBench().connect(1)
    assert closed(client.call(1, spec.Basic.Get(queue=""))) == (
        404,
        "NOT_FOUND - no previously declared queue",
    )
    client.call(1, spec.Channel.CloseOk(), spec.Channel.Open())
    ready(client, 1)
    assert names(client.call(1, spec.Basic.Get(queue=""))) == ["GetOk"]


def test_consume_ok_comes_before_the_first_delivery():
    client = BrokerBench().connect(1)
    ready(client, 2)
    found = client.call(1, spec.Basic.Consume(queue="q"))
    assert names(found) == ["ConsumeOk", "Deliver", "Deliver"]
    assert found[0][1].consumer_tag.startswith("amq.ctag-")
    assert {m.consumer_tag for _, m in found} == {found[0][1].consumer_tag}


def test_consumers_per_channel_are_limited():
    client = BrokerBench(consumer_max_per_channel=2).connect(1, 2)
    ready(client, 0)
    for tag in "ab":
        client.call(1, spec.Basic.Consume(queue="q", consumer_tag=tag))
    assert names(client.call(2, spec.Basic.Consume(queue="q", consumer_tag="a"))) == ["ConsumeOk"]
    assert closed(client.call(1, spec.Basic.Consume(queue="q", consumer_tag="c"))) == (
        530,
        "NOT_ALLOWED - reached maximum (2) of consumers per channel",
    )


@pytest.mark.parametrize(
    ("options", "code", "text"),
    [
        (
            {"consumer_tag": "used"},
            530,
            "NOT_ALLOWED - attempt to reuse consumer tag 'used'",
        ),
        ({"exclusive": True}, 403, "ACCESS_REFUSED - queue 'q' in vhost '/' in exclusive use"),
        (
            {"arguments": {"x-priority": "high"}},
            406,
            "PRECONDITION_FAILED - invalid arg 'x-priority' for queue 'q' in vhost '/':"
            ' "expected integer, got longstr"',
        ),
        (
            {"arguments": {"x-priority": None}},
            406,
            "PRECONDITION_FAILED - invalid arg 'x-priority' for queue 'q' in vhost '/':"
            ' "expected integer, got void"',
        ),
        (
            {"arguments": {"x-cancel-on-ha-failover": 1}},
            406,
            "PRECONDITION_FAILED - invalid arg 'x-cancel-on-ha-failover' for queue 'q' in vhost '/':"
            " {unacceptable_type,signedint}",
        ),
        (
            {"arguments": {"x-stream-offset": "first"}},
            406,
            "PRECONDITION_FAILED - invalid arg 'x-stream-offset' for queue 'q' in vhost '/'"
            " of queue type rabbit_classic_queue",
        ),
        ({"queue": "gone"}, 404, "NOT_FOUND - no queue 'gone' in vhost '/'"),
    ],
)
def test_refused_consumers(options, code, text):
    client = BrokerBench().connect(1)
    ready(client, 0)
    client.call(1, spec.Basic.Consume(queue="q", consumer_tag="used"))
    found = client.call(1, spec.Basic.Consume(**{"queue": "q", **options}))
    assert closed(found) == (code, text)


def test_an_exclusive_consumer_keeps_others_out_until_it_leaves():
    client = BrokerBench().connect(1)
    ready(client, 0)
    client.call(1, spec.Basic.Consume(queue="q", consumer_tag="x", exclusive=True))
    assert closed(client.call(1, spec.Basic.Consume(queue="q")))[0] == 403
    client.call(1, spec.Channel.CloseOk(), spec.Channel.Open())
    assert names(client.call(1, spec.Basic.Consume(queue="q"))) == ["ConsumeOk"]


def test_cancel_ok_precedes_the_end_of_an_auto_delete_queue():
    bench = BrokerBench()
    client = bench.connect(1)
    ready(client, 0, auto_delete=True)
    client.call(1, spec.Basic.Consume(queue="q", consumer_tag="c"))
    assert names(client.call(1, spec.Basic.Cancel(consumer_tag="c"))) == ["CancelOk"]
    assert bench.vhost.queues == {}
    assert names(client.call(1, spec.Basic.Cancel(consumer_tag="unknown"))) == ["CancelOk"]


def test_a_cancel_waits_for_what_is_being_read_for_the_consumer():
    bench = BrokerBench(answers_later=True)
    client = bench.connect(1)
    ready(client, 3, arguments={"x-queue-mode": "lazy"})
    client.call(1, spec.Basic.Consume(queue="q", consumer_tag="c"))
    assert bench.engine.reads
    client.send(
        method_bytes(1, spec.Basic.Cancel(consumer_tag="c")),
        method_bytes(1, spec.Queue.Purge(queue="q")),
    )
    assert client.read() == []
    while bench.engine.reads:
        bench.engine.answer_reads()
        bench.run()
    found = client.read()
    assert names(found)[-2:] == ["CancelOk", "PurgeOk"]
    assert bodies(found) == [b"%d" % n for n in range(len(bodies(found)))]
    assert found[-1][1].message_count == 3 - len(bodies(found))


def test_qos():
    client = BrokerBench().connect(1)
    channel = client.session.channels[1]
    client.call(1, spec.Basic.Qos(prefetch_count=7))
    assert (channel.prefetch.for_each, channel.prefetch.shared) == (7, 0)
    client.call(1, spec.Basic.Qos(prefetch_count=9, global_qos=True))
    assert (channel.prefetch.for_each, channel.prefetch.shared) == (7, 9)
    assert closed(client.call(1, spec.Basic.Qos(prefetch_size=1))) == (
        540,
        "NOT_IMPLEMENTED - prefetch_size!=0 (1)",
    )


def test_settlements():
    bench = BrokerBench()
    client = bench.connect(1)
    ready(client, 6)
    queue = bench.vhost.queues["q"]
    client.call(1, *[spec.Basic.Get(queue="q")] * 6)
    client.call(1, spec.Basic.Ack(delivery_tag=2), spec.Basic.Reject(delivery_tag=3, requeue=False))
    assert (queue.ready_count, queue.unacked_count) == (0, 4)
    client.call(1, spec.Basic.Nack(delivery_tag=4, multiple=True, requeue=True))
    assert (queue.ready_count, queue.unacked_count) == (2, 2)
    found = client.call(1, spec.Basic.Recover(requeue=True))
    assert names(found) == ["RecoverOk"]
    assert (queue.ready_count, queue.unacked_count) == (4, 0)
    again = client.call(1, *[spec.Basic.Get(queue="q", no_ack=True)] * 4)
    assert bodies(again) == [b"0", b"3", b"4", b"5"]
    assert all(m.redelivered for _, m in again)
    assert bench.metrics.messages_acknowledged == 1


@pytest.mark.parametrize("requeue", [True, False])
@pytest.mark.parametrize("kind", [spec.Basic.Reject, spec.Basic.Nack])
def test_rejections_before_an_unknown_tag_hold(kind: type[Any], requeue: bool):
    bench = BrokerBench()
    client = bench.connect(1)
    ready(client, 5)
    queue = bench.vhost.queues["q"]
    client.call(1, *[spec.Basic.Get(queue="q")] * 5)
    client.call(1, spec.Basic.Ack(delivery_tag=3))
    ((_, close),) = client.call(1, *[kind(tag, requeue=requeue) for tag in (1, 2, 3, 4)])
    assert (close.reply_code, (close.class_id, close.method_id)) == (
        406,
        divmod(kind.INDEX, 1 << 16),
    )
    assert close.reply_text == "PRECONDITION_FAILED - unknown delivery tag 3"
    assert (queue.ready_count, queue.unacked_count) == (4 if requeue else 2, 0)


def test_a_run_of_nacks_puts_each_message_in_its_place():
    bench = BrokerBench()
    client = bench.connect(1)
    ready(client, 6)
    client.call(1, *[spec.Basic.Get(queue="q")] * 4)
    client.call(1, spec.Basic.Ack(1), *[spec.Basic.Nack(tag, requeue=True) for tag in (2, 3, 4)])
    again = client.call(1, *[spec.Basic.Get(queue="q", no_ack=True)] * 5)
    assert bodies(again) == [b"1", b"2", b"3", b"4", b"5"]
    assert [m.redelivered for _, m in again] == [True] * 3 + [False] * 2


def test_a_run_of_rejections_waits_for_the_commit_of_its_transaction():
    bench = BrokerBench()
    client = bench.connect(1)
    ready(client, 3)
    queue = bench.vhost.queues["q"]
    client.call(1, *[spec.Basic.Get(queue="q")] * 3)
    client.call(1, spec.Tx.Select(), *[spec.Basic.Reject(tag, requeue=False) for tag in (1, 2)])
    assert queue.unacked_count == 3
    client.call(1, spec.Tx.Rollback(), *[spec.Basic.Nack(tag, requeue=True) for tag in (1, 2, 3)])
    assert queue.unacked_count == 3
    client.call(1, spec.Tx.Commit())
    assert (queue.ready_count, queue.unacked_count) == (3, 0)


def test_recover_without_requeue_was_never_built():
    client = BrokerBench().connect(1)
    found = client.call(1, spec.Basic.Recover(requeue=False))
    assert closed(found) == (540, "NOT_IMPLEMENTED - requeue=false")


def test_replies_go_straight_to_the_requester():
    bench = BrokerBench()
    client, server = bench.connect(1), bench.connect(1)
    assert closed(client.call(1, spec.Basic.Consume(queue="amq.rabbitmq.reply-to"))) == (
        406,
        "PRECONDITION_FAILED - reply consumer cannot acknowledge",
    )
    client.call(1, spec.Channel.CloseOk(), spec.Channel.Open())
    client.call(1, spec.Basic.Consume(queue="amq.rabbitmq.reply-to", consumer_tag="r", no_ack=True))
    key = client.session.channels[1].reply_target.key.decode()
    server.send(publish_bytes(1, "", key, b"answer"))
    ((_, deliver),) = client.read()
    assert (deliver.consumer_tag, deliver.body) == ("r", b"answer")
    client.call(1, spec.Basic.Cancel(consumer_tag="r"))
    server.send(publish_bytes(1, "", key, b"late"))
    assert client.read() == []


# -- the order when one consumer follows another ----------------------------------------------------------------------


SAC = {"x-single-active-consumer": True}


def handed_over(
    *, exclusive: bool = False, arguments: dict[str, Any] | None = None
) -> tuple[BrokerBench, Client, Client]:
    """One client's channel 1 holds 0 of 0..3 by consumer a; another waits as b, unless a is exclusive."""
    bench = BrokerBench()
    first, second = bench.connect(1, 2), bench.connect(1)
    first.call(1, spec.Queue.Declare(queue="q", arguments=arguments or {}), spec.Basic.Qos(0, 1))
    first.call(1, spec.Basic.Consume(queue="q", consumer_tag="a", exclusive=exclusive))
    if not exclusive:
        second.call(1, spec.Basic.Consume(queue="q", consumer_tag="b"))
    second.send(*[publish_bytes(1, "", "q", b"%d" % n) for n in range(4)])
    assert bodies(first.read()) == [b"0"]
    return bench, first, second


CANCEL = method_bytes(1, spec.Basic.Cancel(consumer_tag="a"))
CLOSE = method_bytes(1, spec.Channel.Close(200, "bye", 0, 0))
REST = [b"0", b"1", b"2", b"3"]


@pytest.mark.parametrize("reads", [[CANCEL + CLOSE], [CANCEL, CLOSE], [CLOSE]])
def test_what_a_leaving_active_consumer_held_comes_first(reads):
    _, first, second = handed_over(arguments=SAC)
    for data in reads:
        assert bodies(second.read()) == []
        first.send(data)
    assert bodies(second.read()) == REST


@pytest.mark.parametrize("before", [b"", CANCEL])
@pytest.mark.parametrize("is_polite", [False, True])
def test_what_a_connection_that_ends_held_comes_first(before, is_polite):
    _, first, second = handed_over(arguments=SAC)
    first.send(before)
    if is_polite:
        first.call(0, spec.Connection.Close(200, "bye", 0, 0))
    else:
        first.lose()
    assert bodies(second.read()) == REST


@pytest.mark.parametrize("reads", [[CANCEL + CLOSE], [CANCEL, CLOSE]])
def test_a_new_consumer_right_behind_a_close_begins_with_what_was_held(reads):
    _, first, second = handed_over(arguments=SAC)
    second.call(1, spec.Basic.Cancel(consumer_tag="b"))
    again = method_bytes(2, spec.Basic.Consume(queue="q", consumer_tag="c"))
    for data in [*reads[:-1], reads[-1] + again]:
        first.send(data)
    assert bodies(first.read()) == REST


def test_a_new_consumer_on_another_channel_waits_for_the_close():
    _, first, second = handed_over(arguments=SAC)
    second.call(1, spec.Basic.Cancel(consumer_tag="b"))
    first.send(CANCEL, method_bytes(2, spec.Basic.Consume(queue="q", consumer_tag="c")))
    assert bodies(first.read()) == []
    first.send(CLOSE)
    assert bodies(first.read()) == REST


def test_the_one_that_follows_an_exclusive_consumer_begins_with_what_it_held():
    _, first, second = handed_over(exclusive=True)
    first.send(CANCEL)
    second.call(1, spec.Basic.Consume(queue="q", consumer_tag="b", exclusive=True))
    first.send(CLOSE)
    assert bodies(second.read()) == REST


def test_an_ack_lets_the_next_one_go_on():
    _, first, second = handed_over(arguments=SAC)
    first.send(CANCEL)
    first.call(1, spec.Basic.Ack(1))
    assert bodies(second.read()) == [b"1", b"2", b"3"]


def test_a_reject_comes_first():
    _, first, second = handed_over(arguments=SAC)
    first.send(CANCEL, method_bytes(1, spec.Basic.Reject(1, requeue=True)))
    assert bodies(second.read()) == REST


def test_what_a_transaction_has_settled_is_waited_for_until_the_commit():
    _, first, second = handed_over(arguments=SAC)
    first.call(1, spec.Tx.Select())
    first.send(CANCEL)
    first.call(1, spec.Basic.Ack(1))
    assert bodies(second.read()) == []
    first.call(1, spec.Tx.Commit())
    assert bodies(second.read()) == [b"1", b"2", b"3"]


def test_who_neither_settles_nor_closes_is_not_waited_for_for_ever():
    bench, first, second = handed_over(arguments=SAC)
    first.send(CANCEL)
    bench.loop.advance(HANDOVER_S - 0.1)
    assert bodies(second.read()) == []
    bench.loop.advance(0.2)
    assert bodies(second.read()) == [b"1", b"2", b"3"]
    first.send(CLOSE)
    assert bodies(second.read()) == [b"0"]


def test_a_queue_deleted_while_the_next_one_waits():
    bench, first, second = handed_over(arguments=SAC)
    first.send(CANCEL)
    second.call(1, spec.Queue.Delete(queue="q"))
    bench.loop.advance(HANDOVER_S + 1)
    assert bodies(second.read()) == []


@pytest.mark.parametrize("has_expiries", [False, True])
def test_a_limit_of_the_channel_does_not_end_deliveries_that_nobody_acknowledges(has_expiries):
    """They use nothing of it up, and so nothing would ever give it back."""
    bench = BrokerBench()
    client = bench.connect(1)
    client.call(1, spec.Queue.Declare(queue="q"))
    properties = BasicProperties(expiration="60000") if has_expiries else None
    client.send(*[publish_bytes(1, "", "q", b"%d" % n, properties=properties) for n in range(50)])
    client.call(1, spec.Basic.Qos(prefetch_count=5, global_qos=True))
    client.send(method_bytes(1, spec.Basic.Consume(queue="q", consumer_tag="c", no_ack=True)))
    bench.run()
    got = [method.body for _, method in client.read() if isinstance(method, spec.Basic.Deliver)]
    assert got == [b"%d" % n for n in range(50)]
    assert bench.vhost.queues["q"].ready_count == 0


def test_a_get_waits_while_its_client_does_not_take_what_it_was_sent():
    bench = BrokerBench()
    client = bench.connect(1, 2)
    ready(client, 3)
    queue = bench.vhost.queues["q"]
    client.is_stuck = True
    client.call(2, spec.Basic.Qos())
    assert client.call(1, *[spec.Basic.Get(queue=name) for name in ("q", "q", "none")]) == []
    assert client.call(2, spec.Basic.Get(queue="q"), spec.Basic.Qos()) == []
    assert queue.ready_count == 3
    client.is_stuck = False
    client.session.drained(is_paused=False)
    bench.run()
    found = client.read()
    assert names([each for each in found if each[0] == 1]) == ["GetOk", "GetOk", "Close"]
    assert names([each for each in found if each[0] == 2]) == ["GetOk", "QosOk"]


def test_a_get_whose_message_comes_from_disk_when_there_is_no_room_takes_it_later():
    bench = BrokerBench(answers_later=True)
    client = bench.connect(1)
    ready(client, 2, arguments={"x-queue-mode": "lazy"})
    queue = bench.vhost.queues["q"]
    assert client.call(1, spec.Basic.Get(queue="q"), spec.Basic.Qos()) == []
    client.session.drained(is_paused=True)
    client.is_stuck = True
    bench.engine.answer_reads()
    bench.run()
    assert client.read() == []
    assert (queue.ready_count, queue.unacked_count) == (2, 0)
    client.is_stuck = False
    client.session.drained(is_paused=False)
    bench.run()
    bench.engine.answer_reads()
    bench.run()
    found = client.read()
    assert (names(found), bodies(found), found[0][1].redelivered) == (
        ["GetOk", "QosOk"],
        [b"0"],
        False,
    )
    assert (queue.ready_count, queue.unacked_count) == (1, 1)


def test_a_connection_that_ends_while_a_get_waits_loses_nothing():
    bench = BrokerBench()
    client = bench.connect(1)
    ready(client, 1)
    client.is_stuck = True
    client.call(1, spec.Basic.Qos())
    client.call(1, spec.Basic.Get(queue="q"))
    client.session.drained(is_paused=False)
    client.lose()
    bench.run()
    queue = bench.vhost.queues["q"]
    assert (queue.ready_count, queue.unacked_count) == (1, 0)
