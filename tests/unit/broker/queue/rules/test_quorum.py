"""What a quorum queue cannot be declared with, in RabbitMQ's words."""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.broker.queue.rules.quorum import is_quorum, validate_quorum
from burrowmq.broker.queue.rules.settings import QueueDeclaration
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
        {"x-message-ttl": 3},
        {"x-queue-leader-locator": "balanced", "x-max-in-memory-length": 1},
        {"x-single-active-consumer": False, "x-unknown": 1},
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
        (
            {"x-single-active-consumer": True},
            {},
            f"invalid arg 'x-single-active-consumer' for {WHERE} {OF_TYPE}",
        ),
        ({"x-delivery-limit": -1}, {}, f"invalid arg 'x-delivery-limit' for {WHERE}: {{value_negative,-1}}"),
        (
            {"x-quorum-initial-group-size": 6},
            {},
            f"invalid arg 'x-quorum-initial-group-size' for {WHERE}: {{value_out_of_range,6}}",
        ),
        (
            {"x-max-length": 1},
            {},
            f"invalid arg 'x-overflow' for {WHERE}:"
            " \"a quorum queue with a length limit needs 'reject-publish'\"",
        ),
    ],
)  # fmt: skip
def test_what_it_cannot_be(arguments: dict[str, Any], fields: dict[str, Any], text: str) -> None:
    with pytest.raises(PreconditionFailed) as refused:
        validate_quorum(declaration(arguments, **fields), "/")
    assert refused.value.text == text
