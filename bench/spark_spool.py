"""Batches with the spool in a folder, and on an S3 server beside it: `python -m bench.spark_spool [--rounds N]`.

Runs in .venv/spark. Starts a BurrowMQ and versitygw (Go builds it once; or BURROWMQ_TEST_VERSITYGW), which keeps its objects on the
same disk. Two rows: batches of 30,000 messages of one queue; and one batch of four queues with 65,535 messages each, where
a proxy adds 50 ms to each request. A row is measured with the folder and then with the server in each round, so that what
disturbs the machine disturbs both. The time is the batches' own (`triggerExecution`), without the query's start; the
sink is Parquet. Medians.
"""

from __future__ import annotations

import argparse
import os
import statistics
import sys
import tempfile
import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, Final, NamedTuple

from bench.spark import session
from bench.spark_rows import pour
from bench.spark_wire import BODY, block
from pyspark_amqp.wire import connect, message_octets, purge_queue
from tests.support.broker_process import BrokerProcess
from tests.support.object_stores import BUCKET, CREDENTIALS, REGION, fault_proxy
from tests.support.versitygw import VersityGateway, program

SLOTS: Final = 4
"""Tasks at a time, as many as the slow row has queues: with each request a task waits, and takes no processor."""
FOLDER, SERVER = "folder", "S3"
ADDED_S: Final = 0.05
_SETTLED: Final = 1
"""Batches of a query before those that count: Python's workers start in the first."""


class Case(NamedTuple):
    """What is moved."""

    title: str
    queue_count: int
    per_queue: int
    per_batch: int
    is_slowed: bool


CASES: Final = {
    "small": Case("30,000 rows of one queue a batch", 1, 210_000, 30_000, is_slowed=False),
    "slow": Case(
        "four queues of 65,535, 50 ms a request", 4, 2 * 65_535, 4 * 65_535, is_slowed=True
    ),
}


def s3_place(url: str) -> dict[str, str]:
    """Return the options of a spool of its own at a server."""
    return {
        "spoolLocation": f"s3://{BUCKET}/{uuid.uuid4().hex}",
        "spool.endpoint": url,
        "spool.region": REGION,
        "spool.allowHttp": "true",
    }


def batch_times(
    spark: Any, url: str, case: Case, folder: Path, place: dict[str, str]
) -> list[float]:
    """Fill the queues, move all to Parquet, and return each batch's seconds."""
    queues = [f"bench.spool.{n}" for n in range(case.queue_count)]
    for queue in queues:
        pour(
            url,
            queue,
            [message_octets("", queue, BODY, properties=block(n)) for n in range(case.per_queue)],
        )
    query = (
        spark.readStream.format("amqp")
        .options(**{"amqp.uri": url, "queue": ",".join(queues)}, **place)
        .options(maxRecordsPerTrigger=str(case.per_batch))
        .load()
        .writeStream.format("parquet")
        .option("path", str(folder / "out"))
        .option("checkpointLocation", str(folder / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    batches = [each for each in query.recentProgress if each.numInputRows]
    found = sum(each.numInputRows for each in batches)
    if found != case.queue_count * case.per_queue:
        raise RuntimeError(f"{found} rows of {case.queue_count * case.per_queue}")
    with connect(url) as connection:
        for queue in queues:
            purge_queue(connection, queue)
    return [each.durationMs["triggerExecution"] / 1000 for each in batches[_SETTLED:]]


def table(times: dict[str, dict[str, list[float]]]) -> str:
    """Return the medians as Markdown."""
    lines = ["| a batch | folder | S3 | time | rate |", "|---" * 5 + "|"]
    for name, found in times.items():
        folder, server = (statistics.median(found[place]) for place in (FOLDER, SERVER))
        cells = [CASES[name].title, f"{folder:.2f} s", f"{server:.2f} s"]
        cells += [f"{server / folder:.2f} x", f"{100 * folder / server:.0f} %"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.spark_spool", description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--only", type=lambda text: text.split(","), default=list(CASES))
    asked = parser.parse_args(arguments)
    gateway = program()
    if gateway is None:
        sys.exit("needs versitygw: install Go, or set BURROWMQ_TEST_VERSITYGW")
    os.environ.update(CREDENTIALS)
    times: dict[str, dict[str, list[float]]] = {
        name: {FOLDER: [], SERVER: []} for name in asked.only
    }
    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        root = Path(name)
        node = BrokerProcess(root / "node" / "data", is_verified=False)
        store = VersityGateway(gateway, root / "s3")
        spark = session(root, SLOTS)
        running.callback(spark.stop)
        node.start()
        running.callback(node.stop)
        store.start()
        running.callback(store.kill)
        slowed = running.enter_context(
            fault_proxy(store.url, seed=1, share=1.0, faults=("stall",), stall_s=ADDED_S)
        )
        for _ in range(asked.rounds):
            for each in asked.only:
                case = CASES[each]
                for where in (FOLDER, SERVER):
                    folder = root / uuid.uuid4().hex
                    url = slowed.url if case.is_slowed else store.url
                    place = (
                        {"spoolLocation": str(folder / "spool")}
                        if where == FOLDER
                        else s3_place(url)
                    )
                    found = batch_times(spark, node.url, case, folder, place)
                    times[each][where] += found
                    said = ", ".join(f"{taken_s:.2f}" for taken_s in found)
                    print(f"{each} {where}: {said}", file=sys.stderr, flush=True)
    print(table(times))
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
