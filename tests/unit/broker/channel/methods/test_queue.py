"""burrowmq.broker.channel.methods.queue: order of checks, texts, names, what waits for the disk."""

from __future__ import annotations

import re
from typing import Any

import pytest

from burrowmq.broker.channel.methods.queue import HANDLERS
from burrowmq.broker.rules.auth import Permission, TopicPermission
from burrowmq.protocol.errors import (
    AccessRefused,
    AmqpError,
    NotFound,
    PreconditionFailed,
    ResourceLocked,
)
from burrowmq.protocol.methods import Queue as Methods
from tests.support.topology import (
    CountingQueue,
    FakeChannel,
    FakeSession,
    NamedDestination,
    make_auth,
    make_vhost,
)

LOCKED = (
    "cannot obtain exclusive access to locked queue 'q' in vhost '/'. It could be originally"
    " declared on another connection or the exclusive property value does not match that of"
    " the original declaration."
)


def make_channel(permission: Permission | None = None) -> FakeChannel:
    auth = make_auth()
    if permission is not None:
        auth.set_permission("/", "guest", permission)
    return FakeChannel(FakeSession(make_vhost(), auth))


def beside(channel: FakeChannel) -> FakeChannel:
    """A channel of another connection to the same vhost."""
    return FakeChannel(FakeSession(channel.vhost, channel.session.auth))


def call(channel: Any, method: Any) -> None:
    HANDLERS[method.name](channel, method)


def declare(channel: Any, queue: str = "q", **more: Any) -> Any:
    call(channel, Methods.Declare(queue=queue, **more))
    return channel.vhost.queues.get(channel.last_queue_name)


def error(kind: type[AmqpError], channel: Any, method: Any) -> str:
    with pytest.raises(kind) as caught:
        call(channel, method)
    return caught.value.text


def test_a_vhosts_default_queue_type_becomes_an_argument() -> None:
    channel = make_channel()
    before = declare(channel, "before")
    channel.vhost.default_queue_type = "classic"
    assert declare(channel).arguments == {"x-queue-type": "classic"}
    declare(channel, arguments={"x-queue-type": "classic"})
    assert declare(channel, "before") is before  # said or not, it is classic
    assert before.arguments == {}
    with_length = declare(channel, "other", arguments={"x-max-length": 3})
    assert with_length.arguments == {"x-max-length": 3, "x-queue-type": "classic"}
    method = Methods.Declare(queue="q", arguments={"x-queue-type": "quorum"})
    assert error(PreconditionFailed, channel, method) == (
        "inequivalent arg 'x-queue-type' for queue 'q' in vhost '/':"
        " received 'quorum' but current is 'classic'"
    )


def test_declare_ok_says_what_is_ready_and_who_consumes() -> None:
    channel = make_channel()
    queue: CountingQueue = declare(channel)
    queue.ready_count, queue.consumer_count = 3, 2
    declare(channel)
    declare(channel, passive=True)
    first, *others = channel.sent
    assert (first.queue, first.message_count, first.consumer_count) == ("q", 0, 0)
    assert [(each.message_count, each.consumer_count) for each in others] == [(3, 2), (3, 2)]


def test_what_is_durable_is_answered_from_the_disk() -> None:
    channel = make_channel()
    declare(channel, durable=True)
    declare(channel, "r", durable=True, exclusive=True)
    call(channel, Methods.Delete(queue="q"))
    assert [each.name for each in channel.held] == ["Queue.DeclareOk", "Queue.DeleteOk"]
    assert [each.name for each in channel.sent] == ["Queue.DeclareOk"]


def test_nowait_is_silent_and_is_no_use_of_the_queue() -> None:
    channel = make_channel()
    queue: CountingQueue = declare(channel)
    channel.sent.clear()
    call(channel, Methods.Declare(queue="q", nowait=True))
    call(channel, Methods.Declare(queue="q", nowait=True, passive=True))
    assert queue.touch_count == 0
    call(channel, Methods.Bind(queue="q", exchange="amq.fanout", nowait=True))
    call(channel, Methods.Purge(queue="q", nowait=True))
    call(channel, Methods.Delete(queue="q", nowait=True))
    assert not channel.sent


