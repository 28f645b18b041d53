"""Session: login, errors, held channels, alarms, the end; and what a run costs."""

from __future__ import annotations

import sys
from typing import Any

import pytest
from pika import spec

from burrowmq.broker.exchange.binding import Edge
from burrowmq.broker.queue.origin import Origin
from burrowmq.broker.rules.failed_logins import FailedLoginLimits, FailedLogins
from burrowmq.broker.session import session as session_module
from burrowmq.broker.session.session import EXCLUSIVE_AT_ONCE
from burrowmq.protocol.codec import NAME as CODEC
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.wire_client import (
    PROTOCOL_HEADER,
    frame,
    header_bytes,
    method_bytes,
    publish_bytes,
)


def names(found: list[tuple[int, Any]]) -> list[str]:
    return [type(method).__name__ for _, method in found]


def declare(client: Client, queue: str = "q", **options: Any) -> None:
    client.send(method_bytes(1, spec.Queue.Declare(queue=queue, **options)))
    if options.get("durable"):
        client.bench.commit()
    client.read()


# -- what a run costs (the unit of work is a run) ---------------------------------------------------------------------


RUNS = (200, 2000)  # above a hundred, where the consumption rate reads the clock once


class Cost:
    """Python calls, loop callbacks and socket writes of one step."""

    def __init__(self, bench: BrokerBench, *clients: Client) -> None:
        self.bench = bench
        self.clients = clients
        self.calls = 0

    def of(self, step: Any) -> tuple[int, int, int]:
        """Run `step` and count."""
        self.calls = 0
        callbacks = self.bench.loop.callbacks_run
        writes = sum(len(client.written) for client in self.clients)
        own_files = ("/tests/",)

        def profile(found: Any, event: str, _: Any) -> None:
            path = found.f_code.co_filename
            if event == "call" and "/broker/" in path and not any(o in path for o in own_files):
                self.calls += 1

        sys.setprofile(profile)
        try:
            step()
        finally:
            sys.setprofile(None)
        return (
            self.calls,
            self.bench.loop.callbacks_run - callbacks,
            sum(len(client.written) for client in self.clients) - writes,
        )


def run_of(count: int, *, persistent: bool = False) -> bytes:
    import pika

    properties = pika.BasicProperties(delivery_mode=2 if persistent else None)
    return publish_bytes(1, "", "q", b"x" * 16, properties=properties) * count


def mixed_run(count: int, exchange: str, *, persistent: bool) -> bytes:
    """Publishes with ten keys in turn."""
    import pika

    properties = pika.BasicProperties(delivery_mode=2 if persistent else None)
    keys = [f"{'kq'[at % 2] if exchange == 'amq.direct' else 'q'}{at % 10}" for at in range(count)]
    return b"".join(publish_bytes(1, exchange, key, b"x", properties=properties) for key in keys)


@pytest.mark.parametrize("mode", ["bounded", "cached"])
@pytest.mark.parametrize("persistent", [False, True])
def test_a_publish_costs_the_same_whatever_the_runs_length(mode, persistent):
    costs = []
    for count in RUNS:
        bench = BrokerBench(default_mode=mode, is_verified=False)
        client = bench.connect(1)
        declare(client, durable=True)
        data = run_of(count, persistent=persistent)
        client.send(run_of(1, persistent=persistent))
        costs.append(Cost(bench, client).of(lambda d=data, c=client: c.send(d)))
        assert bench.vhost.queues["q"].ready_count == count + 1
    assert costs[0] == costs[1]


