"""This checkout's `pyspark_amqp` beside another commit's: `python -m bench.spark_reference --ref COMMIT [--rounds N]`.

Runs in .venv/spark. Both use this checkout's broker and rows (`bench.spark`), so that only the connector differs. A round
is one process of each, in an order that changes: what disturbs the machine for minutes disturbs both. A row's change is the
median of the rounds' ones; from six rounds on it is said where it surely lies (95 %, sign test).
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

from bench.report import Change, change
from bench.spark_rows import ROWS

ROOT = Path(__file__).resolve().parents[1]
CONNECTOR = ("pyspark_amqp", "pyspark_amqp_jobs", "pyspark_amqp_store")
ALLOWED = 0.05
"""How much more time a row may take before it counts as worse."""

Rates = Mapping[str, float]


def verdict(found: Change) -> str:
    """Say what the rounds show of one row's time: `no worse`, `WORSE`, or that only more rounds can tell."""
    if found.low is None or found.high is None:
        return "no worse (few rounds)" if found.ratio <= 1 + ALLOWED else "worse (few rounds)"
    if found.high <= 1 + ALLOWED:
        return "no worse"
    return "WORSE" if found.low > 1 + ALLOWED else "unsettled"


def _times(rounds: Sequence[Rates], row: str) -> dict[int, float]:
    return {number: 1 / rates[row] for number, rates in enumerate(rounds) if row in rates}


def table(old: Sequence[Rates], new: Sequence[Rates]) -> str:
    """Return Markdown: a line for each row that both have; the change is that of the time a message takes."""
    lines = ["| rows/s | old | new | time | surely (95 %) | |", "|---|---|---|---|---|---|"]
    for row, (title, _) in ROWS.items():
        times = before_s, after_s = _times(old, row), _times(new, row)
        found = change(
            after_s[number] / before_s[number] for number in after_s if number in before_s
        )
        if found is None:
            continue
        before, after = (
            f"{statistics.median(1 / t for t in side.values()):,.0f}" for side in times
        )
        cells = [title, before, after, f"{found.ratio - 1:+.1%}", found.surely, verdict(found)]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def mixed(commit: str, folder: Path) -> Path:
    """Return a directory that looks like this checkout with the connector of `commit`.

    Raises: SystemExit, when there is no such commit.
    """
    there = folder / "old"
    there.mkdir()
    archive = subprocess.run(
        ["git", "-C", str(ROOT), "archive", commit, *CONNECTOR], capture_output=True, check=False
    )
    if archive.returncode != 0:
        raise SystemExit(f"git archive {commit}: {archive.stderr.decode(errors='replace').strip()}")
    subprocess.run(["tar", "-x", "-C", str(there)], input=archive.stdout, check=True)
    for name in ("bench", "tests"):
        (there / name).symlink_to(ROOT / name)
    return there


def one_round(directory: Path, out: Path, asked: argparse.Namespace) -> dict[str, float]:
    """Run `bench.spark` once with the connector that lies in `directory`; return its rates."""
    command = [sys.executable, "-m", "bench.spark", "--rounds", "1", "--peers", "burrowmq"]
    command += ["--count", str(asked.count), "--out", str(out)]
    if asked.only:
        command += ["--only", asked.only]
    # Workers of Spark take the connector from the path, not from the directory they are started in.
    values = {**os.environ, "PYTHONPATH": str(directory), "PYSPARK_PYTHON": sys.executable}
    subprocess.run(command, cwd=directory, env=values, stdout=subprocess.DEVNULL, check=True)
    rates: dict[str, float] = json.loads(out.read_text())["rounds"][0]["BurrowMQ"]
    return rates


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark_reference", description=__doc__)
    parser.add_argument("--ref", required=True, metavar="COMMIT")
    parser.add_argument("--count", type=int, default=200_000, help="messages in a row")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--only", help="rows, separated by commas; all when not given")
    parser.add_argument("--out", type=Path, help="a file of rounds; those in it count, too")
    parser.add_argument("--seed", type=int, default=1, help="of the order within a round")
    asked = parser.parse_args()
    orders = random.Random(asked.seed)
    sides: dict[str, list[dict[str, float]]] = {"old": [], "new": []}
    if asked.out is not None and asked.out.exists():
        sides = json.loads(asked.out.read_text())
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        places = {"old": mixed(asked.ref, folder), "new": ROOT}
        for number in range(asked.rounds):
            for side in orders.sample(sorted(places), 2):
                print(f"round {number + 1} of {asked.rounds}: {side}", file=sys.stderr, flush=True)
                sides[side].append(one_round(places[side], folder / f"{side}.json", asked))
            if asked.out is not None:
                asked.out.write_text(json.dumps(sides, indent=1))
    print(table(sides["old"], sides["new"]))
    return 0


if __name__ == "__main__":
    sys.exit(main())
