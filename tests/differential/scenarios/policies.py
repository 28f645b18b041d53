"""Policies and operator policies over HTTP, and what they do to what is there."""

from __future__ import annotations

from typing import Any

from tests.differential.broker import Broker

Record = Any
SHOWN = ("policy", "operator_policy", "effective_policy_definition")


def _shown(broker: Broker, queue: str, **expected: Any) -> Record:
    """The policy fields of a queue as soon as some of them are as expected: statistics come late."""
    path = f"queues/%2F/{queue}"
    broker.wait_http(
        path, lambda row: all(row.get(key, "") == value for key, value in expected.items())
    )
    return broker.fields(path, *SHOWN)


def set_get_and_clear(broker: Broker) -> Record:
    made = broker.policy("p", "^x", {"max-length": 5}, priority=3, apply_to="queues")
    return [
        made,
        broker.http("GET", "policies/%2F/p"),
        broker.policy("p", "^y", {"max-length": 6}),
        broker.http("GET", "policies/%2F"),
        broker.clear_policy("p"),
        broker.clear_policy("p"),
        broker.http("GET", "policies/%2F/p"),
    ]


def set_and_clear_an_operator_policy(broker: Broker) -> Record:
    made = broker.policy("o", "^x", {"max-length": 5}, operator=True, apply_to="queues")
    found = [broker.http("GET", "operator-policies/%2F/o"), broker.http("GET", "policies/%2F/o")]
    return [made, found, broker.clear_policy("o", operator=True)]


def _refused(broker: Broker, *definitions: Any, operator: bool = False, **more: Any) -> Record:
    found = [broker.policy("p", "^x", each, operator=operator, **more) for each in definitions]
    broker.clear_policy("p", operator=operator)
    return found


def definitions_with_unknown_keys(broker: Broker) -> Record:
    return _refused(
        broker,
        {},
        {"foo": 1},
        {"foo": 1, "bar": "x", "max-length": 1},
        {"foo": 1, "max-length": "b"},
    )


def definitions_with_wrong_lengths(broker: Broker) -> Record:
    values = ("10", "", -1, 1.5, True, None, [1, "a"], {"a": 1}, 1e10)
    return _refused(broker, *({"max-length": value} for value in values))


def definitions_with_wrong_times(broker: Broker) -> Record:
    values = (0, -1, "5", 1.5, [])
    keys = ("expires", "message-ttl")
    return _refused(broker, *({key: value} for key in keys for value in values))


def definitions_with_wrong_texts(broker: Broker) -> Record:
    keys = (
        "overflow",
        "dead-letter-exchange",
        "dead-letter-routing-key",
        "queue-mode",
        "alternate-exchange",
    )
    return _refused(broker, *({key: value} for key in keys for value in (1, "nonsense", [])))


def definitions_with_wrong_versions(broker: Broker) -> Record:
    return _refused(broker, *({"queue-version": value} for value in (0, 1, 2, 3, "2")))


def definitions_for_other_queue_types(broker: Broker) -> Record:
    return _refused(
        broker,
        {"delivery-limit": -1},
        {"delivery-limit": 5},
        {"max-in-memory-length": "x"},
        {"queue-leader-locator": 1},
        {"initial-cluster-size": 0},
        {"stream-max-segment-size-bytes": -1},
        {"dead-letter-strategy": "x"},
    )


def several_wrong_values(broker: Broker) -> Record:
    return _refused(broker, {"max-length": "b", "expires": 0}, {"expires": 0, "overflow": 1})


def operator_definitions(broker: Broker) -> Record:
    return _refused(
        broker,
        {},
        {"foo": 1},
        {"dead-letter-exchange": "x"},
        {"queue-mode": "lazy"},
        {"max-length": "x"},
        {"max-length": 1, "message-ttl": 1, "expires": 1, "max-length-bytes": 1},
        operator=True,
    )


def patterns_that_are_no_expressions(broker: Broker) -> Record:
    found = [
        broker.policy("p", pattern, {"max-length": 1})
        for pattern in ("(", "*", "[", "a{2,1}", "(?P<a", "\\")
    ]
    broker.clear_policy("p")
    return found


def priorities_that_are_no_numbers(broker: Broker) -> Record:
    return [
        broker.policy("p", "^x", {"max-length": 1}, priority=each) for each in ("1", 1.5, True, -5)
    ]


def bodies_without_the_needed_keys(broker: Broker) -> Record:
    path = "policies/%2F/p"
    return [
        broker.http("PUT", path, {"definition": {"max-length": 1}}),
        broker.http("PUT", path, {"pattern": "x"}),
        broker.http("PUT", path, {"pattern": 1, "definition": {"max-length": 1}}),
        broker.http("PUT", path, {}),
    ]


def in_a_vhost_that_is_not_there(broker: Broker) -> Record:
    body = {"pattern": "x", "definition": {"max-length": 1}}
    return [broker.http("PUT", "policies/nope/p", body), broker.http("GET", "policies/nope")]


