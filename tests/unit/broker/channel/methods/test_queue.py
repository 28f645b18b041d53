"""burrowmq.broker.channel.methods.queue: order of checks, texts, names, what waits for the disk."""

from __future__ import annotations

import re
from typing import Any

import pytest
from pika import spec
from pika.spec import Queue as Methods

from burrowmq.broker.rules.auth import Permission, TopicPermission
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.wire_client import publish_bytes

NAMES = {
    403: "ACCESS_REFUSED",
    404: "NOT_FOUND",
    405: "RESOURCE_LOCKED",
    406: "PRECONDITION_FAILED",
}
LOCKED = (
    405,
    "RESOURCE_LOCKED - cannot obtain exclusive access to locked queue 'q' in vhost '/'. It could be"
    " originally declared on another connection or the exclusive property value does not match that"
    " of the original declaration.",
)


def connected(permission: Permission | None = None) -> Client:
    """A client with a channel, as guest with these permissions."""
    bench = BrokerBench()
    if permission is not None:
        bench.auth.set_permission("/", "guest", permission)
    return bench.connect(1)


def called(client: Client, method: Any) -> Any:
    """The one reply to a method."""
    ((_, reply),) = client.call(1, method)
    return reply


def declare(client: Client, queue: str = "q", **more: Any) -> Any:
    """The queue that is there after it was declared."""
    reply = called(client, Methods.Declare(queue=queue, **more))
    assert isinstance(reply, Methods.DeclareOk), reply
    return client.bench.vhost.queues[reply.queue]


def publish(client: Client, count: int, queue: str = "q") -> None:
    client.send(*[publish_bytes(1, "", queue, b"%d" % number) for number in range(count)])


def names(found: list[tuple[int, Any]]) -> list[str]:
    return [method.NAME for _, method in found]


def test_a_vhosts_default_queue_type_becomes_an_argument() -> None:
    client = connected()
    before = declare(client, "before")
    client.bench.vhost.default_queue_type = "classic"
    assert declare(client).arguments == {"x-queue-type": "classic"}
    declare(client, arguments={"x-queue-type": "classic"})
    assert declare(client, "before") is before  # said or not, it is classic
    assert before.arguments == {}
    with_length = declare(client, "other", arguments={"x-max-length": 3})
    assert with_length.arguments == {"x-max-length": 3, "x-queue-type": "classic"}
    quorum = Methods.Declare(queue="q", arguments={"x-queue-type": "quorum"})
    assert client.refused(1, quorum) == (
        406,
        "PRECONDITION_FAILED - inequivalent arg 'x-queue-type' for queue 'q' in vhost '/':"
        " received 'quorum' but current is 'classic'",
    )


def test_declare_ok_says_what_is_ready_and_who_consumes() -> None:
    client = connected()
    first = called(client, Methods.Declare(queue="q"))
    assert (first.queue, first.message_count, first.consumer_count) == ("q", 0, 0)
    consume = [spec.Basic.Consume(queue="q", consumer_tag=tag) for tag in "ab"]
    client.call(1, spec.Basic.Qos(prefetch_count=1), *consume)
    publish(client, 5)
    assert names(client.read()) == ["Basic.Deliver", "Basic.Deliver"]
    for passive in (False, True):
        again = called(client, Methods.Declare(queue="q", passive=passive))
        assert (again.queue, again.message_count, again.consumer_count) == ("q", 3, 2)


def test_what_is_durable_is_answered_from_the_disk() -> None:
    bench = BrokerBench()
    client = bench.connect(1, 2)
    assert client.call(1, Methods.Declare(queue="q", durable=True)) == []
    exclusive = client.call(2, Methods.Declare(queue="r", durable=True, exclusive=True))
    assert names(exclusive) == ["Queue.DeclareOk"]
    bench.commit()
    assert names(client.read()) == ["Queue.DeclareOk"]
    assert client.call(1, Methods.Delete(queue="q")) == []
    bench.commit()
    assert names(client.read()) == ["Queue.DeleteOk"]


