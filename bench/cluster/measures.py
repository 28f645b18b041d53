"""What is asked of a row, what one is, and the meter that both kinds of rows use.

CPU is that of the servers, and of this process less what the load itself takes.
"""

import time
from dataclasses import dataclass

from bench.procfs import cpu_use, rss_bytes

RUN = 100
"""Messages that are published at once."""


@dataclass(frozen=True)
class Load:
    """What the command line asks for."""

    messages: int
    size: int
    open_max: int
    credit: int
    kind: str = "quorum"


@dataclass(frozen=True)
class Row:
    """One measurement."""

    rate: float
    servers_us: float
    front_us: float
    rss_mb: float


class Meter:
    """CPU of the servers and of this process between two moments."""

    def __init__(self, pids: list[int]) -> None:
        self._pids = pids
        self._servers_s = self._servers()
        self._front_s = time.process_time()
        self._began_s = time.monotonic()

    def _servers(self) -> float:
        return sum(cpu_use(pid).total_s for pid in self._pids)

    def row(self, count: int, *, load_s: float = 0.0) -> Row:
        seconds = time.monotonic() - self._began_s
        front_s = time.process_time() - self._front_s - load_s
        return Row(
            rate=count / seconds,
            servers_us=(self._servers() - self._servers_s) / count * 1e6,
            front_us=front_s / count * 1e6,
            rss_mb=max(map(rss_bytes, self._pids)) / 1e6,
        )
