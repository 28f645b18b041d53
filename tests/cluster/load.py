"""Publishers and consumers of numbered messages that cost little, and go on at another front-end when theirs is gone.

They speak AMQP by themselves: a burst is one write of frames that are made beforehand but for the number, and deliveries are cut
out of what one read brings. A million messages in and out take some six seconds of a processor.

What became of what was not confirmed when a connection broke is not known: a publisher goes on with the next number.
State: each client is a thread with a connection; what it learns is in the ledgers (`tests.cluster.ledger`).
"""

from __future__ import annotations

import abc
import contextlib
import random
import select
import struct
import threading
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import pika
from pika import spec

from tests.cluster.ledger import Book, Ledger, now_ms
from tests.support.wire_client import (
    BODY,
    Closed,
    WireClient,
    header_bytes,
    method_bytes,
)

PERSISTENT = pika.BasicProperties(delivery_mode=2)
DELIVER, ACK, NACK = 60 << 16 | 60, 60 << 16 | 80, 60 << 16 | 120
ENDS = {
    10 << 16 | 50,
    20 << 16 | 40,
    60 << 16 | 30,
}  # connection.close, channel.close, basic.cancel
BROKEN = (Closed, OSError, AssertionError)
HEAD = struct.Struct(">BHI")
METHOD_ID = struct.Struct(">I")
TAG_AND_BIT = struct.Struct(">QB")
IDENTITY = struct.Struct(">II")
ONE_ACK = struct.Struct(">BHIIQBB")
DOUBT_S = 1.0
"""What a client sends so shortly before its connection breaks may not have come."""
SEND_S = 60.0
LAST_S = 40.0
"""When it is over what is not answered is waited for: a front-end gives up after 30 s."""


def filler(publisher: int, size: int) -> bytes:
    """What stands behind the identity in a body of this size."""
    return random.Random(publisher * 65_537 + size).randbytes(size - IDENTITY.size)


@dataclass(frozen=True)
class Pace:
    """How a publisher sends."""

    burst: int = 500
    window: int = 2_000
    rate: float = 1_000.0
    """Messages a second; what could not be sent for a while is made up for."""
    size: int = 64


class Client(threading.Thread, abc.ABC):
    """Goes from front-end to front-end, by their ports, from this one on."""

    def __init__(self, ports: Sequence[int], first: int, stays: bool) -> None:
        super().__init__(daemon=True)
        self._ports = ports
        self._turn = first
        self._stays = stays
        self.over = threading.Event()
        self.sessions = 0

    def run(self) -> None:
        while not self.over.is_set():
            port = self._ports[self._turn % len(self._ports)]
            with contextlib.suppress(*BROKEN), WireClient("127.0.0.1", port) as client:
                client.open().channel(1)
                self.sessions += 1
                self.serve(client)
            self._turn += not self._stays
            self.over.wait(0.1)

    @abc.abstractmethod
    def serve(self, client: WireClient) -> None:
        """Until it is over, or the connection breaks."""


class Frames:
    """Cuts what a connection brings into frames."""

    def __init__(self, client: WireClient) -> None:
        self._socket = client.socket
        self._socket.settimeout(SEND_S)
        self._rest = b""

    def read(self, seconds: float) -> list[tuple[int, bytes]]:
        """(kind, payload) of what is there, or comes within this time. Raises: Closed."""
        if not select.select([self._socket], [], [], max(0.0, seconds))[0]:
            return []
        found = self._socket.recv(1 << 20)
        if not found:
            raise Closed("end of stream")
        data = self._rest + found
        frames = []
        pos, end = 0, len(data) - 7
        while pos < end:
            kind, _, size = HEAD.unpack_from(data, pos)
            stop = pos + 7 + size
            if stop >= len(data):
                break
            payload = data[pos + 7 : stop]
            if kind == 1 and METHOD_ID.unpack_from(payload)[0] in ENDS:
                raise Closed(repr(payload[:80]))
            frames.append((kind, payload))
            pos = stop + 1
        self._rest = data[pos:]
        return frames