def test_nowait_is_silent() -> None:
    client = connected()
    declare(client)
    publish(client, 1)
    assert client.call(1, Methods.Declare(queue="q", nowait=True)) == []
    assert client.call(1, Methods.Declare(queue="q", nowait=True, passive=True)) == []
    assert client.call(1, Methods.Bind(queue="q", exchange="amq.fanout", nowait=True)) == []
    assert len(client.bench.vhost.exchange("amq.fanout").bindings) == 1
    assert client.call(1, Methods.Purge(queue="q", nowait=True)) == []
    assert client.bench.vhost.queue("q").ready_count == 0
    assert client.call(1, Methods.Delete(queue="q", nowait=True)) == []
    assert not client.bench.vhost.queues


@pytest.mark.parametrize("passive", [False, True])
@pytest.mark.parametrize("nowait", [False, True])
def test_declaring_again_renews_the_lease_and_with_nowait_is_no_use(
    passive: bool, nowait: bool
) -> None:
    client = connected()
    expires = {"x-expires": 1000}
    declare(client, arguments=expires)
    client.bench.loop.advance(0.75)
    client.call(1, Methods.Declare(queue="q", passive=passive, nowait=nowait, arguments=expires))
    client.bench.loop.advance(0.75)
    assert ("q" in client.bench.vhost.queues) is not nowait
    client.bench.loop.advance(0.5)
    assert "q" not in client.bench.vhost.queues


def test_the_server_thinks_of_names() -> None:
    client = connected()
    found = {declare(client, "").name for _ in range(3)}
    assert len(found) == 3
    for name in found:
        assert re.fullmatch(r"amq\.gen-[A-Za-z0-9_-]{22}", name)
    name = found.pop()
    assert client.refused(1, Methods.Declare(queue=name)) == (
        403,
        f"ACCESS_REFUSED - queue name '{name}' contains reserved prefix 'amq.*'",
    )
    assert called(client, Methods.Declare(queue=name, passive=True)).queue == name


def test_line_ends_leave_names() -> None:
    assert declare(connected(), "a\r\nb").name == "ab"


def test_exclusive_and_durable_is_exclusive() -> None:
    client = connected()
    queue = declare(client, durable=True, exclusive=True)
    assert not queue.durable
    assert queue.exclusive_owner is client.session
    assert declare(client, durable=True, exclusive=True) is queue
    assert declare(client, durable=False, exclusive=True) is queue


@pytest.mark.parametrize(
    "method",
    [
        Methods.Declare(queue="q"),
        Methods.Declare(queue="q", exclusive=True),
        Methods.Declare(queue="q", passive=True),
        Methods.Bind(queue="q", exchange="amq.fanout", routing_key="other"),
        Methods.Unbind(queue="q", exchange="amq.fanout"),
        Methods.Purge(queue="q"),
        Methods.Delete(queue="q"),
    ],
)
def test_an_exclusive_queue_is_locked_for_others(method: Any) -> None:
    client = connected()
    declare(client, exclusive=True)
    called(client, Methods.Bind(queue="q", exchange="amq.fanout"))
    assert client.bench.connect(1).refused(1, method) == LOCKED


def test_the_exclusive_flag_has_to_agree() -> None:
    client = connected()
    declare(client, exclusive=True)
    assert client.refused(1, Methods.Declare(queue="q")) == LOCKED
    called(client, Methods.Delete(queue="q"))
    declare(client)
    assert client.refused(1, Methods.Declare(queue="q", exclusive=True)) == LOCKED


