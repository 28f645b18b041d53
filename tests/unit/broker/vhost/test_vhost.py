"""burrowmq.broker.vhost.vhost: names, bindings, routes remembered, auto-delete, rows."""

from __future__ import annotations

from typing import Any

import pytest
from pika import spec

from burrowmq.broker.exchange import TYPES
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.broker.rules.policy import Policy
from burrowmq.broker.vhost import invariants as vhost_invariants
from burrowmq.broker.vhost.route_tables import RouteTable
from burrowmq.broker.vhost.router import Route
from burrowmq.broker.vhost.vhost import Edge, ExchangeDeclaration, Vhost
from burrowmq.protocol.codec import body_bytes, join_address
from burrowmq.protocol.errors import AccessRefused, NotFound, PreconditionFailed, ResourceLocked
from burrowmq.protocol.properties import Properties, rewrite
from tests.support.bench.broker import BrokerBench
from tests.support.messages import message

LOCKED = (
    "cannot obtain exclusive access to locked queue 'q' in vhost '/'. It could be originally"
    " declared on another connection or the exclusive property value does not match that of"
    " the original declaration."
)


def queue(vhost: Vhost, name: str = "q", **more: Any) -> Any:
    return vhost.declare_queue(QueueDeclaration(name=name, **more), more.get("owner"))


def publish(found: Queue, count: int = 1) -> None:
    run = [message(b"%d" % number, persistent=True) for number in range(count)]
    found.publish(run, run[0].flags, body_bytes(run))


def exchange(vhost: Vhost, name: str = "x", **more: Any) -> Any:
    return vhost.declare_exchange(ExchangeDeclaration(name=name, **more))


def edge(source: str, destination: str, key: bytes = b"", kind: Any = "queue") -> Edge:
    return Edge(source, kind, destination, key, {})


def resolve(
    vhost: Vhost, exchange_name: bytes, key: bytes, table: RouteTable | None = None
) -> Route:
    source = vhost.source(exchange_name.decode())
    return vhost.resolve(source, join_address(exchange_name, key), table or RouteTable())


def resolved(vhost: Vhost, exchange_name: bytes, key: bytes) -> list[str] | None:
    found = resolve(vhost, exchange_name, key).queues
    return None if found is None else sorted(each.name for each in found)


# -- routes -----------------------------------------------------------------------------------------------------------


def test_the_predeclared_exchanges() -> None:
    vhost = BrokerBench().vhost
    assert {name: (each.type, each.internal) for name, each in vhost.exchanges.items()} == {
        "": ("direct", False),
        "amq.direct": ("direct", False),
        "amq.fanout": ("fanout", False),
        "amq.topic": ("topic", False),
        "amq.headers": ("headers", False),
        "amq.match": ("headers", False),
        "amq.rabbitmq.trace": ("topic", True),
    }
    assert all(each.durable and not each.auto_delete for each in vhost.exchanges.values())


def test_a_missing_exchange() -> None:
    with pytest.raises(NotFound) as caught:
        BrokerBench().vhost.source("x")
    assert caught.value.text == "no exchange 'x' in vhost '/'"


def test_an_internal_exchange() -> None:
    with pytest.raises(AccessRefused) as caught:
        BrokerBench().vhost.source("amq.rabbitmq.trace")
    assert caught.value.text == (
        "cannot publish to internal exchange 'amq.rabbitmq.trace' in vhost '/'"
    )


def test_routes_are_remembered_until_something_changes() -> None:
    vhost = BrokerBench().vhost
    assert resolved(vhost, b"", b"q") == []
    address = join_address(b"", b"q")
    found = queue(vhost)
    assert resolved(vhost, b"", b"q") == ["q"]
    table = vhost.route_tables.of("guest", 1)
    for change in (
        lambda: vhost.bind(edge("amq.direct", "q", b"k")),
        lambda: vhost.unbind(edge("amq.direct", "q", b"k")),
        lambda: exchange(vhost),
        lambda: vhost.delete_exchange(vhost.exchange("x")),
        vhost.policies_changed,
        lambda: vhost.bind(edge("amq.direct", "q", b"k")),
        lambda: vhost.delete_queue(found),
    ):
        resolve(vhost, b"", b"q", table)
        assert address in table.routes
        change()
        assert not table.routes


