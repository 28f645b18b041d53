"""broker.machine.systemd: what the service manager is told, and when nobody is told anything."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from burrowmq.broker.machine.systemd import ServiceNotice


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        sock.bind(str(tmp_path / "notify"))
        sock.setblocking(False)
        yield sock


def told(manager: socket.socket) -> list[str]:
    found = []
    while True:
        try:
            found.append(manager.recv(4096).decode())
        except BlockingIOError:
            return found


def test_ready_alive_and_stopping(manager: socket.socket) -> None:
    environ = {"NOTIFY_SOCKET": manager.getsockname(), "WATCHDOG_USEC": "2000"}
    notice = ServiceNotice(environ)

    async def live() -> None:
        loop = asyncio.get_running_loop()
        notice.ready(loop)
        seen = told(manager)
        assert seen[0].startswith(f"READY=1\nMAINPID={os.getpid()}\n")
        assert seen[1:] == ["WATCHDOG=1"]
        heard = asyncio.Event()
        loop.add_reader(manager, heard.set)
        await heard.wait()  # the loop turned, and said so
        loop.remove_reader(manager)
        # On a machine that is busy a millisecond more may have passed, and with it another notice.
        assert set(told(manager)) == {"WATCHDOG=1"}
        notice.stopping()

    asyncio.run(asyncio.wait_for(live(), 5))
    assert told(manager)[-1].startswith("STOPPING=1")


def test_a_manager_that_is_busy_is_told_again(manager: socket.socket) -> None:
    """It waited for the word until it ended the service."""

    async def live() -> None:
        loop = asyncio.get_running_loop()
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as other:
            other.setblocking(False)
            with pytest.raises(BlockingIOError):
                while True:
                    other.sendto(b"STATUS=of another", manager.getsockname())
        notice = ServiceNotice({"NOTIFY_SOCKET": manager.getsockname()})
        notice.ready(loop)
        assert set(told(manager)) == {"STATUS=of another"}
        heard = asyncio.Event()
        loop.add_reader(manager, heard.set)
        await heard.wait()
        loop.remove_reader(manager)
        assert told(manager)[0].startswith("READY=1\n")
        notice.stopping()

    asyncio.run(asyncio.wait_for(live(), 5))


def test_an_abstract_name() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
        name = f"burrowmq-test-{os.getpid()}"
        sock.bind(f"\0{name}")
        ServiceNotice({"NOTIFY_SOCKET": f"@{name}"}).tell("X=1")
        assert sock.recv(10) == b"X=1"


def test_nobody_to_tell(tmp_path: Path) -> None:
    ServiceNotice({}).tell("READY=1")
    ServiceNotice({"NOTIFY_SOCKET": str(tmp_path / "gone")}).tell("READY=1")


@pytest.mark.parametrize(
    ("environ", "seconds"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "7"}, 30.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "8"}, None),
        ({"WATCHDOG_USEC": "often"}, None),
        ({}, None),
    ],
)
def test_who_is_watched(environ: dict[str, str], seconds: float | None) -> None:
    assert ServiceNotice(environ | {"NOTIFY_SOCKET": "x"}, pid=7).watchdog_s == seconds
