"""basic.publish: routes, checks, returns, confirms, and the properties that matter on the way in."""

from __future__ import annotations

from typing import Any, cast

import pytest
from pika import BasicProperties, spec

from burrowmq.broker.channel.methods.publish import check_expiration
from burrowmq.broker.vhost import route_tables
from burrowmq.protocol.errors import PreconditionFailed
from tests.support.bench.broker import BrokerBench
from tests.support.bench.client import Client
from tests.support.wire_client import publish_bytes


def names(found: list[tuple[int, Any]]) -> list[str]:
    return [type(method).__name__ for _, method in found]


def with_queues(bench: BrokerBench, *queues: str, **arguments: Any) -> Client:
    client = bench.connect(1)
    for queue in queues:
        client.call(1, spec.Queue.Declare(queue=queue, arguments=arguments))
    return client


def counts(bench: BrokerBench) -> dict[str, int]:
    return {name: queue.ready_count for name, queue in bench.vhost.queues.items()}


def test_a_route_is_remembered_until_the_topology_changes():
    bench = BrokerBench()
    client = with_queues(bench, "a")
    client.call(1, spec.Queue.Bind(queue="a", exchange="amq.direct", routing_key="k"))
    client.send(publish_bytes(1, "amq.direct", "k", b"1"))
    channel = client.session.channels[1]
    assert len(channel.table.routes) == 1
    client.call(1, spec.Queue.Declare(queue="b"))
    client.call(1, spec.Queue.Bind(queue="b", exchange="amq.direct", routing_key="k"))
    client.send(publish_bytes(1, "amq.direct", "k", b"2"))
    assert counts(bench) == {"a": 2, "b": 1}


def test_a_permission_taken_away_counts_from_the_next_publish():
    bench = BrokerBench()
    client = with_queues(bench, "a")
    client.send(publish_bytes(1, "amq.fanout", "", b""))
    assert client.read() == []
    bench.auth.clear_permission("/", "guest")
    client.send(publish_bytes(1, "amq.fanout", "", b""))
    ((_, close),) = client.read()
    assert close.reply_code == 403


def test_mandatory_messages_come_back_before_their_confirm():
    bench = BrokerBench()
    client = with_queues(bench)
    client.call(1, spec.Confirm.Select())
    client.send(
        publish_bytes(1, "", "nobody", b"back", mandatory=True),
        publish_bytes(1, "", "nobody", b"dropped"),
    )
    found = client.read()
    assert names(found) == ["Return", "Ack"]
    assert (found[0][1].reply_code, found[0][1].reply_text, found[0][1].body) == (
        312,
        "NO_ROUTE",
        b"back",
    )
    assert found[1][1].delivery_tag == 2
    assert bench.metrics.messages_unroutable_returned == 1
    assert bench.metrics.messages_unroutable_dropped == 1


def test_refused_messages_are_nacked_in_their_places():
    bench = BrokerBench()
    client = with_queues(bench, "q", **{"x-max-length": 1, "x-overflow": "reject-publish"})
    client.call(1, spec.Confirm.Select())
    client.send(*[publish_bytes(1, "", "q", b"x")] * 3)
    found = client.read()
    assert [(type(m).__name__, m.delivery_tag) for _, m in found] == [("Ack", 1), ("Nack", 3)]


def test_immediate_is_no_more():
    client = BrokerBench().connect(1)
    client.send(publish_bytes(1, "", "q", b"", immediate=True))
    ((_, close),) = client.read()
    assert (close.reply_code, close.reply_text) == (540, "NOT_IMPLEMENTED - immediate=true")


def test_cc_and_bcc():
    bench = BrokerBench()
    client = with_queues(bench, "a", "b", "c", "d")
    headers = {"CC": ["b", "a"], "BCC": ["c"], "other": 1}
    client.send(publish_bytes(1, "", "a", b"x", properties=BasicProperties(headers=headers)))
    assert counts(bench) == {"a": 1, "b": 1, "c": 1, "d": 0}
    ((_, got),) = client.call(1, spec.Basic.Get(queue="c", no_ack=True))
    properties = BasicProperties()
    properties.decode(got.raw_header[12:])
    assert properties.headers == {"CC": ["b", "a"], "other": 1}


