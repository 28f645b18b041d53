"""Queues that the disk does not serve: declared, told once, gone when the disk serves them again."""

from __future__ import annotations

import errno

import pytest
from pika import spec

from burrowmq.broker import inspect
from burrowmq.broker.node.queue_faults import QueueFaults
from burrowmq.broker.queue import queue as queue_module
from burrowmq.config.store import StoreConfig
from burrowmq.management import commands, messages
from burrowmq.management.answers.reply import ApiError
from burrowmq.storage.names import QueueNames
from tests.support.bench.node import NodeBench
from tests.support.bench.observer import RecordingObserver
from tests.support.bench.world import publish


def test_a_fault_is_told_once_for_all_levels() -> None:
    observer = RecordingObserver()
    faults = QueueFaults(observer, lambda: 5, {})  # type: ignore[arg-type]
    for level in (0, 3):
        faults.changed(QueueNames("/", "q", level), "reading", "0.qs: pread failed")
    faults.changed(QueueNames("/", "r", 0), "writing", "no")
    assert (len(faults), len(faults.of("/", "q")), faults.of("/", "x")) == (2, 2, [])
    assert faults.cause == "queue 'q' in vhost '/' (reading), and 1 more: 0.qs: pread failed"
    faults.changed(QueueNames("/", "q", 0), "reading", "")
    assert observer.named("queue_fault_over") == []
    for name, level, kind in (("q", 3, "reading"), ("r", 0, "writing"), ("r", 0, "reading")):
        faults.changed(QueueNames("/", name, level), kind, "")
    assert observer.named("queue_fault") == [
        ("/", "q", "reading", "0.qs: pread failed"),
        ("/", "r", "writing", "no"),
    ]
    assert observer.named("queue_fault_over") == [("/", "q", "reading"), ("/", "r", "writing")]
    assert (len(faults), faults.cause) == (0, "")


def test_a_queue_in_trouble_says_so(tmp_path) -> None:
    with NodeBench(tmp_path) as bench:
        bench.queue("q")
        node = bench.node
        node.engine.on_queue_fault(QueueNames("/", "q", 0), "reading", "no")
        row = inspect.queue(node, "/", "q")
        assert row is not None
        assert (row["state"], row["fault"][0]["kind"]) == ("blocked", "reading")
        (alarm,) = inspect.alarms(node)
        assert (alarm["resource"], alarm["cause"]) == (
            "queue",
            "queue 'q' in vhost '/' (reading): no",
        )
        assert not node.alarms.active
        node.engine.on_queue_fault(QueueNames("/", "q", 0), "reading", "")
        row = inspect.queue(node, "/", "q")
        assert row is not None
        assert (row["state"], row["fault"]) == ("running", [])


def test_a_cancel_does_not_wait_for_a_read_that_is_refused(tmp_path) -> None:
    with NodeBench(tmp_path, store=StoreConfig(commit_log="off")) as bench:
        client = bench.connect(1)
        lazy = {"x-queue-mode": "lazy"}
        client.call(1, spec.Queue.Declare(queue="q", durable=True, arguments=lazy))
        publish(client, "q", 3, is_persistent=True)
        bench.disk.fail("pread", errno.EIO, times=1 << 30, path_part="/queues/")
        consume = spec.Basic.Consume(queue="q", consumer_tag="c")
        assert [each.NAME for _, each in client.call(1, consume)] == ["Basic.ConsumeOk"]
        assert bench.node.queue_faults.of("/", "q")[0].kind == "reading"
        found = client.call(1, spec.Basic.Cancel(consumer_tag="c"))
        assert [each.NAME for _, each in found] == ["Basic.CancelOk"]
        bench.disk.heal()
        bench.perform(bench.node.engine.idle)
        assert not bench.node.queue_faults
        found = client.call(1, consume)
        assert [each.NAME for _, each in found] == ["Basic.ConsumeOk", *["Basic.Deliver"] * 3]