@pytest.mark.parametrize(
    ("method", "code", "text"),
    [
        (
            Methods.Declare(queue="amq.x"),
            403,
            "queue name 'amq.x' contains reserved prefix 'amq.*'",
        ),
        (Methods.Declare(queue="gone", passive=True), 404, "no queue 'gone' in vhost '/'"),
        (Methods.Declare(queue="", passive=True), 404, "no queue '' in vhost '/'"),
        (
            Methods.Declare(queue="q", arguments={"x-dead-letter-exchange": 1}),
            406,
            "invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue 'q' in vhost '/'",
        ),
        (
            Methods.Declare(queue="q", arguments={"x-queue-type": "quorum"}),
            406,
            "invalid arg 'x-queue-type' for queue 'q' in vhost '/':"
            " \"unsupported queue type 'quorum'\"",
        ),
        (Methods.Bind(queue="gone", exchange="gone"), 404, "no exchange 'gone' in vhost '/'"),
        (
            Methods.Bind(queue="gone", exchange="amq.topic"),
            404,
            "no queue 'gone' in vhost '/'",
        ),
        (
            Methods.Bind(queue="gone", exchange=""),
            403,
            "operation not permitted on the default exchange",
        ),
        (
            Methods.Unbind(queue="gone", exchange=""),
            403,
            "operation not permitted on the default exchange",
        ),
        (Methods.Purge(queue="gone"), 404, "no queue 'gone' in vhost '/'"),
        (Methods.Purge(queue="q\n"), 404, "no queue 'q\n' in vhost '/'"),
        (Methods.Bind(queue="", exchange="x"), 404, "no previously declared queue"),
        (Methods.Unbind(queue="", exchange="x"), 404, "no previously declared queue"),
        (Methods.Purge(queue=""), 404, "no previously declared queue"),
        (Methods.Delete(queue=""), 404, "no previously declared queue"),
    ],
)
def test_refusals(method: Any, code: int, text: str) -> None:
    assert connected().refused(1, method) == (code, f"{NAMES[code]} - {text}")


def test_the_empty_name_is_the_queue_declared_last() -> None:
    client = connected()
    declare(client, "first")
    declare(client, "second")
    direct = client.bench.vhost.exchange("amq.direct")
    called(client, Methods.Bind(queue="", exchange="amq.direct", routing_key=""))
    called(client, Methods.Bind(queue="", exchange="amq.direct", routing_key="k"))
    called(client, Methods.Bind(queue="second", exchange="amq.direct", routing_key=""))
    assert [each.routing_key for each in direct.bindings] == [b"second", b"k", b""]
    called(client, Methods.Unbind(queue="", exchange="amq.direct", routing_key=""))
    assert [each.routing_key for each in direct.bindings] == [b"k", b""]
    called(client, Methods.Declare(queue="first", passive=True))
    called(client, Methods.Delete(queue=""))
    assert list(client.bench.vhost.queues) == ["second"]


def test_purge_drops_what_is_ready() -> None:
    client = connected()
    queue = declare(client)
    publish(client, 5)
    assert called(client, Methods.Purge(queue="q")).message_count == 5
    assert queue.ready_count == 0


def test_delete() -> None:
    client = connected()
    queue = declare(client)
    publish(client, 2)
    client.call(1, spec.Basic.Qos(prefetch_count=1), spec.Basic.Consume(queue="q"))
    both = Methods.Delete(queue="q", if_empty=True, if_unused=True)
    other = client.bench.connect(1)
    assert other.refused(1, both) == (406, "PRECONDITION_FAILED - queue 'q' in vhost '/' not empty")
    called(other, Methods.Purge(queue="q"))
    assert other.refused(1, both) == (406, "PRECONDITION_FAILED - queue 'q' in vhost '/' in use")
    publish(other, 4)
    assert called(other, Methods.Delete(queue="q")).message_count == 4
    assert queue.is_deleted
    assert called(other, Methods.Delete(queue="q")).message_count == 0


def test_unbinding_what_is_missing_is_answered() -> None:
    unbind = Methods.Unbind(queue="gone", exchange="gone too")
    assert isinstance(called(connected(), unbind), Methods.UnbindOk)


def test_existing_queues_are_compared_before_arguments_are_validated() -> None:
    client = connected()
    declare(client)
    assert client.refused(1, Methods.Declare(queue="q", arguments={"x-max-length": -1})) == (
        406,
        "PRECONDITION_FAILED - inequivalent arg 'x-max-length' for queue 'q' in vhost '/':"
        " received the value '-1' of type 'signedint' but current is none",
    )


