"""What an operator's limits do to a node: memory and disk alarms, acknowledgement timeouts, too large messages."""

from __future__ import annotations

import time
from collections import deque
from typing import Any

from pika import spec

from tests.differential.broker import Broker
from tests.differential.peer import DEADLINE_S, Peer, wait_for

Record = Any
NODES_APART = True
HELD_S = 3.0  # what has not come by then is held back


def _memory(broker: Broker, share: str) -> Record:
    """Set the memory watermark and wait until the alarm is what it makes it."""
    return _set(broker, "memory", "set_vm_memory_high_watermark", share, is_on=share == "0")


def _disk(broker: Broker, limit: str) -> Record:
    return _set(broker, "disk", "set_disk_free_limit", limit, is_on=limit != "1MB")


def _set(broker: Broker, resource: str, *command: str, is_on: bool) -> Record:
    if is_on:
        broker.also(_calm, broker)
    done = broker.ctl(*command)
    wait_for(
        lambda: broker.http("GET", "health/checks/alarms")[1],
        lambda found: (resource in str(found)) == is_on,
    )
    return done


def _calm(broker: Broker) -> None:
    """A scenario that failed half-way must leave no alarm to the next one."""
    if broker.http("GET", "health/checks/alarms")[0] != 200:
        broker.ctl("set_vm_memory_high_watermark", "0.4")
        broker.ctl("set_disk_free_limit", "1MB")


def _told(peer: Peer, count: int = 1, timeout_s: float = DEADLINE_S) -> Record:
    """What the server said on channel 0 of this connection."""
    inbox = peer.link.inboxes.setdefault(0, deque())
    deadline = time.monotonic() + timeout_s
    while len(inbox) < count and (got := peer.link.read(deadline - time.monotonic())):
        peer.link.inboxes.setdefault(got[0], deque()).append(got[1])
    return [inbox.popleft() for _ in range(min(count, len(inbox)))]


def a_memory_alarm_stops_who_publishes(broker: Broker) -> Record:
    publisher, consumer = broker.peer(), broker.peer()
    consumer.queue("q")
    consumer.consume("q", "t", no_ack=True)
    alarmed = _memory(broker, "0")
    not_yet = publisher.sync("q")
    publisher.publish("", "q", b"1")
    told, first = _told(publisher), consumer.bodies(1, HELD_S)
    publisher.publish("", "q", b"2")
    held = consumer.rest()
    cleared = _memory(broker, "0.4")
    return [alarmed, not_yet, told, first, held, cleared, _told(publisher), consumer.bodies(1)]


def a_disk_alarm_stops_who_publishes(broker: Broker) -> Record:
    publisher, consumer = broker.peer(), broker.peer()
    consumer.queue("q")
    consumer.consume("q", "t", no_ack=True)
    alarmed = _disk(broker, "900000GB")
    publisher.publish("", "q", b"1")
    publisher.publish("", "q", b"2")
    told, arrived = _told(publisher), consumer.bodies(1, HELD_S)
    return [alarmed, told, arrived, _disk(broker, "1MB"), _told(publisher), consumer.bodies(1)]


def two_alarms_are_told_together(broker: Broker) -> Record:
    peer = broker.peer()
    _memory(broker, "0")
    _disk(broker, "900000GB")
    peer.publish("", "none", b"1")
    told = _told(peer)
    reason = sorted(told[0].pop("reason").split(" & "))
    _disk(broker, "1MB")
    still = _told(peer, timeout_s=0.3)
    _memory(broker, "0.4")
    return [told, reason, still, _told(peer)]


def a_second_alarm_is_not_told_again(broker: Broker) -> Record:
    peer = broker.peer()
    _memory(broker, "0")
    peer.publish("", "none", b"1")
    told = _told(peer)
    _disk(broker, "900000GB")
    again = _told(peer, timeout_s=0.3)
    _memory(broker, "0.4")
    still = _told(peer, timeout_s=0.3)
    _disk(broker, "1MB")
    return [told, again, still, _told(peer)]


def an_alarm_that_comes_again_needs_another_publish(broker: Broker) -> Record:
    peer = broker.peer()
    outcome = []
    for _ in range(2):
        _memory(broker, "0")
        outcome.append(_told(peer, timeout_s=0.3))
        peer.publish("", "none", b"1")
        outcome.append(_told(peer))
        _memory(broker, "0.4")
        outcome.append(_told(peer))
    return outcome


def a_client_without_the_capability_is_held_in_silence(broker: Broker) -> Record:
    peer = broker.peer(capabilities={})
    _memory(broker, "0")
    peer.publish("", "none", b"1")
    peer.cast(spec.Channel.Flow(active=True))
    silent = [peer.rest(), _told(peer, timeout_s=0.1)]
    _memory(broker, "0.4")
    return [silent, peer.take(1), _told(peer, timeout_s=0.1)]


def the_publish_that_is_stopped_at_is_confirmed(broker: Broker) -> Record:
    peer = broker.peer()
    peer.confirm()
    peer.queue("q")
    _memory(broker, "0")
    peer.publish("", "q", b"1")
    told, confirmed = _told(peer), peer.take(1, HELD_S)
    peer.publish("", "q", b"2")
    held = peer.rest()
    _memory(broker, "0.4")
    return [told, confirmed, held, _told(peer), peer.confirms(2), peer.wait_ready("q", 2)]


def a_publish_without_a_body_at_an_alarm(broker: Broker) -> Record:
    peer = broker.peer()
    peer.confirm()
    _memory(broker, "0")
    peer.publish("", "none", b"")
    told, during = _told(peer), [each["method"] for each in peer.rest(quiet_s=HELD_S)]
    _memory(broker, "0.4")
    return [told, during, [each["method"] for each in peer.take(1, HELD_S)], _told(peer)]


