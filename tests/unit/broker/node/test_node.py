"""Node: the application started, stopped and started again in one process, and what a failed start leaves behind."""

from __future__ import annotations

import asyncio
import errno
import gc
import socket
import weakref
from dataclasses import replace
from pathlib import Path
from typing import Any

import pika
import pytest

from burrowmq.broker.node.data_directory import DataDirectoryLocked
from burrowmq.broker.node.node import Node, NodeEnded, reason_of
from burrowmq.broker.sockets.listener import CannotListen
from burrowmq.config.units import Endpoint
from burrowmq.storage.errors import StorageError
from tests.support.bench.observer import RecordingObserver
from tests.support.node_in_process import client, config, in_thread, with_node
from tests.support.ports import free_port


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


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (
            errno.EADDRINUSE,
            "stop what uses it, or name another with listeners.tcp or listeners.ssl",
        ),
        (errno.EACCES, "a port below 1024 takes a right that this user does not have: CAP_NET"),
        (errno.EADDRNOTAVAIL, "this machine has no such address; name another with listeners.tcp"),
    ],
)
def test_the_words_for_a_port_that_cannot_be_had_say_what_to_do(number: int, words: str) -> None:
    error = CannotListen("cannot listen on x:1: why")
    error.__cause__ = OSError(number, "why")
    text = reason_of(error)
    assert text.startswith(f"cannot listen on x:1: why; {words}")
    assert text.endswith("name another with listeners.tcp or listeners.ssl")


def test_a_name_without_an_address_is_no_port_in_use() -> None:
    error = CannotListen("cannot listen on x:1: why")
    error.__cause__ = socket.gaierror(socket.EAI_NONAME, "why")
    assert reason_of(error).startswith(
        "cannot listen on x:1: why; this machine finds no address of that name; name another with"
    )


# -- stopped and started again in one process ----------------------------------------------------------------------


def _fill(found: Any) -> None:
    with client(found) as channel:
        channel.queue_declare("durable", durable=True, arguments={"x-expires": 10**9})
        channel.queue_declare("transient")
        channel.confirm_delivery()
        for mode in (2, 1):
            channel.basic_publish(
                "", "durable", b"%d" % mode, pika.BasicProperties(delivery_mode=mode)
            )


def _read(found: Any) -> bytes | None:
    with client(found) as channel:
        body: bytes | None = channel.basic_get("durable", auto_ack=True)[2]
        return body


@pytest.mark.slow
def test_what_is_durable_is_there_after_a_stop_and_a_start(tmp_path):
    found = config(tmp_path)

    async def step(node: Node) -> None:
        await in_thread(lambda: _fill(found))
        assert node.running is not None
        assert node.running.metrics.messages_received == 2
        assert await node.stop_application()
        assert (node.state, node.running) == ("stopped", None)
        with pytest.raises(OSError, match="refused"):
            socket.create_connection((found.listeners[0].host, found.listeners[0].port), 1)
        await node.start_application()
        assert node.state == "running"
        assert node.running.was_clean
        assert node.running.metrics.messages_received == 0, "counters begin anew"
        assert set(node.running.vhosts["/"].queues) == {"durable"}
        assert await in_thread(lambda: _read(found)) == b"2"
        assert await in_thread(lambda: _read(found)) is None

    observer = with_node(found, step)
    assert len(observer.named("application_stopped")) == 1
    assert len(observer.named("node_started")) == 1, "the second start says when it is ready"
    assert len(observer.named("node_stopped")) == 1


def test_both_are_harmless_when_there_is_nothing_to_do(tmp_path):
    async def step(node: Node) -> None:
        before = node.running
        await node.start_application()
        assert node.running is before
        assert await node.stop_application()
        assert await node.stop_application()

    observer = with_node(config(tmp_path), step)
    assert len(observer.named("application_stopped")) == 1
    assert not observer.named("node_started")


