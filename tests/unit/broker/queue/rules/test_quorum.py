"""What a quorum queue cannot be declared with, in RabbitMQ's words."""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.broker.queue.rules.quorum import (
    check_equivalent_quorum,
    is_quorum,
    validate_quorum,
)
from burrowmq.broker.queue.rules.settings import QueueDeclaration, compute
from burrowmq.protocol.errors import PreconditionFailed

WHERE = "queue 'q' in vhost '/'"
OF_TYPE = "of queue type rabbit_quorum_queue"


def declaration(arguments: dict[str, Any] | None = None, **fields: Any) -> QueueDeclaration:
    options: dict[str, Any] = {"durable": True} | fields
    given = {"x-queue-type": "quorum"} | (arguments or {})
    return QueueDeclaration(name="q", arguments=given, **options)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"x-quorum-initial-group-size": 5, "x-delivery-limit": 0},
        {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"},
        {"x-max-length": 1, "x-overflow": "reject-publish"},
        {"x-max-length": 1, "x-overflow": "reject-publish-dlx"},
        {"x-max-length-bytes": 1, "x-dead-letter-strategy": "at-least-once"},
        {"x-message-ttl": 3, "x-expires": 1},
        {"x-queue-leader-locator": "balanced", "x-max-in-memory-length": 1},
        {"x-single-active-consumer": False, "x-unknown": 1},
        {"x-single-active-consumer": True},
    ],
)
def test_what_it_can_be(arguments: dict[str, Any]) -> None:
    found = declaration(arguments)
    assert is_quorum(found)
    validate_quorum(found, "/")


@pytest.mark.parametrize(
    ("arguments", "fields", "text"),
    [
        ({}, {"auto_delete": True}, f"invalid property 'auto-delete' for {WHERE}"),
        ({}, {"owner": object()}, f"invalid property 'exclusive-owner' for {WHERE}"),
        ({}, {"durable": False}, f"invalid property 'non-durable' for {WHERE}"),
        ({"x-queue-mode": "lazy"}, {}, f"invalid arg 'x-queue-mode' for {WHERE} {OF_TYPE}"),
        ({"x-max-priority": 3}, {}, f"invalid arg 'x-max-priority' for {WHERE} {OF_TYPE}"),
        ({"x-message-ttl": -1}, {}, f"invalid arg 'x-message-ttl' for {WHERE}: {{value_negative,-1}}"),
        ({"x-max-priority": -3}, {}, f"invalid arg 'x-max-priority' for {WHERE} {OF_TYPE}"),
        ({"x-queue-mode": "odd"}, {}, f"invalid arg 'x-queue-mode' for {WHERE} {OF_TYPE}"),
        ({"x-queue-version": 2}, {"durable": False}, f"invalid arg 'x-queue-version' for {WHERE} {OF_TYPE}"),
        (
            {"x-queue-master-locator": "min-masters"},
            {},
            f"invalid arg 'x-queue-master-locator' for {WHERE} {OF_TYPE}",
        ),
        ({"x-max-age": "1h", "x-max-length": -5}, {}, f"invalid arg 'x-max-length' for {WHERE}: {{value_negative,-5}}"),
        ({"x-expires": 0}, {}, f"invalid arg 'x-expires' for {WHERE}: {{value_zero,0}}"),
        (
            {"x-single-active-consumer": 3},
            {},
            f"invalid arg 'x-single-active-consumer' for {WHERE}: {{unacceptable_type,signedint}}",
        ),
        (
            {"x-max-in-memory-length": -1},
            {},
            f"invalid arg 'x-max-in-memory-length' for {WHERE}: {{value_negative,-1}}",
        ),
        (
            {"x-dead-letter-strategy": "x"},
            {},
            f"invalid arg 'x-dead-letter-strategy' for {WHERE}: invalid_dlx_strategy",
        ),
        (
            {"x-dead-letter-strategy": 3},
            {},
            f"invalid arg 'x-dead-letter-strategy' for {WHERE}: {{unacceptable_type,signedint}}",
        ),
        (
            {"x-queue-leader-locator": "x"},
            {},
            f"invalid arg 'x-queue-leader-locator' for {WHERE}: invalid_queue_locator_arg",
        ),
        (
            {"x-quorum-initial-group-size": 0},
            {},
            f"invalid arg 'x-quorum-initial-group-size' for {WHERE}: {{value_zero,0}}",
        ),
        ({"x-delivery-limit": -1}, {}, f"invalid arg 'x-delivery-limit' for {WHERE}: {{value_negative,-1}}"),
        (
            {"x-quorum-initial-group-size": 6},
            {},
            f"invalid arg 'x-quorum-initial-group-size' for {WHERE}: {{value_out_of_range,6}}",
        ),
    ],
)  # fmt: skip
def test_what_it_cannot_be(arguments: dict[str, Any], fields: dict[str, Any], text: str) -> None:
    with pytest.raises(PreconditionFailed) as refused:
        validate_quorum(declaration(arguments, **fields), "/")
    assert refused.value.text == text


@pytest.mark.parametrize(
    ("received", "text"),
    [
        ({"x-queue-type": "quorum", "x-max-length": 3, "x-max-priority": 3}, ""),
        (
            {"x-queue-type": "quorum", "x-max-length": 4},
            f"inequivalent arg 'x-max-length' for {WHERE}: received '4' but current is '3'",
        ),
        (
            {"x-queue-type": "classic", "x-max-length": 3},
            f"inequivalent arg 'x-queue-type' for {WHERE}: received 'classic' but current is 'quorum'",
        ),
        (
            {"x-queue-type": "quorum", "x-max-length": 3, "x-delivery-limit": 3},
            f"inequivalent arg 'x-delivery-limit' for {WHERE}:"
            " received the value '3' of type 'signedint' but current is none",
        ),
        (
            {"x-queue-type": "quorum"},
            f"inequivalent arg 'x-max-length' for {WHERE}:"
            " received none but current is the value '3' of type 'signedint'",
        ),
    ],
)
def test_a_redeclaration_says_the_same_of_all_that_a_quorum_queue_knows(
    received: dict[str, Any], text: str
) -> None:
    current: dict[str, Any] = {"x-queue-type": "quorum", "x-max-length": 3}
    if not text:
        check_equivalent_quorum(current, received, "q", "/")
        return
    with pytest.raises(PreconditionFailed) as refused:
        check_equivalent_quorum(current, received, "q", "/")
    assert refused.value.text == text


def test_a_policys_word_holds_for_overflow_and_expiry_and_the_lower_limit() -> None:
    arguments: dict[str, Any] = {
        "x-queue-type": "quorum",
        "x-overflow": "drop-head",
        "x-expires": 1,
        "x-delivery-limit": 5,
    }
    policy = {"overflow": "reject-publish", "expires": 9, "delivery-limit": 3}
    found = compute(arguments, policy)
    assert (found.overflow, found.expires_ms, found.delivery_limit) == ("reject-publish", 9, 3)
    assert compute(arguments, {}).expires_ms == 1
    classic = compute({**arguments, "x-queue-type": "classic"}, policy)
    assert (classic.overflow, classic.expires_ms) == ("drop-head", 1)
