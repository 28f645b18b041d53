"""A run with several addresses means the same as its messages one by one: for queues, returns, confirms and errors."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from pika import BasicProperties, spec

from burrowmq.broker.exchange.binding import Edge
from burrowmq.protocol.table import FieldTable
from tests.support.bench.broker import BrokerBench
from tests.support.wire_client import method_bytes, publish_bytes

QUEUES: dict[str, FieldTable] = {
    "a": {},
    "b": {"x-max-length": 2},
    "c": {"x-max-length": 2, "x-overflow": "reject-publish"},
    "d": {"x-max-priority": 3},
    "e": {"x-max-length-bytes": 3, "x-overflow": "reject-publish", "x-dead-letter-exchange": ""},
}
BINDINGS = [
    ("a", "amq.topic", "k.#"),
    ("b", "amq.topic", "k.1"),
    ("c", "amq.topic", "*.2"),
    ("d", "amq.topic", "#"),
    ("a", "amq.direct", "1"),
    ("c", "amq.direct", "2"),
    ("b", "amq.fanout", ""),
    ("d", "amq.fanout", ""),
]
ADDRESSES = [
    ("", "a"), ("", "c"), ("", "e"), ("", "nobody"), ("amq.topic", "k.1"), ("amq.topic", "k.2"),
    ("amq.topic", "x.2"), ("amq.topic", ""), ("amq.direct", "1"), ("amq.direct", "2"),
    ("amq.direct", "3"), ("amq.fanout", "any"), ("amq.headers", "h"),
]  # fmt: skip
BAD = [("missing", "k"), ("amq.rabbitmq.trace", "k")]

one = st.tuples(
    st.sampled_from(ADDRESSES),
    st.booleans(),
    st.sampled_from([None, {"priority": 2}, {"expiration": "0"}, {"headers": {"CC": ["a"]}}, {"reply_to": "r"},
                     {"headers": {"n": 1}}, {"headers": {"n": 2, "other": "x"}}]),
    st.integers(0, 3),
)  # fmt: skip
runs = st.lists(one, min_size=1, max_size=25)


class Side:
    """A broker with the queues, a publisher, and what each was given."""

    def __init__(self, mode: str, *, persistent: bool, has_consumer: bool) -> None:
        self.bench = BrokerBench()
        self.delivery_mode = 2 if persistent else 1
        self.client = client = self.bench.connect(1)
        for name, arguments in QUEUES.items():
            self.bench.queue(name, durable=True, arguments=arguments)
        for queue, exchange, key in BINDINGS:
            self.bench.vhost.bind(Edge(exchange, "queue", queue, key.encode(), {}))
        self.bench.vhost.bind(Edge("amq.headers", "queue", "a", b"", {"CC": ["a"]}))
        self.bench.vhost.bind(Edge("amq.headers", "queue", "d", b"", {"n": 1}))
        self.bench.vhost.bind(Edge("amq.headers", "exchange", "amq.topic", b"", {"n": 2}))
        self.consumer = self.bench.connect(1)
        if has_consumer:
            self.consumer.call(1, spec.Basic.Qos(prefetch_count=3))
            for name in ("a", "c"):
                self.consumer.call(1, spec.Basic.Consume(queue=name, consumer_tag=name))
        if mode == "confirm":
            client.call(1, spec.Confirm.Select())
        if mode == "tx":
            client.call(1, spec.Tx.Select())
        self.mode = mode

    def octets(self, number: int, sent: Any) -> bytes:
        (exchange, key), mandatory, known, size = sent
        properties = BasicProperties(
            delivery_mode=self.delivery_mode, message_id=str(number), **(known or {})
        )
        return publish_bytes(
            1, exchange, key, b"x" * size, properties=properties, mandatory=mandatory
        )

    def end(self) -> None:
        if self.mode == "tx":
            self.client.send(method_bytes(1, spec.Tx.Commit()))
        self.bench.run()
        while self.bench.engine.in_flight is not None:
            self.bench.commit()

    def outcome(self) -> dict[str, Any]:
        """What is where, what came back, and what was answered to each publish."""
        answered: dict[int, str] = {}
        last = 0
        returned = []
        closed = []
        for _, method in self.client.read():
            name = method.NAME
            if name in ("Basic.Ack", "Basic.Nack"):
                first = last + 1 if method.multiple else method.delivery_tag
                for number in range(first, method.delivery_tag + 1):
                    answered.setdefault(number, name)
                last = max(last, method.delivery_tag)
            elif name == "Basic.Return":
                assert not answered, "returns come before confirms"
                returned.append((method.exchange, method.routing_key, method.raw_header))
            elif name == "Channel.Close":
                closed.append(method.reply_text)
        delivered: dict[str, list[Any]] = {}
        for _, method in self.consumer.read():
            delivered.setdefault(method.consumer_tag, []).append(
                (method.routing_key, method.raw_header, method.body)
            )
        vhost = self.bench.vhost
        return {
            "ready": {name: ready(self.bench, name) for name in QUEUES},
            "counts": {
                name: (queue.ready_count, queue.ready_bytes, queue.unacked_count)
                for name, queue in vhost.queues.items()
            },
            "in": {each.name: (each.publish_in, each.publish_out) for each in vhost.exchanges.values()},
            "answered": answered,
            "returned": returned,
            "closed": closed,
            "delivered": delivered,
        }  # fmt: skip


def ready(bench: BrokerBench, name: str) -> list[tuple[bytes, bytes]]:
    """(header, body) of all that basic.get finds, in its order."""
    client = bench.connect(1)
    found = []
    while True:
        ((_, method),) = client.call(1, spec.Basic.Get(queue=name, no_ack=True))
        if method.NAME == "Basic.GetEmpty":
            return found
        found.append((method.raw_header, method.body))


def compare(run: list[Any], mode: str, *, persistent: bool, has_consumer: bool) -> None:
    results = []
    for is_whole in (True, False):
        side = Side(mode, persistent=persistent, has_consumer=has_consumer)
        pieces = [side.octets(number, sent) for number, sent in enumerate(run)]
        if is_whole:
            side.client.send(*pieces)
        else:
            for piece in pieces:
                side.client.session.receive(piece)
            side.bench.run()
        side.end()
        results.append(side.outcome())
    whole, single = results
    assert whole == single


@settings(max_examples=60)
@given(runs, st.sampled_from(["plain", "confirm", "tx"]), st.booleans(), st.booleans())
def test_a_mixed_run_means_the_same_as_single_messages(run, mode, persistent, has_consumer):
    compare(run, mode, persistent=persistent, has_consumer=has_consumer)


@settings(max_examples=20)
@given(runs, st.sampled_from(BAD), runs, st.sampled_from(["plain", "confirm"]))
def test_what_comes_before_a_bad_address_is_published(before, bad, after, mode):
    run = [*before, (bad, False, None, 1), *after]
    compare(run, mode, persistent=True, has_consumer=False)
