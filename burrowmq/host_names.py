"""Host names to addresses, in threads of our own.

uvloop leaves names to libuv, which starts its threads at the first one, and where the system refuses it one (`ulimit
-u`, `TasksMax=`, `pids.max`) ends the process without a word. A name has a thread here, which nobody waits for at an
end; where there is none to have, who asked is told.

State owned: how many more there may be. Called on loops, by links of shovels, of imports and of the cluster.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable
from typing import Final, TypeVar

T = TypeVar("T")

MOST: Final = 256
"""Names that are looked up at a time: a name server that does not answer keeps each for half a minute."""
MORE_THREADS: Final = "raise the limit of processes (ulimit -u, TasksMax=, pids.max) or of memory"

_left = threading.Semaphore(MOST)


async def reach(host: str, connect: Callable[[str], Awaitable[T]]) -> T:
    """Give what `connect` gives of the first address of a host that can be connected to.

    Raises what it raises of the last, or of the first whose TLS it refuses; and OSError (socket.gaierror) and
    UnicodeError where there is no address.
    """
    *others, last = await addresses(host)
    for address in others:
        try:
            return await connect(address)
        except ssl.SSLError:
            raise
        except OSError:
            continue
    return await connect(last)


async def addresses(host: str) -> list[str]:
    """Those of a host, in the system's order; an address is its own. Raises: OSError, UnicodeError."""
    if _is_address(host):
        return [host]
    loop = asyncio.get_running_loop()
    answer: asyncio.Future[list[str]] = loop.create_future()

    def settle(found: list[str], error: BaseException | None) -> None:
        if answer.done():
            return
        if error is None:
            answer.set_result(found)
        else:
            answer.set_exception(error)

    def work() -> None:
        found: list[str] = []
        failure: BaseException | None = None
        try:
            found = _look_up(host)
        except BaseException as error:  # noqa: BLE001 - whoever asked is told
            failure = error
        _left.release()
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody asks any more
            loop.call_soon_threadsafe(settle, found, failure)

    if not _left.acquire(blocking=False):
        raise OSError(f"{MOST} names before this one are not answered: look at the name server")
    try:
        threading.Thread(target=work, name="looks a name up", daemon=True).start()
    except RuntimeError as error:
        _left.release()
        raise OSError(f"{error}: {MORE_THREADS}") from error
    return await answer


def _is_address(host: str) -> bool:
    if ":" in host:
        return True
    with contextlib.suppress(OSError, ValueError):
        socket.inet_pton(socket.AF_INET, host)
        return True
    return False


def _look_up(host: str) -> list[str]:
    found = []
    for _, _, _, _, address in socket.getaddrinfo(host, None, type=socket.SOCK_STREAM):
        scope = address[3] if len(address) > 3 else 0
        found.append(f"{address[0]}%{scope}" if scope else str(address[0]))
    return list(dict.fromkeys(found))
