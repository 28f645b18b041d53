"""The exchange types of RabbitMQ's plugins: where keys go, arguments and errors, what a new binding gets."""

from __future__ import annotations

from typing import Any

from tests.differential.broker import Broker
from tests.differential.peer import Peer
from tests.support.field_table import Typed

Record = Any
CHX = "x-consistent-hash"
HISTORY = "x-recent-history"
KEYS = [f"k{number}" for number in range(40)]


def _with_queues(broker: Broker, kind: str, *keys: str, **arguments: Any) -> Peer:
    """An exchange x with queues q0, q1, ... bound by these keys."""
    peer = broker.peer()
    given = {name.replace("_", "-"): value for name, value in arguments.items()}
    assert peer.exchange("x", kind, given)["method"] == "exchange.declareok"
    for number, key in enumerate(keys):
        peer.queue(f"q{number}")
        assert peer.bind(f"q{number}", "x", key)["method"] == "queue.bindok"
    return peer


def _placed(peer: Peer, count: int, keys: list[str] | None = None, **properties: Any) -> Record:
    """Which of the keys each queue gets."""
    sent = KEYS if keys is None else keys
    for key in sent:
        peer.publish("x", key, key.encode(), **properties)
    peer.sync("q0")
    return {f"q{number}": peer.drain(f"q{number}") for number in range(count)}


def consistent_hash_by_weight(broker: Broker) -> Record:
    return _placed(_with_queues(broker, CHX, "1", "2", "5"), 3)


def consistent_hash_after_a_queue_has_gone_and_come_back(broker: Broker) -> Record:
    peer = _with_queues(broker, CHX, "1", "1", "1")
    peer.unbind("q0", "x", "1")
    without = _placed(peer, 3)
    peer.bind("q0", "x", "1")
    return [without, _placed(peer, 3)]


def consistent_hash_of_two_bindings_to_a_queue(broker: Broker) -> Record:
    peer = _with_queues(broker, CHX, "1", "1")
    peer.bind("q0", "x", "7")
    return _placed(peer, 2)


def consistent_hash_when_one_of_two_bindings_goes(broker: Broker) -> Record:
    peer = _with_queues(broker, CHX, "1", "1")
    peer.bind("q0", "x", "7")
    peer.unbind("q0", "x", "7")
    found = _placed(peer, 2)
    return {name: len(bodies) for name, bodies in found.items()}


def consistent_hash_of_headers(broker: Broker) -> Record:
    peer = _with_queues(broker, CHX, "1", "1", "1", hash_header="h")
    values = (
        "a", "b", "c", "dd", 1, 2, -1, 300, 5_000_000_000, -5_000_000_000, True, False, None,
        ["a", 1], {"k": "v", "n": 5}, [], {}, b"octets", 1.5, -0.25,
        Typed("T", 1_577_836_800), Typed("b", 5), Typed("s", 5), Typed("l", 5),
    )  # fmt: skip
    found = [_placed(peer, 3, ["k"], headers={"h": value}) for value in values]
    return [*found, _placed(peer, 3, ["k"]), _placed(peer, 3, ["k"], headers={"other": 1})]


def consistent_hash_of_properties(broker: Broker) -> Record:
    found = []
    for name, values in (
        ("message_id", ["1", "2", "", "ü"]), ("correlation_id", ["1", "2", "x" * 40]), ("timestamp", [0, 1, 2]),
    ):  # fmt: skip
        peer = _with_queues(broker, CHX, "1", "1", "1", hash_property=name)
        found += [_placed(peer, 3, ["k"], **{name: value}) for value in values]
        found.append(_placed(peer, 3, ["k"]))
        peer.delete_exchange("x")
    return found


def consistent_hash_with_cc(broker: Broker) -> Record:
    peer = _with_queues(broker, CHX, "1", "1", "1")
    return _placed(peer, 3, headers={"CC": ["k5", "k6"], "BCC": ["k7"]})


def consistent_hash_without_bindings(broker: Broker) -> Record:
    peer = _with_queues(broker, CHX, alternate_exchange="amq.fanout")
    peer.queue("q0")
    peer.bind("q0", "amq.fanout")
    return _placed(peer, 1, ["k"])


def consistent_hash_to_an_exchange(broker: Broker) -> Record:
    peer = _with_queues(broker, CHX, "1")
    peer.queue("q1")
    peer.bind("q1", "amq.fanout")
    return [peer.bind_exchange("amq.fanout", "x", "1"), _placed(peer, 2)]


def consistent_hash_weights(broker: Broker) -> Record:
    peer = _with_queues(broker, CHX, "1")
    keys = ("0", "-1", "abc", "", "1.5", " 1", "1 ", "+2", "010")
    return [peer.bind("q0", "x", key) for key in keys]