def test_a_queue_without_bindings_that_comes_or_goes_concerns_its_name_alone() -> None:
    vhost = BrokerBench().vhost
    table = vhost.route_tables.of("guest", 1)
    queue(vhost)

    def remember(name: bytes) -> None:
        resolve(vhost, b"", name, table)

    remember(b"q")
    remember(b"late")
    late = queue(vhost, "late")
    assert list(table.routes) == [join_address(b"", b"q")]
    remember(b"late")
    assert table.routes[join_address(b"", b"late")].queues == (late,)
    vhost.delete_queue(late)
    assert list(table.routes) == [join_address(b"", b"q")]
    assert late not in {each for _, each in shared_ways(vhost)}
    taken = vhost.route_tables.size_bytes
    for _ in range(3):
        late = queue(vhost, "late")
        remember(b"late")
        vhost.delete_queue(late)
    assert vhost.route_tables.size_bytes == taken


def shared_ways(vhost: Vhost) -> list[tuple[Any, Any]]:
    """The queues in routes that are shared, with their exchanges."""
    return [(where, each) for where, queues in vhost.route_tables._routes for each in queues or ()]


def test_an_alternate_that_is_the_default_exchange_leads_nowhere() -> None:
    vhost = BrokerBench().vhost
    exchange(vhost, "x", type="direct", arguments={"alternate-exchange": ""})
    table = vhost.route_tables.of("guest", 1)
    assert resolved(vhost, b"x", b"late") == []
    resolve(vhost, b"x", b"late", table)
    queue(vhost, "late")
    assert list(table.routes) == [join_address(b"x", b"late")]
    assert resolved(vhost, b"x", b"late") == []


def test_a_headers_exchange_is_routed_message_by_message() -> None:
    vhost = BrokerBench().vhost
    assert resolved(vhost, b"amq.headers", b"k") is None
    assert resolve(vhost, b"amq.headers", b"k").exchange.name == "amq.headers"


def test_what_no_binding_asks_for_makes_no_difference_to_a_headers_exchange() -> None:
    vhost = BrokerBench().vhost
    found, other = queue(vhost), queue(vhost, "other")
    vhost.bind(Edge("amq.headers", "queue", "q", b"", {"n": 1}))
    headers = vhost.exchange("amq.headers")
    like = [
        rewrite(message(b"x"), Properties(headers={"n": 1, "id": number})) for number in range(50)
    ]
    assert {route.queues for route in vhost.resolve_by_headers(headers, like)} == {(found,)}
    assert len(vhost.route_tables.by_headers(headers)) == 1
    vhost.bind(Edge("amq.headers", "queue", "other", b"", {"id": 7}))
    routes = vhost.resolve_by_headers(headers, like)
    assert [route.queues == (found, other) for route in routes].index(True) == 7
    assert len(vhost.route_tables.by_headers(headers)) == 50


def test_direct_replies_are_asked_for_and_never_remembered() -> None:
    bench = BrokerBench()
    vhost = bench.vhost
    assert resolved(vhost, b"", b"amq.rabbitmq.reply-to.a.b") == []
    client = bench.connect(1)
    client.call(1, spec.Basic.Consume(queue="amq.rabbitmq.reply-to", no_ack=True))
    target = client.session.channels[1].reply_target
    assert target is not None
    assert resolve(vhost, b"", target.key).queues == (target,)
    assert resolved(vhost, b"", b"amq.rabbitmq.reply-to.none") == []
    table = vhost.route_tables.of("guest", 1)
    for key in (target.key, b"amq.rabbitmq.reply-to.none"):
        resolve(vhost, b"", key, table)
    assert not table.routes


# -- exchanges --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        (
            {"type": "direct"},
            {"type": "topic"},
            "'type' {}: received 'topic' but current is 'direct'",
        ),
        ({"durable": True}, {}, "'durable' {}: received 'false' but current is 'true'"),
        ({}, {"auto_delete": True}, "'auto_delete' {}: received 'true' but current is 'false'"),
        ({}, {"internal": True}, "'internal' {}: received 'true' but current is 'false'"),
        (
            {},
            {"arguments": {"alternate-exchange": "a"}},
            "'alternate-exchange' {}: received the value 'a' of type 'longstr' but current is none",
        ),
        (
            {"arguments": {"alternate-exchange": "a"}},
            {"arguments": {"alternate-exchange": "b"}},
            "'alternate-exchange' {}: received 'b' but current is 'a'",
        ),
    ],
)
def test_another_exchange_of_that_name(first: Any, second: Any, text: str) -> None:
    vhost = BrokerBench().vhost
    exchange(vhost, **first)
    with pytest.raises(PreconditionFailed) as caught:
        exchange(vhost, **second)
    assert caught.value.text == "inequivalent arg " + text.format("for exchange 'x' in vhost '/'")


