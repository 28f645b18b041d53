"""A queue to a table of Delta and of Iceberg, the application killed (-9) ten times: each message is there once."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.spark.conftest import publish, ready_count
from tests.support.broker_process import ROOT
from tests.support.python_environments import python_with

pytestmark = [
    pytest.mark.needs_server,
    pytest.mark.slow,
    pytest.mark.long,
    pytest.mark.timeout(1800),
]
DELTA = "4.4.0"
JARS = f"io.delta:delta-spark_4.2_2.13:{DELTA}"
ICEBERG = "pyiceberg[sql-sqlite]>=0.12"
PER_BATCH = 500
FAILED_MAX = 2
KILLS = [(4000, 3), (20_000, 10)]
"""Messages, and how often the application is killed."""
Tell = Callable[[str], None]


class Sink(NamedTuple):
    """What writes a table."""

    python: Path
    script: str
    commits: str
    """Where each commit leaves a file."""


@pytest.fixture
def delta(monkeypatch: pytest.MonkeyPatch) -> Sink:
    python = ROOT / ".venv" / "spark-oldest" / "bin" / "python"  # Delta takes no newer Spark
    if not python.exists():
        pytest.skip("needs the oldest Spark: make setup-spark-oldest")
    if not (found := jars()):
        pytest.skip("Delta's jars cannot be had: needs Maven")
    monkeypatch.setenv("DELTA_JARS", found)
    return Sink(python, "delta_application.py", "table/_delta_log/*.json")


@pytest.fixture
def iceberg() -> Sink:
    python = python_with("iceberg", [ICEBERG], behind=Path(sys.prefix))
    if python is None:
        pytest.skip(f"{ICEBERG} cannot be installed: needs a package index")
    return Sink(python, "iceberg_application.py", "lake/shop/orders/metadata/snap-*.avro")


@pytest.mark.parametrize("size", KILLS)
def test_delta(
    delta: Sink, size: tuple[int, int], url: str, queue: str, tmp_path: Path, tell: Tell
) -> None:
    killed(delta, size, url, queue, tmp_path, tell)


@pytest.mark.parametrize("size", KILLS)
def test_iceberg(
    iceberg: Sink, size: tuple[int, int], url: str, queue: str, tmp_path: Path, tell: Tell
) -> None:
    killed(iceberg, size, url, queue, tmp_path, tell)


class Run:
    """A queue's way to a table, through as many lives as it takes."""

    def __init__(self, sink: Sink, url: str, queue: str, folder: Path) -> None:
        self._sink = sink
        self._url = url
        self._queue = queue
        self._folder = folder

    def commits(self) -> int:
        """Return how many commits the table has."""
        return len(list(self._folder.glob(self._sink.commits)))

    def live(self, chosen: random.Random | None) -> int:
        """Run it, and kill it after a few more commits if there is a `chosen`; return its exit status."""
        enough = self.commits() + (chosen.randrange(3) if chosen else 0)
        with (self._folder / "log").open("ab") as log:
            process = subprocess.Popen(
                self._command(self._queue),
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )
        while process.poll() is None:
            time.sleep(0.05)
            if chosen is not None and self.commits() > enough:
                time.sleep(chosen.uniform(0.0, 1.0))
                os.killpg(process.pid, signal.SIGKILL)
                break
        return process.wait()

    def log(self) -> str:
        return (self._folder / "log").read_text(errors="replace")[-4000:]

    def counted(self) -> tuple[int, int]:
        """Return the table's rows, and how many ids they have."""
        done = subprocess.run(
            self._command("count"), env=environment(), capture_output=True, text=True, check=True
        )
        found = re.search(r"rows (\d+) distinct (\d+)", done.stdout)
        assert found is not None
        return int(found[1]), int(found[2])

    def _command(self, queue: str) -> list[str]:
        script = ROOT / "tests" / "spark" / self._sink.script
        given = [self._url, queue, str(self._folder), str(PER_BATCH)]
        return [str(self._sink.python), str(script), *given]


def killed(
    sink: Sink, size: tuple[int, int], url: str, queue: str, folder: Path, tell: Tell
) -> None:
    count, kills_wanted = size
    publish(url, queue, count)
    seed = random.randrange(1 << 32)
    chosen = random.Random(seed)
    run = Run(sink, url, queue, folder)
    kills = failed = 0
    while True:
        status = run.live(chosen if kills < kills_wanted else None)
        if status == -signal.SIGKILL:
            kills += 1
            tell(f"kill {kills} after {run.commits()} commits")
            continue
        if status == 0:
            break
        failed += 1
        assert failed <= FAILED_MAX, run.log()
    assert run.counted() == (count, count)
    assert ready_count(url, queue) == 0
    assert (kills, failed) == (kills_wanted, 0)
    tell(f"rows = distinct = published = {count}, {kills} kills, seed {seed}")


def jars() -> str:
    """Return Delta's jars, from Maven; "" where they cannot be had."""
    maven = shutil.which("mvn")
    if maven is None:
        return ""
    subprocess.run([maven, "-q", "dependency:get", f"-Dartifact={JARS}"], check=False)
    kept = Path.home() / ".m2" / "repository" / "io" / "delta"
    return ",".join(map(str, kept.glob(f"*/{DELTA}/*.jar")))


def environment() -> dict[str, str]:
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in {"PYSPARK_DRIVER_PYTHON", "SPARK_HOME"}
    }
    return kept | {"PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
