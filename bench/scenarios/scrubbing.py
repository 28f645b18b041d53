"""What the scrubber costs: throughput beside a large queue that is read again, against a node that reads nothing.

Owns no state. Each node holds the headline's queue; the load goes to another one. Windows take turns in random order:
without a scrubber, with its default period, and while a pass goes at the most that the default limit allows.
"""

import random
from collections.abc import Callable
from contextlib import ExitStack

from bench import native, procfs
from bench.peers import Node, Setting
from bench.scenarios.base import OURS, Figure, Outcome, Scenario, measure_load
from bench.stage import Stage

_REPEATS = 9
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
        values["rate"] = values["default_rate"]
        return Outcome(values, "beside the headline's queue; default period, and at the limit")

    return run


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
)
