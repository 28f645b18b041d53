"""RunningNode: recovery, what reaches sockets and sessions, what its clients see of a stop."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pika

from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.node.server_process import ServerProcess
from burrowmq.config.schema import TcpConfig
from tests.support.bench.observer import RecordingObserver
from tests.support.node_in_process import client, config, in_thread, with_running


def test_stopping_closes_connections_with_320(tmp_path):
    found = config(tmp_path)
    closed: list[Any] = []

    def wait(connection: pika.BlockingConnection) -> None:
        try:
            connection.process_data_events(time_limit=10)
        except pika.exceptions.ConnectionClosedByBroker as reason:
            closed.append((reason.reply_code, reason.reply_text))

    Path(found.data_dir).mkdir()

    async def serve() -> None:
        process = ServerProcess(config=found, observer=RecordingObserver())  # type: ignore[arg-type]
        node = RunningNode(process, asyncio.get_running_loop())
        await node.start()
        parameters = pika.ConnectionParameters("127.0.0.1", found.listeners[0].port)
        connection = await in_thread(lambda: pika.BlockingConnection(parameters))
        waiting = asyncio.ensure_future(in_thread(lambda: wait(connection)))
        await asyncio.sleep(0)
        assert await node.stop()
        await waiting

    asyncio.run(serve())
    assert closed == [
        (320, "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'")
    ]


def test_the_backlog_pauses_publishers_only(tmp_path):
    async def step(node: RunningNode) -> None:
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

    with_running(config(tmp_path), step)


def test_a_failed_store_keeps_publishers_blocked(tmp_path):
    async def step(node: RunningNode) -> None:
        node.engine.on_failed("disk on fire")
        assert node.alarms.active == {"store"}

    observer = with_running(config(tmp_path), step)
    assert observer.named("store_failed") == [("disk on fire",)]


def test_socket_options_reach_accepted_sockets(tmp_path):
    found = config(tmp_path, tcp=TcpConfig(nodelay=False, sndbuf_bytes=65536, keepalive=True))
    seen: list[int] = []

    def connect() -> None:
        with client(found):
            pass

    async def step(node: RunningNode) -> None:
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

    with_running(found, step)
    assert seen == [0, 2 * 65536, 1]


def test_more_sockets_than_the_files_leave_room_for_are_dropped(tmp_path):
    found = config(tmp_path)

    def second_is_refused() -> bool:
        with client(found):
            try:
                with client(found):
                    return False
            except pika.exceptions.AMQPConnectionError:
                return True

    async def step(node: RunningNode) -> None:
        node.acceptor._options = replace(node.acceptor._options, sockets_max=1)
        assert await in_thread(second_is_refused)

    observer = with_running(found, step)
    assert any(
        name == "connection_failed" and "raise the open file limit" in str(details)
        for name, details in observer.events
    )


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

    async def first(node: RunningNode) -> None:
        await in_thread(publish)

    async def second(node: RunningNode) -> None:
        assert set(node.vhosts["/"].queues) == {"durable"}
        assert node.was_clean
        assert await in_thread(read) == [(b"1", True), (b"2", False)]

    with_running(found, first)
    with_running(found, second)
