"""Where an embedded broker may run: a process of its own, and the loop of its caller; in both it is the same broker.

Covers: embedded/in_process.py, embedded/pipe.py, embedded/served.py, embedded/commands.py, embedded/http_api.py
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
import glob
import json
import os
import signal
import socket
import subprocess
import sys
import threading
from base64 import b64encode
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import aio_pika
import pika
import pytest
import uvloop

from burrowmq.embedded import Broker, BrokerError, in_process
from tests.support.left_behind import held

# -- a process ----------------------------------------------------------------------------------------------------------


def publish(broker: Broker, *bodies: bytes) -> None:
    """Publish with confirms to the durable queue "q", whose messages live for a minute."""
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        channel.queue_declare("q", durable=True, arguments={"x-message-ttl": 60_000})
        channel.confirm_delivery()
        for body in bodies:
            channel.basic_publish("", "q", body, pika.BasicProperties(delivery_mode=2))


def count(broker: Broker) -> int:
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        return int(connection.channel().queue_declare("q", passive=True).method.message_count)


@pytest.mark.slow
def test_a_broker_in_a_process_does_all_that_one_in_a_thread_does(tmp_path: Path) -> None:
    threads = set(threading.enumerate())
    with Broker(tmp_path / "data", mode="process", clock="manual") as broker:
        assert not set(threading.enumerate()) - threads
        port = broker.port
        publish(broker, b"a", b"b")
        broker.restart()
        assert (broker.port, count(broker)) == (port, 2)
        broker.kill()
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        broker.start()
        assert (broker.port, count(broker)) == (port, 2)
        broker.clock.advance(59.999)
        assert count(broker) == 2
        broker.clock.advance(0.001)
        assert count(broker) == 0
        with pytest.raises(BrokerError, match="is in use by process"):
            Broker(tmp_path / "data", mode="process").start()
    with Broker(mode="process") as broker:
        own = broker.data_dir
        assert os.path.isdir(own)
    assert not os.path.exists(own)


@pytest.mark.slow
def test_a_process_takes_no_module_of_the_working_directory_for_its_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("queue", "signal", "socket", "burrowmq"):
        (tmp_path / f"{name}.py").write_text("raise RuntimeError('the project's own')\n")
    monkeypatch.chdir(tmp_path)
    with Broker(mode="process") as broker:
        publish(broker, b"a")


@pytest.mark.slow
def test_a_process_that_was_killed_by_somebody_is_told_of() -> None:
    with Broker(mode="process", clock="manual") as broker:
        child = broker._run._child  # type: ignore[union-attr]
        child.send_signal(signal.SIGKILL)
        child.wait()
        with pytest.raises(BrokerError, match="the broker's process has ended with status -9"):
            broker.clock.advance(1)
        broker.kill()
        broker.start()
        publish(broker, b"a")


@pytest.mark.slow
@pytest.mark.parametrize("is_asked", [False, True])
def test_a_process_that_hangs_is_killed_when_it_is_to_end(
    is_asked: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A suite waited for it for ever, at the interpreter's end too."""
    monkeypatch.setattr(in_process, "END_S", 0.3)
    broker = Broker(mode="process").start()
    run = broker._run
    assert isinstance(run, in_process.InProcess) and run._child is not None  # noqa: PT018 - one fact
    with ThreadPoolExecutor(1) as aside:
        if is_asked:  # somebody reads the answers for all
            asking = aside.submit(broker.ask, "wait_for", "/", "q", 1, 60.0)
            while not run._is_read:
                run._child.poll()
        os.kill(run._child.pid, signal.SIGSTOP)
        with pytest.raises(BrokerError, match="could not be closed cleanly"):
            broker.stop()
        assert run._child.returncode == -signal.SIGKILL
        if is_asked:
            assert isinstance(asking.exception(), BrokerError)


@pytest.mark.slow
def test_who_waits_for_messages_holds_nobody_up_in_a_process() -> None:
    with Broker(mode="process") as broker, broker.vhost("own") as vhost:
        publish(broker, b"a")
        with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
            channel = connection.channel()
            channel.queue_declare("q")
            with ThreadPoolExecutor(3) as waiting:
                waits = [waiting.submit(vhost.wait_for, "q", count, 30) for count in (1, 2, 3)]
                for count in (1, 2, 3):
                    assert len(vhost.messages("q")) == count - 1
                    channel.basic_publish("", "q", b"x" * 200_000)
                    assert len(waits[count - 1].result(10)) == count


