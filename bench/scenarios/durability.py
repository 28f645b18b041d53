"""What fsync before confirm costs, and whether a lazy queue's work per message stays flat while it grows.

Owns no state. Only our broker can choose between the two confirm modes; both nodes run in the same round, in random
order.
"""

import random
from collections.abc import Callable
from contextlib import ExitStack

from bench import native, procfs
from bench.peers import Node, Setting
from bench.scenarios.base import OURS, Figure, Outcome, Scenario, measure_load
from bench.stage import Stage

_REPEATS = 9
_WINDOW_MESSAGES = 100_000
_WINDOWS = 9
_DISTURBED_WINDOWS = (
    2  # the cheapest and the dearest are left out: other machines on the host disturbed them
)
_TOUCHED_BYTES = 2 << 30  # several times what the windows of one depth write
_REMADE_BELOW = 1_000_000
_GROWING: dict[str, native.Option] = {
    "durable": True,
    "persistent": True,
    "lazy": True,
    "size": 100,
    "name": "growing",
    "timeout": 900,
}


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
        with ExitStack() as stack:
            # Not the pooled one: it has held the backlogs of other rows, and the node beside it would have held none.
            nodes = {
                confirm: stack.enter_context(stage.fresh(peer, Setting(confirm=confirm)))
                for confirm in rates
            }
            for node in nodes.values():
                stage.warm_up(node)
            for _ in range(_REPEATS):
                for confirm in random.sample(list(rates), 2):
                    node = nodes[confirm]
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


def _window_cpu_us(node: Node, depth: int) -> float:
    """Broker CPU per message published on top of `depth` waiting ones."""
    if depth < _REMADE_BELOW:
        native.run(node.port, **_GROWING, messages=depth)
    outcome = measure_load(node, {**_GROWING, "messages": _WINDOW_MESSAGES, "append": True})
    return outcome.values["cpu_us"]


def _growth(stage: Stage, peer: str) -> Outcome:
    depths = [10_000, 100_000, 1_000_000] + ([10_000_000] if stage.is_full else [])
    costs: dict[int, float] = {}
    with stage.fresh(peer, Setting()) as node:
        _window_cpu_us(node, depths[0])  # the first window of a process also pays for its warm-up
        for depth in depths:
            if depth >= _REMADE_BELOW:
                held = _messages_held(costs)
                native.run(node.port, **_GROWING, messages=depth - held, append=held > 0)
            procfs.touch_memory(_TOUCHED_BYTES)
            windows = sorted(_window_cpu_us(node, depth) for _ in range(_WINDOWS))
            kept = windows[_DISTURBED_WINDOWS:-_DISTURBED_WINDOWS]
            costs[depth] = sum(kept) / len(kept)
        rss = procfs.rss_bytes(node.pid)
    middle = sum(costs.values()) / len(costs)
    values = {f"cpu_us_at_{depth}": cost for depth, cost in costs.items()}
    values["cpu_us"] = middle
    values["rss_after"] = float(rss)
    values["deviation"] = max(abs(cost / middle - 1) for cost in costs.values())
    return Outcome(values, "lazy, persistent 100 B, no confirms")


def _messages_held(costs: dict[int, float]) -> int:
    # Shallow queues are made anew for each window, deep ones grow: what the last deep depth has left.
    deep = [depth for depth in costs if depth >= _REMADE_BELOW]
    return max(deep) + _WINDOWS * _WINDOW_MESSAGES if deep else 0


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
