"""Who calls: rights by tag, credentials of a header, and where a request comes from."""

from __future__ import annotations

import asyncio
import base64
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import ClientSession, UnixConnector, web
from aiohttp.test_utils import make_mocked_request

from burrowmq.management.answers import access
from burrowmq.management.answers.access import GRANTS, REFUSALS, TRUSTED, Caller, UnreadableLogin
from tests.support.bench.node import NodeBench

LEVELS = ("management", "policymaker", "monitoring", "administrator", "trusted")


# -- rights -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tags", "levels"),
    [
        ((), set()),
        (("impersonator",), set()),
        (("management",), {"management"}),
        (("policymaker",), {"management", "policymaker"}),
        (("monitoring",), {"management", "monitoring"}),
        (("policymaker", "monitoring"), {"management", "policymaker", "monitoring"}),
        (("administrator",), {"management", "policymaker", "monitoring", "administrator"}),
    ],
)
def test_tags_reach_levels(tags: tuple[str, ...], levels: set[str]) -> None:
    caller = Caller("a", tags)
    assert {level for level in LEVELS if caller.may(level)} == levels


def test_the_control_socket_reaches_all_of_them_and_each_has_its_refusal() -> None:
    assert all(TRUSTED.may(level) for level in LEVELS)
    assert set(REFUSALS) == set(LEVELS) == {"trusted"}.union(*GRANTS.values())


def test_sight_of_vhosts(bench: NodeBench) -> None:
    node = bench.node
    assert Caller("guest", ("management",)).may_see(node, "/")
    assert not Caller("guest", ("management",)).may_see(node, "other")
    assert not Caller("bob", ("management",)).may_see(node, "/")
    assert Caller("bob", ("monitoring",)).may_see(node, "/")
    assert TRUSTED.may_see(node, "other")


# -- requests ---------------------------------------------------------------------------------------------------------


def _told(request: web.Request) -> dict[str, Any]:
    """What the module says of a request."""
    try:
        credentials: Any = access.basic_credentials(request)
    except UnreadableLogin:
        credentials = "unreadable"
    return {
        "credentials": credentials,
        "is_owner": access.peer_is_owner(request),
        "is_loopback": access.peer_is_loopback(request),
    }


@asynccontextmanager
async def _serving(sock: socket.socket) -> AsyncIterator[None]:
    async def answer(request: web.Request) -> web.Response:
        return web.json_response(_told(request))

    app = web.Application()
    app.router.add_get("/", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.SockSite(runner, sock).start()
        yield
    finally:
        await runner.cleanup()


def ask(headers: dict[str, str] | None = None, path: Path | None = None) -> dict[str, Any]:
    """Send a request over TCP, or over a Unix socket at `path`."""

    async def asked() -> dict[str, Any]:
        if path is None:
            sock = socket.create_server(("127.0.0.1", 0))
            url, connector = f"http://127.0.0.1:{sock.getsockname()[1]}/", None
        else:
            sock = socket.socket(socket.AF_UNIX)
            sock.bind(str(path))
            url, connector = "http://localhost/", UnixConnector(str(path))
        async with (
            _serving(sock),
            ClientSession(connector=connector) as session,
            session.get(url, headers=headers) as answer,
        ):
            found: dict[str, Any] = await answer.json()
            return found

    return asyncio.run(asked())


def _basic(credentials: bytes) -> str:
    return base64.b64encode(credentials).decode()


@pytest.mark.parametrize(
    ("header", "expected"),
    [
        (f"Basic {_basic(b'guest:secret')}", ["guest", "secret"]),
        (f"bAsIc {_basic(b'guest:')}", ["guest", ""]),
        (f"Basic {_basic('bä:a:b'.encode())}", ["bä", "a:b"]),
        (f"Basic {_basic(b'guest')}", "unreadable"),
        (f"Bearer {_basic(b'guest:secret')}", "unreadable"),
        (f"Basic {_basic(b'guest:' + bytes([255]))}", "unreadable"),
        ("Basic *****", "unreadable"),
        ("Basic", "unreadable"),
    ],
)
def test_credentials_are_read_from_the_header(header: str, expected: object) -> None:
    assert ask({"Authorization": header})["credentials"] == expected


def test_no_header_is_no_login() -> None:
    assert ask()["credentials"] is None


def test_a_request_over_tcp_from_this_machine_is_loopback() -> None:
    assert ask()["is_loopback"] is True


def test_a_request_over_the_control_socket_is_its_owners(tmp_path: Path) -> None:
    found = ask(path=tmp_path / "socket")
    assert (found["is_owner"], found["is_loopback"]) == (True, False)


def test_where_the_system_names_no_peer_the_mode_of_the_file_decides(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(socket, "SO_PEERCRED")
    assert ask(path=tmp_path / "socket")["is_owner"] is True


def test_root_is_as_good_as_the_owner(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mine = os.geteuid()
    monkeypatch.setattr(os, "geteuid", lambda: mine + 1)
    assert ask(path=tmp_path / "socket")["is_owner"] is (mine == 0)


@pytest.mark.parametrize(
    ("remote", "is_loopback"),
    [("127.9.9.9", True), ("::1%lo", True), ("192.0.2.1", False), ("2001:db8::1", False)],
)
def test_loopback_is_by_the_address(remote: str, is_loopback: bool) -> None:
    request = make_mocked_request("GET", "/").clone(remote=remote)
    assert access.peer_is_loopback(request) is is_loopback


def test_a_request_whose_socket_is_gone_is_nobodys() -> None:
    request = make_mocked_request("GET", "/")
    assert not access.peer_is_owner(request)