def test_declaring_again_renews_the_lease() -> None:
    channel = make_channel()
    queue: CountingQueue = declare(channel)
    declare(channel)
    declare(channel, passive=True)
    assert queue.touch_count == 2


def test_the_server_thinks_of_names() -> None:
    channel = make_channel()
    names = {declare(channel, "").name for _ in range(3)}
    assert len(names) == 3
    for name in names:
        assert re.fullmatch(r"amq\.gen-[A-Za-z0-9_-]{22}", name)
    name = names.pop()
    text = error(AccessRefused, channel, Methods.Declare(queue=name))
    assert text == f"queue name '{name}' contains reserved prefix 'amq.*'"
    call(channel, Methods.Declare(queue=name, passive=True))
    assert channel.sent[-1].queue == name


def test_line_ends_leave_names() -> None:
    assert declare(make_channel(), "a\r\nb").name == "ab"


def test_exclusive_and_durable_is_exclusive() -> None:
    channel = make_channel()
    queue = declare(channel, durable=True, exclusive=True)
    assert not queue.durable
    assert queue.exclusive_owner is channel.session
    declare(channel, durable=True, exclusive=True)
    declare(channel, durable=False, exclusive=True)


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
    channel = make_channel()
    declare(channel, exclusive=True)
    call(channel, Methods.Bind(queue="q", exchange="amq.fanout"))
    assert error(ResourceLocked, beside(channel), method) == LOCKED


def test_the_exclusive_flag_has_to_agree() -> None:
    channel = make_channel()
    declare(channel, exclusive=True)
    assert error(ResourceLocked, channel, Methods.Declare(queue="q")) == LOCKED
    call(channel, Methods.Delete(queue="q"))
    declare(channel)
    assert error(ResourceLocked, channel, Methods.Declare(queue="q", exclusive=True)) == LOCKED


@pytest.mark.parametrize(
    ("method", "kind", "text"),
    [
        (
            Methods.Declare(queue="amq.x"),
            AccessRefused,
            "queue name 'amq.x' contains reserved prefix 'amq.*'",
        ),
        (Methods.Declare(queue="gone", passive=True), NotFound, "no queue 'gone' in vhost '/'"),
        (Methods.Declare(queue="", passive=True), NotFound, "no queue '' in vhost '/'"),
        (
            Methods.Declare(queue="q", arguments={"x-dead-letter-exchange": 1}),
            PreconditionFailed,
            "invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue 'q' in vhost '/'",
        ),
        (
            Methods.Declare(queue="q", arguments={"x-queue-type": "quorum"}),
            PreconditionFailed,
            "invalid arg 'x-queue-type' for queue 'q' in vhost '/':"
            " \"unsupported queue type 'quorum'\"",
        ),
        (Methods.Bind(queue="gone", exchange="gone"), NotFound, "no exchange 'gone' in vhost '/'"),
        (
            Methods.Bind(queue="gone", exchange="amq.topic"),
            NotFound,
            "no queue 'gone' in vhost '/'",
        ),
        (
            Methods.Bind(queue="gone", exchange=""),
            AccessRefused,
            "operation not permitted on the default exchange",
        ),
        (
            Methods.Unbind(queue="gone", exchange=""),
            AccessRefused,
            "operation not permitted on the default exchange",
        ),
        (Methods.Purge(queue="gone"), NotFound, "no queue 'gone' in vhost '/'"),
        (Methods.Purge(queue="q\n"), NotFound, "no queue 'q\n' in vhost '/'"),
        (Methods.Bind(queue="", exchange="x"), NotFound, "no previously declared queue"),
        (Methods.Unbind(queue="", exchange="x"), NotFound, "no previously declared queue"),
        (Methods.Purge(queue=""), NotFound, "no previously declared queue"),
        (Methods.Delete(queue=""), NotFound, "no previously declared queue"),
    ],
)
def test_refusals(method: Any, kind: type[AmqpError], text: str) -> None:
    assert error(kind, make_channel(), method) == text


