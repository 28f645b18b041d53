"""What a clean restart of the broker keeps: durable names, persistent messages, their order and flags, policies."""

from __future__ import annotations

import time
from typing import Any

from tests.differential.broker import Broker
from tests.differential.peer import Peer

Record = Any
NODES_APART = True


def _restarted(broker: Broker, *peers: Peer) -> Peer:
    for peer in peers:
        peer.link.close()
    broker.restart()
    return broker.peer()


def _left(peer: Peer, queue: str) -> Record:
    """Body, redelivery and priority of what is in a queue."""
    found = []
    while (event := peer.get(queue))["method"] == "basic.getok":
        found.append([event["body"], event["redelivered"], event["properties"].get("priority")])
    return found if event["method"] == "basic.getempty" else event


def _fill(peer: Peer, queue: str, **properties: Any) -> None:
    for body, mode in ((b"1", 2), (b"transient", 1), (b"2", 2)):
        peer.publish("", queue, body, delivery_mode=mode, **properties)
    peer.sync(queue)


def queues_and_their_messages(broker: Broker) -> Record:
    peer = broker.peer()
    kinds: dict[str, dict[str, Any]] = {
        "durable": {"durable": True},
        "transient": {},
        "auto": {"durable": True, "auto_delete": True},
        "lazy": {"durable": True, "arguments": {"x-queue-mode": "lazy"}},
        "second": {"durable": True, "arguments": {"x-queue-version": 2}},
    }
    for name, options in kinds.items():
        peer.queue(name, **options)
        _fill(peer, name)
    peer.declare("exclusive", durable=True, exclusive=True)
    peer.get("durable", no_ack=False)
    later = _restarted(broker, peer)
    names = [*kinds, "exclusive"]
    return [[later.passive(name) for name in names], [_left(later, name) for name in names]]


def priorities_and_places(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-priority": 3}, durable=True)
    for number, level in enumerate((0, 3, 1, 3, 0)):
        peer.publish("", "q", b"%d" % number, delivery_mode=2, priority=level)
    peer.sync("q")
    peer.get("q", no_ack=False)
    peer.get("q", no_ack=False)
    peer.nack(2)
    return _left(_restarted(broker, peer), "q")


def flags_outlast_a_second_restart(broker: Broker) -> Record:
    """What was delivered before the first of two restarts is still redelivered after the second; nobody looks between."""
    peer = broker.peer()
    kinds: dict[str, dict[str, Any]] = {
        "first": {"x-queue-version": 1},
        "second": {"x-queue-version": 2},
        "lazy": {"x-queue-mode": "lazy"},
        "levels": {"x-max-priority": 2},
    }
    for name, arguments in kinds.items():
        peer.queue(name, arguments, durable=True)
        for number in range(4):
            peer.publish("", name, b"%d" % number, delivery_mode=2, priority=number % 2)
        peer.sync(name)
        peer.get(name, no_ack=False)
        peer.get(name, no_ack=False)
    between = _restarted(broker, peer)
    later = _restarted(broker, between)
    return [_left(later, name) for name in kinds]


def times_to_live_go_on(broker: Broker) -> Record:
    peer = broker.peer()
    dead = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.queue("dead", durable=True)
    peer.queue("q", dead, durable=True)
    peer.publish("", "q", b"short", delivery_mode=2, expiration="500")
    peer.publish("", "q", b"long", delivery_mode=2, expiration="600000")
    peer.sync("q")
    later = _restarted(broker, peer)
    time.sleep(0.5)
    return [later.wait_ready("dead", 1), later.get("dead")["body"], _left(later, "q")]


def exchanges_and_bindings(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("durable", durable=True)
    peer.queue("transient")
    arguments = {"alternate-exchange": "amq.fanout"}
    peer.exchange("x.durable", "topic", arguments, durable=True)
    peer.exchange("x.transient", "topic")
    peer.exchange("x.auto", "direct", durable=True, auto_delete=True)
    for exchange in ("x.durable", "x.transient", "x.auto"):
        peer.bind("durable", exchange, "k", {"n": 1})
        peer.bind("transient", exchange, "k")
    peer.bind_exchange("x.durable", "amq.topic", "a.#")
    peer.bind_exchange("x.transient", "amq.topic", "b.#")
    later = _restarted(broker, peer)
    rows = broker.http("GET", "bindings/%2F")[1]
    kept = ("source", "destination", "destination_type", "routing_key", "arguments")
    bindings = sorted([row[key] for key in kept] for row in rows if row["source"])
    exchanges = [
        later.exchange(name, passive=True) for name in ("x.durable", "x.transient", "x.auto")
    ]
    later.publish("x.durable", "k", b"1")
    return [exchanges, bindings, later.wait_ready("durable", 1), later.drain("durable")]


def policies_users_and_limits(broker: Broker) -> Record:
    broker.policy("p", "^q$", {"max-length": 1})
    broker.policy("o", "^q$", {"message-ttl": 60000}, operator=True)
    user = broker.user("kept", "monitoring", ("^a", "^b", "^c"))
    vhost = broker.vhost("kept", description="mine", tags="a,b")
    broker.http("PUT", f"vhost-limits/{vhost}/max-queues", {"value": 3})
    broker.http("PUT", f"user-limits/{user}/max-channels", {"value": 4})
    peer = broker.peer()
    peer.queue("q", durable=True)
    later = _restarted(broker, peer)
    later.fill("q", b"1", b"2")
    return [
        _left(later, "q"),
        broker.http("GET", "policies/%2F"),
        broker.http("GET", "operator-policies/%2F"),
        broker.http("GET", f"users/{user}/permissions"),
        broker.http("GET", "whoami", user=user, password=user)[0],
        broker.fields(f"vhosts/{vhost}", "description", "tags"),
        broker.http("GET", f"vhost-limits/{vhost}"),
        broker.http("GET", f"user-limits/{user}"),
    ]


def what_the_clients_are_told(broker: Broker) -> Record:
    """The reason of a stop is in the close."""
    peer, other = broker.peer(), broker.peer(capabilities={})
    peer.queue("q")
    peer.consume("q", "t")
    broker.restart()
    return [peer.take(1), other.take(1), broker.peer().sync()]
