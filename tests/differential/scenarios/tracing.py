"""The firehose: what reaches amq.rabbitmq.trace, under which keys, with which headers and bodies.

Each scenario has a virtual host of its own, traced by command as an operator does it. One at a time: RabbitMQ reads its
list of traced virtual hosts and writes it back, and two who do so at once lose one of them.
"""

from __future__ import annotations

from typing import Any

from tests.differential.broker import Broker
from tests.differential.peer import Peer

Record = Any
BESIDE_OTHERS = 1


def _traced(broker: Broker, name: str, key: str = "#") -> tuple[Peer, Peer]:
    """A client in a traced virtual host, and one that listens to its firehose."""
    vhost = broker.vhost(f"traced-{name}")
    broker.permit("guest", ".*", ".*", ".*", vhost)
    peer, listener = broker.peer(vhost=vhost), broker.peer(vhost=vhost)
    listener.queue("firehose")
    listener.bind("firehose", "amq.rabbitmq.trace", key)
    broker.http("PUT", f"vhosts/{vhost}", {"tracing": True})
    return peer, listener


def _copies(listener: Peer, count: int) -> Record:
    """So many copies, in the order of their keys: those of one key come in order, of others at any time."""
    listener.wait_ready("firehose", count)
    found = []
    while (event := listener.get("firehose"))["method"] == "basic.getok":
        del event["delivery_tag"], event["message_count"]
        found.append(event)
    return sorted(found, key=lambda event: event["routing_key"])


def switched_by_commands(broker: Broker) -> Record:
    vhost = broker.vhost("traced-switch")

    def tracing() -> Record:
        return broker.fields(f"vhosts/{vhost}", "tracing")

    return [
        tracing(),
        broker.ctl("trace_on", "-p", vhost),
        tracing(),
        broker.ctl("trace_on", "-p", vhost),
        broker.ctl("trace_off", "-p", vhost),
        tracing(),
        broker.ctl("trace_off", "-p", vhost),
        broker.ctl("trace_on", "-p", "nowhere"),
        broker.ctl("trace_off", "-p", "nowhere"),
    ]


def switched_over_http(broker: Broker) -> Record:
    vhost = broker.vhost("traced-http")
    outcome = []
    for value in (True, False, "yes"):
        outcome.append(broker.http("PUT", f"vhosts/{vhost}", {"tracing": value})[0])
        outcome.append(broker.fields(f"vhosts/{vhost}", "tracing"))
    return outcome


def a_publish_and_its_delivery(broker: Broker) -> Record:
    peer, listener = _traced(broker, "both")
    peer.queue("q")
    peer.consume("q", "t", no_ack=True)
    peer.publish("", "q", b"body")
    return [peer.bodies(1), _copies(listener, 2)]


def a_publish_that_is_got(broker: Broker) -> Record:
    peer, listener = _traced(broker, "got")
    peer.queue("q")
    peer.fill("q", b"1", delivery_mode=2)
    peer.get("q", no_ack=False)
    return _copies(listener, 2)


def a_message_that_is_delivered_again(broker: Broker) -> Record:
    peer, listener = _traced(broker, "again", "deliver.#")
    peer.queue("q")
    peer.fill("q", b"1")
    peer.get("q", no_ack=False)
    peer.nack(1)
    peer.get("q")
    return _copies(listener, 2)


def every_property_is_in_the_copy(broker: Broker) -> Record:
    peer, listener = _traced(broker, "properties")
    peer.queue("q")
    peer.fill(
        "q",
        b"1",
        content_type="text/plain",
        content_encoding="utf-8",
        headers={"a": 1, "b": "x", "c": [1, "y", True], "d": {"e": 1.5}},
        delivery_mode=2,
        priority=7,
        correlation_id="c",
        reply_to="r",
        expiration="60000",
        message_id="m",
        timestamp=1_600_000_000,
        type="t",
        user_id="guest",
        app_id="a",
    )
    peer.get("q")
    return _copies(listener, 2)


def through_exchanges_of_all_kinds(broker: Broker) -> Record:
    peer, listener = _traced(broker, "exchanges", "publish.#")
    peer.queue("q")
    peer.queue("q2")
    for exchange in ("amq.direct", "amq.topic", "amq.fanout", "amq.headers"):
        peer.bind("q", exchange, "k")
    peer.bind("q2", "amq.fanout", "")
    for exchange in ("amq.direct", "amq.topic", "amq.fanout", "amq.headers"):
        peer.publish(exchange, "k", exchange.encode())
    found = _copies(listener, 4)
    for each in found:
        each["properties"]["headers"]["routed_queues"].sort()
    return found


