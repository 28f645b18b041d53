"""Publishers, consumers and declarers that keep a broker busy until it is killed under them.

State: each client thread owns one socket; what it learns goes to sets that only it writes until it
has ended. Callers: kill_cycles. Invariants: a lost connection ends a client quietly; anything else
(a close frame, a nack) is an error that the cycle reports.
"""

from __future__ import annotations

import base64
import http.client
import json
import random
import struct
import threading
from collections.abc import Iterable, Sequence

import pika
from pika import spec

from tests.crash.journal import QueueLedger, make_body, read_body
from tests.support.wire_client import (
    BODY,
    HEADER,
    METHOD,
    Closed,
    WireClient,
    frame,
    header_bytes,
    method_bytes,
)

PERSISTENT = pika.BasicProperties(delivery_mode=2)
ACK, NACK, DELIVER = (60, 80), (60, 120), (60, 60)
LARGEST_FRAME = 131072 - 8


def persistent_publish(exchange: str, routing_key: str, body: bytes) -> bytes:
    """Return the frames of a persistent publish on channel 1, cut to the usual frame size."""
    publish = spec.Basic.Publish(exchange=exchange, routing_key=routing_key)
    pieces = [method_bytes(1, publish), header_bytes(1, len(body), PERSISTENT)]
    pieces += [
        frame(BODY, 1, body[start : start + LARGEST_FRAME])
        for start in range(0, len(body), LARGEST_FRAME)
    ]
    return b"".join(pieces)


class Client(threading.Thread):
    """A thread with a connection; `problem` says what went wrong, if anything but the kill."""

    def __init__(self, port: int) -> None:
        super().__init__(daemon=True)
        self.port = port
        self.problem: str | None = None
        self.stopping = threading.Event()

    def run(self) -> None:
        try:
            with WireClient("127.0.0.1", self.port) as client:
                client.open().channel(1)
                self.work(client)
        except (Closed, OSError):
            return
        except AssertionError as error:
            self.problem = f"{type(self).__name__}: {error}"

    def work(self, client: WireClient) -> None:
        """Do this client's work until stopped or cut off."""
        raise NotImplementedError


class Publisher(Client):
    """Publishes numbered bodies with confirms, at most `window` of them unconfirmed."""

    def __init__(
        self, port: int, identity: int, exchange: str, sizes: Sequence[int], window: int = 300
    ) -> None:
        super().__init__(port)
        self.identity = identity
        self.exchange = exchange
        self.sizes = sizes
        self.window = window
        self.published = 0
        self.confirmed: set[tuple[int, int]] = set()

    def work(self, client: WireClient) -> None:
        client.send_method(1, spec.Confirm.Select())
        client.expect(spec.Confirm.SelectOk)
        waiting: set[int] = set()
        source = random.Random(self.identity)
        while not self.stopping.is_set():
            batch = []
            while len(waiting) < self.window and len(batch) < 50:
                self.published += 1
                waiting.add(self.published)
                body = make_body(self.identity, self.published, source.choice(self.sizes))
                batch.append(persistent_publish(self.exchange, "", body))
            client.send(*batch)
            self._read_confirm(client, waiting)
        while waiting:
            self._read_confirm(client, waiting)

    def _read_confirm(self, client: WireClient, waiting: set[int]) -> None:
        kind, _, payload = client.read_frame(30)
        if kind != METHOD:
            return
        ids = struct.unpack_from(">HH", payload)
        assert ids == ACK, f"publisher got {ids}: {payload[:80]!r}"
        (tag, flags) = struct.unpack_from(">QB", payload, 4)
        covered = [n for n in waiting if n <= tag] if flags & 1 else [tag]
        waiting.difference_update(covered)
        self.confirmed.update((self.identity, number) for number in covered)


class Consumer(Client):
    """Consumes with acks, leaving some deliveries unacked for a while."""

    def __init__(self, port: int, queue: str, ledger: QueueLedger, prefetch: int = 100) -> None:
        super().__init__(port)
        self.queue = queue
        self.ledger = ledger
        self.prefetch = prefetch

    def work(self, client: WireClient) -> None:
        client.send_method(1, spec.Basic.Qos(prefetch_count=self.prefetch))
        client.expect(spec.Basic.QosOk)
        client.send_method(1, spec.Basic.Consume(queue=self.queue))
        client.expect(spec.Basic.ConsumeOk)
        held: list[tuple[int, int]] = []
        while not self.stopping.is_set():
            try:
                method, _, body = client.read_content(0.2)
            except TimeoutError:
                continue
            identity = read_body(body)
            assert identity is not None, f"corrupt body of {len(body)} bytes in {self.queue}"
            self.ledger.delivered.add(identity)
            held.append(identity)
            if len(held) >= self.prefetch // 2:
                client.send_method(1, spec.Basic.Ack(method.delivery_tag, multiple=True))
                self.ledger.acked.update(held)
                held.clear()


