"""Rows of shovels in each state; those of one that runs are in the shovels' own test."""

from __future__ import annotations

from pathlib import Path

from burrowmq.broker import inspect
from tests.support.shovel_bench import ShovelBench


def test_none_without_any(tmp_path: Path) -> None:
    with ShovelBench(tmp_path) as world:
        assert inspect.shovels(world.bench.node) == []


def test_one_that_has_ended_says_why(tmp_path: Path) -> None:
    with ShovelBench(tmp_path) as world:
        world.shovel("b", src_uri=[], src_queue="a", reconnect_delay=0)
        world.shovel("a", src_queue="a")
        world.until(lambda: world.state("b") == "terminated" and world.state("a") == "running")
        first, second = inspect.shovels(world.bench.node, "/")
        assert (first["name"], first["src_queue"]) == ("a", "a")
        assert (second["state"], second["reason"]) == ("terminated", "no URI is given")
        assert "src_uri" not in second
