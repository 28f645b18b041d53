"""What clients hear of queues that went while a commit was in flight, and of copies that only memory has.

Covers: broker/node/running.py, broker/channel/methods/tx.py, storage/log/filesystem.py, storage/engine.py
"""

from __future__ import annotations

import errno
from pathlib import Path
from typing import Any

import pytest
from pika import spec

from burrowmq.config.store import StoreConfig
from tests.support.bench.durable import (
    FOR_GOOD,
    TO_BAD,
    connect,
    declare,
    live_on_disk,
    names,
    published,
    refuse,
    slow_disk,
)
from tests.support.bench.node import NodeBench
from tests.support.wire_client import method_bytes


@pytest.mark.parametrize("when", ["same turn", "in flight", "declared again"])
def test_what_died_on_arrival_is_not_confirmed_when_its_queue_goes_before_the_disk_refuses_the_copy(
    bench: NodeBench, when: str
) -> None:
    client, other = connect(bench), connect(bench)
    declare(client, "bad")
    declare(client, "source", arguments=TO_BAD)
    client.call(1, spec.Confirm.Select())
    refuse(bench)
    delete = method_bytes(1, spec.Queue.Delete(queue="source"))
    with slow_disk(bench) as done:
        if when == "same turn":
            client.send(published("source"), delete)
        else:
            client.send(published("source"))
            other.send(delete)
        if when == "declared again":
            third = connect(bench)
            third.send(method_bytes(1, spec.Queue.Declare(queue="source", durable=True)))
        done()
    heard = names(client)
    assert live_on_disk(bench) == 0, "only memory has it"
    assert "Basic.Ack" not in heard
    assert "Basic.Nack" in heard


def test_nor_is_a_transaction_that_published_it(bench: NodeBench) -> None:
    client, other = connect(bench), connect(bench)
    declare(client, "bad")
    declare(client, "source", arguments=TO_BAD)
    client.call(1, spec.Tx.Select())
    refuse(bench)
    with slow_disk(bench) as done:
        client.send(published("source"), method_bytes(1, spec.Tx.Commit()))
        other.send(method_bytes(1, spec.Queue.Delete(queue="source")))
        done()
    assert live_on_disk(bench) == 0, "only memory has it"
    assert names(client) == ["Channel.Close"]


@pytest.mark.parametrize("times", [1, FOR_GOOD])
def test_what_a_transient_queues_file_refuses_does_not_end_the_store(
    tmp_path: Path, times: int
) -> None:
    with NodeBench(tmp_path, store=StoreConfig(commit_log="on")) as bench:
        errors: list[dict[str, Any]] = []  # inline, what ends the store is raised in the loop
        bench.loop.set_exception_handler(lambda _, context: errors.append(context))
        client = connect(bench)
        client.call(1, spec.Confirm.Select())
        for name in ("transient", "durable"):
            lazy = {"x-queue-mode": "lazy"}
            declare(client, name, durable=name == "durable", arguments=lazy)
        client.send(published("transient"), published("durable"))
        client.read()
        bench.disk.fail("pwrite", errno.EIO, times=times, path_part="/transient/")
        client.send(published("transient"), published("durable"))
        assert bench.disk.failed
        heard = names(client)
        assert not errors
        assert heard[-1] == "Basic.Ack"


def test_what_a_transaction_published_goes_to_the_queue_that_has_the_name_at_the_commit(
    bench: NodeBench,
) -> None:
    client, other = connect(bench), connect(bench)
    declare(client, "q")
    client.call(1, spec.Tx.Select())
    client.send(published("q"))
    other.call(1, spec.Queue.Delete(queue="q"))
    declare(other, "q")
    client.send(method_bytes(1, spec.Tx.Commit()))
    assert names(client) == ["Tx.CommitOk"]
    assert bench.node.vhosts["/"].queues["q"].ready_count == 1


def test_a_mandatory_message_comes_back_where_its_queue_is_gone_at_the_commit(
    bench: NodeBench,
) -> None:
    client, other = connect(bench), connect(bench)
    declare(client, "q")
    client.call(1, spec.Tx.Select())
    client.send(published("q", mandatory=True))
    other.call(1, spec.Queue.Delete(queue="q"))
    client.send(method_bytes(1, spec.Tx.Commit()))
    assert names(client) == ["Basic.Return", "Tx.CommitOk"]


