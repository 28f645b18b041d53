"""Instructions that a message costs, counted: this checkout beside another commit, the same on a busy machine as alone.

    python -m bench.instructions --ref COMMIT [--only ROW,...] [--reads N] [--most PERCENT]

Valgrind runs each row (`bench.instructions_rows`) with some reads and with twice as many; what the second takes more is
divided by its messages, so that neither a start nor a first run counts. What is counted is the broker's core in one
process: no system call's inside, no cache's misses, no waiting; `bench compare` measures those, with the noise of the
machine. Exit status 1 when a row takes more than `--most` per cent more instructions, 2 when nothing can be counted.
Owns a worktree of the other commit for the time of the measurement.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import NamedTuple

from bench.reference import ROOT, worktree

SCRIPT = Path(__file__).resolve().parent / "instructions_rows.py"
ROWS = (
    "publish-16",
    "publish-1k",
    "1p1c-16",
    "fanout-5",
    "confirms-1k",
    "prefetch-1",
    "prefetch-10",
    "waiting-100",
    "persistent-1000",
    "lazy-1000",
)
VALGRIND = ("--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
_COUNTED = re.compile(r"^==(\d+)== I +refs: +([\d,]+)$", re.MULTILINE)


class Run(NamedTuple):
    """What one process took, with its parent's part."""

    instructions: int
    messages: int


class Row(NamedTuple):
    """Instructions a message, there and here."""

    name: str
    there: float
    here: float

    @property
    def change(self) -> float:
        """How much more it is here, in per cent."""
        return (self.here / self.there - 1) * 100


def parse(counted: str, printed: str) -> list[Run]:
    """Read what valgrind says of each process, and what the rows printed, in their order. Raises ValueError."""
    counts = {pid: int(count.replace(",", "")) for pid, count in _COUNTED.findall(counted)}
    runs = [line.split() for line in printed.splitlines()]
    if not runs or any(pid not in counts for pid, _ in runs):
        raise ValueError(f"valgrind gave no count: {counted[-400:].strip()}")
    return [Run(counts[pid], int(messages)) for pid, messages in runs]


def per_message(runs: Sequence[Run]) -> list[float]:
    """What each message took that the longer run of a row had more. Raises ValueError.

    The parent goes on a little between two children: as much as between the first two, which do nothing.
    """
    parents = runs[1].instructions - runs[0].instructions
    found = []
    for fewer, more in zip(runs[2::2], runs[3::2], strict=True):
        messages = more.messages - fewer.messages
        took = more.instructions - fewer.instructions - parents
        if messages <= 0 or took <= 0:
            raise ValueError(f"the longer run took no more than the shorter one: {more}, {fewer}")
        found.append(took / messages)
    return found


def table(rows: Iterable[Row], most: float) -> str:
    """What was counted, as markdown."""
    lines = ["| row | there | here | change | |", "| --- | ---: | ---: | ---: | --- |"]
    lines += [
        f"| {row.name} | {row.there:,.1f} | {row.here:,.1f} | {row.change:+.2f} % | {'MORE' if row.change > most else ''} |"
        for row in rows
    ]
    return "\n".join(lines)


def count(root: Path, rows: Sequence[str], reads: int) -> list[float]:
    """Instructions a message of each row in a checkout. Raises ValueError."""
    env = {key: value for key, value in os.environ.items() if not key.startswith("BURROWMQ_")}
    env |= {"PYTHONPATH": str(root), "PYTHONHASHSEED": "0"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)

    def run(program: Sequence[str], reads: int) -> subprocess.CompletedProcess[str]:
        command = [*program, sys.executable, "-P", str(SCRIPT), *[f"{row}:{reads}" for row in rows]]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env=env, cwd=root
        )
        if done.returncode != 0 or len(done.stdout.splitlines()) != 2 + 2 * len(rows):
            raise ValueError(f"the rows cannot be run in {root}:\n{done.stderr[-2000:]}")
        return done

    run((), 1)  # the bytecode is written
    done = run(("valgrind", *VALGRIND), reads)
    return per_message(parse(done.stderr, done.stdout))


def measure(there: Path, rows: Sequence[str], reads: int) -> list[Row]:
    """Count each row in both checkouts, at the same time. Raises ValueError."""
    with ThreadPoolExecutor(2) as counting:
        both = counting.map(lambda root: count(root, rows, reads), (there, ROOT))
        return [Row(name, *figures) for name, *figures in zip(rows, *both, strict=True)]


def check(rows: Sequence[str], reads: int) -> None:
    """Raise ValueError when this cannot be counted."""
    if unknown := sorted(set(rows) - set(ROWS)):
        raise ValueError(f"no such row: {', '.join(unknown)}; there are {', '.join(ROWS)}")
    if reads < 1:
        raise ValueError("--reads is 1 at least")
    if shutil.which("valgrind") is None:
        raise ValueError("valgrind is not installed (Debian's package: valgrind)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__)
    parser.add_argument("--ref", required=True, help="the other commit")
    parser.add_argument("--only", default=",".join(ROWS), help=f"default: {','.join(ROWS)}")
    parser.add_argument("--reads", type=int, default=40, help="of 64 KB, in the shorter run")
    parser.add_argument("--most", type=float, default=2.0, help="per cent that a row may take more")
    options = parser.parse_args(arguments)
    rows = options.only.split(",")
    try:
        check(rows, options.reads)
        with worktree(options.ref) as there:
            found = measure(there, rows, options.reads)
    except (ValueError, OSError) as failure:
        print(f"bench.instructions: {failure}", file=sys.stderr)
        return 2
    print(table(found, options.most))
    return int(any(row.change > options.most for row in found))


if __name__ == "__main__":
    sys.exit(main())
