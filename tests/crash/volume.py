"""Fills and drains queues by the hundred thousand, fast enough that the broker is the limit.

State: none but the sockets. Callers: headline, back_pressure, compaction and their tests.
Invariants: bodies are self-describing (journal.make_body), so a drain proves content and order.
"""

from __future__ import annotations

import contextlib
import itertools
import struct
import time
from collections.abc import Callable, Iterator

from pika import spec

from tests.crash.journal import make_body, read_body
from tests.crash.load import persistent_publish
from tests.support.broker_process import BrokerProcess
from tests.support.wire_client import METHOD, Closed, WireClient

DELIVER = b"\x00\x3c\x00\x3c"
GET_OK = b"\x00\x3c\x00\x47"
START_TIMEOUT_S = 120.0


def connect(node: BrokerProcess) -> WireClient:
    """Return a raw client with channel 1 open."""
    return WireClient("127.0.0.1", node.amqp_port).open().channel(1)


def ping(client: WireClient) -> None:
    """Make a round trip on channel 1."""
    client.send_method(1, spec.Basic.Qos(prefetch_count=0))
    client.expect(spec.Basic.QosOk, 120)


def fill(
    client: WireClient, count: int, size: int, queue_of: Callable[[int], str], window: int = 4000
) -> float:
    """Publish `count` persistent bodies with confirms; return the seconds it took."""
    client.send_method(1, spec.Confirm.Select())
    client.expect(spec.Confirm.SelectOk)
    began = time.monotonic()
    confirmed = sent = 0
    while confirmed < count:
        batch = []
        while sent < count and sent - confirmed < window and len(batch) < 500:
            sent += 1
            batch.append(persistent_publish("", queue_of(sent), make_body(0, sent, size)))
        if batch:
            client.send(*batch)
        if sent - confirmed >= window or sent == count:
            confirmed = max(confirmed, _confirmed_up_to(client))
    return time.monotonic() - began


def _confirmed_up_to(client: WireClient) -> int:
    """Read one ack; a broker that confirms out of order only slows the window down."""
    kind, _, payload = client.read_frame(120)
    assert kind == METHOD
    assert payload[:4] == b"\x00\x3c\x00\x50", f"expected an ack, got {payload[:60]!r}"
    return int(struct.unpack_from(">Q", payload, 4)[0])


def deliveries(client: WireClient, timeout_s: float = 60.0) -> Iterator[tuple[int, bytes]]:
    """Yield (delivery tag, body) of each delivery that comes."""
    while True:
        kind, _, payload = client.read_frame(timeout_s)
        assert kind == METHOD
        assert payload[:4] == DELIVER, f"expected a delivery, got {payload[:60]!r}"
        (tag,) = struct.unpack_from(">Q", payload, 5 + payload[4])
        _, _, header = client.read_frame(timeout_s)
        (size,) = struct.unpack_from(">Q", header, 4)
        pieces = []
        while size > 0:
            _, _, piece = client.read_frame(timeout_s)
            pieces.append(piece)
            size -= len(piece)
        yield tag, b"".join(pieces)


def drain_in_order(
    client: WireClient, queue: str, numbers: Iterator[int] | range, *, acks: bool = True
) -> int:
    """Consume and check that exactly these numbers come, in order and whole; return how many."""
    client.send_method(1, spec.Basic.Qos(prefetch_count=2000))
    client.expect(spec.Basic.QosOk)
    client.send_method(1, spec.Basic.Consume(queue=queue, no_ack=not acks, consumer_tag="d"))
    client.expect(spec.Basic.ConsumeOk)
    return check_in_order(client, numbers, acks=acks)


def check_in_order(client: WireClient, numbers: Iterator[int] | range, *, acks: bool) -> int:
    """Read deliveries and compare them with the numbers expected."""
    taken = 0
    tag = 0
    source = deliveries(client)
    for number in numbers:
        tag, body = next(source)
        assert read_body(body) == (0, number), f"expected {number}, got {body[:16]!r}"
        taken += 1
        if acks and taken % 500 == 0:
            client.send_method(1, spec.Basic.Ack(tag, multiple=True))
    if acks and tag:
        client.send_method(1, spec.Basic.Ack(0, multiple=True))
    client.send_method(1, spec.Basic.Cancel(consumer_tag="d"))
    client.expect(spec.Basic.CancelOk)
    return taken


def start_to_first_get(node: BrokerProcess, queue: str) -> float:
    """Start the node; return the seconds from exec to the first basic.get-ok."""
    began = time.monotonic()
    node.spawn()
    for _ in itertools.count():
        assert time.monotonic() < began + START_TIMEOUT_S, node.log_of_this_start()[-2000:]
        assert node.is_alive, node.log_of_this_start()[-2000:]
        with (
            contextlib.suppress(Closed, OSError),
            WireClient("127.0.0.1", node.amqp_port) as client,
        ):
            client.open().channel(1)
            client.send_method(1, spec.Basic.Get(queue=queue))
            method, _, _ = client.read_content(60)
            assert isinstance(method, spec.Basic.GetOk)
            taken = time.monotonic() - began
            client.send_method(1, spec.Basic.Nack(method.delivery_tag, requeue=True))
            client.close()
            return taken
        time.sleep(0.002)
    raise AssertionError("unreachable")
