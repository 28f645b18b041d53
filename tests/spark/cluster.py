"""A standalone cluster whose parts are killed (-9): `python -m tests.spark.cluster --messages 1000000 --kills 20`.

A master and two workers with working directories of their own, a broker, an S3-compatible server, which alone holds the
spool, and an application that moves a queue to Parquet. In turn an executor, the driver, the broker and the S3 server
are killed, at moments that a seed chooses; what is gone is started again. At the end everything is compared: what was
published, what is in Parquet, what is left in the queue.

Run it with the Python of `.venv/spark` (BURROWMQ_TEST_PYTHON: the broker's).
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import pyarrow.compute as pc
import pyarrow.parquet as pq

from pyspark_amqp.wire import Publisher, connect, declare_queue, message_octets, queue_state
from pyspark_amqp.wire.properties import encode
from tests.support.broker_process import ROOT, BrokerProcess
from tests.support.die_with_parent import dying
from tests.support.object_stores import CREDENTIALS
from tests.support.ports import free_port
from tests.support.versitygw import VersityGateway, program

QUEUE = "work"
VICTIMS = ("executor", "driver", "broker", "store")
_PIECE = 10_000
_PAUSE_S = 1.5
_DEADLINE_S = 3600.0
_EXECUTOR = b"CoarseGrainedExecutorBackend"


class Cluster:
    """A master and two workers."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self.url = f"spark://127.0.0.1:{free_port()}"
        self._processes: list[subprocess.Popen[bytes]] = []
        self._workers: list[int] = []

    def start(self) -> None:
        """Start all three."""
        port = self.url.rpartition(":")[2]
        self._run("master", "master.Master", "--port", port)
        for name in ("one", "two"):
            work = self._folder / name / "work"
            given = ["--cores", "1", "--memory", "1g", "--work-dir", str(work), self.url]
            self._workers.append(self._run(name, "worker.Worker", *given))

    def executors(self) -> list[int]:
        """Return the process ids of the executors."""
        return [
            pid
            for worker in self._workers
            for pid in _children(worker)
            if _EXECUTOR in _command(pid)
        ]

    def stop(self) -> None:
        """End all that were started."""
        for process in reversed(self._processes):
            process.terminate()
        for process in self._processes:
            process.wait()

    def _run(self, name: str, what: str, *arguments: str) -> int:
        """Start a daemon in a working directory of its own."""
        folder = self._folder / name
        folder.mkdir(parents=True)
        command = Path(sys.executable).parent / "spark-class"
        place = ["--host", "127.0.0.1", "--webui-port", str(free_port())]
        with (folder / "log").open("ab") as log:
            process = subprocess.Popen(
                dying([str(command), f"org.apache.spark.deploy.{what}", *place, *arguments]),
                cwd=folder,
                env=environment() | {"SPARK_DAEMON_MEMORY": "256m"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self._processes.append(process)
        return process.pid


class Application:
    """The driver; it is started again until it has ended well."""

    def __init__(self, folder: Path, arguments: Sequence[str]) -> None:
        self._folder = folder
        self._arguments = arguments
        self._process: subprocess.Popen[bytes] | None = None
        self.starts = 0

    def keep_running(self, is_done: Callable[[], bool]) -> bool:
        """Start it, again if it has ended; False: it has ended well and all is done."""
        status = None if self._process is None else self._process.poll()
        if status == 0 and is_done():
            return False
        if self._process is None or status is not None:
            self._start()
        return True

    def kill(self) -> None:
        """End it and its JVM at once."""
        if self._process is not None and self._process.poll() is None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()

    def _start(self) -> None:
        self.starts += 1
        with (self._folder / "application.log").open("ab") as log:
            command = [sys.executable, "-m", "tests.spark.cluster_application", *self._arguments]
            self._process = subprocess.Popen(
                command,
                cwd=ROOT,
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
            )


def environment() -> dict[str, str]:
    """Return what Spark's processes find: credentials are in no option."""
    kept = {key: value for key, value in os.environ.items() if key != "SPARK_HOME"}
    return kept | CREDENTIALS | {"PYSPARK_PYTHON": sys.executable, "SPARK_LOCAL_IP": "127.0.0.1"}


def run(
    folder: Path,
    gateway: Path,
    count: int,
    kills: int,
    seed: int,
    say: Callable[[str], object] = print,
) -> dict[str, int]:
    """Move `count` messages while `kills` processes are killed; return what became of them."""
    chosen = random.Random(seed)
    node = BrokerProcess(folder / "broker" / "data", is_verified=False)
    store = VersityGateway(gateway, folder / "s3")
    cluster = Cluster(folder / "cluster")
    node.start()
    store.start()
    cluster.start()
    publish(node.url, count)
    per_batch = max(500, count // 50)
    sink = folder / "sink"
    given = [cluster.url, node.url, QUEUE, str(sink), store.url, str(per_batch)]
    application = Application(folder, given)
    killed: list[str] = []
    try:
        deadline = time.monotonic() + _DEADLINE_S
        while application.keep_running(lambda: not ready_count(node.url)):
            if time.monotonic() > deadline:
                raise RuntimeError(f"did not end: {ready_count(node.url)} are left")
            due = (len(killed) + 1) * (count // per_batch) // (kills + 1)
            if len(killed) < kills and batches_in(sink) >= due:
                time.sleep(chosen.uniform(0.0, _PAUSE_S))
                victim = VICTIMS[len(killed) % len(VICTIMS)]
                if kill(victim, node, store, cluster, application, chosen):
                    killed.append(victim)
                    say(f"kill {len(killed)}: {victim} after {batches_in(sink)} batches")
            time.sleep(0.1)
        return audit(sink / "out", count) | {
            "kills": len(killed),
            "starts": application.starts,
            "left": ready_count(node.url),
        }
    finally:
        application.kill()
        cluster.stop()
        store.kill()
        node.close()


def kill(
    victim: str,
    node: BrokerProcess,
    store: VersityGateway,
    cluster: Cluster,
    application: Application,
    chosen: random.Random,
) -> bool:
    """Kill one, and start it again if nobody else does; False: there was none."""
    if victim == "executor":
        found = cluster.executors()
        if not found:
            return False
        os.kill(chosen.choice(found), signal.SIGKILL)
    elif victim == "driver":
        application.kill()
    elif victim == "broker":
        node.kill()
        node.start()
    else:
        store.kill()
        time.sleep(chosen.uniform(0.0, 3.0))
        store.start()
    return True


def publish(url: str, count: int) -> None:
    """Publish durable messages `m<n>`, confirmed."""
    with connect(url) as connection:
        declare_queue(connection, QUEUE)
        publisher = Publisher(connection)
        for start in range(0, count, _PIECE):
            publisher.send(
                [
                    message_octets(
                        "",
                        QUEUE,
                        b"%d" % n,
                        properties=encode({"message_id": f"m{n}", "delivery_mode": 2}),
                    )
                    for n in range(start, min(start + _PIECE, count))
                ]
            )
        publisher.flush()


def ready_count(url: str) -> int:
    """Return what is ready in the queue."""
    with connect(url) as connection:
        return queue_state(connection, QUEUE).ready_count


def batches_in(sink: Path) -> int:
    """Return how many batches the sink has committed."""
    logged = {
        path.name.partition(".")[0] for path in (sink / "out" / "_spark_metadata").glob("[0-9]*")
    }
    return 1 + max(map(int, logged), default=-1)


def audit(out: Path, count: int) -> dict[str, int]:
    """Compare what the sink's log says is there with what was published."""
    files = committed_files(out)
    ids = pq.ParquetDataset(files).read(["message_id"]).column("message_id")
    distinct = pc.unique(ids)
    wanted = {f"m{n}" for n in range(count)}
    return {
        "rows": len(ids),
        "lost": len(wanted - set(distinct.to_pylist())),
        "twice": len(ids) - len(distinct),
    }


def committed_files(out: Path) -> list[str]:
    """Return the files of committed batches, from the sink's own log."""
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
    session = spark.config("spark.driver.host", "127.0.0.1").getOrCreate()
    try:
        return [
            name.removeprefix("file://") for name in session.read.parquet(str(out)).inputFiles()
        ]
    finally:
        session.stop()


def _children(pid: int) -> list[int]:
    """Return all processes below one; each thread has its own list."""
    found: list[int] = []
    for path in Path(f"/proc/{pid}/task").glob("*/children"):
        try:
            found += map(int, path.read_text().split())
        except OSError:
            continue  # the thread has ended
    return found + [below for each in found for below in _children(each)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


def main() -> int:
    """Run as the arguments say; the exit status is 1 when something is lost or there twice."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--messages", type=int, default=20_000)
    parser.add_argument("--kills", type=int, default=4)
    parser.add_argument("--seed", type=int, default=random.randrange(1 << 32))
    wanted = parser.parse_args()
    gateway = program()
    if gateway is None:
        sys.exit("needs versitygw: install Go, or set BURROWMQ_TEST_VERSITYGW")
    began = time.monotonic()
    with tempfile.TemporaryDirectory() as folder:
        found = run(Path(folder), gateway, wanted.messages, wanted.kills, wanted.seed)
    print(f"seed {wanted.seed}: {found}, {time.monotonic() - began:.0f} s")
    return int(bool(found["lost"] or found["twice"] or found["left"]))


if __name__ == "__main__":
    sys.exit(main())
