"""Length limits with every overflow, priorities."""

from __future__ import annotations

import time
from typing import Any

from tests.differential.broker import Broker

Record = Any
BODIES = tuple(b"%d" % each for each in range(1, 6))
DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


def drop_head_by_count(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-length": 3})
    peer.fill("q", *BODIES)
    return [peer.ready("q"), peer.drain("q")]


def drop_head_by_bytes(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-length-bytes": 10})
    peer.fill("q", b"aaaa", b"bbbb", b"cc", b"d", b"")
    return peer.drain("q")


def drop_head_by_both(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-length-bytes": 10, "x-max-length": 2})
    peer.fill("q", b"aaaa", b"bbbb", b"cc", b"ddddddddd")
    return peer.drain("q")


def a_message_larger_than_the_limit_evicts_all(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-length-bytes": 5})
    peer.fill("q", b"a", b"b", b"123456")
    return peer.drain("q")


def headers_do_not_count_as_bytes(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-length-bytes": 5})
    peer.fill("q", b"1", b"2", headers={"long": "x" * 100})
    return peer.drain("q")


def drop_head_counts_ready_only(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-length": 2})
    peer.fill("q", b"1", b"2")
    peer.get("q", no_ack=False)
    peer.fill("q", b"3")
    return [peer.ready("q"), peer.drain("q")]


def drop_head_at_a_requeue(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-length": 2})
    peer.fill("q", b"1", b"2")
    peer.get("q", no_ack=False)
    peer.fill("q", b"3")
    peer.nack(1)
    peer.sync("q")
    return peer.drain("q")


def length_zero_with_and_without_a_consumer(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-length": 0})
    peer.fill("q", b"1")
    before = peer.ready("q")
    peer.consume("q", "t", no_ack=True)
    peer.fill("q", b"2")
    return [before, peer.bodies(1), peer.rest()]


def drop_head_dead_letters(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", {"x-max-length": 1, **DEAD})
    peer.fill("q", b"1", b"2", b"3")
    peer.wait_ready("dead", 2)
    return [peer.get("dead"), peer.get("dead"), peer.drain("q")]


def reject_publish_by_count(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-length": 2, "x-overflow": "reject-publish"})
    peer.confirm()
    for body in BODIES:
        peer.publish("", "q", body)
    return [peer.confirms(5), peer.drain("q")]


def reject_publish_by_bytes(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-length-bytes": 4, "x-overflow": "reject-publish"})
    peer.confirm()
    for body in (b"12", b"345", b"67", b"8", b""):
        peer.publish("", "q", body)
    return [peer.confirms(5), peer.drain("q")]


def reject_publish_of_length_zero_refuses_with_a_consumer(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-length": 0, "x-overflow": "reject-publish"})
    peer.consume("q", "t", no_ack=True)
    peer.confirm()
    peer.publish("", "q", b"1")
    return peer.take(1) + peer.rest()


def reject_publish_without_confirms_is_silent(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-length": 1, "x-overflow": "reject-publish"})
    peer.publish("", "q", b"1", mandatory=True)
    peer.publish("", "q", b"2", mandatory=True)
    peer.sync("q")
    return [peer.rest(), peer.drain("q")]


def reject_publish_takes_requeues(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-length": 1, "x-overflow": "reject-publish"})
    peer.fill("q", b"1")
    peer.get("q", no_ack=False)
    peer.fill("q", b"2")
    peer.nack(1)
    return [peer.wait_ready("q", 2), peer.drain("q")]


def reject_publish_with_room_after_a_get(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-length": 1, "x-overflow": "reject-publish"})
    peer.confirm()
    outcome = []
    for body in (b"1", b"2"):
        peer.publish("", "q", body)
        outcome += [each["method"] for each in peer.take(1)]
    peer.get("q", no_ack=False)
    peer.publish("", "q", b"3")
    return [outcome, [each["method"] for each in peer.take(1)], peer.ready("q")]


def reject_publish_does_not_dead_letter(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", {"x-max-length": 1, "x-overflow": "reject-publish", **DEAD})
    peer.fill("q", b"1", b"2")
    time.sleep(0.1)
    return [peer.ready("dead"), peer.drain("q")]


def reject_publish_dlx_dead_letters(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", {"x-max-length": 1, "x-overflow": "reject-publish-dlx", **DEAD})
    peer.confirm()
    peer.publish("", "q", b"1")
    peer.publish("", "q", b"2", headers={"h": 1})
    confirms = peer.confirms(2)
    peer.wait_ready("dead", 1)
    return [confirms, peer.get("dead"), peer.drain("q")]


def priorities_order_what_is_ready(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-priority": 5})
    for number, priority in enumerate((0, 3, None, 5, 9, 3, 1)):
        peer.publish("", "q", b"%d/%s" % (number, str(priority).encode()), priority=priority)
    peer.sync("q")
    found = [peer.get("q") for _ in range(7)]
    return [[each["body"], each["properties"].get("priority")] for each in found]


def priorities_without_the_argument_do_nothing(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    for priority in (0, 5, 1):
        peer.publish("", "q", b"%d" % priority, priority=priority)
    peer.sync("q")
    return peer.drain("q")


def priorities_and_requeues(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-priority": 5})
    for priority in (1, 5, 1, 5):
        peer.publish("", "q", b"%d" % priority, priority=priority, message_id=str(priority))
    peer.sync("q")
    for _ in range(4):
        peer.get("q", no_ack=False)
    peer.nack(3)
    peer.nack(2)
    peer.nack(4)
    peer.wait_ready("q", 3)
    return [[each["body"], each["redelivered"]] for each in (peer.get("q") for _ in range(3))]


def priorities_and_drop_head(broker: Broker) -> Record:
    """RabbitMQ drops from the highest priority first."""
    peer = broker.peer()
    peer.queue("q", {"x-max-priority": 5, "x-max-length": 2})
    for body, priority in ((b"high", 5), (b"low1", 1), (b"low2", 1)):
        peer.publish("", "q", body, priority=priority)
    peer.sync("q")
    return peer.drain("q")


def priorities_and_time_to_live(broker: Broker) -> Record:
    """What expired below a live message of a higher level waits."""
    peer = broker.peer()
    peer.queue("q", {"x-max-priority": 5})
    peer.publish("", "q", b"low", priority=1, expiration="1500")
    peer.publish("", "q", b"high", priority=5)
    peer.sync("q")
    time.sleep(1.8)  # it must stay although it is due: there is nothing to wait for
    return [peer.ready("q"), peer.drain("q")]


def priority_of_zero_levels(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-priority": 0})
    for priority in (0, 1, 2):
        peer.publish("", "q", b"%d" % priority, priority=priority)
    peer.sync("q")
    return peer.drain("q")


def priorities_and_purge(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-priority": 5})
    for priority in (0, 1, 2):
        peer.publish("", "q", b"1", priority=priority)
    peer.sync("q")
    return [peer.ready("q"), peer.purge("q"), peer.get("q")]
