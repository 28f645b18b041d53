"""A disk that is really full: a node on a small file system of its own, filled by somebody else, with pika as its client.

Its log lies on the same disk. Mounting needs root; the simulated disk has the cases one by one (tests/simulation).
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pika
import pytest

from tests.crash.faulty_disk import get, wait_for
from tests.support import pika_sockets
from tests.support.broker_process import ROOT, BrokerProcess, external_target

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(external_target() is not None, reason="fills a disk of its own"),
]
SIZE_MB = 48
WITH_BALLAST_MB = 160
TOLD_WITHIN_S = 1.0
PERSISTENT = pika.BasicProperties(delivery_mode=2)


def _mount(kind: str, directory: Path, size_mb: int) -> str:
    """Mount a small file system; gives why not, or nothing."""
    place = directory / "disk"
    place.mkdir()
    if kind == "tmpfs":
        command = ["mount", "-t", "tmpfs", "-o", f"size={size_mb}m", "tmpfs", str(place)]
    else:
        image = directory / "image"
        image.touch()
        os.truncate(image, size_mb << 20)
        if shutil.which("mkfs.ext4") is None:
            return "no mkfs.ext4"
        subprocess.run(["mkfs.ext4", "-q", "-m0", str(image)], check=True)
        command = ["mount", "-o", "loop", str(image), str(place)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.stderr.strip() if done.returncode else ""


@pytest.fixture
def size_mb() -> int:
    """Too small for a ballast."""
    return SIZE_MB


@pytest.fixture(params=["tmpfs", "ext4"])
def disk(request: pytest.FixtureRequest, tmp_path: Path, size_mb: int) -> Iterator[Path]:
    """Give a small disk."""
    if os.geteuid():
        pytest.skip("only root may mount a small file system")
    if reason := _mount(request.param, tmp_path, size_mb):
        pytest.skip(f"{request.param} cannot be mounted: {reason}")
    yield tmp_path / "disk"
    subprocess.run(["umount", "-l", str(tmp_path / "disk")], check=True)


def fill(disk: Path) -> None:
    """Take all that is free, to the last block."""
    with (disk / "filler").open("ab", buffering=0) as file:
        for size in (1 << 20, 4096, 512):
            with contextlib.suppress(OSError):
                while True:
                    file.write(bytes(size))
            with contextlib.suppress(OSError):
                os.fsync(file.fileno())


class Client(threading.Thread):
    """A pika connection that does one thing after the other, and notes when it is told that it is blocked."""

    def __init__(self, node: BrokerProcess, work: Callable[[Any, Client], None]) -> None:
        super().__init__(daemon=True)
        self.told: list[tuple[str, float]] = []
        self.done = 0
        self.errors: list[Exception] = []
        self._work = work
        parameters = pika.URLParameters(node.url + "?heartbeat=0")
        self.connection = pika.BlockingConnection(parameters)
        self._socket = pika_sockets.socket_of(self.connection)
        # Of the connection inside: the one outside calls back only between two of its calls, and one of them waits.
        inside = self.connection._impl
        inside.add_on_connection_blocked_callback(lambda _, frame: self._note(frame))
        inside.add_on_connection_unblocked_callback(lambda _, frame: self._note(frame))
        self.channel = self.connection.channel()
        self.channel.confirm_delivery()
        self.start()

    def _note(self, frame: Any) -> None:
        self.told.append((getattr(frame.method, "reason", "unblocked"), time.monotonic()))

    def run(self) -> None:
        try:
            self._work(self.channel, self)
        except Exception as error:
            self.errors.append(error)
        pika_sockets.end(self.connection, self._socket)


@pytest.mark.parametrize("commit_log", ["off", "on"])
def test_who_waits_for_a_full_disk_is_told_and_loses_nothing(disk: Path, commit_log: str) -> None:
    node = BrokerProcess(
        disk / "data",
        {
            "disk_free_limit.absolute": "1kB",
            "disk_monitor_interval": "200",
            "store_commit_log": commit_log,
        },
    )
    node.start()
    sizes = (10, 3000, 20_000)
    stop = threading.Event()

    def publish(channel: Any, client: Client) -> None:
        while not stop.is_set():
            channel.basic_publish("", "q", bytes(sizes[client.done % 3]), PERSISTENT)
            client.done += 1

    def declare(channel: Any, client: Client) -> None:
        channel.queue_declare("new", durable=True)
        client.done += 1

    try:
        first = Client(node, lambda channel, _: channel.queue_declare("q", durable=True))
        first.join(10)
        publisher = Client(node, publish)
        assert wait_for(lambda: publisher.done > 200, 20)
        fill(disk)
        full_at = time.monotonic()
        assert wait_for(lambda: bool(publisher.told), 10), "the publisher hangs without a word"
        assert publisher.told[0][1] < full_at + TOLD_WITHIN_S
        declarer = Client(node, declare)
        assert wait_for(lambda: bool(declarer.told), TOLD_WITHIN_S + 0.5)
        assert {publisher.told[0][0], declarer.told[0][0]} == {"low on disk"}
        status, answer = get(node, "/api/health/checks/alarms")
        assert status == 503
        # Whichever of the two found it full last: messages, or the definition that was declared.
        cause = answer["alarms"][0]["cause"]
        assert "No space left on device" in cause or "database or disk is full" in cause
        confirmed = publisher.done
        (disk / "filler").unlink()
        assert wait_for(lambda: publisher.done > confirmed + 50 and declarer.done == 1, 20)
        # ext4 gives blocks back with its own next commit: until then the disk may be full once more, and be told.
        assert publisher.told[1][0] == publisher.told[-1][0] == "unblocked"
        fill(disk)
        again = wait_for(lambda: publisher.told[-1][0] == "low on disk", 10)
        assert again, (publisher.told, publisher.done - confirmed, publisher.errors)
        node.kill()  # while it is full, and something half-written
        (disk / "filler").unlink()
        stop.set()
        publisher.join(10)
        node.start()
        found: list[int] = []
        Client(
            node,
            lambda channel, _: found.append(
                channel.queue_declare("q", passive=True).method.message_count
            ),
        ).join(10)
        # Of the last, nobody was told: it may be there.
        assert found[0] in (publisher.done, publisher.done + 1)
        assert node.stop() == 0
    finally:
        node.kill()
    check = subprocess.run(
        [sys.executable, "-m", "burrowmq.offline", "--data-dir", str(node.data_dir), "check"],
        cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert check.returncode == 0, check.stdout + check.stderr


@pytest.mark.parametrize("size_mb", [WITH_BALLAST_MB])
@pytest.mark.parametrize("end", ["stop", "kill"])
def test_a_start_on_a_full_disk_makes_room_with_its_ballast(disk: Path, end: str) -> None:
    settings = {"disk_free_limit.absolute": "1kB", "start_check": "warn"}
    node = BrokerProcess(disk / "data", settings)
    node.start()

    def publish(channel: Any, client: Client) -> None:
        channel.queue_declare("q", durable=True)
        for _ in range(50):
            channel.basic_publish("", "q", bytes(1000), PERSISTENT)
            client.done += 1

    def take(channel: Any, client: Client) -> None:
        while channel.basic_get("q", auto_ack=True)[0] is not None:
            client.done += 1

    try:
        publisher = Client(node, publish)
        publisher.join(10)
        assert (publisher.done, publisher.errors) == (50, [])
        getattr(node, end)()
        fill(disk)
        assert (disk / "data" / "ballast").exists()
        node.start()
        taker = Client(node, take)
        taker.join(10)
        assert (taker.done, taker.errors) == (50, [])
        assert node.stop() == 0
    finally:
        node.kill()
