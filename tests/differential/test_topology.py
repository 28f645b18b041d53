"""Declarations, bindings and routing: the same calls to RabbitMQ and to us give the same answers, texts included.

Left out are the calls in which RabbitMQ 3.10 fails with an internal error (a master locator that is no text, a
malformed direct-reply name): there we answer.
"""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel
from pika.exceptions import ChannelClosedByBroker

pytestmark = [pytest.mark.differential, pytest.mark.needs_server, pytest.mark.long]

Outcome = tuple[Any, ...]
BASE = {"x-max-length": 10, "x-message-ttl": 1000, "x-overflow": "drop-head"}

ARGUMENTS: list[tuple[str, Any]] = [
    *(("x-expires", value) for value in (0, -1, "a", 2**50, 1000)),
    *(("x-message-ttl", value) for value in (-1, True, None, [1], {"a": 1}, 0)),
    *(("x-max-length", value) for value in (-5, "10", 0)),
    *(("x-max-length-bytes", value) for value in (-5, 2**40)),
    *(("x-max-priority", value) for value in (256, -1, "1", 0)),
    *(("x-overflow", value) for value in ("x", 1, "reject-publish-dlx")),
    *(("x-queue-mode", value) for value in ("x", 1, "lazy")),
    *(("x-queue-version", value) for value in (3, "2", 0, 1)),
    *(("x-queue-type", value) for value in ("foo", 1, "undefined", "classic")),
    *(("x-single-active-consumer", value) for value in (1, "true", True)),
    ("x-dead-letter-exchange", 1),
    ("x-dead-letter-routing-key", "a"),
    ("x-dead-letter-routing-key", 1),
    ("x-max-age", "1h"),
    ("x-delivery-limit", 1),
    ("x-initial-cluster-size", 1),
    ("x-queue-leader-locator", "x"),
    ("x-max-in-memory-length", 1),
    ("x-quorum-initial-group-size", 1),
    ("x-stream-max-segment-size-bytes", 1),
    ("x-dead-letter-strategy", "x"),
    ("x-consumer-timeout", "x"),
    ("x-foo", {"a": 1}),
]
REDECLARED: list[dict[str, Any]] = [
    {},
    {"durable": False, "arguments": BASE},
    {"durable": True, "auto_delete": True, "arguments": BASE},
    {"durable": True, "arguments": {"x-max-length": 10}},
    *(
        {"durable": True, "arguments": {**BASE, key: value}}
        for key, value in (
            ("x-max-length", "10"),
            ("x-max-length", 2**40),
            ("x-max-length", [1]),
            ("x-expires", 5),
            ("x-expires", -1),
            ("x-expires", None),
            ("x-overflow", {"a": 1}),
            ("x-overflow", None),
            ("x-single-active-consumer", True),
            ("x-foo", 1),
            ("x-queue-type", "classic"),
            ("x-queue-type", "quorum"),
        )
    ),
]
PATTERNS = [
    "#",
    "*",
    "*.*",
    "a.*",
    "a.#",
    "#.a",
    "*.#",
    "a.*.b",
    "#.#",
    "a.#.b",
    "#.*.#",
    "a.b",
    "*.b.#",
    "#.b.*",
    ".",
    "..",
    "a.",
    ".a",
]
KEYS = [
    ".",
    "a",
    "a.",
    ".a",
    "a.b",
    "a..b",
    "a.b.c",
    "x",
    "b",
    "a.x.y.b",
    "..",
    "#",
    "*",
    "a.#",
    "b.b",
]
HEADER_VALUES: list[Any] = [
    1,
    2**40,
    True,
    "1",
    b"1",
    None,
    [1],
    {"a": 1},
    decimal.Decimal("1.0"),
    datetime.datetime(2020, 1, 1),
]


class Client:
    """Two connections to one broker; remembers what each call came to."""

    def __init__(self, port: int) -> None:
        parameters = pika.ConnectionParameters("127.0.0.1", port)
        self.connections = [pika.BlockingConnection(parameters) for _ in range(2)]
        self.channels = [connection.channel() for connection in self.connections]
        self.outcomes: list[Outcome] = []

    def call(self, name: str, *arguments: Any, who: int = 0, **options: Any) -> None:
        label = (who, name, arguments, tuple(sorted(map(str, options.items()))))
        try:
            method = getattr(self.channels[who], name)(*arguments, **options).method
        except ChannelClosedByBroker as error:
            self.outcomes.append((label, error.reply_code, error.reply_text))
            self.channels[who] = self.connections[who].channel()
        else:
            self.outcomes.append((label, method.NAME, method.__dict__))

    def arrives(self, exchange: str, key: str, **properties: Any) -> bool:
        channel: BlockingChannel = self.channels[0]
        channel.basic_publish(exchange, key, b"", pika.BasicProperties(**properties))
        return channel.basic_get("q", auto_ack=True)[0] is not None

    def close(self) -> None:
        for connection in self.connections:
            connection.close()


def new_arguments(client: Client) -> None:
    for number, (key, value) in enumerate(ARGUMENTS):
        client.call("queue_declare", f"a{number}", arguments={key: value})
        client.call("queue_delete", f"a{number}")
    for both in (
        {"x-queue-mode": "x", "x-message-ttl": -1},
        {"x-max-age": "1h", "x-message-ttl": -1},
        {"x-dead-letter-exchange": 1, "x-message-ttl": -1},
    ):
        client.call("queue_declare", "two", arguments=both)


