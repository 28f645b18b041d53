"""A node whose files may not grow any more keeps its publishers waiting, and confirms everything when they may again."""

from __future__ import annotations

import resource
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pika
import pytest

from tests.support.broker_process import BrokerProcess

COUNT = 300
BODY = b"x" * 10_000


def wait_until(
    is_done: Callable[[], bool], connection: pika.BlockingConnection | None = None
) -> None:
    until = time.monotonic() + 40
    while not is_done():
        assert time.monotonic() < until
        if connection is None:
            time.sleep(0.02)
        else:
            connection.process_data_events(0.05)


@pytest.mark.slow
@pytest.mark.needs_server
def test_publishers_wait_for_room_and_nothing_is_lost(tmp_path: Path) -> None:
    broker = BrokerProcess(tmp_path / "data")
    broker.start()
    try:
        parameters = pika.ConnectionParameters("127.0.0.1", broker.amqp_port)
        watcher = pika.BlockingConnection(parameters)
        watching = watcher.channel()
        watching.queue_declare("q", durable=True)
        pid = broker.running().pid
        # Short writes, then EFBIG: what a full disk does, and this can be undone from outside.
        _, hard = resource.prlimit(pid, resource.RLIMIT_FSIZE)
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (1_000_000, hard))
        confirmed: list[int] = []

        def publish() -> None:
            connection = pika.BlockingConnection(parameters)
            channel = connection.channel()
            channel.confirm_delivery()
            for at in range(COUNT):
                channel.basic_publish(
                    "", "q", b"%06d" % at + BODY, pika.BasicProperties(delivery_mode=2)
                )
                confirmed.append(at)
            connection.close()

        thread = threading.Thread(target=publish)
        thread.start()
        wait_until(lambda: "space_exhausted" in broker.log_of_this_start(), watcher)
        assert len(confirmed) < COUNT
        resource.prlimit(pid, resource.RLIMIT_FSIZE, (hard, hard))
        wait_until(lambda: not thread.is_alive(), watcher)
        thread.join()
        assert confirmed == list(range(COUNT))
        watcher.close()
        broker.kill()
        broker.start()
        reader = pika.BlockingConnection(parameters)
        channel = reader.channel()
        found = [channel.basic_get("q", auto_ack=True)[2][:6] for _ in range(COUNT)]
        assert found == [b"%06d" % at for at in range(COUNT)]
        reader.close()
        assert broker.stop() == 0
    finally:
        broker.close()
