"""Methods that ask for no answer: their effect is there for whatever follows, and an error closes the channel as ever."""

from __future__ import annotations

from typing import Any

from pika import spec

from tests.differential.broker import Broker

Record = Any


def bind_and_purge(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.cast(spec.Queue.Bind(queue="q", exchange="amq.direct", routing_key="k", nowait=True))
    peer.publish("amq.direct", "k", b"1")
    counted = peer.wait_ready("q", 1)
    peer.cast(spec.Queue.Purge(queue="q", nowait=True))
    return [counted, peer.passive("q"), peer.inbox]


def delete_queues(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.cast(spec.Queue.Delete(queue="q", nowait=True))
    gone = peer.passive("q")
    peer.cast(spec.Queue.Delete(queue="q", nowait=True))
    return [gone, peer.sync()]


def delete_a_queue_that_is_not_empty(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1")
    peer.cast(spec.Queue.Delete(queue="q", if_empty=True, nowait=True))
    return [peer.take(1), peer.ready("q")]


def exchanges_come_and_go(broker: Broker) -> Record:
    peer = broker.peer()
    broker.forget("exchange", "x")
    peer.queue("q")
    peer.cast(spec.Exchange.Declare(exchange="x", type="fanout", nowait=True))
    bound = peer.bind("q", "x")
    peer.cast(spec.Exchange.Bind(destination="x", source="amq.fanout", nowait=True))
    peer.publish("amq.fanout", "", b"1")
    first = peer.wait_ready("q", 1)
    peer.cast(spec.Exchange.Unbind(destination="x", source="amq.fanout", nowait=True))
    peer.publish("amq.fanout", "", b"2")
    peer.sync()
    second = peer.ready("q")
    peer.cast(spec.Exchange.Delete(exchange="x", nowait=True))
    return [bound, first, second, peer.exchange("x", passive=True)]


def declare_another_type(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("x", "direct")
    peer.cast(spec.Exchange.Declare(exchange="x", type="fanout", nowait=True))
    return peer.take(1)


def declare_what_is_not_there(broker: Broker) -> Record:
    peer = broker.peer()
    peer.cast(spec.Queue.Declare(queue="q", passive=True, nowait=True))
    queue = peer.take(1)
    peer.cast(spec.Exchange.Declare(exchange="x", passive=True, nowait=True))
    return [queue, peer.take(1)]


def a_name_of_the_server_that_nobody_is_told(broker: Broker) -> Record:
    """The channel knows it as its last queue."""
    peer = broker.peer()
    peer.cast(spec.Queue.Declare(queue="", exclusive=True, nowait=True))
    peer.bind("", "amq.direct", "k")
    peer.publish("amq.direct", "k", b"1")
    peer.sync()
    return peer.get("")


def cancel(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.consume("q", "t")
    peer.cast(spec.Basic.Cancel(consumer_tag="t", nowait=True))
    peer.fill("q", b"1")
    return [peer.passive("q"), peer.inbox]


def consume_from_a_locked_queue(broker: Broker) -> Record:
    owner, peer = broker.peer(), broker.peer()
    owner.queue("q", exclusive=True)
    peer.cast(spec.Basic.Consume(queue="q", consumer_tag="t", nowait=True))
    return peer.take(1)


def bind_to_nothing(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.cast(spec.Queue.Bind(queue="q", exchange="none", routing_key="k", nowait=True))
    exchange = peer.take(1)
    peer.cast(spec.Queue.Bind(queue="none", exchange="amq.direct", routing_key="k", nowait=True))
    return [exchange, peer.take(1)]
