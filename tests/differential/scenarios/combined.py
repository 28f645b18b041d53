"""Features that meet in one queue: expiry, dead letters, priorities, limits, lazy mode, one active consumer."""

from __future__ import annotations

from typing import Any

from tests.differential.broker import Broker
from tests.differential.peer import Peer

Record = Any
LATER_MS = 1500  # so long that what comes before is done on a busy machine too
TO_DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


def _deaths(peer: Peer, count: int, queue: str = "dead") -> Record:
    """Body, priority and deaths of what has arrived."""
    peer.wait_ready(queue, count)
    found = []
    while (event := peer.get(queue))["method"] == "basic.getok":
        properties = event["properties"]
        kept = ("reason", "queue", "count", "original-expiration")
        found.append(
            [
                event["body"],
                properties.get("priority"),
                properties.get("expiration"),
                [
                    {key: each.get(key) for key in kept}
                    for each in _tables(properties.get("headers", {}).get("x-death"))
                ],
            ]
        )
    return found


def _tables(deaths: Any) -> list[dict[str, Any]]:
    return [each for each in deaths or [] if isinstance(each, dict)]


def _fill_levels(peer: Peer, queue: str, *levels: int, **properties: Any) -> None:
    for number, level in enumerate(levels):
        peer.publish("", queue, f"{number}p{level}".encode(), priority=level, **properties)
    peer.sync(queue)


