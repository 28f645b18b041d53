"""stop_app and start_app of a real server process: what its clients see, what is kept, and that nothing adds up."""

from __future__ import annotations

import contextlib
import http.client
import os
import signal
import socket
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pika
import pytest
from pika.adapters.blocking_connection import BlockingConnection

from burrowmq.storage.directory.terms import STORE_FILE
from tests.support.broker_process import BURROWCTL, BrokerProcess
from tests.support.served import request

GUEST = {"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}
NEEDS_APP = "requires the 'rabbit' app to be running on the target node"
CYCLES = 6
STOPPED_AFTER = 20  # confirms


@pytest.fixture
def node(own_broker: Callable[..., BrokerProcess]) -> Iterator[BrokerProcess]:
    """A node of its own, whose log has no traceback at the end."""
    found = own_broker()
    yield found
    if found.is_alive:
        assert found.stop() == 0
    assert "Traceback" not in found.log_of_this_start()


@contextlib.contextmanager
def connected(node: BrokerProcess) -> Iterator[BlockingConnection]:
    connection = BlockingConnection(pika.URLParameters(node.url))
    try:
        yield connection
    finally:
        if connection.is_open:
            connection.close()


def refused(node: BrokerProcess, *words: str) -> tuple[int, str]:
    """Exit status and standard error of a command that fails."""
    done = subprocess.run(
        [str(BURROWCTL), "--data-dir", str(node.data_dir), *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode
    return done.returncode, done.stderr


def fill(node: BrokerProcess, *bodies: bytes) -> None:
    with connected(node) as connection:
        channel = connection.channel()
        channel.queue_declare("durable", durable=True)
        channel.queue_declare("transient")
        channel.confirm_delivery()
        for body in bodies:
            mode = 1 if body.startswith(b"transient") else 2
            for queue in ("durable", "transient"):
                channel.basic_publish("", queue, body, pika.BasicProperties(delivery_mode=mode))


def left(node: BrokerProcess) -> list[bytes]:
    found = []
    with connected(node) as connection:
        channel = connection.channel()
        while (body := channel.basic_get("durable", auto_ack=True)[2]) is not None:
            found.append(body)
    return found


class ControlSocket(http.client.HTTPConnection):
    """The node's control socket, without a process for each request."""

    def __init__(self, path: Path) -> None:
        super().__init__("localhost", timeout=60)
        self._path = path

    def connect(self) -> None:
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.settimeout(60)
        self.sock.connect(str(self._path))

    def post(self, path: str) -> None:
        self.request("POST", path)
        answer = self.getresponse()
        answer.read()
        assert answer.status == 204
        self.close()


def wait_for_log(node: BrokerProcess, text: str) -> None:
    """Return when the node has logged this."""
    deadline = time.monotonic() + 30
    while text not in node.log_of_this_start():
        assert time.monotonic() < deadline, f"no {text} in the log"
        time.sleep(0.01)


def test_a_cycle_keeps_what_is_durable_and_tells_the_clients(node: BrokerProcess) -> None:
    fill(node, b"1", b"transient", b"2")
    with connected(node) as connection:
        told: list[BaseException] = []

        def wait() -> None:
            try:
                connection.process_data_events(time_limit=30)
            except pika.exceptions.ConnectionClosedByBroker as reason:
                told.append(reason)

        waiting = threading.Thread(target=wait)
        waiting.start()
        node.ctl("stop_app")
        waiting.join(30)
    (reason,) = told
    assert str(reason) == str(
        pika.exceptions.ConnectionClosedByBroker(
            320, "CONNECTION_FORCED - broker forced connection closure with reason 'shutdown'"
        )
    )
    assert node.is_alive
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(("127.0.0.1", node.amqp_port), 5)
    node.ctl("start_app")
    assert left(node) == [b"1", b"2"]
    with connected(node) as connection, pytest.raises(pika.exceptions.ChannelClosedByBroker):
        connection.channel().queue_declare("transient", passive=True)


def test_what_a_stopped_node_answers(node: BrokerProcess) -> None:
    node.ctl("stop_app")
    node.ctl("stop_app")
    assert "Ping succeeded" in node.ctl("ping")
    assert "is not running" in node.ctl("is_running")
    code, text = refused(node, "list_queues")
    assert (code, NEEDS_APP in text) == (64, True)
    assert refused(node, "check_running")[0] == 69
    assert refused(node, "await_startup") == (69, "Error:\nrabbit_is_not_running\n")
    answer = request(node.management_port, "GET", "/api/overview", None, GUEST)
    assert (answer.status, answer.body["error"]) == (503, "not_running")
    assert request(node.prometheus_port, "GET", "/metrics").status == 503
    node.ctl("start_app")
    node.ctl("start_app")
    node.ctl("await_startup")
    assert request(node.management_port, "GET", "/api/overview", None, GUEST).status == 200
    assert request(node.prometheus_port, "GET", "/metrics").status == 200


def test_a_start_that_fails_says_why_and_can_be_tried_again(node: BrokerProcess) -> None:
    fill(node, b"1")
    node.ctl("stop_app")
    with socket.create_server(("127.0.0.1", node.amqp_port)):
        code, text = refused(node, "start_app")
        assert (code, f"cannot listen on 127.0.0.1:{node.amqp_port}" in text) == (69, True)
    terms = node.data_dir / STORE_FILE
    kept = terms.read_bytes()
    terms.write_bytes(b"no terms")
    code, text = refused(node, "start_app")
    assert (code, str(node.data_dir) in text) == (69, True)
    terms.write_bytes(kept)
    assert "is not running" in node.ctl("is_running")
    node.ctl("start_app")
    assert left(node) == [b"1"]


def test_confirms_that_were_given_hold_over_a_stop(node: BrokerProcess) -> None:
    with connected(node) as connection:
        channel = connection.channel()
        channel.queue_declare("durable", durable=True)
        channel.confirm_delivery()
        confirmed = []
        stopping = threading.Thread(target=node.ctl, args=["stop_app"])
        with contextlib.suppress(pika.exceptions.AMQPError):
            while True:
                body = b"%06d" % len(confirmed)
                channel.basic_publish("", "durable", body, pika.BasicProperties(delivery_mode=2))
                confirmed.append(body)
                if len(confirmed) == STOPPED_AFTER:
                    stopping.start()
        stopping.join()
    node.ctl("start_app")
    found = left(node)
    assert len(confirmed) >= STOPPED_AFTER
    assert found[: len(confirmed)] == confirmed
    assert len(found) <= len(confirmed) + 1, "the one that waited was kept or was not"


def test_sigterm_while_it_stops_is_a_clean_stop(node: BrokerProcess) -> None:
    fill(node, b"1")
    control = ControlSocket(node.data_dir / "control.sock")
    # A client that does not answer its close is waited for: three seconds to be in between.
    with connected(node) as connection:
        control.request("POST", "/api/burrowmq/stop-app")
        wait_for_log(node, "reply_code=320")
        node.running().send_signal(signal.SIGTERM)
        assert node.running().wait(60) == 0
        control.close()
        with contextlib.suppress(pika.exceptions.AMQPError):
            connection.close()
    log = node.log_of_this_start()
    assert log.index("application_stopped") < log.index("node_stopped")
    assert (node.data_dir / "CLEAN").exists()
    node.start()
    assert left(node) == [b"1"]


def test_sigterm_while_it_starts_is_a_clean_stop(node: BrokerProcess) -> None:
    fill(node, b"1")
    node.ctl("stop_app")
    control = ControlSocket(node.data_dir / "control.sock")
    control.request("POST", "/api/burrowmq/start-app")
    node.running().send_signal(signal.SIGTERM)
    assert node.running().wait(60) == 0
    control.close()
    assert (node.data_dir / "CLEAN").exists()
    node.start()
    assert left(node) == [b"1"]


def test_a_stopped_node_ends_on_sigterm(node: BrokerProcess) -> None:
    node.ctl("stop_app")
    assert node.stop() == 0
    assert not (node.data_dir / "control.sock").exists()


def test_two_at_a_time_do_not_meet(node: BrokerProcess) -> None:
    fill(node, b"1")
    commands = [
        subprocess.Popen([str(BURROWCTL), "--data-dir", str(node.data_dir), command])
        for command in ("stop_app", "start_app", "stop_app", "start_app")
    ]
    assert [each.wait(60) for each in commands] == [0, 0, 0, 0]
    node.ctl("start_app")
    assert left(node) == [b"1"]


def held(node: BrokerProcess) -> tuple[int, int]:
    """File descriptors and threads of the process."""
    place = Path(f"/proc/{node.running().pid}")
    return len(os.listdir(place / "fd")), len(os.listdir(place / "task"))


def test_nothing_adds_up_over_cycles(node: BrokerProcess) -> None:
    control = ControlSocket(node.data_dir / "control.sock")
    figures, sizes = [], []
    for number in range(CYCLES):
        fill(node, b"%d" % number * 2000)
        control.post("/api/burrowmq/stop-app")
        figures.append(held(node))
        sizes.append(node.rss_bytes())
        control.post("/api/burrowmq/start-app")
    descriptors, threads = zip(*figures, strict=True)
    assert max(descriptors[1:]) - min(descriptors[1:]) <= 2, descriptors
    assert len(set(threads[1:])) <= 2, threads
    assert sizes[-1] - sizes[1] < 1 << 20, sizes
    assert len(left(node)) == CYCLES
