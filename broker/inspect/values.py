"""Values of the broker as plain ones: AMQP tables, process ids, counters.

Owns no state; used by every module of this package.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.report.metrics import ChannelMetrics, QueueMetrics
from burrowmq.protocol import table as table_types

Row = dict[str, Any]
Table = Callable[[dict[str, Any]], Any]

LINE, NEXT = re.compile(r"(.{76})"), "\\1\n"
DELIVERED = ("deliver", "deliver_no_ack", "get", "get_no_ack")


def plain(value: Any) -> Any:
    """An AMQP table value as JSON can express it; tables keep their order."""
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, Mapping):
        return {str(key): plain(item) for key, item in value.items()}
    if isinstance(value, table_types.DecimalValue):
        return value.value / 10**value.scale
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, bytes | bytearray):
        return _text(bytes(value))
    if isinstance(value, int):
        return int(value)
    if isinstance(value, float):
        return float(value)
    text = str(value)
    return text if text.isascii() else _text(text.encode("utf-8", "surrogateescape"))


def _text(given: bytes) -> str:
    """What is no text is said in RabbitMQ's words (rabbit_misc:utf8_safe), from which it can be had back."""
    try:
        return given.decode()
    except UnicodeDecodeError:
        code = base64.b64encode(given).decode("ascii")
        return f"Not UTF-8, base64 is: {LINE.sub(NEXT, code)}"


def typed(value: dict[str, Any]) -> Row:
    """An AMQP table as `{"table": [[key, type, value], ...]}`: order and types kept, as Erlang terms show them."""
    return {"table": _triples(value)}


def _triples(value: dict[str, Any]) -> list[Any]:
    return [
        [str(key), table_types.type_name(item), _typed_value(item)] for key, item in value.items()
    ]


def _typed_value(value: Any) -> Any:
    if isinstance(value, dict):
        return _triples(value)
    if isinstance(value, list):
        return [[table_types.type_name(item), _typed_value(item)] for item in value]
    return plain(value)


def octets(value: dict[str, Any]) -> Row:
    """An AMQP table as `{"octets": [[key, type, value], ...]}`: texts and binaries as Latin-1 of their octets."""
    return {"octets": _octet_triples(value)}


def _octet_triples(value: dict[str, Any]) -> list[Any]:
    return [
        [_latin_1(key), table_types.type_name(item), _octet_value(item)]
        for key, item in value.items()
    ]


def _octet_value(value: Any) -> Any:
    if isinstance(value, dict):
        return _octet_triples(value)
    if isinstance(value, table_types.DecimalValue):
        return [value.scale, value.value]
    if isinstance(value, list):
        return [[table_types.type_name(item), _octet_value(item)] for item in value]
    return _latin_1(value) if isinstance(value, str | bytes) else plain(value)


def _latin_1(value: str | bytes) -> str:
    found = value.encode("utf-8", "surrogateescape") if isinstance(value, str) else value
    return found.decode("latin-1")


def pid(node: RunningNode, thing: object) -> str:
    """A name in the shape of an Erlang process id; unique among the objects that are alive."""
    return f"<{node.name}.{int(node.process.started_at)}.{(id(thing) >> 4) & 0xFFFFFFF}.0>"


def message_stats(metrics: QueueMetrics | ChannelMetrics) -> Row:
    """The counters of a queue or channel; empty until there was traffic, because RabbitMQ omits them until then."""
    stats = {name: int(getattr(metrics, name)) for name in metrics.__slots__}
    return _with_sum(stats)


def message_stats_of(channels: Iterable[ChannelMetrics]) -> Row:
    """The counters of several channels as one's."""
    stats = dict.fromkeys(ChannelMetrics.__slots__, 0)
    for metrics in channels:
        for name in stats:
            stats[name] += getattr(metrics, name)
    return _with_sum(stats)


def _with_sum(stats: Row) -> Row:
    if not any(stats.values()):
        return {}
    stats["deliver_get"] = sum(stats[name] for name in DELIVERED)
    return stats
