"""What a server does when the system gives it no more memory: it ends at once, as the Erlang VM does.

Python raises MemoryError wherever something wants memory, which may be between the halves of anything. A process that
goes on from there answers some clients, leaves others waiting for ever, and burns a processor with wake-ups that it has
no memory to read. What was confirmed is on disk, so that an end like that of kill -9 loses nothing, and a supervisor
starts it anew.

One thing that is too large is another matter: a body of 128 MB whose connection finds no room, or an answer over HTTP.
Whatever tells of such an error says so (`may_go_on`), and the process goes on if there is memory for small things.

Where small objects find nothing any more there may be none for the hooks below either: the compiled part of `reclaim`
ends the process where the interpreter's allocator is refused an arena, before anything is raised.

State owned: some MB of address space, never touched, that are given up so that the last line can be written.
"""

from __future__ import annotations

import os
import select
import sys
import threading
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    import asyncio

EX_OSERR: Final = 71
LAST_WORDS: Final = (
    b"burrowmq-server: no memory is left: the process ends, as it would by kill -9, and what was confirmed is on disk;"
    b" raise its limit (ulimit -v, LimitAS=, vm.overcommit_memory) or lower vm_memory_high_watermark\n"
)
RESERVE_BYTES: Final = 4 << 20
"""Enough for an arena of the interpreter's and a traceback."""
_STDERR: Final = 2
SMALL_BYTES: Final = 1 << 20
"""Who finds as much is not out of memory: an arena of the interpreter's, a few turns of the loop."""


def has_some() -> bool:
    """Tell whether there is memory for small things."""
    try:
        bytearray(SMALL_BYTES)
    except MemoryError:
        return False
    return True


def _write(octets: bytes) -> None:
    """To standard error, if that takes it at once: nothing is to keep the process."""
    poll = select.poll()
    poll.register(_STDERR, select.POLLOUT)
    if poll.poll(0):
        os.write(_STDERR, octets)


class OutOfMemory:
    """See the module. `say` adds to the log, if that can still be done; `end` is given the exit status."""

    def __init__(
        self,
        say: Callable[[], None],
        end: Callable[[int], object] = os._exit,
        has_memory: Callable[[], bool] = has_some,
    ) -> None:
        self._say = say
        self._end = end
        self._has_memory = has_memory
        self._reserve = bytearray(RESERVE_BYTES)

    def found(self, error: object, *, may_go_on: bool = False) -> None:
        """End the process if this is what it looks like."""
        if not isinstance(error, MemoryError) or (may_go_on and self._has_memory()):
            return
        self._reserve = bytearray()
        try:
            _write(LAST_WORDS)
            self._say()
        finally:
            self._end(EX_OSERR)

    def watch(self, loop: asyncio.AbstractEventLoop) -> None:
        """Be told of what a callback of the loop, a thread, and what nobody hears of has raised."""
        loop.set_exception_handler(self._on_loop)
        threading.excepthook = self._on_thread
        sys.unraisablehook = self._on_unraisable

    def _on_loop(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        # What one connection's protocol raises has cost that connection, and with it what it had read.
        self.found(context.get("exception"), may_go_on="transport" in context)
        loop.default_exception_handler(context)

    def _on_thread(self, raised: threading.ExceptHookArgs) -> None:
        self.found(raised.exc_value)
        threading.__excepthook__(raised)

    def _on_unraisable(self, raised: sys.UnraisableHookArgs) -> None:
        self.found(raised.exc_value)
        sys.__unraisablehook__(raised)
