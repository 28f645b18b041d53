"""Host names: their addresses, in threads that may be refused."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from typing import Any

import pytest

from burrowmq import host_names

ANSWER = [
    (socket.AF_INET6, socket.SOCK_STREAM, 6, "", ("fe80::1", 0, 0, 3)),
    (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.2", 0)),
    (socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", 0)),
]


@pytest.fixture
def resolver(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The system's; the names that it was asked for."""
    asked: list[str] = []

    def answer(host: str, *_: object, **__: object) -> list[Any]:
        asked.append(host)
        if host != "there":
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return ANSWER

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    return asked


def test_a_name_has_its_addresses_in_order(resolver: list[str]) -> None:
    assert asyncio.run(host_names.addresses("there")) == ["fe80::1%3", "127.0.0.2", "127.0.0.1"]
    with pytest.raises(socket.gaierror, match="Name or service not known"):
        asyncio.run(host_names.addresses("nowhere"))
    assert resolver == ["there", "nowhere"]


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "fe80::1%eth0"])
def test_an_address_is_looked_up_by_nobody(resolver: list[str], address: str) -> None:
    assert asyncio.run(host_names.addresses(address)) == [address]
    assert not resolver


def test_a_thread_that_is_refused_is_told(
    resolver: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", refuse)
        for _ in range(host_names.MOST + 1):
            with pytest.raises(OSError, match=r"^can't start new thread: raise the limit of proc"):
                asyncio.run(host_names.addresses("there"))
    assert asyncio.run(host_names.addresses("there"))


def test_a_name_server_that_does_not_answer_keeps_so_many_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    answers, left = threading.Event(), threading.Semaphore(1)

    def answer(*_: object, **__: object) -> list[Any]:
        answers.wait()
        return ANSWER

    monkeypatch.setattr(socket, "getaddrinfo", answer)
    monkeypatch.setattr(host_names, "_left", left)

    async def ask() -> list[str]:
        slow = asyncio.ensure_future(host_names.addresses("slow"))
        await asyncio.sleep(0)
        with pytest.raises(OSError, match="look at the name server"):
            await host_names.addresses("next")
        answers.set()
        await slow
        return await host_names.addresses("after")

    assert asyncio.run(ask()) == ["fe80::1%3", "127.0.0.2", "127.0.0.1"]


def test_the_first_address_that_can_be_reached_is_taken(resolver: list[str]) -> None:
    tried: list[str] = []

    async def connect(address: str) -> str:
        tried.append(address)
        if address != "127.0.0.2":
            raise ConnectionRefusedError(111, f"refused by {address}")
        return address

    assert asyncio.run(host_names.reach("there", connect)) == "127.0.0.2"
    assert tried == ["fe80::1%3", "127.0.0.2"]


def test_the_last_refusal_is_told_and_one_of_tls_at_once(resolver: list[str]) -> None:
    errors: list[OSError] = [OSError("a"), OSError("b"), OSError("c"), ssl.SSLError("tls")]

    async def connect(_: str) -> str:
        raise errors.pop(0)

    with pytest.raises(OSError, match=r"^c$"):
        asyncio.run(host_names.reach("there", connect))
    with pytest.raises(ssl.SSLError):
        asyncio.run(host_names.reach("there", connect))
