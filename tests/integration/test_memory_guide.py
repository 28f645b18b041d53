"""The classic lazy queue guide: what is in memory after a start, in use, and when nobody takes messages.

Source: RabbitMQ's guide on classic queues in lazy mode (node startup, mixed and interleaved sizes, RAM by consumption).
All figures are those that `list_queues` prints.
"""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable, Iterator
from typing import Any

import pika
import pytest
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from tests.support.black_box import PERSISTENT, drop, eventually
from tests.support.broker_process import BrokerProcess

pytestmark = pytest.mark.slow

BATCH = 16_384
COLUMNS = ("name", "messages", "messages_ram", "message_bytes_ram", "memory")
Starter = Callable[..., BrokerProcess]


@contextlib.contextmanager
def channel_on(node: BrokerProcess) -> Iterator[BlockingChannel]:
    """A channel of its own, cut at the end."""
    parameters = pika.ConnectionParameters("127.0.0.1", node.amqp_port, heartbeat=0)
    connection = BlockingConnection(parameters)
    try:
        yield connection.channel()
    finally:
        drop(connection)


def figures(node: BrokerProcess) -> dict[str, dict[str, int]]:
    """What list_queues prints, by queue."""
    lines = node.ctl("list_queues", *COLUMNS, "--quiet", "--no-table-headers").splitlines()
    rows = [dict(zip(COLUMNS, line.split("\t"), strict=True)) for line in lines if "\t" in line]
    return {
        row["name"]: {key: int(value) for key, value in row.items() if key != "name"}
        for row in rows
    }


def fill(channel: BlockingChannel, queue: str, sizes: list[int], **arguments: Any) -> None:
    """A durable queue with persistent messages of these sizes, all of them on disk: the last one's confirm says so."""
    table = {key.replace("_", "-"): value for key, value in arguments.items()}
    channel.queue_declare(queue, durable=True, arguments=table)
    bodies = [(b"%d." % number).ljust(size) for number, size in enumerate(sizes)]
    for body in bodies[:-1]:
        channel.basic_publish("", queue, body, PERSISTENT)
    confirming = channel.connection.channel()
    confirming.confirm_delivery()
    confirming.basic_publish("", queue, bodies[-1], PERSISTENT)
    confirming.close()
    assert channel.queue_declare(queue, passive=True).method.message_count == len(sizes)


def restart(node: BrokerProcess, *, is_killed: bool) -> None:
    node.kill() if is_killed else node.stop()
    node.start()


INTERLEAVED = [size for n in range(1, 21) for size in (5_000, 100 * n)] + [5_000] * 40


@pytest.mark.parametrize("is_killed", [False, pytest.param(True, marks=pytest.mark.long)])
def test_what_a_start_loads(own_broker: Starter, is_killed: bool) -> None:
    node = own_broker(vm_memory_high_watermark__absolute="4GB")
    with channel_on(node) as channel:
        fill(channel, "lazy", [4_000] * 17_000, x_queue_mode="lazy")
        fill(channel, "default", [100] * 16_500)
        fill(channel, "mixed", [100] * 10_000 + [5_000] * 1_000, x_queue_mode="lazy")
        fill(channel, "interleaved", INTERLEAVED, x_queue_mode="lazy")
        fill(channel, "version-1", INTERLEAVED, x_queue_mode="lazy", x_queue_version=1)
    restart(node, is_killed=is_killed)
    batches = {"lazy": BATCH, "default": BATCH, "mixed": 10_000, "interleaved": 20, "version-1": 20}
    loaded = eventually(lambda: _when(figures(node), batches))
    assert loaded["lazy"]["messages"] == 17_000
    assert loaded["lazy"]["message_bytes_ram"] == BATCH * 4_000  # the guide's 63 MB
    assert loaded["lazy"]["memory"] - BATCH * 4_000 < 8_400_000
    for queue in ("interleaved", "version-1"):
        assert loaded[queue]["message_bytes_ram"] == 21_000
    assert loaded["interleaved"]["memory"] <= 53_000
    with channel_on(node) as channel:
        channel.basic_qos(prefetch_count=200)
        bodies = []
        for method, _, body in channel.consume("interleaved", inactivity_timeout=5):
            bodies.append(int(body.partition(b".")[0]))
            channel.basic_ack(method.delivery_tag)
            if len(bodies) == len(INTERLEAVED):
                break
    assert bodies == list(range(80))


def _when(found: dict[str, dict[str, int]], in_ram: dict[str, int]) -> Any:
    return found if {name: found[name]["messages_ram"] for name in in_ram} == in_ram else None


def test_without_embedding_a_start_loads_no_payloads(own_broker: Starter) -> None:
    node = own_broker(queue_index_embed_msgs_below="0")
    with channel_on(node) as channel:
        fill(channel, "lazy", [100] * 2_000, x_queue_mode="lazy")
    restart(node, is_killed=False)
    with channel_on(node) as channel:
        channel.basic_get("lazy")
        eventually(lambda: figures(node)["lazy"]["messages_ram"] <= 1)
        assert figures(node)["lazy"]["messages"] == 2_000


