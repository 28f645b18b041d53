"""Standard output and error that never wait for who reads them.

A reader that stops (a collector of container logs that hangs, a pager, `^S` on a terminal) would else stop whoever
logs: the loop, or the disk thread in the middle of a commit. RabbitMQ drops lines then. Here what is not taken is kept,
up to KEPT_BYTES; lines beyond that are dropped, and once all that was kept is taken somebody is told how many.
What cannot be written at all, a full disk behind a redirection for one, is dropped: nobody may fail for a line.

State owned: what is kept. Written on the loop and by threads, whole lines at a time. A pipe, a socket or a file takes
PIPE_BUF octets wherever it says that it takes any; a terminal that is stopped in the middle of a line is waited for.

Source: pipe(7), poll(2).
"""

from __future__ import annotations

import os
import select
import stat
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable
from typing import Any, Final, Self, TextIO

KEPT_BYTES: Final = 1 << 20
"""Some five thousand lines."""
END_PATIENCE_S: Final = 0.5
"""How long the end of the process waits for a reader of its last lines."""


def nobody(_: int) -> None:
    """Nobody asks."""


class Console:
    """One of the two. Whatever else a text stream has is the stream's own.

    `on_resumed` is told how many lines were dropped, when all that came before them is taken.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        if hasattr(stream, "reconfigure"):
            stream.reconfigure(errors="backslashreplace")
        self._encoding = getattr(stream, "encoding", None) or "utf-8"
        self._fd = _descriptor_of(stream)
        self._is_file = False
        self._poll = select.poll()
        if self._fd >= 0:
            self._is_file = stat.S_ISREG(os.fstat(self._fd).st_mode)
            self._poll.register(self._fd, select.POLLOUT)
        # What is written may have something else written: an object that is found unused then, and complains.
        self._lock = threading.RLock()
        self._is_giving = False
        self._kept: deque[bytes] = deque()
        self._kept_bytes = 0
        self._dropped = 0
        self.on_resumed: Callable[[int], None] = nobody

    def __getattr__(self, name: str) -> Any:
        return getattr(self._stream, name)

    def write(self, text: str) -> int:
        """Write it, keep it or drop it; it counts as written."""
        if self._fd < 0:
            return self._pass_on(text)
        octets = text.encode(self._encoding, "backslashreplace")
        with self._lock:
            if not self._kept and not self._dropped:
                octets = self._left_of(octets)
                if not octets:
                    return len(text)
            if self._dropped or self._kept_bytes + len(octets) > KEPT_BYTES:
                self._dropped += max(1, text.count("\n"))
            else:
                self._kept.append(octets)
                self._kept_bytes += len(octets)
        self.flush()
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write each."""
        for line in lines:
            self.write(line)

    def flush(self) -> None:
        """Hand over what is taken at once."""
        if self._fd < 0:
            self._pass_on("")
            return
        with self._lock:
            self._give(0)
            if self._kept or not self._dropped:
                return
            dropped, self._dropped = self._dropped, 0
        self.on_resumed(dropped)

    @property
    def is_behind(self) -> bool:
        """Whether something waits for its reader."""
        return bool(self._kept or self._dropped)

    def finish(self, patience_s: float = END_PATIENCE_S) -> None:
        """Hand over what is kept; a reader that reads nothing for so long gets none of it."""
        with self._lock:
            until = time.monotonic() + patience_s
            while self._kept and time.monotonic() < until:
                self._give(patience_s * 1000)
            self._kept.clear()
            self._kept_bytes = 0

    def _left_of(self, octets: bytes) -> bytes:
        """Write what is taken at once, which is usually all; the rest."""
        if len(octets) > select.PIPE_BUF or not (self._is_file or self._poll.poll(0)):
            return octets
        try:
            return octets[os.write(self._fd, octets) :]
        except BlockingIOError:
            return octets
        except OSError:
            return b""

    def _give(self, patience_ms: float) -> None:
        if self._is_giving:
            return
        self._is_giving = True
        try:
            self._give_lines(patience_ms)
        finally:
            self._is_giving = False

    def _give_lines(self, patience_ms: float) -> None:
        while self._kept and self._poll.poll(patience_ms):
            line = self._kept[0]
            try:
                written = os.write(self._fd, line[: select.PIPE_BUF])
            except BlockingIOError:  # whoever else has it open has asked for that
                return
            except OSError:
                written = len(line)
            self._kept_bytes -= written
            if written < len(line):
                self._kept[0] = line[written:]
            else:
                self._kept.popleft()

    def _pass_on(self, text: str) -> int:
        """To a stream without a descriptor: nobody can be slow behind it."""
        try:
            self._stream.write(text)
            self._stream.flush()
        except OSError:
            return 0
        return len(text)


class Consoles:
    """Both of them, as long as the context lasts."""

    def __init__(self) -> None:
        self._usual = sys.stdout, sys.stderr
        self._consoles = Console(sys.stdout), Console(sys.stderr)

    def __enter__(self) -> Self:
        for stream in self._usual:
            stream.flush()
        consoles: Any = self._consoles  # as much of a text stream as is asked for
        sys.stdout, sys.stderr = consoles
        return self

    def __exit__(self, *_: object) -> None:
        sys.stdout, sys.stderr = self._usual
        for console in self._consoles:
            console.finish()

    def give(self) -> bool:
        """Hand over what is taken by now; whether something is left."""
        for console in self._consoles:
            console.flush()
        return any(console.is_behind for console in self._consoles)


def _descriptor_of(stream: TextIO) -> int:
    try:
        return stream.fileno()
    except (OSError, ValueError, AttributeError):
        return -1
