"""When memory that was freed, but is still held by this process, is given back to the system.

The memory of bodies above 512 bytes comes from the C library. It gives back only what lies above everything in use, so
one live object behind a backlog keeps all of the backlog's memory. After a queue of 600 MB was consumed, purged or
paged out, the node's resident memory stayed where it was, and so did the memory alarm, which goes by that. Therefore
the monitor asks from time to time how much lies unused. If most of it did so at the last look too, it is returned;
while memory is short, the monitor asks at every look.

Objects of up to 512 bytes lie in the interpreter's own arenas of 1 MB, of which one connection or log line keeps the
whole. `ServersAllocator` gives back what lies unused within them, too, where `_pools_c` was compiled: of 10,000 queues
that were deleted 27 MB stayed, which is 7 then.

State owned: how much lay unused at the last look, and how much was returned already (the C library goes on counting
it, where it is not on top). Called by `broker.node.monitor`. Cost: asking takes microseconds, with 300,000 holes 7 ms;
returning 600 MB takes 40 ms, during which the loop may have to wait for memory.

The opposite waste is memory that goes back too soon: whoever needs it next waits for every page anew, which on a
virtual machine may take longer than all that is done with the message that lies there. A turn takes some hundred KB,
with fan-out to a hundred queues 30 MB, and a queue may grow to 200 MB and be empty again each second; where they lie on
top of the heap the C library returns them at once, and what decided that was chance: the largest block that it ever got
from the system and freed, and what lay on top. So `CLibrary` tells it to keep up to `ON_TOP_BYTES` there, until a look
here, and the looks leave it alone while most of what lies unused was in use at the last one.

Source: mallinfo2(3), malloc_trim(3), mallopt(3) (M_TRIM_THRESHOLD, M_MMAP_THRESHOLD).
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from importlib import import_module
from typing import Protocol, cast

WORTH_BYTES = 1 << 20
"""Unused bytes below which nothing is done. With 4 MB up to that much of a backlog stayed, as the last look fell."""
LOOKS = 5
"""While memory is not short, only one in so many looks of the monitor asks."""
LARGEST_IN_HEAP_BYTES = 32 << 20
"""What is larger comes from the system where nothing unused is as large, and goes back at once. It can be no more.

Bodies of 16 MB, interpreted, cost a third more where they did, for pages.
"""
ON_TOP_BYTES = 256 << 20
"""What lies unused on top of the heap goes back at once when it is so much: at the next look it would take too long."""
_TRIM_THRESHOLD, _MMAP_THRESHOLD = -1, -3  # malloc.h
_OPERATORS = re.compile(
    r"MALLOC_(TRIM|MMAP)_THRESHOLD_=|GLIBC_TUNABLES=.*malloc\.(trim|mmap)_threshold"
)
"""Who sets these in the environment has other plans; how many arenas there are, say, is another question."""


class Allocator(Protocol):
    """Where the process's memory comes from."""

    def unused_bytes(self) -> tuple[int, int]:
        """Bytes that nobody uses, where those that were returned may count until they are used, and where none does."""

    def give_back(self) -> None:
        """Return unused memory to the system, by whole pages."""


_MALLINFO2 = (
    "arena",
    "ordblks",
    "smblks",
    "hblks",
    "hblkhd",
    "usmblks",
    "fsmblks",
    "uordblks",
    "fordblks",
    "keepcost",
)