def without_a_route(broker: Broker) -> Record:
    peer, listener = _traced(broker, "unrouted")
    peer.publish("amq.direct", "nowhere", b"1")
    peer.publish("amq.direct", "nowhere", b"2", mandatory=True)
    peer.publish("", "nowhere", b"3")
    return [peer.take(1), _copies(listener, 3)]


def with_cc_and_bcc(broker: Broker) -> Record:
    peer, listener = _traced(broker, "bcc")
    for queue in ("a", "b", "c"):
        peer.queue(queue)
    peer.publish("", "a", b"1", headers={"CC": ["b"], "BCC": ["c"], "other": 1})
    peer.wait_ready("c", 1)
    published = _copies(listener, 1)
    for each in published:
        each["properties"]["headers"]["routed_queues"].sort()
    return [published, [peer.get(queue)["body"] for queue in ("a", "b", "c")]]


def a_delivery_of_a_message_with_bcc(broker: Broker) -> Record:
    peer, listener = _traced(broker, "blind", "deliver.#")
    peer.queue("a")
    peer.queue("b")
    peer.publish("", "a", b"1", headers={"CC": ["b"], "BCC": ["c", "a"]})
    peer.wait_ready("b", 1)
    peer.get("b")
    return _copies(listener, 1)


def a_delivery_of_a_message_with_cc(broker: Broker) -> Record:
    peer, listener = _traced(broker, "cc", "deliver.#")
    peer.queue("a")
    peer.queue("b")
    peer.publish("", "a", b"1", headers={"CC": ["b"]})
    peer.wait_ready("b", 1)
    peer.get("b")
    return _copies(listener, 1)


def a_dead_letter(broker: Broker) -> Record:
    """What the broker publishes by itself is no client's publish; its delivery is one."""
    peer, listener = _traced(broker, "dead")
    peer.queue("dead")
    peer.queue("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    peer.fill("q", b"1")
    peer.get("q", no_ack=False)
    peer.reject(1, requeue=False)
    peer.wait_ready("dead", 1)
    peer.get("dead")
    found = _copies(listener, 3)
    for each in found:
        each["properties"]["headers"].get("properties", {}).pop("headers", None)
    return found


def a_transaction(broker: Broker) -> Record:
    peer, listener = _traced(broker, "tx", "publish.#")
    peer.queue("q")
    peer.tx("select")
    peer.publish("", "q", b"1")
    peer.sync()
    before = listener.wait_ready("firehose", 1)
    peer.tx("rollback")
    return [before, _copies(listener, before)]


def bodies_are_whole(broker: Broker) -> Record:
    peer, listener = _traced(broker, "large", "publish.#")
    peer.publish("amq.direct", "k", bytes(range(256)) * 1000)
    peer.publish("amq.direct", "k", b"")
    listener.wait_ready("firehose", 2)
    return [(len(each["body"]), each["body"][:300]) for each in _copies(listener, 2)]


def keys_choose_what_is_heard(broker: Broker) -> Record:
    peer, listener = _traced(broker, "keys", "deliver.q.*")
    peer.queue("q.1")
    peer.queue("r")
    for queue in ("q.1", "r"):
        peer.fill(queue, b"1")
        peer.get(queue)
    return _copies(listener, 1)


def what_goes_through_the_firehose_is_not_traced(broker: Broker) -> Record:
    peer, listener = _traced(broker, "itself")
    peer.publish("amq.direct", "k", b"1")
    first = _copies(listener, 1)
    return [first, listener.rest(), _copies(listener, 0)]


def it_ends_when_it_is_switched_off(broker: Broker) -> Record:
    vhost = broker.own("traced-off")
    peer, listener = _traced(broker, "off")
    peer.publish("amq.direct", "k", b"1")
    before = _copies(listener, 1)
    off = broker.http("PUT", f"vhosts/{vhost}", {"tracing": False})[0]
    later = broker.peer(vhost=vhost)
    later.publish("amq.direct", "k", b"2")
    later.sync()
    return [before, off, listener.rest(), listener.ready("firehose")]


def nobody_may_publish_to_it(broker: Broker) -> Record:
    peer, _ = _traced(broker, "publish")
    peer.publish("amq.rabbitmq.trace", "k", b"1")
    return peer.sync()


def refused_publishes_leave_no_copy(broker: Broker) -> Record:
    peer, listener = _traced(broker, "refused", "publish.#")
    peer.queue("q", {"x-max-length": 0, "x-overflow": "reject-publish"})
    peer.confirm()
    peer.publish("", "q", b"1")
    nacked = peer.take(1)
    peer.publish("none", "k", b"2")
    return [nacked, peer.sync(), _copies(listener, 1)]