def test_routes_by_cc_are_forgotten_when_a_queue_comes_or_goes():
    """They would keep deleted queues in memory, or not know new ones: any header may have the name of any queue."""
    bench = BrokerBench()
    client = with_queues(bench)
    for _ in range(3):
        for queue in ("a", "b"):
            client.call(1, spec.Queue.Declare(queue=queue))
        properties = BasicProperties(headers={"CC": ["b"]})
        client.send(publish_bytes(1, "", "a", b"x", properties=properties) * 2)
        assert counts(bench) == {"a": 2, "b": 2}
        for queue in ("a", "b"):
            client.call(1, spec.Queue.Delete(queue=queue))
    assert not bench.vhost.route_tables.size_bytes


def test_a_queue_that_comes_is_reached_by_a_cc_header_that_was_met_before():
    bench = BrokerBench()
    client = with_queues(bench, "a")
    properties = BasicProperties(headers={"CC": ["b"]})
    client.send(publish_bytes(1, "", "a", b"x", properties=properties) * 2)
    client.call(1, spec.Queue.Declare(queue="b"))
    client.send(publish_bytes(1, "", "a", b"x", properties=properties) * 2)
    assert counts(bench) == {"a": 4, "b": 2}


def test_what_cc_leads_to_is_remembered_within_the_limit_of_all_routes(monkeypatch):
    monkeypatch.setattr(route_tables, "LIMIT_BYTES", 20_000)
    bench = BrokerBench()
    client = with_queues(bench, "a", "b")
    for number in range(400):
        headers = BasicProperties(headers={"CC": ["b", f"none-{number}"]})
        client.send(publish_bytes(1, "", "a", b"x", properties=headers))
        assert bench.vhost.route_tables.size_bytes <= 20_000 + 1000
    assert counts(bench) == {"a": 400, "b": 400}


def test_bcc_leaves_the_header_of_a_direct_reply_too():
    bench = BrokerBench()
    client = with_queues(bench, "a", "b")
    client.call(1, spec.Basic.Consume(queue="amq.rabbitmq.reply-to", no_ack=True))
    properties = BasicProperties(headers={"BCC": ["b"]}, reply_to="amq.rabbitmq.reply-to")
    client.send(publish_bytes(1, "", "a", b"x", properties=properties))
    for queue in ("a", "b"):
        ((_, got),) = client.call(1, spec.Basic.Get(queue=queue, no_ack=True))
        found = BasicProperties()
        found.decode(got.raw_header[12:])
        assert found.headers == {}
        assert cast("str", found.reply_to).startswith("amq.rabbitmq.reply-to.")


@pytest.mark.parametrize(
    ("properties", "text"),
    [
        (
            {"user_id": "somebody"},
            "user_id property set to 'somebody' but authenticated user was 'guest'",
        ),
        ({"expiration": "soon"}, "invalid expiration 'soon': no_integer"),
        (
            {"headers": {"CC": None}},
            'invalid message: {unacceptable_type_in_header,"CC",void}',
        ),
        (
            {"headers": {"CC": "text"}},
            'invalid message: {unacceptable_type_in_header,"CC",longstr}',
        ),
        ({"reply_to": "amq.rabbitmq.reply-to"}, "fast reply consumer does not exist"),
    ],
)
def test_refused_properties(properties, text):
    client = BrokerBench().connect(1)
    client.send(publish_bytes(1, "", "q", b"", properties=BasicProperties(**properties)))
    ((_, close),) = client.read()
    assert (close.reply_code, close.reply_text) == (406, f"PRECONDITION_FAILED - {text}")


def test_ones_own_user_id_and_expiration_pass():
    bench = BrokerBench()
    client = with_queues(bench, "q")
    properties = BasicProperties(user_id="guest", expiration="60000")
    client.send(publish_bytes(1, "", "q", b"", properties=properties))
    assert (client.read(), counts(bench)) == ([], {"q": 1})


