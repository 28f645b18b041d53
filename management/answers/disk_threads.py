"""What a disk has to answer for a request, in threads of its own: a disk that answers nothing holds up these alone.

asyncio's threads are few (six on two processors), and they compress and encode the answers of all others: after as
many requests that wait for a dead disk no long list would be answered any more, and a stop would wait for them.

State owned: how many of these threads there are.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar, TypeVarTuple

from burrowmq.lookup import fail, give
from burrowmq.management.answers.reply import ApiError

Given = TypeVarTuple("Given")
T = TypeVar("T")

MOST: Final = 8
PATIENCE_S: Final = 10.0


class DiskThreads:
    """See the module."""

    def __init__(self, most: int = MOST, patience_s: float = PATIENCE_S) -> None:
        self._most = most
        self._patience_s = patience_s
        self._count = 0

    async def ask(self, function: Callable[[*Given], T], *arguments: *Given) -> T:
        """Give what a function returns that the disk may keep waiting.

        Raises what it raises, and ApiError 503 when it does not return in time, or too many others have not.
        """
        if self._count >= self._most:
            raise _unanswered(f"has not answered {self._count} requests before this one")
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[T] = loop.create_future()

        def end(settle: Callable[[asyncio.Future[T]], None]) -> None:
            self._count -= 1
            settle(answer)

        def work() -> None:
            settle: Callable[[asyncio.Future[T]], None]
            try:
                settle = partial(give, function(*arguments))
            except BaseException as error:  # noqa: BLE001 - whoever asked is told
                settle = partial(fail, error)
            with suppress(RuntimeError):  # the loop is closed: nobody asks any more
                loop.call_soon_threadsafe(end, settle)

        thread = threading.Thread(target=work, name="asks the disk", daemon=True)
        try:
            thread.start()
        except RuntimeError as error:
            raise ApiError(503, "unavailable", str(error)) from error
        self._count += 1
        try:
            return await asyncio.wait_for(answer, self._patience_s)
        except TimeoutError:
            raise _unanswered(f"has not answered for {self._patience_s:g} s") from None


def _unanswered(what: str) -> ApiError:
    return ApiError(503, "unavailable", f"the disk {what}; look at it and at the kernel's log")


ask_disk: Final = DiskThreads().ask
