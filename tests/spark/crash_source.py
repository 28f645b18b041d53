"""The data source of the crash tests: it kills the whole Spark application (-9) at one step of the protocol, once.

BURROWMQ_DIE_AT names the step, BURROWMQ_DIED the file that says it has happened.
"""

from __future__ import annotations

import contextlib
import importlib
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from pyspark.sql.datasource import InputPartition
from pyspark.sql.types import StructType

from pyspark_amqp.datasource import AmqpDataSource
from pyspark_amqp.source.stream import AmqpStreamReader
from pyspark_amqp.spool import Spool
from pyspark_amqp.wire import Consumer

taking = importlib.import_module("pyspark_amqp.spool.take")  # not the function of that name

STEPS = (
    *("planned", "offset logged", "consumed", "published"),
    *("acknowledged", "marked", "committing", "committed"),
)


def processes_of(session: int) -> list[int]:
    """Return all living processes of a session."""
    found = []
    for path in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):  # it may have ended meanwhile
            fields = path.read_text().rpartition(")")[2].split()
            if int(fields[3]) == session and fields[0] != "Z":
                found.append(int(path.parent.name))
    return found


def kill_session(session: int) -> None:
    """End all processes of a session at once, this one last if it is one of them."""
    while others := [pid for pid in processes_of(session) if pid != os.getpid()]:
        for pid in others:
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
    if os.getsid(0) == session:
        os.kill(os.getpid(), signal.SIGKILL)


def die_at(step: str) -> None:
    """Die if this is the step and nobody has."""
    if step != os.environ.get("BURROWMQ_DIE_AT"):
        return
    try:
        os.close(os.open(os.environ["BURROWMQ_DIED"], os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return
    kill_session(os.getsid(0))


def dying_after(step: str, inner: Callable[..., Any]) -> Callable[..., Any]:
    def run(*arguments: Any, **named: Any) -> Any:
        found = inner(*arguments, **named)
        die_at(step)
        return found

    return run


class DyingReader(AmqpStreamReader):
    """Dies on the driver between Spark's calls, and in a task between the steps of taking."""

    def latestOffset(self, start: dict[str, Any], limit: Any) -> dict[str, Any]:
        found = super().latestOffset(start, limit)
        die_at("planned")
        return found

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> Any:
        die_at("offset logged")
        return super().partitions(start, end)

    def commit(self, end: dict[str, Any]) -> None:
        die_at("committing")
        super().commit(end)
        die_at("committed")

    def read(self, partition: InputPartition) -> Iterator[Any]:
        Consumer.read = dying_after("consumed", Consumer.read)  # type: ignore[method-assign]
        Consumer.settle = dying_after("acknowledged", Consumer.settle)  # type: ignore[method-assign]
        taking.publish = dying_after("published", taking.publish)
        Spool.mark_acked = dying_after("marked", Spool.mark_acked)  # type: ignore[method-assign]
        return super().read(partition)


class DyingSource(AmqpDataSource):
    """`format("amqp-dying")`."""

    @classmethod
    def name(cls) -> str:
        return "amqp-dying"

    def streamReader(self, schema: StructType) -> DyingReader:
        return DyingReader(dict(self.options), schema)
