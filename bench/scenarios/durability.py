"""What fsync before confirm costs, and whether a lazy queue's work per message stays flat while it grows.

Owns no state. Only our broker can choose between the two confirm modes; both nodes run in the same round, in random order.
"""

import random
from collections.abc import Callable

from bench import native, procfs
from bench.peers import Setting
from bench.scenarios.base import OURS, Figure, Outcome, Scenario, measure_load
from bench.stage import Stage

_REPEATS = 3
_WINDOW_MESSAGES = 200_000


def _confirm_modes(size: int, full: int) -> Callable[[Stage, str], Outcome]:
    options: dict[str, native.Option] = {
        "durable": True,
        "persistent": True,
        "size": size,
        "confirm": 2000,
        "consumers": 1,
        "prefetch": 2000,
        "ack_every": 100,
        "timeout": 300,
    }

    def run(stage: Stage, peer: str) -> Outcome:
        count = stage.scaled(full, full // 4)
        rates: dict[str, list[float]] = {"fsync": [], "written": []}
        for _ in range(_REPEATS):
            for confirm in random.sample(("fsync", "written"), 2):
                node = stage.pooled(peer, Setting(confirm=confirm))
                outcome = measure_load(node, {**options, "messages": count})
                rates[confirm].append(outcome.values["rate"])
                native.run(node.port, mode="delete")
                procfs.wait_idle(node.pid)
        ratios = sorted(f / w for f, w in zip(rates["fsync"], rates["written"], strict=True))
        values = {
            "rate": sorted(rates["fsync"])[_REPEATS // 2],
            "written_rate": sorted(rates["written"])[_REPEATS // 2],
            "ratio": ratios[_REPEATS // 2],
        }
        return Outcome(values, "confirm = fsync beside confirm = written")

    return run


def _growth(stage: Stage, peer: str) -> Outcome:
    depths = [10_000, 100_000, 1_000_000] + ([10_000_000] if stage.is_full else [])
    options: dict[str, native.Option] = {
        "durable": True,
        "persistent": True,
        "lazy": True,
        "size": 100,
        "name": "growing",
        "timeout": 900,
    }
    values: dict[str, float] = {}
    costs: list[float] = []
    with stage.fresh(peer, Setting()) as node:
        native.run(node.port, **options, messages=depths[0])
        held = depths[0]
        for depth in depths:
            if depth > held:
                native.run(node.port, **options, messages=depth - held, append=True)
                held = depth
            outcome = measure_load(node, {**options, "messages": _WINDOW_MESSAGES, "append": True})
            held += _WINDOW_MESSAGES
            costs.append(outcome.values["cpu_us"])
            values[f"cpu_us_at_{depth}"] = costs[-1]
        values["rss_after"] = float(procfs.rss_bytes(node.pid))
    middle = sum(costs) / len(costs)
    values["cpu_us"] = middle
    values["deviation"] = max(abs(cost / middle - 1) for cost in costs)
    return Outcome(values, "lazy, persistent 100 B, no confirms")


SCENARIOS = (
    Scenario(
        key="fsync-below",
        title="`confirm = fsync` beside `written`, 2,000 unconfirmed, 1000 B (below the embed threshold)",
        run=_confirm_modes(1000, 400_000),
        peers=OURS[:1],
        max_rounds=1,
    ),
    Scenario(
        key="fsync-above",
        title="`confirm = fsync` beside `written`, 2,000 unconfirmed, 6000 B (above the embed threshold)",
        run=_confirm_modes(6000, 100_000),
        peers=OURS[:1],
        max_rounds=1,
    ),
    Scenario(
        key="lazy-growth",
        title="broker CPU per message as a lazy queue grows from 10^4 to 10^7",
        run=_growth,
        peers=OURS[:1],
        max_rounds=1,
    ),
)

FIGURES = (
    Figure(
        title="fsync / written, 2,000 unconfirmed, 1000 B",
        scenario="fsync-below",
        value="ratio",
        must=0.9,
        unit="",
    ),
    Figure(
        title="fsync / written, 2,000 unconfirmed, 6000 B",
        scenario="fsync-above",
        value="ratio",
        must=0.9,
        unit="",
    ),
    Figure(
        title="CPU per message as a lazy queue grows: largest deviation from the mean",
        scenario="lazy-growth",
        value="deviation",
        must=0.2,
        is_at_most=True,
        unit="%",
    ),
)
