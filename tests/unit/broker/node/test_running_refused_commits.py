"""What clients hear, and what queues do, while the disk refuses one queue's files.

Confirms are nacked where a target queue did not take the message durably, transactions fail, dead letters stay; all other
queues go on, and the queue comes back with what it has.

Covers: broker/node/running.py, storage/engine.py
"""

from __future__ import annotations

import errno
from collections.abc import Iterator
from pathlib import Path

import pytest
from pika import BasicProperties, spec

from burrowmq.broker import inspect
from burrowmq.broker.queue.queue import Queue
from burrowmq.config.store import StoreConfig
from burrowmq.storage.names import QueueNames
from tests.support.bench.client import Client
from tests.support.bench.node import NodeBench
from tests.support.wire_client import publish_bytes

FOR_GOOD = 1 << 30
PERSISTENT = BasicProperties(delivery_mode=2)


@pytest.fixture
def bench(tmp_path: Path) -> Iterator[NodeBench]:
    with NodeBench(
        tmp_path, store=StoreConfig(commit_log="off")
    ) as found:  # the files of one queue
        yield found


def publish(client: Client, *keys: str, exchange: str = "", channel: int = 1) -> list[str]:
    """One persistent message to each; what the client hears."""
    client.send(
        *[publish_bytes(channel, exchange, key, b"body", properties=PERSISTENT) for key in keys]
    )
    return names(client)


def names(client: Client) -> list[str]:
    return [method.NAME for _, method in client.read()]


def declare(bench: NodeBench, **arguments: object) -> Client:
    """The queues bad, of which the disk refuses every write, and good; both are bound to amq.fanout."""
    client = bench.connect(1, capabilities={"basic.nack": True})
    for name in ("bad", "good"):
        client.call(1, spec.Queue.Declare(queue=name, durable=True, arguments=arguments))
        client.call(1, spec.Queue.Bind(queue=name, exchange="amq.fanout"))
    return client


def refuse(bench: NodeBench, operation: str = "pwrite") -> None:
    place = f"/{QueueNames('/', 'bad').directory}/"
    bench.disk.fail(operation, errno.EIO, times=FOR_GOOD, path_part=place)


def heal(bench: NodeBench) -> None:
    bench.disk.heal()
    bench.perform(bench.node.engine.idle)


def state(bench: NodeBench, name: str) -> tuple[object, int]:
    row = inspect.queue(bench.node, "/", name)
    assert row is not None
    return row["state"], queue_of(bench, name).ready_count


def queue_of(bench: NodeBench, name: str) -> Queue:
    return bench.node.vhosts["/"].queues[name]


@pytest.mark.parametrize("operation", ["pwrite", "fdatasync"])
def test_confirms_are_nacked_where_a_target_is_refused(bench: NodeBench, operation: str) -> None:
    client = declare(bench)
    client.call(1, spec.Confirm.Select())
    refuse(bench, operation)
    # In one commit: what went to the other queue alone is confirmed.
    assert publish(client, "bad", "good", "good") == ["Basic.Nack", "Basic.Ack"]
    assert (state(bench, "bad"), state(bench, "good")) == (("blocked", 1), ("running", 2))
    assert bench.node.queue_faults.of("/", "bad")[0].kind == "writing"
    (alarm,) = inspect.alarms(bench.node)
    assert alarm["resource"] == "queue"
    # From here on it is refused before it is taken.
    assert publish(client, "", exchange="amq.fanout") == ["Basic.Nack"]
    assert publish(client, "good") == ["Basic.Ack"]
    assert (state(bench, "bad"), state(bench, "good")) == (("blocked", 1), ("running", 4))
    heal(bench)
    assert publish(client, "bad", "good") == ["Basic.Ack"]
    assert state(bench, "bad") == ("running", 2)
    assert not inspect.alarms(bench.node)


def test_a_fan_out_is_nacked_as_a_whole(bench: NodeBench) -> None:
    client = declare(bench)
    client.call(1, spec.Confirm.Select())
    refuse(bench)
    assert publish(client, "", exchange="amq.fanout") == ["Basic.Nack"]
    assert (state(bench, "bad")[1], state(bench, "good")[1]) == (1, 1)


