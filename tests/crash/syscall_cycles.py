"""A real node one of whose system calls fails, under load or in a start: one cell of the matrix.

State: one node and its clients for each cell, on a directory of its own; strace is attached once the load runs, or
starts the node. Callers: syscall_matrix, test_syscall_matrix.
Oracle: that of kill_cycles: what was confirmed and not acked is there after a kill and a start, whole, in order, once.
A violation is anything else than going on or ending by itself within two seconds: a loss, a hang, a node that
neither serves nor ends.
"""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pika import spec

from tests.crash.journal import make_body
from tests.crash.kill_cycles import MIXED, Cycle, Report, Scenario
from tests.crash.load import Client, Consumer, persistent_publish, set_version, stop_all
from tests.crash.syscall_sites import CALLS, Site, kind_of, paths_of
from tests.support.broker_process import INVARIANT_BROKEN, PROGRAM, READY_TEXT
from tests.support.patience import patient
from tests.support.wire_client import Closed, WireClient

TIMES = {"first": "1", "n-th": "7", "burst": "2..15"}
# With patience nobody can tell whether a node that was given no processor ends in time.
LIMIT_S = patient(2)
REACHED_WITHIN_S, GOES_ON_WITHIN_S, STARTS_WITHIN_S = patient(5), patient(15), patient(30)
BEFORE, AFTER = 600, 100
# Files are small, so that they are made, moved and removed within seconds.
SETTINGS = {
    "msg_store_file_size_limit": "524288",
    "queue_index_segment_entry_count": "256",
    "queue_index_max_journal_entries": "200",
    "classic_queue_store_v2_max_cache_size": "65536",
}
# What somebody can do about it, in the last words of a node that ends by itself or does not start.
ENDS = ("store_failed reason=", "cannot start: ")
WAYS_OUT = ("look at", "make room", "raise the limit of open files", "end the program", "give ")
TOLD = ("(60, 120)", "(10, 50)", "(20, 40)", "(60, 30)", "541", "only ")
LINE = re.compile(r"^\d+ +(\d+\.\d+) (.*)$", re.MULTILINE)
CALLED = re.compile(r"\w+\(")


@dataclass
class Cell:
    """One site, one fault, and what came of it."""

    site: Site
    fault: str
    times: str
    version: int = 2
    has_log: bool = False
    in_start: bool = False
    hit: list[str] = field(default_factory=list)
    outcome: str = "not reached"
    violations: list[str] = field(default_factory=list)

    @property
    def injection(self) -> str:
        """Return strace's word for the fault."""
        kind = "signal" if self.fault == "SIGKILL" else "error"
        return f"inject={CALLS[self.site.call]}:{kind}={self.fault}:when={TIMES[self.times]}"

    @property
    def name(self) -> str:
        """What it is called in a list of results."""
        version = f"{self.version}{' log' if self.has_log else ''}"
        return f"{'start ' if self.in_start else ''}{self.site} {self.fault} {self.times} {version}"

    def explains(self, problem: str) -> bool:
        """Whether it is a traceback of an event loop one of whose own descriptors failed, and whose process ended."""
        is_of_the_loop = "elsewhere" in self.hit and self.outcome.startswith("ends")
        return is_of_the_loop and problem.startswith("Traceback")

    def __str__(self) -> str:
        found = "; ".join(self.violations)
        where = ", ".join(dict.fromkeys(self.hit)) or "-"
        mark = f"VIOLATION {self.outcome}: {found}" if self.violations else self.outcome
        version = f"{self.version}{' log' if self.has_log else ''}"
        return f"| {self.site} | {self.fault} | {self.times} | {version} | {where} | {mark} |"


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


def without_way_out(log: str) -> list[str]:
    """The last words in a log that do not say what to do."""
    lines = [line for line in log.splitlines() if any(word in line for word in ENDS)]
    return [
        f"it does not say what to do: {line}"
        for line in lines
        if not any(word in line for word in WAYS_OUT)
    ]


def serves(port: int, queue: str) -> bool:
    """Say whether messages to a queue are confirmed, now that nothing fails any more."""
    try:
        with WireClient("127.0.0.1", port) as client:
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


class Churn(Client):
    """Declares a queue, fills it, and deletes it with what it has; over and over."""

    def work(self, client: WireClient) -> None:
        number = 0
        while not self.stopping.wait(0.05):
            number += 1
            queue = f"filled.{number}"
            client.declare(1, queue, durable=True, arguments={"x-queue-mode": "lazy"})
            bodies = [make_body(9, each, 100 * each) for each in range(60)]
            client.send(*(persistent_publish("", queue, body) for body in bodies))
            client.send_method(1, spec.Queue.Delete(queue=queue))
            client.expect(spec.Queue.DeleteOk)