def test_other_arguments_of_exchanges_do_not_count() -> None:
    vhost = BrokerBench().vhost
    first = exchange(vhost, arguments={"a": 1})
    assert exchange(vhost, arguments={"b": 2}) is first


def test_deleting_an_exchange_takes_its_bindings_both_ways() -> None:
    vhost = BrokerBench().vhost
    found = exchange(vhost)
    queue(vhost)
    vhost.bind(edge("x", "q"))
    vhost.bind(edge("amq.fanout", "x", kind="exchange"))
    vhost.delete_exchange(found)
    assert "x" not in vhost.exchanges
    assert not vhost.exchange("amq.fanout").bindings
    assert not list(vhost.bindings_to("queue", "q"))
    assert not vhost.graph._incoming


def test_if_unused_looks_at_bindings_from_it_only() -> None:
    vhost = BrokerBench().vhost
    found = exchange(vhost)
    queue(vhost)
    vhost.bind(edge("amq.fanout", "x", kind="exchange"))
    vhost.bind(edge("x", "q"))
    with pytest.raises(PreconditionFailed) as caught:
        vhost.delete_exchange(found, if_unused=True)
    assert caught.value.text == "exchange 'x' in vhost '/' in use"
    vhost.unbind(edge("x", "q"))
    vhost.delete_exchange(found, if_unused=True)
    assert "x" not in vhost.exchanges


def test_auto_delete_follows_the_last_binding_from_it() -> None:
    vhost = BrokerBench().vhost
    exchange(vhost, auto_delete=True)
    queue(vhost)
    vhost.bind(edge("amq.fanout", "x", kind="exchange"))
    vhost.unbind(edge("amq.fanout", "x", kind="exchange"))
    assert "x" in vhost.exchanges, "never had a binding from it"
    vhost.bind(edge("x", "q"))
    vhost.unbind(edge("x", "q"))
    assert "x" not in vhost.exchanges


def test_auto_delete_cascades_upstream() -> None:
    vhost = BrokerBench().vhost
    for name in ("a", "b", "c"):
        exchange(vhost, name, auto_delete=True, type="fanout")
    found = queue(vhost)
    vhost.bind(edge("a", "b", kind="exchange"))
    vhost.bind(edge("b", "c", kind="exchange"))
    vhost.bind(edge("c", "q"))
    vhost.delete_queue(found)
    assert not {"a", "b", "c"} & set(vhost.exchanges)
    assert not vhost.graph._incoming


def test_a_loop_of_auto_delete_exchanges_is_deleted_once() -> None:
    vhost = BrokerBench().vhost
    for name in ("a", "b"):
        exchange(vhost, name, auto_delete=True, type="fanout")
    vhost.bind(edge("a", "b", kind="exchange"))
    vhost.bind(edge("b", "a", kind="exchange"))
    vhost.bind(edge("a", "a", kind="exchange"))
    vhost.delete_exchange(vhost.exchange("a"))
    assert not {"a", "b"} & set(vhost.exchanges)
    assert not vhost.graph._incoming


# -- queues -----------------------------------------------------------------------------------------------------------


def test_a_missing_queue() -> None:
    with pytest.raises(NotFound) as caught:
        BrokerBench().vhost.queue("q")
    assert caught.value.text == "no queue 'q' in vhost '/'"


@pytest.mark.parametrize(
    ("first", "second", "text"),
    [
        ({"durable": True}, {}, "'durable' {}: received 'false' but current is 'true'"),
        ({}, {"auto_delete": True}, "'auto_delete' {}: received 'true' but current is 'false'"),
        (
            {"arguments": {"x-max-length": 1}},
            {},
            "'x-max-length' {}: received none but current is the value '1' of type 'signedint'",
        ),
    ],
)
def test_another_queue_of_that_name(first: Any, second: Any, text: str) -> None:
    vhost = BrokerBench().vhost
    queue(vhost, **first)
    with pytest.raises(PreconditionFailed) as caught:
        queue(vhost, **second)
    assert caught.value.text == "inequivalent arg " + text.format("for queue 'q' in vhost '/'")


@pytest.mark.parametrize(("first", "second"), [("me", "you"), ("me", None), (None, "me")])
def test_an_exclusive_queue_is_its_owners(first: str | None, second: str | None) -> None:
    vhost = BrokerBench().vhost
    queue(vhost, owner=first)
    with pytest.raises(ResourceLocked) as caught:
        queue(vhost, owner=second)
    assert caught.value.text == LOCKED


