"""64 channels publish with random keys to 50 queues whose bindings overlap: each queue has each channel's in order.

With kill -9 and without. Oracle: what a plain matcher says of each key. Confirmed => in each of its queues, once; in a
queue => routed there; each channel's numbers rise.
"""

from __future__ import annotations

import random
import struct
import time
from collections import defaultdict
from pathlib import Path

import pika
import pytest
from pika import spec

from tests.crash.load import ACK, Client, stop_all
from tests.support.broker_process import BrokerProcess, external_target
from tests.support.wire_client import HEADER, METHOD, WireClient, publish_bytes

CONNECTIONS, CHANNELS, QUEUES, KEYS = 4, 16, 50, 400
EXCHANGE = "order"
BODY_FORMAT = struct.Struct(">HIH")  # channel among the 64, its number, key


def make_keys() -> list[str]:
    source = random.Random(16)
    return [".".join(source.choice("abcd") for _ in range(3)) + f".{at}" for at in range(KEYS)]


def make_patterns() -> list[list[str]]:
    """Up to three patterns for each queue; the first queue gets everything."""
    source = random.Random(17)
    found = [["#"]]
    for _ in range(QUEUES - 1):
        words = [[source.choice("abcd**") for _ in range(source.randint(1, 3))] for _ in range(3)]
        found.append([".".join([*one, "#"]) for one in words])
    return found


def matches(pattern: str, key: str) -> bool:
    """For patterns that end in `#` and have no other."""
    wanted, words = pattern.split(".")[:-1], key.split(".")
    return len(words) >= len(wanted) and all(
        want in ("*", word) for want, word in zip(wanted, words, strict=False)
    )


class KeyPublisher(Client):
    """Sixteen channels of one connection, their publishes interleaved in one stream."""

    def __init__(self, port: int, identity: int, keys: list[str], total: int | None) -> None:
        super().__init__(port)
        self.identity = identity
        self.keys = keys
        self.total = total
        self.sent: dict[int, list[tuple[int, bool]]] = defaultdict(list)
        """By channel: key and persistence of each message, in order."""
        self.confirmed: dict[int, int] = defaultdict(int)
        """By channel: up to which number everything is confirmed."""

    def work(self, client: WireClient) -> None:
        source = random.Random(self.identity)
        for number in range(1, CHANNELS + 1):
            if number > 1:
                client.channel(number)
            client.send_method(number, spec.Confirm.Select())
            client.expect(spec.Confirm.SelectOk)
        published = 0
        singly: dict[int, set[int]] = defaultdict(set)
        while not self.stopping.is_set() and (self.total is None or published < self.total):
            batch = [
                self._message(source, source.randint(1, CHANNELS))
                for _ in range(source.choice([1, 7, 150]))
            ]
            published += len(batch)
            client.send(*batch)
            while sum(map(len, self.sent.values())) - sum(self.confirmed.values()) > 600:
                self._read(client, singly)
        while sum(map(len, self.sent.values())) > sum(self.confirmed.values()):
            self._read(client, singly)

    def _message(self, source: random.Random, number: int) -> bytes:
        key = source.randrange(KEYS)
        is_persistent = self.total is None or source.random() < 0.5
        channel = self.identity * CHANNELS + number
        self.sent[channel].append((key, is_persistent))
        body = BODY_FORMAT.pack(channel, len(self.sent[channel]), key)
        properties = pika.BasicProperties(delivery_mode=2 if is_persistent else 1)
        return publish_bytes(number, EXCHANGE, self.keys[key], body, properties=properties)

    def _read(self, client: WireClient, singly: dict[int, set[int]]) -> None:
        kind, number, payload = client.read_frame(60)
        assert kind == METHOD
        ids = struct.unpack_from(">HH", payload)
        assert ids == ACK, f"publisher got {ids}: {payload[:80]!r}"
        tag, flags = struct.unpack_from(">QB", payload, 4)
        channel = self.identity * CHANNELS + number
        waiting = singly[channel]
        if flags & 1:
            self.confirmed[channel] = max(self.confirmed[channel], tag)
        else:
            waiting.add(tag)
        while self.confirmed[channel] + 1 in waiting:
            self.confirmed[channel] += 1
            waiting.remove(self.confirmed[channel])


