"""The matrix of system calls: every site, every fault, the first, the n-th and a burst of calls, and what came of each.

`python -m tests.crash.syscall_matrix [--calls openat pwrite ...] [--faults EIO ...] [--commit-log] [--starts] [--jobs 4]`
runs cells and adds what came of each to build/syscalls.jsonl, so that a run may be cut off and go on: a cell that is
there is not run again (`--again`: it is). `--write` makes the tables of docs/disk-faults.md from that list;
`--census` says which calls the threads of a node make, and which of those no site has.
"""

from __future__ import annotations

import argparse
import json
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from tests.crash.kill_cycles import Report
from tests.crash.load import Consumer, stop_all
from tests.crash.syscall_cycles import TIMES, Cell, FaultyCycle, fill, wait_for_listener
from tests.crash.syscall_sites import CALLS, Site, missing, seen, sites, unknown
from tests.support.broker_process import PROGRAM, READY_TEXT

FAULTS = ("EIO", "ENOSPC", "EMFILE", "SIGKILL")
ROOT = Path(__file__).resolve().parents[2]
RESULTS = ROOT / "build" / "syscalls.jsonl"
PAGE = ROOT / "docs" / "disk-faults.md"
BEGIN, END = "<!-- system calls: begin -->\n", "<!-- system calls: end -->\n"
CENSUS_S = 6.0


def cells(
    calls: Sequence[str],
    faults: Sequence[str],
    times: Sequence[str],
    *,
    has_log: bool = False,
    in_start: bool = False,
) -> Iterator[Cell]:
    """Name every cell; where a site says nothing of the version, both in turn."""
    number = 0
    for site in sites(in_start=in_start):
        if site.call not in calls or (site.kind == "commit log" and not has_log):
            continue
        for fault in faults:
            for time_ in times:
                number += 1
                version = site.version or 1 + number % 2
                yield Cell(site, fault, time_, version, has_log, in_start)


# -- what came of them ------------------------------------------------------------------------------------------------


def kept(path: Path = RESULTS) -> dict[str, dict[str, object]]:
    """The last result of each cell, by its name."""
    if not path.exists():
        return {}
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    return {row["name"]: row for row in rows}


def result_of(cell: Cell) -> dict[str, object]:
    """What is kept of a cell."""
    return {
        "name": cell.name,
        "site": [cell.site.call, cell.site.kind],
        "fault": cell.fault,
        "in_start": cell.in_start,
        "has_log": cell.has_log,
        "hit": cell.hit,
        "outcome": cell.outcome,
        "violations": cell.violations,
    }


def tables(rows: Sequence[dict[str, object]]) -> str:
    """The two tables: what a node does that serves, and one that starts."""
    parts = []
    for in_start, title in ((False, "While it serves"), (True, "In a start after a kill")):
        its = [row for row in rows if row["in_start"] is in_start]
        reached = [row for row in its if row["outcome"] != "not reached"]
        wrong = sum(bool(row["violations"]) for row in its)
        parts.append(
            f"{title}: {len(its)} cells, {len(reached)} with a call that failed, {wrong} violations.\n\n"
            f"| call: file | {' | '.join(FAULTS)} |\n|---|{'---|' * len(FAULTS)}\n"
        )
        for site in sites(in_start=in_start):
            words = [outcomes(reached, site, fault) for fault in FAULTS]
            if any(words):
                parts.append(f"| `{site.call}`{f': {site.kind}' * bool(site.kind)} | ")
                parts.append(f"{' | '.join(words)} |\n")
        parts.append("\n")
    return "".join(parts).rstrip("\n") + "\n"


def outcomes(rows: Sequence[dict[str, object]], site: Site, fault: str) -> str:
    """What came of the cells of one site and one fault, the most frequent first."""
    counts: dict[str, int] = {}
    for row in rows:
        if row["site"] == [site.call, site.kind] and row["fault"] == fault:
            word = "VIOLATION" if row["violations"] else str(row["outcome"])
            counts[word] = counts.get(word, 0) + 1
    ordered = sorted(counts.items(), key=lambda each: (-each[1], each[0]))
    return ", ".join(f"{word} {count}" for word, count in ordered)


def write(page: Path, rows: Sequence[dict[str, object]]) -> None:
    """Put the tables into the page."""
    text = page.read_text()
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    page.write_text(f"{before}{BEGIN}{tables(rows)}{END}{after}")


# -- which calls there are ---------------------------------------------------------------------------------------------


