"""Servers and a front-end that are started from what `burrowctl cluster_config` writes."""

from __future__ import annotations

import socket
from contextlib import ExitStack
from pathlib import Path

import pytest
from pika import BlockingConnection, URLParameters

from bench.nats_servers import NatsServer
from tests.support.broker_process import BrokerProcess
from tests.support.front_ends import declare, numbers, publish, take
from tests.support.served import ctl

NAMES = ("n1", "n2", "n3")


def six_ports() -> int:
    """The first of six neighbours at which nobody listens."""
    for first in range(21_000, 32_000, 6):
        with ExitStack() as stack:
            try:
                for port in range(first, first + 6):
                    stack.enter_context(socket.socket()).bind(("127.0.0.1", port))
            except OSError:
                continue
            return first
    raise AssertionError("no six ports are free")


@pytest.mark.timeout(180)
def test_servers_and_front_ends_work_with_these_files_and_nobody_without_their_password_does(
    nats_server: Path, tmp_path: Path
) -> None:
    port = six_ports()
    files = tmp_path / "files"
    options = ["--client-port", str(port), "--route-port", str(port + 3), "--store", f"{tmp_path}"]
    assert ctl("cluster_config", *options, str(files), *["127.0.0.1"] * len(NAMES)).code == 0
    lines = (files / "burrowmq-cluster.conf").read_text()
    guessing = tmp_path / "guessing.conf"
    guessing.write_text(lines.replace("cluster.password = ", "cluster.password = x"))
    with ExitStack() as stack:
        for number, name in enumerate(NAMES):
            server = NatsServer(nats_server, files, name, port + number)
            stack.callback(server.kill)
            server.start()
        front_end, stranger = (
            BrokerProcess(tmp_path / name, environment={"RABBITMQ_CONFIG_FILE": str(path)})
            for name, path in (("one", files / "burrowmq-cluster.conf"), ("two", guessing))
        )
        for process in (front_end, stranger):
            stack.callback(process.kill)
            process.start()
        connection = stack.enter_context(BlockingConnection(URLParameters(front_end.url)))
        channel = connection.channel()
        declare(channel, "q")
        channel = connection.channel()
        channel.confirm_delivery()
        publish(channel, "q", 10)
        assert numbers(take(channel, "q", 10)) == list(range(10))
        said = front_end.ctl("cluster_status")
        for number, name in enumerate(NAMES):
            assert f"Server: {name} (127.0.0.1:{port + number}), up" in said
        assert "Authorization Violation" in stranger.ctl("cluster_status")
