"""A RabbitMQ that moves in while both nodes are killed: a small one, and one of a million messages."""

from __future__ import annotations

import shlex
import time
from pathlib import Path

import pytest

from tests.crash import moving_in
from tests.integration.test_import_from import drained, publish
from tests.integration.test_migrating_page import commands
from tests.support.rabbitmq_node import is_installed

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
