"""Throws mutated and grammar-made frames at a real broker process, before and after login.

State: a node of its own and a seeded generator: the same seed sends the same bytes.
Callers: test_socket_fuzz (scaled down) and
`python -m tests.fuzz.socket_fuzz --frames 100000`, which prints the figures.
Oracle: the process lives, serves a well-behaved client afterwards, logs no traceback, and its
resident size grew by less than 32 MiB (client and sockets gone).
"""

from __future__ import annotations

import argparse
import contextlib
import random
import struct
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from pika import spec

from tests.crash.volume import connect, drain_in_order, fill
from tests.support.broker_process import BrokerProcess
from tests.support.wire_client import (
    BODY,
    HEADER,
    HEARTBEAT,
    METHOD,
    PROTOCOL_HEADER,
    Closed,
    WireClient,
    frame,
    header_bytes,
    method_bytes,
    publish_bytes,
)

ALLOWED_GROWTH = 32 << 20
CONNECTION_FRAMES = 60
METHOD_IDS = sorted(spec.methods)
TAGS = b"StbBsuIilLfdDTFAVx?\x00"


@dataclass
class Outcome:
    """What a run did and found."""

    frames: int = 0
    connections: int = 0
    growth_bytes: int = 0
    problem: str = ""

    @property
    def holds(self) -> bool:
        """Say whether the broker took it."""
        return not self.problem and self.growth_bytes < ALLOWED_GROWTH


class Grammar:
    """Makes frames: well-formed ones, nearly well-formed ones and noise."""

    def __init__(self, source: random.Random) -> None:
        self.source = source
        self._good = [
            method_bytes(1, spec.Queue.Declare(queue="fuzz", arguments={"x-max-length": 5})),
            method_bytes(1, spec.Basic.Consume(queue="fuzz", consumer_tag="t", no_ack=True)),
            method_bytes(1, spec.Basic.Qos(prefetch_count=3)),
            method_bytes(1, spec.Basic.Get(queue="fuzz")),
            method_bytes(1, spec.Basic.Ack(1, multiple=True)),
            method_bytes(1, spec.Exchange.Declare(exchange="fuzz.x", type="topic")),
            method_bytes(1, spec.Queue.Bind(queue="fuzz", exchange="amq.topic", routing_key="a.#")),
            method_bytes(1, spec.Confirm.Select()),
            method_bytes(1, spec.Tx.Select()),
            method_bytes(1, spec.Channel.Open()),
            method_bytes(1, spec.Channel.CloseOk()),
            method_bytes(2, spec.Channel.Open()),
            publish_bytes(1, "", "fuzz", b"x" * 100),
            publish_bytes(
                1,
                "amq.topic",
                "a.b",
                b"",
                properties=spec.BasicProperties(
                    headers={"k": [1, {"t": "v"}], "CC": ["x"]}, expiration="5", priority=1
                ),
            ),
            header_bytes(1, 10),
            frame(HEARTBEAT, 0, b""),
        ]

    def piece(self) -> bytes:
        """Return the next thing to send."""
        make: Callable[[], bytes] = self.source.choice(
            [
                self._as_it_is,
                self._mutated,
                self._mutated,
                self._truncated,
                self._random_method,
                self._random_method,
                self._random_frame,
                self._table_bomb,
                self._huge_header,
                self._noise,
            ]
        )
        return make()

    def _as_it_is(self) -> bytes:
        return self.source.choice(self._good)

    def _mutated(self) -> bytes:
        data = bytearray(self.source.choice(self._good))
        for _ in range(self.source.randint(1, 4)):
            data[self.source.randrange(len(data))] = self.source.randrange(256)
        return bytes(data)

    def _truncated(self) -> bytes:
        data = self.source.choice(self._good)
        return data[: self.source.randrange(1, len(data) + 1)]

    def _random_method(self) -> bytes:
        index = self.source.choice(METHOD_IDS)
        payload = struct.pack(">I", index) + self.source.randbytes(self.source.randrange(40))
        return frame(METHOD, self.source.choice([0, 1, 1, 1, 2, 65535]), payload)

    def _random_frame(self) -> bytes:
        kind = self.source.choice([METHOD, HEADER, BODY, HEARTBEAT, self.source.randrange(256)])
        end = 0xCE if self.source.random() < 0.9 else self.source.randrange(256)
        payload = self.source.randbytes(self.source.choice([0, 1, 8, 14, 300]))
        return frame(kind, self.source.randrange(3), payload, end)

    def _table_bomb(self) -> bytes:
        table = b""
        for _ in range(self.source.randint(1, 60)):
            tag = bytes([self.source.choice(TAGS)])
            shape = self.source.random()
            if shape < 0.4:
                table = b"\x01kF" + struct.pack(">I", len(table)) + table
            elif shape < 0.6:
                table = b"\x01kA" + struct.pack(">I", len(table) + 1) + b"V" + table
            else:
                table += b"\x01k" + tag + self.source.randbytes(self.source.randrange(9))
        start = struct.pack(">HH", 50, 10) + b"\x00\x00\x04fuzz\x00"
        return frame(METHOD, 1, start + struct.pack(">I", len(table)) + table)

    def _huge_header(self) -> bytes:
        size = self.source.choice([2**63 - 1, 2**64 - 1, 2**31, 2**27 + 1, 40_000])
        start = method_bytes(1, spec.Basic.Publish(exchange="", routing_key="fuzz"))
        header = struct.pack(">HHQH", 60, 0, size, self.source.randrange(65536))
        return start + frame(HEADER, 1, header + self.source.randbytes(20))

    def _noise(self) -> bytes:
        return self.source.randbytes(self.source.randrange(1, 64))


