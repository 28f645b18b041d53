"""The lazy queue guide's own test: a million persistent messages, then restarts and a drain.

State: a data directory of its own. Callers: test_volume (scaled down) and
`python -m tests.crash.headline [--count 1000000]`, which prints the figures and says what was missed.
Source: the lazy queues guide's transcript; the bounds are the project's own.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.crash.volume import connect, drain_in_order, fill, start_to_first_get
from tests.support.broker_process import BrokerProcess

QUEUE = "lazy"
COLUMNS = (
    "name",
    "arguments",
    "memory",
    "messages_ram",
    "message_bytes_ram",
    "messages_persistent",
    "message_bytes_persistent",
)
SETTLE_S = 2.0
BALLAST_BYTES = 16 << 20
LOG_BYTES = 4 << 20
"""The commit log grows by a megabyte at a time, as a slow disk lets more lie in it."""


@dataclass
class Figures:
    """What was measured."""

    count: int
    size: int
    fill_s: float = 0.0
    rss_bytes: int = 0
    disk_bytes: int = 0
    row: dict[str, Any] | None = None
    clean_start_s: float = 0.0
    crash_start_s: float = 0.0
    drain_s: float = 0.0
    drained: int = 0

    @property
    def _fixed_bytes(self) -> int:
        """What does not shrink with the count; in the guide's figure for the whole million there is room for the log."""
        return BALLAST_BYTES + (LOG_BYTES if self.count < 1_000_000 else 0)

    def misses(self, *, timed: bool = True) -> list[str]:
        """Return the promises that do not hold, each with its figure; without the times on a machine with other work."""
        row = self.row or {}
        share = max(self.count / 1_000_000, 0.01)
        checks = {
            f"messages_ram={row.get('messages_ram')}": row.get("messages_ram") == 0,
            f"message_bytes_ram={row.get('message_bytes_ram')}": row.get("message_bytes_ram") == 0,
            f"messages_persistent={row.get('messages_persistent')}": row.get("messages_persistent")
            == self.count,
            f"message_bytes_persistent={row.get('message_bytes_persistent')}": row.get(
                "message_bytes_persistent"
            )
            == self.count * self.size,
            f"queue memory={row.get('memory')}": int(row.get("memory", 1 << 40)) <= 159_000,
            f"rss={self.rss_bytes}": self.rss_bytes <= 90_000_000,
            f"disk={self.disk_bytes}": self.disk_bytes <= 1_200_000_000 * share + self._fixed_bytes,
            f"drained={self.drained}": self.drained == self.count,
        }
        timely = {
            f"clean start={self.clean_start_s:.2f}": self.clean_start_s <= 1.5,
            f"crash start={self.crash_start_s:.2f}": self.crash_start_s <= 5,
        }
        checks |= timely if timed else {}
        return [text for text, holds in checks.items() if not holds]


def measure(directory: Path, count: int, size: int = 1000) -> Figures:
    """Run the whole scenario on a fresh node and return its figures."""
    figures = Figures(count, size)
    node = BrokerProcess(directory / "data", is_verified=False)
    try:
        node.start()
        with connect(node) as client:
            client.declare(1, QUEUE, durable=True, arguments={"x-queue-mode": "lazy"})
            figures.fill_s = fill(client, count, size, lambda _number: QUEUE)
            client.close()
        time.sleep(SETTLE_S)  # the promise is about two seconds after the last publish
        figures.rss_bytes, figures.disk_bytes = node.rss_bytes(), node.disk_bytes()
        listed = node.ctl("list_queues", *COLUMNS, "--formatter", "json", "--silent")
        figures.row = next(row for row in json.loads(listed) if row["name"] == QUEUE)
        assert node.stop() == 0
        figures.clean_start_s = start_to_first_get(node, QUEUE)
        node.kill()
        figures.crash_start_s = start_to_first_get(node, QUEUE)
        with connect(node) as client:
            began = time.monotonic()
            figures.drained = drain_in_order(client, QUEUE, range(1, count + 1))
            figures.drain_s = time.monotonic() - began
            client.close()
        assert node.stop() == 0
    finally:
        node.kill()
    return figures


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="headline-", dir=options.directory) as place:
        figures = measure(Path(place), options.count)
    sys.stdout.write(f"{figures}\nmisses: {figures.misses() or 'none'}\n")
    return 1 if figures.misses() else 0


if __name__ == "__main__":
    sys.exit(main())
