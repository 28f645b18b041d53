"""What a link looks up before there is one, and connections to hosts that have names: it holds up nobody else, nor an end.

A resolver that does not answer keeps its thread for half a minute or more, a file system whose server is gone for ever,
and nothing can call them back. uvloop looks names up in two threads for the whole process, and waits for all that were
asked for when the loop ends, also for those that nobody wants any more; asyncio has the few threads of its executor,
which answers over HTTP need, and waits for those. Here each thing is looked up once at a time, in threads that the
process does not wait for.

State owned: who waits for what, and how many threads there are. Called on any loop, by who opens links.
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
from typing import Any, Final, Generic, TypeAlias, TypeVar

Found: TypeAlias = list[tuple[Any, ...]]
"""As `socket.getaddrinfo` gives it."""
K = TypeVar("K")
V = TypeVar("V")
MOST: Final = 16
SILENT_S: Final = 5.0
"""How long an address may say nothing while there is another; a lost packet is sent again after one second and three."""
MORE_THREADS: Final = "raise the limit of processes (ulimit -u, TasksMax=, pids.max) or of memory"


def _addresses(host: str) -> Found:
    return list(socket.getaddrinfo(host, None, type=socket.SOCK_STREAM))


def _written(host: str) -> Found:
    """What a host that is written as an address has, which nobody needs to be asked for; nothing for a name."""
    with suppress(OSError, UnicodeError):
        return list(
            socket.getaddrinfo(host, None, type=socket.SOCK_STREAM, flags=socket.AI_NUMERICHOST)
        )
    return []


class Lookups(Generic[K, V]):
    """See the module. `resolve` is what may take long."""

    def __init__(self, resolve: Callable[[K], V], most: int = MOST) -> None:
        self._resolve = resolve
        self._most = most
        self._lock = threading.Lock()
        self._askers: dict[K, list[tuple[asyncio.AbstractEventLoop, asyncio.Future[V]]]] = {}
        self._waiting: deque[K] = deque()
        self._thread_count = 0

    async def find(self, asked: K) -> V:
        """Give what `resolve` finds. Raises what it raises, and OSError when there is no thread for it."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[V] = loop.create_future()
        asker = loop, answer
        with self._lock:
            if asked not in self._askers:
                self._askers[asked] = []
                self._waiting.append(asked)
            self._askers[asked].append(asker)
        try:
            self._start_thread()
            return await answer
        finally:
            with self._lock:
                if asker in self._askers.get(asked, ()):
                    self._askers[asked].remove(asker)

    def _start_thread(self) -> None:
        with self._lock:
            if not self._waiting or self._thread_count >= self._most:
                return  # one of them is at it, or comes to it
            self._thread_count += 1
        try:
            threading.Thread(target=self._work, name="looks up", daemon=True).start()
        except RuntimeError as error:
            with self._lock:
                self._thread_count -= 1
            raise OSError(errno.EAGAIN, f"{error}: {MORE_THREADS}") from error

    def _next(self) -> tuple[K] | None:
        """Choose what somebody waits for; without it this thread ends."""
        with self._lock:
            while self._waiting:
                asked = self._waiting.popleft()
                if self._askers[asked]:
                    return (asked,)
                del self._askers[asked]
            self._thread_count -= 1
            return None

    def _work(self) -> None:
        while chosen := self._next():
            (asked,) = chosen
            settle: Callable[[asyncio.Future[V]], None]
            try:
                settle = partial(give, self._resolve(asked))
            except Exception as error:  # noqa: BLE001 - whoever asked is told
                settle = partial(fail, error)
            with self._lock:
                askers = self._askers.pop(asked)
            for loop, answer in askers:
                with suppress(RuntimeError):  # the loop is closed: nobody asks any more
                    loop.call_soon_threadsafe(settle, answer)


def give(found: V, answer: asyncio.Future[V]) -> None:
    """Answer who still waits."""
    if not answer.done():
        answer.set_result(found)


def fail(error: BaseException, answer: asyncio.Future[V]) -> None:
    """The same where it failed."""
    if not answer.done():
        answer.set_exception(error)


_hosts: Final = Lookups(_addresses)


async def connected(
    host: str, port: int, within_s: float, hosts: Lookups[str, Found] = _hosts
) -> socket.socket:
    """Give a socket that is connected to the first address of a host that takes it.

    One that says nothing, and is not the last, has its share of the time that the caller allows for all.
    Raises: OSError; UnicodeError for what no host can be called.
    """
    refusals: list[OSError] = []
    found = _written(host) or await hosts.find(host)
    share_s = min(SILENT_S, within_s / (len(found) + 1))
    for number, (family, kind, protocol, _, address) in enumerate(found, 1):
        place = _scoped(*address), port
        try:
            async with asyncio.timeout(share_s if number < len(found) else None):
                return await _connected(socket.socket(family, kind, protocol), place)
        except TimeoutError as error:
            if error.errno is not None:  # the system's
                refusals.append(error)
            else:
                refusals.append(OSError(f"{place[0]} does not answer"))
        except OSError as error:
            refusals.append(error)
    texts = list(dict.fromkeys(map(str, refusals)))
    if len(texts) == 1:
        raise refusals[0]
    raise OSError("; ".join(texts) or "it has no address")


def _scoped(host: str, _port: int, _flow: int = 0, scope: int = 0) -> str:
    """Write an address with the interface that it is of, which uvloop passes over elsewhere."""
    return f"{host}%{scope}" if scope else host


async def _connected(sock: socket.socket, address: tuple[Any, ...]) -> socket.socket:
    try:
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, address)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    except BaseException:
        sock.close()
        raise
    return sock
