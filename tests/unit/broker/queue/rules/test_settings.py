"""burrowmq.broker.queue.rules.settings: every argument, every text, and what arguments and policy come to."""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.broker.queue.rules.settings import (
    FOREIGN_KEYS,
    Settings,
    check_equivalent,
    compute,
    dead_letter_exchange,
    validate,
)
from burrowmq.protocol.errors import PreconditionFailed
from burrowmq.protocol.table import Byte, DecimalValue, Float, Long, Short, UnsignedInt


def refusal(arguments: dict[str, Any]) -> str:
    with pytest.raises(PreconditionFailed) as caught:
        validate(arguments, "q", "/")
    return caught.value.text


BAD = [
    ("x-message-ttl", -1, "{value_negative,-1}"),
    ("x-message-ttl", Long(315360000001), "{value_too_large,315360000001}"),
    ("x-message-ttl", "1", '"expected integer, got longstr"'),
    ("x-message-ttl", 1.0, '"expected integer, got double"'),
    ("x-message-ttl", Float(1.0), '"expected integer, got float"'),
    ("x-message-ttl", True, '"expected integer, got bool"'),
    ("x-message-ttl", None, '"expected integer, got void"'),
    ("x-expires", 0, "{value_zero,0}"),
    ("x-expires", -1, "{value_negative,-1}"),
    ("x-expires", Long(315360000001), "{value_too_large,315360000001}"),
    ("x-expires", "1", '"expected integer, got longstr"'),
    ("x-max-length", -1, "{value_negative,-1}"),
    ("x-max-length", "10", '"expected integer, got longstr"'),
    ("x-max-length-bytes", -1, "{value_negative,-1}"),
    ("x-max-length-bytes", {}, '"expected integer, got table"'),
    ("x-max-priority", 256, "{max_value_exceeded,256}"),
    ("x-max-priority", -1, "{value_negative,-1}"),
    ("x-max-priority", "5", '"expected integer, got longstr"'),
    ("x-overflow", "drop-tail", "invalid_overflow"),
    ("x-overflow", 1, "{unacceptable_type,signedint}"),
    ("x-dead-letter-routing-key", "k", "routing_key_but_no_dlx_defined"),
    ("x-dead-letter-routing-key", 1, "{unacceptable_type,signedint}"),
    ("x-queue-mode", "foo", "\"unsupported queue mode 'foo'\""),
    ("x-queue-mode", 1, "{unacceptable_type,signedint}"),
    ("x-queue-version", 3, "\"unsupported queue version '3'\""),
    ("x-queue-version", 0, "\"unsupported queue version '0'\""),
    ("x-queue-version", -1, "{value_negative,-1}"),
    ("x-queue-version", "2", '"expected integer, got longstr"'),
    ("x-queue-type", "quorum", "\"unsupported queue type 'quorum'\""),
    ("x-queue-type", "stream", "\"unsupported queue type 'stream'\""),
    ("x-queue-type", "foo", "\"unsupported queue type 'foo'\""),
    ("x-queue-type", 1, "{unacceptable_type,signedint}"),
    ("x-single-active-consumer", 1, "{unacceptable_type,signedint}"),
    ("x-single-active-consumer", "true", "{unacceptable_type,longstr}"),
]


@pytest.mark.parametrize(("key", "value", "reason"), BAD)
def test_bad_arguments(key: str, value: Any, reason: str) -> None:
    assert refusal({key: value}) == f"invalid arg '{key}' for queue 'q' in vhost '/': {reason}"


@pytest.mark.parametrize("key", FOREIGN_KEYS)
def test_arguments_of_other_queue_types(key: str) -> None:
    assert refusal({key: 1}) == (
        f"invalid arg '{key}' for queue 'q' in vhost '/' of queue type rabbit_classic_queue"
    )