@pytest.mark.parametrize("exchange", ["", "amq.direct", "amq.topic"])
@pytest.mark.parametrize("persistent", [False, True])
@pytest.mark.parametrize("confirms", [False, True])
def test_publishes_with_many_keys_cost_the_same_whatever_their_number(
    exchange, persistent, confirms
):
    """By the default exchange each key has its queue, by the direct one ten queues, by the topic one they overlap."""
    costs = []
    for count in RUNS:
        bench = BrokerBench(is_verified=False)
        client = bench.connect(1)
        for number in range(10):
            declare(client, f"q{number}", durable=True)
            for key in (f"q{number}", f"k{number}") if exchange == "amq.direct" else ():
                bench.vhost.bind(Edge(exchange, "queue", f"q{number}", key.encode(), {}))
        if exchange == "amq.topic":
            for queue, pattern in (("q1", b"#"), ("q2", b"q2"), ("q2", b"q3"), ("q3", b"*")):
                bench.vhost.bind(Edge(exchange, "queue", queue, pattern, {}))
        if confirms:
            client.call(1, spec.Confirm.Select())
        data = mixed_run(10, exchange, persistent=persistent)
        client.send(data)
        data = mixed_run(count, exchange, persistent=persistent)
        costs.append(Cost(bench, client).of(lambda d=data, c=client: c.send(d)))
        held = {name: queue.ready_count for name, queue in bench.vhost.queues.items()}
        each = (count + 10) // 10
        if exchange == "amq.topic":
            expected = {"q1": each * 10, "q2": each * 2, "q3": each * 10}
            assert {name: size for name, size in held.items() if size} == expected
        else:
            assert set(held.values()) == {each}
    assert costs[0] == costs[1]


@pytest.mark.parametrize("no_ack", [True, False])
def test_a_delivery_costs_the_same_whatever_the_runs_length(no_ack):
    costs = []
    for count in RUNS:
        bench = BrokerBench(is_verified=False)
        producer, consumer = bench.connect(1), bench.connect(1)
        declare(producer)
        consumer.call(1, spec.Basic.Consume(queue="q", no_ack=no_ack))
        producer.send(run_of(1))
        data = run_of(count)
        costs.append(Cost(bench, producer, consumer).of(lambda d=data, p=producer: p.send(d)))
        assert len(consumer.read()) == count + 1
    assert costs[0] == costs[1]
    assert costs[0][2] == 1, "one write for the consumer, none for the producer"


@pytest.mark.parametrize("multiple", [True, False])
def test_acks_of_several_queues_cost_the_same_whatever_their_number(multiple):
    costs = []
    for count in RUNS:
        bench = BrokerBench(is_verified=False)
        client = bench.connect(1)
        for number in range(10):
            declare(client, f"q{number}")
            client.call(1, spec.Basic.Consume(queue=f"q{number}", consumer_tag=f"c{number}"))
        client.send(mixed_run(count, "", persistent=False))
        tags = [count] if multiple else range(1, count + 1)
        data = b"".join(
            method_bytes(1, spec.Basic.Ack(delivery_tag=tag, multiple=multiple)) for tag in tags
        )
        costs.append(Cost(bench, client).of(lambda d=data, c=client: c.send(d)))
        assert all(queue.unacked_count == 0 for queue in bench.vhost.queues.values())
    assert costs[0] == costs[1]


@pytest.mark.parametrize("multiple", [True, False])
def test_each_queue_is_told_once_of_the_acks_of_many_deliveries(multiple):
    bench = BrokerBench(is_verified=False)
    client = bench.connect(1)
    for number in range(10):
        declare(client, f"q{number}")
        client.call(1, spec.Basic.Consume(queue=f"q{number}", consumer_tag=f"c{number}"))
    for _ in range(5):
        client.send(mixed_run(100, "", persistent=False))
    tags = [500] if multiple else range(1, 501)
    data = b"".join(
        method_bytes(1, spec.Basic.Ack(delivery_tag=tag, multiple=multiple)) for tag in tags
    )
    told = 0

    def profile(found: Any, event: str, _: Any) -> None:
        nonlocal told
        told += event == "call" and found.f_code is Origin.settle.__code__

    sys.setprofile(profile)
    try:
        client.send(data)
    finally:
        sys.setprofile(None)
    assert told == 10
    assert all(queue.unacked_count == 0 for queue in bench.vhost.queues.values())


@pytest.mark.parametrize("multiple", [True, False])
def test_acks_cost_the_same_whatever_their_number(multiple):
    costs = []
    for count in RUNS:
        bench = BrokerBench(is_verified=False)
        client = bench.connect(1)
        declare(client)
        client.call(1, spec.Basic.Consume(queue="q"))
        client.send(run_of(count))
        tags = [count] if multiple else range(1, count + 1)
        data = b"".join(
            method_bytes(1, spec.Basic.Ack(delivery_tag=tag, multiple=multiple)) for tag in tags
        )
        costs.append(Cost(bench, client).of(lambda d=data, c=client: c.send(d)))
        assert bench.vhost.queues["q"].unacked_count == 0
    assert costs[0] == costs[1]


