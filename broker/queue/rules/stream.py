"""What a new stream queue may be declared with, and where who consumes from it begins, in RabbitMQ's words.

Owns no state. Called by `broker.vhost.vhost`, `broker.channel.methods` and the stream queue itself, on a node that has
a cluster; without one the type itself is refused (`settings.validate`).

Source: rabbit_stream_queue (capabilities, parse_offset_arg, filter_spec), rabbit_amqqueue (check_max_age,
check_declare_arguments), rabbit_queue_type_util of RabbitMQ 3.13.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from burrowmq.broker.queue.rules.quorum import check_properties, known_wrong
from burrowmq.broker.queue.rules.settings import age_ms, check_arguments
from burrowmq.broker.words.resource import check_same_argument, describe
from burrowmq.protocol import table
from burrowmq.protocol.errors import MethodNotImplemented, PreconditionFailed
from burrowmq.protocol.table import Timestamp
from burrowmq.records import NamedTuple

if TYPE_CHECKING:
    from collections.abc import Mapping

    from burrowmq.broker.queue.rules.settings import QueueDeclaration
    from burrowmq.protocol.table import FieldTable, FieldValue

STREAM: Final = "stream"
STREAM_KEYS: Final = (
    "x-max-length-bytes",
    "x-queue-type",
    "x-max-age",
    "x-stream-max-segment-size-bytes",
    "x-initial-cluster-size",
    "x-queue-leader-locator",
)
"""What a redeclaration has to say again. Segments are the servers' own: their size is checked, and without effect."""
SEGMENT_MAX: Final = 3_000_000_000
FILTER_SIZES: Final = range(16, 256)
_FOREIGN: Final = (
    "x-expires",
    "x-message-ttl",
    "x-dead-letter-exchange",
    "x-dead-letter-routing-key",
    "x-dead-letter-strategy",
    "x-max-length",
    "x-max-in-memory-length",
    "x-max-in-memory-bytes",
    "x-max-priority",
    "x-overflow",
    "x-queue-mode",
    "x-queue-version",
    "x-queue-master-locator",
    "x-single-active-consumer",
    "x-quorum-initial-group-size",
    "x-delivery-limit",
)
_FOREIGN_TO_CONSUMERS: Final = ("x-priority", "x-cancel-on-ha-failover")
_WORDS: Final = ("first", "last", "next")


def is_stream(declaration: QueueDeclaration) -> bool:
    """Whether that is what is asked for."""
    return declaration.arguments.get("x-queue-type") == STREAM


def validate_stream(declaration: QueueDeclaration, vhost: str) -> None:
    """Refuse what a stream cannot be. Raises: PreconditionFailed."""
    arguments = declaration.arguments
    where = describe("queue", declaration.name, vhost)
    known = {key: value for key, value in arguments.items() if key in STREAM_KEYS}
    check_arguments({key: known[key] for key in known if key != "x-queue-type"}, where)
    for key, wrong in (*known_wrong(known), *_wrong(known)):
        raise PreconditionFailed(f"invalid arg '{key}' for {where}: {wrong}")
    for key in _FOREIGN:
        if key in arguments:
            raise PreconditionFailed(
                f"invalid arg '{key}' for {where} of queue type rabbit_stream_queue"
            )
    check_properties(declaration, where)
    segment = arguments.get("x-stream-max-segment-size-bytes", 0)
    if isinstance(segment, int) and segment > SEGMENT_MAX:
        raise PreconditionFailed("Exceeded max value for x-stream-max-segment-size-bytes")
    size = arguments.get("x-stream-filter-size-bytes", FILTER_SIZES.start)
    if not isinstance(size, int) or size not in FILTER_SIZES:
        raise PreconditionFailed("Invalid value for  x-stream-filter-size-bytes")  # both spaces


def _wrong(known: FieldTable) -> list[tuple[str, str]]:
    """(key, what is wrong with it), of what only a stream knows."""
    age = known.get("x-max-age", "1s")
    if not isinstance(age, str):
        return [("x-max-age", f"{{unacceptable_type,{table.type_name(age)}}}")]
    return [] if age_ms(age) is not None else [("x-max-age", "invalid_max_age")]


def check_equivalent_stream(
    current: FieldTable, received: FieldTable, queue: str, vhost: str
) -> None:
    """Refuse a redeclaration of a stream whose arguments mean another one. Raises: PreconditionFailed."""
    where = describe("queue", queue, vhost)
    for key in STREAM_KEYS:
        check_same_argument(key, current, received, where)


# -- consuming --------------------------------------------------------------------------------------------------------


class OffsetSpec(NamedTuple):
    """Where a consumer begins: the word where it is one, else the time or the offset."""

    word: str = "next"
    offset: int | None = None
    at_ms: int | None = None
    """Of the wall clock."""
    ago_ms: int | None = None
    """Before now."""


def offset_spec(arguments: Mapping[str, FieldValue]) -> OffsetSpec | None:
    """What `x-stream-offset` asks for; None for what is no place in a stream."""
    value = arguments.get("x-stream-offset", "next")
    if isinstance(value, str):
        if value in _WORDS:
            return OffsetSpec(value)
        ago_ms = age_ms(value)
        return None if ago_ms is None else OffsetSpec("", ago_ms=ago_ms)
    if isinstance(value, Timestamp):
        return OffsetSpec("", at_ms=int(value) * 1000)
    if isinstance(value, int) and not isinstance(value, bool):
        return OffsetSpec("", offset=int(value))
    return None


class FilterSpec(NamedTuple):
    """Which messages a consumer wants."""

    values: frozenset[str]
    matches_unfiltered: bool
    """Those without a value, too."""


def filter_spec(arguments: Mapping[str, FieldValue]) -> FilterSpec | None:
    """What `x-stream-filter` and `x-stream-match-unfiltered` ask for; None for all messages."""
    wanted = arguments.get("x-stream-filter")
    if isinstance(wanted, str):
        wanted = [wanted]
    if not isinstance(wanted, list):
        return None
    values = frozenset(each for each in wanted if isinstance(each, str))
    return FilterSpec(values, arguments.get("x-stream-match-unfiltered") is True)


def check_consume(
    arguments: Mapping[str, FieldValue],
    where: str,
    *,
    prefetch_count: int,
    no_ack: bool,
    is_global: bool,
) -> None:
    """Refuse what nobody can ask of a stream. Raises: PreconditionFailed, MethodNotImplemented."""
    if offset_spec(arguments) is None:
        value = arguments["x-stream-offset"]
        shown = f'<<"{value}">>' if isinstance(value, str) else str(value).lower()
        raise PreconditionFailed(
            f"invalid arg 'x-stream-offset' for {where}:"
            f" {{invalid_stream_offset_arg,{{{table.type_name(value)},{shown}}}}}"
        )
    for key in _FOREIGN_TO_CONSUMERS:
        if key in arguments:
            raise PreconditionFailed(
                f"invalid arg '{key}' for {where} of queue type rabbit_stream_queue"
            )
    if not prefetch_count:
        raise PreconditionFailed(f"consumer prefetch count is not set for '{where}'")
    if no_ack:
        raise MethodNotImplemented(
            f"automatic acknowledgement not supported by stream queues {where}"
        )
    if is_global:
        raise MethodNotImplemented(f"{where} does not support global qos")
