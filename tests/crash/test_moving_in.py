"""A RabbitMQ that moves in while both nodes are killed: a small one, and one of a million messages."""

from __future__ import annotations

import shlex
import subprocess
import time
from pathlib import Path

import pytest
from pika import BasicProperties

from tests.crash import moving_in, moving_kinds
from tests.support.black_box import eventually
from tests.support.migrating_page import commands
from tests.support.rabbitmq_node import is_installed
from tests.support.two_nodes import channel, drained, publish

pytestmark = [
    pytest.mark.needs_server,
    pytest.mark.skipif(
        not is_installed(),
        reason="RabbitMQ is not on this machine: apt-get install rabbitmq-server",
    ),
]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_small_shop_moves_in(tmp_path: Path) -> None:
    moving_in.run_all(moving_in.Run(tmp_path, 10, 12_000), rate=6_000)


@pytest.mark.long
def test_two_hundred_queues_with_a_million_messages(tmp_path: Path) -> None:
    moving_in.run_all(moving_in.Run(tmp_path, 200, 1_000_000))


@pytest.mark.long
def test_all_kinds_and_sizes_move_in_as_they_were(tmp_path: Path) -> None:
    wanted = moving_kinds.cells(0.25, "")
    run = moving_in.Run(tmp_path, len(wanted), sum(cell.count for cell in wanted))
    assert moving_kinds.run_all(run, wanted, seed=4) == 0


@pytest.mark.long
def test_a_ttl_goes_on_when_it_is_known_how_much_was_used_up(tmp_path: Path) -> None:
    """One message moves and one stays: the first expires here, not before the other does there, and not 12 s later."""
    run = moving_in.Run(tmp_path, 1, 0)
    try:
        run.theirs.start()
        run.ours.start()
        began = time.time()
        found = channel(run.theirs)
        for queue in ("moves", "stays"):
            found.queue_declare(queue, durable=True, arguments={"x-message-ttl": 20_000})
            stamp = BasicProperties(
                delivery_mode=2, headers={"timestamp_in_ms": int(time.time() * 1000)}
            )
            found.basic_publish("", queue, b"with a time", stamp)
            found.basic_publish("", queue, b"without", BasicProperties(delivery_mode=2))
        found.connection.close()
        eventually(lambda: time.time() > began + 12)
        argv = moving_in.ctl(run, "--queues", "^moves$", "--ttl-from-timestamp")
        done = subprocess.run(argv, capture_output=True, text=True, timeout=60, check=True)
        assert "done: the TTL of 1 began anew" in done.stdout
        eventually(lambda: ready(run.ours.management_port, "moves") < 2)
        assert ready(run.ours.management_port, "moves") == 1
        assert [body for _, _, body in drained(run.theirs, "stays")] == []
        assert [body for _, _, body in drained(run.ours, "moves")] == [b"without"]
    finally:
        run.theirs.stop()
        run.ours.kill()


def ready(port: int, queue: str) -> int:
    """How many messages a queue here has."""
    found: int = moving_in.http(port, "GET", f"queues/%2F/{queue}?columns=messages")["messages"]
    return found


@pytest.mark.long
def test_the_way_back_of_the_page(tmp_path: Path) -> None:
    """RabbitMQ's own shovel takes a queue back, by the command of docs/migrating.md."""
    run = moving_in.Run(tmp_path, 1, 0)
    run.theirs.plugins.append("rabbitmq_shovel")
    try:
        run.theirs.start()
        run.ours.start()
        bodies = [b"%d" % number for number in range(50)]
        publish(run.ours, "orders", *bodies)
        (line,) = commands("rabbitmqctl")
        argv = shlex.split(line.replace("new-broker", f"127.0.0.1:{run.ours.amqp_port}"))
        run.theirs.ctl(*argv[1:])
        deadline = time.monotonic() + 60
        port = run.theirs.management_port
        assert port is not None
        while time.monotonic() < deadline:
            rows = moving_in.http(port, "GET", "queues?columns=name,messages")
            if {"name": "orders", "messages": 50} in rows:
                break
        assert [body for _, _, body in drained(run.theirs, "orders")] == bodies
        assert drained(run.ours, "orders") == []
    finally:
        run.theirs.stop()
        run.ours.kill()
