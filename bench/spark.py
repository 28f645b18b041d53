"""Rates of Spark's source, sink and store source beside pika and the bare client: `python -m bench.spark [--rounds N]`.

Runs in .venv/spark (`make bench-spark`). Starts BurrowMQ, and RabbitMQ where Debian's is installed; each row is
measured on one and then on the other before the next, so that what disturbs the machine disturbs both. A figure is the median of
the rounds. `--append` adds rounds to those in the file of results, which a long run can be cut into.
"""

from __future__ import annotations

import argparse
import json
import signal
import statistics
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from bench.procfs import machine
from bench.spark_rows import ROWS, QueueRows, StoreRows
from tests.support import rabbitmq_node
from tests.support.broker_process import BrokerProcess

BURROWMQ, RABBITMQ = "BurrowMQ", "RabbitMQ"
Rounds = list[dict[str, dict[str, float]]]
"""For each round, by peer, by row: rows a second."""


def session(folder: Path, slots: int = 2) -> SparkSession:
    spark = (
        SparkSession.builder.master(f"local[{slots}]")
        .config("spark.ui.enabled", "false")
        .config("spark.ui.showConsoleProgress", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.local.dir", str(folder / "local"))
        .getOrCreate()
    )
    spark.sparkContext.setLogLevel("OFF")
    return spark


def nodes(names: list[str], folder: Path) -> dict[str, Any]:
    """Return the brokers to measure, not started."""
    found: dict[str, Any] = {}
    if BURROWMQ.lower() in names:
        found[BURROWMQ] = BrokerProcess(folder / "burrowmq" / "data", is_verified=False)
    if RABBITMQ.lower() in names and rabbitmq_node.is_installed():
        port = rabbitmq_node.free_node_port()
        found[RABBITMQ] = rabbitmq_node.RabbitNode(folder / "rabbitmq", port)
    return found


def table(rounds: Rounds) -> str:
    """Return the medians as Markdown, with the floor and how the smaller of both compares."""
    peers = [name for name in (BURROWMQ, RABBITMQ) if any(name in one for one in rounds)]
    head = ["rows/s", *peers, "floor", ""]
    lines = [f"| {' | '.join(head)} |", "|---" * len(head) + "|"]
    for row, (title, floor) in ROWS.items():
        cells: list[str] = []
        missed = []
        for peer in peers:
            rates = [one[peer][row] for one in rounds if row in one.get(peer, {})]
            cells.append(f"{statistics.median(rates):,.0f}" if rates else "")
            if rates and floor is not None and statistics.median(rates) < floor:
                missed.append(peer)
        if any(cells):
            cells.append("" if floor is None else f"{floor:,}")
            verdict = "" if floor is None else "ok"
            cells.append(f"**below: {', '.join(missed)}**" if missed else verdict)
            lines.append(f"| {' | '.join([title, *cells])} |")
    return "\n".join(lines)


def run_round(
    runs: dict[str, QueueRows], store: StoreRows | None, wanted: list[str]
) -> dict[str, dict[str, float]]:
    """Measure every row once on each peer."""
    found: dict[str, dict[str, float]] = {peer: {} for peer in runs}
    for row in ROWS:
        if row not in wanted:
            continue
        for peer, run in runs.items():
            step = run.steps.get(row)
            if step is None and store is not None and peer == BURROWMQ:
                step = store.steps.get(row)
            if step is None:
                continue
            rates = step()
            run.clear()
            found[peer] |= rates
            said = ", ".join(f"{name} {rate:,.0f}" for name, rate in rates.items())
            print(f"{peer}: {said}", file=sys.stderr, flush=True)
    return found


def keep(path: Path, rounds: Rounds, count: int) -> None:
    """Write what there is so far: a run that is stopped loses one round."""
    path.parent.mkdir(parents=True, exist_ok=True)
    kept = {"count": count, "machine": machine(), "rounds": rounds}
    path.write_text(json.dumps(kept, indent=1))


def earlier(path: Path, count: int) -> Rounds:
    """Return the rounds of the file. Raises: SystemExit when they have other counts."""
    if not path.exists():
        return []
    kept = json.loads(path.read_text())
    if kept["count"] != count:
        raise SystemExit(f"{path} has rounds of {kept['count']} messages")
    found: Rounds = kept["rounds"]
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark", description=__doc__)
    parser.add_argument("--count", type=int, default=200_000, help="messages in a row")
    parser.add_argument("--rounds", type=int, default=3)
    names = [BURROWMQ.lower(), RABBITMQ.lower()]
    parser.add_argument("--peers", type=lambda text: text.split(","), default=names)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(ROWS))
    parser.add_argument("--append", action="store_true", help="keep the rounds that OUT has")
    parser.add_argument("--out", type=Path, default=Path("bench-results") / "spark.json")
    asked = parser.parse_args()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the brokers are stopped on the way out
    rounds = earlier(asked.out, asked.count) if asked.append else []
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        spark = session(folder)
        running.callback(spark.stop)
        runs: dict[str, QueueRows] = {}
        found = nodes(asked.peers, folder)
        for peer, node in found.items():
            node.start()
            running.callback(node.stop)
            runs[peer] = QueueRows(spark, node.url, asked.count, folder)
            runs[peer].warm_up()
        store = None
        if BURROWMQ in found and any(row.startswith("store") for row in asked.only):
            store = StoreRows(spark, found[BURROWMQ], asked.count, folder)
        for _ in range(asked.rounds):
            rounds.append(run_round(runs, store, asked.only))
            keep(asked.out, rounds, asked.count)
    print(table(rounds))
    return 0


if __name__ == "__main__":
    sys.exit(main())