def prepare(node: BrokerProcess, patterns: list[list[str]]) -> None:
    with WireClient("127.0.0.1", node.amqp_port) as client:
        client.open().channel(1)
        declare = spec.Exchange.Declare(exchange=EXCHANGE, type="topic", durable=True)
        client.send_method(1, declare)
        client.expect(spec.Exchange.DeclareOk)
        for at, those in enumerate(patterns):
            client.declare(1, f"order.{at}", durable=True)
            for pattern in those:
                bind = spec.Queue.Bind(queue=f"order.{at}", exchange=EXCHANGE, routing_key=pattern)
                client.send_method(1, bind)
                client.expect(spec.Queue.BindOk)
        client.close()


def drained(client: WireClient, queue: str) -> list[tuple[int, int, int]]:
    """Everything in the queue, in its order: channel, number, key."""
    client.send_method(1, spec.Queue.Declare(queue=queue, passive=True))
    count = client.expect(spec.Queue.DeclareOk).message_count
    client.send_method(1, spec.Basic.Consume(queue=queue, consumer_tag=queue, no_ack=True))
    client.expect(spec.Basic.ConsumeOk)
    found = []
    while len(found) < count:
        kind, _, _ = client.read_frame(60)
        assert kind == METHOD
        kind, _, _ = client.read_frame(60)
        assert kind == HEADER
        _, _, body = client.read_frame(60)
        found.append(BODY_FORMAT.unpack(body))
    return found


def judge(
    node: BrokerProcess,
    publishers: list[KeyPublisher],
    patterns: list[list[str]],
    *,
    is_exact: bool,
) -> None:
    """Compare every queue with what was confirmed."""
    keys = publishers[0].keys
    with WireClient("127.0.0.1", node.amqp_port) as client:
        client.open().channel(1)
        for at, those in enumerate(patterns):
            routed = {k for k, key in enumerate(keys) if any(matches(one, key) for one in those)}
            by_channel = defaultdict(list)
            for channel, number, key in drained(client, f"order.{at}"):
                by_channel[channel].append((number, key))
            for publisher in publishers:
                for channel, sent in publisher.sent.items():
                    there = by_channel.pop(channel, [])
                    due = [(n, key) for n, (key, _) in enumerate(sent, 1) if key in routed]
                    confirmed = publisher.confirmed[channel]
                    safe = [one for one in due if one[0] <= confirmed]
                    assert [one for one in there if one[0] <= confirmed] == safe, (at, channel)
                    if is_exact:
                        assert there == due, (at, channel)
                    else:
                        assert sorted(set(there)) == there, (at, channel, "in order, once")
                        assert set(there) <= set(due), (at, channel)
            assert not by_channel, (at, "a channel that published nothing")
        client.close()


@pytest.mark.slow
@pytest.mark.skipif(external_target() is not None, reason="kills a process of its own")
@pytest.mark.parametrize(
    ("is_killed", "commit_log"),
    [(False, "off"), (True, "off"), (True, "on")],
    ids=["to the end", "killed", "killed, with a commit log"],
)
def test_each_queue_has_each_channels_messages_in_order(
    tmp_path: Path, is_killed: bool, commit_log: str
) -> None:
    settings = {"confirm": "fsync", "store_commit_log": commit_log}
    node = BrokerProcess(tmp_path / "data", settings)
    patterns, keys = make_patterns(), make_keys()
    try:
        node.start()
        prepare(node, patterns)
        total = None if is_killed else 2000
        publishers = [
            KeyPublisher(node.amqp_port, number, keys, total) for number in range(CONNECTIONS)
        ]
        for publisher in publishers:
            publisher.start()
        if is_killed:
            deadline = time.monotonic() + 60
            while sum(sum(one.confirmed.values()) for one in publishers) < 6000:
                assert time.monotonic() < deadline, "too few confirms"
                time.sleep(0.02)
            node.kill()
            assert stop_all(publishers) == []
            node.start()
        else:
            for publisher in publishers:
                publisher.join(120)
            assert [one.problem for one in publishers] == [None] * CONNECTIONS
            assert all(
                len(sent) == one.confirmed[channel]
                for one in publishers
                for channel, sent in one.sent.items()
            )
        judge(node, publishers, patterns, is_exact=not is_killed)
        assert node.stop() == 0
        assert "Traceback" not in node.log_path.read_text()
    finally:
        node.kill()
