"""Settings that change under messages and consumers: policies set, replaced and cleared while queues are in use."""

from __future__ import annotations

import time
from typing import Any

from tests.differential.broker import Broker
from tests.differential.peer import Peer

Record = Any
TO_DEAD = {"dead-letter-exchange": "", "dead-letter-routing-key": "dead"}


def _reject_one(peer: Peer) -> None:
    peer.reject(peer.get("q", no_ack=False)["delivery_tag"], requeue=False)
    peer.sync("q")


def a_dead_letter_exchange_that_comes_and_goes(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q")
    peer.fill("q", b"1", b"2", b"3")
    _reject_one(peer)
    broker.policy("p", "^q$", TO_DEAD)
    _reject_one(peer)
    with_policy = peer.wait_ready("dead", 1)
    broker.clear_policy("p")
    _reject_one(peer)
    return [with_policy, peer.drain("dead"), peer.ready("q")]


def a_dead_letter_key_that_changes(broker: Broker) -> Record:
    peer = broker.peer()
    for queue in ("dead", "other", "q"):
        peer.queue(queue)
    peer.fill("q", b"1", b"2")
    broker.policy("p", "^q$", TO_DEAD)
    _reject_one(peer)
    broker.policy("p", "^q$", TO_DEAD | {"dead-letter-routing-key": "other"})
    _reject_one(peer)
    return [peer.wait_ready("dead", 1), peer.wait_ready("other", 1), peer.drain("other")]


def an_alternate_exchange_that_comes_and_goes(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.bind("q", "amq.fanout")
    peer.exchange("x", "direct")
    outcome = []
    for change in (
        lambda: None,
        lambda: broker.policy("p", "^x$", {"alternate-exchange": "amq.fanout"}),
        lambda: broker.clear_policy("p"),
    ):
        change()
        peer.publish("x", "k", b"1", mandatory=True)
        peer.sync("q")
        outcome.append([[each["method"] for each in peer.rest()], peer.drain("q")])
    return outcome


def a_limit_in_bytes_that_comes(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q")
    peer.fill("q", b"1111", b"22", b"333")
    broker.policy("p", "^q$", TO_DEAD | {"max-length-bytes": 5})
    return [
        peer.wait_ready("q", 2),
        peer.wait_ready("dead", 1),
        peer.drain("q"),
        peer.drain("dead"),
    ]


def a_limit_that_comes_while_messages_are_out(broker: Broker) -> Record:
    """What is out does not count; given back, it is over the limit."""
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1", b"2", b"3")
    peer.get("q", no_ack=False)
    broker.policy("p", "^q$", {"max-length": 1})
    left = peer.wait_ready("q", 1)
    peer.nack(1)
    peer.sync("q")
    return [left, peer.wait_ready("q", 1), peer.drain("q")]


def an_overflow_that_changes(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    outcome: list[Any] = []
    for number, overflow in enumerate(("reject-publish", "drop-head", "reject-publish"), 2):
        broker.policy("p", "^q$", {"max-length": 1, "overflow": overflow})
        channel = peer.beside(number)
        channel.confirm()
        channel.publish("", "q", overflow.encode())
        channel.publish("", "q", b"2")
        outcome += [channel.confirms(2), peer.drain("q")]
    return outcome


def a_time_to_live_that_comes_and_goes(broker: Broker) -> Record:
    """It is for later messages; those that have an end keep it."""
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"before")
    broker.policy("p", "^q$", {"message-ttl": 2500})
    peer.get("q")
    peer.fill("q", b"during")
    broker.clear_policy("p")
    peer.fill("q", b"after")
    return [peer.ready("q"), peer.wait_ready("q", 1), peer.drain("q")]


def an_expiry_that_goes(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    broker.policy("p", "^q$", {"expires": 3000})
    broker.clear_policy("p")
    time.sleep(3.5)  # longer than the policy said: the queue must still be there
    return peer.passive("q")


def a_better_policy_that_is_cleared(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    broker.policy("low", "^q$", {"max-length": 2}, priority=1)
    broker.policy("high", "^q$", {"max-length": 4}, priority=2)
    peer.fill("q", b"1", b"2", b"3", b"4", b"5")
    high = peer.ready("q")
    broker.clear_policy("high")
    return [high, peer.wait_ready("q", 2), peer.drain("q")]


def a_pattern_that_no_longer_matches(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    broker.policy("p", "^q$", {"max-length": 1})
    peer.fill("q", b"1", b"2")
    broker.policy("p", "^other$", {"max-length": 1})
    peer.fill("q", b"3", b"4")
    return peer.drain("q")


def an_operator_that_steps_in(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-length": 4})
    peer.fill("q", b"1", b"2", b"3", b"4", b"5")
    before = peer.ready("q")
    broker.policy("o", "^q$", {"max-length": 2}, operator=True)
    bounded = peer.wait_ready("q", 2)
    broker.clear_policy("o", operator=True)
    peer.fill("q", b"6", b"7", b"8")
    return [before, bounded, peer.drain("q")]


def a_mode_that_changes_under_messages(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", durable=True)
    peer.fill("q", *(b"%d" % number for number in range(20)), delivery_mode=2)
    broker.policy("p", "^q$", {"queue-mode": "lazy"})
    got = [peer.get("q")["body"] for _ in range(3)]
    peer.fill("q", b"lazy")
    broker.policy("p", "^q$", {"queue-mode": "default"})
    peer.fill("q", b"default")
    return [got, peer.ready("q"), peer.drain("q")]


def a_version_that_changes_under_messages(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", durable=True)
    outcome = []
    for version in (2, 1, 2):
        broker.policy("p", "^q$", {"queue-version": version})
        peer.fill("q", *(b"%d.%d" % (version, number) for number in range(3)), delivery_mode=2)
        outcome.append(peer.get("q", no_ack=False)["body"])
    peer.nack(0, multiple=True)
    peer.sync("q")
    return [outcome, peer.drain("q")]


def a_policy_that_comes_while_a_consumer_waits(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.consume("q", "t", no_ack=True)
    broker.policy("p", "^q$", {"max-length": 1, "message-ttl": 1000})
    peer.fill("q", b"1", b"2")
    first = peer.bodies(2)
    broker.clear_policy("p")
    peer.fill("q", b"3")
    return [first, peer.bodies(1), peer.passive("q")]


def exchanges_and_queues_by_one_policy(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("both.q")
    peer.queue("rest")
    peer.exchange("both.x", "direct")
    peer.bind("rest", "amq.fanout")
    broker.policy("p", "^both", {"max-length": 1, "alternate-exchange": "amq.fanout"})
    peer.fill("both.q", b"1", b"2")
    peer.publish("both.x", "k", b"3")
    peer.sync("rest")
    return [peer.drain("both.q"), peer.drain("rest")]
