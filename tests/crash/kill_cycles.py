"""Kills a loaded node again and again and compares what it confirmed with what it still has.

State: none between cycles but the node's data directory; every cycle drains the queues afterwards.
Callers: test_kill_cycles (3 short cycles) and, for the release figures,
`python -m tests.crash.kill_cycles --cycles 20 --messages 5000`, with `--conversion` for version 1 and conversions, `--commit-log` for
a store that has one, `--all` for all of them in turn. After each cycle a line on stderr has the figures so far, so that a run
of hours may be cut off.
Oracle: confirmed and not acked => present, bodies whole, once, in the publisher's order, flagged as
redelivered; declared => there; deleted => gone. What was neither confirmed nor refused may be either.
"""

from __future__ import annotations

import argparse
import itertools
import random
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from pika import spec

from tests.crash.journal import QueueLedger, Verdict, judge
from tests.crash.load import Client, Consumer, Declarer, Flipper, Publisher, drain, stop_all
from tests.support.broker_process import BrokerProcess
from tests.support.patience import patient
from tests.support.wire_client import Closed, WireClient

SMALL = (14, 100, 100, 1000, 1000, 4000)
MIXED = (14, 100, 1000, 4090, 4200, 9000, 20_000)
LARGE = (14, 5000, 100_000, 400_000, 1_048_576)


@dataclass(frozen=True)
class Scenario:
    """One kind of cycle."""

    confirm: str
    mode: str
    fan_out: int
    sizes: tuple[int, ...]
    disturbance: str  # steady | alone | roll-over | compaction | declare | conversion
    version: int = (
        2  # of the queues; under conversion the one that the first policy asks for is the other
    )
    has_log: bool = False  # store_commit_log

    def __str__(self) -> str:
        return (
            f"confirm={self.confirm} mode={self.mode} fan-out={self.fan_out}"
            f" bodies={min(self.sizes)}..{max(self.sizes)} during={self.disturbance}"
            f" version={self.version}{' log' if self.has_log else ''}"
        )


SCENARIOS = tuple(
    Scenario(confirm, mode, fan_out, sizes, disturbance)
    for (sizes, disturbance), (confirm, mode, fan_out) in zip(
        itertools.cycle(
            [
                (SMALL, "steady"),
                (MIXED, "compaction"),
                (LARGE, "roll-over"),
                (SMALL, "declare"),
                (MIXED, "steady"),
            ]
        ),
        list(itertools.product(("fsync", "written"), ("lazy", "default"), (1, 5))) * 5,
        strict=False,
    )
)


# Killed while queues are on their way to version 1 and back, and in version 1 alone.
CONVERSIONS = (
    Scenario("fsync", "lazy", 2, MIXED, "conversion", version=2),
    Scenario("fsync", "default", 2, SMALL, "conversion", version=1),
    Scenario("written", "lazy", 1, MIXED, "compaction", version=1),
    Scenario("written", "default", 2, MIXED, "conversion", version=1),
    Scenario("fsync", "lazy", 1, SMALL, "steady", version=1),
)


# The same with a commit log: queues that stay in it, that move out, that are converted there; and a publisher that waits
# for each confirm and has nobody beside it, whose commits the loop writes itself.
WITH_LOG = (
    *(replace(one, has_log=True) for one in (*SCENARIOS[:5], *CONVERSIONS, *SCENARIOS[5:10])),
    Scenario("fsync", "lazy", 1, SMALL, "alone", has_log=True),
)