@pytest.mark.parametrize(
    ("permission", "method", "text"),
    [
        (
            Permission(configure="", write=".*", read=".*"),
            Methods.Declare(queue="q", arguments={"x-max-length": -1}),
            "configure access to queue 'q'",
        ),
        (
            Permission(configure=".*", write=".*", read=""),
            Methods.Declare(queue="q", arguments={"x-dead-letter-exchange": "dlx", "x-expires": 0}),
            "read access to queue 'q'",
        ),
        (
            Permission(configure=".*", write="", read=".*"),
            Methods.Declare(queue="q", arguments={"x-dead-letter-exchange": ""}),
            "write access to exchange 'amq.default'",
        ),
        (
            Permission(configure="", write=".*", read=".*"),
            Methods.Delete(queue="gone"),
            "configure access to queue 'gone'",
        ),
        (
            Permission(configure=".*", write=".*", read=""),
            Methods.Purge(queue="gone"),
            "read access to queue 'gone'",
        ),
        (
            Permission(configure=".*", write="", read=".*"),
            Methods.Bind(queue="gone", exchange=""),
            "write access to queue 'gone'",
        ),
        (
            Permission(configure=".*", write=".*", read=""),
            Methods.Unbind(queue="gone", exchange="gone"),
            "read access to exchange 'gone'",
        ),
    ],
)
def test_permissions_come_before_existence(permission: Permission, method: Any, text: str) -> None:
    assert connected(permission).refused(1, method) == (
        403,
        f"ACCESS_REFUSED - {text} in vhost '/' refused for user 'guest'",
    )


def test_topic_permissions_cover_binding_keys_of_topic_exchanges() -> None:
    client = connected()
    record = TopicPermission(write="", read="^mine")
    for exchange in ("amq.topic", "amq.direct"):
        client.bench.auth.set_topic_permission("/", "guest", exchange, record)
    declare(client)
    for exchange, key in (("amq.topic", "mine.#"), ("amq.direct", "other")):
        bind = Methods.Bind(queue="q", exchange=exchange, routing_key=key)
        assert isinstance(called(client, bind), Methods.BindOk)
    other = Methods.Bind(queue="q", exchange="amq.topic", routing_key="other")
    assert client.refused(1, other) == (
        403,
        "ACCESS_REFUSED - read access to topic 'other' in exchange 'amq.topic' in vhost '/'"
        " refused for user 'guest'",
    )


def test_the_pseudo_queue_of_direct_replies() -> None:
    client = connected(Permission(configure="", write="", read=""))
    reply = called(client, Methods.Declare(queue="amq.rabbitmq.reply-to", durable=True))
    assert (reply.queue, reply.message_count, reply.consumer_count) == (
        "amq.rabbitmq.reply-to",
        0,
        1,
    )
    name = "amq.rabbitmq.reply-to.a.b"
    assert client.refused(1, Methods.Declare(queue=name, passive=True)) == (
        404,
        f"NOT_FOUND - no queue '{name}' in vhost '/'",
    )
    called(client, spec.Basic.Consume(queue="amq.rabbitmq.reply-to", no_ack=True))
    target = client.session.channels[1].reply_target
    assert target is not None
    there = Methods.Declare(queue=target.name, passive=True)
    assert called(client, there).queue == target.name


def test_a_queue_of_more_messages_than_a_reply_can_speak_of(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    bench = BrokerBench(is_verified=False)
    client = bench.connect(1)
    declare(client)
    client.send(publish_bytes(1, "", "q", b"x"))
    many = (1 << 32) + 5
    queue = bench.vhost.queues["q"]
    monkeypatch.setattr(type(queue), "ready_count", property(lambda _: many))
    monkeypatch.setattr(type(queue), "purge", lambda _: many)
    assert called(client, Methods.Declare(queue="q")).message_count == (1 << 32) - 1
    assert called(client, spec.Basic.Get(queue="q", no_ack=True)).message_count == (1 << 32) - 1
    assert called(client, Methods.Purge(queue="q")).message_count == (1 << 32) - 1
    assert called(client, Methods.Delete(queue="q")).message_count == (1 << 32) - 1