def test_start_batches_stay_within_a_tenth_of_the_watermark(own_broker: Starter) -> None:
    node = own_broker()
    with channel_on(node) as channel:
        for number in range(8):
            fill(channel, f"q{number}", [1_000] * 2_000)
        fill(channel, "ttl", [1_000], x_message_ttl=1_500)
    node.settings = {"vm_memory_high_watermark.absolute": "100MB"}
    restart(node, is_killed=False)
    eventually(lambda: figures(node)["ttl"]["messages"] == 0)
    found = figures(node)
    loaded = [name for name, row in found.items() if row["messages_ram"]]
    assert loaded
    assert sum(row["memory"] for row in found.values()) <= 10_000_000
    assert len(loaded) < 8, "the others load on first use"
    other = next(name for name, row in found.items() if row["messages"] and name not in loaded)
    with channel_on(node) as channel:
        method, _, _ = channel.basic_get(other)
        assert method.message_count == 1_999


@pytest.mark.parametrize("mode", ["lazy", "default"])
def test_what_a_consumer_without_limit_gives_back_leaves_memory(
    own_broker: Starter, mode: str
) -> None:
    node = own_broker()
    with channel_on(node) as channel:
        fill(channel, "q", [100] * 6_000, x_queue_mode=mode)
        with channel_on(node) as greedy:
            for number, _ in enumerate(greedy.consume("q"), 1):
                if number == 6_000:
                    break
            assert figures(node)["q"]["messages_ram"] >= 6_000  # unacked ones are in RAM
        eventually(lambda: figures(node)["q"]["messages_ram"] == 0, timeout_s=3)
        channel.basic_qos(prefetch_count=1_000)
        found = []
        for method, _, body in channel.consume("q", inactivity_timeout=5):
            assert method.redelivered
            found.append(int(body.partition(b".")[0]))
            channel.basic_ack(method.delivery_tag)
            if len(found) == 6_000:
                break
    assert found == list(range(6_000))


def test_a_consumed_queue_keeps_few_messages_in_memory_and_large_ones_not_ahead(
    own_broker: Starter,
) -> None:
    node = own_broker()
    with channel_on(node) as channel:
        for queue, size in (("small", 100), ("large", 5_000)):
            fill(channel, queue, [size] * 6_000)
            assert figures(node)[queue]["messages_ram"] <= 1  # nobody consumes
            channel.basic_qos(prefetch_count=10)
            ahead, unacked = [], 10
            for number, (method, _, _) in enumerate(channel.consume(queue), 1):
                if number > 2_000 and number % 200 == 0:
                    ahead.append(figures(node)[queue]["messages_ram"] - unacked)
                if number == 3_000:
                    break
                channel.basic_ack(method.delivery_tag)
            # One look may find the end of what was read ahead.
            if queue == "small":
                assert 10 < max(ahead) <= 2_048
            else:
                assert max(ahead) <= 1
            channel.cancel()
            # The one that was not acked is in RAM.
            eventually(lambda name=queue: figures(node)[name]["messages_ram"] == 1, timeout_s=3)


def test_cached_mode_pages_out_at_the_watermark(own_broker: Starter) -> None:
    node = own_broker(classic_queue__default_mode="cached")
    with channel_on(node) as channel:
        fill(channel, "q", [1_000] * 5_000)
        assert figures(node)["q"]["messages_ram"] == 5_000
        # Half of the watermark is less than the node takes in any case: everything goes to disk.
        node.stop()
    node.settings = {**node.settings, "vm_memory_high_watermark.absolute": "70MB"}
    node.start()
    with channel_on(node) as channel:
        eventually(lambda: figures(node)["q"]["messages_ram"] == 0)
        assert figures(node)["q"]["messages"] == 5_000


def test_the_memory_alarm_ends_when_the_backlog_is_gone(own_broker: Starter) -> None:
    """The C library keeps what lies below anything in use: it has to be asked for it."""
    node = own_broker(
        classic_queue__default_mode="cached", vm_memory_high_watermark__absolute="2GB"
    )
    with channel_on(node) as channel:
        fill(channel, "q", [2_000] * 60_000)
        assert node.rss_bytes() > 170_000_000
        channel.queue_purge("q")
        # The backlog does not fit below this watermark, an empty node does.
        node.ctl("set_vm_memory_high_watermark", "absolute", "120MB")
        eventually(lambda: node.rss_bytes() < 120_000_000)
        eventually(lambda: not alarms(node))
        fill(channel, "q", [2_000] * 100)


def alarms(node: BrokerProcess) -> list[str]:
    return json.loads(node.ctl("status", "--formatter", "json"))["alarms"]
