"""A loaded node that gets no more memory: what becomes of it, and whether it has what it confirmed at its next start.

`python -m tests.crash.no_memory [--cycles 20]`: while clients publish, consume and declare, the node's address space is
limited to what it has, and to some MB more (RLIMIT_AS), so that each cycle comes to the limit elsewhere. It may go on,
or end with a status that says so and a line that says what to do; it may not stay and answer nobody.

State: one node a cycle. Callers: test_no_memory, the command.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path

from burrowmq.broker.machine.reclaim import compiled_pools
from tests.crash.kill_cycles import MIXED, SMALL, Cycle, Report, Scenario
from tests.crash.load import Client, stop_all
from tests.crash.syscall_cycles import Churn, is_told, serves, wait_for_listener
from tests.support.wire_client import WireClient, publish_bytes

EX_OSERR, EX_IOERR = 71, 74
MEGABYTE = 1 << 20
ROOMS = (0, 1, 2, 3, 5, 8)
"""Megabytes that it may have more than it has."""
SQUEEZED_S = 6.0
ENDS_WITHIN_S = 2.0
LAST_WORDS = "no memory is left"
SCENARIOS = (
    Scenario("fsync", "lazy", 2, MIXED, "declare"),
    Scenario("fsync", "default", 2, SMALL, "declare", has_log=True),
    Scenario("fsync", "default", 5, MIXED, "declare", version=1),
)


class Hoarder(Client):
    """Has the node keep ever more: transient queues with messages. Where its connection is closed it comes again."""

    def run(self) -> None:
        while not self.stopping.wait(0.02):
            super().run()

    def work(self, client: WireClient) -> None:
        while not self.stopping.is_set():
            queue = client.declare(1, durable=False, auto_delete=True)
            client.send(*(publish_bytes(1, "", queue, b"x" * 300) for _ in range(100)))


class SqueezedCycle(Cycle):
    """A cycle whose node comes to the end of its memory before it is killed, if it has not ended by then."""

    def __init__(self, directory: Path, scenario: Scenario, messages: int, seed: int) -> None:
        super().__init__(directory, scenario, messages, seed)
        self.room_mb = ROOMS[seed % len(ROOMS)]
        self.outcome = "not reached"
        self.violations: list[str] = []

    def disturbers(self) -> list[Client]:
        """Who has the node make files and objects beside the publishers."""
        return [*super().disturbers(), Churn(self.node.amqp_port)]

    def end_node(self) -> None:
        """Take the memory away, look what comes of it, and kill what is left."""
        process = self.node.running()
        wait_for_listener(self.node.management_port)
        size = _size_of(process.pid)
        resource.prlimit(process.pid, resource.RLIMIT_AS, (size + self.room_mb * MEGABYTE,) * 2)
        hoarders: list[Client] = [Hoarder(self.node.amqp_port) for _ in range(2)]
        for each in hoarders:
            each.start()
        try:
            status = process.wait(SQUEEZED_S)
        except subprocess.TimeoutExpired:
            self.outcome = "goes on"
            if not serves(self.node.amqp_port, "late"):
                self._say_whether_it_ends(process)
        else:
            self._say_how_it_ended(status)
        self.node.kill()
        self.violations += [text for text in stop_all(hoarders) if not is_told(text)]

    def _say_whether_it_ends(self, process: subprocess.Popen[bytes]) -> None:
        """It did not answer: what the question took may have been too much."""
        try:
            self._say_how_it_ended(process.wait(ENDS_WITHIN_S))
        except subprocess.TimeoutExpired:
            self.outcome = "hangs"
            self.violations.append("it neither serves nor ends")

    def _say_how_it_ended(self, status: int) -> None:
        self.outcome = f"ends with {status}"
        log = self.node.log_of_this_start()
        if status < 0 and compiled_pools() is None:
            return  # the interpreter itself may end where it finds no memory for an error
        if status not in (EX_OSERR, EX_IOERR):
            self.violations.append(f"it ends with {status}: {log[-1000:]}")
        elif status == EX_OSERR and LAST_WORDS not in log:
            self.violations.append(f"it does not say why: {log[-1000:]}")


def _size_of(pid: int) -> int:
    """Octets of its address space."""
    return int(Path(f"/proc/{pid}/statm").read_text().split()[0]) * resource.getpagesize()


def squeeze(directory: Path, number: int, messages: int) -> SqueezedCycle:
    """One cycle; what went wrong is in its `violations`."""
    cycle = SqueezedCycle(directory, SCENARIOS[number % len(SCENARIOS)], messages, seed=number)
    report = Report()
    cycle.run(report)
    # Its log has the traceback of what found no memory; that is no fault here.
    cycle.violations += [
        text for text in report.problems if not is_told(text) and not text.startswith("Traceback")
    ]
    report.problems.clear()
    if not report.is_clean:
        cycle.violations.append(report.summary())
    return cycle


def main() -> int:
    """Run from the command line: a line for each cycle, the sums, and whether anything went wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=18)
    parser.add_argument("--messages", type=int, default=1500, help="confirmed before each squeeze")
    options = parser.parse_args()
    outcomes, wrong = Counter[str](), 0
    with tempfile.TemporaryDirectory(prefix="no-memory-") as place:
        for number in range(options.cycles):
            began = time.monotonic()
            cycle = squeeze(Path(place) / f"cycle{number}", number, options.messages)
            outcomes[cycle.outcome] += 1
            wrong += bool(cycle.violations)
            sys.stdout.write(
                f"{number}: {cycle.room_mb} MB, {cycle.scenario}: {cycle.outcome}"
                f" ({time.monotonic() - began:.0f} s) {'; '.join(cycle.violations)}\n"
            )
            sys.stdout.flush()
    words = ", ".join(f"{word} {count}" for word, count in outcomes.most_common())
    sys.stdout.write(f"{options.cycles} cycles: {words}; {wrong} violations\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
