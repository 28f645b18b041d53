"""How small and how quick an idle node is: memory, time to ready, the command-line tool, idle connections, loop stalls.

Owns no state. Loop stalls are read from the nodes' own Prometheus page after the load rows, when they export them.
"""

import re
import time

from bench import native, procfs
from bench.peers import Node, Setting
from bench.scenarios.base import EVERYBODY, OURS, Figure, Outcome, Scenario
from bench.stage import Stage

_STARTS = 3
_COMMANDS = 5
_HEARTBEAT_S = 60  # what most clients agree on with a broker
_ENOUGH = 1000  # observations: of fewer, the p99.9 is the maximum
_STALL = re.compile(
    r"^(\w*loop\w*(?:stall|lag)\w*)_bucket\{[^}]*le=\"([^\"]+)\"[^}]*\}\s+(\S+)$", re.MULTILINE
)


def _middle(values: list[float]) -> float:
    return sorted(values)[len(values) // 2]


def _empty(stage: Stage, peer: str) -> Outcome:
    ready: list[float] = []
    rss: list[float] = []
    for _ in range(_STARTS):
        with stage.fresh(peer, Setting(default_mode="bounded")) as node:
            ready.append(node.ready_s)
            time.sleep(1.0)
            rss.append(float(procfs.rss_bytes(node.pid)))
    return Outcome({"ready_s": _middle(ready), "rss": _middle(rss)}, "new data directory")


def _command(stage: Stage, peer: str) -> Outcome:
    node = stage.pooled(peer, Setting())
    spent: list[float] = []
    for _ in range(_COMMANDS):
        start = time.monotonic()
        node.control("list_queues", "name", "messages")
        spent.append(time.monotonic() - start)
    return Outcome({"seconds": _middle(spent)}, "list_queues name messages")


def _open_and_close(node: Node, count: int) -> tuple[float, float]:
    """Bytes that each open connection adds, seconds to open all."""
    before = procfs.rss_bytes(node.pid)
    run = native.StagedRun(node.port, mode="idle", connections=count, timeout=120)
    try:
        run.await_stage()
        procfs.wait_idle(node.pid)
        grown = procfs.rss_bytes(node.pid) - before
        report = run.finish()
    finally:
        run.abandon()
    procfs.wait_idle(node.pid)
    return grown / count, report["seconds"]


def _idle(stage: Stage, peer: str) -> Outcome:
    count = stage.scaled(1000, 500)
    with stage.fresh(peer, Setting()) as node:
        native.run(node.port, messages=20_000, consumers=1, name="warm-up", timeout=60)
        procfs.wait_idle(node.pid)
        bytes_each, open_s = _open_and_close(node, count)
        # The second batch uses the memory of the first again, unless there is a leak.
        again, _ = _open_and_close(node, count)
    values = {"bytes_each": bytes_each, "bytes_each_again": again, "open_s": open_s}
    return Outcome(values, f"{count} connections, one channel each, no heartbeats")


def _idle_cpu(stage: Stage, peer: str) -> Outcome:
    """The share of a core that connections cost which do nothing but exchange heartbeats."""
    count = stage.scaled(5000, 1000)
    with stage.fresh(peer, Setting()) as node:
        before = _share(node)
        run = native.StagedRun(
            node.port, mode="idle", connections=count, heartbeat=_HEARTBEAT_S, timeout=300
        )
        try:
            run.await_stage()
            procfs.wait_idle(node.pid)
            time.sleep(_HEARTBEAT_S / 2)  # each has said something once, and is idle from then on
            share = _share(node)
            run.finish()
        finally:
            run.abandon()
    return Outcome(
        {"share": share, "share_empty": before},
        f"{count} connections, one channel each, heartbeats of {_HEARTBEAT_S} s",
    )


def _share(node: Node) -> float:
    # Half an interval: each side of each connection sends once.
    start, before = time.monotonic(), procfs.cpu_use(node.pid).total_s
    time.sleep(_HEARTBEAT_S / 2)
    return (procfs.cpu_use(node.pid).total_s - before) / (time.monotonic() - start)


def stall_counts(page: str) -> dict[float, float]:
    """Upper edge of a bucket → observations up to it, from a Prometheus page."""
    return {float(edge): float(count) for _, edge, count in _STALL.findall(page)}


def stall_quantile_s(before: dict[float, float], after: dict[float, float]) -> float | None:
    """Edge of the bucket that holds p99.9 of what was observed in between; None for too few observations."""
    counts = {edge: count - before.get(edge, 0.0) for edge, count in sorted(after.items())}
    total = max(counts.values(), default=0.0)
    if total < _ENOUGH:
        return None
    return next(edge for edge, count in counts.items() if count >= total * 0.999)


def _stalls(stage: Stage, peer: str) -> Outcome:
    found = [
        stall_quantile_s(stall_counts(node.metrics_when_warm), stall_counts(node.metrics_page()))
        for node in stage.running()
        if node.peer == peer
    ]
    known = [value for value in found if value is not None]
    mode = "since warm-up, all rows of this run on pooled nodes"
    return Outcome({"p999_s": max(known)} if known else {}, mode)


SCENARIOS = (
    Scenario(key="empty-node", title="an empty node", run=_empty, peers=EVERYBODY, max_rounds=1),
    Scenario(
        key="command",
        title="one command of the command-line tool",
        run=_command,
        peers=(*OURS, "rabbitmq"),
        max_rounds=1,
    ),
    Scenario(key="idle", title="idle connection with a channel", run=_idle, max_rounds=1),
    Scenario(
        key="idle-5000",
        title="5,000 idle connections",
        run=_idle_cpu,
        max_rounds=1,
        is_full_only=True,
    ),
    Scenario(key="loop-stall", title="loop stall", run=_stalls, peers=OURS, max_rounds=1),
)

FIGURES = (
    Figure(
        title="empty node: RSS",
        scenario="empty-node",
        value="rss",
        must=60e6,
        reach=50e6,
        is_at_most=True,
        unit="MB",
    ),
    Figure(
        title="empty node: ready",
        scenario="empty-node",
        value="ready_s",
        must=0.5,
        is_at_most=True,
        unit="s",
    ),
    Figure(
        title="a `burrowctl` command",
        scenario="command",
        value="seconds",
        must=0.25,
        is_at_most=True,
        unit="s",
    ),
    Figure(
        title="idle connection with a channel",
        scenario="idle",
        value="bytes_each",
        must=8192,
        is_at_most=True,
        unit="KB",
    ),
    Figure(
        title="5,000 idle connections: share of a core",
        scenario="idle-5000",
        value="share",
        must=0.005,
        is_at_most=True,
        unit="%",
        only_full=True,
    ),
    Figure(
        title="loop stall, p99.9",
        scenario="loop-stall",
        value="p999_s",
        must=0.05,
        is_at_most=True,
        unit="ms",
    ),
)
