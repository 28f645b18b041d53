"""A whole Spark application killed (-9) at every step of the protocol and at random: nothing lost, nothing twice.

The application is crash_application.py.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyspark_amqp.wire import connect, declare_queue
from tests.spark.applications import Application, check
from tests.spark.conftest import publish
from tests.spark.crash_source import STEPS
from tests.support import object_stores, rabbitmq_node

pytestmark = [pytest.mark.needs_server, pytest.mark.slow]

Tell = Callable[[str], None]


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
