"""Which keys and headers meet which bindings."""

from __future__ import annotations

import datetime
from typing import Any

from tests.differential.broker import Broker
from tests.support.field_table import Typed

Record = Any
PATTERNS = ["#", "*", "*.*", "a.*", "a.#", "#.a", "*.#", "a.*.b", "#.#", "a.#.b", "#.*.#", "a.b"]
PATTERNS += ["*.b.#", "#.b.*", ".", "..", "a.", ".a", ""]
KEYS = [
    ".",
    "a",
    "a.",
    ".a",
    "a.b",
    "a..b",
    "a.b.c",
    "x",
    "b",
    "a.x.y.b",
    "..",
    "#",
    "*",
    "a.#",
    "b.b",
    "",
]
_MOMENT = datetime.datetime(2020, 1, 1, tzinfo=datetime.UTC)


def topic_patterns(broker: Broker) -> Record:
    """One queue per pattern, every key published once."""
    peer = broker.peer()
    for number, pattern in enumerate(PATTERNS):
        peer.queue(f"q{number}")
        peer.bind(f"q{number}", "amq.topic", pattern)
    for key in KEYS:
        peer.publish("amq.topic", key, key.encode())
    peer.sync()
    peer.wait_ready("q0", len(KEYS))
    return {pattern: peer.drain(f"q{number}") for number, pattern in enumerate(PATTERNS)}