def test_a_get_does_not_wait_for_ever_for_a_read_that_is_refused(
    tmp_path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(queue_module, "WITHHELD_S", 0.0)
    with NodeBench(tmp_path, store=StoreConfig(commit_log="off")) as bench:
        client = bench.connect(1, 2)
        lazy = {"x-queue-mode": "lazy"}
        client.call(1, spec.Queue.Declare(queue="q", durable=True, arguments=lazy))
        publish(client, "q", 3, is_persistent=True)
        bench.disk.fail("pread", errno.EIO, times=1 << 30, path_part="/queues/")
        get = spec.Basic.Get(queue="q", no_ack=True)
        ((_, close),) = client.call(1, get)
        queue = bench.node.vhosts["/"].queues["q"]
        assert queue.is_withheld
        assert (close.NAME, close.reply_code) == ("Channel.Close", 404)
        assert close.reply_text == (
            "NOT_FOUND - queue 'q' in vhost '/' is inaccessible: the disk does not serve it"
        )
        with pytest.raises(ApiError) as refused:
            got = messages.get(bench.node, "/", "q", 1, "ack_requeue_true")
            bench.loop.run_until_complete(got)
        assert refused.value.status == 503
        assert str(refused.value.reason).startswith("queue 'q' in vhost '/' is inaccessible: ")
        bench.disk.heal()
        bench.perform(bench.node.engine.idle)
        assert not queue.is_withheld
        assert [each.NAME for _, each in client.call(2, get)] == ["Basic.GetOk"]


def test_what_only_the_scrubber_cannot_read_holds_up_nobody(tmp_path) -> None:
    with NodeBench(tmp_path) as bench:
        bench.queue("q")
        node = bench.node
        node.engine.on_queue_fault(QueueNames("/", "q", 0), "scrubbing", "no")
        (fault,) = node.queue_faults.of("/", "q")
        assert (fault.kind, node.queue_faults.withheld("/", "q")) == ("scrubbing", "")
        assert node.queue_faults.cause == "queue 'q' in vhost '/' (scrubbing): no"


def test_a_queue_stays_while_the_disk_refuses_its_dead_letters(tmp_path) -> None:
    """Only the originals are durable: the dead letters are in memory."""
    with NodeBench(tmp_path, store=StoreConfig(commit_log="off")) as bench:
        client = bench.connect(1, 2, 3)
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        for name, its in (("dead", {}), ("q", arguments), ("other", arguments)):
            client.call(1, spec.Queue.Declare(queue=name, durable=True, arguments=its))
        publish(client, "q", 3, is_persistent=True)
        bench.perform(bench.node.engine.idle)
        place = QueueNames("/", "dead").directory
        bench.disk.fail("pwrite", errno.EIO, times=1 << 30, path_part=place)
        ((_, got),) = client.call(1, spec.Basic.Get(queue="q"))
        client.call(1, spec.Basic.Reject(got.delivery_tag, requeue=False))
        assert {fault.kind for fault in bench.node.queue_faults.of("/", "q")} == {"acknowledging"}
        ((_, close),) = client.call(1, spec.Queue.Delete(queue="q"))
        assert (close.NAME, close.reply_code) == ("Channel.Close", 404)
        assert close.reply_text == (
            "NOT_FOUND - queue 'q' in vhost '/' is inaccessible:"
            " the disk refuses its dead letters for queue 'dead'"
        )
        with pytest.raises(ApiError) as refused:
            commands.topology.delete_queue(bench.node, "/", "q")
        assert refused.value.status == 503
        assert str(refused.value.reason).startswith("queue 'q' in vhost '/' is inaccessible: ")
        ((_, done),) = client.call(2, spec.Queue.Delete(queue="other"))
        assert done.NAME == "Queue.DeleteOk"
        bench.disk.heal()
        bench.perform(bench.node.engine.idle)
        ((_, done),) = client.call(2, spec.Queue.Delete(queue="q"))
        assert done.NAME == "Queue.DeleteOk"
        counted = client.call(2, spec.Queue.Declare(queue="dead", passive=True))
        assert counted[0][1].message_count == 1


def test_a_vhost_goes_with_its_refused_queues_first(tmp_path) -> None:
    """What others gave them goes with them, in whatever steps."""
    with NodeBench(tmp_path, store=StoreConfig(commit_log="off")) as bench:
        client = bench.connect(1)
        arguments = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        for name, its in (("q", arguments), ("dead", {})):
            client.call(1, spec.Queue.Declare(queue=name, durable=True, arguments=its))
        publish(client, "q", 3, is_persistent=True)
        place = QueueNames("/", "dead").directory
        bench.disk.fail("pwrite", errno.EIO, times=1 << 30, path_part=place)
        ((_, got),) = client.call(1, spec.Basic.Get(queue="q"))
        client.call(1, spec.Basic.Reject(got.delivery_tag, requeue=False))
        node = bench.node
        steps = commands.vhosts.delete_vhost(node, "/")
        bench.perform(lambda: list(steps))
        assert (list(node.vhosts), node.engine.failure) == ([], None)
