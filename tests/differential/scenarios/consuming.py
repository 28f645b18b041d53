"""basic.get, consume, cancel and qos; who gets what."""

from __future__ import annotations

import time
from typing import Any

from pika import spec

from tests.differential.broker import Broker
from tests.support.field_table import Typed

Record = Any


def get_counts_what_is_left(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1", b"2")
    return [peer.get("q", no_ack=False), peer.get("q"), peer.get("q"), peer.get("none")]


def get_ignores_prefetch_and_exclusive_consumers(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.qos(1)
    peer.consume("q", "t", exclusive=True)
    peer.fill("q", b"1", b"2")
    return [peer.take(1), peer.get("q", no_ack=False)]


def deliveries_share_tags_with_gets(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1", b"2", b"3")
    first = peer.get("q")
    peer.consume("q", "t", no_ack=True)
    return [first["delivery_tag"], [each["delivery_tag"] for each in peer.take(2)]]


def consume_ok_comes_before_deliveries(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1")
    peer.cast(spec.Basic.Consume(queue="q", consumer_tag="t"))
    return peer.take(2)


def consumer_tags_made_by_the_server(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    first, second = peer.consume("q"), peer.consume("q")
    return [first, first["consumer_tag"] != second["consumer_tag"], len(first["consumer_tag"])]


def a_consumer_tag_in_use(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    return [peer.consume("q", "t"), peer.consume("q", "t"), peer.sync()]


def a_consumer_tag_may_be_used_on_two_channels(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    return [peer.consume("q", "t"), peer.beside(2).consume("q", "t")]


def consume_without_waiting(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1")
    peer.cast(spec.Basic.Consume(queue="q", consumer_tag="t", nowait=True))
    return peer.take(1) + peer.rest()


def consume_from_nothing(broker: Broker) -> Record:
    peer = broker.peer()
    return [peer.consume("none"), peer.consume("none", "t", {"x-priority": "a"})]


def consume_no_local_is_ignored(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    reply = peer.consume("q", "t", no_local=True)
    peer.publish("", "q", b"1")
    return [reply, peer.take(1)]


def exclusive_consumers(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    first = peer.consume("q", "a", exclusive=True)
    others = [peer.beside(2).consume("q", "b"), peer.beside(3).consume("q", "c", exclusive=True)]
    peer.cancel("a")
    last = peer.consume("q", "d")
    return [first, others, last, peer.beside(4).consume("q", "e", exclusive=True)]


def consumer_priority_of_a_wrong_type(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    values: tuple[Any, ...] = (
        "a",
        True,
        None,
        1.5,
        [1],
        {"a": 1},
        b"x",
        Typed("T", 1),
        -5,
        1 << 40,
    )
    return [peer.consume("q", "", {"x-priority": each}) for each in values]


def consumer_arguments_of_streams(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    return [
        peer.consume("q", "", {"x-stream-offset": "first"}),
        peer.consume("q", "", {"x-cancel-on-ha-failover": True}),
        peer.consume("q", "", {"x-cancel-on-ha-failover": 1}),
        peer.consume("q", "", {"foo": {"a": 1}}),
    ]


def the_highest_consumer_priority_is_served(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.qos(2)
    for tag, priority in (("low", -1), ("none", None), ("high", 5)):
        peer.consume("q", tag, {} if priority is None else {"x-priority": priority})
    peer.fill("q", *(b"%d" % each for each in range(6)))
    return [(each["consumer_tag"], each["body"]) for each in peer.take(6)]


def consumers_take_turns(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    for tag in ("a", "b", "c"):
        peer.consume("q", tag, no_ack=True)
    outcome = []
    for each in range(7):
        peer.fill("q", b"%d" % each)
        outcome += [(event["consumer_tag"], event["body"]) for event in peer.take(1)]
    return outcome


def cancel_of_an_unknown_tag(broker: Broker) -> Record:
    return broker.peer().cancel("none")


def cancel_keeps_what_is_out(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.consume("q", "t")
    peer.fill("q", b"1")
    peer.take(1)
    cancelled = peer.cancel("t")
    before = peer.passive("q")
    peer.nack(1)
    return [cancelled, before, peer.wait_ready("q", 1), peer.get("q")]


def nothing_comes_after_cancel_ok(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.consume("q", "t")
    peer.cancel("t")
    peer.fill("q", b"1")
    return [peer.rest(), peer.ready("q")]


def the_server_cancels_consumers_of_a_deleted_queue(broker: Broker) -> Record:
    peer, other = broker.peer(), broker.peer()
    peer.queue("q")
    peer.consume("q", "t")
    other.delete("q")
    return [peer.take(1), peer.rest(), peer.sync()]


def the_server_cancels_consumers_over_http(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.consume("q", "t")
    return [broker.http("DELETE", "queues/%2F/q"), peer.take(1)]


def no_cancel_for_clients_that_do_not_know_it(broker: Broker) -> Record:
    peer, other = broker.peer(capabilities={}), broker.peer()
    peer.queue("q")
    peer.consume("q", "t")
    other.delete("q")
    return [peer.rest(), peer.cancel("t")]


def prefetch_limits_each_new_consumer(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.qos(2)
    peer.consume("q", "two")
    peer.qos(1)
    peer.consume("q", "one")
    peer.fill("q", *(b"%d" % each for each in range(6)))
    return sorted((each["consumer_tag"], each["body"]) for each in peer.rest(3))


def prefetch_of_the_channel(broker: Broker) -> Record:
    peer = broker.peer()
    for name in ("q1", "q2"):
        peer.queue(name)
    peer.qos(3, shared=True)
    peer.consume("q1", "a")
    peer.consume("q2", "b")
    peer.fill("q1", b"1", b"2")
    peer.fill("q2", b"3", b"4")
    first = len(peer.rest(3))
    peer.ack(1)
    return [first, len(peer.rest(1)), peer.ready("q1") + peer.ready("q2")]


def prefetch_of_the_channel_is_in_force_at_once(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.consume("q", "t")
    peer.fill("q", b"1", b"2", b"3")
    before = len(peer.take(3))
    peer.qos(2, shared=True)
    peer.fill("q", b"4")
    blocked = peer.rest()
    peer.ack(2, multiple=True)
    return [before, blocked, peer.bodies(1), peer.rest()]


def prefetch_of_the_channel_counts_no_gets(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1", b"2", b"3")
    peer.get("q", no_ack=False)
    peer.qos(1, shared=True)
    peer.consume("q", "t")
    return [each["body"] for each in peer.rest()]


def prefetch_of_the_channel_and_a_get_that_is_acked(broker: Broker) -> Record:
    """In RabbitMQ what was got before the limit takes part of it for good."""
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1", b"2", b"3")
    peer.get("q", no_ack=False)
    peer.qos(1, shared=True)
    peer.consume("q", "t")
    peer.ack(1)
    return peer.rest(quiet_s=1.0)


def both_prefetches_together(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.qos(2)
    peer.qos(3, shared=True)
    peer.consume("q", "a")
    peer.consume("q", "b")
    peer.fill("q", *(b"%d" % each for each in range(6)))
    return len(peer.rest(3))


def a_prefetch_of_zero_lifts_the_limit(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.qos(1, shared=True)
    peer.consume("q", "a")
    peer.fill("q", b"1", b"2", b"3")
    before = len(peer.rest(1))
    peer.qos(0, shared=True)
    return [before, peer.bodies(2)]


def prefetch_does_not_limit_without_acks(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.qos(1)
    peer.consume("q", "a", no_ack=True)
    peer.fill("q", b"1", b"2", b"3")
    return peer.bodies(3)


def a_prefetch_size_is_not_implemented(broker: Broker) -> Record:
    return broker.peer().qos(1, size=10)


def prefetch_over_an_ack_goes_on(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.qos(1)
    peer.consume("q", "a")
    peer.fill("q", b"1", b"2", b"3")
    outcome = []
    for tag in (1, 2, 3):
        outcome += peer.bodies(1)
        peer.ack(tag)
    return [outcome, peer.rest()]


def single_active_consumer(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-single-active-consumer": True})
    for tag in ("a", "b", "c"):
        peer.consume("q", tag, no_ack=True)
    peer.fill("q", b"1", b"2")
    first = [each["consumer_tag"] for each in peer.take(2)]
    peer.cancel("a")
    peer.fill("q", b"3")
    return [first, [each["consumer_tag"] for each in peer.take(1)]]


def single_active_consumer_and_priorities(broker: Broker) -> Record:
    """A better one does not push the active one aside; it is the next."""
    peer = broker.peer()
    peer.queue("q", {"x-single-active-consumer": True})
    peer.consume("q", "a", no_ack=True)
    peer.consume("q", "b", no_ack=True)
    peer.consume("q", "high", {"x-priority": 5}, no_ack=True)
    peer.fill("q", b"1")
    first = [each["consumer_tag"] for each in peer.take(1)]
    peer.cancel("a")
    peer.fill("q", b"2")
    return [first, [each["consumer_tag"] for each in peer.take(1)]]


def single_active_consumer_that_is_full(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-single-active-consumer": True})
    peer.qos(1)
    peer.consume("q", "a")
    peer.consume("q", "b")
    peer.fill("q", b"1", b"2")
    return [[each["consumer_tag"] for each in peer.rest(1)], peer.ready("q")]


def single_active_consumer_and_exclusive(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-single-active-consumer": True})
    return peer.consume("q", "a", exclusive=True)


def the_second_of_several_consumers_takes_over_at_channel_end(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-single-active-consumer": True})
    other = peer.beside(2)
    other.consume("q", "a")
    peer.consume("q", "b")
    peer.fill("q", b"1")
    out = other.take(1)
    other.close_channel()
    return [out, peer.take(1)]


def consumer_objects_over_http(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("shown", {"x-single-active-consumer": True})
    peer.qos(5)
    peer.consume("shown", "a", {"x-priority": 2, "foo": "x"})
    peer.consume("shown", "b", no_ack=True)

    def mine(rows: Any) -> list[Any]:
        return [row for row in rows if row.get("queue", {}).get("name") == "shown"]

    found = mine(broker.wait_http("consumers/%2F", lambda rows: len(mine(rows)) == 2))
    kept = ("consumer_tag", "exclusive", "ack_required", "prefetch_count", "active")
    kept += ("activity_status", "arguments", "queue")
    rows = [{key: row.get(key) for key in kept} for row in found]
    return sorted(rows, key=str)


def pika_consumes_with_a_generator(broker: Broker) -> Record:
    connection = broker.pika()
    channel = connection.channel()
    channel.queue_declare("q.pika", exclusive=True)
    for each in range(3):
        channel.basic_publish("", "q.pika", b"%d" % each)
    found = []
    for method, _, body in channel.consume("q.pika", inactivity_timeout=5):
        found.append((method.delivery_tag, body))
        channel.basic_ack(method.delivery_tag)
        if len(found) == 3:
            break
    return [found, channel.cancel()]


def pika_sees_its_consumer_cancelled(broker: Broker) -> Record:
    connection = broker.pika()
    channel = connection.channel()
    channel.queue_declare("q.pika")
    broker.forget("queue", "q.pika")
    seen: list[str] = []
    channel.add_on_cancel_callback(lambda frame: seen.append(frame.method.consumer_tag))
    channel.basic_consume("q.pika", lambda *_: None, consumer_tag="t")
    connection.channel().queue_delete("q.pika")
    deadline = time.monotonic() + 5
    while not seen and time.monotonic() < deadline:
        connection.process_data_events(0.05)
    return [seen, channel.is_open]