@dataclass
class Report:
    """Figures of all cycles."""

    cycles: int = 0
    confirmed: int = 0
    verdict: Verdict = field(default_factory=Verdict)
    missing_declarations: int = 0
    undead_queues: int = 0
    problems: list[str] = field(default_factory=list)
    slowest_restart_s: float = 0.0

    @property
    def wrong(self) -> int:
        """Count what went wrong in all cycles."""
        wrong = self.missing_declarations + self.undead_queues + len(self.problems)
        return wrong + self.verdict.wrong

    @property
    def is_clean(self) -> bool:
        """Say whether nothing went wrong in any cycle."""
        return not self.wrong

    def summary(self) -> str:
        """Return the one line of figures."""
        found = " ".join(f"{key}={value}" for key, value in vars(self.verdict).items())
        return (
            f"cycles={self.cycles} confirmed={self.confirmed} {found}"
            f" declarations_lost={self.missing_declarations} undead={self.undead_queues}"
            f" problems={len(self.problems)} slowest_restart={self.slowest_restart_s:.2f}s"
        )


# What a release is asked for: every kind in turn.
ALL = (*SCENARIOS[:10], *CONVERSIONS, *WITH_LOG)


class Cycle:
    """One start, load, kill, restart and comparison on a data directory of its own."""

    def __init__(self, directory: Path, scenario: Scenario, messages: int, seed: int) -> None:
        self.scenario = scenario
        self.messages = messages
        self.random = random.Random(seed)
        settings = {
            "confirm": scenario.confirm,
            "classic_queue.default_version": str(scenario.version),
            "store_commit_log": "on" if scenario.has_log else "off",
            "handshake_timeout": str(round(patient(10) * 1000)),
        }
        self.node = BrokerProcess(directory / "data", settings)
        self.queues = [f"crash.{number}" for number in range(scenario.fan_out)]
        self.ledgers = {queue: QueueLedger() for queue in self.queues}
        self.publishers: list[Publisher] = []
        self.declarer: Declarer | None = None

    def run(self, report: Report) -> None:
        """Do the cycle and add its figures to the report."""
        try:
            self.node.start()
            self._declare()
            report.problems += self._load_and_kill()
            self.node.start()
            report.slowest_restart_s = max(report.slowest_restart_s, self.node.ready_after_s)
            self._compare(report)
            assert self.node.stop() == 0
            log = self.node.log_path.read_text()
            if "Traceback" in log:
                report.problems.append(log[log.index("Traceback") :][:2000])
        except (AssertionError, RuntimeError, OSError, Closed) as error:
            report.problems.append(f"{self.scenario}: {error!r}")
        finally:
            self.close()
        report.cycles += 1

    def close(self) -> None:
        """What a cycle leaves behind is gone, whatever happened in it."""
        self.node.kill()

    def _declare(self) -> None:
        with WireClient("127.0.0.1", self.node.amqp_port) as client:
            client.open().channel(1)
            client.send_method(
                1, spec.Exchange.Declare(exchange="crash", type="fanout", durable=True)
            )
            client.expect(spec.Exchange.DeclareOk)
            for queue in self.queues:
                client.declare(
                    1, queue, durable=True, arguments={"x-queue-mode": self.scenario.mode}
                )
                client.send_method(
                    1, spec.Queue.Bind(queue=queue, exchange="crash", routing_key="")
                )
                client.expect(spec.Queue.BindOk)
            client.close()

    def _load_and_kill(self) -> list[str]:
        port = self.node.amqp_port
        window = 20 if max(self.scenario.sizes) > 100_000 else 300
        numbers = (1, 2)
        if self.scenario.disturbance == "alone":
            window, numbers = 1, (1,)
        self.publishers = [
            Publisher(port, number, "crash", self.scenario.sizes, window) for number in numbers
        ]
        clients = [*self.publishers, *self.disturbers()]
        for client in clients:
            client.start()
        deadline = time.monotonic() + patient(120)
        while sum(len(one.confirmed) for one in self.publishers) < self.messages:
            if time.monotonic() > deadline or not any(one.is_alive() for one in clients):
                break
            time.sleep(0.02)
        time.sleep(self.random.random() * 0.3)  # the moment of the kill is the random part
        self.end_node()
        problems = stop_all(clients)
        confirmed = sum(len(one.confirmed) for one in self.publishers)
        if confirmed < self.messages:
            problems.append(f"only {confirmed} of {self.messages} were confirmed before the kill")
        return problems

    def disturbers(self) -> list[Client]:
        """Who is at work beside the publishers."""
        port, clients = self.node.amqp_port, list[Client]()
        if self.scenario.disturbance == "conversion":
            clients.append(Flipper(self.node.management_port, 0.02 + self.random.random() * 0.3))
        if self.scenario.disturbance in ("compaction", "declare", "conversion"):
            clients.append(Consumer(port, self.queues[0], self.ledgers[self.queues[0]]))
        if self.scenario.disturbance == "declare":
            self.declarer = Declarer(port, "churn")
            clients.append(self.declarer)
        return clients

    def end_node(self) -> None:
        """Whatever ends the process; the clients do not know."""
        self.node.kill()

    def _compare(self, report: Report) -> None:
        confirmed = set[tuple[int, int]]().union(*(one.confirmed for one in self.publishers))
        report.confirmed += len(confirmed)
        with WireClient("127.0.0.1", self.node.amqp_port) as client:
            client.open().channel(1)
            for queue in self.queues:
                drained = drain(client, queue)
                ledger = self.ledgers[queue]
                report.verdict.add(judge(ledger, confirmed, drained, expect_redelivered=True))
            if self.declarer is not None:
                report.missing_declarations += sum(
                    not _exists(client, queue) for queue in self.declarer.declared
                )
                report.undead_queues += sum(_exists(client, one) for one in self.declarer.deleted)
            client.close()