@pytest.mark.parametrize("persistent", [False, True])
def test_confirms_cost_the_same_whatever_their_number(persistent):
    costs = []
    for count in RUNS:
        bench = BrokerBench()
        client = bench.connect(1)
        declare(client, durable=True)
        client.call(1, spec.Confirm.Select())
        data = run_of(count, persistent=persistent)

        def step(bench=bench, client=client, data=data):
            client.send(data)
            if persistent:
                bench.commit()

        costs.append(Cost(bench, client).of(step))
        ((_, ack),) = client.read()
        assert (ack.delivery_tag, ack.multiple) == (count, True)
    assert costs[0] == costs[1]
    assert costs[0][2] == 1


def test_the_bench_runs_the_codec_that_was_chosen():
    assert CODEC in {"compiled", "interpreted"}


# -- login ------------------------------------------------------------------------------------------------------------


def start_ok(response: str, **properties: Any) -> Any:
    return spec.Connection.StartOk(
        client_properties=properties, mechanism="PLAIN", response=response, locale="en_US"
    )


def test_a_login_is_counted_and_its_user_known():
    bench = BrokerBench()
    client = bench.connect(1)
    assert client.session.user.name == "guest"
    assert client.session.is_open
    assert (bench.metrics.auth_attempts, bench.metrics.auth_failures) == (1, 0)
    assert bench.metrics.connections_opened == 1
    assert client.session.name == "127.0.0.1:40000 -> 127.0.0.1:5672"


def test_a_refused_login_is_told_to_who_understands_it():
    bench = BrokerBench()
    client = bench.socket()
    client.send(PROTOCOL_HEADER)
    client.read()
    capable = {"authentication_failure_close": True}
    found = client.call(0, start_ok("\0guest\0wrong", capabilities=capable))
    assert names(found) == ["Close"]
    assert found[0][1].reply_code == 403
    assert bench.metrics.auth_failures == 1
    assert client.close_after_s is not None
    assert len(bench.observer.named("login_refused")) == 1


def test_other_clients_hear_nothing_and_are_dropped_later():
    bench = BrokerBench()
    client = bench.socket()
    client.send(PROTOCOL_HEADER)
    client.read()
    assert client.call(0, start_ok("\0guest\0wrong")) == []
    assert client.close_after_s == 3.0


@pytest.mark.parametrize("is_gone", [False, True])
def test_a_wrong_password_is_answered_late(is_gone):
    bench = BrokerBench()
    client = bench.socket()
    slow = FailedLogins(FailedLoginLimits(delay_s=1.0), lambda: 0.0)
    client.session.context.auth._failed_logins = slow
    client.send(PROTOCOL_HEADER)
    client.read()
    capable = {"authentication_failure_close": True}
    assert client.call(0, start_ok("\0guest\0wrong", capabilities=capable)) == []
    assert client.call(0, start_ok("\0guest\0guest", capabilities=capable)) == []
    if is_gone:
        client.lose("closed by peer")
    bench.loop.advance(1.0)
    assert names(client.read()) == ([] if is_gone else ["Close"])
    assert client.close_after_s == (None if is_gone else 3.0), "the client has that long to answer"
    assert (bench.metrics.auth_attempts, bench.metrics.auth_failures) == (1, 1)


def test_a_wrong_password_of_a_client_that_is_told_nothing_ends_after_three_seconds_in_all():
    bench = BrokerBench()
    client = bench.socket()
    slow = FailedLogins(FailedLoginLimits(delay_s=1.0), lambda: 0.0)
    client.session.context.auth._failed_logins = slow
    client.send(PROTOCOL_HEADER)
    client.read()
    client.call(0, start_ok("\0guest\0wrong"))
    bench.loop.advance(1.0)
    assert client.read() == []
    assert client.close_after_s == 2.0


