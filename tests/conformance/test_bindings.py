"""Exchanges of each type, bindings of both kinds, and transactions, as the newer suites list them.

Source: RabbitMQ's exchange, binding and transaction suites (after 3.10).
"""

from __future__ import annotations

from collections.abc import Callable

import pytest
from pika import BasicProperties, ConnectionParameters
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from tests.support.black_box import (
    channel_error,
    drop,
    get_all,
    get_one,
    publish,
    queue_of,
    ready,
    wait_ready,
)
from tests.support.broker_process import BrokerProcess, Target

Declare = Callable[..., str]
Connect = Callable[..., BlockingConnection]


def reached(channel: BlockingChannel, exchange: str, key: str, *queues: str) -> list[int]:
    """Publish once and return which of the queues have it."""
    channel.basic_publish(exchange, key, b"x")
    channel.basic_qos(prefetch_count=0)
    return [number for number, queue in enumerate(queues) if get_all(channel, queue)]


def listed(broker: Target, queue: str) -> list[list[str]]:
    """The rows of list_bindings for one queue, the implicit one left out."""
    lines = broker.ctl("-s", "list_bindings", "source_name", "destination_name", "routing_key")
    rows = [line.split("\t") for line in lines.splitlines()]
    return sorted([source, key] for source, name, key in rows if name == queue and source)


@pytest.mark.parametrize(
    ("kind", "key", "hits"),
    [
        ("direct", "a.b", [0]),
        ("direct", "a", []),
        ("topic", "a.b", [0, 1]),
        ("fanout", "z", [0, 1]),
    ],
)
def test_types(
    channel: BlockingChannel, exchange: Declare, kind: str, key: str, hits: list[int]
) -> None:
    source = exchange(kind)
    queues = [queue_of(channel), queue_of(channel)]
    for queue, binding_key in zip(queues, ("a.b", "*.#"), strict=True):
        channel.queue_bind(queue, source, binding_key)
    assert reached(channel, source, key, *queues) == hits


def test_binding_twice_is_one_binding(
    broker: Target, channel: BlockingChannel, exchange: Declare
) -> None:
    source, queue = exchange("direct"), queue_of(channel)
    for _ in range(2):
        channel.queue_bind(queue, source, "k")
    assert listed(broker, queue) == [[source, "k"]]
    channel.basic_publish(source, "k", b"x")
    wait_ready(channel, queue, 1)
    channel.queue_unbind(queue, source, "k")
    assert listed(broker, queue) == []
    channel.basic_publish(source, "k", b"x")
    assert get_all(channel, queue) == [b"x"]


def test_several_keys_are_several_bindings_and_one_copy(
    broker: Target, channel: BlockingChannel, exchange: Declare
) -> None:
    source, queue = exchange("topic"), queue_of(channel)
    for key in ("a.*", "#", "*.b"):
        channel.queue_bind(queue, source, key)
    assert listed(broker, queue) == [[source, "#"], [source, "*.b"], [source, "a.*"]]
    publish_key(channel, source, "a.b")
    assert get_all(channel, queue) == [b"x"]
    channel.queue_unbind(queue, source, "#")
    publish_key(channel, source, "c")
    publish_key(channel, source, "a.c")
    assert get_all(channel, queue) == [b"x"]


def publish_key(channel: BlockingChannel, exchange: str, key: str) -> None:
    channel.basic_publish(exchange, key, b"x")
    channel.basic_qos(prefetch_count=0)


def test_arguments_are_part_of_a_binding(channel: BlockingChannel, exchange: Declare) -> None:
    source, queue = exchange("headers"), queue_of(channel)
    for value in ("1", "2"):
        channel.queue_bind(queue, source, "", {"x-match": "all", "n": value})
    channel.queue_unbind(queue, source, "", {"x-match": "all", "n": "2"})
    channel.queue_unbind(queue, source, "", {"x-match": "all", "n": "3"})  # not bound: no error
    publish_headers(channel, source, {"n": "1"})
    publish_headers(channel, source, {"n": "2"})
    assert get_all(channel, queue) == [b"1"]


def test_a_binding_may_have_as_many_arguments_as_a_frame_holds(
    channel: BlockingChannel, exchange: Callable[[str], str]
) -> None:
    source, queue = exchange("headers"), queue_of(channel)
    arguments = {f"a{number}": str(number) for number in range(1100)}
    channel.queue_bind(queue, source, arguments=arguments)
    publish_headers(channel, source, {**arguments, "n": "1"})
    publish_headers(channel, source, {**arguments, "n": "2", "a7": "other"})
    assert get_all(channel, queue) == [b"1"]