def test_the_owner_cannot_declare_it_not_exclusive() -> None:
    vhost = BrokerBench().vhost
    queue(vhost, owner="me")
    with pytest.raises(ResourceLocked):
        vhost.declare_queue(QueueDeclaration(name="q"), "me")
    assert queue(vhost, owner="me").name == "q"
    assert queue(vhost, owner="me", durable=True).durable is False


def test_an_owners_queues_are_known_until_they_are_deleted() -> None:
    vhost = BrokerBench().vhost
    mine = queue(vhost, "a", owner="me"), queue(vhost, "b", owner="me")
    queue(vhost, "c", owner="you")
    vhost.delete_queue(mine[0])
    assert vhost.exclusive_queues("me") == [mine[1]]
    vhost.delete_queue(mine[1])
    assert vhost.exclusive_queues("me") == []
    assert list(vhost.queues) == ["c"]
    vhost.delete_queue(vhost.queues["c"])
    assert not vhost._owned


def test_the_queue_limit_counts_new_queues_only() -> None:
    vhost = BrokerBench().vhost
    vhost.limits = {"max-queues": 1}
    queue(vhost)
    queue(vhost)
    with pytest.raises(PreconditionFailed) as caught:
        queue(vhost, "r")
    assert caught.value.text == "cannot declare queue 'r': queue limit in vhost '/' (1) is reached"


def test_deleting_twice_is_harmless() -> None:
    vhost = BrokerBench().vhost
    found = queue(vhost)
    publish(found, 3)
    assert vhost.delete_queue(found) == 3
    queue(vhost)
    assert vhost.delete_queue(found) == 0
    assert "q" in vhost.queues


def test_a_policy_changes_settings_and_alternates() -> None:
    vhost = BrokerBench().vhost
    found = queue(vhost, arguments={"x-max-length": 10})
    exchange(vhost)
    exchange(vhost, "y", arguments={"alternate-exchange": "mine"})
    definition: Any = {"max-length": 5, "alternate-exchange": "theirs"}
    vhost.policies.policies["p"] = Policy(name="p", pattern=".*", definition=definition)
    vhost.policies_changed()
    assert found.settings.max_length == 5
    assert vhost.exchange("x").alternate == "theirs"
    assert vhost.exchange("x").policy_name == "p"
    assert vhost.exchange("y").alternate == "mine"
    assert vhost.exchange("").alternate is None
    vhost.policies.policies.clear()
    vhost.policies_changed()
    assert found.settings.max_length == 10
    assert vhost.exchange("x").alternate is None


# -- bindings ---------------------------------------------------------------------------------------------------------


def test_binding_what_is_missing_names_the_source_first() -> None:
    vhost = BrokerBench().vhost
    for wrong, text in (
        (edge("x", "q"), "no exchange 'x' in vhost '/'"),
        (edge("amq.direct", "q"), "no queue 'q' in vhost '/'"),
        (edge("amq.direct", "y", kind="exchange"), "no exchange 'y' in vhost '/'"),
    ):
        with pytest.raises(NotFound) as caught:
            vhost.bind(wrong)
        assert caught.value.text == text


def test_binding_is_validated_and_exclusive_queues_are_locked() -> None:
    vhost = BrokerBench().vhost
    queue(vhost, owner="me")
    with pytest.raises(PreconditionFailed):
        vhost.bind(Edge("amq.headers", "queue", "q", b"", {"x-match": "foo"}), "me")
    with pytest.raises(ResourceLocked) as caught:
        vhost.bind(edge("amq.direct", "q"), "you")
    assert caught.value.text == LOCKED
    vhost.bind(edge("amq.direct", "q"), "me")
    with pytest.raises(ResourceLocked):
        vhost.unbind(edge("amq.direct", "q"), "you")


def test_unbinding_what_is_not_there_is_harmless() -> None:
    vhost = BrokerBench().vhost
    vhost.unbind(edge("x", "q"))
    vhost.unbind(edge("amq.direct", "q"))
    queue(vhost)
    vhost.bind(Edge("amq.direct", "queue", "q", b"k", {"a": 1}))
    vhost.unbind(Edge("amq.direct", "queue", "q", b"k", {"a": 2}))
    assert len(vhost.exchange("amq.direct").bindings) == 1


# -- rows -------------------------------------------------------------------------------------------------------------


