"""Node: start and stop of the process's application, and what a failed start leaves behind."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from typing import Any

import pytest

from burrowmq.broker import __main__ as main
from burrowmq.broker.node.data_directory import DataDirectoryLocked
from burrowmq.broker.node.node import Node
from burrowmq.broker.sockets.listener import CannotListen
from burrowmq.config.load import Loaded
from burrowmq.config.schema import ManagementConfig, PrometheusConfig
from burrowmq.config.units import Endpoint
from tests.support.bench.observer import RecordingObserver
from tests.support.node_in_process import config, free_port, with_node


def test_a_second_node_is_refused(tmp_path):
    found = config(tmp_path)

    async def step(_: Node) -> None:
        other = Node(replace(found, listeners=(Endpoint("127.0.0.1", free_port()),)), observer)
        with pytest.raises(DataDirectoryLocked):
            await other.start()

    observer: Any = RecordingObserver()
    with_node(found, step)


def test_a_port_that_is_taken_ends_the_start_and_leaves_the_directory_free(tmp_path):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with pytest.raises(CannotListen, match=str(port)):
            with_node(config(tmp_path, port=port), _nothing)
    with_node(config(tmp_path), _nothing)


def test_a_port_that_is_taken_is_said_before_anything_is_recovered(tmp_path):
    observer = RecordingObserver()

    async def start(port: int) -> None:
        await Node(config(tmp_path, port=port), observer).start()  # type: ignore[arg-type]

    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(CannotListen):
        asyncio.run(start(taken.getsockname()[1]))
    assert not observer.named("recovery_finished")


async def _nothing(_: Node) -> None:
    return


def test_a_stop_request_wakes_who_waits_for_it(tmp_path):
    async def step(node: Node) -> None:
        node.request_stop()
        await asyncio.wait_for(node.wait_for_stop_request(), 5)

    observer = with_node(config(tmp_path), step)
    assert [name for name, _ in observer.events][-1] == "node_stopped"


def test_management_that_cannot_listen_ends_the_start_cleanly(tmp_path, capsys):
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        found = config(
            tmp_path,
            management=ManagementConfig(listeners=(Endpoint("127.0.0.1", port),)),
            prometheus=PrometheusConfig(listeners=(Endpoint("127.0.0.1", free_port()),)),
        )
        assert asyncio.run(main.run(Loaded(config=found, warnings=()))) == 1
    error = capsys.readouterr().err
    assert (
        f"burrowmq-server: cannot start: cannot listen on 127.0.0.1:{port}: Address already in use;"
        " stop what uses it, or name another with management.tcp.port or prometheus.tcp.port\n"
    ) in error
    with_node(config(tmp_path), _nothing)


def test_a_start_that_failed_can_be_tried_again(tmp_path):
    async def serve() -> None:
        with socket.create_server(("127.0.0.1", 0)) as taken:
            node = Node(config(tmp_path, port=taken.getsockname()[1]), RecordingObserver())  # type: ignore[arg-type]
            with pytest.raises(CannotListen):
                await node.start()
            assert node.running is None
        await node.start()
        assert node.running is not None
        assert await node.stop()
        assert node.running is None

    asyncio.run(serve())
