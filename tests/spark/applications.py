"""Spark applications that are killed (-9), and what their sinks have in the end.

State: an `Application` owns a folder: checkpoint, sink, spool, log. All of its processes die together: driver, JVM, Python
workers. What counts is what the Parquet sink's log says, which is all that Spark would read.
"""

from __future__ import annotations

import collections
import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow as pa
import pyarrow.parquet as pq

from pyspark_amqp.wire import connect, queue_state
from tests.spark.crash_source import kill_session
from tests.support.broker_process import ROOT
from tests.support.die_with_parent import dying

HERE = Path(__file__).parent
DEADLINE_S = 240


class Application:
    """One queue's way to Parquet, through as many lives as it takes."""

    script = "crash_application.py"

    def __init__(
        self, url: str, queue: str, folder: Path, records: int, dedupe: str, *more: str
    ) -> None:
        self.url = url
        self.queue = queue
        self.folder = folder
        self._arguments = [url, queue, str(folder), str(records), dedupe, *more]
        folder.mkdir()

    def start(self, step: str = "") -> subprocess.Popen[bytes]:
        environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "PYSPARK_PYTHON": sys.executable,
            "BURROWMQ_DIE_AT": step,
            "BURROWMQ_DIED": str(self.folder / f"died {step}"),
        }
        with (self.folder / "log").open("ab") as log:
            return subprocess.Popen(
                dying([sys.executable, str(HERE / self.script), *self._arguments]),
                cwd=self.folder,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )

    def finish(self) -> None:
        """Run to the end of the queue."""
        process = self.start()
        try:
            assert process.wait(DEADLINE_S) == 0, self.log()
        finally:
            kill(process)

    def die_at(self, step: str) -> None:
        """Run until the application kills itself at the step."""
        process = self.start(step)
        try:
            status = process.wait(DEADLINE_S)
        finally:
            kill(process)
        assert status == -signal.SIGKILL, f"did not die at: {step}\n{self.log()}"
        self.wait_for_the_broker()

    def die_after(self, delay_s: float) -> bool:
        """Run for some time after the first sign of a batch; False: it ended before."""
        process = self.start()
        before = len(self.offsets())
        deadline = time.monotonic() + DEADLINE_S
        while process.poll() is None and len(self.offsets()) == before:
            assert time.monotonic() < deadline, self.log()
            time.sleep(0.02)
        try:
            process.wait(delay_s)
        except subprocess.TimeoutExpired:
            kill(process)
            self.wait_for_the_broker()
            return True
        assert process.returncode == 0, self.log()
        return False

    def wait_for_the_broker(self) -> None:
        """Return when it has taken back what the dead held."""
        with connect(self.url) as connection:
            while queue_state(connection, self.queue).consumer_count:
                time.sleep(0.05)

    def offsets(self) -> list[Path]:
        return list((self.folder / "checkpoint" / "offsets").glob("[0-9]*"))

    def log(self) -> str:
        return (self.folder / "log").read_text(errors="replace")[-4000:]

    def ids(self) -> collections.Counter[str]:
        """Return the message ids in files of the sink's log, and how often each is there."""
        return collections.Counter(self.table("message_id")["message_id"].to_pylist())

    def table(self, *columns: str) -> pa.Table:
        """Return these columns of all files of the sink's log."""
        paths = set()
        for log in (self.folder / "out" / "_spark_metadata").glob("[0-9]*"):
            paths |= {json.loads(line)["path"] for line in log.read_text().splitlines()[1:]}
        files = [unquote(urlsplit(path).path) for path in sorted(paths)]
        return pa.concat_tables(pq.read_table(file, columns=list(columns)) for file in files)


def kill(process: subprocess.Popen[bytes]) -> None:
    """End all processes of the application at once; nothing happens to one that has ended."""
    kill_session(process.pid)
    process.wait()


def check(application: Application, count: int, told: str = "") -> str:
    """Compare what the sink has with what was published; return it as a line."""
    found = application.ids()
    expected = {f"m{n}" for n in range(count)}
    lost = len(expected - found.keys())
    twice = sum(times - 1 for times in found.values())
    line = f"{count:,} messages, lost {lost}, twice {twice}. {told}"
    assert (lost, twice, len(found)) == (0, 0, count), line
    return line
