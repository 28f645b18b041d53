"""Time to live of messages."""

from __future__ import annotations

import time
from typing import Any

from tests.differential.broker import Broker

Record = Any
LATER_MS = 2000  # so long that what comes before is done on a busy machine too
DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


def by_queue(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-message-ttl": LATER_MS})
    peer.fill("q", b"1", b"2")
    before = peer.ready("q")
    return [before, peer.wait_ready("q", 0), peer.get("q")]


def by_message(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1", expiration="100")
    peer.fill("q", b"2")
    return [peer.wait_ready("q", 1), peer.get("q")]


def the_lower_of_both(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-message-ttl": 150})
    peer.fill("q", b"long", expiration="60000")
    peer.queue("r", {"x-message-ttl": 60000})
    peer.fill("r", b"short", expiration="150")
    return [peer.wait_ready("q", 0), peer.wait_ready("r", 0)]


def behind_a_live_head_it_waits(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1")
    peer.fill("q", b"2", expiration="50")
    time.sleep(0.25)
    return [peer.ready("q"), peer.get("q"), peer.get("q"), peer.ready("q")]


def unacked_messages_do_not_expire(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-message-ttl": LATER_MS})
    peer.fill("q", b"1")
    peer.get("q", no_ack=False)
    time.sleep(1.2 * LATER_MS / 1000)  # nothing shows that an unacked message is due
    peer.ack(1)
    return [peer.sync(), peer.ready("q")]


def requeued_messages_expire_if_due(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-message-ttl": LATER_MS})
    peer.fill("q", b"1")
    peer.get("q", no_ack=False)
    time.sleep(1.2 * LATER_MS / 1000)  # nothing shows that an unacked message is due
    peer.nack(1)
    peer.sync("q")
    return [peer.wait_ready("q", 0), peer.get("q")]


def zero_is_for_waiting_consumers_only(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-message-ttl": 0})
    peer.fill("q", b"1")
    before = peer.ready("q")
    peer.consume("q", "t", no_ack=True)
    peer.fill("q", b"2")
    return [before, peer.bodies(1), peer.rest()]


def zero_by_message(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.publish("", "q", b"1", expiration="0", mandatory=True)
    peer.sync("q")
    return [peer.rest(), peer.wait_ready("q", 0)]


def zero_behind_a_live_head_waits(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", {"x-max-length": 3, **DEAD})
    peer.fill("q", b"live")
    peer.fill("q", b"due", expiration="0")
    behind = [peer.ready("q"), peer.ready("dead")]
    peer.fill("q", b"also", b"more")
    over = [peer.wait_ready("dead", 2), peer.drain("q")]
    return [behind, over, peer.drain("dead")]


def zero_of_the_queue_behind_a_live_head(broker: Broker) -> Record:
    """Without a dead-letter exchange such a queue keeps none."""
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"live")
    broker.policy("p", "^q$", {"message-ttl": 0})
    peer.fill("q", b"due")
    without = peer.ready("q")
    broker.policy("p", "^q$", {"message-ttl": 0, "dead-letter-exchange": "none"})
    peer.fill("q", b"due")
    return [without, peer.ready("q"), peer.drain("q")]


def zero_dead_letters(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", {"x-message-ttl": 0, **DEAD})
    peer.fill("q", b"1")
    peer.wait_ready("dead", 1)
    return peer.get("dead")


def expired_messages_are_dead_lettered_in_order(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", {"x-message-ttl": 100, **DEAD})
    peer.fill("q", b"1", b"2", b"3")
    peer.wait_ready("dead", 3)
    return [peer.drain("dead"), peer.ready("q")]


def a_policy_is_for_later_messages(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"before")
    broker.policy("ttl", "^q$", {"message-ttl": 100})
    peer.fill("q", b"after")
    time.sleep(0.3)
    first = [peer.ready("q"), peer.drain("q")]
    broker.clear_policy("ttl")
    peer.fill("q", b"later")
    time.sleep(0.2)
    return [first, peer.drain("q")]


def the_lower_of_argument_and_policy(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q1", {"x-message-ttl": 100})
    peer.queue("q2", {"x-message-ttl": 60000})
    broker.policy("ttl", "^q[12]$", {"message-ttl": 300})
    peer.fill("q1", b"1")
    peer.fill("q2", b"1")
    return [peer.wait_ready("q1", 0), peer.wait_ready("q2", 0)]


def head_of_a_purged_queue(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-message-ttl": LATER_MS})
    peer.fill("q", b"1")
    purged = peer.purge("q")
    peer.fill("q", b"2")
    return [purged, peer.ready("q"), peer.wait_ready("q", 0)]
