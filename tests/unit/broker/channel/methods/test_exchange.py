"""burrowmq.broker.channel.methods.exchange: order of checks, texts, what waits for the disk."""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.broker.channel.methods.exchange import HANDLERS
from burrowmq.broker.rules.auth import Permission
from burrowmq.protocol.errors import AccessRefused, AmqpError, NotFound, PreconditionFailed
from burrowmq.protocol.methods import Exchange as Methods
from tests.support.topology import FakeChannel, FakeSession, make_auth, make_vhost


def make_channel(permission: Permission | None = None) -> FakeChannel:
    auth = make_auth()
    if permission is not None:
        auth.set_permission("/", "guest", permission)
    return FakeChannel(FakeSession(make_vhost(), auth))


def call(channel: Any, method: Any) -> None:
    HANDLERS[method.name](channel, method)


def declare(channel: Any, exchange: str = "x", kind: str = "direct", **more: Any) -> None:
    arguments = more.pop("arguments", {})
    call(
        channel, Methods.Declare(exchange=exchange, exchange_type=kind, arguments=arguments, **more)
    )


def error(kind: type[AmqpError], channel: Any, method: Any) -> str:
    with pytest.raises(kind) as caught:
        call(channel, method)
    return caught.value.text


DEFAULT = "operation not permitted on the default exchange"


def test_a_transient_exchange_is_answered_at_once_a_durable_one_from_the_disk() -> None:
    channel = make_channel()
    declare(channel)
    assert [each.name for each in channel.sent] == ["Exchange.DeclareOk"]
    declare(channel, "d", durable=True)
    assert [each.name for each in channel.held] == ["Exchange.DeclareOk"]
    declare(channel, "d", durable=True)
    assert len(channel.held) == 2, "the first one may not be on disk yet"
    channel.vhost.engine.epoch += 2  # type: ignore[misc, operator]
    declare(channel, "d", durable=True)
    assert len(channel.held) == 2
    assert len(channel.sent) == 2


def test_nowait_is_silent() -> None:
    channel = make_channel()
    declare(channel, nowait=True, durable=True)
    call(channel, Methods.Delete(exchange="x", nowait=True))
    assert not channel.sent
    assert not channel.held


def test_line_ends_leave_names() -> None:
    channel = make_channel()
    declare(channel, "a\r\nb")
    assert "ab" in channel.vhost.exchanges


@pytest.mark.parametrize(
    ("method", "kind", "text"),
    [
        (
            Methods.Declare(exchange="", exchange_type="nope"),
            PreconditionFailed,
            "unknown exchange type 'nope'",
        ),
        (Methods.Declare(exchange="", exchange_type="direct"), AccessRefused, DEFAULT),
        (Methods.Declare(exchange="\n", exchange_type="direct"), AccessRefused, DEFAULT),
        (Methods.Declare(exchange="", passive=True), AccessRefused, DEFAULT),
        (
            Methods.Declare(exchange="gone", passive=True, exchange_type="nope"),
            NotFound,
            "no exchange 'gone' in vhost '/'",
        ),
        (
            Methods.Declare(exchange="amq.foo", exchange_type="direct"),
            AccessRefused,
            "exchange name 'amq.foo' contains reserved prefix 'amq.*'",
        ),
        (
            Methods.Declare(
                exchange="y", exchange_type="direct", arguments={"alternate-exchange": 1}
            ),
            PreconditionFailed,
            "invalid type 'signedint' for arg 'alternate-exchange' in exchange 'y' in vhost '/'",
        ),
        (Methods.Delete(exchange=""), AccessRefused, DEFAULT),
        (
            Methods.Delete(exchange="amq.fanout"),
            AccessRefused,
            "deletion of system exchange 'amq.fanout' in vhost '/' not allowed",
        ),
        (
            Methods.Delete(exchange="amq.nothing"),
            AccessRefused,
            "deletion of system exchange 'amq.nothing' in vhost '/' not allowed",
        ),
        (Methods.Bind(destination="", source="x"), AccessRefused, DEFAULT),
        (Methods.Bind(destination="x", source=""), AccessRefused, DEFAULT),
        (Methods.Unbind(destination="x", source=""), AccessRefused, DEFAULT),
        (
            Methods.Bind(destination="gone", source="gone too"),
            NotFound,
            "no exchange 'gone too' in vhost '/'",
        ),
        (
            Methods.Bind(destination="gone", source="amq.topic"),
            NotFound,
            "no exchange 'gone' in vhost '/'",
        ),
    ],
)
def test_refusals(method: Any, kind: type[AmqpError], text: str) -> None:
    assert error(kind, make_channel(), method) == text