def test_a_dead_letter_exchange_is_text() -> None:
    text = "invalid type 'signedint' for arg 'x-dead-letter-exchange' in queue 'q' in vhost '/'"
    assert refusal({"x-dead-letter-exchange": 1}) == text
    with pytest.raises(PreconditionFailed) as caught:
        dead_letter_exchange({"x-dead-letter-exchange": 1}, "q", "/")
    assert caught.value.text == text
    assert dead_letter_exchange({"x-dead-letter-exchange": ""}, "q", "/") == ""
    assert dead_letter_exchange({}, "q", "/") is None


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"x-message-ttl": 0, "x-expires": 1, "x-max-length": 0, "x-max-length-bytes": 0},
        {"x-message-ttl": Long(315360000000), "x-max-priority": Byte(0)},
        {"x-max-length": Short(5), "x-max-length-bytes": UnsignedInt(5)},
        {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "k"},
        {"x-queue-mode": "lazy", "x-queue-version": 2, "x-queue-type": "classic"},
        {"x-single-active-consumer": False, "x-queue-master-locator": 3},
        {"x-consumer-timeout": "not checked", "x-unknown": {"a": 1}},
    ],
)
def test_good_arguments(arguments: dict[str, Any]) -> None:
    validate(arguments, "q", "/")


def inequivalence(current: dict[str, Any], received: dict[str, Any]) -> str:
    with pytest.raises(PreconditionFailed) as caught:
        check_equivalent(current, received, "q", "/")
    return caught.value.text


def test_texts_of_inequivalence() -> None:
    prefix = "inequivalent arg 'x-max-length' for queue 'q' in vhost '/': "
    assert inequivalence({"x-max-length": 10}, {}) == (
        prefix + "received none but current is the value '10' of type 'signedint'"
    )
    assert inequivalence({}, {"x-max-length": Long(10)}) == (
        prefix + "received the value '10' of type 'long' but current is none"
    )
    assert inequivalence({"x-max-length": 10}, {"x-max-length": 20}) == (
        prefix + "received '20' but current is '10'"
    )
    assert inequivalence({"x-max-length": 10}, {"x-max-length": "10"}) == (
        prefix + "received '10' but current is '10'"
    )


def test_values_that_are_not_scalars_are_told_as_erlang_terms() -> None:
    prefix = "inequivalent arg 'x-max-length' for queue 'q' in vhost '/': "
    assert inequivalence({"x-max-length": 10}, {"x-max-length": [1]}) == (
        prefix + "received '[{signedint,1}]' but current is '10'"
    )
    assert inequivalence({"x-max-length": 10}, {"x-max-length": {"a": 1}}) == (
        prefix + "received '[{<<\"a\">>,signedint,1}]' but current is '10'"
    )
    assert inequivalence({"x-max-length": 10}, {"x-max-length": True}) == (
        prefix + "received 'true' but current is '10'"
    )
    assert inequivalence({"x-max-length": b"x"}, {"x-max-length": 1}) == (
        prefix + "received '1' but current is 'x'"
    )


def test_a_queue_type_that_is_no_text() -> None:
    assert inequivalence({}, {"x-queue-type": ["quorum"]}).endswith(
        "received the value '[{longstr,<<\"quorum\">>}]' of type 'array' but current is none"
    )


def test_a_void_argument_is_there() -> None:
    prefix = "inequivalent arg 'x-expires' for queue 'q' in vhost '/': "
    assert inequivalence({}, {"x-expires": None}) == (
        prefix + "received the value 'undefined' of type 'void' but current is none"
    )
    assert inequivalence({"x-expires": 5}, {"x-expires": None}) == (
        prefix + "received none but current is '5'"
    )


def test_quorum_on_a_classic_queue_is_another_queue() -> None:
    assert inequivalence({}, {"x-queue-type": "quorum"}) == (
        "inequivalent arg 'x-queue-type' for queue 'q' in vhost '/':"
        " received the value 'quorum' of type 'longstr' but current is none"
    )
    assert inequivalence({"x-queue-type": "classic"}, {"x-queue-type": "quorum"}) == (
        "inequivalent arg 'x-queue-type' for queue 'q' in vhost '/':"
        " received 'quorum' but current is 'classic'"
    )


@pytest.mark.parametrize(
    ("current", "received"),
    [
        ({"x-max-length": 10}, {"x-max-length": Long(10)}),
        ({"x-queue-type": "classic"}, {}),
        ({}, {"x-queue-type": "classic"}),
        ({}, {"x-consumer-timeout": 5, "anything": 1}),
        ({"x-max-length": DecimalValue(0, 1)}, {"x-max-length": DecimalValue(0, 1)}),
    ],
)
def test_what_means_the_same(current: dict[str, Any], received: dict[str, Any]) -> None:
    check_equivalent(current, received, "q", "/")