def test_durable_things_are_rows_and_others_are_not() -> None:
    bench = BrokerBench(rows=())
    vhost = bench.make_vhost("/")
    rows = bench.engine.definitions
    exchange(vhost, "t")
    queue(vhost, "t")
    queue(vhost, "mine", durable=True, owner="me")
    vhost.bind(edge("amq.fanout", "t"))
    exchange(vhost, "d", durable=True)
    vhost.bind(edge("d", "t"))
    assert vhost.rows.staged == len(rows.changes) == 1
    queue(vhost, "d", durable=True)
    vhost.bind(edge("t", "d"))
    vhost.bind(edge("d", "d"))
    vhost.bind(edge("d", "d"))
    assert sorted(kind for kind, _ in rows.rows) == ["binding", "exchange", "queue"]
    vhost.delete_queue(vhost.queue("d"))
    assert [kind for kind, _ in rows.rows] == ["exchange"]
    vhost.delete_exchange(vhost.exchange("d"))
    assert not rows.rows


def test_a_durable_queue_whose_name_is_being_deleted_opens_its_storage_at_once() -> None:
    bench = BrokerBench()
    vhost, logs = bench.vhost, bench.engine.logs
    old = queue(vhost, "again", durable=True)
    assert "again" not in logs, "otherwise with its first message"
    publish(old)
    stored = logs["again"]
    vhost.delete_queue(old)
    again = queue(vhost, "again", durable=True)
    assert logs["again"] is not stored
    assert not logs["again"].is_deleted
    vhost.delete_queue(again)
    queue(vhost, "again")
    assert logs["again"].is_deleted, "nothing is stored of one that is not durable"
    queue(vhost, "other", durable=True)
    assert "other" not in logs


def test_a_row_is_unsynced_until_its_batch_is_on_disk() -> None:
    bench = BrokerBench()
    vhost, engine = bench.vhost, bench.engine
    assert not vhost.rows.is_unsynced()
    queue(vhost, durable=True)
    assert vhost.rows.is_unsynced()
    engine.require_sync()
    engine.hand_over()
    assert vhost.rows.is_unsynced(), "in flight"
    engine.commit()
    engine.require_sync()
    engine.hand_over()
    assert not vhost.rows.is_unsynced(), "the next one could begin"


@pytest.mark.parametrize("kind", sorted(TYPES))
def test_a_queue_that_takes_the_place_of_another_has_its_bindings_of_every_exchange(
    kind: str,
) -> None:
    bench = BrokerBench()
    vhost = bench.vhost
    old = queue(vhost, durable=True)
    queue(vhost, "other", durable=True)
    exchange(vhost, type=kind, durable=True)
    vhost.bind(edge("x", "q", b"1"))
    rows = dict(bench.engine.definitions.rows)
    found = vhost.exchanges["x"]

    def targets() -> set[object]:
        # A history is its exchange's own target.
        queues = vhost.route(found, (b"1",), Properties)
        return {each for each in queues if isinstance(each, Queue)}

    assert targets() == {old}
    new = vhost.make_successor(QueueDeclaration(name="q", durable=True))
    assert vhost.queues["q"] is old
    vhost.succeed(old, new)
    assert vhost.queues["q"] is new
    assert targets() == {new}
    assert vhost.route(vhost.exchanges[""], (b"q",), None) == (new,)
    vhost_invariants.verify(vhost)
    assert dict(bench.engine.definitions.rows) == rows, "what is stored stays"
    assert not old.is_deleted
    vhost.bind(edge("x", "other", b"1"))
    vhost.delete_queue(new)
    assert old.is_deleted, "what it had left goes with its successor"
    assert [each.destination.name for each in found.bindings] == ["other"]


def test_an_auto_delete_exchange_outlives_that() -> None:
    vhost = BrokerBench().vhost
    old = queue(vhost, durable=True)
    exchange(vhost, auto_delete=True)
    vhost.bind(edge("x", "q", b"k"))
    vhost.succeed(old, vhost.make_successor(QueueDeclaration(name="q", durable=True)))
    assert "x" in vhost.exchanges


def test_the_arguments_of_a_queue_that_was_succeeded_are_kept_with_the_new_one() -> None:
    bench = BrokerBench()
    old = queue(bench.vhost, durable=True, arguments={"x-max-length": 3})
    new = bench.vhost.make_successor(QueueDeclaration(name="q", durable=True))
    bench.vhost.succeed(old, new)
    bench.vhost.settle_succession(new, old.arguments)
    assert old.is_deleted
    for vhost in (bench.vhost, BrokerBench(bench.engine.definitions.load()).vhost):
        queue(vhost, durable=True)
        queue(vhost, durable=True, arguments={"x-max-length": 3})
        with pytest.raises(PreconditionFailed):
            queue(vhost, durable=True, arguments={"x-max-length": 4})
        vhost.delete_queue(vhost.queues["q"])
        queue(vhost, durable=True)
        with pytest.raises(PreconditionFailed):
            queue(vhost, durable=True, arguments={"x-max-length": 3})