@pytest.mark.parametrize(
    "method",
    [
        spec.Queue.Delete(queue="q"),
        spec.Exchange.Delete(exchange="x"),
        spec.Queue.Unbind(queue="q", exchange="x", routing_key="k"),
        spec.Exchange.Unbind(destination="y", source="x", routing_key="k"),
    ],
    ids=lambda method: method.NAME,
)
def test_that_something_is_gone_is_said_when_that_is_durable(bench: NodeBench, method: Any) -> None:
    first, second = connect(bench), connect(bench)
    declare(first, "q")
    for name in ("x", "y"):
        first.call(1, spec.Exchange.Declare(exchange=name, type="topic", durable=True))
    first.call(1, spec.Queue.Bind(queue="q", exchange="x", routing_key="k"))
    first.call(1, spec.Exchange.Bind(destination="y", source="x", routing_key="k"))
    with slow_disk(bench) as done:
        for client in (first, second):
            client.send(method_bytes(1, method))
        assert names(first) == []
        assert names(second) == []
        done()
    assert names(first) == names(second) == [f"{method.NAME}Ok"]


@pytest.mark.parametrize("log", ["on", "off"])
@pytest.mark.parametrize("arguments", [{}, {"x-max-priority": 3}, {"x-queue-mode": "lazy"}])
@pytest.mark.parametrize("is_declared_again", [False, True])
def test_a_definition_that_a_start_cannot_use_does_not_cost_the_queues_messages(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    log: str,
    arguments: dict[str, Any],
    is_declared_again: bool,
) -> None:
    """Somebody mends it, or declares the queue again, in which more is published then."""
    config = StoreConfig(commit_log=log)
    with NodeBench(tmp_path, store=config) as bench:
        declare(connect(bench), "q", arguments=arguments)
        client = connect(bench)
        client.call(1, spec.Confirm.Select())
        client.send(*[published("q", str(number).encode()) for number in range(3)])
        assert names(client) == ["Basic.Ack"]
    disk, store, row = bench.disk, bench.store, ("queue", '["/","q"]')
    good = store._texts[row]
    store._texts[row] = good.replace("auto_delete", "auto_delate")
    monkeypatch.setattr("tests.support.bench.node.SimFileSystem", lambda strict: disk)
    monkeypatch.setattr("tests.support.bench.node.MemoryDefinitionStore", lambda _: store)
    expected = 3
    with NodeBench(tmp_path, store=config) as bench:
        bench.perform(bench.node.scheduler.touch)
        assert "q" not in bench.node.vhosts["/"].queues
        if is_declared_again:
            client = connect(bench)
            client.call(1, spec.Confirm.Select())
            declare(client, "q", arguments=arguments)
            client.send(published("q", b"3"))
            assert names(client) == ["Basic.Ack"]
            expected = 4
    store = bench.store
    if not is_declared_again:
        store._texts[row] = good
    with NodeBench(tmp_path, store=config) as bench:
        bench.perform(bench.node.scheduler.touch)
        queue = bench.node.vhosts["/"].queues["q"]
        assert queue.ready_count == expected
        bodies = []
        for _ in range(expected):
            ((_, got),) = connect(bench).call(1, spec.Basic.Get(queue="q", no_ack=True))
            bodies.append(got.body)
        assert bodies == [str(number).encode() for number in range(expected)]


@pytest.mark.parametrize("dies_on_arrival", [True, False])
@pytest.mark.parametrize("is_full", [True, False])
def test_dead_letters_that_another_queue_sends_on_are_the_only_copies_too(
    bench: NodeBench, is_full: bool, dies_on_arrival: bool
) -> None:
    """That one keeps nothing of them: it is transient, or refuses them since it is full."""
    client = connect(bench)
    declare(client, "bad")
    between = {**TO_BAD, "x-overflow": "reject-publish-dlx"} if is_full else TO_BAD
    declare(client, "between", durable=is_full, arguments=between)
    arguments: dict[str, Any] = {**TO_BAD, "x-dead-letter-routing-key": "between"}
    if not dies_on_arrival:
        del arguments["x-max-length"]
    declare(client, "source", arguments=arguments)
    client.call(1, spec.Confirm.Select())
    if dies_on_arrival:
        refuse(bench)
    client.send(published("source"))
    heard = names(client)
    if not dies_on_arrival:
        refuse(bench)
        ((_, got),) = client.call(1, spec.Basic.Get(queue="source"))
        client.call(1, spec.Basic.Reject(delivery_tag=got.delivery_tag, requeue=False))
        bench.perform(bench.node.engine.idle)
    writer = bench.node.engine._writer
    assert writer is not None
    withheld = [writer.queues()[one].names.name for one in writer.refusals.withheld()]
    assert bench.node.vhosts["/"].queues["bad"].ready_count == 1
    assert heard == (["Basic.Nack"] if dies_on_arrival else ["Basic.Ack"])
    assert dies_on_arrival or withheld == ["source"], (
        "the original's acknowledgement is not written"
    )
