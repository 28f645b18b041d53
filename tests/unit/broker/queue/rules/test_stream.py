"""What a stream cannot be declared with, and what nobody can ask of one, in RabbitMQ's words."""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.broker.queue.rules.settings import QueueDeclaration, age_ms, compute
from burrowmq.broker.queue.rules.stream import (
    FilterSpec,
    OffsetSpec,
    check_consume,
    check_equivalent_stream,
    filter_spec,
    is_stream,
    offset_spec,
    validate_stream,
)
from burrowmq.protocol.errors import MethodNotImplemented, PreconditionFailed
from burrowmq.protocol.table import Long, Timestamp

WHERE = "queue 'q' in vhost '/'"
OF_TYPE = "of queue type rabbit_stream_queue"


def declaration(arguments: dict[str, Any] | None = None, **fields: Any) -> QueueDeclaration:
    options: dict[str, Any] = {"durable": True} | fields
    given = {"x-queue-type": "stream"} | (arguments or {})
    return QueueDeclaration(name="q", arguments=given, **options)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"x-max-length-bytes": 2_000_000},
        {"x-max-age": "1Y"},
        {"x-max-age": "7D", "x-max-length-bytes": 0},
        {"x-stream-max-segment-size-bytes": 3_000_000_000, "x-stream-filter-size-bytes": 255},
        {"x-initial-cluster-size": 7, "x-queue-leader-locator": "client-local"},
        {"x-unknown": 1},
    ],
)
def test_what_it_can_be(arguments: dict[str, Any]) -> None:
    found = declaration(arguments)
    assert is_stream(found)
    validate_stream(found, "/")


@pytest.mark.parametrize(
    ("arguments", "fields", "text"),
    [
        ({}, {"auto_delete": True}, f"invalid property 'auto-delete' for {WHERE}"),
        ({}, {"owner": object()}, f"invalid property 'exclusive-owner' for {WHERE}"),
        ({}, {"durable": False}, f"invalid property 'non-durable' for {WHERE}"),
        ({"x-overflow": "reject-publish"}, {}, f"invalid arg 'x-overflow' for {WHERE} {OF_TYPE}"),
        ({"x-max-length": 3}, {}, f"invalid arg 'x-max-length' for {WHERE} {OF_TYPE}"),
        ({"x-expires": 3}, {}, f"invalid arg 'x-expires' for {WHERE} {OF_TYPE}"),
        (
            {"x-single-active-consumer": True}, {"durable": False},
            f"invalid arg 'x-single-active-consumer' for {WHERE} {OF_TYPE}",
        ),
        ({"x-delivery-limit": 3}, {}, f"invalid arg 'x-delivery-limit' for {WHERE} {OF_TYPE}"),
        ({"x-max-age": "1A"}, {}, f"invalid arg 'x-max-age' for {WHERE}: invalid_max_age"),
        ({"x-max-age": "0s"}, {}, f"invalid arg 'x-max-age' for {WHERE}: invalid_max_age"),
        ({"x-max-age": "D"}, {}, f"invalid arg 'x-max-age' for {WHERE}: invalid_max_age"),
        ({"x-max-age": 5}, {}, f"invalid arg 'x-max-age' for {WHERE}: {{unacceptable_type,signedint}}"),
        ({"x-max-length-bytes": -1}, {}, f"invalid arg 'x-max-length-bytes' for {WHERE}: {{value_negative,-1}}"),
        ({"x-initial-cluster-size": 0}, {}, f"invalid arg 'x-initial-cluster-size' for {WHERE}: {{value_zero,0}}"),
        (
            {"x-initial-cluster-size": "3"}, {},
            f"invalid arg 'x-initial-cluster-size' for {WHERE}: \"expected integer, got longstr\"",
        ),
        (
            {"x-stream-max-segment-size-bytes": -1}, {},
            f"invalid arg 'x-stream-max-segment-size-bytes' for {WHERE}: {{value_negative,-1}}",
        ),
        (
            {"x-stream-max-segment-size-bytes": 3_000_000_001}, {},
            "Exceeded max value for x-stream-max-segment-size-bytes",
        ),
        ({"x-stream-filter-size-bytes": 256}, {}, "Invalid value for  x-stream-filter-size-bytes"),
        ({"x-stream-filter-size-bytes": 15}, {}, "Invalid value for  x-stream-filter-size-bytes"),
        ({"x-queue-leader-locator": "odd"}, {}, f"invalid arg 'x-queue-leader-locator' for {WHERE}: invalid_queue_locator_arg"),
    ],
)  # fmt: skip
def test_what_it_cannot_be(arguments: dict[str, Any], fields: dict[str, Any], text: str) -> None:
    with pytest.raises(PreconditionFailed) as refused:
        validate_stream(declaration(arguments, **fields), "/")
    assert str(refused.value) == text