def the_highest_priority_applies_alone(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    broker.policy("low", "^q", {"max-length": 1, "expires": 60000}, priority=1)
    broker.policy("high", "^q", {"message-ttl": 60000}, priority=2)
    first = _shown(broker, "q", policy="high")
    peer.fill("q", b"1", b"2")
    count = peer.ready("q")
    broker.clear_policy("high")
    return [first, count, _shown(broker, "q", policy="low"), peer.wait_ready("q", 1)]


def a_key_of_another_type_keeps_the_policy_off(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    broker.policy("other", "^q", {"max-length": 1, "delivery-limit": 5}, priority=5)
    broker.policy("mine", "^q", {"max-length": 2}, priority=1)
    peer.fill("q", b"1", b"2", b"3")
    return [_shown(broker, "q", policy="mine"), peer.ready("q")]


def patterns_match_anywhere(broker: Broker) -> Record:
    peer = broker.peer()
    names = ("middle", "mid", "id", "dim")
    for name in names:
        peer.queue(name)
    broker.policy("p", "id", {"max-length": 1})
    return {
        name: _shown(broker, name, policy=None if name == "dim" else "p")["policy"]
        for name in names
    }


def exchanges_only_and_queues_only(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("thing")
    peer.exchange("thing", "fanout")
    broker.policy("x", "^thing$", {"alternate-exchange": "amq.fanout"}, apply_to="exchanges")
    first = [_shown(broker, "thing", policy=None), broker.fields("exchanges/%2F/thing", "policy")]
    broker.clear_policy("x")
    broker.policy("q", "^thing$", {"max-length": 5}, apply_to="queues")
    second = [_shown(broker, "thing", policy="q"), broker.fields("exchanges/%2F/thing", "name")]
    return [first, second]


def an_operator_policy_takes_the_lower_value(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    broker.policy("p", "^q$", {"max-length": 5, "message-ttl": 1000, "overflow": "reject-publish"})
    broker.policy(
        "o", "^q$", {"max-length": 2, "message-ttl": 60000, "expires": 60000}, operator=True
    )
    both = _shown(broker, "q", policy="p", operator_policy="o")
    broker.clear_policy("p")
    return [both, _shown(broker, "q", policy=None, operator_policy="o")]


def an_operator_policy_bounds_the_argument(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-length": 5})
    peer.queue("r", {"x-max-length": 1})
    broker.policy("o", "^[qr]$", {"max-length": 2}, operator=True)
    for name in ("q", "r"):
        peer.fill(name, b"1", b"2", b"3")
    return [peer.ready("q"), peer.ready("r")]


def a_lower_limit_drops_at_once(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    peer.fill("q", b"1", b"2", b"3")
    broker.policy("p", "^q$", {"max-length": 1})
    return [peer.wait_ready("q", 1), peer.wait_ready("dead", 2), peer.drain("dead")]


def a_lower_limit_under_reject_publish_drops_nothing(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-overflow": "reject-publish"})
    peer.fill("q", b"1", b"2", b"3")
    broker.policy("p", "^q$", {"max-length": 1})
    peer.fill("q", b"4")
    return [peer.ready("q"), peer.drain("q")]


def a_limit_that_comes_with_reject_publish_drops_the_excess(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1", b"2", b"3")
    broker.policy("p", "^q$", {"max-length": 1, "overflow": "reject-publish"})
    peer.wait_ready("q", 1)
    peer.fill("q", b"4")
    return [peer.ready("q"), peer.drain("q")]


def a_change_to_drop_head_drops_the_excess(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    broker.policy("p", "^q$", {"max-length": 1, "overflow": "reject-publish"})
    peer.fill("q", b"1")
    peer.get("q", no_ack=False)
    peer.fill("q", b"2")
    peer.nack(1)
    over = peer.wait_ready("q", 2)
    broker.policy("p", "^q$", {"max-length": 1, "overflow": "drop-head"})
    return [over, peer.wait_ready("q", 1), peer.drain("q")]


def expiry_by_policy(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    broker.policy("p", "^q$", {"expires": 200})
    return [broker.wait_gone("queues/%2F/q"), peer.passive("q")]


def expiry_by_policy_and_argument(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q1", {"x-expires": 200})
    peer.queue("q2", {"x-expires": 60000})
    broker.policy("p", "^q[12]$", {"expires": 400})
    gone = [broker.wait_gone(f"queues/%2F/{name}") for name in ("q1", "q2")]
    return [gone, peer.passive("q1"), peer.passive("q2")]


def the_argument_wins_for_overflow(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-overflow": "drop-head"})
    broker.policy("p", "^q$", {"max-length": 1, "overflow": "reject-publish"})
    peer.fill("q", b"1", b"2")
    return peer.drain("q")


def server_made_names_take_policies(broker: Broker) -> Record:
    peer = broker.peer()
    broker.policy("p", "^amq\\.gen", {"max-length": 1})
    name = peer.queue("", exclusive=True)
    peer.fill(name, b"1", b"2")
    return peer.drain(name)


def consumers_stay_when_a_policy_changes(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.consume("q", "t")
    peer.fill("q", b"1")
    first = peer.take(1)
    broker.policy("p", "^q$", {"max-length": 1, "message-ttl": 60000})
    peer.fill("q", b"2")
    return [first, peer.take(1), peer.rest()]


def clearing_lifts_the_limit(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    broker.policy("p", "^q$", {"max-length": 1})
    peer.fill("q", b"1", b"2")
    first = peer.ready("q")
    broker.clear_policy("p")
    peer.fill("q", b"3", b"4")
    return [first, peer.ready("q"), _shown(broker, "q", policy=None)]


def predeclared_exchanges_take_policies(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.bind("q", "amq.fanout")
    broker.policy(
        "ae", "^amq\\.direct$", {"alternate-exchange": "amq.fanout"}, apply_to="exchanges"
    )
    peer.publish("amq.direct", "none", b"1")
    return [peer.wait_ready("q", 1), broker.fields("exchanges/%2F/amq.direct", "policy")]
