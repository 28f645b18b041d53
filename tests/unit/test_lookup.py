"""Lookups of hosts: each once at a time, in threads for which no loop and no process waits. Covers: burrowmq/lookup.py."""

from __future__ import annotations

import asyncio
import os
import re
import socket
import threading
from collections.abc import Callable, Coroutine
from functools import partial
from pathlib import Path

import pytest
import uvloop

from burrowmq.lookup import Found, Lookups, connected

HERE: Found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 0))]
NOWHERE: Found = [(socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.2", 0))]


class Resolver:
    """One that answers when it is let."""

    def __init__(self, found: Found | Exception = HERE) -> None:
        self.asked: list[str] = []
        self.lets = threading.Event()
        self.is_asked = threading.Event()
        self._found = found

    def __call__(self, host: str) -> Found:
        self.asked.append(host)
        self.is_asked.set()
        assert self.lets.wait(20)
        if isinstance(self._found, Exception):
            raise self._found
        return self._found


def run(step: Callable[[], Coroutine[None, None, None]]) -> None:
    asyncio.run(asyncio.wait_for(step(), 20))
    for thread in threading.enumerate():
        if thread.name == "looks up":
            thread.join()


def test_who_asks_for_the_same_host_shares_a_lookup() -> None:
    async def ask() -> None:
        resolver = Resolver()
        lookups = Lookups(resolver)
        both = [asyncio.create_task(lookups.find("a")) for _ in range(2)]
        await asyncio.to_thread(resolver.is_asked.wait)
        resolver.lets.set()
        assert await asyncio.gather(*both) == [HERE, HERE]
        assert resolver.asked == ["a"]
        assert await lookups.find("a") == HERE
        assert resolver.asked == ["a", "a"]

    run(ask)


@pytest.mark.parametrize(
    "error", [socket.gaierror(-2, "Name or service not known"), UnicodeError("x"), ValueError("x")]
)
def test_what_the_resolver_says_instead_is_raised(error: Exception) -> None:
    async def ask() -> None:
        resolver = Resolver(error)
        resolver.lets.set()
        with pytest.raises(type(error)) as raised:
            await Lookups(resolver).find("a")
        assert raised.value is error

    run(ask)


def test_a_resolver_that_does_not_answer_has_some_threads_and_no_more() -> None:
    """Names that nobody waits for by then are not looked up."""

    async def ask() -> None:
        resolver = Resolver()
        lookups = Lookups(resolver, most=2)
        for host in ("a", "b", "c", "d"):
            with pytest.raises(TimeoutError):
                await asyncio.wait_for(lookups.find(host), 0.01)
        last = asyncio.create_task(lookups.find("d"))
        await asyncio.sleep(0)
        assert sorted(resolver.asked) == ["a", "b"]
        resolver.lets.set()
        assert await last == HERE
        assert sorted(resolver.asked) == ["a", "b", "d"]

    run(ask)


def test_no_loop_waits_for_a_resolver_at_its_end() -> None:
    """It took as long as the resolver, once for each name that had been asked for."""
    resolver = Resolver()

    async def ask() -> None:
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(Lookups(resolver).find("a"), 0.01)

    asyncio.run(ask())
    assert not resolver.lets.is_set()
    resolver.lets.set()
    run(partial(asyncio.sleep, 0))


def test_without_a_thread_the_lookup_fails_and_the_next_one_does_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def ask() -> None:
        resolver = Resolver()
        resolver.lets.set()
        lookups = Lookups(resolver)
        with monkeypatch.context() as patched:
            patched.setattr(threading.Thread, "start", _no_thread)
            with pytest.raises(OSError, match="can't start new thread"):
                await lookups.find("a")
        assert await lookups.find("a") == HERE

    run(ask)


def _no_thread(_: threading.Thread) -> None:
    raise RuntimeError("can't start new thread")


def test_the_first_address_that_takes_a_connection_is_used() -> None:
    async def ask() -> None:
        resolver = Resolver([*NOWHERE, *HERE])
        resolver.lets.set()
        with socket.create_server(("127.0.0.1", 0)) as server:
            port = server.getsockname()[1]
            for host in ("127.0.0.1", "name"):
                sock = await connected(host, port, 10, Lookups(resolver))
                assert sock.getpeername() == ("127.0.0.1", port)
                assert not sock.getblocking()
                sock.close()
            assert resolver.asked == ["name"]
        with pytest.raises(ConnectionRefusedError):
            await connected("127.0.0.1", port, 10)
        with pytest.raises(OSError, match=r"127\.0\.0\.2.*; .*127\.0\.0\.1"):
            await connected("name", port, 10, Lookups(resolver))

    run(ask)


@pytest.mark.parametrize(("within_s", "share_s"), [(60, 5.0), (3, 1.0)])
def test_an_address_that_says_nothing_has_its_share_of_the_time(
    monkeypatch: pytest.MonkeyPatch, within_s: float, share_s: float
) -> None:
    shares: list[float | None] = []
    usual = asyncio.timeout

    def timeout(delay: float | None) -> asyncio.Timeout:
        shares.append(delay)
        return usual(None if delay is None else 0)

    async def connect(sock: socket.socket, address: tuple[str, int]) -> socket.socket:
        if address[0] == "127.0.0.2":
            with sock:
                await asyncio.get_running_loop().create_future()
        if address[1] == 2:
            sock.close()
            raise ConnectionRefusedError(111, "Connection refused")
        return sock

    async def ask() -> None:
        resolver = Resolver([*NOWHERE, *HERE])
        resolver.lets.set()
        (await connected("name", 1, within_s, Lookups(resolver))).close()
        assert shares == [share_s, None]
        with pytest.raises(OSError, match=r"^127\.0\.0\.2 does not answer; .*Connection refused"):
            await connected("name", 2, within_s, Lookups(resolver))

    monkeypatch.setattr("burrowmq.lookup._connected", connect)
    monkeypatch.setattr(asyncio, "timeout", timeout)
    with asyncio.Runner() as runner:
        runner.run(ask())


def test_a_host_without_an_address_is_none() -> None:
    async def ask() -> None:
        resolver = Resolver([])
        resolver.lets.set()
        with pytest.raises(OSError, match="it has no address"):
            await connected("name", 1, 10, Lookups(resolver))

    run(ask)


def _link_local() -> str:
    """The address of an interface that is no address without its name; "" where there is none."""
    for line in Path("/proc/net/if_inet6").read_text().splitlines():
        octets, *_, name = line.split()
        if octets.startswith("fe80"):
            return f"{':'.join(re.findall('....', octets))}%{name}"
    return ""


@pytest.mark.skipif(not os.path.exists("/proc/net/if_inet6"), reason="no IPv6 here")
@pytest.mark.parametrize("make_loop", [uvloop.new_event_loop, asyncio.new_event_loop])
def test_an_address_of_one_interface_is_reached(
    make_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def ask() -> None:
        for host in filter(None, ("::1", _link_local())):
            with socket.create_server(("::", 0), family=socket.AF_INET6) as server:
                sock = await connected(host, server.getsockname()[1], 10)
                assert sock.getpeername()[1] == server.getsockname()[1]
                sock.close()

    with asyncio.Runner(loop_factory=make_loop) as runner:
        runner.run(ask())