def redeclarations(client: Client) -> None:
    client.call("queue_declare", "q", durable=True, arguments=BASE)
    for options in REDECLARED:
        client.call("queue_declare", "q", **options)
    client.call("queue_delete", "q")


def exclusive_queues(client: Client) -> None:
    client.call("queue_declare", "q", exclusive=True)
    client.call("queue_bind", "q", "none", who=1)
    client.call("queue_bind", "q", "amq.direct", "k", who=1)
    client.call("queue_bind", "q", "amq.headers", "k", arguments={"x-match": "foo"}, who=1)
    client.call("queue_unbind", "q", "amq.direct", "k", who=1)
    client.call("queue_bind", "q", "amq.direct", "k")
    client.call("queue_unbind", "q", "amq.direct", "k", who=1)
    for name in ("queue_delete", "queue_purge", "queue_declare"):
        client.call(name, "q", who=1)
    client.call("queue_declare", "q", exclusive=True, who=1)
    client.call("queue_declare", "q", passive=True, who=1)
    client.call("queue_declare", "q")
    client.call("queue_declare", "q", exclusive=True, durable=True)
    client.call("queue_declare", "q", exclusive=True, arguments={"x-max-length": 1})
    client.call("queue_delete", "q")


def exchanges(client: Client) -> None:
    for name in ("", "amq.foo", "amq.direct", "x"):
        client.call("exchange_declare", name, "direct")
    client.call("exchange_declare", "amq.direct", "direct", durable=True)
    client.call("exchange_declare", "x", "fanout")
    for options in (
        {"durable": True},
        {"auto_delete": True},
        {"internal": True},
        {"arguments": {"alternate-exchange": "y"}},
        {"arguments": {"alternate-exchange": 1}},
        {"arguments": {"foo": 1}},
    ):
        client.call("exchange_declare", "x", "direct", **options)
    client.call("exchange_declare", "y", "direct", arguments={"alternate-exchange": 1})
    for name in ("none", "x", ""):
        client.call("exchange_declare", name, passive=True)
    for destination, source in (
        ("n1", "n2"),
        ("", "x"),
        ("x", ""),
        ("n1", "x"),
        ("amq.fanout", "x"),
        ("x", "x"),
    ):
        client.call("exchange_bind", destination, source)
        client.call("exchange_delete", "x", if_unused=True)
        client.call("exchange_declare", "x", "direct")
    client.call("exchange_unbind", "n1", "n2")
    client.call("exchange_unbind", "", "x")
    for name in ("", "amq.direct", "amq.none", "none", "x"):
        client.call("exchange_delete", name)


def queues(client: Client) -> None:
    client.call("queue_declare", "q")
    for name in ("amq.x", "é" * 127, "amq.rabbitmq.reply-to"):
        client.call("queue_declare", name)
    for name in ("", "none", "amq.rabbitmq.reply-to"):
        client.call("queue_declare", name, passive=True)
    for exchange in ("", "none", "amq.topic"):
        client.call("queue_bind", "none", exchange)
        client.call("queue_unbind", "none", exchange)
    client.call("queue_bind", "none", "amq.headers", arguments={"x-match": "foo"})
    for value in ("foo", "", 1, True, None, [1, "a"], {"a": 1}, "any", "all-with-x"):
        client.call("queue_bind", "q", "amq.headers", arguments={"x-match": value})
    client.call("queue_purge", "none")
    client.call("queue_purge", "a\nb")
    client.call("queue_delete", "none")
    client.channels[1].basic_consume("q", lambda *_: None)
    client.call("queue_delete", "q", if_unused=True)
    client.call("queue_delete", "q")


def topics(client: Client) -> None:
    client.call("queue_declare", "q")
    for pattern in ["", *PATTERNS]:
        client.call("queue_bind", "q", "amq.topic", pattern)
        found = [client.arrives("amq.topic", key) for key in ["", *KEYS]]
        client.outcomes.append((pattern, found))
        client.call("queue_unbind", "q", "amq.topic", pattern)
    client.call("queue_delete", "q")


def headers(client: Client) -> None:
    client.call("queue_declare", "q")
    for wanted in HEADER_VALUES:
        client.call("queue_bind", "q", "amq.headers", arguments={"h": wanted})
        found = [client.arrives("amq.headers", "", headers={"h": each}) for each in HEADER_VALUES]
        client.outcomes.append((str(wanted), found))
        client.call("queue_unbind", "q", "amq.headers", arguments={"h": wanted})
    client.call("queue_delete", "q")


@pytest.mark.parametrize(
    "script",
    [new_arguments, redeclarations, exclusive_queues, exchanges, queues, topics, headers],
)
def test_the_answers_are_the_same(
    brokers: tuple[int, int], script: Callable[[Client], None]
) -> None:
    answers = []
    for port in brokers:
        client = Client(port)
        script(client)
        client.close()
        answers.append(client.outcomes)
    theirs, ours = answers
    assert len(ours) > 10
    assert ours == theirs