def publish_headers(channel: BlockingChannel, exchange: str, headers: dict[str, str]) -> None:
    channel.basic_publish(exchange, "", headers["n"].encode(), BasicProperties(headers=headers))
    channel.basic_qos(prefetch_count=0)


def test_a_deleted_queue_takes_its_bindings_along(
    channel: BlockingChannel, exchange: Declare, name: str
) -> None:
    source = exchange("direct")
    channel.queue_declare(name)
    channel.queue_bind(name, source, "k")
    channel.queue_delete(name)
    channel.queue_declare(name, auto_delete=True, exclusive=True)
    assert reached(channel, source, "k", name) == []


def test_a_deleted_exchange_takes_its_bindings_along(
    broker: Target, channel: BlockingChannel, exchange: Declare
) -> None:
    source, queue = exchange("direct"), queue_of(channel)
    channel.queue_bind(queue, source, "k")
    channel.exchange_delete(source)
    assert listed(broker, queue) == []
    channel.exchange_declare(source, "direct")
    assert reached(channel, source, "k", queue) == []


@pytest.mark.parametrize("kind", ["queue", "exchange"])
def test_unknown_ends_of_a_binding_are_404(channel: BlockingChannel, name: str, kind: str) -> None:
    with channel_error(404, f"no {kind} '{name}' in vhost '/'"):
        if kind == "queue":
            channel.queue_bind(name, "amq.direct", "k")
        else:
            channel.exchange_bind(name, "amq.direct", "k")


def test_the_default_exchange_cannot_be_bound(channel: BlockingChannel) -> None:
    queue = queue_of(channel)
    with channel_error(403, "operation not permitted on the default exchange"):
        channel.queue_bind(queue, "", "k")


def test_exchange_bindings_come_and_go(channel: BlockingChannel, exchange: Declare) -> None:
    source, middle, queue = exchange("topic"), exchange("fanout"), queue_of(channel)
    channel.queue_bind(queue, middle)
    channel.exchange_bind(middle, source, "a.#")
    assert reached(channel, source, "a.b", queue) == [0]
    assert reached(channel, source, "b", queue) == []
    channel.exchange_unbind(middle, source, "a.#")
    assert reached(channel, source, "a.b", queue) == []


@pytest.mark.slow
def test_bindings_between_durable_things_come_back(
    own_broker: Callable[..., BrokerProcess],
) -> None:
    node = own_broker()
    parameters = ConnectionParameters("127.0.0.1", node.amqp_port, heartbeat=0)
    connection = BlockingConnection(parameters)
    channel = connection.channel()
    channel.queue_declare("durable", durable=True)
    channel.queue_declare("transient")
    for exchange, durable in (("dx", True), ("tx", False)):
        channel.exchange_declare(exchange, "direct", durable=durable)
        channel.queue_bind("durable", exchange, "k")
    channel.queue_bind("transient", "dx", "k")
    node.kill()
    drop(connection)
    node.start()
    lines = node.ctl("-s", "list_bindings", "source_name", "destination_name").splitlines()
    assert sorted(lines) == ["\tdurable", "dx\tdurable"]


# -- transactions ------------------------------------------------------------------------------------------------


def test_what_is_published_is_seen_after_the_commit(connect: Connect) -> None:
    connection = connect()
    channel, other = connection.channel(), connection.channel()
    queue = queue_of(channel)
    channel.tx_select()
    publish(channel, queue, b"1", b"2")
    assert ready(other, queue) == 0
    channel.tx_commit()
    assert get_all(other, queue) == [b"1", b"2"]


def test_returns_come_at_the_commit(channel: BlockingChannel, name: str) -> None:
    returned: list[bytes] = []
    channel.add_on_return_callback(lambda _c, _m, _p, body: returned.append(body))
    channel.tx_select()
    channel.basic_publish("", f"{name}.none", b"1", mandatory=True)
    channel.connection.process_data_events(0.05)
    assert returned == []
    channel.tx_commit()
    channel.connection.process_data_events(0.05)
    assert returned == [b"1"]


def test_acks_are_undone_by_a_rollback_and_done_by_a_commit(connect: Connect) -> None:
    connection = connect()
    channel, other = connection.channel(), connection.channel()
    queue = queue_of(channel)
    publish(channel, queue, b"1", b"2")
    channel.tx_select()
    tags = [get_one(channel, queue)[0].delivery_tag for _ in range(2)]
    channel.basic_ack(tags[0])
    channel.tx_rollback()
    channel.basic_ack(tags[1])
    channel.tx_commit()
    channel.close()
    wait_ready(other, queue, 1)
    assert get_all(other, queue) == [b"1"]