@pytest.mark.parametrize(
    ("vhost", "text"),
    [("/missing", "NOT_ALLOWED - vhost /missing not found")],
)
def test_a_vhost_that_is_not_there(vhost, text):
    bench = BrokerBench()
    client = bench.socket()
    client.send(PROTOCOL_HEADER)
    client.call(0, start_ok("\0guest\0guest"))
    client.call(0, spec.Connection.TuneOk(2047, 131072, 0))
    ((_, close),) = client.call(0, spec.Connection.Open(virtual_host=vhost))
    assert (close.reply_code, close.reply_text) == (530, text)
    assert (close.class_id, close.method_id) == (10, 40)


# -- errors -----------------------------------------------------------------------------------------------------------


def test_a_soft_error_closes_the_channel_and_drops_what_was_read_with_it():
    bench = BrokerBench()
    client = bench.connect(1, 2)
    declare(client)
    found = client.call(
        1,
        spec.Queue.Declare(queue="missing", passive=True),
        spec.Queue.Delete(queue="q"),
        spec.Queue.Declare(queue="other"),
    )
    ((channel, close),) = found
    assert channel == 1
    assert (close.reply_code, close.class_id, close.method_id) == (404, 50, 10)
    ((_, number, code, _, method, user),) = bench.observer.named("channel_failed")
    assert (number, code, method, user) == (1, 404, "queue.declare", "guest")
    assert set(bench.vhost.queues) == {"q"}
    assert names(client.call(2, spec.Queue.Declare(queue="q"))) == ["DeclareOk"]
    assert names(client.call(1, spec.Channel.CloseOk(), spec.Channel.Open())) == ["OpenOk"]


def test_publishes_and_acks_behind_a_soft_error_are_dropped_too():
    bench = BrokerBench()
    client = bench.connect(1)
    declare(client)
    client.send(
        publish_bytes(1, "missing", "q", b"1"),
        publish_bytes(1, "", "q", b"2"),
        method_bytes(1, spec.Basic.Ack(delivery_tag=9)),
    )
    assert names(client.read()) == ["Close"]
    assert bench.vhost.queues["q"].ready_count == 0


def test_a_hard_error_closes_the_connection_after_its_channels():
    bench = BrokerBench()
    client = bench.connect(1, 2)
    declare(client, exclusive=True)
    ((channel, close),) = client.call(2, spec.Channel.Flow(active=False))
    assert (channel, close.reply_code) == (0, 540)
    assert client.session.channels == {}
    assert bench.vhost.queues == {}
    assert client.close_after_s is not None


def test_a_bug_is_logged_and_answered_with_541():
    bench = BrokerBench(is_verified=False)
    client = bench.connect(1)
    bench.vhost.declare_queue = None  # type: ignore[assignment, method-assign]
    bench.vhost.queues = None  # type: ignore[assignment]
    ((channel, close),) = client.call(1, spec.Queue.Declare(queue="q"))
    bench.vhost.queues = {}
    assert (channel, close.reply_code) == (0, 541)
    ((_, error),) = bench.observer.named("bug_found")
    assert isinstance(error, (AttributeError, TypeError))


def test_an_unknown_method_is_a_hard_error():
    client = BrokerBench().connect(1)
    ((_, close),) = client.call(1, spec.Basic.GetEmpty())
    assert (close.reply_code, close.reply_text) == (503, "COMMAND_INVALID - unimplemented method")


# -- held channels ----------------------------------------------------------------------------------------------------


def test_a_held_channel_keeps_the_order_of_its_input():
    bench = BrokerBench()
    client = bench.connect(1, 2)
    client.send(
        method_bytes(1, spec.Queue.Declare(queue="d", durable=True)),
        publish_bytes(1, "", "d", b"1"),
        method_bytes(1, spec.Queue.Declare(queue="e", durable=True)),
        method_bytes(1, spec.Basic.Get(queue="d", no_ack=True)),
        method_bytes(2, spec.Queue.Declare(queue="free")),
    )
    assert [(c, type(m).__name__) for c, m in client.read()] == [(2, "DeclareOk")]
    assert "e" not in bench.vhost.queues
    bench.commit()
    assert [m.queue for _, m in client.read()] == ["d"]
    assert "e" in bench.vhost.queues
    bench.commit()
    found = client.read()
    assert names(found) == ["DeclareOk", "GetOk"]
    assert found[1][1].body == b"1"