class CLibrary:
    """glibc from 2.33 on; with another C library nothing is known, and nothing done."""

    def __init__(self) -> None:
        import ctypes  # noqa: PLC0415 - a process that is somebody else's has no use for it

        library = ctypes.CDLL(None)
        self._mallinfo2 = getattr(library, "mallinfo2", None)
        self._malloc_trim = getattr(library, "malloc_trim", None)
        if self._mallinfo2 is not None:
            fields = [(name, ctypes.c_size_t) for name in _MALLINFO2]
            self._mallinfo2.restype = type("Mallinfo2", (ctypes.Structure,), {"_fields_": fields})
        self._keep_what_is_on_top(getattr(library, "mallopt", None))

    def _keep_what_is_on_top(self, mallopt: Callable[[int, int], int] | None) -> None:
        if mallopt is None or any(_OPERATORS.match("=".join(each)) for each in os.environ.items()):
            return
        is_asked = self._mallinfo2 is not None and self._malloc_trim is not None
        if mallopt(_MMAP_THRESHOLD, LARGEST_IN_HEAP_BYTES):
            mallopt(_TRIM_THRESHOLD, ON_TOP_BYTES if is_asked else 2 * LARGEST_IN_HEAP_BYTES)

    def unused_bytes(self) -> tuple[int, int]:
        """Bytes in holes, and on top of the heap."""
        if self._mallinfo2 is None:
            return 0, 0
        found = self._mallinfo2()
        return int(found.fordblks - found.keepcost), int(found.keepcost)

    def give_back(self) -> None:
        """Return what can be returned: holes smaller than a page cannot."""
        if self._malloc_trim is not None:
            self._malloc_trim(0)


class Pools(Protocol):
    """What `_pools_c` offers."""

    def watch(self) -> bool:
        """Look at the arenas that are made from now on; False where nothing is known of them."""

    def end_without_arenas(self, words: bytes, status: int) -> bool:
        """End the process with these words where the system has no arena for it; b"": do not. False: it will not."""

    def unused_bytes(self) -> int:
        """Bytes in pages of arenas in which nothing lives, and that were not returned."""

    def give_back(self) -> int:
        """Return them."""


def compiled_pools() -> Pools | None:
    """Give the compiled part; None where it was not built or BURROWMQ_PURE=1 forbids it."""
    if os.environ.get("BURROWMQ_PURE", "") not in ("", "0"):
        return None
    try:
        return cast("Pools", import_module("burrowmq.broker.machine._pools_c"))
    except ImportError:
        return None


class ServersAllocator:
    """The memory of the server's own process: the C library's, and within arenas made from now on the interpreter's."""

    def __init__(self) -> None:
        self._library = CLibrary()
        pools = compiled_pools()
        self._pools = pools if pools is not None and pools.watch() else None

    def unused_bytes(self) -> tuple[int, int]:
        """Bytes of both."""
        holes, on_top = self._library.unused_bytes()
        return holes, on_top + (self._pools.unused_bytes() if self._pools is not None else 0)

    def give_back(self) -> None:
        """Return both."""
        self._library.give_back()
        if self._pools is not None:
            self._pools.give_back()


class HostsAllocator:
    """The memory of a process that is somebody else's: left alone."""

    def unused_bytes(self) -> tuple[int, int]:
        """Nothing is known."""
        return 0, 0

    def give_back(self) -> None:
        """Nothing."""


class Reclaim:
    """Decides, at the monitor's looks, when memory is given back."""

    def __init__(self, allocator: Allocator) -> None:
        self._allocator = allocator
        self._looks = 0
        self._held = 0
        self._returned = 0

    def look(self, used_bytes: int, *, is_short: bool) -> bool:
        """Give memory back if it is time to; True when that was done.

        `used_bytes` is the process's resident memory: below `WORTH_BYTES` there is not enough to look for.
        """
        self._looks += 1
        if used_bytes < WORTH_BYTES or not (is_short or self._looks % LOOKS == 0):
            return False
        holes, held = self._allocator.unused_bytes()
        self._returned = min(self._returned, holes)
        held += holes - self._returned
        lasting, self._held = min(held, self._held), held
        if held < WORTH_BYTES or not (is_short or lasting >= max(WORTH_BYTES, held // 2)):
            return False
        self.now()
        return True

    def now(self) -> None:
        """Give back what lies unused, however little it is."""
        self._allocator.give_back()
        self._returned, self._held = self._allocator.unused_bytes()
