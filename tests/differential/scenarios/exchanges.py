"""exchange.declare, delete, bind and unbind; alternates, internal and auto-delete exchanges."""

from __future__ import annotations

from typing import Any

from tests.differential.broker import Broker
from tests.differential.peer import Peer
from tests.support.field_table import Typed

Record = Any


def _arrivals(peer: Peer, *queues: str) -> Record:
    return {queue: peer.drain(queue) for queue in queues}


def declare_every_type(broker: Broker) -> Record:
    peer = broker.peer()
    return [peer.exchange(f"x.{kind}", kind) for kind in ("direct", "fanout", "topic", "headers")]


def declare_an_unknown_type(broker: Broker) -> Record:
    """A word of no other scenario: the Erlang node must not have met it."""
    return broker.peer().exchange("x", "unheard-of")


def declare_a_name_that_is_no_exchange_type(broker: Broker) -> Record:
    """A word that the Erlang node knows, but not as a type."""
    return broker.peer().exchange("x", "queue")


def declare_the_default_exchange(broker: Broker) -> Record:
    peer = broker.peer()
    return [peer.exchange("", "direct"), peer.exchange("", "direct", passive=True)]


def declare_a_reserved_name(broker: Broker) -> Record:
    peer = broker.peer()
    return [
        peer.exchange("amq.mine", "direct"),
        peer.exchange("amq.mine", "direct", passive=True),
        peer.exchange("amq.", "direct"),
        peer.exchange("amqp.fine", "direct"),
    ]


def redeclare_predeclared_exchanges(broker: Broker) -> Record:
    peer = broker.peer()
    return [
        *(
            peer.exchange(f"amq.{name}", kind, durable=True)
            for name, kind in (
                ("direct", "direct"),
                ("fanout", "fanout"),
                ("topic", "topic"),
                ("headers", "headers"),
                ("match", "headers"),
            )
        ),
        peer.exchange("amq.direct", "fanout", durable=True),
        peer.exchange("amq.direct", "direct"),
        peer.exchange("amq.rabbitmq.trace", "topic", durable=True, internal=True),
        peer.exchange("amq.rabbitmq.trace", "topic", durable=True),
    ]


def redeclare_with_another_type(broker: Broker) -> Record:
    peer = broker.peer()
    return [peer.exchange("x", "direct"), peer.exchange("x", "fanout"), peer.exchange("x", "none")]


def redeclare_with_other_flags(broker: Broker) -> Record:
    peer = broker.peer()
    return [
        peer.exchange("x", "direct"),
        peer.exchange("x", "direct", durable=True),
        peer.exchange("x", "direct", auto_delete=True),
        peer.exchange("x", "direct", internal=True),
        peer.exchange("x", "direct", durable=True, auto_delete=True, internal=True),
    ]


def redeclare_with_another_alternate(broker: Broker) -> Record:
    peer = broker.peer()
    return [
        peer.exchange("x", "direct", {"alternate-exchange": "a"}),
        peer.exchange("x", "direct"),
        peer.exchange("x", "direct", {"alternate-exchange": "b"}),
        peer.exchange("x", "direct", {"alternate-exchange": Typed("x", b"a")}),
        peer.exchange("x", "direct", {"alternate-exchange": "a", "foo": 1}),
        peer.exchange("y", "direct"),
        peer.exchange("y", "direct", {"alternate-exchange": "a"}),
    ]


def alternate_of_a_wrong_type(broker: Broker) -> Record:
    peer = broker.peer()
    values = (1, True, None, [1], {"a": 1}, b"x", 1.5, Typed("T", 5))
    return [peer.exchange("x", "direct", {"alternate-exchange": each}) for each in values]


def other_arguments_are_ignored(broker: Broker) -> Record:
    peer = broker.peer()
    return [peer.exchange("x", "direct", {"foo": 1}), peer.exchange("x", "direct", {"bar": "a"})]


def passive_declare_looks_at_the_name_only(broker: Broker) -> Record:
    peer = broker.peer()
    return [
        peer.exchange("none", "direct", passive=True),
        peer.exchange("x", "direct"),
        peer.exchange("x", "direct", passive=True, durable=True),
        peer.exchange("x", "fanout", passive=True),
    ]


def passive_declare_of_an_unknown_type(broker: Broker) -> Record:
    return broker.peer().exchange("amq.direct", "nonsense", passive=True)


def line_breaks_in_names_are_removed(broker: Broker) -> Record:
    peer = broker.peer()
    return [
        peer.exchange("x\r\ny", "direct"),
        peer.exchange("xy", "direct", passive=True),
        peer.declare("q\n1"),
        peer.passive("q1"),
        peer.bind("q\r1", "x\ny", "k"),
    ]


def delete_what_is_not_there(broker: Broker) -> Record:
    peer = broker.peer()
    return [peer.delete_exchange("none"), peer.delete_exchange("none", if_unused=True)]


