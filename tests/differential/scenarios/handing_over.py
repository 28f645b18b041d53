"""Who is served when consumers come, go and fill up: one active consumer, and the prefetch that a channel shares."""

from __future__ import annotations

from typing import Any

from pika import spec

from tests.differential.broker import Broker
from tests.differential.peer import Peer, method_frame

Record = Any
ALONE = {"x-single-active-consumer": True}


def _served(peer: Peer, count: int) -> Record:
    """Consumer, body and redelivery of the next deliveries."""
    return [
        [each.get("consumer_tag"), each.get("body", each["method"]), each.get("redelivered")]
        for each in peer.take(count)
    ]


# ---- one active consumer ------------------------------------------------------------------------------------------


def what_a_lost_connection_held_goes_to_the_next(broker: Broker) -> Record:
    first, second = broker.peer(), broker.peer()
    second.queue("q", ALONE)
    first.consume("q", "a")
    second.consume("q", "b")
    second.fill("q", b"1", b"2", b"3")
    held = _served(first, 3)
    first.ack(1)
    first.sync("q")
    first.link.wire.socket.close()
    first.link.is_closed = True
    return [held, _served(second, 2), second.rest()]


def what_a_closed_channel_held_goes_to_the_next(broker: Broker) -> Record:
    peer = broker.peer()
    first, second = peer.beside(2), peer.beside(3)
    peer.queue("q", ALONE)
    first.consume("q", "a")
    second.consume("q", "b")
    peer.fill("q", b"1", b"2")
    held = _served(first, 2)
    return [held, first.close_channel(), _served(second, 2)]


