"""One Spark session for all tests of this folder, and a broker. Without Spark only what needs no JVM is collected."""

from __future__ import annotations

import importlib.util
import os
import sys
import time
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from pyspark_amqp.wire import Publisher, connect, declare_queue, message_octets, queue_state
from pyspark_amqp.wire.properties import encode
from tests.support import object_stores
from tests.support.broker_process import BrokerProcess, external_target

# A short life: the fast compiler only, one thread of garbage collection.
JAVA = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"

# What needs Spark is run by `make test-spark`: elsewhere it is neither passed nor skipped.
collect_ignore = (
    []
    if importlib.util.find_spec("pyspark")
    else [
        "test_format.py",
        "test_crash.py",
        "test_broker_crash.py",
        "test_jobs.py",
        "test_documented.py",
        "test_notebook.py",
        "test_cluster.py",
        "test_connect.py",
        "test_sinks.py",
        "test_submit.py",
        "test_traffic.py",
    ]
)


@pytest.fixture(scope="session")
def url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Yield the address of a broker: the one under test, or a fresh process of ours."""
    outside = external_target()
    if outside is not None:
        yield outside.url
        return
    node = BrokerProcess(tmp_path_factory.mktemp("node") / "data")
    node.start()
    yield node.url
    assert node.stop() == 0


@pytest.fixture(scope="session")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    """Yield a session with two slots and little memory."""
    from pyspark.sql import SparkSession

    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    # Python workers have the environment that the JVM began with.
    os.environ.update(object_stores.CREDENTIALS)
    folder = tmp_path_factory.mktemp("spark")
    session = (
        SparkSession.builder.master("local[2]")
        .appName("burrowmq tests")
        .config("spark.ui.enabled", "false")
        .config("spark.driver.memory", "1g")
        .config("spark.driver.extraJavaOptions", JAVA)
        .config("spark.driver.bindAddress", "127.0.0.1")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.sql.shuffle.partitions", "2")
        .config("spark.sql.warehouse.dir", str(folder / "warehouse"))
        .config("spark.local.dir", str(folder / "local"))
        .getOrCreate()
    )
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()


@pytest.fixture
def tell(request: pytest.FixtureRequest) -> Callable[[str], None]:
    """Return what prints a line at once: a test of minutes says how far it is."""
    capture = request.config.pluginmanager.getplugin("capturemanager")
    began = time.monotonic()

    def say(text: str) -> None:
        with capture.global_and_fixture_disabled():
            print(f"\n{time.monotonic() - began:4.0f} s  {text}", end="", flush=True)

    return say


@pytest.fixture
def queue(url: str) -> str:
    """Return a durable queue of its own."""
    name = f"spark.{uuid.uuid4().hex[:12]}"
    with connect(url) as connection:
        declare_queue(connection, name)
    return name


def publish(url: str, queue: str, count: int, first: int = 0) -> None:
    """Publish durable messages `m<n>`, confirmed."""
    with connect(url) as connection:
        publisher = Publisher(connection)
        numbers = range(first, first + count)
        publisher.send(
            [
                message_octets(
                    "",
                    queue,
                    b"%d" % n,
                    properties=encode({"message_id": f"m{n}", "delivery_mode": 2}),
                )
                for n in numbers
            ]
        )
        publisher.flush()


def ready_count(url: str, queue: str) -> int:
    """Return what is ready in the queue."""
    with connect(url) as connection:
        return queue_state(connection, queue).ready_count