class Publisher(Client):
    """Publishes to one queue with confirms."""

    def __init__(
        self,
        number: int,
        queue: str,
        book: Book,
        ports: Sequence[int],
        pace: Pace,
        *,
        first: int = 0,
        stays: bool = False,
    ) -> None:
        super().__init__(ports, first, stays)
        self.ledger: Ledger = book.add(number, queue)
        self._pace = pace
        publish = method_bytes(1, spec.Basic.Publish(exchange="", routing_key=queue))
        header = header_bytes(1, pace.size, PERSISTENT)
        self._before = publish + header + HEAD.pack(BODY, 1, pace.size) + METHOD_ID.pack(number)
        self._behind = filler(number, pace.size) + b"\xce"
        self._began_s = 0.0
        self._sent_count = 0

    def serve(self, client: WireClient) -> None:
        client.send_method(1, spec.Confirm.Select())
        client.expect(spec.Confirm.SelectOk)
        frames, ledger = Frames(client), self.ledger
        base = ledger.published  # the number of the delivery tag 1
        self._began_s = self._began_s or time.monotonic()
        answers, end_s = _Answers(ledger, base), 0.0
        while not self.over.is_set() or (answers.open_count and time.monotonic() < end_s):
            if not self.over.is_set():
                end_s = time.monotonic() + LAST_S
            count, pause_s = (0, 0.2) if self.over.is_set() else self._due(answers.open_count)
            if count:
                first = ledger.reserve(count)
                self._sent_count += count
                client.socket.sendall(self._burst(first, count))
                answers.sent(count)
            for kind, payload in frames.read(0.0 if count else pause_s):
                if kind == 1:
                    answers.heard(payload)

    def publish(self, client: WireClient, count: int) -> None:
        """So many at once, by this connection; returns when something is known of each. Raises: AssertionError."""
        client.send_method(1, spec.Confirm.Select())
        client.expect(spec.Confirm.SelectOk)
        frames = Frames(client)
        first = self.ledger.reserve(count)
        answers = _Answers(self.ledger, first)
        client.socket.sendall(self._burst(first, count))
        answers.sent(count)
        end_s = time.monotonic() + LAST_S
        while answers.open_count:
            assert time.monotonic() < end_s, "no answer"
            for kind, payload in frames.read(0.2):
                if kind == 1:
                    answers.heard(payload)

    def _due(self, open_count: int) -> tuple[int, float]:
        """(how many to send now, how long to wait if none)."""
        pace = self._pace
        room = pace.window - open_count
        behind = (time.monotonic() - self._began_s) * pace.rate - self._sent_count
        count = min(pace.burst, room)
        if count < min(pace.burst, pace.window):
            return 0, 0.1
        if behind < count:
            return 0, min(0.1, (count - behind) / pace.rate)
        return count, 0.0

    def _burst(self, first: int, count: int) -> bytes:
        pack, before, behind = METHOD_ID.pack, self._before, self._behind
        return b"".join([before + pack(number) + behind for number in range(first, first + count)])


class _Answers:
    """The confirms of one connection."""

    def __init__(self, ledger: Ledger, base: int) -> None:
        self._ledger = ledger
        self._base = base
        self._low = base  # all before it are answered
        self._singly: set[int] = set()
        self._sent = base

    def sent(self, count: int) -> None:
        self._sent += count

    @property
    def open_count(self) -> int:
        return self._sent - self._low - len(self._singly)

    def heard(self, payload: bytes) -> None:
        method = METHOD_ID.unpack_from(payload)[0]
        tag, bits = TAG_AND_BIT.unpack_from(payload, 4)
        facts = self._ledger.confirmed if method == ACK else self._ledger.refused
        assert method in (ACK, NACK), payload
        number = self._base + tag - 1
        assert self._low <= number < self._sent, f"{number}: nothing was asked"
        if not bits & 1:
            assert number not in self._singly, f"{number}: answered twice"
            facts[number] = 1
            self._singly.add(number)
        else:
            done = [each for each in self._singly if each <= number]
            count = number + 1 - self._low
            if done:
                for each in set(range(self._low, number + 1)).difference(done):
                    facts[each] = 1
                self._singly.difference_update(done)
            else:
                facts[self._low : number + 1] = b"\1" * count
            self._low = number + 1
        while self._low in self._singly:
            self._singly.remove(self._low)
            self._low += 1


