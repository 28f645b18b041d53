"""A node whose disk refuses reads and writes of one queue: nothing is lost, the rest goes on, and everybody is told."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pika
import pika.exceptions
import pytest

from tests.crash.faulty_disk import (
    COUNT,
    PERSISTENT,
    FaultyNode,
    Round,
    Taker,
    faulty_node,
    fill,
    get,
    wait_for,
)
from tests.support import pika_sockets
from tests.support.broker_process import INVARIANT_BROKEN, BrokerProcess, external_target

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(external_target() is not None, reason="breaks a disk of its own"),
]


@pytest.fixture(params=["off", "on"])
def node(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[FaultyNode]:
    """Give a node, with a commit log and without."""
    with faulty_node(tmp_path, request.param) as found:
        yield found


@pytest.fixture
def connect() -> Iterator[Callable[[BrokerProcess], Any]]:
    """Makes connections that end with the test."""
    with contextlib.ExitStack() as ends:

        def make(node: BrokerProcess) -> Any:
            found = pika.BlockingConnection(pika.URLParameters(node.url + "?heartbeat=0"))
            ends.callback(pika_sockets.end, found, pika_sockets.socket_of(found))
            return found

        yield make


def drain(connection: Any, queue: str, count: int, seconds: float = 30) -> list[int]:
    """What a consumer gets, in its order; it acknowledges each."""
    taker = Taker(connection, queue)
    taker.take(count, seconds)
    taker.close()
    return taker.numbers


@pytest.mark.parametrize("size", [1000, 5000])
def test_reads_that_are_refused_cost_no_message(
    node: FaultyNode, connect: Callable[[BrokerProcess], Any], size: int
) -> None:
    connection, other = connect(node), connect(node)
    fill(connection, "q", size=size)
    part = node.queue_files("q") if size < 4096 else ".seg"
    node.refuse({"operation": "pread", "part": part, "error": "EIO", "share": 0.5})
    found = drain(connection, "q", COUNT // 2, 3)
    node.refuse({"operation": "pread", "part": part, "error": "EIO"})
    found += drain(connection, "q", COUNT, 1)
    assert len(found) < COUNT
    assert wait_for(lambda: get(node, "/api/queues/%2F/q")[1]["state"] == "blocked", 5)
    row = get(node, "/api/queues/%2F/q")[1]
    assert row["fault"][0]["kind"] == "reading"
    assert "Input/output error (EIO)" in row["fault"][0]["reason"]
    status, answer = get(node, "/api/health/checks/alarms")
    assert (status, answer["alarms"][0]["resource"]) == (503, "queue")
    fill(other, "other", 4000, 100)
    assert drain(other, "other", 4000) == list(range(4000))
    node.refuse()
    found += drain(connection, "q", COUNT - len(found))
    assert found == list(range(COUNT))
    assert get(node, "/api/queues/%2F/q")[1]["state"] == "running"
    assert get(node, "/api/health/checks/alarms")[0] == 200
    log = node.log_of_this_start()
    assert "record_lost" not in log
    assert log.count("queue_fault ") == log.count("queue_fault_over ")
    assert node.stop() == 0


def test_what_failing_reads_cost_others_is_measured_on_a_queue_that_loses_nothing(
    node: FaultyNode,
) -> None:
    """The figures of a round; whether others are slower, the command says of many."""
    found = Round(node, 2000)
    found.run()
    assert found.taken == COUNT
    assert set(found.rates) == set(found.costs) == {"well", "failing"}
    assert min(*found.rates.values(), *found.costs.values()) > 0


def test_a_file_that_cannot_be_removed_stops_nobody(
    node: FaultyNode, connect: Callable[[BrokerProcess], Any]
) -> None:
    connection = connect(node)
    node.refuse(
        {"operation": "unlink", "part": "/", "error": "EIO"},
        {"operation": "rmtree", "part": "/queues/", "error": "EIO"},
    )
    fill(connection, "q", 2000, 100)
    assert drain(connection, "q", 2000) == list(range(2000))
    fill(connection, "q", 5)
    connection.channel().queue_delete("q")
    fill(connection, "q", 3)
    node.kill()
    node.refuse()
    node.start()
    connection = connect(node)
    assert drain(connection, "q", 3) == [0, 1, 2]
    assert node.stop() == 0


def has_log(node: FaultyNode) -> bool:
    """Whether it has a commit log."""
    return node.settings["store_commit_log"] == "on"


def confirmed(channel: Any, queue: str, numbers: range) -> list[int]:
    """Publish with confirms, one by one; gives the numbers that were acked. Fifty need files of their own."""
    found = []
    for number in numbers:
        with contextlib.suppress(pika.exceptions.NackError):
            channel.basic_publish("", queue, b"%08d" % number + bytes(1000), PERSISTENT)
            found.append(number)
    return found


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("operation", ["pwrite", "fdatasync"])
def test_writes_that_are_refused_are_nacked_and_the_queue_comes_back(
    node: FaultyNode, connect: Callable[[BrokerProcess], Any], operation: str, version: int
) -> None:
    if has_log(node) and operation == "fdatasync":
        pytest.skip("so few bytes are synced in the log")
    connection = connect(node)
    channel = connection.channel()
    channel.confirm_delivery()
    for name in ("q", "other"):
        channel.queue_declare(name, durable=True, arguments={"x-queue-version": version})
    kept = confirmed(channel, "q", range(50))
    assert kept == list(range(50))
    node.refuse({"operation": operation, "part": node.queue_files("q"), "error": "EIO"})
    assert confirmed(channel, "q", range(50, 60)) == []
    assert confirmed(channel, "other", range(50)) == list(range(50))
    assert wait_for(lambda: get(node, "/api/queues/%2F/q")[1]["state"] == "blocked", 5)
    row = get(node, "/api/queues/%2F/q")[1]
    assert "writing" in [fault["kind"] for fault in row["fault"]]
    status, answer = get(node, "/api/health/checks/alarms")
    assert (status, answer["alarms"][0]["resource"]) == (503, "queue")
    node.refuse()
    assert wait_for(lambda: get(node, "/api/queues/%2F/q")[1]["state"] == "running", 10)
    assert get(node, "/api/health/checks/alarms")[0] == 200
    kept += confirmed(channel, "q", range(60, 90))
    assert kept[50:] == list(range(60, 90))
    node.kill()
    node.start()
    connection = connect(node)
    found = drain(connection, "q", len(kept), 10)
    assert [number for number in found if number in set(kept)] == kept
    assert len(found) == len(set(found))
    assert set(found) <= set(range(90))
    assert drain(connection, "other", 50) == list(range(50))
    assert node.stop() == 0


def test_a_node_that_is_killed_while_it_refuses_has_what_it_confirmed(
    node: FaultyNode, connect: Callable[[BrokerProcess], Any]
) -> None:
    channel = connect(node).channel()
    channel.confirm_delivery()
    channel.queue_declare("q", durable=True)
    kept = confirmed(channel, "q", range(50))
    node.refuse({"operation": "pwrite", "part": node.queue_files("q"), "error": "EIO"})
    assert confirmed(channel, "q", range(50, 60)) == []
    node.kill()
    node.refuse()
    node.start()
    assert drain(connect(node), "q", 50, 10) == kept
    assert node.stop() == 0


def test_a_small_queue_that_cannot_have_files_stays_in_the_log(
    node: FaultyNode, connect: Callable[[BrokerProcess], Any]
) -> None:
    if not has_log(node):
        pytest.skip("every queue has files")
    channel = connect(node).channel()
    channel.confirm_delivery()
    channel.queue_declare("q", durable=True)
    node.refuse({"operation": "mkdir", "part": node.queue_files("q")[:-1], "error": "EIO"})
    kept = confirmed(channel, "q", range(200))
    assert kept == list(range(200))
    node.kill()
    node.start()
    kept += confirmed(connect(node).channel(), "q", range(200, 210))
    node.refuse()
    channel = connect(node).channel()
    channel.confirm_delivery()

    def has_files() -> bool:
        kept.extend(confirmed(channel, "q", range(len(kept), len(kept) + 1)))  # a commit asks
        return bool(list(node.data_dir.glob("vhosts/*/queues/*")))

    assert wait_for(has_files, 10)
    node.kill()
    node.start()
    assert drain(connect(node), "q", len(kept), 10) == kept
    assert node.stop() == 0


@pytest.mark.parametrize("operation", ["pwrite", "fdatasync"])
def test_a_commit_log_that_fails_goes_on_in_its_other_file_and_without_that_the_store_ends(
    node: FaultyNode, connect: Callable[[BrokerProcess], Any], operation: str
) -> None:
    if not has_log(node):
        pytest.skip("there is none")
    channel = connect(node).channel()
    channel.confirm_delivery()
    channel.queue_declare("q", durable=True)
    kept = confirmed(channel, "q", range(5))
    written = max((node.data_dir / "commit_log").iterdir(), key=lambda one: one.stat().st_mtime_ns)
    node.refuse({"operation": operation, "part": str(written), "error": "EIO"})
    kept += confirmed(channel, "q", range(5, 50))
    assert kept == list(range(50))
    node.refuse({"operation": operation, "part": "commit_log/", "error": "EIO"})
    with contextlib.suppress(pika.exceptions.AMQPError):
        kept += confirmed(channel, "q", range(50, 60))
    assert wait_for(lambda: not node.is_alive, 5)
    assert node.running().returncode not in (0, INVARIANT_BROKEN)
    node.refuse()
    node.start()
    found = drain(connect(node), "q", len(kept), 10)
    assert found[: len(kept)] == kept
    assert node.stop() == 0
