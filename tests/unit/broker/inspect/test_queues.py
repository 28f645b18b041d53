"""Queues and consumers as rows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from pika import BasicProperties, spec

from burrowmq.broker import inspect
from burrowmq.broker.definitions import parameters
from burrowmq.broker.rules.policy import Policy
from burrowmq.config.store import StoreConfig
from tests.support.bench.node import NodeBench
from tests.support.bench.world import small_world
from tests.support.wire_client import publish_bytes


@pytest.fixture
def cached(tmp_path: Path) -> Iterator[NodeBench]:
    """The small world on a node that keeps messages in memory."""
    with NodeBench(tmp_path / "cached", store=StoreConfig(default_mode="cached")) as found:
        small_world(found)
        yield found


def test_counts_and_bytes(cached: NodeBench) -> None:
    row = inspect.queue(cached.node, "/", "orders")
    assert row is not None
    assert (row["messages"], row["messages_ready"], row["messages_unacknowledged"]) == (4, 3, 1)
    assert (row["messages_ram"], row["message_bytes_ram"], row["message_bytes"]) == (4, 40, 40)
    assert (row["messages_paged_out"], row["consumers"], row["exclusive"]) == (0, 1, False)
    assert row["state"] == "running"
    cached.perform(cached.node.vhosts["/"].queues["orders"].paging.page_out)
    row = inspect.queue(cached.node, "/", "orders")
    assert row is not None
    assert (row["messages_ram"], row["messages_paged_out"], row["messages"]) == (1, 3, 4)
    assert inspect.queue(cached.node, "/", "nosuch") is None
    assert inspect.queue(cached.node, "nosuch", "orders") is None


def test_every_column_of_an_exclusive_queue(bench: NodeBench) -> None:
    (client,) = bench.clients
    client.call(
        1,
        spec.Queue.Declare(queue="mine", exclusive=True),
        spec.Basic.Consume(queue="mine", consumer_tag="ctag2", exclusive=True),
    )
    (row,) = [
        row
        for row in inspect.iter_queues(bench.node, "/", list(inspect.QUEUE_COLUMNS))
        if row["name"] == "mine"
    ]
    assert row["owner_pid_details"]["peer_port"] == 40000
    assert row["exclusive_consumer_tag"] == "ctag2"
    assert row["owner_pid"].startswith("<rabbit@test.")


def test_queues_that_are_consumed_by_name_each_once(bench: NodeBench) -> None:
    (client,) = bench.clients
    for queue, tag in (("zebra", "a"), ("ape", "b"), ("ape", "c"), ("idle", "")):
        consume = [spec.Basic.Consume(queue=queue, consumer_tag=tag)] if tag else []
        client.call(1, spec.Queue.Declare(queue=queue), *consume)
    found = [(vhost.name, queue.name) for vhost, queue in inspect.each_consumed(bench.node)]
    assert found == [("/", "ape"), ("/", "orders"), ("/", "zebra")]
    assert inspect.each_consumed(bench.node, "nosuch") == []
    tags = [row["consumer_tag"] for row in inspect.consumers(bench.node, "/")]
    assert tags == ["b", "c", "ctag1", "a"]


def test_policy_columns(bench: NodeBench) -> None:
    policy = Policy(name="p", pattern="^lazy", definition={"max-length": 5})
    bench.perform(lambda: parameters.set_policy(bench.node.vhosts["/"], policy))
    row = inspect.queue(bench.node, "/", "lazy")
    assert row is not None
    assert (row["policy"], row["operator_policy"], row["effective_policy_definition"]) == (
        "p",
        None,
        {"max-length": 5},
    )


def test_what_is_not_measured_is_no_figure(bench: NodeBench) -> None:
    columns = ["consumers", "backing_queue_status"]
    for row in inspect.queues(bench.node, None, columns):
        assert not [
            name for name in row["backing_queue_status"] if name.startswith(("avg", "num_un"))
        ]
    assert {row["consumers"] for row in inspect.queues(bench.node, None, columns)} > {0}


def test_capacity_is_none_without_consumers_and_a_share_with_some(bench: NodeBench) -> None:
    columns = ["name", "consumers", "consumer_utilisation", "consumer_capacity"]
    lazy, orders = inspect.queues(bench.node, None, columns)
    assert (lazy["name"], lazy["consumer_utilisation"], lazy["consumer_capacity"]) == ("lazy", 0, 0)
    # Its consumer has its prefetch used up since a moment ago.
    assert (orders["name"], orders["consumers"]) == ("orders", 1)
    assert 0 < orders["consumer_capacity"] <= 1
    assert 0 < orders["consumer_utilisation"] <= 1


def test_a_queue_deleted_while_listing_is_left_out(bench: NodeBench) -> None:
    vhost = bench.node.vhosts["/"]
    rows = inspect.iter_queues(bench.node, None, ["name"])
    assert next(rows) == {"name": "lazy"}
    bench.perform(lambda: vhost.delete_queue(vhost.queues["orders"]))
    assert list(rows) == []


def test_the_heads_timestamp_is_of_the_highest_level_and_only_while_it_is_in_ram(
    cached: NodeBench,
) -> None:
    (client,) = cached.clients
    queue = cached.queue("levels", arguments={"x-max-priority": 2})
    for level in (0, 2):
        properties = BasicProperties(priority=level, timestamp=1000 + level)
        client.send(publish_bytes(1, "", "levels", b"x", properties=properties))
    columns = ["name", "head_message_timestamp", "backing_queue_status"]
    rows = {row["name"]: row for row in inspect.iter_queues(cached.node, "/", columns)}
    assert rows["levels"]["head_message_timestamp"] == 1002
    assert rows["levels"]["backing_queue_status"]["next_seq_id"] == 2
    assert rows["lazy"]["head_message_timestamp"] is None
    cached.perform(queue.paging.page_out)
    (row,) = [
        row for row in inspect.iter_queues(cached.node, "/", columns) if row["name"] == "levels"
    ]
    assert row["head_message_timestamp"] is None


def test_what_went_to_disk_and_came_back_is_counted(cached: NodeBench) -> None:
    def row() -> inspect.Row:
        rows = inspect.iter_queues(cached.node, "/", ["name", "disk_reads", "disk_writes"])
        (found,) = [each for each in rows if each["name"] == "counted"]
        return found

    (client,) = cached.clients
    queue = cached.queue("counted")
    client.send(*[publish_bytes(1, "", "counted", b"x") for _ in range(3)])
    assert (row()["disk_writes"], row()["disk_reads"]) == (0, 0), "transient, and in RAM"
    cached.perform(queue.paging.page_out)
    assert (row()["disk_writes"], row()["disk_reads"]) == (3, 0)
    cached.perform(cached.node.engine.require_sync)
    cached.perform(cached.node.scheduler.touch)
    cached.perform(lambda: queue.paging.load(queue.levels[0], 3))
    assert (row()["disk_writes"], row()["disk_reads"]) == (3, 3)


def test_rows_of_consumers_are_made_one_by_one_of_those_that_are_still_there(
    bench: NodeBench,
) -> None:
    client = bench.connect(9)
    client.call(9, *[spec.Basic.Consume(queue="lazy", consumer_tag=tag) for tag in "abc"])
    vhost = bench.node.vhosts["/"]
    channel = inspect.find_channel(bench.node, f"{client.session.name} (9)")
    assert channel is client.session.channels[9]
    each_of = (
        (row for row in inspect.consumers(bench.node) if row["consumer_tag"] in "abc"),
        inspect.consumers_of(bench.node, vhost, vhost.queues["lazy"]),
        inspect.consumers_on(bench.node, channel),
    )
    assert [next(rows)["consumer_tag"] for rows in each_of] == ["a", "a", "a"]
    client.call(9, spec.Basic.Cancel(consumer_tag="b"))
    assert [[row["consumer_tag"] for row in rows] for rows in each_of] == [["c"], ["c"], ["c"]]
    client.call(9, spec.Channel.Close(200, "", 0, 0))
    assert inspect.find_channel(bench.node, f"{client.session.name} (9)") is None