def test_a_redeclaration_says_the_same_of_all_that_a_stream_knows() -> None:
    current = {"x-queue-type": "stream", "x-max-age": "1h"}
    check_equivalent_stream(current, current | {"x-unknown": 1}, "q", "/")
    for received in ({}, current | {"x-max-age": "60m"}, current | {"x-max-length-bytes": 1}):
        with pytest.raises(PreconditionFailed, match="inequivalent arg 'x-"):
            check_equivalent_stream(current, received, "q", "/")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("1s", 1_000), ("2m", 120_000), ("3h", 10_800_000), ("1D", 86_400_000),
        ("1M", 30 * 86_400_000), ("1Y", 365 * 86_400_000), ("007s", 7_000),
        ("", None), ("5", None), ("s", None), ("1A", None), ("1.5s", None), ("-1s", None), ("0s", None), ("\u0663s", None),
    ],
)  # fmt: skip
def test_ages(text: str, expected: int | None) -> None:
    assert age_ms(text) == expected


def test_a_policys_word_holds_against_the_arguments() -> None:
    arguments = {"x-queue-type": "stream", "x-max-length-bytes": 10, "x-max-age": "1s"}
    found = compute(arguments, {})
    assert (found.max_length_bytes, found.max_age_ms, found.initial_cluster_size) == (
        10,
        1000,
        None,
    )
    found = compute(arguments, {"max-length-bytes": 20, "max-age": "1h", "initial-cluster-size": 1})
    assert (found.max_length_bytes, found.max_age_ms, found.initial_cluster_size) == (
        20,
        3_600_000,
        1,
    )


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ("first", OffsetSpec("first")),
        ("last", OffsetSpec("last")),
        ("next", OffsetSpec("next")),
        (7, OffsetSpec("", offset=7)),
        (Long(7), OffsetSpec("", offset=7)),
        (Timestamp(1_500_000_000), OffsetSpec("", at_ms=1_500_000_000_000)),
        ("100s", OffsetSpec("", ago_ms=100_000)),
        ("soon", None),
        (True, None),
        (1.5, None),
        (None, None),
    ],
)
def test_where_a_consumer_begins(value: Any, expected: OffsetSpec | None) -> None:
    assert offset_spec({"x-stream-offset": value}) == expected


def test_without_a_word_it_is_what_comes_next() -> None:
    assert offset_spec({}) == OffsetSpec("next")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ({}, None),
        ({"foo": "bar", "x-stream-match-unfiltered": True}, None),
        ({"x-stream-filter": "apple"}, FilterSpec(frozenset({"apple"}), matches_unfiltered=False)),
        (
            {"x-stream-filter": ["apple", 3, "banana"], "x-stream-match-unfiltered": True},
            FilterSpec(frozenset({"apple", "banana"}), matches_unfiltered=True),
        ),
        ({"x-stream-filter": 3}, None),
    ],
)
def test_what_a_consumer_wants(arguments: dict[str, Any], expected: FilterSpec | None) -> None:
    assert filter_spec(arguments) == expected


@pytest.mark.parametrize(
    ("arguments", "options", "error", "text"),
    [
        (
            {"x-stream-offset": "soon"}, {},
            PreconditionFailed,
            f"invalid arg 'x-stream-offset' for {WHERE}: {{invalid_stream_offset_arg,{{longstr,<<\"soon\">>}}}}",
        ),
        (
            {"x-stream-offset": True}, {},
            PreconditionFailed,
            f"invalid arg 'x-stream-offset' for {WHERE}: {{invalid_stream_offset_arg,{{bool,true}}}}",
        ),
        ({"x-priority": 1}, {}, PreconditionFailed, f"invalid arg 'x-priority' for {WHERE} {OF_TYPE}"),
        (
            {"x-cancel-on-ha-failover": True}, {},
            PreconditionFailed, f"invalid arg 'x-cancel-on-ha-failover' for {WHERE} {OF_TYPE}",
        ),
        ({}, {"prefetch_count": 0}, PreconditionFailed, f"consumer prefetch count is not set for '{WHERE}'"),
        (
            {}, {"prefetch_count": 0, "no_ack": True},
            PreconditionFailed, f"consumer prefetch count is not set for '{WHERE}'",
        ),
        (
            {}, {"no_ack": True},
            MethodNotImplemented, f"automatic acknowledgement not supported by stream queues {WHERE}",
        ),
        ({}, {"is_global": True}, MethodNotImplemented, f"{WHERE} does not support global qos"),
    ],
)  # fmt: skip
def test_what_nobody_can_ask(
    arguments: dict[str, Any], options: dict[str, Any], error: type[Exception], text: str
) -> None:
    given: dict[str, Any] = {"prefetch_count": 1, "no_ack": False, "is_global": False} | options
    with pytest.raises(error) as refused:
        check_consume(arguments, WHERE, **given)
    assert str(refused.value) == text
