"""What the scrubber costs and finds: throughput beside a large queue that is read again, against a node that reads nothing.

Owns no state. Each node holds the headline's queue; the load goes to another one. Windows take turns in random order:
without a scrubber, with its default period, and while a pass goes at the most that the default limit allows. Then a bit
is flipped in each of a hundred messages of such a queue, and a pass is asked for.
"""

import os
import random
import re
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from bench import native, procfs
from bench.peers import Node, Setting
from bench.scenarios.base import OURS, Figure, Outcome, Scenario, measure_load
from bench.stage import Stage

_REPEATS = 9
_FLIPS = 100
# Flips are so far apart that no two are in one message.
_APART = 4096
_PASS_S = 300.0
_MODES = ("off", "default", "limit")
_HEADLINE: dict[str, native.Option] = {
    "durable": True,
    "persistent": True,
    "lazy": True,
    "size": 1000,
    "name": "headline",
    "timeout": 900,
}
_LOAD: dict[str, native.Option] = {
    "durable": True,
    "persistent": True,
    "size": 1000,
    "confirm": 2000,
    "consumers": 1,
    "prefetch": 2000,
    "ack_every": 100,
    "timeout": 300,
    "name": "load",
}


def _beside_a_pass() -> Callable[[Stage, str], Outcome]:
    def run(stage: Stage, peer: str) -> Outcome:
        backlog, count = stage.scaled(1_000_000, 200_000), stage.scaled(400_000, 100_000)
        rates: dict[str, list[float]] = {mode: [] for mode in _MODES}
        costs: dict[str, list[float]] = {mode: [] for mode in _MODES}
        with ExitStack() as stack:
            nodes: dict[str, Node] = {}
            for mode in _MODES:
                setting = Setting(scrub_period="0" if mode == "off" else "")
                nodes[mode] = stack.enter_context(stage.fresh(peer, setting))
                stage.warm_up(nodes[mode])
                native.run(nodes[mode].port, **_HEADLINE, messages=backlog)
            for _ in range(_REPEATS):
                for mode in random.sample(_MODES, len(_MODES)):
                    node = nodes[mode]
                    if mode == "limit":
                        node.control("scrub", "--start")
                    outcome = measure_load(node, {**_LOAD, "messages": count})
                    rates[mode].append(outcome.values["rate"])
                    costs[mode].append(outcome.values["cpu_us"])
                    native.run(node.port, mode="delete", name="load")
                    procfs.wait_idle(node.pid)
        values = {f"{mode}_rate": sorted(found)[_REPEATS // 2] for mode, found in rates.items()}
        values |= {f"{mode}_cpu_us": sorted(found)[_REPEATS // 2] for mode, found in costs.items()}
        for mode in _MODES[1:]:
            ratios = sorted(
                one / other for one, other in zip(rates[mode], rates["off"], strict=True)
            )
            values[f"{mode}_ratio"] = ratios[_REPEATS // 2]
            ratios = sorted(
                one / other for one, other in zip(costs[mode], costs["off"], strict=True)
            )
            values[f"{mode}_cpu_ratio"] = ratios[_REPEATS // 2]
        values["rate"] = values["default_rate"]
        values["found"] = _found_of_flips(stage, peer, backlog)
        return Outcome(values, "beside the headline's queue; default period, and at the limit")

    return run


def _found_of_flips(stage: Stage, peer: str, backlog: int) -> float:
    """How many of a hundred damaged messages a pass finds."""
    with stage.fresh(peer, Setting(scrub_rate="256MiB")) as node:
        native.run(node.port, **_HEADLINE, messages=backlog)
        procfs.wait_idle(node.pid)
        _ask_for_a_pass(node)  # ends the one that began when the store was empty
        _flip(node.launch.data_directory)
        _ask_for_a_pass(node)
        return float(re.findall(r"(\d+) damaged messages", _last_pass(node))[0])


def _ask_for_a_pass(node: Node) -> None:
    """Returns when it has ended: what is said of the last one is something else then."""
    before, until = _last_pass(node), time.monotonic() + _PASS_S
    node.control("scrub", "--start")
    while _last_pass(node) == before:
        if time.monotonic() > until:
            raise TimeoutError("the scrubber's pass does not end")
        time.sleep(0.2)


def _last_pass(node: Node) -> str:
    return "".join(re.findall("^Last pass.*$", node.control("scrub"), re.MULTILINE))


def _flip(data_directory: Path) -> None:
    """Flip a bit in each of some messages, anywhere in them."""
    places = [
        (path, at)
        for path in data_directory.rglob("*.qs")
        for at in range(_APART, path.stat().st_size - _APART, _APART)
    ]
    for path, at in random.sample(places, _FLIPS):
        file = os.open(path, os.O_RDWR)
        place = at + random.randrange(_APART // 2)
        (byte,) = os.pread(file, 1, place)
        os.pwrite(file, bytes((byte ^ 1 << random.randrange(8),)), place)
        os.close(file)


SCENARIOS = (
    Scenario(
        key="scrub",
        title="confirms (window 2,000) and acks, 1000 B, beside the headline's queue that is read again",
        run=_beside_a_pass(),
        peers=OURS[:1],
        max_rounds=1,
    ),
)

FIGURES = (
    Figure(
        title="scrubber at its default rate / without one",
        scenario="scrub",
        value="default_ratio",
        must=0.98,
        unit="",
    ),
    Figure(
        title="scrubber at its default rate / without one, processor time of the node",
        scenario="scrub",
        value="default_cpu_ratio",
        must=1.02,
        is_at_most=True,
        unit="",
    ),
    Figure(
        title="scrubber: damaged messages found of a hundred",
        scenario="scrub",
        value="found",
        must=100,
        unit="",
    ),
)