def test_the_empty_name_is_the_queue_declared_last() -> None:
    channel = make_channel()
    declare(channel, "first")
    queue: CountingQueue = declare(channel, "second")
    call(channel, Methods.Bind(queue="", exchange="amq.direct", routing_key=""))
    call(channel, Methods.Bind(queue="", exchange="amq.direct", routing_key="k"))
    call(channel, Methods.Bind(queue="second", exchange="amq.direct", routing_key=""))
    found = channel.vhost.exchange("amq.direct").bindings
    assert [each.routing_key for each in found] == [b"second", b"k", b""]
    call(channel, Methods.Unbind(queue="", exchange="amq.direct", routing_key=""))
    assert [each.routing_key for each in channel.vhost.exchange("amq.direct").bindings] == [
        b"k",
        b"",
    ]
    call(channel, Methods.Declare(queue="first", passive=True))
    call(channel, Methods.Delete(queue=""))
    assert not queue.is_deleted
    assert list(channel.vhost.queues) == ["second"]


def test_purge_drops_what_is_ready() -> None:
    channel = make_channel()
    queue: CountingQueue = declare(channel)
    queue.ready_count = 5
    call(channel, Methods.Purge(queue="q"))
    assert channel.sent[-1].message_count == 5
    assert queue.ready_count == 0


def test_delete() -> None:
    channel = make_channel()
    queue: CountingQueue = declare(channel)
    queue.ready_count = queue.consumer_count = 1
    both = Methods.Delete(queue="q", if_empty=True, if_unused=True)
    assert error(PreconditionFailed, channel, both) == "queue 'q' in vhost '/' not empty"
    queue.ready_count = 0
    assert error(PreconditionFailed, channel, both) == "queue 'q' in vhost '/' in use"
    queue.ready_count = 4
    call(channel, Methods.Delete(queue="q"))
    assert channel.sent[-1].message_count == 4
    assert queue.is_deleted
    call(channel, Methods.Delete(queue="q"))
    assert channel.sent[-1].message_count == 0


def test_unbinding_what_is_missing_is_answered() -> None:
    channel = make_channel()
    call(channel, Methods.Unbind(queue="gone", exchange="gone too"))
    assert channel.sent[-1].name == "Queue.UnbindOk"


def test_existing_queues_are_compared_before_arguments_are_validated() -> None:
    channel = make_channel()
    declare(channel)
    text = error(
        PreconditionFailed, channel, Methods.Declare(queue="q", arguments={"x-max-length": -1})
    )
    assert text == (
        "inequivalent arg 'x-max-length' for queue 'q' in vhost '/':"
        " received the value '-1' of type 'signedint' but current is none"
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
    found = error(AccessRefused, make_channel(permission), method)
    assert found == f"{text} in vhost '/' refused for user 'guest'"


def test_topic_permissions_cover_binding_keys_of_topic_exchanges() -> None:
    channel = make_channel()
    record = TopicPermission(write="", read="^mine")
    for exchange in ("amq.topic", "amq.direct"):
        channel.session.auth.set_topic_permission("/", "guest", exchange, record)
    declare(channel)
    call(channel, Methods.Bind(queue="q", exchange="amq.topic", routing_key="mine.#"))
    call(channel, Methods.Bind(queue="q", exchange="amq.direct", routing_key="other"))
    other = Methods.Bind(queue="q", exchange="amq.topic", routing_key="other")
    assert error(AccessRefused, channel, other) == (
        "read access to topic 'other' in exchange 'amq.topic' in vhost '/' refused for user 'guest'"
    )


def test_the_pseudo_queue_of_direct_replies() -> None:
    channel = make_channel(Permission(configure="", write="", read=""))
    call(channel, Methods.Declare(queue="amq.rabbitmq.reply-to", durable=True))
    reply = channel.sent[-1]
    assert (reply.queue, reply.message_count, reply.consumer_count) == (
        "amq.rabbitmq.reply-to",
        0,
        1,
    )
    name = "amq.rabbitmq.reply-to.a.b"
    gone = Methods.Declare(queue=name, passive=True)
    assert error(NotFound, channel, gone) == f"no queue '{name}' in vhost '/'"
    channel.vhost.direct_reply = {name.encode(): NamedDestination("t")}.get
    call(channel, gone)
    assert channel.sent[-1].queue == name
