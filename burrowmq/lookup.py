"""Connections to hosts that have names, whose lookup holds up nobody, and no end of a loop.

A resolver that does not answer keeps its thread for half a minute or more, and nothing can call it back. uvloop looks
names up in two threads for the whole process, and waits for all that were asked for when the loop ends, also for those
that nobody wants any more; asyncio has them in the few threads of its executor, and waits for those. Here each name is
looked up once at a time, in threads that the process does not wait for.

State owned: who waits for which name, and how many threads there are. Called on any loop, by who opens links.
"""

from __future__ import annotations

import asyncio
import errno
import socket
import threading
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any, Final, TypeAlias

Found: TypeAlias = list[tuple[Any, ...]]
"""As `socket.getaddrinfo` gives it."""
Asker: TypeAlias = tuple[asyncio.AbstractEventLoop, asyncio.Future[Found]]
MOST: Final = 16


def _addresses(host: str) -> Found:
    return list(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))


def _written(host: str) -> Found:
    """What a host that is written as an address has, which nobody needs to be asked for; nothing for a name."""
    with suppress(OSError, UnicodeError):
        return list(
            socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        )
    return []


class Lookups:
    """See the module. `resolve` waits for the resolver."""

    def __init__(self, resolve: Callable[[str], Found] = _addresses, most: int = MOST) -> None:
        self._resolve = resolve
        self._most = most
        self._lock = threading.Lock()
        self._askers: dict[str, list[Asker]] = {}
        self._waiting: deque[str] = deque()
        self._thread_count = 0

    async def find(self, host: str) -> Found:
        """Give the addresses of a host. Raises: OSError; UnicodeError for what no host can be called."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Found] = loop.create_future()
        asker = loop, answer
        with self._lock:
            if host not in self._askers:
                self._askers[host] = []
                self._waiting.append(host)
            self._askers[host].append(asker)
        try:
            self._start_thread()
            return await answer
        finally:
            with self._lock:
                if asker in self._askers.get(host, ()):
                    self._askers[host].remove(asker)

    def _start_thread(self) -> None:
        with self._lock:
            if not self._waiting or self._thread_count >= self._most:
                return  # one of them is at it, or comes to it
            self._thread_count += 1
        try:
            threading.Thread(target=self._work, name="looks up hosts", daemon=True).start()
        except RuntimeError as error:
            with self._lock:
                self._thread_count -= 1
            raise OSError(errno.EAGAIN, str(error)) from error

    def _next(self) -> str | None:
        """Choose a host that somebody waits for; without one this thread ends."""
        with self._lock:
            while self._waiting:
                host = self._waiting.popleft()
                if self._askers[host]:
                    return host
                del self._askers[host]
            self._thread_count -= 1
            return None

    def _work(self) -> None:
        while (host := self._next()) is not None:
            try:
                settle = partial(_give, self._resolve(host))
            except Exception as error:  # noqa: BLE001 - whoever asked is told
                settle = partial(_fail, error)
            with self._lock:
                askers = self._askers.pop(host)
            for loop, answer in askers:
                with suppress(RuntimeError):  # the loop is closed: nobody asks any more
                    loop.call_soon_threadsafe(settle, answer)


def _give(found: Found, answer: asyncio.Future[Found]) -> None:
    if not answer.done():
        answer.set_result(found)


def _fail(error: Exception, answer: asyncio.Future[Found]) -> None:
    if not answer.done():
        answer.set_exception(error)


_lookups: Final = Lookups()


async def connected(host: str, port: int, lookups: Lookups = _lookups) -> socket.socket:
    """Give a socket that is connected to the first address of a host that takes it. Raises: as `Lookups.find`."""
    refusals: list[OSError] = []
    for family, kind, protocol, _, address in _written(host) or await lookups.find(host):
        try:
            return await _connected(
                socket.socket(family, kind, protocol), (address[0], port, *address[2:])
            )
        except OSError as error:
            refusals.append(error)
    texts = list(dict.fromkeys(map(str, refusals)))
    if len(texts) == 1:
        raise refusals[0]
    raise OSError("; ".join(texts) or "it has no address")


async def _connected(sock: socket.socket, address: tuple[Any, ...]) -> socket.socket:
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, address)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        sock.close()
        raise
    return sock
