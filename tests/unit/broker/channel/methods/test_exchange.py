"""burrowmq.broker.channel.methods.exchange: order of checks, texts, what waits for the disk."""

from __future__ import annotations

from typing import Any

import pytest
from pika.spec import Exchange as Methods

from burrowmq.broker.rules.auth import Permission
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client

NAMES = {403: "ACCESS_REFUSED", 404: "NOT_FOUND", 406: "PRECONDITION_FAILED"}


def connected(permission: Permission | None = None) -> Client:
    """A client with a channel, as guest with these permissions."""
    bench = BrokerBench()
    if permission is not None:
        bench.auth.set_permission("/", "guest", permission)
    return bench.connect(1)


def names(found: list[tuple[int, Any]]) -> list[str]:
    return [method.NAME for _, method in found]


def declare(exchange: str = "x", kind: str = "direct", **more: Any) -> Any:
    return Methods.Declare(exchange=exchange, type=kind, **more)


DEFAULT = "operation not permitted on the default exchange"


def test_a_transient_exchange_is_answered_at_once_a_durable_one_from_the_disk() -> None:
    bench = BrokerBench()
    client = bench.connect(1, 2)
    assert names(client.call(1, declare())) == ["Exchange.DeclareOk"]
    assert client.call(1, declare("d", durable=True)) == []
    assert client.call(2, declare("d", durable=True)) == [], "the first is not on disk yet"
    bench.commit()
    assert [(number, method.NAME) for number, method in client.read()] == [
        (1, "Exchange.DeclareOk")
    ]
    bench.commit()
    assert [(number, method.NAME) for number, method in client.read()] == [
        (2, "Exchange.DeclareOk")
    ]
    assert names(client.call(1, declare("d", durable=True))) == ["Exchange.DeclareOk"]


def test_nowait_is_silent() -> None:
    client = connected()
    assert client.call(1, declare(nowait=True, durable=True)) == []
    assert list(client.bench.vhost.exchanges)[-1] == "x"
    assert client.call(1, Methods.Delete(exchange="x", nowait=True)) == []
    client.bench.scheduler.touch()
    client.bench.run()
    assert client.bench.engine.in_flight is None, "nobody waits for the disk"
    assert "x" not in client.bench.vhost.exchanges


def test_line_ends_leave_names() -> None:
    client = connected()
    client.call(1, declare("a\r\nb"))
    assert "ab" in client.bench.vhost.exchanges


@pytest.mark.parametrize(
    ("method", "code", "text"),
    [
        (
            Methods.Declare(exchange="", type="nope"),
            406,
            "unknown exchange type 'nope'",
        ),
        (Methods.Declare(exchange="", type="direct"), 403, DEFAULT),
        (Methods.Declare(exchange="\n", type="direct"), 403, DEFAULT),
        (Methods.Declare(exchange="", passive=True), 403, DEFAULT),
        (
            Methods.Declare(exchange="gone", passive=True, type="nope"),
            404,
            "no exchange 'gone' in vhost '/'",
        ),
        (
            Methods.Declare(exchange="amq.foo", type="direct"),
            403,
            "exchange name 'amq.foo' contains reserved prefix 'amq.*'",
        ),
        (
            Methods.Declare(exchange="y", type="direct", arguments={"alternate-exchange": 1}),
            406,
            "invalid type 'signedint' for arg 'alternate-exchange' in exchange 'y' in vhost '/'",
        ),
        (Methods.Delete(exchange=""), 403, DEFAULT),
        (
            Methods.Delete(exchange="amq.fanout"),
            403,
            "deletion of system exchange 'amq.fanout' in vhost '/' not allowed",
        ),
        (
            Methods.Delete(exchange="amq.nothing"),
            403,
            "deletion of system exchange 'amq.nothing' in vhost '/' not allowed",
        ),
        (Methods.Bind(destination="", source="x"), 403, DEFAULT),
        (Methods.Bind(destination="x", source=""), 403, DEFAULT),
        (Methods.Unbind(destination="x", source=""), 403, DEFAULT),
        (
            Methods.Bind(destination="gone", source="gone too"),
            404,
            "no exchange 'gone too' in vhost '/'",
        ),
        (
            Methods.Bind(destination="gone", source="amq.topic"),
            404,
            "no exchange 'gone' in vhost '/'",
        ),
    ],
)
def test_refusals(method: Any, code: int, text: str) -> None:
    assert connected().refused(1, method) == (code, f"{NAMES[code]} - {text}")


def test_redeclaring() -> None:
    client = connected()
    client.call(1, declare(durable=True))
    client.bench.commit()
    assert names(client.read()) == ["Exchange.DeclareOk"]
    assert client.refused(1, declare()) == (
        406,
        "PRECONDITION_FAILED - inequivalent arg 'durable' for exchange 'x' in vhost '/':"
        " received 'false' but current is 'true'",
    )
    assert client.call(1, declare("amq.topic", "topic", durable=True)) == [], "as if it were new"
    client.bench.commit()
    assert names(client.read()) == ["Exchange.DeclareOk"]


def test_delete_is_idempotent_and_heeds_if_unused() -> None:
    client = connected()
    assert names(client.call(1, Methods.Delete(exchange="x"))) == ["Exchange.DeleteOk"]
    bound = client.call(1, declare(), Methods.Bind(destination="amq.fanout", source="x"))
    assert names(bound) == ["Exchange.DeclareOk", "Exchange.BindOk"]
    assert client.refused(1, Methods.Delete(exchange="x", if_unused=True)) == (
        406,
        "PRECONDITION_FAILED - exchange 'x' in vhost '/' in use",
    )
    unbind = Methods.Unbind(destination="amq.fanout", source="x")
    found = client.call(1, unbind, Methods.Delete(exchange="x", if_unused=True))
    assert names(found) == ["Exchange.UnbindOk", "Exchange.DeleteOk"]
    assert "x" not in client.bench.vhost.exchanges


@pytest.mark.parametrize(
    ("permission", "method", "text"),
    [
        (
            Permission(configure="", write=".*", read=".*"),
            Methods.Declare(exchange="x", type="direct"),
            "configure access to exchange 'x'",
        ),
        (
            Permission(configure="", write=".*", read=".*"),
            Methods.Delete(exchange="gone"),
            "configure access to exchange 'gone'",
        ),
        (
            Permission(configure=".*", write=".*", read=""),
            Methods.Declare(exchange="x", type="direct", arguments={"alternate-exchange": "a"}),
            "read access to exchange 'x'",
        ),
        (
            Permission(configure=".*", write="^x$", read=".*"),
            Methods.Declare(exchange="x", type="direct", arguments={"alternate-exchange": "a"}),
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
    assert connected(permission).refused(1, method) == (
        403,
        f"ACCESS_REFUSED - {text} in vhost '/' refused for user 'guest'",
    )


def test_passive_asks_for_no_permission() -> None:
    client = connected(Permission(configure="", write="", read=""))
    found = client.call(1, Methods.Declare(exchange="amq.topic", passive=True))
    assert names(found) == ["Exchange.DeclareOk"]