class Census(FaultyCycle):
    """A cycle in which nothing fails, and every call is traced: for some seconds, and in the start after the kill."""

    def __init__(self, directory: Path, *, has_log: bool, version: int) -> None:
        super().__init__(directory, Cell(Site("close"), "EIO", "first", version, has_log))
        self.serving = self.starting = ""

    def end_node(self) -> None:
        """Trace, kill, trace the start."""
        process = self.node.running()
        wait_for_listener(self.node.management_port)
        words = ["strace", "-f", "-qq", "-y", "-e", "signal=none", "-o", str(self.trace)]
        tracer = subprocess.Popen([*words, "-p", str(process.pid)], stderr=subprocess.DEVNULL)
        reader = Consumer(self.node.amqp_port, self.queues[1], self.ledgers[self.queues[1]])
        reader.start()
        time.sleep(CENSUS_S)
        tracer.send_signal(signal.SIGINT)
        tracer.wait(30)
        self.node.kill()
        stop_all([reader])
        self.serving = self.trace.read_text(errors="replace")
        self.node.program = [*words, "-D", *PROGRAM]
        self.node.spawn()
        until = time.monotonic() + 60
        while READY_TEXT not in self.node.log_of_this_start() and time.monotonic() < until:
            time.sleep(0.05)
        self.node.kill()
        self.node.program = PROGRAM
        self.starting = self.trace.read_text(errors="replace")


def census(directory: Path, *, has_log: bool, version: int) -> tuple[str, set[str]]:
    """What a node calls, as text, and the calls that have no row."""
    cycle = Census(directory, has_log=has_log, version=version)
    cycle.run(Report())
    lines = []
    for in_start, trace in ((False, cycle.serving), (True, cycle.starting)):
        counts = seen(trace)
        without = missing(counts, in_start=in_start)
        lines.append(f"{'start' if in_start else 'serving'}, version {version}, log {has_log}")
        lines += [f"  {site} {counts[site]}{' NO ROW' * (site in without)}" for site in counts]
    return "\n".join(sorted(lines, key=bool)), unknown(cycle.serving)


# -- the command ---------------------------------------------------------------------------------------------------------


def main() -> int:
    """Run what is asked for; the status says whether no cell is a violation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", nargs="*", choices=list(CALLS), default=list(CALLS))
    parser.add_argument("--kinds", nargs="*", help="of files; `any`: the rows without one")
    parser.add_argument("--faults", nargs="*", choices=FAULTS, default=list(FAULTS))
    parser.add_argument("--times", nargs="*", choices=list(TIMES), default=list(TIMES))
    parser.add_argument("--commit-log", action="store_true", help="with store_commit_log = on")
    parser.add_argument("--starts", action="store_true", help="calls of a start fail")
    parser.add_argument("--again", action="store_true", help="run what was run before, too")
    parser.add_argument("--wrong", action="store_true", help="run again what was a violation")
    parser.add_argument("--census", action="store_true", help="say which calls there are")
    parser.add_argument("--write", action="store_true", help="make the tables of the page")
    parser.add_argument("--jobs", type=int, default=1, help="cells at a time")
    options = parser.parse_args()
    if options.write:
        write(PAGE, list(kept().values()))
        return 0
    with tempfile.TemporaryDirectory(prefix="syscalls-") as place:
        if options.census:
            for version in (1, 2):
                text, without = census(
                    Path(place) / str(version), has_log=options.commit_log, version=version
                )
                sys.stdout.write(f"{text}\nno site: {', '.join(sorted(without)) or 'none'}\n")
            return 0
        return run(options, Path(place))


def run(options: argparse.Namespace, place: Path) -> int:
    """Run the cells that are chosen and were not run before."""
    chosen = cells(
        options.calls,
        options.faults,
        options.times,
        has_log=options.commit_log,
        in_start=options.starts,
    )
    known = kept()

    def is_due(cell: Cell) -> bool:
        row = known.get(cell.name)
        if options.wrong:
            return row is not None and bool(row["violations"])
        return row is None or bool(options.again)

    wanted = [
        cell
        for cell in chosen
        if is_due(cell) and (options.kinds is None or (cell.site.kind or "any") in options.kinds)
    ]
    RESULTS.parent.mkdir(exist_ok=True)
    wrong = 0
    sys.stdout.write(
        "| site | fault | when | version | file | outcome |\n|---|---|---|---|---|---|\n"
    )
    with ProcessPoolExecutor(options.jobs) as pool, RESULTS.open("a") as results:
        places = [place / str(number) for number in range(len(wanted))]
        for cell in pool.map(fill, wanted, places):
            wrong += bool(cell.violations)
            sys.stdout.write(f"{cell}\n")
            sys.stdout.flush()
            results.write(json.dumps(result_of(cell)) + "\n")
            results.flush()
    sys.stdout.write(f"violations={wrong}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