class Attack:
    """Sends frames on many short connections."""

    def __init__(self, node: BrokerProcess, seed: int) -> None:
        self.node = node
        self.grammar = Grammar(random.Random(seed))
        self.source = self.grammar.source
        self.outcome = Outcome()

    def run(self, frames: int) -> Outcome:
        """Send that many frames and judge the process afterwards."""
        with connect(self.node) as client:  # warm: imports and buffers of a first client
            client.declare(1, "warm", durable=True)
            fill(client, 200, 100, lambda _number: "warm")
            client.close()
        before = self.node.rss_bytes()
        while self.outcome.frames < frames and self.node.is_alive:
            self._connection()
        self._judge(before)
        return self.outcome

    def _connection(self) -> None:
        self.outcome.connections += 1
        count = self.source.randint(1, CONNECTION_FRAMES)
        with (
            contextlib.suppress(Closed, OSError, TimeoutError, AssertionError),
            WireClient("127.0.0.1", self.node.amqp_port) as client,
        ):
            stage = self.source.random()
            if stage < 0.1:
                pass
            elif stage < 0.3:
                client.send(PROTOCOL_HEADER)
            else:
                client.open(capabilities={"authentication_failure_close": True}).channel(1)
            while count:
                burst = self.source.randint(1, min(count, 8))
                count -= burst
                self.outcome.frames += burst
                client.send(*(self.grammar.piece() for _ in range(burst)))
            if self.source.random() < 0.3:
                client.read_frame(0.05)

    def _judge(self, before: int) -> None:
        node = self.node
        if not node.is_alive:
            self.outcome.problem = "the process died: " + node.log_of_this_start()[-3000:]
            return
        with connect(node) as client:
            assert drain_in_order(client, "warm", range(1, 201)) == 200
            client.close()
        deadline = time.monotonic() + 15
        while node.rss_bytes() - before >= ALLOWED_GROWTH and time.monotonic() < deadline:
            time.sleep(0.2)  # refused logins hold their sockets for three seconds
        self.outcome.growth_bytes = node.rss_bytes() - before
        log = node.log_of_this_start()
        if "Traceback" in log:
            self.outcome.problem = log[log.index("Traceback") :][:4000]


def run(directory: Path, frames: int, seed: int) -> Outcome:
    """Fuzz a fresh node."""
    node = BrokerProcess(directory / "data")
    try:
        node.start()
        outcome = Attack(node, seed).run(frames)
        if node.is_alive and node.stop() != 0:
            outcome.problem = outcome.problem or "unclean exit: " + node.log_of_this_start()[-2000:]
    finally:
        node.kill()
    return outcome


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--frames", type=int, default=100_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="fuzz-", dir=options.directory) as place:
        outcome = run(Path(place), options.frames, options.seed)
    sys.stdout.write(
        f"{outcome.problem}\nseed={options.seed} frames={outcome.frames}"
        f" connections={outcome.connections} RSS +{outcome.growth_bytes / (1 << 20):.1f} MiB:"
        f" {'holds' if outcome.holds else 'MISSED'}\n"
    )
    return 0 if outcome.holds else 1


if __name__ == "__main__":
    sys.exit(main())