def test_redeclaring() -> None:
    channel = make_channel()
    declare(channel, durable=True)
    text = error(PreconditionFailed, channel, Methods.Declare(exchange="x", exchange_type="direct"))
    assert text == (
        "inequivalent arg 'durable' for exchange 'x' in vhost '/':"
        " received 'false' but current is 'true'"
    )
    declare(channel, "amq.topic", "topic", durable=True)


def test_delete_is_idempotent_and_heeds_if_unused() -> None:
    channel = make_channel()
    call(channel, Methods.Delete(exchange="x"))
    declare(channel)
    call(channel, Methods.Bind(destination="amq.fanout", source="x"))
    text = error(PreconditionFailed, channel, Methods.Delete(exchange="x", if_unused=True))
    assert text == "exchange 'x' in vhost '/' in use"
    call(channel, Methods.Unbind(destination="amq.fanout", source="x"))
    call(channel, Methods.Delete(exchange="x", if_unused=True))
    assert "x" not in channel.vhost.exchanges
    assert [each.name for each in channel.sent] == [
        "Exchange.DeleteOk",
        "Exchange.DeclareOk",
        "Exchange.BindOk",
        "Exchange.UnbindOk",
        "Exchange.DeleteOk",
    ]


@pytest.mark.parametrize(
    ("permission", "method", "text"),
    [
        (
            Permission(configure="", write=".*", read=".*"),
            Methods.Declare(exchange="x", exchange_type="direct"),
            "configure access to exchange 'x'",
        ),
        (
            Permission(configure="", write=".*", read=".*"),
            Methods.Delete(exchange="gone"),
            "configure access to exchange 'gone'",
        ),
        (
            Permission(configure=".*", write=".*", read=""),
            Methods.Declare(
                exchange="x", exchange_type="direct", arguments={"alternate-exchange": "a"}
            ),
            "read access to exchange 'x'",
        ),
        (
            Permission(configure=".*", write="^x$", read=".*"),
            Methods.Declare(
                exchange="x", exchange_type="direct", arguments={"alternate-exchange": "a"}
            ),
            "write access to exchange 'a'",
        ),
        (
            Permission(configure=".*", write="", read=".*"),
            Methods.Bind(destination="gone", source="also gone"),
            "write access to exchange 'gone'",
        ),
        (
            Permission(configure=".*", write="", read=".*"),
            Methods.Bind(destination="", source="x"),
            "write access to exchange 'amq.default'",
        ),
        (
            Permission(configure=".*", write=".*", read=""),
            Methods.Unbind(destination="gone", source="also gone"),
            "read access to exchange 'also gone'",
        ),
    ],
)
def test_permissions_come_before_existence(permission: Permission, method: Any, text: str) -> None:
    found = error(AccessRefused, make_channel(permission), method)
    assert found == f"{text} in vhost '/' refused for user 'guest'"


def test_passive_asks_for_no_permission() -> None:
    channel = make_channel(Permission(configure="", write="", read=""))
    call(channel, Methods.Declare(exchange="amq.topic", passive=True))
    assert [each.name for each in channel.sent] == ["Exchange.DeclareOk"]
