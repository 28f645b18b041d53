"""Dead-lettering: reasons, routes, headers, cycles."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from tests.differential.broker import Broker
from tests.differential.peer import Peer, wait_for
from tests.support.field_table import Typed

Record = Any
TO_DEAD = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}


def _reject(peer: Peer, queue: str) -> None:
    got = peer.get(queue, no_ack=False)
    peer.reject(got["delivery_tag"], requeue=False)


def _dead(peer: Peer, queue: str = "dead") -> Record:
    peer.wait_ready(queue, 1)
    return peer.get(queue)


def rejected(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", TO_DEAD)
    peer.fill("q", b"1")
    _reject(peer, "q")
    return _dead(peer)


def rejected_with_all_properties(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", TO_DEAD)
    more = {"delivery_mode": 2, "priority": 3, "timestamp": 1600000000, "user_id": "guest"}
    peer.fill("q", b"1", message_id="m", expiration="60000", headers={"z": 1, "a": "x"}, **more)
    _reject(peer, "q")
    return _dead(peer)


def expired(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", {"x-message-ttl": 20, **TO_DEAD})
    peer.fill("q", b"1", headers={"h": 1})
    return _dead(peer)


def expired_by_its_own_time(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", TO_DEAD)
    peer.fill("q", b"1", expiration="20")
    return _dead(peer)


def over_the_length(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", {"x-max-length": 0, **TO_DEAD})
    peer.fill("q", b"1")
    return _dead(peer)


def nacked_several_keep_their_order(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", TO_DEAD)
    peer.fill("q", b"1", b"2", b"3")
    for _ in range(3):
        peer.get("q", no_ack=False)
    peer.nack(3, multiple=True, requeue=False)
    peer.wait_ready("dead", 3)
    return peer.drain("dead")


def purged_and_deleted_messages_are_not_dead_lettered(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", TO_DEAD)
    peer.fill("q", b"1")
    peer.purge("q")
    peer.fill("q", b"2")
    peer.delete("q")
    time.sleep(0.1)
    return [peer.ready("dead")]


def with_the_original_key(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("dlx", "topic")
    peer.queue("dead")
    peer.bind("dead", "dlx", "q")
    peer.queue("q", {"x-dead-letter-exchange": "dlx"})
    peer.fill("q", b"1")
    _reject(peer, "q")
    return _dead(peer)


def with_a_key_of_its_own(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("dlx", "topic")
    peer.queue("dead")
    peer.bind("dead", "dlx", "other.key")
    peer.queue("q", {"x-dead-letter-exchange": "dlx", "x-dead-letter-routing-key": "other.key"})
    peer.bind("q", "amq.topic", "in.#")
    peer.publish("amq.topic", "in.a", b"1")
    peer.wait_ready("q", 1)
    _reject(peer, "q")
    return _dead(peer)


def with_cc_and_bcc(broker: Broker) -> Record:
    """Without a key of its own the dead letter goes by all original keys."""
    peer = broker.peer()
    for name in ("dead1", "dead2", "dead3"):
        peer.queue(name)
        peer.bind(name, "amq.direct", f"k{name[-1]}")
    peer.queue("q", {"x-dead-letter-exchange": "amq.direct"})
    peer.bind("q", "amq.topic", "k1")
    peer.publish("amq.topic", "k1", b"1", headers={"CC": ["k2"], "BCC": ["k3"]})
    peer.wait_ready("q", 1)
    _reject(peer, "q")
    peer.sync("q")
    return [_dead(peer, "dead1"), _dead(peer, "dead2"), peer.get("dead3")]


def brought_by_bcc_alone(broker: Broker) -> Record:
    """Twice: the keys stay with the dead letter, where nobody sees them."""
    peer = broker.peer()
    for name, key in (("dead1", "k1"), ("dead2", "k2"), ("dead3", "k3"), ("dead4", "k4")):
        peer.queue(name)
        peer.bind(name, "amq.direct", key)
    peer.queue("second", {"x-dead-letter-exchange": "amq.direct"})
    peer.bind("second", "amq.fanout")
    peer.queue("q", {"x-dead-letter-exchange": "amq.fanout"})
    peer.bind("q", "amq.topic", "k4")
    headers = {"CC": ["k2"], "BCC": ["k3", "k4"], "h": 1}
    peer.publish("amq.topic", "k1", b"1", headers=headers)
    peer.wait_ready("q", 1)
    _reject(peer, "q")
    peer.wait_ready("second", 1)
    _reject(peer, "second")
    return [_dead(peer, f"dead{number}") for number in range(1, 5)]


def with_cc_and_a_key_of_its_own(broker: Broker) -> Record:
    """Up to 3.12 the CC header is removed; 3.13 leaves it."""
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("other")
    peer.queue("q", TO_DEAD)
    peer.fill("q", b"1", headers={"CC": ["other"], "h": 1})
    peer.wait_ready("other", 1)
    _reject(peer, "q")
    return [_dead(peer), peer.ready("other")]


def with_cc_through_a_queue_with_a_key_of_its_own(broker: Broker) -> Record:
    """From there on the dead letter has that key alone."""
    peer = broker.peer()
    for name, key in (("dead1", "k1"), ("dead2", "k2")):
        peer.queue(name)
        peer.bind(name, "amq.direct", key)
    peer.queue("second", {"x-dead-letter-exchange": "amq.direct"})
    peer.bind("second", "amq.fanout")
    peer.queue("q", {"x-dead-letter-exchange": "amq.fanout", "x-dead-letter-routing-key": "k1"})
    peer.fill("q", b"1", headers={"CC": ["k2"]})
    _reject(peer, "q")
    peer.wait_ready("second", 1)
    _reject(peer, "second")
    return [_dead(peer, "dead1"), peer.ready("dead2")]


def to_a_missing_exchange(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-dead-letter-exchange": "nowhere"})
    peer.fill("q", b"1")
    _reject(peer, "q")
    return [peer.sync("q"), peer.ready("q")]


def to_an_exchange_made_later(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-dead-letter-exchange": "later"})
    peer.fill("q", b"1", b"2")
    _reject(peer, "q")
    peer.exchange("later", "fanout")
    peer.queue("dead")
    peer.bind("dead", "later")
    _reject(peer, "q")
    return _dead(peer)


def to_an_internal_exchange(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("dlx", "fanout", internal=True)
    peer.queue("dead")
    peer.bind("dead", "dlx")
    peer.queue("q", {"x-dead-letter-exchange": "dlx"})
    peer.fill("q", b"1")
    _reject(peer, "q")
    return _dead(peer)


def through_an_alternate_exchange(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("dlx", "direct", {"alternate-exchange": "amq.fanout"})
    peer.queue("dead")
    peer.bind("dead", "amq.fanout")
    peer.queue("q", {"x-dead-letter-exchange": "dlx"})
    peer.fill("q", b"1")
    _reject(peer, "q")
    return _dead(peer)


def to_a_full_queue_is_dropped(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead", {"x-max-length": 1, "x-overflow": "reject-publish"})
    peer.queue("q", TO_DEAD)
    peer.fill("q", b"1", b"2")
    _reject(peer, "q")
    _reject(peer, "q")
    peer.sync("q")  # has rejected both
    peer.sync("dead")  # has been offered both
    return peer.drain("dead")


def twice_by_the_same_queue(broker: Broker) -> Record:
    """The count rises, the entry keeps its time and comes to the front."""
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", TO_DEAD)
    peer.fill("q", b"1")
    _reject(peer, "q")
    first = _dead(peer)
    headers = {"x-death": [_again(first["properties"]["headers"]["x-death"][0])]}
    peer.fill("q", b"1", headers=headers)
    _reject(peer, "q")
    return [first, _dead(peer)]


def _again(entry: dict[str, Any]) -> dict[str, Any]:
    """The entry as a client would send it back."""
    sent: dict[str, Any] = {}
    for key, value in entry.items():
        if isinstance(value, list):
            sent[key] = [each.partition(":")[2] for each in value]
            continue
        tag, _, text = value.partition(":")
        sent[key] = Typed(tag, int(text)) if tag in "lTI" else text
    return sent


def through_two_queues(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("second", {"x-message-ttl": 20, **TO_DEAD})
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "second"}
    peer.queue("first", arguments)
    peer.fill("first", b"1", headers={"mine": "x"}, expiration="60000")
    _reject(peer, "first")
    return _dead(peer)


def by_two_reasons_of_one_queue(broker: Broker) -> Record:
    """A retry loop: rejected to a waiting queue, expired back, rejected again."""
    peer = broker.peer()
    back = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "work"}
    peer.queue("wait", {"x-message-ttl": 20, **back})
    there = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "wait"}
    peer.queue("work", there)
    peer.fill("work", b"1")
    for _ in range(3):
        peer.wait_ready("work", 1)
        _reject(peer, "work")
    peer.wait_ready("work", 1)
    return peer.get("work")


def a_cycle_without_a_reject_ends(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-message-ttl": 20, "x-dead-letter-exchange": ""})
    peer.fill("q", b"1")
    return [peer.wait_ready("q", 0), peer.wait_ready("q", 1, 0.3)]


def a_cycle_of_two_queues_without_a_reject_ends(broker: Broker) -> Record:
    peer = broker.peer()
    for name, other in (("q1", "q2"), ("q2", "q1")):
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": other}
        peer.queue(name, {"x-message-ttl": 20, **arguments})
    peer.fill("q1", b"1")

    def found() -> list[Any]:
        return [peer.ready("q1"), peer.ready("q2")]

    # Between the two it is in neither for a moment: empty is what stays so.
    wait_for(found, lambda counts: counts == [0, 0] and not any(_watch(found)))
    return found()


def _watch(found: Callable[[], list[Any]]) -> list[Any]:
    """Return the counts that are not zero in the next while, first of all."""
    return wait_for(found, any, 0.4)


def a_cycle_with_a_reject_goes_on(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-dead-letter-exchange": ""})
    peer.fill("q", b"1")
    for _ in range(2):
        _reject(peer, "q")
        peer.wait_ready("q", 1)
    return peer.get("q")


def a_death_header_that_is_no_array(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", TO_DEAD)
    peer.fill("q", b"1", headers={"x-death": "nonsense", "h": 1})
    _reject(peer, "q")
    return _dead(peer)


def a_death_header_with_entries_of_others(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", TO_DEAD)
    entry = {
        "count": Typed("l", 7),
        "reason": "rejected",
        "queue": "elsewhere",
        "time": Typed("T", 1600000000),
        "exchange": "x",
        "routing-keys": ["a", "b"],
    }
    peer.fill("q", b"1", headers={"x-death": [entry]})
    _reject(peer, "q")
    return _dead(peer)


def a_death_header_of_an_old_version(broker: Broker) -> Record:
    """Up to 3.5 every death was an entry of its own, without a count."""
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", TO_DEAD)
    old = {
        "reason": "rejected",
        "queue": "q",
        "time": Typed("T", 1400000000),
        "exchange": "x",
        "routing-keys": ["a"],
    }
    peer.fill("q", b"1", headers={"x-death": [old] * 22 + [{**old, "queue": "elsewhere"}]})
    _reject(peer, "q")
    return _dead(peer)


def by_policy(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q")
    definition = {"dead-letter-exchange": "", "dead-letter-routing-key": "dead"}
    reply = broker.policy("dlx", "^q$", definition, apply_to="queues")
    peer.fill("q", b"1")
    _reject(peer, "q")
    return [reply, _dead(peer)]


def the_argument_wins_over_the_policy(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("other")
    peer.queue("q", TO_DEAD)
    definition = {"dead-letter-exchange": "", "dead-letter-routing-key": "other"}
    broker.policy("dlx", "^q$", definition)
    peer.fill("q", b"1")
    _reject(peer, "q")
    return [_dead(peer), peer.ready("other")]


def a_key_by_policy_without_an_exchange(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q")
    reply = broker.policy("dlx", "^q$", {"dead-letter-routing-key": "dead"})
    peer.fill("q", b"1")
    _reject(peer, "q")
    peer.sync("q")
    return [reply, peer.ready("dead"), peer.ready("q")]


def confirmed_before_the_dead_letter_arrives(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead", durable=True)
    peer.queue("q", {"x-max-length": 1, **TO_DEAD}, durable=True)
    peer.confirm()
    for body in (b"1", b"2", b"3"):
        peer.publish("", "q", body, delivery_mode=2)
    confirms = peer.confirms(3)
    return [confirms, peer.wait_ready("dead", 2), peer.drain("dead"), peer.drain("q")]
