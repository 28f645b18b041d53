"""basic.ack, nack, reject and recover; what comes back where."""

from __future__ import annotations

from typing import Any

from pika import spec

from tests.differential.broker import Broker
from tests.differential.peer import Peer

Record = Any


def _out(broker: Broker, count: int = 4, **options: Any) -> Peer:
    """A channel on which messages 1 to `count` of the queue q are out."""
    peer = broker.peer()
    peer.queue("q", **options)
    peer.fill("q", *(b"%d" % (each + 1) for each in range(count)))
    for _ in range(count):
        peer.get("q", no_ack=False)
    return peer


def _back(peer: Peer) -> Record:
    """What a closed channel gives back, in order, with the redelivered flag."""
    other = peer.beside(9)
    peer.close_channel()
    found = []
    other.wait_ready("q", -1, 0.1)
    while (event := other.get("q"))["method"] == "basic.getok":
        found.append([event["body"], event["redelivered"]])
    return found


def ack_one(broker: Broker) -> Record:
    peer = _out(broker)
    peer.ack(2)
    return [peer.sync(), _back(peer)]


def ack_several(broker: Broker) -> Record:
    peer = _out(broker)
    peer.ack(3, multiple=True)
    return [peer.sync(), _back(peer)]


def ack_all(broker: Broker) -> Record:
    peer = _out(broker)
    peer.ack(0, multiple=True)
    first = peer.sync()
    peer.ack(0, multiple=True)
    return [first, peer.sync(), _back(peer)]


def ack_of_an_unknown_tag(broker: Broker) -> Record:
    peer = broker.peer()
    outcome = []
    for tag, multiple in ((1, False), (5, True), (0, False), (1 << 63, False)):
        peer.ack(tag, multiple=multiple)
        outcome.append(peer.sync())
    return outcome


def ack_twice(broker: Broker) -> Record:
    peer = _out(broker)
    peer.ack(2)
    peer.ack(2)
    return peer.sync()


def ack_of_what_needed_none(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1")
    peer.get("q")
    peer.ack(1)
    return peer.sync()


def ack_on_another_channel(broker: Broker) -> Record:
    peer = _out(broker, 1)
    other = peer.beside(2)
    other.ack(1)
    return [other.sync(), peer.ready("q")]


def ack_several_of_which_the_last_is_gone(broker: Broker) -> Record:
    peer = _out(broker)
    peer.ack(3)
    peer.ack(3, multiple=True)
    return [peer.sync(), peer.wait_ready("q", 3)]


def nack_gives_back_to_the_old_place(broker: Broker) -> Record:
    peer = _out(broker)
    peer.fill("q", b"5")
    peer.nack(3)
    peer.nack(1)
    peer.wait_ready("q", 3)
    return [[each["body"], each["redelivered"]] for each in (peer.get("q") for _ in range(3))]


def nack_several(broker: Broker) -> Record:
    peer = _out(broker)
    peer.nack(3, multiple=True)
    return [peer.wait_ready("q", 3), peer.drain("q")]


def nack_all(broker: Broker) -> Record:
    peer = _out(broker)
    peer.nack(0, multiple=True)
    return [peer.wait_ready("q", 4), peer.drain("q")]


def nack_without_requeue_drops(broker: Broker) -> Record:
    peer = _out(broker)
    peer.nack(2, multiple=True, requeue=False)
    return [peer.sync(), _back(peer)]


def nack_of_an_unknown_tag(broker: Broker) -> Record:
    peer = broker.peer()
    peer.nack(7)
    first = peer.sync()
    peer.reject(8, requeue=False)
    return [first, peer.sync()]


def reject_one(broker: Broker) -> Record:
    peer = _out(broker)
    peer.reject(2, requeue=False)
    peer.reject(1)
    return [peer.wait_ready("q", 1), peer.get("q"), _back(peer)]


def a_requeued_message_is_delivered_again(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.qos(1)
    peer.consume("q", "t")
    peer.fill("q", b"1", b"2")
    first = peer.take(1)
    peer.reject(1)
    return [first, peer.take(1)]


def recover_gives_all_back(broker: Broker) -> Record:
    peer = _out(broker)
    return [peer.recover(), peer.wait_ready("q", 4), peer.get("q")]


def recover_to_a_consumer(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.consume("q", "t")
    peer.fill("q", b"1", b"2")
    peer.take(2)
    reply = peer.recover()
    return [reply, [[each["delivery_tag"], each["redelivered"]] for each in peer.take(2)]]


def recover_without_requeue(broker: Broker) -> Record:
    return broker.peer().recover(requeue=False)


def recover_async_has_no_answer(broker: Broker) -> Record:
    peer = _out(broker, 2)
    peer.cast(spec.Basic.RecoverAsync(requeue=True))
    return [peer.sync(), peer.rest(), peer.wait_ready("q", 2)]


def a_closed_channel_gives_back_in_order(broker: Broker) -> Record:
    peer = _out(broker)
    peer.ack(2)
    return _back(peer)


def a_failed_channel_gives_back(broker: Broker) -> Record:
    peer = _out(broker, 2)
    return [peer.passive("none"), peer.wait_ready("q", 2), peer.get("q")]


def a_lost_connection_gives_back(broker: Broker) -> Record:
    peer = _out(broker, 2)
    other = broker.peer()
    peer.link.wire.socket.close()
    peer.link.is_closed = True
    return [other.wait_ready("q", 2), other.get("q"), other.get("q")]


def redelivered_is_about_the_place_in_the_queue(broker: Broker) -> Record:
    """What was never handed out keeps its flag down."""
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1", b"2", b"3")
    peer.get("q", no_ack=False)
    peer.get("q", no_ack=False)
    peer.nack(1)
    peer.wait_ready("q", 2)
    return [peer.get("q"), peer.get("q")]


def a_dead_lettered_message_is_not_redelivered(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    peer.queue("q", {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"})
    peer.fill("q", b"1")
    peer.get("q", no_ack=False)
    peer.nack(1)
    peer.wait_ready("q", 1)
    again = peer.get("q", no_ack=False)
    peer.reject(2, requeue=False)
    peer.wait_ready("dead", 1)
    return [again["redelivered"], peer.get("dead")["redelivered"]]