def consumers_that_wait_are_cancelled_in_silence(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", ALONE)
    for tag in ("a", "b", "c"):
        peer.consume("q", tag, no_ack=True)
    peer.cancel("b")
    peer.fill("q", b"1")
    first = _served(peer, 1)
    peer.cancel("a")
    peer.fill("q", b"2")
    return [first, _served(peer, 1), peer.passive("q")]


def priorities_choose_among_those_that_wait(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", ALONE)
    for tag, priority in (("first", 0), ("low", -1), ("mid", 1), ("mid2", 1), ("high", 9)):
        peer.consume("q", tag, {"x-priority": priority}, no_ack=True)
    outcome = []
    for number in range(5):
        peer.fill("q", b"%d" % number)
        outcome += _served(peer, 1)
        peer.cancel(outcome[-1][0])
    return outcome


def a_queue_without_consumers_waits_for_the_next_one(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", ALONE)
    peer.consume("q", "a", no_ack=True)
    peer.cancel("a")
    peer.fill("q", b"1", b"2")
    kept = peer.ready("q")
    peer.consume("q", "b", no_ack=True)
    return [kept, _served(peer, 2)]


def gets_are_not_held_back(broker: Broker) -> Record:
    peer, other = broker.peer(), broker.peer()
    peer.queue("q", ALONE)
    peer.qos(1)
    peer.consume("q", "a")
    peer.fill("q", b"1", b"2")
    first = _served(peer, 1)
    return [first, other.get("q"), other.get("q")["method"]]


def rejects_come_back_to_the_same_one(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", ALONE)
    peer.consume("q", "a")
    peer.consume("q", "b")
    peer.fill("q", b"1")
    first = _served(peer, 1)
    peer.reject(1)
    return [first, _served(peer, 1)]


def an_exclusive_consumer_and_one_active(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", ALONE)
    return [peer.consume("q", "a"), peer.consume("q", "b", exclusive=True), peer.passive("q")]


def a_deleted_queue_cancels_all_of_them(broker: Broker) -> Record:
    peer, other = broker.peer(), broker.peer()
    peer.queue("q", ALONE)
    peer.consume("q", "a")
    peer.consume("q", "b")
    deleted = other.delete("q")
    return [deleted, sorted(peer.take(2), key=str)]


def the_command_says_who_is_active(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("handed", ALONE)
    peer.consume("handed", "a")
    peer.consume("handed", "b")
    columns = ("queue_name", "consumer_tag", "active", "activity_status")

    def listed() -> Record:
        found = broker.ctl("list_consumers", "-s", *columns)["output"].splitlines()
        return sorted(line for line in found if line.startswith("handed"))

    before = listed()
    peer.cancel("a")
    return [before, listed()]


# ---- what the one that leaves holds -------------------------------------------------------------------------------


def _holding(broker: Broker, **options: Any) -> tuple[Peer, Peer]:
    """Consumer a holds 0 of 0 to 3; b, on another connection, waits unless a is exclusive."""
    first, second = broker.peer(), broker.peer()
    second.queue("q", None if options else ALONE)
    first.qos(1)
    first.consume("q", "a", **options)
    if not options:
        second.consume("q", "b")
    second.fill("q", b"0", b"1", b"2", b"3")
    assert first.bodies(1) == [b"0"]
    return first, second


def cancelled_and_closed_at_once(broker: Broker) -> Record:
    first, second = _holding(broker)
    cancel = method_frame(first.number, spec.Basic.Cancel(consumer_tag="a"))
    first.send(cancel, method_frame(first.number, spec.Channel.Close(200, "bye", 0, 0)))
    return [_served(second, 4), second.rest(), second.passive("q")]


def cancelled_and_closed_later(broker: Broker) -> Record:
    """The next one is active, and is given nothing before the close."""
    first, second = _holding(broker)
    cancelled = first.cancel("a")
    held = second.rest()
    return [cancelled, held, second.ready("q"), first.close_channel(), _served(second, 4)]


def cancelled_and_rejected(broker: Broker) -> Record:
    first, second = _holding(broker)
    first.cancel("a")
    first.reject(1)
    return [_served(second, 4), second.rest()]


def cancelled_and_disconnected(broker: Broker) -> Record:
    first, second = _holding(broker)
    first.cancel("a")
    first.link.wire.socket.close()
    first.link.is_closed = True
    return [_served(second, 4), second.rest()]


def the_command_says_who_is_active_behind_what_is_held(broker: Broker) -> Record:
    first, _ = _holding(broker)
    first.cancel("a")
    found = broker.ctl("list_consumers", "-s", "queue_name", "consumer_tag", "activity_status")
    return sorted(line for line in found["output"].splitlines() if line.startswith("q\t"))


def an_exclusive_one_cancelled_and_closed_at_once(broker: Broker) -> Record:
    first, second = _holding(broker, exclusive=True)
    cancel = method_frame(first.number, spec.Basic.Cancel(consumer_tag="a"))
    first.send(cancel, method_frame(first.number, spec.Channel.Close(200, "bye", 0, 0)))
    second.wait_ready("q", 4)
    return [second.consume("q", "b", exclusive=True), _served(second, 4)]


def an_exclusive_one_that_keeps_what_it_holds(broker: Broker) -> Record:
    """Ours waits five seconds for it."""
    first, second = _holding(broker, exclusive=True)
    first.cancel("a")
    consumed = second.consume("q", "b", exclusive=True)
    return [consumed, _served(second, 3), first.close_channel(), _served(second, 1)]


# ---- the prefetch that a channel shares ---------------------------------------------------------------------------


def several_consumers_share_it(broker: Broker) -> Record:
    peer = broker.peer()
    for queue in ("q", "r"):
        peer.queue(queue)
    peer.qos(3, shared=True)
    peer.consume("q", "a")
    peer.consume("r", "b")
    peer.fill("q", b"1", b"2")
    peer.fill("r", b"3", b"4")
    first = sorted(_served(peer, 3))
    peer.ack(1)
    return [first, _served(peer, 1), peer.rest(), peer.ready("q"), peer.ready("r")]


def _turns(broker: Broker, limit: int, consumers: int) -> str:
    """Who gets each of forty messages of one queue, acked one by one."""
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", *[b"x"] * 40)
    peer.qos(limit, shared=True)
    for tag in "abcd"[:consumers]:
        peer.consume("q", tag)
    served = peer.take(limit)
    for number in range(40 - limit):
        peer.ack(served[number]["delivery_tag"])
        served += peer.take(1)
    return "".join(each["consumer_tag"] for each in served)


def two_consumers_take_turns_with_one(broker: Broker) -> Record:
    return _turns(broker, 1, 2)


def three_consumers_take_turns_with_one(broker: Broker) -> Record:
    return _turns(broker, 1, 3)


def four_consumers_take_turns_with_two(broker: Broker) -> Record:
    """Their order depends on when RabbitMQ's queue hears of an ack, their shares do not."""
    served = _turns(broker, 2, 4)
    return [tag for tag in "abcd" if served.count(tag) > 5]


def raising_it_lets_more_through(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.qos(1, shared=True)
    peer.consume("q", "a")
    peer.fill("q", b"1", b"2", b"3", b"4")
    first = _served(peer, 1)
    peer.qos(3, shared=True)
    return [first, _served(peer, 2), peer.rest()]


def lowering_it_takes_nothing_back(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.qos(3, shared=True)
    peer.consume("q", "a")
    peer.fill("q", b"1", b"2", b"3", b"4")
    first = _served(peer, 3)
    peer.qos(1, shared=True)
    peer.ack(2, multiple=True)
    still = peer.rest()
    peer.ack(3)
    return [first, still, _served(peer, 1)]


def each_channel_has_its_own(broker: Broker) -> Record:
    peer = broker.peer()
    other = peer.beside(2)
    peer.queue("q")
    peer.qos(1, shared=True)
    peer.consume("q", "a")
    other.qos(2, shared=True)
    other.consume("q", "b")
    peer.fill("q", b"1", b"2", b"3", b"4")
    return [len(peer.take(1)), len(other.take(2)), peer.rest(), other.rest(), peer.ready("q")]


def given_back_it_is_free_again(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.qos(1, shared=True)
    peer.consume("q", "a")
    peer.fill("q", b"1", b"2")
    first = _served(peer, 1)
    peer.nack(1, requeue=False)
    second = _served(peer, 1)
    peer.nack(2)
    return [first, second, _served(peer, 1)]


def a_cancelled_consumer_still_fills_it(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.qos(1, shared=True)
    peer.consume("q", "a")
    peer.fill("q", b"1", b"2")
    first = _served(peer, 1)
    peer.cancel("a")
    peer.consume("q", "b")
    held = peer.rest()
    peer.ack(1)
    return [first, held, _served(peer, 1)]


def consumers_without_acks_pass_it_by(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.queue("r")
    peer.qos(1, shared=True)
    peer.consume("q", "acking")
    peer.consume("r", "careless", no_ack=True)
    peer.fill("q", b"1", b"2")
    peer.fill("r", b"3", b"4")
    return [_served(peer, 1), peer.rest()]


def a_prefetch_of_each_lifts_it(broker: Broker) -> Record:
    """basic.qos for each new consumer also removes the shared limit."""
    peer = broker.peer()
    peer.queue("q")
    peer.qos(1, shared=True)
    peer.consume("q", "a")
    peer.fill("q", b"1", b"2", b"3")
    first = _served(peer, 1)
    peer.qos(2)
    return [first, peer.rest(2), peer.ready("q")]


def what_recover_gives_back_counts_anew(broker: Broker) -> Record:
    """The third is published late: RabbitMQ's queue may hear of the room before of what is given back."""
    peer = broker.peer()
    peer.queue("q")
    peer.qos(2, shared=True)
    peer.consume("q", "a")
    peer.fill("q", b"1", b"2")
    first = _served(peer, 2)
    peer.recover()
    again = _served(peer, 2)
    peer.fill("q", b"3")
    held = peer.rest()
    peer.ack(3)
    return [first, again, held, _served(peer, 1), peer.rest()]


def a_transaction_frees_it_at_commit(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.tx("select")
    peer.qos(1, shared=True)
    peer.consume("q", "a")
    other = broker.peer()
    other.fill("q", b"1", b"2")
    first = _served(peer, 1)
    peer.ack(1)
    held = peer.rest()
    peer.tx("commit")
    return [first, held, _served(peer, 1)]
