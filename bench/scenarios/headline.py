"""The lazy queue guide's headline: PerfTest publishes 1,000,000 x 1000 B into a lazy queue that nobody reads.

Owns no state. Read 2 s after the last publish: node memory, what the queue says it keeps in RAM, the data directory. Each run
takes a fresh node, because memory of earlier rows would be counted.
"""

import time
from collections.abc import Mapping

from bench import perftest, procfs
from bench.peers import PEERS, Setting
from bench.scenarios.base import Figure, Outcome, Scenario
from bench.stage import Stage

MODES = ("default", "lazy")
VERSIONS = (1, 2)
_COLUMNS = ("name", "memory", "messages", "messages_ram", "message_bytes_ram")


def queue_columns(output: str, queue: str) -> dict[str, float]:
    """Numbers of one queue in tab-separated list_queues output with `_COLUMNS`."""
    for line in output.splitlines():
        cells = line.split("\t")
        if cells[0] == queue and len(cells) == len(_COLUMNS):
            return {name: float(cell) for name, cell in zip(_COLUMNS[1:], cells[1:], strict=True)}
    return {}


def _run(stage: Stage, peer: str) -> Outcome:
    # An untouched node; the queue is lazy by its argument.
    return _fill(stage, peer, Setting(default_mode="bounded"), {"x-queue-mode": "lazy"})


def _fill(stage: Stage, peer: str, setting: Setting, queue_arguments: Mapping[str, str]) -> Outcome:
    count = stage.scaled(1_000_000, 200_000)
    given = ",".join(f"{name}={value}" for name, value in queue_arguments.items())
    arguments = f"-y 0 -s 1000 -f persistent -C {count} -u lazy -qa {given} -ad false"
    with stage.fresh(peer, setting) as node:
        rss_before = procfs.rss_bytes(node.pid)
        procfs.reset_peak_rss(node.pid)
        before = procfs.cpu_use(node.pid)
        result = perftest.run(node.port, arguments.split())
        time.sleep(2.0)
        values = {
            "rate": result.sent_rate,
            "rss_before": float(rss_before),
            "rss_after": float(procfs.rss_bytes(node.pid)),
            "rss_peak": float(procfs.peak_rss_bytes(node.pid)),
            "disk_bytes": float(procfs.disk_bytes(node.launch.data_directory)),
            "cpu_us": (procfs.cpu_use(node.pid).total_s - before.total_s) * 1e6 / count,
        }
        if peer != "lavinmq":
            queue = queue_columns(node.control("list_queues", *_COLUMNS), "lazy")
            values |= {f"queue_{name}": value for name, value in queue.items()}
            values["queue_lost"] = count - queue.get("messages", 0.0)
    mode = ", ".join(queue_arguments.values())
    return Outcome(values, f"{mode}, {PEERS[peer].durability(setting)}", "client")


def _variant(mode: str, version: int) -> Scenario:
    """The same for a queue mode and a storage version; default mode keeps messages in RAM, as the guide's table does."""

    def run(stage: Stage, peer: str) -> Outcome:
        setting = Setting(default_mode="cached" if mode == "default" else "bounded")
        return _fill(stage, peer, setting, {"x-queue-mode": mode, "x-queue-version": str(version)})

    return Scenario(
        key=f"headline_{mode}_v{version}",
        title=f"the headline's load, {mode} mode, storage version {version}",
        run=run,
        peers=("burrowmq", "rabbitmq"),
        max_rounds=1,
        is_full_only=True,
        is_perftest=True,
    )


def modes_table(values: Mapping[str, Mapping[str, float]]) -> str:
    """Put the figures of all modes and versions, by scenario key, into one table."""
    lines = [
        "| mode | version | queue memory | messages in RAM | bytes in RAM | node RSS | disk |",
        "|---|---|---|---|---|---|---|",
    ]
    for mode in MODES:
        for version in VERSIONS:
            found = values.get(f"headline_{mode}_v{version}")
            if found is not None:
                lines.append(
                    f"| {mode} | {version} | {found['queue_memory'] / 1e3:,.0f} KB |"
                    f" {found['queue_messages_ram']:,.0f} |"
                    f" {found['queue_message_bytes_ram'] / 1e6:,.0f} MB |"
                    f" {found['rss_after'] / 1e6:,.0f} MB | {found['disk_bytes'] / 1e9:.2f} GB |"
                )
    return "\n".join(lines)


SCENARIOS = (
    Scenario(
        key="headline",
        title="the guide's headline (PerfTest, persistent, lazy, 1000 B, no consumer)",
        run=_run,
        max_rounds=1,
        is_perftest=True,
    ),
    *(_variant(mode, version) for mode in MODES for version in VERSIONS),
)

_ROWS: tuple[tuple[str, str, float, float | None, str], ...] = (
    ("node RSS 2 s after it", "rss_after", 90e6, 70e6, "MB"),
    ("queue memory", "queue_memory", 159e3, None, "KB"),
    ("messages in RAM", "queue_messages_ram", 0, None, ""),
    ("messages missing", "queue_lost", 0, None, ""),
    ("disk", "disk_bytes", 1.2e9, None, "MB"),
)
FIGURES = tuple(
    Figure(
        title=f"headline: {title}",
        scenario="headline",
        value=value,
        must=must,
        reach=reach,
        is_at_most=True,
        unit=unit,
        only_full=value in {"rss_after", "disk_bytes"},
    )
    for title, value, must, reach, unit in _ROWS
)
