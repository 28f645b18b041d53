"""A real node whose system calls fail one at a time under load: the table of calls, faults and what came of each.

State: one node and its clients for each cell, on a directory of its own; strace is attached once the load runs.
Callers: test_syscall_matrix (a few cells) and, for the whole table,
`python -m tests.crash.syscall_matrix [--calls openat pwrite64 ...] [--faults EIO ...] [--commit-log]`.
Oracle: that of kill_cycles: what was confirmed and not acked is there after a kill and a start, whole, in order, once.
A violation is anything else than going on or ending by itself within two seconds: a loss, a hang, a node that
neither serves nor ends.
"""

from __future__ import annotations

import argparse
import re
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pika import spec

from tests.crash.journal import make_body
from tests.crash.kill_cycles import MIXED, Cycle, Report, Scenario
from tests.crash.load import Consumer, persistent_publish, stop_all
from tests.support.broker_process import INVARIANT_BROKEN
from tests.support.wire_client import Closed, WireClient

# A row fails all of its calls: which of them a system's libraries use is their choice.
CALLS = {
    "openat": "openat,openat2,open",
    "read": "read",
    "pread": "pread64,preadv,preadv2",
    "write": "write,writev",
    "pwrite": "pwrite64,pwritev,pwritev2",
    "fdatasync": "fdatasync,fsync",
    "sync_file_range": "sync_file_range",
    "ftruncate": "ftruncate,truncate",
    "fallocate": "fallocate",
    "rename": "rename,renameat,renameat2",
    "unlink": "unlink,unlinkat,rmdir",
    "mkdir": "mkdir,mkdirat",
    "link": "link,linkat",
    "getdents": "getdents64",
    "fstat": "fstat,newfstatat,stat,lstat,statx",
    "statfs": "statfs,fstatfs",
    "lseek": "lseek",
    "close": "close",
    "mmap": "mmap",
}
FAULTS = ("EIO", "ENOSPC", "EMFILE", "SIGKILL")
TIMES = {"first": "1", "n-th": "7", "burst": "2..15"}
LIMIT_S = 2.0
REACHED_WITHIN_S, GOES_ON_WITHIN_S = 5.0, 15.0
BEFORE, AFTER = 1500, 100
TOLD = ("(60, 120)", "(10, 50)", "(20, 40)", "(60, 30)", "541", "only ")
LINE = re.compile(r"^\d+ +(\d+\.\d+) (.*)$", re.MULTILINE)
CALLED = re.compile(r"\w+\(")
KINDS = (
    (r"/commit_log\b", "commit log"),
    (r"\.qi\b", "index"),
    (r"\.qs\b", "bodies"),
    (r"\.seg\b", "shared store"),
    (r"\.idx\b|journal", "version 1"),
    (r"\.db\b|\.db-", "definitions"),
    (r"/queues/", "queue's directory"),
    (r"/data\b", "data directory"),
    (r"/proc/|/sys/", "/proc"),
    (r"\.log\b|<pipe", "log"),
)


@dataclass
class Cell:
    """One call, one fault, and what came of it."""

    call: str
    fault: str
    times: str
    version: int = 2
    has_log: bool = False
    hit: list[str] = field(default_factory=list)
    outcome: str = "not reached"
    violations: list[str] = field(default_factory=list)

    @property
    def injection(self) -> str:
        """Return strace's word for the fault."""
        kind = "signal" if self.fault == "SIGKILL" else "error"
        return f"inject={CALLS[self.call]}:{kind}={self.fault}:when={TIMES[self.times]}"

    def __str__(self) -> str:
        found = "; ".join(self.violations)
        where = ", ".join(dict.fromkeys(self.hit)) or "-"
        mark = f"VIOLATION {self.outcome}: {found}" if self.violations else self.outcome
        version = f"{self.version}{' log' if self.has_log else ''}"
        return f"| {self.call} | {self.fault} | {self.times} | {version} | {where} | {mark} |"


def wait_for_listener(port: int) -> None:
    """Return when somebody listens."""
    until = time.monotonic() + 30
    while time.monotonic() < until:
        try:
            socket.create_connection(("127.0.0.1", port), 1).close()
            return
        except ConnectionRefusedError:
            time.sleep(0.02)
    raise TimeoutError(f"nobody listens on port {port}")


def is_told(problem: str) -> bool:
    """Say whether a client was told: a nack, a close, a consumer's cancellation, an end before its time."""
    return any(word in problem for word in TOLD)


def kind_of(line: str) -> str:
    """Say what file a traced call is about."""
    for pattern, kind in KINDS:
        if re.search(pattern, line):
            return kind
    return "elsewhere"


