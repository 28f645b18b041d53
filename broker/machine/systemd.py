"""Tells the service manager how the process is, as sd_notify does: ready, stopping, alive.

State: where to send (the socket that systemd names in the environment; nothing is sent where there is none), and the
timers of the watchdog and of who did not get in. Made and called by `broker.__main__`, on the loop. A message that
cannot be sent is dropped: the broker works without a service manager. One that is only too busy is told again that this
is ready: without that word it would end the service.

Source: sd_notify(3), sd_watchdog_enabled(3).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import Mapping
from typing import Final

AGAIN_S: Final = 0.2


class ServiceNotice:
    """The one who tells; `watchdog_s` is how often it has to say that it is alive, None for never."""

    def __init__(self, environ: Mapping[str, str], pid: int | None = None) -> None:
        name = environ.get("NOTIFY_SOCKET", "")
        # A leading @ stands for the null byte of an abstract name.
        self._address = "\0" + name[1:] if name.startswith("@") else name
        self._timer: asyncio.TimerHandle | None = None
        self._again: asyncio.TimerHandle | None = None
        micros = environ.get("WATCHDOG_USEC", "")
        is_ours = environ.get("WATCHDOG_PID", "") in ("", str(pid or os.getpid()))
        is_watched = bool(self._address) and is_ours and micros.isdigit() and int(micros) > 0
        self.watchdog_s = int(micros) / 1_000_000 if is_watched else None

    def tell(self, text: str) -> bool:
        """Send, if there is somebody; False when too many messages of others wait there."""
        if not self._address:
            return True
        with contextlib.suppress(OSError), socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as sock:
            sock.setblocking(False)
            try:
                sock.sendto(text.encode(), self._address)
            except BlockingIOError:
                return False
        return True

    def ready(self, loop: asyncio.AbstractEventLoop) -> None:
        """All listeners accept; from now on the loop says that it turns, at twice the rate that is asked for."""
        self._say_ready(loop)
        if self.watchdog_s is not None:
            self._alive(loop, self.watchdog_s / 2)

    def stopping(self) -> None:
        """The end has begun. A stop that hangs is the manager's own timeout's business."""
        for timer in (self._timer, self._again):
            if timer is not None:
                timer.cancel()
        self.tell("STOPPING=1\nSTATUS=stopping")

    def _say_ready(self, loop: asyncio.AbstractEventLoop) -> None:
        if not self.tell(f"READY=1\nMAINPID={os.getpid()}\nSTATUS=accepting connections"):
            self._again = loop.call_later(AGAIN_S, self._say_ready, loop)

    def _alive(self, loop: asyncio.AbstractEventLoop, interval_s: float) -> None:
        self.tell("WATCHDOG=1")
        self._timer = loop.call_later(interval_s, self._alive, loop, interval_s)
