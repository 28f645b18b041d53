"""Queues and consumers as rows."""

from __future__ import annotations

from burrowmq.broker import inspect
from burrowmq.broker.rules.policy import Policy
from burrowmq.protocol.codec import join_exrk
from burrowmq.protocol.properties import Properties, build
from tests.support.fake_node import small_world
from tests.support.queue_bench import QueueBench


def test_counts_and_bytes() -> None:
    row = inspect.queue(small_world(), "/", "orders")
    assert row is not None
    assert (row["messages"], row["messages_ready"], row["messages_unacknowledged"]) == (4, 3, 1)
    assert (row["messages_ram"], row["message_bytes_ram"], row["message_bytes"]) == (4, 40, 40)
    assert (row["messages_paged_out"], row["consumers"], row["exclusive"]) == (0, 1, False)
    assert inspect.queue(small_world(), "/", "nosuch") is None
    assert inspect.queue(small_world(), "nosuch", "orders") is None


def test_every_column_of_an_exclusive_queue() -> None:
    node = small_world()
    queue = node.vhosts["/"].queues["orders"]
    (queue.exclusive_owner,) = node.sessions
    queue.consumers[0].exclusive = True
    (row,) = [
        row
        for row in inspect.iter_queues(node, "/", list(inspect.QUEUE_COLUMNS))
        if row["name"] == "orders"
    ]
    assert row["owner_pid_details"]["peer_port"] == 40000
    assert row["exclusive_consumer_tag"] == "ctag1"
    assert row["owner_pid"].startswith("<rabbit@test.")


def test_policy_columns() -> None:
    node = small_world()
    node.vhosts["/"].policies.policies["p"] = Policy(
        name="p", pattern="^lazy", definition={"max-length": 5}
    )
    row = inspect.queue(node, "/", "lazy")
    assert row is not None
    assert (row["policy"], row["operator_policy"], row["effective_policy_definition"]) == (
        "p",
        None,
        {"max-length": 5},
    )


def test_what_is_not_measured_is_no_figure() -> None:
    node = small_world()
    columns = ["consumers", "consumer_utilisation", "consumer_capacity", "backing_queue_status"]
    for row in inspect.queues(node, None, columns):
        told = None if row["consumers"] else 0
        assert row["consumer_utilisation"] == row["consumer_capacity"] == told
        assert not [
            name for name in row["backing_queue_status"] if name.startswith(("avg", "num_un"))
        ]
    assert {row["consumers"] for row in inspect.queues(node, None, columns)} > {0}


def test_a_queue_deleted_while_listing_is_left_out() -> None:
    node = small_world()
    rows = inspect.iter_queues(node, None, ["name"])
    assert next(rows) == {"name": "lazy"}
    del node.vhosts["/"].queues["orders"]
    assert list(rows) == []


def test_the_heads_timestamp_is_of_the_highest_level_and_only_while_it_is_in_ram() -> None:
    node = small_world()
    bench = QueueBench(max_priority=2)
    properties = [Properties(priority=level, timestamp=1000 + level) for level in (0, 2)]
    bench.publish(*[build(join_exrk(b"", b"q"), each, b"x") for each in properties])
    node.vhosts["/"].queues["orders"].levels = bench.queue.levels
    columns = ["name", "head_message_timestamp", "backing_queue_status"]
    rows = {row["name"]: row for row in inspect.iter_queues(node, "/", columns)}
    assert rows["orders"]["head_message_timestamp"] == 1002
    assert rows["orders"]["backing_queue_status"]["next_seq_id"] == 2
    assert rows["lazy"]["head_message_timestamp"] is None
    bench.queue.page_out()
    (row,) = [row for row in inspect.iter_queues(node, "/", columns) if row["name"] == "orders"]
    assert row["head_message_timestamp"] is None
