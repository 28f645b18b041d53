"""Delivery acknowledgement timeout: who is closed, when, with which words; and what is remembered for it."""

from __future__ import annotations

from typing import Any, cast

import pytest
from pika import spec

from burrowmq.broker.session import ack_timeout
from burrowmq.broker.session.ack_timeout import MARKS_MAX, AckTimeouts, TagMarks
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.calls import calls
from tests.support.wire_client import publish_bytes


class Watched:
    """A bench whose clock moves by hand, and the timeouts that look at it."""

    def __init__(self, timeout_ms: int | None = 10_000) -> None:
        self.bench = BrokerBench()
        self.now_s = 0.0
        observer = cast("Any", self.bench.observer)
        self.timeouts = AckTimeouts(self.bench.sessions, cast("Any", self), observer, timeout_ms)

    def deadline_ms(self) -> int:
        return round(self.now_s * 1000)

    def pass_time(self, seconds: float) -> None:
        """Look once a second."""
        for _ in range(int(seconds)):
            self.now_s += 1
            self.timeouts.look()
        self.bench.run()


def deliver(client: Client, count: int = 1, queue: str = "q", **arguments: Any) -> None:
    client.call(1, spec.Queue.Declare(queue=queue, arguments=arguments))
    client.send(*[publish_bytes(1, "", queue, b"%d" % n) for n in range(count)])
    client.call(1, spec.Basic.Consume(queue=queue, consumer_tag="slow"))


def closes(client: Client) -> list[Any]:
    return [m for _, m in client.read() if isinstance(m, spec.Channel.Close)]


def test_the_channel_of_an_overdue_delivery_is_closed_and_its_messages_go_back():
    watched = Watched()
    client = watched.bench.connect(1)
    deliver(client, 3)
    watched.pass_time(11)
    assert closes(client) == []
    watched.pass_time(1)
    (close,) = closes(client)
    assert (close.reply_code, close.class_id, close.method_id) == (406, 0, 0)
    assert close.reply_text == (
        "PRECONDITION_FAILED - delivery acknowledgement on channel 1 timed out. Timeout value used:"
        " 10000 ms. This timeout value can be configured, see consumers doc guide to learn more"
    )
    queue = watched.bench.vhost.queues["q"]
    assert (queue.ready_count, queue.unacked_count, queue.consumer_count) == (3, 0, 0)
    assert watched.bench.observer.named("consumer_timed_out") == [
        (client.session.name, 1, "slow", "q", 1, 10_000)
    ]
    client.call(1, spec.Channel.CloseOk())
    watched.pass_time(30)
    assert names(client.call(1, spec.Channel.Open())) == ["Channel.OpenOk"]


