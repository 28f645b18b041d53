"""Instructions that a message costs, counted: this checkout beside another commit, the same on a busy machine as alone.

    python -m bench.instructions --ref COMMIT [--only ROW,...] [--reads N] [--jobs N] [--most PERCENT]

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
from collections.abc import Callable, Iterable, Sequence
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
    "persistent-1000",
    "lazy-1000",
)
VALGRIND = ("--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null")
_COUNTED = re.compile(r"^==\d+== I +refs: +([\d,]+)$", re.MULTILINE)


class Run(NamedTuple):
    """What one process took."""

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


def parse(said: str, messages: str) -> Run:
    """Read what valgrind says, and what the row printed. Raises ValueError."""
    found = _COUNTED.findall(said)
    if len(found) != 1:
        raise ValueError(f"valgrind gave no count: {said[-400:].strip()}")
    return Run(int(found[0].replace(",", "")), int(messages))


def per_message(fewer: Run, more: Run) -> float:
    """What each message took that the longer run had more. Raises ValueError."""
    messages = more.messages - fewer.messages
    if messages <= 0 or more.instructions <= fewer.instructions:
        raise ValueError(f"the longer run took no more than the shorter one: {more}, {fewer}")
    return (more.instructions - fewer.instructions) / messages


def table(rows: Iterable[Row], most: float) -> str:
    """What was counted, as markdown."""
    lines = ["| row | there | here | change | |", "| --- | ---: | ---: | ---: | --- |"]
    lines += [
        f"| {row.name} | {row.there:,.1f} | {row.here:,.1f} | {row.change:+.2f} % | {'MORE' if row.change > most else ''} |"
        for row in rows
    ]
    return "\n".join(lines)


def _took(root: Path, row: str, reads: int, *, is_counted: bool = True) -> Run:
    command = [sys.executable, "-P", str(SCRIPT), row, str(reads)]
    if is_counted:
        command = ["valgrind", *VALGRIND, *command]
    env = {key: value for key, value in os.environ.items() if not key.startswith("BURROWMQ_")}
    env |= {"PYTHONPATH": str(root), "PYTHONHASHSEED": "0"}
    env.pop("PYTHONDONTWRITEBYTECODE", None)
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=env, cwd=root)
    if done.returncode != 0:
        raise ValueError(f"{row} cannot be run in {root}:\n{done.stderr[-800:]}")
    return parse(done.stderr, done.stdout) if is_counted else Run(0, int(done.stdout))


def count(root: Path, row: str, reads: int) -> float:
    """Instructions a message of a row in a checkout. Raises ValueError."""
    _took(root, row, 1, is_counted=False)  # the bytecode is written
    return per_message(_took(root, row, reads), _took(root, row, 2 * reads))


def measure(
    there: Path, rows: Sequence[str], reads: int, jobs: int, told: Callable[[str], None]
) -> list[Row]:
    """Count each row in both checkouts. Raises ValueError."""

    def both(name: str) -> Row:
        row = Row(name, count(there, name, reads), count(ROOT, name, reads))
        told(f"{name}: {row.there:,.1f} there, {row.here:,.1f} here")
        return row

    with ThreadPoolExecutor(jobs) as counting:
        return list(counting.map(both, rows))


def check(rows: Sequence[str], least: int) -> None:
    """Raise ValueError when this cannot be counted."""
    if unknown := sorted(set(rows) - set(ROWS)):
        raise ValueError(f"no such row: {', '.join(unknown)}; there are {', '.join(ROWS)}")
    if least < 1:
        raise ValueError("--reads and --jobs are 1 at least")
    if shutil.which("valgrind") is None:
        raise ValueError("valgrind is not installed (Debian's package: valgrind)")


def main(arguments: Sequence[str] | None = None) -> int:
    """Entry point; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m bench.instructions", description=__doc__)
    parser.add_argument("--ref", required=True, help="the other commit")
    parser.add_argument("--only", default=",".join(ROWS), help=f"default: {','.join(ROWS)}")
    parser.add_argument("--reads", type=int, default=40, help="of 64 KB, in the shorter run")
    parser.add_argument("--jobs", type=int, default=1, help="rows at the same time")
    parser.add_argument("--most", type=float, default=2.0, help="per cent that a row may take more")
    options = parser.parse_args(arguments)
    rows = options.only.split(",")
    try:
        check(rows, min(options.reads, options.jobs))
        with worktree(options.ref) as there:
            found = measure(
                there,
                rows,
                options.reads,
                options.jobs,
                lambda text: print(text, file=sys.stderr, flush=True),
            )
    except (ValueError, OSError) as failure:
        print(f"bench.instructions: {failure}", file=sys.stderr)
        return 2
    print(table(found, options.most))
    return int(any(row.change > options.most for row in found))


if __name__ == "__main__":
    sys.exit(main())
