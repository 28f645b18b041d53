"""The Spark session of a job, and the line that tells how far the job is.

State: a thread for as long as a `Progress` is open. Called by the command line.

Started by spark-submit (or with SPARK_REMOTE) a job takes what it is given; else it runs on this machine. The sources
are registered here, because Spark does not find them in a zip.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any, Final, Self, TextIO

EVERY_S: Final = 2.0


def open_session(name: str, settings: Mapping[str, str]) -> Any:
    """Return a session with both formats."""
    from pyspark.sql import SparkSession

    import pyspark_amqp
    import pyspark_amqp_store

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    builder = SparkSession.builder.appName(f"burrowmq {name}")
    if "PYSPARK_GATEWAY_PORT" not in os.environ and "SPARK_REMOTE" not in os.environ:
        builder = builder.master(os.environ.get("MASTER", "local[*]"))
        builder = builder.config("spark.ui.enabled", "false")
        builder = builder.config("spark.sql.shuffle.partitions", "8")
        builder = builder.config("spark.ui.showConsoleProgress", "false")
    for key, value in {"spark.sql.session.timeZone": "UTC", **settings}.items():
        builder = builder.config(key, value)
    spark = builder.getOrCreate()
    if hasattr(spark, "_jsc"):  # not with Spark Connect
        spark.sparkContext.setLogLevel("ERROR")
    pyspark_amqp.register(spark)
    pyspark_amqp_store.register(spark)
    return spark


def stage_text(spark: Any) -> str:
    """Return how many tasks of the running stages are done; empty when nothing can be told."""
    try:
        tracker = spark.sparkContext.statusTracker()
        stages = [tracker.getStageInfo(stage) for stage in tracker.getActiveStageIds()]
    except Exception:  # noqa: BLE001 - Spark Connect has no context: then there is nothing to tell
        return ""
    found = [stage for stage in stages if stage is not None]
    if not found:
        return ""
    done, whole = (
        sum(stage.numCompletedTasks for stage in found),
        sum(stage.numTasks for stage in found),
    )
    return f"{done} of {whole} tasks"


class Progress:
    """Tells on standard error how far a job is; use as a context.

    On a terminal one line that changes, else a line every few seconds, when there is something new.
    """

    def __init__(
        self,
        what: str,
        tell: Callable[[], str],
        stream: TextIO | None = None,
        every_s: float = EVERY_S,
    ) -> None:
        self._what = what
        self._tell = tell
        self._stream = stream or sys.stderr
        self._every_s = every_s
        self._is_over = threading.Event()
        self._last = ""
        self._thread = threading.Thread(target=self._run, name="progress", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._is_over.set()
        self._thread.join()
        if self._stream.isatty() and self._last:
            self._stream.write("\r" + " " * len(self._last) + "\r")
            self._stream.flush()

    def _run(self) -> None:
        while not self._is_over.wait(self._every_s):
            self.show()

    def show(self) -> None:
        """Tell now."""
        told = self._tell()
        line = f"{self._what}: {told}"
        if not told or line == self._last:
            return
        if self._stream.isatty():
            self._stream.write("\r" + line.ljust(len(self._last)))
        else:
            self._stream.write(line + "\n")
        self._stream.flush()
        self._last = line