def priorities_expire_from_the_highest(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", {"x-max-priority": 3, "x-message-ttl": LATER_MS, **TO_DEAD})
    _fill_levels(peer, "q", 0, 3, 1, 2, 3)
    return [_deaths(peer, 5), peer.ready("q")]


def a_live_high_priority_keeps_expired_ones_below(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", {"x-max-priority": 3, **TO_DEAD})
    _fill_levels(peer, "q", 3)
    _fill_levels(peer, "q", 1, 0, expiration="50")
    stuck = [peer.wait_ready("dead", 1, 0.4), peer.ready("q")]
    high = peer.get("q")["body"]
    return [stuck, high, _deaths(peer, 2), peer.ready("q")]


def priorities_over_the_length_are_dead_lettered(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", {"x-max-priority": 5, "x-max-length": 2, **TO_DEAD})
    _fill_levels(peer, "q", 1, 5, 0, 3, 0)
    return [_deaths(peer, 3), peer.drain("q")]


def priorities_over_the_bytes(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", {"x-max-priority": 5, "x-max-length-bytes": 7, **TO_DEAD})
    _fill_levels(peer, "q", 1, 5, 0, 3)
    return [_deaths(peer, 2), peer.drain("q")]


def priorities_and_refused_publishes(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    arguments = {"x-max-priority": 5, "x-max-length": 2, "x-overflow": "reject-publish-dlx"}
    peer.queue("q", arguments | TO_DEAD)
    peer.confirm()
    _fill_levels(peer, "q", 1, 5, 9, 0)
    return [peer.confirms(4), _deaths(peer, 2), peer.drain("q")]


def priorities_of_dead_letters_order_their_new_queue(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead", {"x-max-priority": 9})
    peer.queue("q", TO_DEAD)
    _fill_levels(peer, "q", 1, 9, 5)
    for _ in range(3):
        peer.reject(peer.get("q", no_ack=False)["delivery_tag"], requeue=False)
    peer.wait_ready("dead", 3)
    return peer.drain("dead")


def rejected_back_into_their_level(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-priority": 3})
    _fill_levels(peer, "q", 1, 3, 1, 3)
    got = [peer.get("q", no_ack=False)["body"] for _ in range(3)]
    peer.nack(3, multiple=True)
    peer.sync("q")
    return [got, peer.drain("q")]


def prefetched_priorities_are_not_reordered(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-priority": 3})
    peer.qos(2)
    peer.consume("q", "t")
    for level in range(4):  # each by itself: what comes together is ordered before it is delivered
        _fill_levels(peer, "q", level)
    first = peer.bodies(2)
    peer.ack(2, multiple=True)
    return [first, peer.bodies(2)]


def a_retry_by_expiry(broker: Broker) -> Record:
    """Rejected to a waiting queue, back by expiry: twice, with both deaths counted."""
    peer = broker.peer()
    peer.queue(
        "wait",
        {"x-message-ttl": 50, "x-dead-letter-exchange": "", "x-dead-letter-routing-key": "q"},
    )
    peer.queue("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "wait"})
    peer.fill("q", b"1", priority=4, headers={"mine": 1})
    for _ in range(2):
        peer.wait_ready("q", 1)
        peer.reject(peer.get("q", no_ack=False)["delivery_tag"], requeue=False)
    return _deaths(peer, 1, "q")


def a_retry_with_a_time_of_its_own(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", TO_DEAD | {"x-message-ttl": 10_000})
    peer.queue("dead", {"x-message-ttl": 10_000})
    peer.fill("q", b"1", expiration="40")
    return _deaths(peer, 1)


def limits_and_expiry_give_two_reasons(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", {"x-max-length": 2, "x-message-ttl": LATER_MS, **TO_DEAD})
    peer.fill("q", b"1", b"2", b"3")
    return _deaths(peer, 3)


def refused_dead_letters_of_an_expired_message(broker: Broker) -> Record:
    """The queue that dead letters go to is full and refuses: they are lost."""
    peer = broker.peer()
    peer.queue("dead", {"x-max-length": 1, "x-overflow": "reject-publish"})
    peer.queue("q", {"x-message-ttl": 50, **TO_DEAD})
    peer.fill("q", b"1", b"2")
    peer.wait_ready("q", 0)
    return _deaths(peer, 1)


def dead_letters_to_several_queues(broker: Broker) -> Record:
    peer = broker.peer()
    for queue in ("a", "b"):
        peer.queue(queue)
        peer.bind(queue, "amq.topic", f"dead.{queue}.#")
        peer.bind(queue, "amq.topic", "dead.all")
    peer.queue("q", {"x-message-ttl": 0, "x-dead-letter-exchange": "amq.topic"})
    peer.bind("q", "amq.direct", "dead.all")
    peer.bind("q", "amq.direct", "dead.a.x")
    peer.publish("amq.direct", "dead.all", b"1")
    peer.publish("amq.direct", "dead.a.x", b"2")
    return [_deaths(peer, 2, "a"), _deaths(peer, 1, "b")]


def dead_letters_by_headers(broker: Broker) -> Record:
    """The headers exchange sees the headers that the death has added."""
    peer = broker.peer()
    peer.queue("died")
    peer.queue("plain")
    peer.bind(
        "died", "amq.headers", "", {"x-match": "all-with-x", "x-first-death-reason": "rejected"}
    )
    peer.bind("plain", "amq.headers", "", {"mine": 1})
    peer.queue("q", {"x-dead-letter-exchange": "amq.headers"})
    peer.fill("q", b"1", headers={"mine": 1})
    peer.reject(peer.get("q", no_ack=False)["delivery_tag"], requeue=False)
    return [_deaths(peer, 1, "died"), _deaths(peer, 1, "plain")]


def rejects_of_a_transaction(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", TO_DEAD)
    peer.fill("q", b"1", b"2")
    peer.tx("select")
    peer.reject(peer.get("q", no_ack=False)["delivery_tag"], requeue=False)
    before = peer.ready("dead")
    peer.tx("rollback")
    still = peer.ready("dead")
    peer.reject(1, requeue=False)
    peer.tx("commit")
    return [before, still, _deaths(peer, 1)]


def lazy_queues_do_all_of_it(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead", {"x-queue-mode": "lazy"})
    arguments = {"x-queue-mode": "lazy", "x-max-priority": 2, "x-max-length": 3}
    peer.queue("q", arguments | TO_DEAD, durable=True)
    _fill_levels(peer, "q", 0, 2, 1, 0, 2, delivery_mode=2)
    over = _deaths(peer, 2)
    tag = peer.get("q", no_ack=False)["delivery_tag"]
    peer.reject(tag, requeue=False)
    return [over, _deaths(peer, 1), peer.drain("q")]


def expired_while_one_consumer_is_full(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", {"x-single-active-consumer": True, "x-message-ttl": LATER_MS, **TO_DEAD})
    peer.qos(1)
    peer.consume("q", "a")
    peer.consume("q", "b")
    peer.fill("q", b"1", b"2", b"3")
    first = [each["consumer_tag"] for each in peer.take(1)]
    expired = _deaths(peer, 2)
    peer.nack(1)
    return [first, expired, _deaths(peer, 1), peer.rest()]


def expiry_at_zero_with_a_consumer_that_rejects(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", {"x-message-ttl": 0, **TO_DEAD})
    peer.consume("q", "t")
    peer.publish("", "q", b"1")
    taken = peer.bodies(1)
    peer.nack(1)
    again = peer.take(1, 0.3)
    return [taken, [each.get("redelivered") for each in again], peer.wait_ready("dead", 1)]


def an_expiring_queue_dead_letters_nothing(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", {"x-expires": LATER_MS, **TO_DEAD})
    peer.fill("q", b"1")
    before = peer.ready("q")
    return [before, broker.wait_gone("queues/%2F/q"), peer.passive("q"), peer.ready("dead")]


def an_auto_delete_queue_dead_letters_nothing(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", TO_DEAD, auto_delete=True)
    peer.qos(1)
    peer.consume("q", "t")
    peer.fill("q", b"1", b"2")
    taken = peer.bodies(1)
    peer.cancel("t")
    return [taken, peer.passive("q"), peer.ready("dead")]


def confirms_of_what_expires_at_once(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", {"x-message-ttl": 0, **TO_DEAD}, durable=True)
    peer.confirm()
    peer.publish("", "q", b"1", mandatory=True, delivery_mode=2)
    return [peer.confirms(1), _deaths(peer, 1), peer.rest()]


def the_lower_time_counts_with_priorities(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", {"x-max-priority": 2, "x-message-ttl": 60_000, **TO_DEAD})
    _fill_levels(peer, "q", 2, expiration="50")
    _fill_levels(peer, "q", 1)
    return [_deaths(peer, 1), peer.drain("q")]


def a_purge_of_priorities_dead_letters_nothing(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", {"x-max-priority": 2, **TO_DEAD})
    _fill_levels(peer, "q", 2, 1, 0)
    peer.get("q", no_ack=False)
    purged = peer.purge("q")
    peer.reject(1, requeue=False)
    return [purged, _deaths(peer, 1)]
