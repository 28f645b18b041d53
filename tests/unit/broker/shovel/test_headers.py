"""What is written into messages: equal to what a live RabbitMQ's plugin wrote."""

from __future__ import annotations

from typing import Any

from burrowmq.broker.shovel.definition import read
from burrowmq.broker.shovel.headers import Marks
from burrowmq.protocol.codec import Message, join_address
from burrowmq.protocol.properties import Properties, body, build, decode

ENTRY = {
    "shovelled-by": "rabbit@vm",
    "shovel-type": "dynamic",
    "shovel-name": "s1",
    "shovel-vhost": "/",
    "src-uri": "amqp://",
    "dest-uri": "amqp://h",
    "src-queue": "a",
    "dest-queue": "b",
}


def message(**properties: Any) -> Message:
    return build(join_address(b"", b"a"), Properties(**properties), b"body")


def marked(given: Message, frame_max: int = 131072, **options: Any) -> Properties:
    value = {"src-uri": "amqp://", "src-queue": "a", "dest-uri": "amqp://h", "dest-queue": "b"}
    options = {f"dest-{key.replace('_', '-')}": each for key, each in options.items()}
    definition = read("s1", "/", {**value, **options})
    marks = Marks(definition, "rabbit@vm", "amqp://", "amqp://h", frame_max)
    (after,) = marks.applied([given])
    assert (after.address, body(after.raw)) == (given.address, b"body")
    return decode(after.raw)


def test_where_it_has_been_the_newest_first() -> None:
    once = marked(message(headers={"h": 1}), add_forward_headers=True)
    assert once.headers == {"h": 1, "x-shovelled": [ENTRY]}
    before = {"z": 1}
    twice = marked(message(headers={"x-shovelled": [before]}), add_forward_headers=True)
    assert twice.headers == {"x-shovelled": [ENTRY, before]}


def test_what_stands_in_the_header_s_place_is_kept_elsewhere() -> None:
    found = marked(message(headers={"x-shovelled": "text"}), add_forward_headers=True)
    assert found.headers == {
        "x-shovelled": [ENTRY],
        "x-invalid-headers": {"x-shovelled": ["text"]},
    }


def test_when() -> None:
    headers = marked(message(), add_timestamp_header=True).headers
    assert headers is not None
    assert isinstance(headers["x-shovelled-timestamp"], int)


def test_properties_replace_the_message_s_own() -> None:
    found = marked(
        message(app_id="old", delivery_mode=2, message_id="kept"),
        publish_properties={"app_id": "new", "delivery_mode": 1},
    )
    assert (found.app_id, found.delivery_mode, found.message_id) == ("new", 1, "kept")


def test_what_would_be_too_large_for_a_frame_loses_its_oldest_first() -> None:
    before: list[Any] = [{"n": each, "text": "x" * 900} for each in range(5)]
    found = marked(message(headers={"x-shovelled": before}), 4096, add_forward_headers=True)
    assert found.headers is not None
    assert found.headers["x-shovelled"] == [ENTRY, *before[:4]]


def test_what_is_too_large_without_them_goes_on_as_it_came() -> None:
    headers = {"x": "x" * 4050}
    assert marked(message(headers=headers), 4096, add_forward_headers=True).headers == headers