def test_a_look_searches_so_many_connections_and_in_the_end_all(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(ack_timeout, "SCAN", 2)
    watched = Watched()
    clients = [watched.bench.connect(1) for _ in range(7)]
    for number, client in enumerate(clients):
        deliver(client, queue=f"q{number}")
    watched.pass_time(1)
    assert len(watched.timeouts._marks) == 2
    watched.pass_time(3)
    assert len(watched.timeouts._marks) == 7
    watched.pass_time(12)
    assert all(closes(client) for client in clients)


@pytest.mark.parametrize("count", [20, 200])
def test_a_look_costs_as_much_however_many_connections_are_idle(count: int) -> None:
    watched = Watched()
    for _ in range(count):
        watched.bench.connect(1)
    assert calls(watched.timeouts.look, "ack_timeout") == 3


def names(found: list[tuple[int, Any]]) -> list[str]:
    return [method.NAME for _, method in found]


def test_only_the_oldest_delivery_counts_and_acks_keep_a_channel_open():
    watched = Watched()
    client = watched.bench.connect(1)
    deliver(client, 8)
    for tag in range(1, 8):
        watched.pass_time(1)
        client.call(1, spec.Basic.Ack(delivery_tag=tag))
    watched.pass_time(4)
    assert closes(client) == []
    watched.pass_time(1)  # the eighth went out with the first
    assert len(closes(client)) == 1


def test_what_basic_get_took_counts_and_auto_ack_does_not():
    watched = Watched()
    client = watched.bench.connect(1, 2)
    deliver(client, 0)
    client.send(*[publish_bytes(1, "", "other", b"x")] * 2)
    client.call(1, spec.Queue.Declare(queue="other"))
    client.send(*[publish_bytes(1, "", "other", b"x")] * 2)
    client.call(1, spec.Basic.Get(queue="other", no_ack=True))
    client.call(2, spec.Basic.Get(queue="other"))
    watched.pass_time(13)
    assert [m.NAME for n, m in client.read() if n == 2] == ["Channel.Close"]
    assert not client.session.channels[1].is_closed


@pytest.mark.parametrize(
    ("node_ms", "argument_ms", "policy_ms", "used_ms"),
    [
        (10_000, 20_000, None, 20_000),
        (10_000, None, 4_000, 4_000),
        (10_000, 20_000, 15_000, 15_000),
        (None, 5_000, None, 5_000),
    ],
)
def test_a_queue_may_have_a_timeout_of_its_own(
    node_ms: int | None, argument_ms: int | None, policy_ms: int | None, used_ms: int
) -> None:
    from burrowmq.broker.definitions.parameters import set_policy
    from burrowmq.broker.rules.parameter_rules import make_policy

    watched = Watched(node_ms)
    client = watched.bench.connect(1)
    arguments = {} if argument_ms is None else {"x-consumer-timeout": argument_ms}
    deliver(client, 1, **arguments)
    if policy_ms is not None:
        document = {"pattern": ".", "definition": {"consumer-timeout": policy_ms}}
        set_policy(watched.bench.vhost, make_policy("p", document))
    watched.pass_time(used_ms // 1000)
    assert closes(client) == []
    watched.pass_time(2)
    assert f"Timeout value used: {used_ms} ms." in closes(client)[0].reply_text


def test_no_limit_and_a_queue_that_is_gone():
    watched = Watched(None)
    client = watched.bench.connect(1)
    deliver(client, 1, **{"x-consumer-timeout": 1000})
    client.call(1, spec.Queue.Delete(queue="q"))
    watched.pass_time(10_000)
    assert closes(client) == []  # its own timeout went with the queue, and the node has none


def test_a_held_channel_is_left_until_it_has_its_reply():
    watched = Watched()
    client = watched.bench.connect(1)
    deliver(client)
    client.call(1, spec.Queue.Declare(queue="durable", durable=True))
    watched.pass_time(20)
    assert closes(client) == []
    watched.bench.commit()
    watched.pass_time(12)
    assert [m.NAME for _, m in client.read()] == ["Queue.DeclareOk", "Channel.Close"]


def test_channels_without_unacked_deliveries_are_not_remembered():
    watched = Watched()
    client = watched.bench.connect(1, 2)
    deliver(client)
    watched.pass_time(1)
    assert len(watched.timeouts._marks) == 1
    client.call(1, spec.Basic.Ack(delivery_tag=1))
    watched.pass_time(1)
    assert not watched.timeouts._marks


@pytest.mark.parametrize("tag", [1, 2, 100, 1_000, 3_000, 4_990])
def test_marks_are_few_and_ages_lag_by_a_twentieth_at_most(tag: int) -> None:
    """One delivery a second and none acked: tag n went out in second n."""
    marks = TagMarks()
    for second in range(1, 5_000):
        marks.age_s(float(second), 1, second + 1)
        assert len(marks) <= MARKS_MAX
    age_s = marks.age_s(5_000.0, tag, 5_001)
    true_age_s = 5_000 - tag
    assert true_age_s - 5_000 / 20 <= age_s <= true_age_s


def test_a_channel_that_was_held_now_and_then_is_as_old_as_it_is():
    watched = Watched()
    client = watched.bench.connect(1)
    deliver(client)
    channel = client.session.channels[1]
    for second in range(12):
        channel.is_held = second % 2 == 1
        watched.pass_time(1)
    assert closes(client) == []  # it is not closed while its reply is on the way
    channel.is_held = False
    watched.pass_time(1)
    assert len(closes(client)) == 1


def test_for_how_long_a_delivery_has_been_out():
    watched = Watched(timeout_ms=None)
    client = watched.bench.connect(1)
    deliver(client, 2)
    channel = client.session.channels[1]
    assert watched.timeouts.age_s(channel, 1) == 0.0  # nobody has looked yet
    watched.pass_time(5)
    client.send(publish_bytes(1, "", "q", b"later"))
    watched.now_s += 0.5
    assert watched.timeouts.age_s(channel, 1) == 4.5
    assert watched.timeouts.age_s(channel, 3) == 0.0


def test_a_channel_that_cannot_be_looked_at_costs_no_other_one():
    watched = Watched()
    clients = [watched.bench.connect(1) for _ in range(5)]
    for number, client in enumerate(clients):
        deliver(client, queue=f"q{number}")
    bug = ValueError("a bug")

    def fail(*_: object) -> None:
        raise bug

    for client in (clients[0], clients[2]):
        client.session.fail_channel = fail  # type: ignore[method-assign]
    watched.pass_time(15)
    assert [len(closes(client)) for client in clients] == [0, 1, 0, 1, 1]
    told = [(client.session.name, bug) for client in (clients[0], clients[2])]
    assert watched.bench.observer.named("bug_found")[:2] == told
