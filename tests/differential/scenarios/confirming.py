"""Publisher confirms and transactions."""

from __future__ import annotations

from typing import Any

import pika
from pika import spec
from pika.exceptions import NackError, UnroutableError

from tests.differential.broker import Broker

Record = Any


def select_twice(broker: Broker) -> Record:
    peer = broker.peer()
    return [peer.confirm(), peer.confirm()]


def select_without_waiting(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.cast(spec.Confirm.Select(nowait=True))
    peer.publish("", "q", b"1")
    return [peer.take(1), peer.sync()]


def one_message(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.confirm()
    peer.publish("", "q", b"1")
    return peer.take(1)


def one_persistent_message(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", durable=True)
    peer.confirm()
    peer.publish("", "q", b"1", delivery_mode=2)
    return peer.take(1)


def numbers_start_at_the_select(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"0", b"0")
    peer.confirm()
    peer.publish("", "q", b"1")
    return peer.take(1)


def many_messages_of_all_kinds(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", durable=True)
    peer.queue("full", {"x-max-length": 0, "x-overflow": "reject-publish"})
    peer.confirm()
    for each in range(12):
        key = ("q", "full", "none")[each % 3]
        peer.publish("", key, b"%d" % each, delivery_mode=1 + each % 2)
    return peer.confirms(12)


def a_single_nack(broker: Broker) -> Record:
    """RabbitMQ sets both flags."""
    peer = broker.peer()
    peer.queue("full", {"x-max-length": 0, "x-overflow": "reject-publish"})
    peer.confirm()
    peer.publish("", "full", b"1")
    return peer.take(1)


def one_of_two_queues_refuses(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("full", {"x-max-length": 0, "x-overflow": "reject-publish"})
    peer.queue("q")
    peer.bind("full", "amq.fanout")
    peer.bind("q", "amq.fanout")
    peer.confirm()
    peer.publish("amq.fanout", "", b"1", mandatory=True)
    return [peer.take(1), peer.wait_ready("q", 1)]


def without_a_route(broker: Broker) -> Record:
    peer = broker.peer()
    peer.confirm()
    peer.publish("", "none", b"1")
    return peer.take(1)


def discarded_messages_are_acked(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("short", {"x-max-length": 1})
    peer.queue("quick", {"x-message-ttl": 0})
    peer.queue("none", {"x-max-length": 0})
    peer.confirm()
    for key in ("short", "short", "quick", "none"):
        peer.publish("", key, b"1", delivery_mode=2)
    return peer.confirms(4)


def a_failed_publish_is_not_confirmed(broker: Broker) -> Record:
    peer = broker.peer()
    peer.confirm()
    peer.publish("none", "k", b"1")
    return [peer.sync(), peer.rest()]


def confirms_of_a_queue_that_is_deleted(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", durable=True)
    peer.confirm()
    for _ in range(20):
        peer.publish("", "q", b"1", delivery_mode=2)
    peer.rpc(spec.Queue.Delete(queue="q"), spec.Queue.DeleteOk)
    return peer.confirms(20)


def pika_waits_for_confirms(broker: Broker) -> Record:
    channel = broker.pika().channel()
    channel.queue_declare(
        "q.pika", exclusive=True, arguments={"x-max-length": 1, "x-overflow": "reject-publish"}
    )
    channel.confirm_delivery()
    outcome: list[Any] = []
    for key, mandatory in (("q.pika", True), ("q.pika", True), ("none", True), ("none", False)):
        try:
            channel.basic_publish("", key, b"1", pika.BasicProperties(delivery_mode=2), mandatory)
        except NackError as error:
            outcome.append(["nack", [each.body for each in error.messages]])
        except UnroutableError as error:
            outcome.append(["returned", [each.method.reply_text for each in error.messages]])
        else:
            outcome.append("ack")
    return outcome


# ---- transactions -----------------------------------------------------------------------------------------


def tx_and_confirms_exclude_each_other(broker: Broker) -> Record:
    first, second = broker.peer(), broker.peer()
    return [first.tx("select"), first.confirm(), second.confirm(), second.tx("select")]


def tx_select_twice(broker: Broker) -> Record:
    peer = broker.peer()
    return [peer.tx("select"), peer.tx("select")]


def tx_commit_without_select(broker: Broker) -> Record:
    peer = broker.peer()
    return [peer.tx("commit"), peer.tx("rollback")]


def tx_publishes_appear_at_commit(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.tx("select")
    peer.fill("q", b"1", b"2")
    before = peer.ready("q")
    return [before, peer.tx("commit"), peer.wait_ready("q", 2), peer.drain("q")]


def tx_rollback_drops_publishes(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.tx("select")
    peer.fill("q", b"1")
    rolled = peer.tx("rollback")
    peer.fill("q", b"2")
    return [rolled, peer.tx("commit"), peer.wait_ready("q", 1), peer.drain("q")]


def tx_routes_at_publish(broker: Broker) -> Record:
    """A binding made between publish and commit comes too late."""
    peer = broker.peer()
    peer.queue("q")
    peer.tx("select")
    peer.publish("amq.direct", "k", b"1", mandatory=True)
    peer.bind("q", "amq.direct", "k")
    early = peer.rest()
    reply = peer.tx("commit")
    return [early, reply, peer.rest(), peer.ready("q")]


def tx_acks_count_at_commit(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1", b"2")
    peer.tx("select")
    for _ in range(2):
        peer.get("q", no_ack=False)
    peer.ack(1)
    before = [peer.tx("commit")]
    peer.ack(2)
    rolled = peer.tx("rollback")
    other = broker.peer()
    peer.link.close()
    return [before, rolled, other.wait_ready("q", 1), other.get("q")]


def tx_ack_twice(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1")
    peer.tx("select")
    peer.get("q", no_ack=False)
    peer.ack(1)
    peer.ack(1)
    return peer.sync()


def tx_rollback_allows_the_ack_again(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1")
    peer.tx("select")
    peer.get("q", no_ack=False)
    peer.ack(1)
    peer.tx("rollback")
    peer.ack(1)
    return [peer.tx("commit"), peer.ready("q")]


def tx_nacks_at_commit(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1", b"2")
    peer.tx("select")
    for _ in range(2):
        peer.get("q", no_ack=False)
    peer.nack(1)
    peer.nack(2, requeue=False)
    before = peer.ready("q")
    return [before, peer.tx("commit"), peer.wait_ready("q", 1), peer.get("q")]


def tx_refused_messages(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("full", {"x-max-length": 0, "x-overflow": "reject-publish"})
    peer.tx("select")
    peer.publish("", "full", b"1", delivery_mode=2)
    return peer.tx("commit")


def tx_is_rolled_back_by_a_close(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1")
    peer.tx("select")
    peer.get("q", no_ack=False)
    peer.ack(1)
    peer.publish("", "q", b"2")
    other = peer.beside(2)
    peer.close_channel()
    return [other.wait_ready("q", 1), other.get("q")]


def tx_an_error_in_a_publish_comes_at_once(broker: Broker) -> Record:
    peer = broker.peer()
    peer.tx("select")
    peer.publish("none", "k", b"1")
    return peer.sync()


def tx_recover_leaves_acked_ones(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1", b"2")
    peer.tx("select")
    for _ in range(2):
        peer.get("q", no_ack=False)
    peer.ack(1)
    reply = peer.recover()
    return [reply, peer.wait_ready("q", 1), peer.tx("commit"), peer.drain("q")]
