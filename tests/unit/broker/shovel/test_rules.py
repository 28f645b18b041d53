"""What a parameter of a shovel may say; the texts are those of a live RabbitMQ 3.10 with its plugin."""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.broker.rules.parameter_rules import ValidationFailed
from burrowmq.broker.shovel.rules import validate

GOOD: dict[str, Any] = {
    "src-uri": "amqp://",
    "src-queue": "q",
    "dest-uri": "amqp://",
    "dest-queue": "b",
}


def objections(value: object) -> list[str]:
    try:
        validate("s", value, "guest", lambda vhost: vhost == "/")
    except ValidationFailed as refusal:
        return list(refusal.objections)
    return []


@pytest.mark.parametrize(
    "more",
    [
        {},
        {"src-uri": ["amqp://", "amqp://h"], "dest-uri": "amqps://u:p@h:5/v?verify=verify_peer"},
        {"ack-mode": "no-ack", "src-delete-after": "queue-length"},
        {"ack-mode": "on-publish", "delete-after": 5, "prefetch-count": 10},
        {"src-delete-after": 0, "reconnect-delay": 1, "dest-add-forward-headers": True},
        {"dest-publish-properties": {"app_id": "a", "delivery_mode": 2}, "src-queue-args": {}},
        {"src-queue-args": {"x-max-length": 5}, "src-consumer-args": {"x-priority": 1}},
        {"src-queue": "\udce4", "dest-uri": "amqp://h/" + "v" * 255},
        {"src-protocol": "amqp091", "dest-protocol": "amqp091", "dest-publish-properties": []},
    ],
)
def test_what_is_right_is_taken(more: dict[str, Any]) -> None:
    assert objections({**GOOD, **more}) == []


def test_what_is_missing_is_said_in_rabbitmq_s_order() -> None:
    assert objections([]) == [
        "Must specify 'src-exchange' or 'src-queue'",
        'Key "dest-uri" not found in s',
        'Key "src-uri" not found in s',
    ]


def test_both_of_two_that_exclude_each_other() -> None:
    more = {"src-exchange": "e", "dest-exchange": "e", "ack-mode": "no-ack", "delete-after": 4}
    assert objections({**GOOD, **more}) == [
        "Cannot specify 'src-exchange' and 'src-queue'",
        "Cannot specify 'no-ack' and numerical 'delete-after'",
        "Cannot specify 'dest-exchange' and 'dest-queue'",
    ]


@pytest.mark.parametrize(
    ("more", "text"),
    [
        ({"bogus": 1}, 'Unrecognised terms [{<<"bogus">>,1}] in s'),
        ({"src-uri": 5}, "src-uri should be list, actually was 5"),
        (
            {"src-uri": "amqp://u%:p@h"},
            '"amqp://u%:p@h" not a valid URI: {{unterminated_entity,[\'%\']},"amqp://u%:p@h"}',
        ),
        (
            {"src-uri": "http://x"},
            '"http://x" not a valid URI: {{unexpected_uri_scheme,"http"},"http://x"}',
        ),
        (
            {"src-uri": "amqp://u:p@h:99999/v"},
            '"amqp://u:p@h:99999/v" not a valid URI: {{port_out_of_range,99999},\n'
            '                                         "amqp://u:p@h:99999/v"}',
        ),
        ({"src-uri": "amqp:///nov"}, 'user "guest" may not connect to vhost "nov"'),
        ({"src-queue": 5}, "src-queue should be binary, actually was 5"),
        (
            {"src-queue": "\ud800"},
            "src-queue is no text that can be sent: <<237,160,128>>",
        ),
        (
            {"dest-uri": ["amqp://h", "amqp://\ud800"]},
            "dest-uri is no text that can be sent: <<97,109,113,112,58,47,47,237,160,128>>",
        ),
        ({"src-uri": [5]}, "src-uri should be list, actually was 5"),
        (
            {"src-uri": "amqp://h/" + "v" * 256},
            "src-uri has a virtual host of more than 255 octets",
        ),
        (
            {"dest-uri": "amqp:///" + "%61" * 300},
            "dest-uri has a virtual host of more than 255 octets",
        ),
        ({"dest-queue": "x" * 256}, "dest-queue is longer than 255 octets"),
        (
            {"ack-mode": "zz"},
            'ack-mode should be one of [<<"no-ack">>,<<"on-publish">>,<<"on-confirm">>],'
            ' actually was <<"zz">>',
        ),
        ({"ack-mode": 5}, "ack-mode should be binary, actually was 5"),
        ({"prefetch-count": float("inf")}, "prefetch-count should be a number, actually was inf"),
        ({"reconnect-delay": "x"}, 'reconnect-delay should be a number, actually was <<"x">>'),
        (
            {"dest-add-timestamp-header": 1},
            "dest-add-timestamp-header should be boolean, actually was 1",
        ),
        ({"publish-properties": "x"}, 'publish-properties not a list <<"x">>'),
        (
            {"publish-properties": {"headers": {}}},
            'Unrecognised terms [{<<"headers">>,#{}}] in publish-properties',
        ),
        (
            {"publish-properties": {"priority": 256}},
            "priority should be 0 to 255, actually was 256",
        ),
        (
            {"publish-properties": {"delivery_mode": 1.5}},
            "delivery_mode should be 0 to 255, actually was 1.5",
        ),
        (
            {"publish-properties": {"app_id": "\ud800"}},
            "app_id is no text that can be sent: <<237,160,128>>",
        ),
        (
            {"src-delete-after": True},
            'src-delete-after should be a number greater than or equal to 0, "never" or'
            ' "queue-length", actually was true',
        ),
        (
            {"src-protocol": "amqp10"},
            "src-protocol should be amqp091, the only protocol of shovels here,"
            ' actually was <<"amqp10">>',
        ),
        ({"src-queue-args": 5}, "src-queue-args should be a JSON object, actually was 5"),
        (
            {"src-queue-args": {"a": 1 << 70}},
            "src-queue-args cannot be sent: a whole number of more than 64 bits",
        ),
        (
            {"src-consumer-args": {"a": ["\ud800"]}},
            "src-consumer-args cannot be sent: a text that is not UTF-8",
        ),
    ],
)
def test_what_is_wrong_is_said(more: dict[str, Any], text: str) -> None:
    assert objections({**GOOD, **more}) == [text]


def test_no_object_at_all() -> None:
    assert objections("x") == ['s should be a JSON object, actually was <<"x">>']