ABANDON = """
import os, sys
from burrowmq.embedded import Broker
broker = Broker(mode="process").start()
print(broker.port, broker.data_dir, flush=True)
os._exit(0)
"""


@pytest.mark.slow
def test_it_ends_with_a_caller_that_is_killed_and_leaves_nothing() -> None:
    """Its standard error is the caller's: who reads that to the end waits for the end of both."""
    done = subprocess.run(
        [sys.executable, "-c", ABANDON], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stderr == ""
    port, directory = done.stdout.split()
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", int(port)))
    assert not os.path.exists(directory)


@pytest.mark.slow
def test_it_leaves_nothing_open_that_a_strict_suite_is_warned_of() -> None:
    """Resource warnings cannot be raised where they come: the interpreter prints them."""
    program = "import burrowmq\nwith burrowmq.Broker(mode='process') as broker: broker.restart()"
    command = [sys.executable, "-W", "error::ResourceWarning", "-c", program]
    done = subprocess.run(
        command,
        env=os.environ | {"PYTHONWARNINGS": "always::ResourceWarning"},
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    assert done.stderr == ""


def test_there_are_two_modes() -> None:
    with pytest.raises(BrokerError, match="mode is 'container': give 'thread' or 'process'"):
        Broker(mode="container")


# -- the caller's loop --------------------------------------------------------------------------------------------------


async def exchange_messages(broker: object) -> list[bytes]:
    connection = await aio_pika.connect(broker.url)  # type: ignore[attr-defined]
    async with connection:
        channel = await connection.channel()
        queue = await channel.declare_queue("q", durable=True)
        for body in (b"a", b"b"):
            message = aio_pika.Message(body, delivery_mode=aio_pika.DeliveryMode.PERSISTENT)
            await channel.default_exchange.publish(message, "q")
        return [(await queue.get(no_ack=True)).body for _ in range(2)]


LOOPS = pytest.mark.parametrize(
    "make_loop", [asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"]
)


@LOOPS
def test_it_serves_on_the_loop_of_the_caller(
    make_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def main() -> None:
        async with Broker.serve() as broker:
            assert await exchange_messages(broker) == [b"a", b"b"]
            port, own = broker.port, broker.data_dir
            await broker.restart()
            await broker.kill()
            assert not broker.is_running
            await broker.start()
            assert broker.port == port
            assert await exchange_messages(broker) == [b"a", b"b"]
        assert own not in glob.glob(f"{os.path.dirname(own)}/*")
        await broker.stop()
        with pytest.raises(BrokerError, match="does not run"):
            await broker.kill()

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(main())  # what is opened once for all is open now
    gc.collect()  # what other tests left behind is none of this one's, and may end meanwhile
    before = held()
    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(main())
    assert not held() - before


def test_it_can_be_awaited_and_has_a_clock() -> None:
    async def main() -> None:
        broker = await Broker.serve(clock="manual", config={"default_user": "u"})
        try:
            before = broker.clock.now()
            await broker.clock.advance(90)
            assert (broker.clock.now() - before).total_seconds() == 90
            assert broker.url.startswith("amqp://u:")
            with pytest.raises(BrokerError, match="give seconds"):
                await broker.clock.advance(-1)
        finally:
            await broker.stop()

    asyncio.run(main())


@LOOPS
@pytest.mark.parametrize("mode", ["thread", pytest.param("process", marks=pytest.mark.slow)])
def test_one_elsewhere_may_be_ended_where_a_loop_runs(
    make_loop: Callable[[], asyncio.AbstractEventLoop], mode: str
) -> None:
    """As in a test that is a coroutine, or in a notebook: whoever calls it has a loop of their own in that thread."""

    async def main() -> None:
        with Broker(mode=mode) as broker:
            own = broker.data_dir
            broker.restart()
            broker.kill()
            broker.start()
            with pytest.raises(BrokerError, match="cannot listen"):
                Broker(port=broker.port, mode=mode).start()
            assert await exchange_messages(broker) == [b"a", b"b"]
        assert not glob.glob(own)

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(main())


def test_without_a_loop_of_asyncio_it_says_so() -> None:
    """As under trio: whatever runs a coroutine there has no loop that a socket could be given to."""
    broker = Broker.serve()
    with pytest.raises(BrokerError, match="needs a running event loop of asyncio's kind"):
        broker.start().send(None)
    assert not broker.is_running


@LOOPS
def test_one_whose_start_was_cancelled_leaves_nothing(
    make_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def main() -> None:
        before = threading.enumerate()
        for turns in range(1, 9):  # as far as it gets in so many turns of the loop
            broker = Broker.serve()
            starting = asyncio.ensure_future(broker.__aenter__())
            for _ in range(turns):
                await asyncio.sleep(0)
            if not starting.cancel():
                await broker.stop()
            with contextlib.suppress(asyncio.CancelledError):
                await starting
            assert broker.data_dir not in glob.glob(f"{os.path.dirname(broker.data_dir)}/*")
            await asyncio.sleep(0)
            assert len(asyncio.all_tasks()) == 1
            with pytest.raises(BrokerError):
                _ = broker.url
        after = [each for each in threading.enumerate() if each not in before]
        # The loop keeps the threads in which stores were closed.
        assert [
            each.name for each in after if not each.name.startswith(("asyncio_", "uvloop_"))
        ] == []

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(main())


# -- the HTTP API -------------------------------------------------------------------------------------------------------


def queues_by_http(url: str) -> list[str]:
    """What the HTTP API says, asked with the user and password of its address."""
    parts = urlsplit(url)
    request = Request(f"http://{parts.hostname}:{parts.port}/api/queues")
    login = b64encode(f"{parts.username}:{parts.password}".encode()).decode()
    request.add_header("Authorization", f"Basic {login}")
    with urlopen(request, timeout=10) as answer:
        return [row["name"] for row in json.load(answer)]


@pytest.mark.slow
@pytest.mark.parametrize("mode", ["thread", "process"])
def test_the_http_api_is_there_on_request(mode: str) -> None:
    with Broker(management=True, mode=mode) as broker:
        publish(broker, b"a")
        url = broker.management_url
        assert queues_by_http(url) == ["q"]
        broker.restart()
        broker.kill()
        with pytest.raises(OSError, match="refused"):
            queues_by_http(url)
        broker.start()
        assert broker.management_url == url
        assert queues_by_http(url) == ["q"]
    with Broker(mode=mode) as broker, pytest.raises(BrokerError, match="with management=True"):
        _ = broker.management_url


def test_the_http_api_is_served_on_the_loop_of_the_caller() -> None:
    async def main() -> None:
        async with Broker.serve(management=True) as broker:
            assert await asyncio.to_thread(queues_by_http, broker.management_url) == []

    asyncio.run(main())


UNASKED = """
import sys
from burrowmq.embedded import Broker
with Broker() as broker:
    if "burrowmq.broker.inspect" in sys.modules:
        sys.exit("what is asked of a broker is loaded by its start")
    with broker.vhost("v"):
        pass
absent = (
    "aiohttp", "structlog", "importlib.metadata", "glob", "pathlib", "random", "shutil", "tempfile", "email", "http", "multiprocessing", "pytest", "unittest",
    "burrowmq.config.environment", "burrowmq.config.sources", "burrowmq.management", "burrowmq.cli", "burrowmq.cluster", "burrowmq.offline", "burrowmq.protocol.client",
    "burrowmq.broker.imports", "burrowmq.broker.shovel.", "burrowmq.broker.link",
    "burrowmq.broker.node.turn_check", "burrowmq.broker.sockets.tls_socket",
    "burrowmq.storage.queue.v1", "burrowmq.storage.queue.walk",
    "burrowmq.embedded.in_process", "burrowmq.embedded.pipe", "burrowmq.embedded.plugin", "burrowmq.embedded.http_api",
)
sys.exit(", ".join(name for name in sys.modules if name.startswith(absent)) or 0)
"""


@pytest.mark.slow
def test_nothing_is_loaded_that_nobody_asked_for() -> None:
    done = subprocess.run(
        [sys.executable, "-c", UNASKED], capture_output=True, text=True, timeout=30, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


LOST = """
import asyncio
from burrowmq.embedded import Broker
async def main():
    broker = await Broker.serve()
    print(broker.data_dir)
asyncio.run(main())
"""


@pytest.mark.slow
def test_one_that_its_loop_leaves_running_ends_with_the_interpreter() -> None:
    done = subprocess.run(
        [sys.executable, "-c", LOST], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stderr == ""
    assert not os.path.exists(done.stdout.strip())