def acks_behind_a_publish_wait(broker: Broker) -> Record:
    """The connection is not read any more, whatever else it sends."""
    peer = broker.peer()
    peer.queue("q")
    peer.qos(1)
    peer.consume("q", "t")
    peer.fill("q", b"1", b"2")
    first = peer.bodies(1)
    _memory(broker, "0")
    peer.publish("", "none", b"x")
    _told(peer)
    peer.ack(1)
    held = peer.rest()
    _memory(broker, "0.4")
    return [first, held, peer.bodies(1)]


def deliveries_go_on_to_a_stopped_connection(broker: Broker) -> Record:
    """Of what is there: nobody can publish."""
    peer, other = broker.peer(), broker.peer()
    peer.queue("q")
    other.fill("q", b"1")
    other.get("q", no_ack=False)
    peer.consume("q", "t", no_ack=True)
    _memory(broker, "0")
    peer.publish("", "none", b"x")
    told = _told(peer)
    other.nack(1)
    arrived = peer.bodies(1)
    _memory(broker, "0.4")
    return [told, arrived]


def new_connections_may_do_all_but_publish(broker: Broker) -> Record:
    first = broker.peer()
    first.queue("q")
    first.fill("q", b"1", b"2")
    _memory(broker, "0")
    peer = broker.peer()
    outcome = [
        peer.declare("other"),
        peer.bind("other", "amq.direct", "k"),
        peer.get("q"),
        peer.consume("q", "t", no_ack=True),
        peer.bodies(1),
        peer.delete("other"),
    ]
    peer.publish("", "q", b"3")
    told = _told(peer)
    _memory(broker, "0.4")
    return [outcome, told, _told(peer)]


def a_publish_in_a_transaction_stops_too(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.tx("select")
    _memory(broker, "0")
    peer.publish("", "q", b"1")
    told = _told(peer)
    peer.cast(spec.Tx.Commit())
    held = peer.rest()
    _memory(broker, "0.4")
    return [told, held, peer.take(1), peer.wait_ready("q", 1)]


def a_stopped_connection_is_listed_as_such(broker: Broker) -> Record:
    user = broker.user("lister", "", (".*", ".*", ".*"))
    peer = broker.peer(user=user, password=user)

    def state() -> list[str]:
        found = broker.ctl("list_connections", "-s", "user", "state")["output"]
        return [line for line in found.splitlines() if user in line]

    before = state()
    _memory(broker, "0")
    alarmed = state()
    peer.publish("", "none", b"1")
    _told(peer)
    stopped = state()
    _memory(broker, "0.4")
    _told(peer)
    return [before, alarmed, stopped, state()]


def health_checks_name_the_alarm(broker: Broker) -> Record:
    before = broker.http("GET", "health/checks/alarms")
    _memory(broker, "0")
    on = [broker.http("GET", f"health/checks/{name}") for name in ("alarms", "local-alarms")]
    flags = broker.wait_http("nodes", lambda rows: bool(rows and rows[0].get("mem_alarm")))
    _memory(broker, "0.4")
    kept = ("mem_alarm", "disk_free_alarm")
    return [before, on, [flags[0].get(key) for key in kept]]


def limits_that_are_no_limits(broker: Broker) -> Record:
    return [
        broker.ctl("set_vm_memory_high_watermark", "2"),
        broker.ctl("set_vm_memory_high_watermark", "-1"),
        broker.ctl("set_vm_memory_high_watermark", "nonsense"),
        broker.ctl("set_vm_memory_high_watermark", "absolute", "nonsense"),
        broker.ctl("set_vm_memory_high_watermark", "absolute", "100GB"),
        broker.ctl("set_disk_free_limit", "nonsense"),
        broker.ctl("set_disk_free_limit", "mem_relative", "nonsense"),
        broker.ctl("set_disk_free_limit", "mem_relative", "0.0001"),
    ]


# ---- acknowledgement timeouts: twenty seconds here -----------------------------------------------------------------


def deliveries_that_are_never_acked(broker: Broker) -> Record:
    """One consumes, one has got, one is late on one of two channels, one needs no acks."""
    other = broker.peer()
    consumer, getter, both, careless = (broker.peer() for _ in range(4))
    for queue in ("consumed", "got", "both", "careless"):
        other.queue(queue)
    consumer.consume("consumed", "t")
    careless.consume("careless", "t", no_ack=True)
    other.fill("consumed", b"1", b"2")
    other.fill("got", b"1")
    other.fill("both", b"1", b"2")
    other.fill("careless", b"1")
    second = both.beside(2)
    delivered = [
        consumer.bodies(2),
        getter.get("got", no_ack=False),
        both.get("both", no_ack=False),
        second.get("both", no_ack=False),
        careless.bodies(1),
    ]
    second.ack(1)
    closed = [late.take(1, 40) for late in (consumer, getter, both)]
    open_still = [second.sync("both"), careless.sync("careless")]
    for queue, count in (("consumed", 2), ("got", 1), ("both", 1)):
        other.wait_ready(queue, count)
    back = [other.get("consumed"), other.get("consumed"), other.get("got"), other.get("both")]
    return [delivered, closed, open_still, back, other.get("both")]


# ---- message sizes: 100,000 octets here ---------------------------------------------------------------------------


def messages_at_the_largest_size(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    outcome = []
    for size in (99_999, 100_000, 100_001, 300_000):
        peer.publish("", "q", b"x" * size)
        outcome.append(peer.sync())
    return [outcome, peer.wait_ready("q", 2)]


def a_message_too_large_comes_before_all_other_checks(broker: Broker) -> Record:
    peer = broker.peer()
    peer.publish("none", "k", b"x" * 100_001, user_id="nobody", expiration="x")
    return peer.sync()