def consistent_hash_with_a_huge_weight(broker: Broker) -> Record:
    return _with_queues(broker, CHX, "1").bind("q0", "x", "10001")["method"]


def consistent_hash_arguments(broker: Broker) -> Record:
    peer = broker.peer()
    both = {"hash-header": "h", "hash-property": "message_id"}
    given = ({"hash-header": "h"}, {"hash-property": "timestamp"}, {"hash-property": "size"}, both)
    return [peer.exchange(f"x{n}", CHX, each) for n, each in enumerate(given)]


def consistent_hash_with_an_argument_of_another_type(broker: Broker) -> Record:
    return broker.peer().exchange("x", CHX, {"hash-header": 5})["method"]


def modulus_hash(broker: Broker) -> Record:
    peer = _with_queues(broker, "x-modulus-hash", "z", "y", "x")
    found = [_placed(peer, 3)]
    peer.bind("q0", "x", "a")
    return [*found, _placed(peer, 3), _placed(peer, 3, headers={"CC": ["b"], "BCC": ["c"]})]


def random_reaches_one(broker: Broker) -> Record:
    peer = _with_queues(broker, "x-random", "", "")
    found = _placed(peer, 2, ["k"] * 100)
    return [sum(map(len, found.values())), all(found.values())]


def recent_history(broker: Broker) -> Record:
    peer = _with_queues(broker, HISTORY)
    for number in range(25):
        peer.publish("x", f"k{number}", b"%d" % number)
    peer.queue("q0")
    peer.bind("q0", "x")
    first = peer.drain("q0")
    peer.bind("q0", "x")
    again = peer.drain("q0")
    peer.bind("q0", "x", "another")
    return [first, again, peer.drain("q0")]


def recent_history_of_a_length(broker: Broker) -> Record:
    peer = _with_queues(broker, HISTORY, x_recent_history_length=3)
    values: tuple[Any, ...] = (True, False, "true", 1, None)
    for number, value in enumerate(values):
        headers = {"x-recent-history-no-store": value, "n": number}
        peer.publish("x", "k", b"%d" % number, headers=headers, delivery_mode=2)
    peer.queue("q0")
    peer.bind("q0", "x")
    return [peer.get("q0") for _ in range(4)]


def recent_history_to_an_exchange(broker: Broker) -> Record:
    peer = _with_queues(broker, HISTORY)
    peer.queue("q0")
    peer.bind("q0", "amq.direct", "k")
    for body in (b"1", b"2", b"3"):
        peer.publish("x", "k", body)
    peer.bind_exchange("amq.direct", "x")
    return peer.drain("q0")


def recent_history_to_an_exchange_that_leads_nowhere(broker: Broker) -> Record:
    peer = _with_queues(broker, HISTORY)
    peer.publish("x", "k", b"1")
    return peer.bind_exchange("amq.direct", "x")["method"]


def recent_history_is_no_route(broker: Broker) -> Record:
    peer = _with_queues(broker, HISTORY)
    peer.confirm()
    peer.publish("x", "k", b"1", mandatory=True)
    return [each["method"] for each in peer.take(2)]


def recent_history_of_what_was_rolled_back(broker: Broker) -> Record:
    peer = _with_queues(broker, HISTORY)
    peer.tx("select")
    peer.publish("x", "k", b"1")
    peer.tx("rollback")
    peer.queue("q0")
    peer.bind("q0", "x")
    return peer.drain("q0")


def recent_history_lengths(broker: Broker) -> Record:
    peer = broker.peer()
    given = (5, 0, -1, "5", True, 10**12)
    return [peer.exchange("x", HISTORY, {"x-recent-history-length": each}) for each in given]


def over_http(broker: Broker) -> Record:
    """Declared, bound, refused and listed."""
    vhost = broker.vhost("v")
    found = [
        broker.http("PUT", f"exchanges/{vhost}/{kind}", {"type": kind, "durable": True})
        for kind in (CHX, "x-modulus-hash", "x-random", HISTORY)
    ]
    bad = {"type": HISTORY, "arguments": {"x-recent-history-length": 0}}
    found.append(broker.http("PUT", f"exchanges/{vhost}/bad", bad))
    found.append(broker.http("PUT", f"queues/{vhost}/q", {"durable": True}))
    where = f"bindings/{vhost}/e/{CHX}/q/q"
    found.append(broker.http("POST", where, {"routing_key": "many"}))
    types = broker.http("GET", "overview")
    return [*found, types[1]["exchange_types"]]
