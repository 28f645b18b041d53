"""basic.publish: its checks and their texts, properties, returns, sender-selected distribution."""

from __future__ import annotations

from typing import Any

from pika import spec

from tests.differential.broker import Broker
from tests.differential.peer import Peer, content_frames, method_frame
from tests.support.field_table import Typed

Record = Any


def _refused(peer: Peer, exchange: str, key: str, **options: Any) -> Record:
    peer.publish(exchange, key, b"x", **options)
    return peer.sync()


def to_a_missing_exchange(broker: Broker) -> Record:
    return _refused(broker.peer(), "none", "k")


def immediate_is_not_implemented(broker: Broker) -> Record:
    return _refused(broker.peer(), "none", "k", immediate=True)


def without_a_route(broker: Broker) -> Record:
    peer = broker.peer()
    peer.publish("", "none", b"dropped")
    peer.publish("", "none", b"returned", mandatory=True, app_id="a", headers={"h": 1})
    peer.publish("amq.topic", "none", b"", mandatory=True)
    return peer.take(2)


def a_return_comes_before_the_ack(broker: Broker) -> Record:
    peer = broker.peer()
    peer.confirm()
    peer.publish("", "none", b"1", mandatory=True)
    return peer.take(2)


def a_return_has_no_bcc(broker: Broker) -> Record:
    peer = broker.peer()
    headers = {"CC": ["n1"], "BCC": ["n2"], "h": 1}
    peer.publish("", "none", b"1", mandatory=True, headers=headers)
    return peer.take(1)