def test_a_body_that_is_too_large_waits_its_turn_on_a_held_channel():
    bench = BrokerBench()
    client = bench.connect(1)
    client.send(
        method_bytes(1, spec.Queue.Declare(queue="d", durable=True)),
        method_bytes(1, spec.Basic.Publish(exchange="", routing_key="d")),
        header_bytes(1, 1 << 40),
        frame(3, 1, b"start"),
    )
    assert client.read() == []
    bench.commit()
    (_, declared), (_, close) = client.read()
    assert declared.NAME == "Queue.DeclareOk"
    assert (close.reply_code, set(bench.vhost.queues)) == (406, {"d"})
    assert names(client.call(1, spec.Channel.CloseOk(), spec.Channel.Open())) == ["OpenOk"]


def test_a_close_on_a_held_channel_comes_after_what_was_sent_before_it():
    bench = BrokerBench()
    client = bench.connect(1)
    client.send(
        method_bytes(1, spec.Queue.Declare(queue="d", durable=True)),
        publish_bytes(1, "", "d", b"1"),
        method_bytes(1, spec.Channel.Close(200, "", 0, 0)),
    )
    bench.commit()
    assert names(client.read()) == ["DeclareOk", "CloseOk"]
    assert bench.vhost.queues["d"].ready_count == 1
    assert client.session.channels == {}


def test_too_much_held_input_stops_the_reading():
    bench = BrokerBench()
    client = bench.connect(1)
    client.send(method_bytes(1, spec.Queue.Declare(queue="d", durable=True)))
    purge = method_bytes(1, spec.Queue.Purge(queue="d"))
    client.send(purge * 999)
    assert "held" not in client.pauses
    client.send(purge)
    assert "held" in client.pauses
    bench.commit()
    assert "held" not in client.pauses
    assert names(client.read()) == ["DeclareOk", *["PurgeOk"] * 1000]


# -- alarms and the end -----------------------------------------------------------------------------------------------


def test_an_alarm_blocks_who_publishes_and_tells_who_understands():
    bench = BrokerBench()
    publisher = bench.connect(1, **{"connection.blocked": True})
    silent, consumer = bench.connect(1), bench.connect(1)
    declare(publisher)
    assert names(consumer.call(1, spec.Basic.Consume(queue="q"))) == ["ConsumeOk"]
    bench.alarms.update("memory", True)
    for client in (publisher, silent):
        client.send(publish_bytes(1, "", "q", b"x"))
    ((_, blocked),) = publisher.read()
    assert (type(blocked).__name__, blocked.reason) == ("Blocked", "low on memory")
    assert silent.read() == []
    assert set(publisher.pauses) == set(silent.pauses) == {"alarm"}
    assert names(consumer.call(1, spec.Basic.Qos(0, 9, False))) == ["QosOk"]
    assert consumer.pauses == {}
    bench.alarms.update("memory", False)
    bench.run()
    assert names(publisher.read()) == ["Unblocked"]
    assert publisher.pauses == silent.pauses == {}
    assert names(consumer.read()) == ["Deliver"] * 2


def test_under_an_alarm_the_first_publish_waits_and_all_that_was_read_with_it():
    """RabbitMQ 3.10.8, live: it stops at the publish's header, so neither confirm nor delivery comes before the end."""
    bench = BrokerBench()
    client, consumer = bench.connect(1, 2), bench.connect(1)
    declare(client)
    client.call(1, spec.Confirm.Select())
    consumer.call(1, spec.Basic.Consume(queue="q"))
    flow = method_bytes(2, spec.Channel.Flow(active=True))
    bench.alarms.update("memory", True)
    client.send(flow, publish_bytes(1, "", "q", b"1"), flow, publish_bytes(1, "", "q", b"2"))
    assert names(client.read()) == ["FlowOk"], "what came before the publish is handled"
    assert consumer.read() == []
    bench.alarms.update("memory", False)
    bench.run()
    assert names(client.read()) == ["FlowOk", "Ack"]
    assert [method.body for _, method in consumer.read()] == [b"1", b"2"]


