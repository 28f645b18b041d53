"""A real node under load whose disk fails for good: it says so, ends by itself, and has what it confirmed at the next start.

strace is attached while clients publish and consume, and every call of one kind fails from then on. What is traced has
the time of each call, so that nothing has to be waited for but the end of the process.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

from tests.crash.kill_cycles import SMALL, Cycle, Report, Scenario
from tests.support.broker_process import external_target

LIMIT_S = 2.0
NACK, CLOSE = "(60, 120)", "(10, 50)"
OPENED = re.compile(r"connection_opened connection='([^']+)'")
CLOSED = re.compile(r"connection_closed connection='([^']+)'")
HUNG_UP = re.compile(r"connection_closed connection='([^']+)' .*client unexpectedly closed")
FAILED = re.compile(
    r"connection_failed connection='([^']+)' .*reply_code=541 text=\"INTERNAL_ERROR - vhost '/' is down\""
)
TIMES = re.compile(r"^(?:\d+ +)?(\d+\.\d+) (.*)$", re.MULTILINE)

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace makes the calls fail"),
    pytest.mark.skipif(external_target() is not None, reason="breaks a process of its own"),
]


class FailingDisk(Cycle):
    """A cycle whose node is not killed: calls fail until it ends."""

    def __init__(
        self, directory: Path, calls: str, scenario: Scenario, files: tuple[str, ...] = ()
    ) -> None:
        """`files`: only calls on these of the data directory fail."""
        super().__init__(directory, scenario, 1500, seed=1)
        self.calls = calls
        self.files = files
        self.trace = directory / "trace"
        self.status: int | None = None

    def end_node(self) -> None:
        """Attach, and wait for the end of both."""
        process = self.node.running()
        inject = f"inject={self.calls}:error=EIO"
        words = ["strace", "-f", "-ttt", "-o", str(self.trace), "-e", f"trace={self.calls}"]
        for name in self.files:
            words += ["-P", str(self.node.data_dir / name)]
        done = subprocess.run(
            [*words, "-e", inject, "-p", str(process.pid)],
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )
        if "ptrace" in done.stderr:
            pytest.skip(f"strace may not attach here: {done.stderr}")
        self.status = process.wait(30)

    def took_s(self) -> float:
        """From the first call that failed to the end of the process."""
        found = TIMES.findall(self.trace.read_text())
        failed = [float(time) for time, text in found if "(INJECTED)" in text]
        return float(found[-1][0]) - failed[0]


def open_as_it_failed(log: str) -> set[str]:
    """The connections that were there as the store failed: on a busy machine one may not have come yet."""
    before, _, _ = log.partition("store_failed reason=")
    return set(OPENED.findall(before)) - set(CLOSED.findall(before))


def closed_with_541(log: str) -> set[str]:
    """Those that were closed with 541."""
    return set(FAILED.findall(log))


def hung_up(log: str) -> set[str]:
    """Those that had gone by themselves before anybody could tell them."""
    _, _, after = log.partition("store_failed reason=")
    return set(HUNG_UP.findall(after)) - closed_with_541(log)


SYNCS, WRITES = "fdatasync,fsync", "pwrite64,pwritev"
DEFINITIONS = ("definitions.db", "definitions.db-wal")


@pytest.mark.parametrize(
    ("calls", "version", "files"),
    [
        (SYNCS, 1, ()),
        (SYNCS, 2, ()),
        (WRITES, 1, ()),
        (WRITES, 2, ()),
        (SYNCS, 2, DEFINITIONS),
        (WRITES, 2, DEFINITIONS),
    ],
)
def test_a_failed_store_ends_the_process_and_nothing_confirmed_is_lost(
    tmp_path: Path, calls: str, version: int, files: tuple[str, ...]
) -> None:
    scenario = Scenario("fsync", "default", 2, SMALL, "declare", version)
    cycle, report = FailingDisk(tmp_path, calls, scenario, files), Report()
    cycle.run(report)
    assert cycle.status == 74
    assert cycle.took_s() < LIMIT_S
    _, log, *_ = cycle.node.log_path.read_text().split("Starting BurrowMQ")
    said = r"\[critical\] store_failed reason=.*/data/.* failed: .*\((EIO|SQLITE_IOERR_\w+)\); look at the disk"
    assert re.search(said, log)
    assert 3 <= len(open_as_it_failed(log)) <= 4
    assert closed_with_541(log)
    # A publisher that was nacked may have hung up just before: `report.problems` has what it heard.
    assert closed_with_541(log) | hung_up(log) == open_as_it_failed(log)
    # What the clients took for a problem: a publisher's nack, or the close (a consumer hears that it is none of its own).
    told = [text for text in report.problems if NACK in text or CLOSE in text or "541" in text]
    assert len(told) == len(report.problems) >= 3, report.problems
    report.problems.clear()
    assert report.is_clean, report.summary()
    assert report.confirmed >= 1500