def mandatory_with_a_route_is_not_returned(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-length": 0})
    peer.publish("", "q", b"1", mandatory=True)
    peer.sync("q")
    return [peer.rest(), peer.ready("q")]


def _nested(depth: int) -> dict[str, Any]:
    return {"k": _nested(depth - 1)} if depth > 1 else {}


def headers_of_many_fields(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.publish("", "q", b"1", headers={"many": [{"b": True}] * 1000})
    peer.publish("", "q", b"2", headers={f"h{number}": True for number in range(8000)})
    peer.publish("", "none", b"3", headers={"CC": [*(f"r{number}" for number in range(1100)), "q"]})
    return [peer.get("q") for _ in range(3)]


def headers_nested_deep(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.publish("", "q", b"1", headers=_nested(128))
    return peer.get("q")


def headers_nested_deeper(broker: Broker) -> Record:
    peer = broker.peer()
    peer.publish("", "q", b"1", headers=_nested(129))
    return peer.sync()


def arguments_of_many_fields(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    arguments = {f"a{number}": True for number in range(1100)}
    bound = peer.bind("q", "amq.headers", "", arguments)
    peer.publish("amq.headers", "", b"1", headers=arguments)
    return [bound, peer.get("q")]


def every_property_arrives(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.publish(
        "",
        "q",
        b"body",
        content_type="text/plain",
        content_encoding="utf-8",
        headers={"a": 1, "b": "x"},
        delivery_mode=2,
        priority=7,
        correlation_id="c",
        reply_to="r",
        expiration="60000",
        message_id="m",
        timestamp=1600000000,
        type="t",
        user_id="guest",
        app_id="app",
        cluster_id="cl",
    )
    peer.sync("q")
    return peer.get("q")


def no_property_arrives_as_none(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"")
    return peer.get("q")


def header_values_keep_their_types(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    headers = {
        "t": True,
        "b": Typed("b", -1),
        "B": Typed("B", 200),
        "s": Typed("s", -300),
        "u": Typed("u", 60000),
        "I": Typed("I", -70000),
        "i": Typed("i", 4000000000),
        "l": Typed("l", -5000000000),
        "f": Typed("f", 1.5),
        "d": Typed("d", 2.5),
        "D": Typed("D", (2, 314)),
        "S": "text",
        "x": b"\x00\xff",
        "T": Typed("T", 1600000000),
        "V": None,
        "A": [1, "a", [None, True]],
        "F": {"inner": {"deep": Typed("l", 1)}},
    }
    peer.fill("q", b"1", headers=headers)
    return peer.get("q")


def an_empty_header_table_arrives(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1", headers={})
    return peer.get("q")


def delivery_modes(broker: Broker) -> Record:
    """Only 3.13 takes modes other than 1 and 2; they are transient."""
    peer = broker.peer()
    peer.queue("q", durable=True)
    outcome = []
    for mode in (1, 2, 0, 3, 255):
        peer.publish("", "q", str(mode).encode(), delivery_mode=mode)
        outcome.append(peer.sync("q"))
    return [outcome, peer.drain("q")]


def user_id_of_somebody_else(broker: Broker) -> Record:
    peer = broker.peer()
    return [_refused(peer, "", "q", user_id="bob"), _refused(peer, "", "q", user_id="")]


def user_id_of_oneself(broker: Broker) -> Record:
    return _refused(broker.peer(), "", "q", user_id="guest")


def user_id_by_an_impersonator(broker: Broker) -> Record:
    user = broker.user("actor", "impersonator", (".*", ".*", ".*"))
    peer = broker.peer(user=user, password=user)
    return _refused(peer, "", "q", user_id="bob")


def expirations_that_are_no_numbers(broker: Broker) -> Record:
    peer = broker.peer()
    texts = ("", "abc", "1x", "x1", "1.5", "-1", "-", "+", " 1", "1 ", "0x10", "1e3", "é", '"')
    return {text: _refused(peer, "", "q", expiration=text) for text in texts}


def expirations_at_the_limits(broker: Broker) -> Record:
    peer = broker.peer()
    texts = ("0", "+5", "007", "315360000000", "315360000001", "9" * 18, "9" * 19, "9" * 23)
    return {text: _refused(peer, "", "q", expiration=text) for text in texts}


def a_wrong_expiration_counts_without_a_route(broker: Broker) -> Record:
    return _refused(broker.peer(), "amq.fanout", "", expiration="abc")


def cc_and_bcc(broker: Broker) -> Record:
    peer = broker.peer()
    for name in ("q1", "q2", "q3"):
        peer.queue(name)
    peer.publish("", "q1", b"1", headers={"CC": ["q2"], "BCC": ["q3"]})
    for name in ("q1", "q2", "q3"):
        peer.wait_ready(name, 1)
    return [peer.get(name) for name in ("q1", "q2", "q3")]


def cc_through_a_topic_exchange_delivers_once(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.bind("q", "amq.topic", "a.*")
    peer.publish("amq.topic", "a.1", b"1", headers={"CC": ["a.2", "b.1"]})
    peer.publish("amq.topic", "b.1", b"2", headers={"CC": ["a.2"]})
    peer.publish("amq.topic", "b.1", b"3", headers={"BCC": ["a.2"]})
    peer.sync("q")
    return [peer.get("q"), peer.get("q"), peer.get("q"), peer.get("q")]


def cc_alone_can_make_a_route(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.publish("", "none", b"1", mandatory=True, headers={"CC": ["q"]})
    peer.wait_ready("q", 1)
    return [peer.rest(), peer.get("q")]


def cc_of_a_wrong_type(broker: Broker) -> Record:
    peer = broker.peer()
    values: tuple[Any, ...] = ("q", 1, True, None, {"a": 1}, b"q", 1.5, Typed("T", 1))
    outcome = [_refused(peer, "", "q", headers={"CC": value}) for value in values]
    return [outcome, _refused(peer, "", "q", headers={"BCC": "q"})]


def cc_with_other_elements(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q1")
    peer.queue("q2")
    outcome = _refused(peer, "", "q1", headers={"CC": [1, "q2", None, ["q1"]]})
    empty = _refused(peer, "", "q1", headers={"CC": []})
    return [outcome, empty, peer.drain("q1"), peer.drain("q2")]


def cc_is_case_sensitive(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q1")
    peer.queue("q2")
    peer.fill("q1", b"1", headers={"cc": ["q2"], "Bcc": ["q2"]})
    return [peer.get("q1"), peer.get("q2")]


def bodies_of_many_frames(broker: Broker) -> Record:
    peer = broker.peer(frame_max=4096)
    peer.queue("q")
    method = method_frame(1, spec.Basic.Publish(routing_key="q"))
    body = bytes(range(256)) * 50
    peer.send(method + content_frames(1, body, {"app_id": "a"}, 4096))
    peer.sync("q")
    return [peer.get("q"), broker.peer().get("q")]


def bodies_for_a_consumer_with_smaller_frames(broker: Broker) -> Record:
    publisher = broker.peer()
    publisher.queue("q")
    publisher.fill("q", b"x" * 100_000)
    consumer = broker.peer(frame_max=4096)
    consumer.consume("q", "t", no_ack=True)
    return [len(each["body"]) for each in consumer.take(1)]


def the_exchange_and_key_of_the_publish_are_delivered(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("x", "fanout")
    peer.exchange("y", "fanout")
    peer.bind_exchange("y", "x")
    peer.queue("q")
    peer.bind("q", "y")
    peer.publish("x", "some.key", b"1")
    peer.wait_ready("q", 1)
    return peer.get("q")


def an_error_discards_what_follows(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    for key, exchange in (("q", ""), ("q", "none"), ("q", "")):
        peer.publish(exchange, key, b"1")
    return [peer.sync(), peer.wait_ready("q", 1)]


def order_of_the_checks(broker: Broker) -> Record:
    """A wrong user id is named before a wrong expiration, and that before a wrong CC header."""
    peer = broker.peer()
    wrong = {"user_id": "bob", "expiration": "x", "headers": {"CC": 1}}
    outcome = []
    while wrong:
        outcome.append(_refused(peer, "", "q", **wrong))
        wrong.pop(next(iter(wrong)))
    return [outcome, _refused(peer, "none", "q", user_id="bob")]
