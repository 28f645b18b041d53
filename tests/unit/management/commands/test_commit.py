"""A change reaches the end of the turn, a refused one does not, and a reply waits for the disk."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from burrowmq.management.answers.reply import ApiError
from burrowmq.management.commands import commit, parameters, topology, users
from tests.support.bench.broker import BrokerBench
from tests.support.bench.node import NodeBench
from tests.support.fake_ticket import FakeTicket


def test_a_change_reaches_the_end_of_the_turn(bench: NodeBench) -> None:
    node, lazy = bench.node, bench.node.vhosts["/"].queues["lazy"]
    bench.perform(lambda: topology.purge(node, "/", "lazy"))
    assert lazy.ready_count == 0
    turns = node.scheduler.turns
    bench.perform(lambda: users.put_user(node, "bob", "x", None, ["management"]))
    assert node.scheduler.turns > turns
    assert ("user", '["bob"]') in [row[:2] for row in bench.store.load()]


def test_a_change_that_is_refused_does_not(bench: NodeBench) -> None:
    node = bench.node
    turns = node.scheduler.turns

    def refused() -> None:
        with pytest.raises(ApiError, match="404"):
            parameters.delete_policy(node, "/", "nope", is_operator=False)
        with pytest.raises(ApiError, match="404"):
            topology.delete_queue(node, "/", "nope")

    bench.perform(refused)
    assert node.scheduler.turns == turns


def test_a_reply_waits_until_the_disk_has_what_was_staged() -> None:
    core = BrokerBench()
    node = cast("Any", core)
    is_durable = False

    async def change() -> None:
        nonlocal is_durable
        core.queue("q", durable=True)
        await commit.durable(node)
        is_durable = True

    async def serve() -> None:
        node.failed = asyncio.get_running_loop().create_future()
        changed = asyncio.ensure_future(change())
        await asyncio.sleep(0)
        core.run()
        assert core.engine.in_flight is not None
        assert not is_durable
        core.commit()
        await changed

    asyncio.run(serve())
    assert is_durable


def test_a_reply_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    core = BrokerBench()
    monkeypatch.setattr(commit, "COMMIT_TIMEOUT_S", 0)
    asyncio.run(refused(core))
    core.commit()  # too late for the reply, and harmless


async def refused(core: BrokerBench, failure: str | None = None) -> None:
    """Wait for a commit that does not come; `failure` is why the store fails meanwhile."""
    loop, node = asyncio.get_running_loop(), cast("Any", core)
    node.failed = loop.create_future()
    if failure is not None:
        loop.call_soon(node.failed.set_result, failure)
    with pytest.raises(ApiError, match="503 store_failed: the change was not written to disk"):
        await commit.durable(node)


@pytest.mark.timeout(5)
def test_a_reply_does_not_wait_for_a_store_that_has_failed() -> None:
    asyncio.run(refused(BrokerBench(), "disk on fire"))


def test_a_batch_is_written_even_when_nothing_was_staged(bench: NodeBench) -> None:
    epoch = bench.node.engine.epoch
    bench.loop.run_until_complete(commit.durable(bench.node))
    assert bench.node.engine.epoch == epoch + 1


def test_a_turn_is_waited_for_and_no_disk(bench: NodeBench) -> None:
    node = bench.node
    turns, epoch = node.scheduler.turns, node.engine.epoch
    bench.loop.run_until_complete(commit.turned(node))
    assert node.scheduler.turns > turns
    node.scheduler.stop()
    bench.loop.run_until_complete(commit.turned(node))
    assert node.engine.epoch <= epoch + 1


def test_what_a_queue_elsewhere_never_says_is_not_waited_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(commit, "COMMIT_TIMEOUT_S", 0.01)
    assert not asyncio.run(commit.taken(FakeTicket(1, is_done=True, refused=[0])))
    with pytest.raises(ApiError, match="503"):
        asyncio.run(commit.taken(FakeTicket(1)))
