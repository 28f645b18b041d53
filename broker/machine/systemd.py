"""Tells the service manager how the process is, as sd_notify does: ready, stopping, alive.

State: where to send (the socket that systemd names in the environment; nothing is sent where there is none), and the
timer of the watchdog. Made and called by `broker.__main__`, on the loop. A message that cannot be sent is dropped: the
broker works without a service manager.

Source: sd_notify(3), sd_watchdog_enabled(3).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Mapping


class ServiceNotice:
    """The one who tells; `watchdog_s` is how often it has to say that it is alive, None for never."""

    def __init__(self, environ: Mapping[str, str], pid: int | None = None) -> None:
        name = environ.get("NOTIFY_SOCKET", "")
        # A leading @ stands for the null byte of an abstract name.
        self._address = "\0" + name[1:] if name.startswith("@") else name
        self._timer: asyncio.TimerHandle | None = None
        micros = environ.get("WATCHDOG_USEC", "")
        is_ours = environ.get("WATCHDOG_PID", "") in ("", str(pid or os.getpid()))
        is_watched = bool(self._address) and is_ours and micros.isdigit() and int(micros) > 0
        self.watchdog_s = int(micros) / 1_000_000 if is_watched else None

    def tell(self, text: str) -> None:
        """Send, if there is somebody."""
        if not self._address:
            return
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            sock.sendto(text.encode(), self._address)

    def ready(self, loop: asyncio.AbstractEventLoop) -> None:
        """All listeners accept; from now on the loop says that it turns, at twice the rate that is asked for."""
        self.tell(f"READY=1\nMAINPID={os.getpid()}\nSTATUS=accepting connections")
        if self.watchdog_s is not None:
            self._alive(loop, self.watchdog_s / 2)

    def stopping(self) -> None:
        """The end has begun. A stop that hangs is the manager's own timeout's business."""
        if self._timer is not None:
            self._timer.cancel()
        self.tell("STOPPING=1\nSTATUS=stopping")

    def _alive(self, loop: asyncio.AbstractEventLoop, interval_s: float) -> None:
        self.tell("WATCHDOG=1")
        self._timer = loop.call_later(interval_s, self._alive, loop, interval_s)