def _exists(client: WireClient, queue: str) -> bool:
    client.send_method(1, spec.Queue.Declare(queue=queue, passive=True))
    _, answer = client.read_method()
    if isinstance(answer, spec.Queue.DeclareOk):
        return True
    client.send_method(1, spec.Channel.CloseOk())
    client.channel(1)
    return False


def run(
    cycles: int,
    messages: int,
    seed: int,
    directory: Path,
    scenarios: Sequence[Scenario] = SCENARIOS,
    make: Callable[[Path, Scenario, int, int], Cycle] = Cycle,
) -> Report:
    """Run that many cycles over the scenarios in turn. Nothing is left of one in which nothing was wrong."""
    report = Report()
    for number in range(cycles):
        scenario = scenarios[number % len(scenarios)]
        is_slow = max(scenario.sizes) > 100_000 or scenario.disturbance == "alone"
        wanted = max(messages // 25, 100) if is_slow else messages
        place = directory / f"cycle{number}"
        cycle = make(place, scenario, wanted, seed + number)
        wrong_before, told = report.wrong, len(report.problems)
        cycle.run(report)
        if report.wrong == wrong_before:
            shutil.rmtree(place)
        for problem in report.problems[told:]:
            sys.stderr.write(f"PROBLEM {problem}\n")
        sys.stderr.write(f"{number + 1}: {scenario}: {report.summary()}\n")
    return report


def main() -> int:
    """Run from the command line; the last line has the figures, the status says clean or not."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cycles", type=int, default=20)
    parser.add_argument("--messages", type=int, default=6500, help="confirmed before each kill")
    parser.add_argument("--seed", type=int, default=int(time.time()))
    parser.add_argument("--directory", type=Path, default=None)
    parser.add_argument("--conversion", action="store_true", help="version 1, and conversions")
    parser.add_argument("--commit-log", action="store_true", help="with store_commit_log = on")
    parser.add_argument("--all", action="store_true", help="all of these in turn")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="kill-", dir=options.directory) as place:
        scenarios = CONVERSIONS if options.conversion else SCENARIOS
        if options.commit_log:
            scenarios = WITH_LOG
        if options.all:
            scenarios = ALL
        report = run(options.cycles, options.messages, options.seed, Path(place), scenarios)
    for problem in report.problems:
        sys.stdout.write(f"PROBLEM {problem}\n")
    sys.stdout.write(f"seed={options.seed} {report.summary()}\n")
    return 0 if report.is_clean else 1


if __name__ == "__main__":
    sys.exit(main())
