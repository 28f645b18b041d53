"""Policies, parameters, limits and definitions documents through the API."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from burrowmq.broker.definitions.document import ImportRefused
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.broker.rules.parameter_rules import RefusedValue
from burrowmq.broker.vhost.policy_pass import QUEUES_PER_TURN
from burrowmq.management.answers.reply import ApiError
from burrowmq.management.commands import parameters
from burrowmq.management.commands.parameters import ENTRIES_PER_TURN
from tests.support.bench.node import NodeBench

POLICY = {"pattern": "^lazy$", "definition": {"max-length": 2}}


@pytest.mark.parametrize("is_operator", [False, True])
def test_a_policy_is_new_once_in_force_at_once_and_goes(
    bench: NodeBench, is_operator: bool
) -> None:
    node, lazy = bench.node, bench.node.vhosts["/"].queues["lazy"]

    def put() -> bool:
        return parameters.put_policy(node, "/", "short", POLICY, is_operator=is_operator)

    assert bench.perform(put)
    assert (lazy.settings.max_length, lazy.ready_count) == (2, 2)
    assert not bench.perform(put)
    bench.perform(lambda: parameters.delete_policy(node, "/", "short", is_operator=is_operator))
    assert lazy.settings.max_length is None
    with pytest.raises(ApiError, match="404"):
        parameters.delete_policy(node, "/", "short", is_operator=is_operator)


def test_a_policy_of_operators_is_not_one_of_users(bench: NodeBench) -> None:
    bench.perform(lambda: parameters.put_policy(bench.node, "/", "short", POLICY, is_operator=True))
    with pytest.raises(ApiError, match="404"):
        parameters.delete_policy(bench.node, "/", "short", is_operator=False)


def test_a_parameter_comes_and_goes(bench: NodeBench) -> None:
    node = bench.node

    def put() -> bool:
        return parameters.put_parameter(node, "/", "operator_policy", "short", POLICY)

    assert bench.perform(put)
    assert node.vhosts["/"].queues["lazy"].ready_count == 2
    assert not bench.perform(put)
    bench.perform(lambda: parameters.delete_parameter(node, "/", "operator_policy", "short"))
    with pytest.raises(ApiError, match="404"):
        parameters.delete_parameter(node, "/", "operator_policy", "short")


def test_policies_are_no_parameters(bench: NodeBench) -> None:
    with pytest.raises(RefusedValue, match="policies may not be set using this method"):
        parameters.put_parameter(bench.node, "/", "policy", "short", POLICY)


def test_a_global_parameter_is_kept_whatever_its_value_is(bench: NodeBench) -> None:
    node = bench.node
    assert bench.perform(lambda: parameters.put_global_parameter(node, "a", {"b": [1]}))
    assert not bench.perform(lambda: parameters.put_global_parameter(node, "a", 2))
    assert node.parameters.values["a"] == 2
    bench.perform(lambda: parameters.delete_global_parameter(node, "a"))
    with pytest.raises(ApiError, match="404"):
        parameters.delete_global_parameter(node, "a")


def test_limits_of_a_vhost_replace_those_before(bench: NodeBench) -> None:
    node = bench.node
    bench.perform(lambda: parameters.set_vhost_limits(node, "/", {"max-queues": 3}))
    bench.perform(lambda: parameters.set_vhost_limits(node, "/", {"max-connections": 2}))
    assert node.vhosts["/"].limits == {"max-connections": 2}


def test_a_document_is_taken_over_and_others_get_their_turn_meanwhile(bench: NodeBench) -> None:
    count = 2 * ENTRIES_PER_TURN + 1
    queues = [
        {"name": f"q{at}", "durable": True, "auto_delete": False, "arguments": {}}
        for at in range(count)
    ]
    others = 0

    async def take_over(document: dict[str, Any]) -> None:
        nonlocal others
        imported = asyncio.ensure_future(parameters.import_definitions(bench.node, document, "/"))
        while not imported.done():
            others += 1
            await asyncio.sleep(0)
        await imported

    bench.loop.run_until_complete(take_over({"queues": queues}))
    assert len(bench.node.vhosts["/"].queues) == count + 2
    assert others > 2


def test_what_came_before_a_refused_entry_is_written(bench: NodeBench) -> None:
    async def take_over() -> None:
        document = {"queues": [{"name": "kept"}, {"name": 7}]}
        with pytest.raises(ImportRefused):
            await parameters.import_definitions(bench.node, document, "/")
        await asyncio.sleep(0)

    bench.loop.run_until_complete(take_over())
    assert ("queue", '["/","kept"]') in [row[:2] for row in bench.store.load()]


def test_who_waits_for_policies_is_told_when_the_application_stops(bench: NodeBench) -> None:
    bench.lose_clients()
    node = bench.node
    vhost = node.vhosts["/"]

    async def stop_meanwhile() -> None:
        for number in range(5 * QUEUES_PER_TURN):
            vhost.declare_queue(QueueDeclaration(name=f"q{number}"))
        parameters.put_policy(node, "/", "all", {**POLICY, "pattern": ""}, is_operator=False)
        waiting = asyncio.ensure_future(parameters.in_force(node, "/"))
        await bench.host.stop_application()
        await asyncio.wait_for(waiting, 0.2)

    bench.loop.run_until_complete(stop_meanwhile())


def test_policies_of_a_document_do_not_keep_others_from_their_turn(
    bench: NodeBench, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(parameters, "TURN_S", 0.0)
    policies = [{"name": f"p{at}", **POLICY} for at in range(ENTRIES_PER_TURN)]
    turns = 0

    async def take_over() -> None:
        nonlocal turns
        document = {"policies": policies}
        imported = asyncio.ensure_future(parameters.import_definitions(bench.node, document, "/"))
        while not imported.done():
            turns += 1
            await asyncio.sleep(0)
        await imported

    bench.loop.run_until_complete(take_over())
    assert turns > ENTRIES_PER_TURN