class Consumer(Client):
    """Takes from one queue and acknowledges: mostly many at once, at times one by one; some it gives back."""

    def __init__(
        self,
        queue: str,
        book: Book,
        ports: Sequence[int],
        sizes: dict[int, int],
        *,
        prefetch: int = 2_000,
        first: int = 0,
        stays: bool = False,
        seed: int = 0,
        pause_s: float = 0.0,
    ) -> None:
        """Now and then it takes nothing for up to `pause_s`."""
        super().__init__(ports, first, stays)
        self.queue = queue
        self.pause_s = pause_s
        self._book = book
        self._ledgers = book.of(queue)
        self._fillers = {number: filler(number, size) for number, size in sizes.items()}
        self._prefetch = prefetch
        self._chance = random.Random(seed)
        self._held: deque[tuple[int, Ledger, int]] = deque()
        self._recent: deque[tuple[float, list[tuple[int, Ledger, int]]]] = deque()
        self._newest: dict[int, int] = {}  # of what came unmarked, by publisher
        self.taken = 0

    def serve(self, client: WireClient) -> None:
        client.send_method(1, spec.Basic.Qos(prefetch_count=self._prefetch))
        client.expect(spec.Basic.QosOk)
        client.send_method(1, spec.Basic.Consume(queue=self.queue, consumer_tag="c"))
        client.expect(spec.Basic.ConsumeOk)
        frames = Frames(client)
        self._held.clear()
        self._recent.clear()
        tag, is_redelivered = 0, False
        try:
            self._pause()
            while not self.over.is_set():
                found = frames.read(0.2)
                for kind, payload in found:
                    if kind == 1:
                        at = 5 + payload[4]
                        tag, bits = TAG_AND_BIT.unpack_from(payload, at)
                        is_redelivered = bool(bits & 1)
                    elif kind == BODY:
                        self._take(tag, payload, is_redelivered=is_redelivered)
                if self._held and (not found or len(self._held) * 2 >= self._prefetch):
                    self._answer(client)
                    self._pause()
            if self._held:
                self._ack(client, len(self._held), is_single=False)
                time.sleep(0.3)  # before the connection goes
        except BROKEN:
            self._doubt()
            raise

    def _pause(self) -> None:
        if self.pause_s:
            self.over.wait(self._chance.uniform(-self.pause_s, self.pause_s))

    def _take(self, tag: int, body: bytes, *, is_redelivered: bool) -> None:
        publisher, number = IDENTITY.unpack_from(body)
        ledger = self._ledgers.get(publisher)
        newest = -1 if is_redelivered else self._newest.get(publisher, -1)
        is_whole = ledger is not None and body[IDENTITY.size :] == self._fillers[publisher]
        if ledger is None or not is_whole or not ledger.see(number, newest):
            self._book.invent()
            return
        if not is_redelivered:
            self._newest[publisher] = max(newest, number)
        self.taken += 1
        self._held.append((tag, ledger, number))

    def _answer(self, client: WireClient) -> None:
        drawn = self._chance.random()
        count = len(self._held)
        if drawn < 0.02:
            last = self._held[-1][0]
            self._held.clear()
            client.send_method(1, spec.Basic.Nack(last, multiple=True, requeue=True))
        elif drawn < 0.1:
            self._ack(client, min(count, 50), is_single=True)
        else:
            self._ack(client, count, is_single=False)

    def _ack(self, client: WireClient, count: int, *, is_single: bool) -> None:
        done = [self._held.popleft() for _ in range(count)]
        if is_single:
            order = list(done)
            self._chance.shuffle(order)
            client.socket.sendall(
                b"".join([ONE_ACK.pack(1, 1, 13, ACK, tag, 0, 0xCE) for tag, _, _ in order])
            )
        else:
            client.socket.sendall(ONE_ACK.pack(1, 1, 13, ACK, done[-1][0], 1, 0xCE))
        at_ms = now_ms()
        for _, ledger, number in done:
            ledger.acked_ms[number] = at_ms
        now_s = time.monotonic()
        self._recent.append((now_s, done))
        while self._recent[0][0] < now_s - DOUBT_S:
            self._recent.popleft()

    def _doubt(self) -> None:
        """The connection broke: what was acknowledged last may not be."""
        since_s = time.monotonic() - DOUBT_S
        for sent_s, done in self._recent:
            if sent_s >= since_s:
                for _, ledger, number in done:
                    ledger.acked_ms[number] = 0
