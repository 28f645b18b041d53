"""queue.declare with every argument, equivalence, names, exclusive and auto-delete queues, purge and delete."""

from __future__ import annotations

import time
from typing import Any

from pika import spec

from tests.differential.broker import Broker
from tests.differential.peer import wait_for
from tests.support.field_table import Typed
from tests.support.wire_client import METHOD, frame

Record = Any
TYPES: tuple[Any, ...] = ("a", True, None, [1], {"a": 1}, b"x", 1.5, Typed("f", 1.5), Typed("T", 5))
TYPES += (Typed("D", (0, 5)),)


def _each(broker: Broker, key: str, *values: Any, **more: Any) -> Record:
    """Declare and delete a queue for each value of an argument."""
    peer = broker.peer()
    outcome = []
    for value in values:
        outcome.append(peer.declare("q", {key: value} | more))
        peer.delete("q")
    return outcome


def expires(broker: Broker) -> Record:
    return _each(broker, "x-expires", 0, -1, 1, 315360000000, 315360000001, Typed("b", 5), *TYPES)


def message_ttl(broker: Broker) -> Record:
    return _each(broker, "x-message-ttl", 0, -1, 315360000000, 315360000001, Typed("B", 5), *TYPES)


def max_length(broker: Broker) -> Record:
    return _each(broker, "x-max-length", 0, -1, 1 << 40, Typed("i", 5), *TYPES)


def max_length_bytes(broker: Broker) -> Record:
    return _each(broker, "x-max-length-bytes", 0, -1, 1 << 40, Typed("u", 5), *TYPES)


def max_priority(broker: Broker) -> Record:
    return _each(broker, "x-max-priority", 0, 1, 255, 256, -1, Typed("s", 5), *TYPES)


def overflow(broker: Broker) -> Record:
    values = ("drop-head", "reject-publish", "reject-publish-dlx", "Drop-Head", "", 1, *TYPES)
    return _each(broker, "x-overflow", *values)


def queue_mode(broker: Broker) -> Record:
    return _each(broker, "x-queue-mode", "lazy", "default", "Lazy", "", 1, *TYPES)


def queue_version(broker: Broker) -> Record:
    return _each(broker, "x-queue-version", 1, 2, 0, 3, -1, "2", *TYPES)


def queue_type(broker: Broker) -> Record:
    return _each(broker, "x-queue-type", "classic", "undefined", "foo", "", 1, *TYPES)


def single_active_consumer(broker: Broker) -> Record:
    return _each(broker, "x-single-active-consumer", True, False, 1, "true", *TYPES)


def dead_letter_exchange(broker: Broker) -> Record:
    return _each(broker, "x-dead-letter-exchange", "", "nowhere", 1, *TYPES)


def dead_letter_routing_key_needs_an_exchange(broker: Broker) -> Record:
    return _each(broker, "x-dead-letter-routing-key", "k", "", 1, *TYPES)


def dead_letter_routing_key(broker: Broker) -> Record:
    more = {"x-dead-letter-exchange": ""}
    return _each(broker, "x-dead-letter-routing-key", "k", "", 1, *TYPES, **more)


def arguments_of_other_queue_types(broker: Broker) -> Record:
    peer = broker.peer()
    keys: dict[str, Any] = {
        "x-max-age": "1h",
        "x-stream-max-segment-size-bytes": 1,
        "x-initial-cluster-size": 1,
        "x-queue-leader-locator": "x",
        "x-max-in-memory-length": 1,
        "x-max-in-memory-bytes": 1,
        "x-delivery-limit": 1,
        "x-quorum-initial-group-size": 1,
        "x-dead-letter-strategy": "at-least-once",
    }
    return {key: peer.declare("q", {key: value}) for key, value in keys.items()}


def unknown_arguments_are_kept(broker: Broker) -> Record:
    peer = broker.peer()
    arguments = {"x-foo": {"a": [1, "b"]}, "nothing": None, "x-consumer-timeout": "x"}
    return [peer.declare("q", arguments), broker.fields("queues/%2F/q", "arguments")]


