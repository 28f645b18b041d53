"""A whole Spark application killed (-9) at every step of the protocol and at random: nothing lost, nothing twice.

The application (crash_application.py) has a session of its own, and all its processes die together: driver, JVM,
Python workers. What counts is what the Parquet sink's log says, which is all that Spark would read.
"""

from __future__ import annotations

import collections
import json
import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pyarrow.parquet as pq
import pytest

from pyspark_amqp.wire import connect, declare_queue, queue_state
from tests.spark.conftest import publish
from tests.spark.crash_source import STEPS, kill_session
from tests.support import object_stores, rabbitmq_node
from tests.support.broker_process import ROOT
from tests.support.die_with_parent import dying

pytestmark = [pytest.mark.needs_server, pytest.mark.slow]

HERE = Path(__file__).parent
DEADLINE_S = 240
Tell = Callable[[str], None]


class Application:
    """One queue's way to Parquet, through as many lives as it takes."""

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
                dying([sys.executable, str(HERE / "crash_application.py"), *self._arguments]),
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
        paths = set()
        for log in (self.folder / "out" / "_spark_metadata").glob("[0-9]*"):
            paths |= {json.loads(line)["path"] for line in log.read_text().splitlines()[1:]}
        found: collections.Counter[str] = collections.Counter()
        for path in paths:
            column = pq.read_table(unquote(urlsplit(path).path), columns=["message_id"])[0]
            found.update(column.to_pylist())
        return found


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


def fill(url: str, queue: str, count: int) -> None:
    for first in range(0, count, 10_000):
        publish(url, queue, min(10_000, count - first), first)


@pytest.mark.timeout(300)
def test_killed_where_it_hurts_most(url: str, queue: str, tmp_path: Path) -> None:
    """Between publishing a piece and acknowledging it, and between acknowledging and the sink."""
    publish(url, queue, 600)
    application = Application(url, queue, tmp_path / "a", 200, "messageId")
    application.die_at("published")
    application.die_at("marked")
    application.finish()
    check(application, 600)


@pytest.mark.long
@pytest.mark.timeout(900)
def test_killed_at_every_step_with_a_spool_on_object_storage(
    url: str, queue: str, tmp_path: Path, tell: Tell, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in object_stores.CREDENTIALS.items():
        monkeypatch.setenv(name, value)
    fill(url, queue, 10_000)
    with object_stores.s3_server() as server:
        place = (
            f"spoolLocation=s3://{object_stores.BUCKET}/spool",
            f"spool.endpoint={server}",
            f"spool.region={object_stores.REGION}",
            "spool.allowHttp=true",
        )
        application = Application(url, queue, tmp_path / "a", 1000, "messageId", *place)
        for step in STEPS:
            application.die_at(step)
            tell(f"killed: {step}")
        application.finish()
    tell(check(application, 10_000, "spool on S3"))


# Each part begins with a full queue, and ends with all of it in the sink: steps, kills at random, rows of a
# batch. Those at random need more batches than fit between them.
PARTS = {
    "until it is published": (STEPS[:4], 0, 1500),
    "until the next batch": (STEPS[4:], 0, 1500),
    "at random": ((), 5, 500),
}
COUNT = 30_000


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", PARTS)
def test_killed_at_every_step_and_at_random(
    url: str, queue: str, tmp_path: Path, tell: Tell, part: str
) -> None:
    killed(url, queue, tmp_path, part, tell)


def killed(url: str, queue: str, tmp_path: Path, part: str, tell: Tell) -> None:
    steps, random_count, records = PARTS[part]
    seed = random.randrange(1 << 32)
    chosen = random.Random(seed)
    fill(url, queue, COUNT)
    application = Application(url, queue, tmp_path / "a", records, "messageId")
    for step in steps:
        application.die_at(step)
        tell(f"killed: {step}")
    for number in range(1, random_count + 1):
        delay_s = chosen.uniform(0.1, 3.0)
        assert application.die_after(delay_s), f"ended before kill {number}, seed {seed}"
        tell(f"killed: {delay_s:.2f} s after a batch began, {len(application.offsets())} so far")
    application.finish()
    tell(check(application, COUNT, f"seed {seed}"))


@pytest.mark.long
@pytest.mark.timeout(900)
def test_without_comparison_it_comes_twice(
    url: str, queue: str, tmp_path: Path, tell: Tell
) -> None:
    """The control: if nothing came twice here, the tests above would prove nothing."""
    publish(url, queue, 600)
    application = Application(url, queue, tmp_path / "a", 200, "none")
    application.die_at("published")
    application.finish()
    found = application.ids()
    assert set(found) == {f"m{n}" for n in range(600)}
    # One or both pieces of a batch of 200 were published and not acknowledged.
    twice = sum(found.values()) - 600
    assert twice in {100, 200}
    tell(f"600 messages, ids not compared: twice {twice}")


@pytest.fixture(scope="module")
def rabbitmq_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    if not rabbitmq_node.is_installed():
        pytest.skip("RabbitMQ is not installed: apt-get install rabbitmq-server")
    node = rabbitmq_node.RabbitNode(
        tmp_path_factory.mktemp("rabbitmq"), rabbitmq_node.free_node_port()
    )
    node.start()
    yield node.url
    node.stop()


@pytest.mark.long
@pytest.mark.differential
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", PARTS)
def test_the_same_with_rabbitmq(rabbitmq_url: str, tmp_path: Path, tell: Tell, part: str) -> None:
    queue = f"crash {part}"
    with connect(rabbitmq_url) as connection:
        declare_queue(connection, queue)
    killed(rabbitmq_url, queue, tmp_path, part, tell)