def test_who_asks_for_no_confirm_goes_on(bench: NodeBench) -> None:
    client = declare(bench)
    refuse(bench)
    assert publish(client, "bad", "good") == []
    assert publish(client, "bad", "good") == []
    assert (state(bench, "bad"), state(bench, "good")) == (("blocked", 1), ("running", 2))
    heal(bench)
    assert publish(client, "bad") == []
    assert state(bench, "bad") == ("running", 2)


@pytest.mark.parametrize("is_known", [False, True])
def test_a_transaction_fails(bench: NodeBench, is_known: bool) -> None:
    client = declare(bench)
    client.call(1, spec.Tx.Select())
    refuse(bench)
    if is_known:
        other = bench.connect(1)
        publish(other, "bad")
    publish(client, "good", "bad")
    code, text = client.refused(1, spec.Tx.Commit())
    assert (code, text) == (406, "PRECONDITION_FAILED - partial tx completion")
    assert state(bench, "good") == ("running", 1)
    client.call(1, spec.Tx.Select())
    publish(client, "good")
    assert [each.NAME for _, each in client.call(1, spec.Tx.Commit())] == ["Tx.CommitOk"]
    heal(bench)
    client.call(1, spec.Tx.Select())
    publish(client, "bad", "good")
    assert [each.NAME for _, each in client.call(1, spec.Tx.Commit())] == ["Tx.CommitOk"]


def test_its_consumers_and_gets_wait(bench: NodeBench) -> None:
    client = declare(bench)
    refuse(bench)
    publish(client, "bad", "good")
    for tag, name in (("b", "bad"), ("g", "good")):
        client.call(1, spec.Basic.Consume(queue=name, consumer_tag=tag, no_ack=True))
    client.read()
    assert (queue_of(bench, "bad").ready_count, queue_of(bench, "good").ready_count) == (1, 0)
    other = bench.connect(1)
    publish(other, "bad")
    assert other.call(1, spec.Basic.Get(queue="bad", no_ack=True)) == []
    heal(bench)
    assert names(other) == ["Basic.GetOk"]
    assert publish(client, "bad") == ["Basic.Deliver"]


def test_a_consumer_can_leave_and_the_queue_can_be_purged_and_deleted(bench: NodeBench) -> None:
    client = declare(bench)
    refuse(bench)
    publish(client, "bad")
    client.call(1, spec.Basic.Consume(queue="bad", consumer_tag="b"))
    found = client.call(1, spec.Basic.Cancel(consumer_tag="b"))
    assert [each.NAME for _, each in found] == ["Basic.CancelOk"]
    ((_, purged),) = client.call(1, spec.Queue.Purge(queue="bad"))
    assert purged.message_count == 1
    ((_, deleted),) = client.call(1, spec.Queue.Delete(queue="bad"))
    assert deleted.NAME == "Queue.DeleteOk"
    assert not bench.node.queue_faults
    heal(bench)
    assert bench.node.engine.stats()["open_queues"] == 0


def test_dead_letters_wait_in_memory_and_their_originals_on_disk(bench: NodeBench) -> None:
    client = declare(bench)
    source = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "bad"}
    client.call(1, spec.Queue.Declare(queue="source", durable=True, arguments=source))
    publish(client, *["source"] * 3)
    refuse(bench)
    for _ in range(2):  # the first is refused while it is written, the second is known to be
        ((_, got),) = client.call(1, spec.Basic.Get(queue="source"))
        client.call(1, spec.Basic.Reject(delivery_tag=got.delivery_tag, requeue=False))
    assert (state(bench, "bad"), state(bench, "source")) == (("blocked", 2), ("blocked", 1))
    assert bench.node.queue_faults.of("/", "source")[0].kind == "acknowledging"
    writer = bench.node.engine._writer
    assert writer is not None
    log_id = queue_of(bench, "source").origins[0].log_id
    assert writer.refusals.is_held(log_id)
    heal(bench)
    assert not writer.refusals.is_held(log_id)
    assert (state(bench, "bad"), state(bench, "source")) == (("running", 2), ("running", 1))


