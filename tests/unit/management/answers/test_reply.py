"""Bodies and errors."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any, cast

import pytest

from burrowmq.management.answers import reply
from burrowmq.management.answers.access import TRUSTED
from burrowmq.management.answers.rates import Rates
from tests.support.bench.node import NodeBench


def test_lenient_values() -> None:
    assert reply.flag_of({"a": "true"}, "a", False)
    assert not reply.flag_of({}, "a", False)
    assert reply.number_of({"n": "-3"}, "n") == -3
    for body in ({"n": "x"}, {"n": True}, {}):
        with pytest.raises(reply.ApiError):
            reply.number_of(body, "n")


def test_long_lists_give_way() -> None:
    turns = 0

    async def count_turns() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0)
            turns += 1

    async def collect() -> int:
        task = asyncio.get_running_loop().create_task(count_turns())
        rows = await reply.collect(range(1000))
        task.cancel()
        return len(rows)

    assert asyncio.run(collect()) == 1000
    assert turns >= 4


def test_long_replies_are_the_same_json() -> None:
    rows = [[number, "x"] for number in range(1000)]
    for count in (3, 1000):
        response = asyncio.run(reply.reply_rows(rows[:count], {"columns": ["null"], "rows": None}))
        assert json.loads(response.body) == {"columns": ["null"], "rows": rows[:count]}
        assert json.loads(asyncio.run(reply.reply_rows(rows[:count])).body) == rows[:count]


def test_a_call_gives_the_application_that_runs(tmp_path: Path) -> None:
    with NodeBench(tmp_path) as bench:
        call = reply.Call(cast("Any", None), bench.host, TRUSTED, Rates())
        assert call.node is bench.node
        bench.loop.run_until_complete(bench.host.stop_application())
        with pytest.raises(reply.ApiError) as refusal:
            _ = call.node
    assert (refusal.value.status, refusal.value.error) == (503, "not_running")
