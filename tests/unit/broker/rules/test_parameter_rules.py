"""burrowmq.broker.rules.parameter_rules: every refusal in RabbitMQ's words; most are the answers of a live node."""

from __future__ import annotations

from typing import Any

import pytest

from burrowmq.broker.rules.parameter_rules import (
    OPERATOR_KEYS,
    POLICY_KEYS,
    RefusedValue,
    ValidationFailed,
    default_queue_type,
    make_policy,
    user_limits,
    vhost_limits,
)


def refusal(document: dict[str, Any], *, is_operator: bool = False) -> str:
    with pytest.raises(ValidationFailed) as caught:
        make_policy("p", document, is_operator=is_operator)
    text = str(caught.value)
    assert text.startswith("Validation failed\n\n")
    return text.removeprefix("Validation failed\n\n")


def about(definition: Any, **more: Any) -> str:
    return refusal({"pattern": "x", "definition": definition, **more})


@pytest.mark.parametrize(
    ("key", "what"),
    [
        ("alternate-exchange", "alternate exchange name"),
        ("consumer-timeout", "consumer timeout"),
        ("dead-letter-exchange", "dead letter exchange name"),
        ("dead-letter-routing-key", "dead letter routing key"),
        ("dead-letter-strategy", "dead letter strategy"),
        ("delivery-limit", "delivery limit"),
        ("expires", "queue expiry"),
        ("initial-cluster-size", "cluster size"),
        ("max-age", "max age"),
        ("max-in-memory-bytes", "maximum memory in bytes"),
        ("max-in-memory-length", "maximum memory in bytes"),
        ("max-length", "maximum length"),
        ("max-length-bytes", "maximum length in bytes"),
        ("message-ttl", "message TTL"),
        ("overflow", "overflow value"),
        ("queue-leader-locator", "queue leader locator value"),
        ("queue-mode", "queue-mode value"),
        ("queue-version", "queue-version value"),
        ("stream-filter-size-bytes", "filter size. Valid range is 16-255"),
        ("stream-max-segment-size-bytes", "segment size"),
        ("ha-mode", "ha-mode value"),
    ],
)
def test_a_value_of_the_wrong_kind(key: str, what: str) -> None:
    assert about({key: []}) == f"[] is not a valid {what}\n"


@pytest.mark.parametrize(
    ("definition", "text"),
    [
        ({"max-length": "10"}, '<<"10">> is not a valid maximum length'),
        ({"max-length": -1}, "-1 is not a valid maximum length"),
        ({"max-length": True}, "true is not a valid maximum length"),
        ({"expires": 0}, "0 is not a valid queue expiry"),
        ({"queue-version": 3}, "3 is not a valid queue-version value"),
        ({"queue-version": True}, "true is not a valid queue-version value"),
        ({"max-age": "5x"}, '<<"5x">> is not a valid max age'),
        ({"max-age": "0s"}, '<<"0s">> is not a valid max age'),
        (
            {"stream-max-segment-size-bytes": 3_000_000_001},
            "3000000001 is not a valid segment size",
        ),
        (
            {"stream-filter-size-bytes": 15},
            "15 is not a valid filter size. Valid range is 16-255",
        ),
        ({}, "no policy provided"),
        (5, "definition must be a dictionary: 5"),
        ({"foo": 1}, '[{<<"foo">>,1}] are not recognised policy settings'),
        (
            {"foo": 1, "bar": "x", "max-length": 1},
            '[{<<"bar">>,<<"x">>},{<<"foo">>,1}] are not recognised policy settings',
        ),
        ({"foo": 1, "max-length": "b"}, '<<"b">> is not a valid maximum length'),
        ({"max-length": "b", "expires": 0}, "0 is not a valid queue expiry"),
        (  # before all others, and in words of its own
            {"queue-master-locator": "bad", "alternate-exchange": 5},
            '<<"bad">> invalid queue-master-locator value',
        ),
        ({"queue-master-locator": 5}, "5 invalid queue-master-locator value"),
        (
            {"ha-params": 2},
            "ha-mode must be specified to specify ha-params, ha-sync-mode or ha-promote-on-shutdown",
        ),
    ],
)
def test_definitions(definition: Any, text: str) -> None:
    assert about(definition) == text + "\n"


def test_good_values() -> None:
    definition = {
        "max-length": 0,
        "message-ttl": 0,
        "expires": 1,
        "overflow": "reject-publish-dlx",
        "queue-mode": "lazy",
        "queue-version": 2,
        "dead-letter-exchange": "",
        "max-age": "7D",
        "ha-mode": "all",
        "ha-sync-mode": "automatic",
        "queue-master-locator": "min-masters",
    }
    policy = make_policy("p", {"pattern": "^x", "definition": definition})
    assert policy.definition == definition
    assert (policy.priority, policy.apply_to) == (0, "all")
    rich = {"pattern": "x", "definition": {"expires": 1}, "priority": -3, "apply-to": "streams"}
    policy = make_policy("p", rich)
    assert (policy.priority, policy.apply_to) == (-3, "streams")