def test_a_queue_that_is_its_own_dead_letters_target_can_be_deleted(bench: NodeBench) -> None:
    own = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "bad"}
    client = declare(bench, **own)
    publish(client, "bad", "good")
    refuse(bench)
    ((_, got),) = client.call(1, spec.Basic.Get(queue="bad"))
    client.call(1, spec.Basic.Reject(delivery_tag=got.delivery_tag, requeue=False))
    assert state(bench, "bad") == ("blocked", 1)
    ((_, got),) = client.call(1, spec.Basic.Get(queue="good"))
    client.call(1, spec.Basic.Reject(delivery_tag=got.delivery_tag, requeue=False))
    assert client.refused(1, spec.Queue.Delete(queue="good"))[0] == 404
    ((_, deleted),) = client.call(1, spec.Queue.Delete(queue="bad"))
    assert deleted.NAME == "Queue.DeleteOk"
    heal(bench)
    assert bench.node.engine.stats()["open_queues"] == 1


def test_a_confirm_that_acks_are_due_with_is_nacked_when_they_are_refused(bench: NodeBench) -> None:
    client = declare(bench)
    publish(client, "bad", "bad")
    client.call(1, spec.Confirm.Select())
    client.call(1, spec.Basic.Consume(queue="bad", consumer_tag="c"))
    refuse(bench)
    client.call(1, spec.Basic.Ack(delivery_tag=1))
    assert publish(client, "good") == ["Basic.Nack"]
    assert publish(client, "good") == ["Basic.Ack"]
    assert bench.node.queue_faults.of("/", "bad")[0].kind == "acknowledging"


def test_messages_of_one_run_that_go_different_ways_are_answered_each_for_itself(
    bench: NodeBench,
) -> None:
    client = declare(bench)
    for name in ("bad", "good"):
        client.call(1, spec.Queue.Bind(queue=name, exchange="amq.topic", routing_key=f"{name}.*"))
    client.call(1, spec.Confirm.Select())
    refuse(bench)
    keys = ("good.1", "bad.1", "bad.2", "good.2")
    assert publish(client, *keys, exchange="amq.topic") == ["Basic.Ack", "Basic.Nack", "Basic.Ack"]
    assert (state(bench, "bad")[1], state(bench, "good")[1]) == (2, 2)


DYING = [{"x-max-length": 0}, {"x-max-length-bytes": 2}, {"x-message-ttl": 0}, {"x-max-length": 1}]


def declare_dying(node: NodeBench, arguments: dict[str, object]) -> Client:
    """What dies in queue source goes to queue bad."""
    client = declare(node)
    to_bad = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "bad", **arguments}
    client.call(1, spec.Queue.Declare(queue="source", durable=True, arguments=to_bad))
    return client


def live_on_disk(node: NodeBench) -> int:
    writer = node.node.engine._writer
    assert writer is not None
    return sum(one.live for queue in writer.queues().values() for one in queue.index)


@pytest.mark.parametrize("is_known", [False, True])
@pytest.mark.parametrize("arguments", DYING)
def test_what_dies_on_arrival_is_not_confirmed_while_the_disk_refuses_its_copy(
    bench: NodeBench, arguments: dict[str, object], is_known: bool
) -> None:
    client = declare_dying(bench, arguments)
    client.call(1, spec.Confirm.Select())
    refuse(bench)
    if is_known:
        assert publish(client, "bad") == ["Basic.Nack"]
    heard = publish(client, "source", "source")
    assert queue_of(bench, "bad").ready_count >= 1
    assert live_on_disk(bench) == 2 or "Basic.Nack" in heard


def test_a_transaction_fails_when_the_only_copies_of_what_it_publishes_are_refused(
    bench: NodeBench,
) -> None:
    client = declare_dying(bench, {"x-max-length": 0})
    client.call(1, spec.Tx.Select())
    refuse(bench)
    publish(client, "source")
    names = [method.NAME for _, method in client.call(1, spec.Tx.Commit())]
    assert live_on_disk(bench) == 0
    assert names == ["Channel.Close"]