def topic_words_are_case_sensitive_and_may_be_any_text(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    for pattern in ("Ä.*", "a b.#", "X"):
        peer.bind("q", "amq.topic", pattern)
    for key in ("Ä.1", "ä.1", "a b.c", "a  b.c", "x", "X"):
        peer.publish("amq.topic", key, key.encode())
    peer.sync("q")
    return peer.drain("q")


def a_topic_unbind_takes_one_pattern_only(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    for pattern in ("a.*", "a.#"):
        peer.bind("q", "amq.topic", pattern)
    peer.unbind("q", "amq.topic", "a.*")
    for key in ("a.b", "a"):
        peer.publish("amq.topic", key, key.encode())
    peer.sync("q")
    return peer.drain("q")


def several_bindings_deliver_one_copy(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    for pattern in ("a.*", "a.#", "#"):
        peer.bind("q", "amq.topic", pattern)
    peer.publish("amq.topic", "a.b", b"1")
    peer.sync("q")
    return peer.drain("q")


def direct_keys_are_compared_whole(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    for key in ("a", "", "a.*"):
        peer.bind("q", "amq.direct", key)
    for key in ("a", "A", "", "a.*", "a.b", "a "):
        peer.publish("amq.direct", key, repr(key).encode())
    peer.sync("q")
    return peer.drain("q")


def fanout_ignores_keys(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.bind("q", "amq.fanout", "some")
    for key in ("some", "other", ""):
        peer.publish("amq.fanout", key, key.encode())
    peer.sync("q")
    return peer.drain("q")


def the_default_exchange_takes_queue_names(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.publish("", "q", b"1", mandatory=True)
    peer.publish("", "Q", b"2", mandatory=True)
    return [peer.take(1), peer.drain("q")]


def _headers(broker: Broker, bindings: list[dict[str, Any]], messages: list[Any]) -> Record:
    peer = broker.peer()
    for number, arguments in enumerate(bindings):
        peer.queue(f"q{number}")
        peer.bind(f"q{number}", "amq.headers", "", arguments)
    peer.queue("all")
    peer.bind("all", "amq.fanout")
    for number, headers in enumerate(messages):
        peer.publish("amq.headers", "", str(number).encode(), headers=headers)
    peer.publish("amq.fanout", "", b"")
    peer.wait_ready("all", 1)
    peer.sync("q0")
    return [peer.drain(f"q{number}") for number in range(len(bindings))]


def headers_all(broker: Broker) -> Record:
    return _headers(
        broker,
        [{"a": 1, "b": "x"}, {"x-match": "all", "a": 1}, {"x-match": "all"}],
        [{"a": 1, "b": "x"}, {"a": 1}, {"a": 1, "b": "y"}, {"a": 1, "b": "x", "c": 0}, {}, None],
    )


def headers_any(broker: Broker) -> Record:
    return _headers(
        broker,
        [{"x-match": "any", "a": 1, "b": "x"}, {"x-match": "any"}],
        [{"a": 1, "b": "x"}, {"a": 2, "b": "x"}, {"a": 2}, {"c": 1}, {}, None],
    )


def headers_with_x(broker: Broker) -> Record:
    """all and any pass over binding arguments that start with x-; the -with-x kinds do not."""
    return _headers(
        broker,
        [
            {"x-match": "all", "a": 1, "x-b": 2},
            {"x-match": "any", "a": 1, "x-b": 2},
            {"x-match": "all-with-x", "a": 1, "x-b": 2},
            {"x-match": "any-with-x", "a": 1, "x-b": 2},
        ],
        [{"a": 1}, {"x-b": 2}, {"a": 1, "x-b": 2}, {"a": 1, "x-b": 3}, {"a": 1, "x-match": "all"}],
    )


def headers_void_asks_for_the_key_only(broker: Broker) -> Record:
    return _headers(
        broker, [{"a": None}], [{"a": 1}, {"a": "x"}, {"a": None}, {"b": None}, {"a": [1]}]
    )


def headers_values_of_different_types(broker: Broker) -> Record:
    """Each value bound, each value sent: which types count as equal."""
    values: list[Any] = [
        Typed("I", 1),
        Typed("l", 1),
        Typed("b", 1),
        Typed("u", 1),
        True,
        "1",
        b"1",
        [1],
        {"a": 1},
        Typed("D", (0, 1)),
        Typed("D", (1, 10)),
        Typed("d", 1.5),
        Typed("f", 1.5),
    ]
    return _headers(broker, [{"h": each} for each in values], [{"h": each} for each in values])


def headers_values_with_nothing_in_them(broker: Broker) -> Record:
    """An empty table is an empty array, but not when it is inside another value."""
    values: list[Any] = [{}, [], "", {"a": {}}, {"a": []}, [{}], [[]]]
    return _headers(broker, [{"h": each} for each in values], [{"h": each} for each in values])


def headers_whole_numbers_and_floats(broker: Broker) -> Record:
    """1 and 1.0 are equal up to 3.12 and different in 3.13."""
    values: list[Any] = [1, 1.0]
    return _headers(broker, [{"h": each} for each in values], [{"h": each} for each in values])


def headers_timestamps(broker: Broker) -> Record:
    moment = Typed("T", int(_MOMENT.timestamp()))
    return _headers(broker, [{"h": moment}], [{"h": moment}, {"h": int(_MOMENT.timestamp())}])


def headers_match_of_a_wrong_value(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    values = ("foo", "", "ALL", b"all", 1, True, None, [1, "a"], {"a": 1}, 1.5, "any", "all-with-x")
    return [peer.bind("q", "amq.headers", "", {"x-match": value}) for value in values]


def headers_unbind_needs_no_valid_match(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    return peer.unbind("q", "amq.headers", "", {"x-match": "foo"})


def headers_exchanges_ignore_keys_and_cc(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.bind("q", "amq.headers", "k", {"a": 1})
    peer.publish("amq.headers", "other", b"1", headers={"a": 1, "CC": ["k"]})
    peer.publish("amq.headers", "k", b"2", headers={"a": 2, "CC": ["k"]})
    peer.sync("q")
    return peer.drain("q")


def bindings_over_http(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.bind("q", "amq.topic", "a.b")
    peer.bind("q", "amq.topic", "a/b c", {"x": 1})
    peer.exchange("x", "fanout")
    peer.bind_exchange("x", "amq.topic", "")
    return [
        sorted(broker.http("GET", "queues/%2F/q/bindings")[1], key=str),
        sorted(broker.http("GET", "exchanges/%2F/x/bindings/destination")[1], key=str),
        broker.http("GET", "bindings/%2F/e/amq.topic/q/q/a.b"),
        broker.http("GET", "bindings/%2F/e/amq.topic/q/q/none"),
    ]