def test_a_reply_address_becomes_the_requesters_own():
    bench = BrokerBench()
    client = with_queues(bench, "q")
    client.call(1, spec.Basic.Consume(queue="amq.rabbitmq.reply-to", consumer_tag="r", no_ack=True))
    properties = BasicProperties(reply_to="amq.rabbitmq.reply-to")
    client.send(publish_bytes(1, "", "q", b"", properties=properties))
    ((_, got),) = client.call(1, spec.Basic.Get(queue="q", no_ack=True))
    found = BasicProperties()
    found.decode(got.raw_header[12:])
    assert found.reply_to == client.session.channels[1].reply_target.key.decode()


def test_only_those_that_need_a_look_leave_the_run_and_order_stays():
    """Plain, odd but valid, user_id, CC, plain again: one read, every queue in the order of publishing."""
    bench = BrokerBench()
    client = with_queues(bench, "a", "b")
    client.call(1, spec.Confirm.Select())
    each = [
        {}, {"expiration": "5000"}, {"expiration": "+5000"}, {"user_id": "guest"}, {"priority": 9},
        {"headers": {"CC": ["b"]}}, {"reply_to": "somebody"}, {"expiration": "000000000005000"}, {},
    ]  # fmt: skip
    client.send(
        *(
            publish_bytes(1, "", "a", b"%d" % number, properties=BasicProperties(**properties))
            for number, properties in enumerate(each)
        )
    )
    ((_, ack),) = client.read()
    assert (ack.delivery_tag, ack.multiple) == (len(each), True)
    found = client.call(1, spec.Basic.Consume(queue="a", no_ack=True))
    got = [(method.body, method.redelivered) for _, method in found if hasattr(method, "body")]
    assert got == [(b"%d" % number, False) for number in range(len(each))]
    assert counts(bench)["b"] == 1


def test_what_comes_before_a_refused_property_is_published_what_comes_after_is_not():
    bench = BrokerBench()
    client = with_queues(bench, "a")
    wrong = BasicProperties(expiration="soon")
    client.send(
        publish_bytes(1, "", "a", b"0"),
        publish_bytes(1, "", "a", b"1", properties=BasicProperties(expiration="9")),
        publish_bytes(1, "", "a", b"2", properties=wrong),
        publish_bytes(1, "", "a", b"3"),
    )
    ((_, close),) = client.read()
    assert close.reply_text == "PRECONDITION_FAILED - invalid expiration 'soon': no_integer"
    assert counts(bench) == {"a": 2}


def test_a_headers_exchange_looks_at_each_message():
    bench = BrokerBench()
    client = with_queues(bench, "even", "odd")
    for queue, value in (("even", 0), ("odd", 1)):
        client.call(
            1, spec.Queue.Bind(queue=queue, exchange="amq.headers", arguments={"parity": value})
        )
    client.send(
        *[
            publish_bytes(
                1, "amq.headers", "", b"", properties=BasicProperties(headers={"parity": n % 2})
            )
            for n in range(5)
        ]
    )
    assert counts(bench) == {"even": 3, "odd": 2}


@pytest.mark.parametrize("text", ["0", "+5", "-0", "315360000000"])
def test_good_expirations(text):
    check_expiration(text)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "no_integer"),
        ("-", "no_integer"),
        ("1x", '{leftover_string,"x"}'),
        ("1.5", '{leftover_string,".5"}'),
        ("1\x7f", "{leftover_string,[127]}"),
        ("1\t\x01", "{leftover_string,[9,1]}"),
        ('1"\n', '{leftover_string,"\\"\\n"}'),
        ("1\xe9", '{leftover_string,"\xe9"}'),
        ("1\U0001f600", "{leftover_string,[240,159,152,128]}"),
        ("-1", "{value_negative,-1}"),
        ("315360000001", "{value_too_large,315360000001}"),
        ("9" * 18, "{value_too_large," + "9" * 18 + "}"),
        ("9" * 19, "{value_too_large,\n" + " " * 43 + "9" * 19 + "}"),
    ],
)
def test_bad_expirations(text, reason):
    with pytest.raises(PreconditionFailed) as caught:
        check_expiration(text)
    assert caught.value.text == f"invalid expiration '{text}': {reason}"