def the_first_of_several_wrong_arguments_is_named(broker: Broker) -> Record:
    peer = broker.peer()
    pairs: list[dict[str, Any]] = [
        {"x-queue-mode": "x", "x-message-ttl": -1},
        {"x-message-ttl": -1, "x-expires": 0},
        {"x-expires": 0, "x-message-ttl": -1},
        {"x-overflow": "x", "x-max-length": -1},
        {"x-max-age": "1h", "x-message-ttl": -1},
        {"x-dead-letter-exchange": 1, "x-message-ttl": -1},
        {"x-single-active-consumer": 1, "x-max-priority": 300},
    ]
    return [peer.declare("q", each) for each in pairs]


def redeclare_with_the_same(broker: Broker) -> Record:
    peer = broker.peer()
    arguments = {"x-max-length": 10, "x-message-ttl": 60000, "x-overflow": "drop-head"}
    peer.queue("q", arguments, durable=True)
    peer.fill("q", b"1", b"2")
    return [
        peer.declare("q", arguments, durable=True),
        peer.declare("q", dict(reversed(arguments.items())), durable=True),
        peer.declare("q", {key: _long(value) for key, value in arguments.items()}, durable=True),
    ]


def _long(value: Any) -> Any:
    return Typed("l", value) if isinstance(value, int) else value