def delete_system_exchanges(broker: Broker) -> Record:
    peer = broker.peer()
    names = ("", "amq.direct", "amq.nothing", "amq.rabbitmq.trace")
    return [peer.delete_exchange(name) for name in names]


def delete_if_unused_counts_bindings_as_source_only(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("x", "direct")
    peer.exchange("y", "direct")
    peer.bind_exchange("x", "y", "k")
    in_use = peer.delete_exchange("y", if_unused=True)
    return [
        in_use,
        peer.delete_exchange("x", if_unused=True),
        peer.delete_exchange("y", if_unused=True),
    ]


def delete_removes_bindings(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("x", "direct")
    peer.queue("q")
    peer.bind("q", "x", "k")
    peer.delete_exchange("x")
    peer.exchange("x", "direct")
    peer.publish("x", "k", b"1", mandatory=True)
    peer.sync()
    return [peer.rest(), peer.ready("q")]


def internal_exchanges_take_no_publishes(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("x", "fanout", internal=True)
    peer.publish("x", "k", b"1")
    first = peer.sync()
    peer.publish("amq.rabbitmq.trace", "k", b"1")
    return [first, peer.sync()]


def internal_exchanges_take_what_other_exchanges_pass_on(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("x", "fanout", internal=True)
    peer.exchange("y", "fanout")
    peer.bind_exchange("x", "y")
    peer.queue("q")
    peer.bind("q", "x")
    peer.publish("y", "k", b"1")
    peer.wait_ready("q", 1)
    return peer.get("q")


def auto_delete_goes_with_its_last_binding(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("x", "direct", auto_delete=True)
    peer.queue("q")
    peer.bind("q", "x", "a")
    peer.bind("q", "x", "b")
    first = peer.unbind("q", "x", "a")
    still = peer.exchange("x", "direct", passive=True)
    second = peer.unbind("q", "x", "b")
    return [first, still, second, peer.exchange("x", "direct", passive=True)]


def auto_delete_without_a_binding_stays(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("x", "direct", auto_delete=True)
    peer.queue("q")
    peer.unbind("q", "x", "a")
    return peer.exchange("x", "direct", passive=True)


def auto_delete_goes_with_its_queue(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("x", "direct", auto_delete=True)
    peer.queue("q")
    peer.bind("q", "x", "a")
    peer.delete("q")
    return peer.exchange("x", "direct", passive=True)


def auto_delete_cascades_upstream(broker: Broker) -> Record:
    peer = broker.peer()
    for name in ("x", "y", "z"):
        peer.exchange(name, "fanout", auto_delete=True)
    peer.bind_exchange("y", "x")
    peer.bind_exchange("z", "y")
    peer.queue("q")
    peer.bind("q", "z")
    peer.unbind("q", "z")
    return [peer.exchange(name, "fanout", passive=True) for name in ("x", "y", "z")]


def auto_delete_counts_no_binding_as_destination(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("x", "fanout")
    peer.exchange("y", "fanout", auto_delete=True)
    peer.bind_exchange("y", "x")
    peer.unbind_exchange("y", "x")
    return peer.exchange("y", "fanout", passive=True)


def bind_errors_name_the_source_first(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("x", "direct")
    peer.queue("q")
    return [
        peer.bind("none", "nox"),
        peer.bind("none", "x"),
        peer.bind("q", "nox"),
        peer.bind_exchange("nox", "nox2"),
        peer.bind_exchange("nox", "x"),
        peer.bind_exchange("x", "nox"),
    ]


def bindings_of_the_default_exchange_are_refused(broker: Broker) -> Record:
    peer = broker.peer()
    peer.queue("q")
    peer.exchange("x", "direct")
    return [
        peer.bind("q", "", "k"),
        peer.bind("q", "", "q"),
        peer.unbind("q", "", "q"),
        peer.bind_exchange("x", ""),
        peer.bind_exchange("", "x"),
        peer.unbind_exchange("x", ""),
    ]


def unbind_what_is_not_there(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("x", "direct")
    peer.queue("q")
    return [
        peer.unbind("none", "nox"),
        peer.unbind("q", "nox"),
        peer.unbind("none", "x"),
        peer.unbind("q", "x", "k"),
        peer.unbind_exchange("nox", "nox2"),
        peer.unbind_exchange("x", "amq.direct", "k"),
    ]


def unbind_needs_the_same_arguments(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("x", "direct")
    peer.queue("q")
    peer.bind("q", "x", "k", {"a": 1})
    replies = [peer.unbind("q", "x", "k")]
    peer.publish("x", "k", b"1")
    replies += [peer.wait_ready("q", 1), peer.unbind("q", "x", "k", {"a": 1})]
    peer.publish("x", "k", b"2")
    peer.sync("q")
    return [*replies, peer.drain("q")]


def the_order_of_binding_arguments_does_not_matter(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("x", "direct")
    peer.queue("q")
    peer.bind("q", "x", "k", {"a": 1, "b": 2})
    peer.bind("q", "x", "k", {"b": 2, "a": 1})
    peer.unbind("q", "x", "k", {"b": 2, "a": 1})
    peer.publish("x", "k", b"1")
    peer.sync("q")
    return peer.drain("q"), peer.ready("q")


def an_exchange_may_be_bound_to_itself(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("x", "fanout")
    replies = [peer.bind_exchange("x", "x", "k")]
    peer.queue("q")
    peer.bind("q", "x")
    peer.publish("x", "", b"1")
    peer.sync("q")
    return [*replies, peer.drain("q")]


def a_cycle_of_exchanges_delivers_once(broker: Broker) -> Record:
    peer = broker.peer()
    for name in ("x", "y", "z"):
        peer.exchange(name, "fanout")
    for source, destination in (("x", "y"), ("y", "z"), ("z", "x")):
        peer.bind_exchange(destination, source)
    for queue, source in (("qx", "x"), ("qz", "z")):
        peer.queue(queue)
        peer.bind(queue, source)
    peer.publish("y", "", b"1")
    peer.wait_ready("qx", 1)
    peer.wait_ready("qz", 1)
    return _arrivals(peer, "qx", "qz")


def exchange_bindings_filter_by_the_source_type(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("t", "topic")
    peer.exchange("d", "direct")
    peer.bind_exchange("d", "t", "a.#")
    peer.queue("q")
    peer.bind("q", "d", "a.b")
    for key in ("a.b", "a.c", "b.b"):
        peer.publish("t", key, key.encode())
    peer.sync("q")
    return peer.drain("q")


def alternates_take_what_has_no_route(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("ae", "fanout")
    peer.exchange("x", "direct", {"alternate-exchange": "ae"})
    for queue in ("q", "other"):
        peer.queue(queue)
    peer.bind("q", "x", "k")
    peer.bind("other", "ae")
    peer.publish("x", "k", b"routed")
    peer.publish("x", "none", b"alternate", mandatory=True)
    peer.wait_ready("other", 1)
    return [peer.rest(), peer.get("q"), peer.get("other")]


def alternates_form_chains(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("c", "fanout")
    peer.exchange("b", "direct", {"alternate-exchange": "c"})
    peer.exchange("a", "direct", {"alternate-exchange": "b"})
    peer.queue("q")
    peer.bind("q", "c")
    peer.publish("a", "k", b"1")
    peer.wait_ready("q", 1)
    return peer.get("q")


def alternates_in_a_loop_end(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("a", "direct", {"alternate-exchange": "b"})
    peer.exchange("b", "direct", {"alternate-exchange": "a"})
    peer.confirm()
    peer.publish("a", "k", b"1", mandatory=True)
    return peer.take(2)


def an_alternate_that_is_missing_is_no_route(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("a", "direct", {"alternate-exchange": "nowhere"})
    peer.publish("a", "k", b"1", mandatory=True)
    return peer.take(1)


def the_alternate_of_an_exchange_behind_a_binding_counts(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("ae", "fanout")
    peer.exchange("down", "direct", {"alternate-exchange": "ae"})
    peer.exchange("up", "fanout")
    peer.bind_exchange("down", "up")
    peer.queue("q")
    peer.bind("q", "ae")
    peer.publish("up", "k", b"1", mandatory=True)
    peer.wait_ready("q", 1)
    return [peer.rest(), peer.drain("q")]


def an_alternate_is_not_used_when_a_binding_leads_to_another_exchange(broker: Broker) -> Record:
    """The bound exchange routes nowhere, but the source had a route."""
    peer = broker.peer()
    peer.exchange("ae", "fanout")
    peer.exchange("up", "fanout", {"alternate-exchange": "ae"})
    peer.exchange("down", "direct")
    peer.bind_exchange("down", "up")
    peer.queue("q")
    peer.bind("q", "ae")
    peer.publish("up", "k", b"1", mandatory=True)
    return [peer.take(1), peer.ready("q")]


def an_alternate_by_policy(broker: Broker) -> Record:
    peer = broker.peer()
    peer.exchange("x", "direct")
    peer.queue("q")
    peer.bind("q", "amq.fanout")
    reply = broker.policy("ae", "^x$", {"alternate-exchange": "amq.fanout"}, apply_to="exchanges")
    peer.publish("x", "k", b"1", mandatory=True)
    peer.wait_ready("q", 1)
    return [reply, peer.rest(), peer.get("q")]


def exchange_objects_over_http(broker: Broker) -> Record:
    peer = broker.peer()
    arguments = {"alternate-exchange": "amq.fanout", "foo": 5}
    peer.exchange("x", "topic", arguments, durable=True, auto_delete=True)
    names = ("name", "vhost", "type", "durable", "auto_delete", "internal", "arguments")
    found = broker.fields("exchanges/%2F/x", *names, "user_who_performed_action")
    return [found, broker.http("GET", "exchanges/%2F/none")]