@pytest.mark.parametrize("capable", [True, False])
def test_a_channel_that_was_asked_for_behind_an_alarm_is_opened_when_it_ends(capable):
    """The connection answers it by itself, and nothing else that waited has to have an answer."""
    bench = BrokerBench()
    client = bench.connect(1, **({"connection.blocked": True} if capable else {}))
    declare(client)
    bench.alarms.update("memory", True)
    client.send(publish_bytes(1, "", "q", b"1"), method_bytes(2, spec.Channel.Open()))
    assert names(client.read()) == ["Blocked"] * capable
    bench.alarms.update("memory", False)
    bench.run()
    assert names(client.read()) == ["Unblocked"] * capable + ["OpenOk"]


def test_what_waited_behind_an_alarm_is_forgotten_with_its_connection():
    bench = BrokerBench()
    client = bench.connect(1)
    declare(client)
    bench.alarms.update("memory", True)
    client.send(publish_bytes(1, "", "q", b"1"))
    client.session.force_close("enough")
    bench.alarms.update("memory", False)
    bench.run()
    assert bench.vhost.queues["q"].ready_count == 0


def test_a_publisher_whose_connection_fails_is_read_though_the_disk_lags():
    """Its close-ok would else be read when the disk has caught up."""
    bench = BrokerBench()
    client = bench.connect(1)
    bench.alarms.behind.add("backlog")
    client.send(
        publish_bytes(1, "", "q", b"x"),
        method_bytes(1, spec.Channel.Flow(active=False)),
        publish_bytes(1, "", "q", b"x"),
    )
    assert names(client.read()) == ["Close"]
    assert client.pauses == {}
    assert not client.session.is_publisher, "or the next lag would stop it again"

    client = bench.connect(1)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(session_module, "publish", _fail)
        client.send(publish_bytes(1, "", "q", b"x"))
    assert [method.reply_code for _, method in client.read()] == [541]
    assert client.pauses == {}


def _fail(*_: object) -> None:
    raise LookupError


def test_a_blocked_connection_that_is_closed_is_read_again():
    bench = BrokerBench()
    client = bench.connect(1)
    bench.alarms.update("memory", True)
    client.send(publish_bytes(1, "", "q", b"x"))
    assert set(client.pauses) == {"alarm"}
    bench.perform(client.session.store_failed)
    assert client.pauses == {}
    assert names(client.read()) == ["Close"]
    client.call(0, spec.Connection.CloseOk())
    assert client.session.connection.state == "closed"
    bench.perform(client.session.store_failed)  # once is enough
    assert client.read() == []


def test_an_alarm_that_ends_lets_a_failing_command_fail():
    bench = BrokerBench()
    client = bench.connect(1)
    declare(client)
    bench.alarms.update("memory", True)
    unknown = method_bytes(1, spec.Queue.Declare(queue="none", passive=True))
    client.send(publish_bytes(1, "", "q", b"1"), unknown, publish_bytes(1, "", "q", b"2"))
    bench.alarms.update("memory", False)
    bench.run()
    assert names(client.read()) == ["Close"]
    assert bench.vhost.queues["q"].ready_count == 1


def test_a_lost_connection_gives_back_what_it_had():
    bench = BrokerBench()
    client, other = bench.connect(1), bench.connect(1)
    declare(client)
    client.send(run_of(3))
    client.call(1, spec.Basic.Consume(queue="q"))
    queue = bench.vhost.queues["q"]
    assert (queue.ready_count, queue.unacked_count) == (0, 3)
    client.lose("reset")
    assert (queue.ready_count, queue.unacked_count, queue.consumer_count) == (3, 0, 0)
    assert bench.metrics.connections_closed == 1
    assert client.session not in bench.sessions
    found = other.call(1, spec.Basic.Get(queue="q"))
    assert found[0][1].redelivered
    client.lose("again")
    assert bench.metrics.connections_closed == 1