def test_nothing_set() -> None:
    assert compute({}, {}) == Settings()


def test_queues_of_which_nothing_is_said_share_what_is_in_force() -> None:
    assert compute({}, {}) is compute({}, {})
    assert compute({}, {}, 1) == Settings(version=1)
    assert compute({}, {}, 2) == Settings(version=2) == compute({"x-queue-type": "classic"}, {})


def test_limits_are_the_lower_of_argument_and_policy() -> None:
    arguments: Any = {"x-max-length": 5, "x-message-ttl": Long(100), "x-consumer-timeout": 9}
    policy: Any = {"max-length": 10, "message-ttl": 50, "expires": 7, "max-length-bytes": 3}
    found = compute(arguments, policy)
    assert (found.max_length, found.message_ttl_ms, found.expires_ms) == (5, 50, 7)
    assert (found.max_length_bytes, found.consumer_timeout_ms) == (3, 9)


@pytest.mark.parametrize("value", [1 << 63, (1 << 64) - 1, 10**30])
def test_a_number_of_a_policy_leaves_room_for_a_deadline_of_64_bits(value: int) -> None:
    policy: Any = {"message-ttl": value, "max-length-bytes": value}
    for arguments in ({}, {"x-queue-type": "quorum"}):
        assert compute(arguments, policy).message_ttl_ms == 1 << 62
    for number in (value, str(value) * 300):
        stream = compute({"x-queue-type": "stream"}, {**policy, "max-age": f"{number}Y"})
        assert stream.max_length_bytes == 1 << 62
        assert 0 < (stream.max_age_ms or 0) * 1_000_000 < 1 << 63


def test_a_stored_policy_whose_texts_no_octets_stand_for_leaves_its_queues_usable() -> None:
    policy: Any = {"dead-letter-exchange": "a\ud800", "dead-letter-routing-key": "\udfff"}
    assert compute({}, policy) == Settings()
    policy = {"dead-letter-exchange": "a", "dead-letter-routing-key": "\udcff"}
    assert compute({}, policy).dead_letter_routing_key == b"\xff"


def test_for_the_rest_the_argument_wins() -> None:
    arguments: Any = {
        "x-overflow": "drop-head",
        "x-queue-mode": "lazy",
        "x-queue-version": 2,
        "x-dead-letter-exchange": "",
        "x-dead-letter-routing-key": "k",
    }
    policy: Any = {
        "overflow": "reject-publish",
        "queue-mode": "default",
        "queue-version": 2,
        "dead-letter-exchange": "dlx",
        "dead-letter-routing-key": "p",
    }
    found = compute(arguments, policy)
    assert (found.overflow, found.mode, found.version) == ("drop-head", "lazy", 2)
    assert (found.dead_letter_exchange, found.dead_letter_routing_key) == ("", b"k")
    found = compute({}, policy)
    assert (found.overflow, found.mode, found.version) == ("reject-publish", "default", 2)
    assert (found.dead_letter_exchange, found.dead_letter_routing_key) == ("dlx", b"p")


def test_priority_and_single_active_consumer_are_arguments_only() -> None:
    assert compute({"x-max-priority": 0}, {}).max_priority == 1
    assert compute({"x-max-priority": Byte(9)}, {}).max_priority == 9
    policy: Any = {"max-priority": 5, "single-active-consumer": True}
    assert compute({}, policy) == Settings()
    assert compute({"x-single-active-consumer": True}, {}).single_active_consumer


def test_the_version_is_the_arguments_then_the_policys_then_the_default() -> None:
    assert compute({}, {"queue-version": 1}).version == 1
    assert compute({"x-queue-version": 2}, {"queue-version": 1}, default_version=1).version == 2
    assert compute({}, {}, default_version=1).version == 1


def test_room_by_number_and_by_bytes() -> None:
    assert Settings().have_room_for(1 << 60, 1 << 60)
    for settings in (Settings(max_length=2), Settings(max_length_bytes=5)):
        assert settings.have_room_for(2, 5)
        assert not settings.have_room_for(3, 6)
    assert not Settings(max_length=9, max_length_bytes=5).have_room_for(2, 6)