@pytest.mark.parametrize("key", sorted(POLICY_KEYS - OPERATOR_KEYS))
def test_operators_have_fewer_keys(key: str) -> None:
    document = {"pattern": "x", "definition": {key: "x"}}
    text = refusal(document, is_operator=True)
    assert text == f'[{{<<"{key}">>,<<"x">>}}] are not recognised policy settings\n'


def test_operators_may_say_overflow_and_version_since_3_12() -> None:
    definition = {"overflow": "reject-publish", "queue-version": 2, "max-length": 1}
    document = {"pattern": "x", "definition": definition}
    assert make_policy("o", document, is_operator=True).definition == definition


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(", '{"missing )",1}'),
        ("*", '{"nothing to repeat",0}'),
        ("[", '{"missing terminating ] for character class",\n' + " " * 54 + "1}"),
        ("\\", '{"\\\\ at end of pattern",\n' + " " * 54 + "1}"),
        ("a{2,1}", '{"numbers out of order in {} quantifier",\n' + " " * 54 + "5}"),
        (
            "(?P<a",
            '{"syntax error in subpattern name (missing terminator)",\n' + " " * 54 + "5}",
        ),
    ],
)
def test_patterns(pattern: str, text: str) -> None:
    document = {"pattern": pattern, "definition": {"max-length": 1}}
    assert refusal(document) == f"pattern should be regular expression but is invalid: {text}\n"


def test_other_fields() -> None:
    assert about({"expires": 1}, priority="1") == (
        'priority should be a number, actually was <<"1">>\n'
    )
    assert about({"expires": 1}, **{"apply-to": "foo"}) == (
        "apply-to 'foo' unrecognised; should be one of: 'queues', 'classic_queues', "
        " 'quorum_queues', 'streams', 'exchanges', or 'all'\n"
    )
    assert refusal({"pattern": 5, "definition": {"expires": 1}}) == (
        "pattern should be a binary but was 5\n"
    )
    assert refusal({"definition": {"expires": 1}}) == 'Key "pattern" not found in p\n'


def test_all_objections_are_told_in_rabbitmqs_order() -> None:
    text = about({"max-length": "b"}, pattern="(", priority="x", **{"apply-to": "foo"})
    assert [line.split(" ")[0] for line in text.splitlines()] == [
        '<<"b">>',
        "apply-to",
        "pattern",
        "priority",
    ]


def test_limits_of_vhosts() -> None:
    limits = {"max-connections": 0, "max-queues": -1}
    assert vhost_limits(limits) == limits
    assert vhost_limits([]) == {}
    with pytest.raises(ValidationFailed, match=r'Unrecognised terms \[\{<<"foo">>,3\}\] in limits'):
        vhost_limits({"foo": 3})
    with pytest.raises(
        ValidationFailed, match='max-queues should be a number, actually was <<"x">>'
    ):
        vhost_limits({"max-queues": "x"})


def test_limits_of_users_are_refused_without_a_head_line() -> None:
    assert user_limits({"max-channels": 5}) == {"max-channels": 5}
    with pytest.raises(RefusedValue) as caught:
        user_limits({"max-queues": 5})
    assert str(caught.value) == 'Unrecognised terms [{<<"max-queues">>,5}] in user-limits'


@pytest.mark.parametrize(
    ("value", "has_cluster", "found"),
    [
        (None, False, ""),
        ("undefined", True, ""),
        ("classic", False, "classic"),
        ("quorum", True, "quorum"),
        ("stream", True, "stream"),
    ],
)
def test_a_default_queue_type_is_one_that_is_there(
    value: str | None, has_cluster: bool, found: str
) -> None:
    assert default_queue_type(value, has_cluster=has_cluster) == found


@pytest.mark.parametrize(
    ("value", "has_cluster"), [("quorum", False), ("stream", False), ("x", True), (3, True)]
)
def test_a_default_queue_type_that_is_not_there_is_refused(
    value: object, has_cluster: bool
) -> None:
    with pytest.raises(RefusedValue, match=f"Unsupported default queue type '{value}'"):
        default_queue_type(value, has_cluster=has_cluster)


@pytest.mark.parametrize(
    ("key", "what"),
    [
        ("alternate-exchange", "alternate exchange name"),
        ("dead-letter-exchange", "dead letter exchange name"),
        ("dead-letter-routing-key", "dead letter routing key"),
    ],
)
def test_half_a_surrogate_pair_is_no_name(key: str, what: str) -> None:
    """JSON can spell it, and no octets of AMQP stand for it."""
    assert about({key: "a\ud800"}).endswith(f"is not a valid {what}\n")
    assert make_policy("p", {"pattern": "x", "definition": {key: "a\udcff"}}), "an octet: no UTF-8"