def test_close_ok_follows_the_deletion_of_exclusive_queues():
    bench = BrokerBench()
    client = bench.connect(1)
    for number in range(EXCLUSIVE_AT_ONCE):
        client.call(1, spec.Queue.Declare(queue=f"q{number}", exclusive=True))
    client.session.receive(method_bytes(0, spec.Connection.Close(200, "", 0, 0)))
    assert bench.vhost.queues == {}
    bench.run()
    assert names(client.read()) == ["CloseOk"]


def test_a_hundred_thousand_exclusive_queues_are_deleted_turn_by_turn():
    bench = BrokerBench()
    client = bench.connect(1)
    count = EXCLUSIVE_AT_ONCE * 5
    client.send(
        *[
            method_bytes(1, spec.Queue.Declare(queue=f"q{n}", exclusive=True, nowait=True))
            for n in range(count)
        ]
    )
    assert len(bench.vhost.queues) == count
    client.session.wire = None
    client.session.lost("reset")
    left = [len(bench.vhost.queues)]
    while bench.vhost.queues:
        bench.loop.run_once()
        left.append(len(bench.vhost.queues))
    assert max(before - after for before, after in zip([count, *left], left, strict=False)) <= (
        EXCLUSIVE_AT_ONCE
    )
    assert bench.vhost.exclusive_queues(client.session) == []


def test_a_congested_connection_gets_no_more_until_it_has_drained():
    bench = BrokerBench(write_budget_bytes=4096)
    client, producer = bench.connect(1), bench.connect(1)
    declare(client)
    client.call(1, spec.Basic.Consume(queue="q", no_ack=True))
    client.is_stuck = True
    for _ in range(10):
        producer.send(run_of(100))
    queue = bench.vhost.queues["q"]
    assert queue.ready_count > 0
    client.is_stuck = False
    client.session.drained(is_paused=False)
    bench.run()
    assert queue.ready_count == 0
    assert len(client.read()) == 1000


def test_force_close_names_its_reason_once():
    bench = BrokerBench()
    client = bench.connect(1)
    client.session.force_close("CONNECTION_FORCED by test")
    client.session.force_close("again")
    bench.run()
    assert [m.reply_code for _, m in client.read()] == [320]
    told = [text for _, _, text, _ in bench.observer.named("connection_failed")]
    assert told == ["CONNECTION_FORCED - CONNECTION_FORCED by test"]


def test_a_client_that_answers_a_close_is_no_second_failure():
    bench = BrokerBench()
    client = bench.connect(1)
    client.session.force_close("enough")
    bench.run()
    client.call(0, spec.Connection.CloseOk())
    bench.run()
    told = [text for _, _, text, _ in bench.observer.named("connection_failed")]
    assert (told, client.session.is_ended) == (["CONNECTION_FORCED - enough"], True)


@pytest.mark.parametrize("capable", [True, False])
def test_consumers_are_cancelled_ahead_of_a_close_for_who_understands_it(capable):
    bench = BrokerBench()
    client = bench.connect(1, 2, consumer_cancel_notify=capable)
    for channel, tag in ((1, "a"), (2, "b")):
        client.call(channel, spec.Queue.Declare(queue=tag, durable=channel == 1))
        bench.run()
        if bench.engine.in_flight is not None:
            bench.commit()
        client.call(channel, spec.Basic.Consume(queue=tag, consumer_tag=tag))
    client.session.cancel_consumers()
    client.session.force_close("vhost gone")
    client.session.cancel_consumers()
    bench.run()
    found = [
        (channel, type(method).__name__, getattr(method, "consumer_tag", ""))
        for channel, method in client.read()
    ]
    cancels = [(1, "Cancel", "a"), (2, "Cancel", "b")] if capable else []
    assert found == [*cancels, (0, "Close", "")]


def test_a_channel_above_the_users_limit_is_not_opened_first():
    bench = BrokerBench()
    client = bench.connect(1)
    bench.auth.set_limits("guest", {"max-channels": 2})
    found = client.call(2, spec.Channel.Open())
    assert names(found) == ["OpenOk"]
    ((number, close),) = client.call(3, spec.Channel.Open())
    assert (number, close.NAME, close.reply_code) == (0, "Connection.Close", 530)
    assert (close.class_id, close.method_id) == (0, 0)