class Declarer(Client):
    """Declares, binds and deletes durable things all the time; what was answered must hold."""

    def __init__(self, port: int, prefix: str) -> None:
        super().__init__(port)
        self.prefix = prefix
        self.declared: list[str] = []
        self.deleted: list[str] = []

    def work(self, client: WireClient) -> None:
        number = 0
        while not self.stopping.is_set():
            number += 1
            queue = f"{self.prefix}.{number}"
            client.declare(1, queue, durable=True)
            client.send_method(
                1, spec.Queue.Bind(queue=queue, exchange="amq.topic", routing_key="a")
            )
            client.expect(spec.Queue.BindOk)
            self.declared.append(queue)
            if number % 2:
                # Between request and answer the deletion may or may not have happened.
                self.declared.remove(queue)
                client.send_method(1, spec.Queue.Delete(queue=queue))
                client.expect(spec.Queue.DeleteOk)
                self.deleted.append(queue)


class Flipper(Client):
    """Changes the version of all queues back and forth by policy, so that they are always being converted."""

    def __init__(self, management_port: int, pause_s: float) -> None:
        super().__init__(management_port)
        self.pause_s = pause_s
        self.flips = 0

    def run(self) -> None:
        try:
            while not self.stopping.wait(self.pause_s):
                set_version(self.port, 1 + self.flips % 2)
                self.flips += 1
        except (OSError, http.client.HTTPException):
            return
        except AssertionError as error:
            self.problem = f"{type(self).__name__}: {error}"


def set_version(management_port: int, version: int) -> None:
    """Set the policy that gives every queue this version."""
    connection = http.client.HTTPConnection("127.0.0.1", management_port, timeout=30)
    token = base64.b64encode(b"guest:guest").decode()
    body = json.dumps({"pattern": ".*", "definition": {"queue-version": version}, "priority": 0})
    try:
        headers = {"Authorization": f"Basic {token}", "Content-Type": "application/json"}
        connection.request("PUT", "/api/policies/%2F/version", body, headers)
        status = connection.getresponse().status
    finally:
        connection.close()
    assert status in (201, 204), f"the policy was answered with {status}"


def drain(client: WireClient, queue: str) -> list[tuple[tuple[int, int] | None, bool]]:
    """Take everything out of a queue; [(identity or None when corrupt, redelivered)]."""
    client.send_method(1, spec.Queue.Declare(queue=queue, passive=True))
    count = client.expect(spec.Queue.DeclareOk).message_count
    taken: list[tuple[tuple[int, int] | None, bool]] = []
    client.send_method(1, spec.Basic.Qos(prefetch_count=2000))
    client.expect(spec.Basic.QosOk)
    client.send_method(1, spec.Basic.Consume(queue=queue, consumer_tag="drain"))
    client.expect(spec.Basic.ConsumeOk)
    last_tag = 0
    while len(taken) < count:
        redelivered, last_tag, body = _fast_content(client)
        taken.append((read_body(body), redelivered))
        if len(taken) % 500 == 0:
            client.send_method(1, spec.Basic.Ack(last_tag, multiple=True))
    if last_tag:
        client.send_method(1, spec.Basic.Ack(0, multiple=True))
    client.send_method(1, spec.Basic.Cancel(consumer_tag="drain"))
    client.expect(spec.Basic.CancelOk)
    client.send_method(1, spec.Queue.Declare(queue=queue, passive=True))
    assert client.expect(spec.Queue.DeclareOk).message_count == 0
    return taken


def _fast_content(client: WireClient) -> tuple[bool, int, bytes]:
    """Read one delivery without pika's decoding, which would be the limit of a big drain."""
    kind, _, payload = client.read_frame(60)
    assert kind == METHOD
    assert struct.unpack_from(">HH", payload) == DELIVER, payload[:60]
    at = 5 + payload[4]
    tag, redelivered = struct.unpack_from(">Q?", payload, at)
    kind, _, payload = client.read_frame(60)
    assert kind == HEADER
    (size,) = struct.unpack_from(">Q", payload, 4)
    body = bytearray()
    while len(body) < size:
        _, _, piece = client.read_frame(60)
        body += piece
    return redelivered, tag, bytes(body)


def stop_all(clients: Iterable[Client]) -> list[str]:
    """Stop and join; return the problems that were none of the kill's."""
    for client in clients:
        client.stopping.set()
    for client in clients:
        client.join(60)
    return [client.problem for client in clients if client.problem]
