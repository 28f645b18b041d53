"""RunningNode: recovery, what reaches sockets and sessions, what its clients see of a stop."""

from __future__ import annotations

import asyncio
import socket
from dataclasses import replace
from pathlib import Path
from typing import Any

import pika
import pytest
from pika import spec

from burrowmq.broker.machine import circles
from burrowmq.broker.node import sweep
from burrowmq.broker.node.running import SESSIONS_AT_ONCE, RunningNode
from burrowmq.broker.node.server_process import ServerProcess
from burrowmq.config.schema import TcpConfig
from burrowmq.storage.engine import Engine
from burrowmq.storage.errors import StoreClosed
from burrowmq.storage.types import Post
from tests.support.bench.node import NodeBench
from tests.support.bench.observer import RecordingObserver
from tests.support.collector import IdleCollector
from tests.support.node_in_process import client, config, in_thread, with_running
from tests.support.wire_client import PROTOCOL_HEADER, method_bytes, publish_bytes

PERSISTENT = pika.BasicProperties(delivery_mode=2)


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


def test_the_sweep_has_circles_looked_for(tmp_path, monkeypatch):
    monkeypatch.setattr(circles, "REST_S", 0.0)
    monkeypatch.setattr(sweep, "SWEEP_S", 0.01)

    async def step(node: RunningNode) -> None:
        collector = node.process.machine.collector
        assert isinstance(collector, IdleCollector)
        assert "collect" not in collector.told
        node.metrics.connections_closed += circles.GONE_MAX
        async with asyncio.timeout(10):
            while "collect" not in collector.told:  # noqa: ASYNC110 - a collector tells nobody
                await asyncio.sleep(0.01)

    with_running(config(tmp_path), step)


def test_a_commit_that_collects_is_no_passs_any_more_once_turns_have_ended(tmp_path):
    async def step(node: RunningNode) -> None:
        assert node.is_quiet
        node.scheduler.stop()
        assert not node.is_quiet
        assert node.scheduler.is_quiet

    with_running(config(tmp_path), step)


def test_the_backlog_pauses_publishers_and_a_queue_that_caught_up_resumes_its_own(tmp_path):
    async def step(node: RunningNode) -> None:
        paused: list[str] = []

        class Session:
            is_publisher = True

            class wire:  # noqa: N801
                pause_reading = paused.append
                resume_reading = paused.remove

        node.sessions[Session()] = None  # type: ignore[index]
        node.engine.on_backlog(True)
        assert (paused, node.alarms.behind) == (["backlog"], {"backlog"})
        node.engine.on_backlog(False)
        assert (paused, node.alarms.behind) == ([], set())
        paused.append("cluster")
        node._on_eased()
        assert not paused
        node.sessions.clear()

    with_running(config(tmp_path), step)


IS_DOWN = (541, "INTERNAL_ERROR - vhost '/' is down")


def test_a_failed_store_ends_every_connection_and_takes_nothing_more(tmp_path: Path) -> None:
    with NodeBench(tmp_path / "data") as bench:
        consumer, publisher, starting = bench.connect(1), bench.connect(1), bench.socket()
        starting.send(PROTOCOL_HEADER)
        starting.read()
        bench.queue()
        publisher.send(publish_bytes(1, "", "q", b"x", properties=PERSISTENT))
        publisher.call(1, spec.Confirm.Select())

        def fail_in_the_middle_of_a_turn() -> None:
            publisher.session.receive(publish_bytes(1, "", "q", b"x", properties=PERSISTENT))
            consumer.session.receive(method_bytes(1, spec.Basic.Consume(queue="q")))
            bench.node.engine.store_failed("disk on fire")

        bench.perform(fail_in_the_middle_of_a_turn)
        (_, consuming), (_, close) = consumer.read()  # and no delivery between them
        assert (consuming.NAME, (close.reply_code, close.reply_text)) == (
            "Basic.ConsumeOk",
            IS_DOWN,
        )
        found = publisher.read()
        assert [each.NAME for _, each in found] == ["Basic.Nack", "Connection.Close"]
        assert (found[1][1].reply_code, found[1][1].reply_text) == IS_DOWN
        assert starting.read() == []  # as in RabbitMQ: who has not logged in sees the socket close
        assert starting.close_after_s is not None
        assert not bench.node.acceptor.servers
        assert (bench.host.state, bench.host.failure) == ("failed", "disk on fire")
        bench.perform(lambda: bench.node.engine.store_failed("once more"))
        bench.clients = [each for each in bench.clients if each.lose()]
        assert not bench.loop.run_until_complete(bench.host.stop_application())
        assert bench.host.failure == "disk on fire"
        assert bench.observer.named("store_failed") == [("disk on fire",)]


def test_a_store_that_fails_during_the_start_ends_it(tmp_path: Path) -> None:
    with NodeBench(tmp_path / "data") as bench:
        bench.loop.run_until_complete(bench.host.stop_application())
        start = bench.host.process.machine.start_store

        def start_badly(engine: Engine, post: Post) -> None:
            start(engine, post)
            post(lambda: engine.store_failed("disk on fire"))

        machine = replace(bench.host.process.machine, start_store=start_badly)
        bench.host.process = replace(bench.host.process, machine=machine)
        with pytest.raises(StoreClosed, match="disk on fire"):
            bench.loop.run_until_complete(bench.host.start_application())
        assert (bench.host.state, bench.host.running) == ("stopped", None)


def test_many_connections_are_told_of_a_failed_store_in_slices(tmp_path: Path) -> None:
    with NodeBench(tmp_path / "data") as bench:
        clients = [bench.connect() for _ in range(SESSIONS_AT_ONCE + 2)]
        told: list[int] = []

        def look() -> None:
            told.append(sum(each.session.connection.state == "closing" for each in clients))
            if told[-1] < len(clients):
                bench.loop.call_soon(look)

        def fail() -> None:
            bench.node.engine.store_failed("disk on fire")
            look()

        bench.perform(fail)
        assert sorted(set(told)) == [0, SESSIONS_AT_ONCE, len(clients)]


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