@pytest.mark.slow
def test_nothing_of_a_stopped_application_is_left(tmp_path):
    found = config(tmp_path)

    async def step(node: Node) -> None:
        loop: Any = asyncio.get_running_loop()
        stopped = []
        for _ in range(3):
            await in_thread(lambda: _fill(found))
            stopped.append(weakref.ref(node.running))
            await node.stop_application()
            assert not [timer for timer in loop._scheduled if not timer.cancelled()]
            await node.start_application()
            # The thread that closed the store may have held on to it a moment longer than the stop took.
            gc.collect()
            assert [each() for each in stopped] == [None] * len(stopped)

    with_node(found, step)


@pytest.mark.slow
def test_another_node_may_have_the_directory_while_the_application_is_stopped(tmp_path):
    found = config(tmp_path)
    observer: Any = RecordingObserver()

    async def step(node: Node) -> None:
        other = Node(replace(found, listeners=(Endpoint("127.0.0.1", free_port()),)), observer)
        await node.stop_application()
        await other.start()
        with pytest.raises(DataDirectoryLocked):
            await node.start_application()
        assert node.state == "stopped"
        await other.stop()
        await node.start_application()
        assert node.state == "running"

    with_node(found, step)


@pytest.mark.slow
def test_changes_at_the_same_time_come_one_after_the_other(tmp_path):
    async def step(node: Node) -> None:
        changes: list[Any] = []
        for _ in range(3):
            changes += [node.stop_application(), node.start_application()]
        await asyncio.gather(*changes)
        assert node.state == "running"

    observer = with_node(config(tmp_path), step)
    assert len(observer.named("application_stopped")) == 3


@pytest.mark.slow
def test_a_change_goes_on_when_nobody_waits_for_it_any_more(tmp_path):
    async def step(node: Node) -> None:
        waiting = asyncio.ensure_future(node.stop_application())
        await asyncio.sleep(0)
        waiting.cancel()
        await node.start_application()  # in its turn: behind the stop
        assert node.state == "running"

    observer = with_node(config(tmp_path), step)
    assert len(observer.named("application_stopped")) == 1


def test_nothing_starts_in_a_process_that_ends(tmp_path):
    async def step(node: Node) -> None:
        await node.stop_application()
        ending = asyncio.ensure_future(node.stop())
        await asyncio.sleep(0)
        with pytest.raises(NodeEnded):
            await node.start_application()
        assert await ending

    observer = with_node(config(tmp_path), step)
    assert [name for name, _ in observer.events][-1] == "node_stopped"


def test_nothing_starts_once_the_end_was_asked_for(tmp_path):
    """As after the store has failed: the application that is there still is of no use."""

    async def step(node: Node) -> None:
        node.request_stop()
        with pytest.raises(NodeEnded):
            await node.start_application()
        await node.stop_application()
        with pytest.raises(NodeEnded):
            await node.start_application()

    with_node(config(tmp_path), step)


@pytest.mark.slow
def test_a_store_that_was_not_closed_cleanly_is_told_and_the_exit_status_says_so(tmp_path):
    async def serve() -> bool:
        node = Node(config(tmp_path), RecordingObserver())  # type: ignore[arg-type]
        await node.start()
        assert node.running is not None
        close = node.running.engine.close

        def close_badly() -> None:
            close()
            raise StorageError("the disk is gone")

        node.running.engine.close = close_badly  # type: ignore[method-assign]
        assert not await node.stop_application()
        return await node.stop()

    assert not asyncio.run(serve())
    with_node(config(tmp_path), _nothing)


@pytest.mark.slow
def test_a_damaged_store_leaves_the_node_stopped(tmp_path):
    found = config(tmp_path)

    async def step(node: Node) -> None:
        await node.stop_application()
        terms = Path(found.data_dir) / "STORE.json"
        kept = terms.read_bytes()
        terms.write_bytes(b"not a store's terms")
        with pytest.raises(StorageError):
            await node.start_application()
        assert (node.state, node.running) == ("stopped", None)
        terms.write_bytes(kept)
        await node.start_application()
        assert node.state == "running"

    with_node(found, step)
