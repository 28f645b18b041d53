"""Classic queues at another front-end, with servers in memory; real ones are in tests/cluster.

Covers: broker/replicated/homes.py, broker/replicated/forwarding.py
"""

from __future__ import annotations

import json

import pytest
from pika import BasicProperties, spec

from burrowmq.broker.replicated.homes import HOMES
from burrowmq.cluster.wire import encode_publish
from tests.support.bench.client import Client
from tests.support.cluster_bench import ClusterBench
from tests.support.front_ends_bench import FrontEnds, confirming, declare_queue, homes, say
from tests.support.wire_client import publish_bytes

PERSISTENT = BasicProperties(delivery_mode=2)


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> FrontEnds:
    return FrontEnds(monkeypatch)


def publish(client: Client, key: str, *bodies: bytes, **options: bool) -> None:
    client.send(*[publish_bytes(1, "", key, body, **options) for body in bodies])


def made(ends: FrontEnds, bench: ClusterBench, name: str = "q", **options: object) -> Client:
    """Its client."""
    client = bench.connect(1)
    say(client, spec.Queue.Declare(queue=name, **options))
    ends.settle()
    assert client.names() == ["Queue.DeclareOk"]
    return client


def test_a_publish_elsewhere_is_in_the_queue_when_it_is_confirmed(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    client = made(ends, one, exclusive=True)
    other = confirming(two)
    publish(other, "q", b"a", b"b")
    assert other.names() == []
    ends.settle()
    assert other.names() == ["Basic.Ack"]
    assert one.vhost.queues["q"].ready_count == 2
    say(client, spec.Basic.Get(queue="q", no_ack=True))
    ends.settle()
    ((_, got),) = client.read()
    assert got.body == b"a"


def test_a_confirm_waits_for_the_homes_disk(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    made(ends, one, durable=True)
    other = confirming(two)
    one.refused.add(("/", "q"))
    other.send(publish_bytes(1, "", "q", b"a", properties=PERSISTENT))
    ends.settle(7.0)
    assert other.names() == ["Basic.Nack"], "what the disk has refused is not said to be stored"
    one.refused.clear()
    other.send(publish_bytes(1, "", "q", b"a", properties=PERSISTENT))
    ends.settle()
    assert other.names() == ["Basic.Ack"]


def test_what_the_queue_refuses_is_nacked(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    limit = {"x-max-length": 1, "x-overflow": "reject-publish"}
    made(ends, one, arguments=limit)
    other = confirming(two)
    publish(other, "q", b"a", b"b", b"c")
    ends.settle()
    found = {(m.NAME, m.delivery_tag) for _, m in other.read()}
    assert found == {("Basic.Ack", 1), ("Basic.Nack", 3)}
    assert one.vhost.queues["q"].ready_count == 1


def test_who_waits_for_direct_replies_has_them_from_anywhere(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    client = one.connect(1)
    consume = spec.Basic.Consume(queue="amq.rabbitmq.reply-to", no_ack=True)
    say(client, consume)
    declare_queue(client, "rpc")
    ends.settle()
    client.read()
    asking = BasicProperties(reply_to="amq.rabbitmq.reply-to")
    request = publish_bytes(1, "", "rpc", b"?", properties=asking)
    client.send(request)
    worker = two.connect(1)
    say(worker, spec.Basic.Consume(queue="rpc", consumer_tag="w", no_ack=True))
    ends.settle()
    (asked,) = [m for _, m in worker.read() if m.NAME == "Basic.Deliver"]
    assert asked.body == b"?"
    properties = BasicProperties()
    properties.decode(asked.raw_header[12:])
    assert properties.reply_to is not None
    publish(worker, properties.reply_to, b"!")
    ends.settle()
    assert [m.body for _, m in client.read() if m.NAME == "Basic.Deliver"] == [b"!"]
    client.lose()
    ends.settle()
    assert homes(two).elsewhere_count == 0


def test_what_nobody_has_is_returned_and_a_queue_that_comes_is_found(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    other = confirming(two)
    publish(other, "q", b"a", mandatory=True)
    ends.settle()
    assert other.names() == ["Basic.Return", "Basic.Ack"]
    client = made(ends, one)
    publish(other, "q", b"b", mandatory=True)
    ends.settle()
    assert other.names() == ["Basic.Ack"]
    say(client, spec.Queue.Delete(queue="q"))
    ends.settle()
    publish(other, "q", b"c", mandatory=True)
    ends.settle()
    assert other.names() == ["Basic.Return", "Basic.Ack"]


@pytest.mark.parametrize(
    "method",
    [
        spec.Basic.Consume(queue="q"),
        spec.Basic.Get(queue="q"),
        spec.Queue.Declare(queue="q", durable=True),
        spec.Queue.Declare(queue="q", passive=True),
    ],
    ids=lambda method: method.NAME,
)
def test_what_is_not_possible_from_elsewhere_is_told_where_it_is(
    ends: FrontEnds, method: object
) -> None:
    one, two = ends.start(), ends.start()
    made(ends, one, durable=True)
    assert two.connect(1).refused(1, method) == (
        404,
        "NOT_FOUND - home node 'rabbit@test' of durable queue 'q' in vhost '/' is down or"
        " inaccessible",
    )


def test_a_home_that_is_silent_is_forgotten_and_what_it_was_sent_is_nacked(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    made(ends, one)
    other = confirming(two)
    ends.benches.remove(one)
    one.own_link.is_open = False  # it does not know yet
    publish(other, "q", b"a")
    ends.settle(7.0)
    assert other.names() == ["Basic.Nack"]
    publish(other, "q", b"b", mandatory=True)
    ends.settle()
    assert other.names() == ["Basic.Return", "Basic.Ack"]
    assert made(ends, two, durable=True), "the name is free"


def test_a_home_that_stops_says_so(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    made(ends, one)
    assert homes(two).elsewhere_count == 1
    homes(one).cluster_closing()
    ends.settle()
    assert homes(two).elsewhere_count == 0


def test_who_comes_later_or_has_missed_something_learns_all(ends: FrontEnds) -> None:
    one = ends.start()
    for number in range(3):
        made(ends, one, f"q{number}")
    two = ends.start()
    assert homes(two).elsewhere_count == 3
    homes(one)._number += 1  # one that has not come
    made(ends, one, "q3")
    ends.settle()
    assert homes(two).elsewhere_count == 4
    one.own_link.lose()
    made(ends, one, "q4")
    one.own_link.open()
    ends.settle()
    assert homes(two).elsewhere_count == 5
    assert homes(one).here_count == 5


def test_a_queue_here_comes_before_one_elsewhere(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    for bench in (one, two):
        say(bench.connect(1), spec.Queue.Declare(queue="q"))  # at once: neither knows of the other
    ends.settle()
    other = confirming(two)
    publish(other, "q", b"a")
    ends.settle()
    assert other.names() == ["Basic.Ack"]
    assert two.vhost.queues["q"].ready_count == 1


@pytest.mark.parametrize("payload", [b"", b"{", b"[]", b"{}", b'{"who": "z", "n": 1, "add": [[]]}'])
def test_what_others_write_there_harms_nobody(ends: FrontEnds, payload: bytes) -> None:
    one, two = ends.start(), ends.start()
    made(ends, one)
    one.own_link.write(encode_publish(HOMES, payload))
    token = two.front_end.token
    one.own_link.write(encode_publish(b"burrowmq.home." + token, payload))
    one.own_link.write(encode_publish(b"burrowmq.home." + token, b"\1\0\0\0\0" + payload))
    one.own_link.write(encode_publish(b"burrowmq.home." + token, b"\1\0\0\0\0\0\0"))
    ends.settle()
    assert homes(two).elsewhere_count == 1
    assert json.dumps(payload.decode())


@pytest.mark.parametrize(
    "said",
    [
        {"who": "x", "n": 1, "all": []},
        {"who": "x", "n": 1, "all": [[]]},
        {"who": "x", "n": float("inf"), "all": [["n"]]},
        {"who": "x", "n": 1, "all": [["n"]], "add": [["/", "q", "d"]], "bind": [5]},
        {"who": "x", "n": 1, "all": [["n"]], "last": [], "add": [["/", "\ud800", "r"]]},
    ],
)
def test_what_makes_no_sense_costs_no_other_message(ends: FrontEnds, said: object) -> None:
    one, two = ends.start(), ends.start()
    made(ends, one, name="mine")
    failures: list[BaseException] = []
    two.replication.front_end.failed = failures.append  # type: ignore[method-assign]
    one.replication.front_end.write(encode_publish(HOMES, json.dumps(said).encode()))
    ends.settle(1.5)
    assert failures == []
    assert homes(two).elsewhere_count >= 1


def test_servers_that_take_little_are_told_in_small_parts(ends: FrontEnds) -> None:
    ends.world.payload_max = 2_000
    one = ends.start()
    client = one.connect(1)
    client.call(1, spec.Exchange.Declare(exchange="local", type="direct"))
    for number in range(100):
        client.call(1, spec.Queue.Declare(queue=f"a-queue-{number:03}"))
        client.call(
            1, spec.Queue.Bind(queue=f"a-queue-{number:03}", exchange="local", routing_key="k")
        )
    two = ends.start()
    ends.settle(1.0)
    assert homes(two).elsewhere_count == 100
    client.call(1, spec.Exchange.Delete(exchange="local"))
    ends.settle(1.0)
    assert ends.world.end_count == 0, "the connection stays"


def test_a_binding_that_the_servers_do_not_take_stays_here_and_is_told(ends: FrontEnds) -> None:
    ends.world.payload_max = 2_000
    one, two = ends.start(), ends.start()
    client = one.connect(1)
    client.call(1, spec.Queue.Declare(queue="q"))
    large = {"x": "a" * 2_000}
    client.call(1, spec.Exchange.Declare(exchange="local", type="headers"))
    client.call(1, spec.Queue.Bind(queue="q", exchange="local", arguments=large))
    client.call(1, spec.Queue.Bind(queue="q", exchange="local", arguments={"x": "b"}))
    ends.settle(2.0)
    assert ends.world.end_count == 0, "the connection stays"
    ((kind, key, reason),) = one.observer.named("definition_not_shared")
    assert (kind, key) == ("binding", '["/","local","queue","q"]')
    assert reason.endswith(" octets, and the servers take 2000")
    two.connect(1).call(1, spec.Exchange.Declare(exchange="local", type="headers"))
    other = confirming(two)
    for headers in ({"x": "b"}, large):
        properties = BasicProperties(headers=headers)
        other.send(publish_bytes(1, "local", "", b"m", properties=properties, mandatory=True))
    ends.settle(0.2)
    assert sorted(other.names()) == ["Basic.Ack", "Basic.Ack", "Basic.Return"]


def test_who_stood_still_does_not_take_its_peers_for_gone(ends: FrontEnds) -> None:
    """Timers are due before sockets are read, in which the peers' beats lie."""
    one, two = ends.start(), ends.start()
    made(ends, one)
    other = confirming(two)
    one.settle(7)  # it goes on, and says so
    two.loop.now_s += 7.0
    two.loop.run()
    publish(other, "q", b"a", mandatory=True)
    ends.settle(1)
    assert other.names() == ["Basic.Ack"]
    assert one.vhost.queues["q"].ready_count == 1
