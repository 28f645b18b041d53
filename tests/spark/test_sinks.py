"""A queue to a Delta table on the oldest Spark, the application killed (-9) ten times: each message is there once."""

from __future__ import annotations

import os
import random
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

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
PACKAGES = ("pyspark==4.2.0", "pyarrow>=18")
JARS = f"io.delta:delta-spark_4.2_2.13:{DELTA}"
PER_BATCH = 500
FAILED_MAX = 2


def versions(table: Path) -> int:
    """Return how many commits the table has."""
    return len(list((table / "_delta_log").glob("*.json")))


@pytest.mark.parametrize(("count", "kills_wanted"), [(4000, 3), (20_000, 10)])
def test_each_message_is_there_once(
    count: int,
    kills_wanted: int,
    url: str,
    queue: str,
    tmp_path: Path,
    tell: Callable[[str], None],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    python = python_with("spark-4.2.0", PACKAGES)
    if python is None:
        pytest.skip("pyspark 4.2.0 cannot be installed: needs a package index")
    if not (found := jars()):
        pytest.skip("Delta's jars cannot be had: needs Maven")
    monkeypatch.setenv("DELTA_JARS", found)
    publish(url, queue, count)
    chosen = random.Random(seed := random.randrange(1 << 32))
    tell(f"seed {seed}")
    kills = failed = 0
    while True:
        status = run(python, url, queue, tmp_path, chosen if kills < kills_wanted else None)
        if status == -signal.SIGKILL:
            kills += 1
            tell(f"kill {kills} after {versions(tmp_path / 'table')} commits")
            continue
        if status == 0:
            break
        failed += 1
        assert failed <= FAILED_MAX, (tmp_path / "log").read_text()[-4000:]
    printed = subprocess.run(
        command(python, url, "count", tmp_path),
        env=environment(),
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    counted = re.search(r"rows (\d+) distinct (\d+)", printed)
    assert counted is not None
    assert (int(counted[1]), int(counted[2])) == (count, count)
    assert ready_count(url, queue) == 0
    assert (kills, failed) == (kills_wanted, 0)


def run(python: Path, url: str, queue: str, folder: Path, chosen: random.Random | None) -> int:
    """Run the application, and kill it after a few more commits if there is a `chosen`; return its exit status."""
    before = versions(folder / "table")
    with (folder / "log").open("ab") as log:
        process = subprocess.Popen(
            command(python, url, queue, folder),
            env=environment(),
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
        )
    while process.poll() is None:
        time.sleep(0.05)
        if chosen is not None and versions(folder / "table") > before + chosen.randrange(3):
            time.sleep(chosen.uniform(0.0, 1.0))
            os.killpg(process.pid, signal.SIGKILL)
            break
    return process.wait()


def jars() -> str:
    """Return Delta's jars, from Maven; "" where they cannot be had."""
    maven = shutil.which("mvn")
    if maven is None:
        return ""
    subprocess.run([maven, "-q", "dependency:get", f"-Dartifact={JARS}"], check=False)
    kept = Path.home() / ".m2" / "repository" / "io" / "delta"
    return ",".join(map(str, kept.glob(f"*/{DELTA}/*.jar")))


def command(python: Path, url: str, queue: str, folder: Path) -> list[str]:
    script = ROOT / "tests" / "spark" / "delta_application.py"
    return [str(python), str(script), url, queue, str(folder), str(PER_BATCH)]


def environment() -> dict[str, str]:
    kept = {
        key: value
        for key, value in os.environ.items()
        if key not in {"PYSPARK_DRIVER_PYTHON", "SPARK_HOME"}
    }
    return kept | {"PYTHONPATH": str(ROOT), "SPARK_LOCAL_IP": "127.0.0.1"}