class FaultyCycle(Cycle):
    """A cycle whose node meets a fault before it ends by itself or is killed."""

    def __init__(self, directory: Path, cell: Cell) -> None:
        scenario = Scenario(
            "fsync", "lazy", 2, MIXED, "declare", cell.version, has_log=cell.has_log
        )
        super().__init__(directory, scenario, BEFORE, seed=1)
        self.cell = cell
        self.trace = directory / "trace"

    def end_node(self) -> None:
        """Attach strace, wait for the fault and its end, see whether the node goes on, and kill what is left."""
        process = self.node.running()
        wait_for_listener(
            self.node.management_port
        )  # what it imports until then is no matter of the store
        calls = CALLS[self.cell.call]
        words = ["strace", "-f", "-y", "-ttt", "-o", str(self.trace), "-e", f"trace={calls}"]
        tracer = subprocess.Popen(
            [*words, "-e", "signal=none", "-e", self.cell.injection, "-p", str(process.pid)],
            stderr=subprocess.DEVNULL,
        )
        # What has piled up in the second queue lies on the disk only, and is read.
        reader = Consumer(self.node.amqp_port, self.queues[1], self.ledgers[self.queues[1]])
        reader.start()
        try:
            self._wait_for_the_fault(tracer)
        finally:
            tracer.send_signal(signal.SIGINT)
            tracer.wait(30)
        text = self.trace.read_text(errors="replace")
        found = LINE.findall(text)
        faults = [(float(at), line) for at, line in found if "(INJECTED" in line]
        if self.cell.fault == "SIGKILL":
            faults = [(float(at), line) for at, line in found if CALLED.match(line)][-1:]
            faults = faults if "killed by SIGKILL" in text else []
        self.cell.hit = [kind_of(line) for _, line in faults]
        if faults or process.poll() is not None:
            self._say_what_came(process, faults[0][0] if faults else 0.0, found)
        self.node.kill()
        self.cell.violations += [text for text in stop_all([reader]) if not is_told(text)]

    def _wait_for_the_fault(self, tracer: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + REACHED_WITHIN_S
        while time.monotonic() < until and tracer.poll() is None:
            time.sleep(0.1)
            if self.trace.exists() and "(INJECTED" in self.trace.read_text(errors="replace"):
                # A burst goes on for some calls; an end of the process is seen by the tracer.
                until = min(until, time.monotonic() + 1.0)

    def _say_what_came(
        self, process: subprocess.Popen[bytes], since: float, found: Sequence[tuple[str, str]]
    ) -> None:
        cell = self.cell
        try:
            status = process.wait(LIMIT_S if self._is_ending() else 0.2)
        except subprocess.TimeoutExpired:
            cell.outcome = "goes on"
            if not self._serves(self.queues[0]) or not self._serves(self.queues[1]):
                cell.outcome = "blocks a queue"
            if not self._serves("late"):
                cell.outcome = "hangs"
                cell.violations.append(f"no confirm within {GOES_ON_WITHIN_S:.0f} s")
            return
        if cell.fault == "SIGKILL" and status == -signal.SIGKILL:
            cell.outcome = "killed"
            return
        cell.outcome = f"ends with {status}"
        if status == INVARIANT_BROKEN:
            cell.violations.append("its self-check found something wrong")
        took = float(found[-1][0]) - since
        if took > LIMIT_S:
            cell.violations.append(f"it took {took:.1f} s")

    def _is_ending(self) -> bool:
        return "store_failed" in self.node.log_of_this_start()

    def _serves(self, queue: str) -> bool:
        """Say whether messages to a queue are confirmed, now that nothing fails any more."""
        try:
            with WireClient("127.0.0.1", self.node.amqp_port) as client:
                client.open().channel(1)
                client.declare(1, queue, durable=True, arguments={"x-queue-mode": "lazy"})
                client.send_method(1, spec.Confirm.Select())
                client.expect(spec.Confirm.SelectOk)
                bodies = [make_body(3, number, 100) for number in range(AFTER)]
                client.send(*(persistent_publish("", queue, body) for body in bodies))
                confirmed = 0
                while confirmed < AFTER:
                    method = client.expect(spec.Basic.Ack, GOES_ON_WITHIN_S)
                    confirmed = method.delivery_tag if method.multiple else confirmed + 1
        except (AssertionError, Closed, OSError):
            return False
        return True


def fill(cell: Cell, directory: Path) -> Cell:
    """Run one cell on a node of its own."""
    cycle, report = FaultyCycle(directory, cell), Report()
    cycle.run(report)
    cell.violations += [problem for problem in report.problems if not is_told(problem)]
    report.problems.clear()
    if not report.is_clean:
        cell.violations.append(report.summary())
    if report.confirmed < BEFORE:
        cell.violations.append(f"only {report.confirmed} confirmed")
    return cell


def cells(
    calls: Sequence[str], faults: Sequence[str], times: Sequence[str], *, has_log: bool = False
) -> Iterator[Cell]:
    """Name every cell, the versions in turn."""
    number = 0
    for call in calls:
        for fault in faults:
            for time_ in times:
                number += 1
                yield Cell(call, fault, time_, 1 + number % 2, has_log)


def main() -> int:
    """Print the table; the status says whether no cell is a violation."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--calls", nargs="*", choices=list(CALLS), default=list(CALLS))
    parser.add_argument("--faults", nargs="*", choices=FAULTS, default=list(FAULTS))
    parser.add_argument("--times", nargs="*", choices=list(TIMES), default=list(TIMES))
    parser.add_argument("--commit-log", action="store_true", help="with store_commit_log = on")
    options = parser.parse_args()
    chosen = cells(options.calls, options.faults, options.times, has_log=options.commit_log)
    wrong = 0
    sys.stdout.write(
        "| call | fault | when | version | file | outcome |\n|---|---|---|---|---|---|\n"
    )
    with tempfile.TemporaryDirectory(prefix="syscalls-") as place:
        for number, cell in enumerate(chosen):
            wrong += bool(fill(cell, Path(place) / str(number)).violations)
            sys.stdout.write(f"{cell}\n")
            sys.stdout.flush()
    sys.stdout.write(f"violations={wrong}\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
