"""burrowmq.broker.channel.methods.topology: what the handlers share.

Covers: broker/queue/here.py
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest
from pika import spec

from burrowmq.broker.channel.methods.topology import (
    UNANSWERED_PER_TURN,
    answer,
    check_binding,
    clean_name,
    refuse_default_exchange,
)
from burrowmq.broker.queue.here import Here
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.rules.auth import Permission, TopicPermission
from burrowmq.broker.vhost.vhost import Edge, ExchangeDeclaration
from burrowmq.protocol.errors import AccessRefused, AmqpError, NotFound
from burrowmq.protocol.methods import Queue as Methods
from tests.support.bench.broker import BrokerBench
from tests.support.wire_client import method_bytes


def test_names() -> None:
    assert clean_name("a\rb\n\r\n") == "ab"
    refuse_default_exchange("x")
    with pytest.raises(AccessRefused):
        refuse_default_exchange("")


NOTHING = Permission(configure="", write="", read="")
EDGE = Edge("amq.topic", "queue", "q", b"a.b", {})


@pytest.mark.parametrize(
    ("permission", "edge", "told"),
    [
        (NOTHING, EDGE._replace(source=""), "access to queue 'q' in vhost '/' refused"),
        (None, EDGE._replace(source=""), "operation not permitted on the default exchange"),
        (
            None,
            EDGE._replace(kind="exchange", destination=""),
            "operation not permitted on the default exchange",
        ),
        (
            replace(NOTHING, write="^q$"),
            EDGE,
            "access to exchange 'amq.topic' in vhost '/' refused",
        ),
        (
            replace(NOTHING, write="^q$"),
            EDGE._replace(source="nope"),
            "access to exchange 'nope' in vhost '/' refused",
        ),
    ],
)
def test_a_binding_is_checked_in_rabbitmqs_order(
    permission: Permission | None, edge: Edge, told: str
) -> None:
    bench = BrokerBench()
    client = bench.connect(1)
    if permission is not None:
        bench.auth.set_permission("/", "guest", permission)
    with pytest.raises(AccessRefused, match=told):
        check_binding(client.session.channels[1], edge)


def test_topic_permissions_count_for_topic_exchanges_only() -> None:
    bench = BrokerBench()
    channel = bench.connect(1).session.channels[1]
    for exchange in ("amq.topic", "amq.direct"):
        bench.auth.set_topic_permission(
            "/", "guest", exchange, TopicPermission(write="", read="^b")
        )
    check_binding(channel, EDGE._replace(source="amq.direct"))
    check_binding(channel, EDGE._replace(routing_key=b"b.c"))
    with pytest.raises(AccessRefused, match=r"access to topic 'a\.b' in exchange 'amq\.topic'"):
        check_binding(channel, EDGE)


@pytest.mark.parametrize(
    ("is_own", "is_durable", "batches_later", "waits"),
    [
        (True, False, 9, True),
        (False, False, 0, False),
        (False, True, 1, True),
        (False, True, 2, False),
    ],
)
def test_a_reply_waits_for_what_it_promises(
    is_own: bool, is_durable: bool, batches_later: int, waits: bool
) -> None:
    bench = BrokerBench()
    client = bench.connect(1)
    before = bench.vhost.rows.staged
    bench.vhost.declare_exchange(ExchangeDeclaration(name="x", durable=True))
    for _ in range(batches_later):
        bench.engine.require_sync()
        bench.engine.hand_over()
        bench.engine.commit()
    staged = before if is_own else bench.vhost.rows.staged
    channel = client.session.channels[1]
    method, reply = Methods.Bind(), Methods.BindOk()
    answer(channel, method, reply, staged=staged, is_durable=is_durable)
    bench.scheduler.touch()
    bench.run()
    assert client.names() == ([] if waits else ["Queue.BindOk"])
    if waits:
        bench.commit()
        assert client.names() == ["Queue.BindOk"]


def test_changes_that_nobody_waits_for_give_way_to_others_and_keep_their_order() -> None:
    bench = BrokerBench()
    client = bench.connect(1)
    count = 2 * UNANSWERED_PER_TURN + 50
    declared = [
        method_bytes(1, spec.Queue.Declare(queue=f"q{number}", nowait=True))
        for number in range(count)
    ]
    last = method_bytes(1, spec.Queue.Declare(queue="last", passive=False))
    found: list[int] = []
    client.session.receive(b"".join([*declared, last]))
    while len(bench.vhost.queues) < count + 1:
        if len(bench.vhost.queues) not in found:
            found.append(len(bench.vhost.queues))
        bench.loop.run_once()
    assert found == [UNANSWERED_PER_TURN, 2 * UNANSWERED_PER_TURN]
    bench.loop.run()
    assert [method.NAME for _, method in client.read()] == ["Queue.DeclareOk"]


@pytest.mark.parametrize("is_failing", [False, True])
@pytest.mark.parametrize(
    ("method", "answer"),
    [
        (spec.Queue.Declare(queue="q", passive=True), "Queue.DeclareOk"),
        (spec.Queue.Purge(queue="q"), "Queue.PurgeOk"),
        (spec.Queue.Delete(queue="q"), "Queue.DeleteOk"),
    ],
)
def test_a_queue_that_answers_later_holds_its_channel_alone(
    monkeypatch: pytest.MonkeyPatch, method: Any, answer: str, is_failing: bool
) -> None:
    bench = BrokerBench()
    bench.queue("q")
    client = bench.connect(1, 2)
    waiting: list[Callable[[AmqpError | None], None]] = []
    monkeypatch.setattr(Queue, "ask", lambda queue, then: waiting.append(then))
    assert client.call(1, method, spec.Queue.Declare(queue="other")) == []
    assert client.call(2, spec.Basic.Qos())[0][1].NAME == "Basic.QosOk"
    error = NotFound("it does not answer") if is_failing else None
    monkeypatch.setattr(Queue, "ask", lambda queue, then: then(error))
    waiting.pop()(error)
    bench.run()
    found = [each for _, each in client.read()]
    if is_failing:
        (close,) = found
        assert (close.reply_code, close.class_id, close.method_id) == (
            404,
            *divmod(method.INDEX, 1 << 16),
        )
        assert "q" in bench.vhost.queues
    else:
        assert [each.NAME for each in found] == [answer, "Queue.DeclareOk"]


def test_a_queue_that_cannot_be_let_go_of_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = BrokerBench()
    bench.queue("q")
    client = bench.connect(1)
    monkeypatch.setattr(Here, "release", lambda queue, then: then(NotFound("it does not answer")))
    assert client.refused(1, spec.Queue.Delete(queue="q")) == (
        404,
        "NOT_FOUND - it does not answer",
    )
    assert "q" in bench.vhost.queues