class FaultyCycle(Cycle):
    """A cycle whose node meets a fault before it ends by itself or is killed."""

    def __init__(self, directory: Path, cell: Cell) -> None:
        scenario = Scenario(
            "fsync", "lazy", 2, MIXED, "declare", cell.version, has_log=cell.has_log
        )
        super().__init__(directory, scenario, BEFORE, seed=1)
        self.node.settings = {**self.node.settings, **SETTINGS}
        self.cell = cell
        self.trace = directory / "trace"

    def disturbers(self) -> list[Client]:
        """Who makes and removes files beside the publishers."""
        return [*super().disturbers(), Churn(self.node.amqp_port)]

    def strace(self) -> list[str]:
        """The command that makes the calls fail; what follows says of which program."""
        cell = self.cell
        words = ["strace", "-f", "-y", "-ttt", "-o", str(self.trace), "-e", "signal=none"]
        words += ["-e", f"trace={CALLS[cell.site.call]}", "-e", cell.injection]
        for path in paths_of(cell.site.kind, self.node.data_dir) if cell.site.kind else ():
            words += ["-P", path]
        return words

    def end_node(self) -> None:
        """Let a call fail, see what comes of it, and kill what is left."""
        process = self.node.running()
        # What it imports until then is no matter of the store.
        wait_for_listener(self.node.management_port)
        if self.cell.site.call == "rename":
            set_version(self.node.management_port, 3 - self.cell.version)
        tracer = subprocess.Popen(
            [*self.strace(), "-p", str(process.pid)], stderr=subprocess.DEVNULL
        )
        # What has piled up in the second queue lies on the disk only, and is read.
        reader = Consumer(self.node.amqp_port, self.queues[1], self.ledgers[self.queues[1]])
        reader.start()
        try:
            self._wait_for_the_fault(tracer)
        finally:
            tracer.send_signal(signal.SIGINT)
            tracer.wait(30)
        found, faults = self._faults()
        if faults or process.poll() is not None:
            self._say_what_came(faults[0][0] if faults else 0.0, found)
        self.node.kill()
        self.cell.violations += [text for text in stop_all([reader]) if not is_told(text)]

    def _faults(self) -> tuple[list[tuple[str, str]], list[tuple[float, str]]]:
        """What was traced, and which of it failed, with the moments."""
        text = self.trace.read_text(errors="replace") if self.trace.exists() else ""
        found = LINE.findall(text)
        faults = [(float(at), line) for at, line in found if "(INJECTED" in line]
        if self.cell.fault == "SIGKILL":
            faults = [(float(at), line) for at, line in found if CALLED.match(line)][-1:]
            faults = faults if self.node.running().poll() == -signal.SIGKILL else []
        self.cell.hit = sorted({kind_of(line) for _, line in faults})
        return found, faults

    def _wait_for_the_fault(self, tracer: subprocess.Popen[bytes]) -> None:
        until = time.monotonic() + REACHED_WITHIN_S
        while time.monotonic() < until and tracer.poll() is None:
            time.sleep(0.1)
            if self.trace.exists() and "(INJECTED" in self.trace.read_text(errors="replace"):
                # A burst goes on for some calls; an end of the process is seen by the tracer.
                until = min(until, time.monotonic() + 1.0)

    def _say_what_came(self, since: float, found: Sequence[tuple[str, str]]) -> None:
        cell = self.cell
        try:
            status = self.node.running().wait(GOES_ON_WITHIN_S if self._is_ending() else 0.5)
        except subprocess.TimeoutExpired:
            cell.outcome = "goes on"
            port = self.node.amqp_port
            if not serves(port, self.queues[0]) or not serves(port, self.queues[1]):
                cell.outcome = "blocks a queue"
            if serves(port, "late"):
                return
            try:
                status = self.node.running().wait(GOES_ON_WITHIN_S if self._is_ending() else 0.5)
            except subprocess.TimeoutExpired:
                cell.outcome = "hangs"
                cell.violations.append(f"no confirm within {GOES_ON_WITHIN_S:.0f} s")
                return
            # Calls of a start go on to fail while it serves: the last one was too many.
            found, faults = self._faults()
            since = faults[-1][0]
        self._say_how_it_ended(status)
        took = float(found[-1][0]) - since if found else 0.0
        if took > LIMIT_S:
            cell.violations.append(f"it took {took:.1f} s")

    def _say_how_it_ended(self, status: int) -> None:
        if self.cell.fault == "SIGKILL" and status == -signal.SIGKILL:
            self.cell.outcome = "killed"
            return
        self.cell.outcome = f"ends with {status}"
        self.cell.violations += without_way_out(self.node.log_of_this_start())
        if status == INVARIANT_BROKEN:
            self.cell.violations.append("its self-check found something wrong")
        if status == 0:
            self.cell.violations.append("it ends as if all were well")

    def _is_ending(self) -> bool:
        return "store_failed" in self.node.log_of_this_start()


class FaultyStart(FaultyCycle):
    """A cycle whose node is killed under load, and whose next start meets the fault."""

    def end_node(self) -> None:
        """Kill, start with calls that fail, see what comes of it, and kill what is left."""
        self.node.kill()
        self.node.program = [*self.strace(), "-D", *PROGRAM]
        try:
            self.node.spawn()
            process = self.node.running()
            until = time.monotonic() + STARTS_WITHIN_S
            while time.monotonic() < until and process.poll() is None:
                if READY_TEXT in self.node.log_of_this_start():
                    break
                time.sleep(0.02)
            found, faults = self._faults()
            if process.poll() is None and READY_TEXT not in self.node.log_of_this_start():
                self.cell.outcome = "hangs"
                self.cell.violations.append(f"no start within {STARTS_WITHIN_S:.0f} s")
            elif faults or process.poll():
                # A start goes on where its first commit does the same anew (an empty log of definitions.db): what it
                # ends for is the last of the faults.
                self._say_what_came(faults[-1][0] if faults else 0.0, found)
        finally:
            self.node.kill()
            self.node.program = PROGRAM


def fill(cell: Cell, directory: Path) -> Cell:
    """Run one cell on a node of its own."""
    kind = FaultyStart if cell.in_start else FaultyCycle
    cycle, report = kind(directory, cell), Report()
    cycle.run(report)
    cell.violations += [
        problem
        for problem in report.problems
        if not is_told(problem) and not cell.explains(problem)
    ]
    report.problems.clear()
    if not report.is_clean:
        cell.violations.append(report.summary())
    if report.confirmed < BEFORE:
        cell.violations.append(f"only {report.confirmed} confirmed")
    return cell