def redeclare_with_other_flags(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", durable=True)
    return [
        peer.declare("q"),
        peer.declare("q", durable=True, auto_delete=True),
        peer.declare("q", auto_delete=True),
        peer.declare("q", exclusive=True, durable=True),
    ]


def redeclare_with_other_values(broker: Broker) -> Record:
    peer = broker.peer()
    base: dict[str, Any] = {"x-max-length": 10, "x-overflow": "drop-head"}
    peer.queue("q", base)
    others: list[tuple[str, Any]] = [
        ("x-max-length", 11),
        ("x-max-length", "10"),
        ("x-max-length", 10.0),
        ("x-max-length", Typed("T", 10)),
        ("x-max-length", [10]),
        ("x-max-length", None),
        ("x-overflow", Typed("x", b"drop-head")),
        ("x-overflow", "reject-publish"),
        ("x-overflow", {"a": 1}),
        ("x-overflow", True),
    ]
    return [peer.declare("q", base | {key: value}) for key, value in others]


def redeclare_with_a_decimal(broker: Broker) -> Record:
    """RabbitMQ's printer fails on it."""
    peer = broker.peer()
    peer.queue("q", {"x-max-length": 10})
    return peer.declare("q", {"x-max-length": Typed("D", (0, 10))})


def redeclare_with_more_or_less(broker: Broker) -> Record:
    peer = broker.peer()
    base: dict[str, Any] = {"x-max-length": 10}
    peer.queue("q", base)
    more: dict[str, Any] = {
        "x-expires": 60000,
        "x-message-ttl": 5,
        "x-dead-letter-exchange": "x",
        "x-max-length-bytes": 5,
        "x-max-priority": 5,
        "x-overflow": "drop-head",
        "x-queue-mode": "lazy",
        "x-queue-version": 2,
        "x-single-active-consumer": True,
        "x-queue-type": "classic",
        "x-foo": 1,
        "x-consumer-timeout": 5,
    }
    outcome = {key: peer.declare("q", base | {key: value}) for key, value in more.items()}
    return [peer.declare("q"), outcome]


def passive_declare_looks_at_the_name_only(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-max-length": 10}, durable=True)
    return [
        peer.declare("q", passive=True),
        peer.declare("q", {"x-max-length": 11}, passive=True, auto_delete=True),
        peer.passive("none"),
        peer.passive(""),
    ]


def declare_ok_counts_ready_messages_and_consumers(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1", b"2", b"3")
    peer.get("q", no_ack=False)
    other = peer.beside(2)
    other.qos(1)
    other.consume("q", "a")
    other.consume("q", "b")
    other.take(2)
    return [peer.declare("q"), peer.passive("q")]


def server_made_names(broker: Broker) -> Record:
    peer = broker.peer()
    first = peer.declare("", exclusive=True)
    second = peer.declare("", exclusive=True)
    name = first["queue"]
    return [
        first,
        name != second["queue"],
        len(name),
        peer.declare(name, exclusive=True),
        peer.passive(name),
    ]


def reserved_names(broker: Broker) -> Record:
    peer = broker.peer()
    return [peer.declare(name) for name in ("amq.x", "amq.", "amqx", "AMQ.x")]


def names_of_all_kinds(broker: Broker) -> Record:
    peer = broker.peer()
    names = ("é" * 127, "a" * 255, " ", "a/b", "a b?c#d", "\t", "emoji😀")
    return [[peer.declare(name), peer.delete(name)] for name in names]


def a_name_that_is_no_utf_8(broker: Broker) -> Record:
    peer = broker.peer()
    name = b"\x00\x32\x00\x0a\x00\x00\x02\xff\xfe\x00" + bytes(4)
    peer.send(frame(METHOD, 1, name))
    return peer.link.answer(1, spec.Queue.DeclareOk)


def the_empty_name_means_the_last_declared_queue(broker: Broker) -> Record:
    peer = broker.peer()
    before = [peer.purge(""), peer.delete(""), peer.bind("", "amq.direct", "k"), peer.get("")]
    before.append(peer.consume(""))
    peer.queue("q")
    bound = peer.bind("", "amq.direct", "")
    peer.publish("amq.direct", "q", b"by the name")
    peer.publish("amq.direct", "", b"by the empty key")
    peer.sync("q")
    after = [peer.ready("q"), peer.get(""), peer.consume("", "t"), peer.purge("")]
    return [before, bound, after, peer.unbind("", "amq.direct", ""), peer.delete("")]


def the_last_declared_queue_belongs_to_the_channel(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    return [peer.beside(2).purge(""), peer.purge("")]


def a_passive_declare_makes_it_the_last_queue(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q1")
    peer.queue("q2")
    peer.passive("q1")
    peer.delete("")
    return [peer.passive("q1"), peer.passive("q2")]


def declare_without_waiting(broker: Broker) -> Record:
    peer = broker.peer()
    broker.forget("queue", "q")
    peer.cast(spec.Queue.Declare(queue="q", nowait=True))
    first = [peer.sync(), peer.passive("q")]
    peer.cast(spec.Queue.Declare(queue="q", durable=True, nowait=True))
    return [first, peer.sync()]


def exclusive_queues_are_locked(broker: Broker) -> Record:
    owner, other = broker.peer(), broker.peer()
    owner.queue("q", exclusive=True)
    owner.bind("q", "amq.direct", "k")
    return [
        other.declare("q"),
        other.declare("q", exclusive=True),
        other.passive("q"),
        other.bind("q", "amq.direct", "other"),
        other.unbind("q", "amq.direct", "k"),
        other.get("q"),
        other.consume("q"),
        other.purge("q"),
        other.delete("q"),
    ]


def exclusive_queues_take_messages_from_all(broker: Broker) -> Record:
    owner, other = broker.peer(), broker.peer()
    owner.queue("q", exclusive=True)
    other.publish("", "q", b"1")
    other.sync()
    return [owner.wait_ready("q", 1), owner.get("q")]


def exclusive_queues_serve_all_channels_of_their_connection(broker: Broker) -> Record:
    owner = broker.peer()
    owner.queue("q", exclusive=True)
    other = owner.beside(2)
    return [other.passive("q"), other.purge("q"), other.delete("q")]


def exclusive_redeclared(broker: Broker) -> Record:
    owner = broker.peer()
    owner.queue("q", exclusive=True, durable=True)
    owner.queue("plain")
    return [
        owner.declare("q", exclusive=True, durable=True),
        owner.declare("q", exclusive=True),
        owner.declare("q"),
        owner.declare("q", exclusive=True, auto_delete=True),
        owner.declare("plain", exclusive=True),
    ]


def exclusive_queues_go_with_their_connection(broker: Broker) -> Record:
    owner, other = broker.peer(), broker.peer()
    owner.queue("q", exclusive=True)
    owner.close_channel()
    still = owner.beside(2).passive("q")
    owner.link.close()
    return [still, other.passive("q")]


def exclusive_queues_go_with_a_dropped_connection(broker: Broker) -> Record:
    owner, other = broker.peer(), broker.peer()
    owner.queue("q", exclusive=True)
    owner.link.wire.socket.close()
    owner.link.is_closed = True
    return wait_for(lambda: other.passive("q"), lambda found: found.get("reply_code") == 404)


def auto_delete_after_the_last_consumer(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", auto_delete=True)
    peer.consume("q", "a")
    peer.consume("q", "b")
    peer.cancel("a")
    still = peer.passive("q")
    gone = [peer.cancel("b"), peer.passive("q")]
    return [still, gone]


def auto_delete_at_the_end_of_the_channel(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", auto_delete=True)
    other = peer.beside(2)
    other.consume("q", "a")
    other.close_channel()
    return peer.passive("q")


def auto_delete_needs_a_consumer_first(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", auto_delete=True)
    peer.fill("q", b"1")
    peer.get("q")
    other = broker.peer()
    other.consume("none")
    other.link.close()
    return peer.passive("q")


def auto_delete_takes_messages_along(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("dead")
    arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
    peer.queue("q", arguments, auto_delete=True)
    peer.fill("q", b"1", b"2")
    peer.qos(1)
    peer.consume("q", "a")
    peer.take(1)
    peer.cancel("a")
    time.sleep(0.1)
    return [peer.passive("q"), peer.ready("dead")]


def purge_takes_ready_messages_only(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1", b"2", b"3")
    peer.get("q", no_ack=False)
    purged = [peer.purge("q"), peer.passive("q")]
    peer.nack(1)
    return [*purged, peer.wait_ready("q", 1), peer.purge("none")]


def delete_counts_ready_messages(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1", b"2", b"3")
    peer.get("q", no_ack=False)
    return [peer.delete("q"), peer.delete("q"), peer.passive("q")]


def delete_if_empty(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1")
    refused = peer.delete("q", if_empty=True)
    peer.get("q", no_ack=False)
    return [refused, peer.delete("q", if_empty=True)]


def delete_if_unused(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.consume("q", "t")
    refused = peer.delete("q", if_unused=True)
    peer.fill("q", b"1", b"2")
    both = broker.peer()
    both.consume("q", "t")
    both.rest()
    last = peer.delete("q", if_unused=True, if_empty=True)
    both.link.close()
    return [refused, last, peer.delete("q", if_unused=True)]


def delete_while_messages_are_out(broker: Broker) -> Record:
    """Acks of what is gone are accepted."""
    peer = broker.peer()
    peer.queue("q")
    peer.fill("q", b"1", b"2")
    peer.get("q", no_ack=False)
    peer.get("q", no_ack=False)
    deleted = peer.delete("q")
    peer.ack(1)
    peer.nack(2)
    return [deleted, peer.sync(), peer.rest()]


def max_queues_of_a_vhost(broker: Broker) -> Record:
    vhost = broker.vhost("limited")
    broker.permit("guest", ".*", ".*", ".*", vhost)
    broker.http("PUT", f"vhost-limits/{vhost}/max-queues", {"value": 1})
    peer = broker.peer(vhost=vhost)
    first = peer.rpc(spec.Queue.Declare(queue="a"), spec.Queue.DeclareOk)
    again = peer.rpc(spec.Queue.Declare(queue="a"), spec.Queue.DeclareOk)
    second = peer.rpc(spec.Queue.Declare(queue="b", exclusive=True), spec.Queue.DeclareOk)
    return [first, again, second]


def queue_expires_unless_used(broker: Broker) -> Record:
    """Publishing is no use; a passive declare and a get are."""
    peer = broker.peer()
    for name in ("published", "asked", "got"):
        peer.queue(name, {"x-expires": 2000})
    for _ in range(6):
        time.sleep(0.4)  # six times: longer than the lease, each shorter than it
        peer.publish("", "published", b"x")
        peer.passive("asked")
        peer.get("got")
    used = [peer.passive(name) for name in ("asked", "got")]
    return [used, broker.wait_gone("queues/%2F/published"), peer.passive("published")]


def queue_does_not_expire_while_consumed(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q", {"x-expires": 1500})
    peer.consume("q", "t")
    time.sleep(2)  # longer than the lease: the queue must still be there
    still = peer.passive("q")
    peer.cancel("t")
    return [still, broker.wait_gone("queues/%2F/q"), peer.passive("q")]
