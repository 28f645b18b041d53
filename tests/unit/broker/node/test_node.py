"""Node: composition, start and stop in order, recovery, what a failed start leaves behind."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pika
import pytest

from burrowmq.broker import __main__ as main
from burrowmq.broker.node.data_directory import DataDirectoryLocked
from burrowmq.broker.node.node import Node
from burrowmq.broker.sockets.listener import CannotListen
from burrowmq.config.load import Loaded
from burrowmq.config.schema import ManagementConfig, NodeConfig, PrometheusConfig, TcpConfig
from burrowmq.config.units import Endpoint
from tests.support.bench.observer import RecordingObserver


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def config(tmp_path: Path, **options: Any) -> NodeConfig:
    endpoint = Endpoint("127.0.0.1", options.pop("port", None) or free_port())
    return NodeConfig(
        node_name="rabbit@test", data_dir=str(tmp_path / "data"), listeners=(endpoint,), **options
    )


def with_node(found: NodeConfig, step: Callable[[Node], Awaitable[None]]) -> RecordingObserver:
    observer = RecordingObserver()

    async def serve() -> None:
        node = Node(found, observer)  # type: ignore[arg-type]
        try:
            await node.start()
        except BaseException:
            await node.abandon()
            raise
        try:
            await step(node)
        finally:
            await node.stop()
            await node.stop()

    asyncio.run(serve())
    return observer


@contextlib.contextmanager
def client(found: NodeConfig):
    parameters = pika.ConnectionParameters(
        found.listeners[0].host, found.listeners[0].port, blocked_connection_timeout=10
    )
    connection = pika.BlockingConnection(parameters)
    try:
        yield connection.channel()
    finally:
        if connection.is_open:
            connection.close()


async def in_thread(step: Callable[[], Any]) -> Any:
    return await asyncio.get_running_loop().run_in_executor(None, step)


def test_what_was_durable_is_there_after_a_restart(tmp_path):
    found = config(tmp_path)

    def publish() -> None:
        with client(found) as channel:
            channel.queue_declare("durable", durable=True)
            channel.queue_declare("transient")
            channel.confirm_delivery()
            for body in (b"1", b"2"):
                channel.basic_publish("", "durable", body, pika.BasicProperties(delivery_mode=2))
            channel.basic_publish("", "durable", b"gone")
            assert channel.basic_get("durable")[2] == b"1"

    def read() -> list[tuple[bytes, bool]]:
        with client(found) as channel:
            got = [channel.basic_get("durable", auto_ack=True) for _ in range(3)]
        return [(body, method.redelivered) for method, _, body in got if method is not None]

    async def first(node: Node) -> None:
        await in_thread(publish)

    async def second(node: Node) -> None:
        assert set(node.vhosts["/"].queues) == {"durable"}
        assert node.report.clean
        assert await in_thread(read) == [(b"1", True), (b"2", False)]

    with_node(found, first)
    with_node(found, second)


def test_a_second_node_is_refused(tmp_path):
    found = config(tmp_path)

    async def step(_: Node) -> None:
        other = Node(replace(found, listeners=(Endpoint("127.0.0.1", free_port()),)), observer)
        with pytest.raises(DataDirectoryLocked):
            await other.start()
        await other.abandon()

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
        node = Node(config(tmp_path, port=port), observer)  # type: ignore[arg-type]
        try:
            await node.start()
        finally:
            await node.abandon()

    with socket.create_server(("127.0.0.1", 0)) as taken, pytest.raises(CannotListen):
        asyncio.run(start(taken.getsockname()[1]))
    assert not observer.named("recovery_finished")


async def _nothing(_: Node) -> None:
    return


def test_stopping_closes_connections_with_320(tmp_path):
    found = config(tmp_path)
    closed: list[Any] = []

    def wait(connection: pika.BlockingConnection) -> None:
        try:
            connection.process_data_events(time_limit=10)
        except pika.exceptions.ConnectionClosedByBroker as reason:
            closed.append((reason.reply_code, reason.reply_text))

    async def serve() -> None:
        node = Node(found, RecordingObserver())  # type: ignore[arg-type]
        await node.start()
        parameters = pika.ConnectionParameters("127.0.0.1", found.listeners[0].port)
        connection = await in_thread(lambda: pika.BlockingConnection(parameters))
        waiting = asyncio.ensure_future(in_thread(lambda: wait(connection)))
        await asyncio.sleep(0)
        await node.stop()
        await waiting

    asyncio.run(serve())
    assert closed == [
        (320, "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'")
    ]


def test_a_stop_request_wakes_who_waits_for_it(tmp_path):
    async def step(node: Node) -> None:
        node.request_stop()
        await asyncio.wait_for(node.wait_for_stop_request(), 5)

    observer = with_node(config(tmp_path), step)
    assert [name for name, _ in observer.events][-1] == "node_stopped"


def test_the_backlog_pauses_publishers_only(tmp_path):
    async def step(node: Node) -> None:
        paused: list[str] = []

        class Session:
            is_publisher = True

            class wire:  # noqa: N801
                pause_reading = paused.append
                resume_reading = paused.remove

        node.sessions.add(Session())  # type: ignore[arg-type]
        node.engine.on_backlog(True)
        assert (paused, node.alarms.is_lagging) == (["backlog"], True)
        node.engine.on_backlog(False)
        assert (paused, node.alarms.is_lagging) == ([], False)
        node.sessions.clear()

    with_node(config(tmp_path), step)


def test_a_failed_store_keeps_publishers_blocked(tmp_path):
    async def step(node: Node) -> None:
        node.engine.on_failed("disk on fire")
        assert node.alarms.active == {"store"}

    observer = with_node(config(tmp_path), step)
    assert observer.named("store_failed") == [("disk on fire",)]


def test_socket_options_reach_accepted_sockets(tmp_path):
    found = config(tmp_path, tcp=TcpConfig(nodelay=False, sndbuf_bytes=65536, keepalive=True))
    seen: list[int] = []

    def connect() -> None:
        with client(found):
            pass

    async def step(node: Node) -> None:
        assert node.acceptor is not None
        plain = node.acceptor._make_session

        def look(transport: asyncio.Transport) -> Any:
            sock = transport.get_extra_info("socket")
            for level, option in (
                (socket.IPPROTO_TCP, socket.TCP_NODELAY),
                (socket.SOL_SOCKET, socket.SO_SNDBUF),
                (socket.SOL_SOCKET, socket.SO_KEEPALIVE),
            ):
                seen.append(sock.getsockopt(level, option))
            return plain(transport)

        node.acceptor._make_session = look  # type: ignore[method-assign]
        await in_thread(connect)

    with_node(found, step)
    assert seen == [0, 2 * 65536, 1]


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


def test_more_sockets_than_the_files_leave_room_for_are_dropped(tmp_path):
    found = config(tmp_path)

    def second_is_refused() -> bool:
        with client(found):
            try:
                with client(found):
                    return False
            except pika.exceptions.AMQPConnectionError:
                return True

    async def step(node: Node) -> None:
        assert node.acceptor is not None
        node.acceptor._options = replace(node.acceptor._options, sockets_max=1)
        assert await in_thread(second_is_refused)

    observer = with_node(found, step)
    assert any(
        name == "connection_failed" and "raise the open file limit" in str(details)
        for name, details in observer.events
    )
