"""Start with messages on disk: from exec to the first basic.get-ok, after a clean stop and after kill -9, page cache warm.

Owns no state. Afterwards a consumer drains the queue and checks order and content of every body, so a fast start that lost
something is not a result.
"""

import time

from bench import native, procfs
from bench.peers import PEERS, Node, Setting
from bench.scenarios.base import Figure, Outcome, Scenario
from bench.stage import Stage

_QUEUE: dict[str, native.Option] = {
    "durable": True,
    "persistent": True,
    "lazy": True,
    "size": 1000,
    "name": "kept",
    "timeout": 600,
}


def _first_get_s(node: Node, expected: int) -> float:
    """Start the node and return seconds from exec to get-ok; refuses a queue that is not complete."""
    node.spawn()
    report = native.run(node.port, mode="get", name="kept", timeout=300)
    seconds = report["answered_ns"] / 1e9 - node.started_at  # both clocks are CLOCK_MONOTONIC
    node.await_ready()
    if not report["found"] or report["left"] != expected - 1:
        raise native.GeneratorFailed(f"{report['left']:.0f} left of {expected} after a restart")
    return seconds


def _run(stage: Stage, peer: str) -> Outcome:
    count = stage.scaled(1_000_000, 200_000)
    setting = Setting(default_mode="bounded")
    node = stage.make(peer, setting)
    values: dict[str, float] = {}
    try:
        node.start()
        native.run(node.port, **_QUEUE, messages=count, confirm=5000)
        procfs.wait_idle(node.pid)
        stopping = time.monotonic()
        node.stop()
        values["stop_s"] = time.monotonic() - stopping
        values["clean_s"] = _first_get_s(node, count)
        procfs.wait_idle(node.pid)
        values["rss_after_clean"] = float(procfs.rss_bytes(node.pid))
        node.kill()
        values["killed_s"] = _first_get_s(node, count)
        procfs.wait_idle(node.pid)
        before = procfs.cpu_use(node.pid)
        drained = native.run(
            node.port,
            **_QUEUE,
            messages=count,
            append=True,
            producers=0,
            consumers=1,
            prefetch=1000,
            verify=True,
        )
        values["drain_rate"] = drained["rate"]
        values["cpu_us"] = (procfs.cpu_use(node.pid).total_s - before.total_s) * 1e6 / count
    finally:
        stage.discard(node)
    return Outcome(values, f"lazy, {PEERS[peer].durability(setting)}")


SCENARIOS = (
    Scenario(
        key="restart",
        title="start with messages on disk (1,000,000 x 1000 B, lazy), then drain in order",
        run=_run,
        peers=("burrowmq", "burrowmq-pure", "rabbitmq"),
        max_rounds=1,
    ),
)

FIGURES = (
    Figure(
        title="start to first basic.get-ok, 1,000,000 on disk, clean",
        scenario="restart",
        value="clean_s",
        must=1.5,
        is_at_most=True,
        unit="s",
        only_full=True,
    ),
    Figure(
        title="start to first basic.get-ok, 1,000,000 on disk, after kill -9",
        scenario="restart",
        value="killed_s",
        must=5.0,
        is_at_most=True,
        unit="s",
        only_full=True,
    ),
)
