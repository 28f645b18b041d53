"""Part of a gigabyte of messages goes at random; the disk must follow within ten seconds.

State: a node of its own. Callers: test_volume (scaled down) and
`python -m tests.crash.compaction [--megabytes 1000]`. Messages of 5 KB lie interleaved at random for
two queues in the shared store; draining one queue leaves garbage all over every segment. With half removed
(`--removed 0.5`) the bound is hardly below the full store; three quarters say more, so that is the default.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
import threading
import time
import urllib.request
from dataclasses import dataclass
from pathlib import Path

from tests.crash.volume import connect, drain_in_order, fill, ping
from tests.support.broker_process import BrokerProcess

KEPT, REMOVED = "kept", "removed"
BODY_BYTES = 5000
SEGMENT_BYTES = 16 << 20
DEADLINE_S = 10.0


@dataclass
class Shrinking:
    """What was measured."""

    live_bytes: int
    full_bytes: int
    disk_bytes: int = 0
    seconds: float = 0.0
    lag_p999_s: float = 0.0
    appended_bytes: int = 0
    copied_bytes: int = 0
    stall_p999_s: float = 0.0
    kept: int = 0
    expected: int = 0

    @property
    def bound_bytes(self) -> int:
        """Return twice the live bytes and three segments."""
        return 2 * self.live_bytes + 3 * SEGMENT_BYTES

    @property
    def holds(self) -> bool:
        """Say whether the disk followed, copying no more than was written, and nothing was lost."""
        return (
            self.disk_bytes <= self.bound_bytes
            and self.copied_bytes <= self.appended_bytes
            and self.kept == self.expected
        )


class LagProbe(threading.Thread):
    """Makes a round trip every few milliseconds and keeps how long each took."""

    def __init__(self, node: BrokerProcess) -> None:
        super().__init__(daemon=True)
        self.node = node
        self.ending = threading.Event()
        self.seconds: list[float] = []

    def run(self) -> None:
        with connect(self.node) as client:
            while not self.ending.wait(0.003):
                began = time.monotonic()
                ping(client)
                self.seconds.append(time.monotonic() - began)

    def p999_s(self) -> float:
        """Return the 99.9th percentile."""
        ordered = sorted(self.seconds)
        return ordered[int(len(ordered) * 0.999)] if ordered else 0.0


def read_metrics(node: BrokerProcess, found: Shrinking) -> None:
    """Take the store's and the loop's own figures from the metrics page."""
    page = f"http://127.0.0.1:{node.prometheus_port}/metrics"
    with urllib.request.urlopen(page, timeout=30) as answer:
        lines = answer.read().decode().splitlines()
    values = dict(line.rsplit(" ", 1) for line in lines if line and not line.startswith("#"))
    found.appended_bytes = int(float(values["burrowmq_store_shared_appended_bytes"]))
    found.copied_bytes = int(float(values["burrowmq_store_shared_copied_bytes"]))
    total = float(values['burrowmq_loop_stall_seconds_bucket{le="+Inf"}'])
    found.stall_p999_s = min(
        float(name.partition('le="')[2].partition('"')[0])
        for name, count in values.items()
        if name.startswith("burrowmq_loop_stall_seconds_bucket") and float(count) >= 0.999 * total
    )


def measure(
    directory: Path, megabytes: int, removed_share: float = 0.75, seed: int = 1
) -> Shrinking:
    """Run the scenario on a fresh node."""
    count = megabytes * 1_000_000 // BODY_BYTES
    source = random.Random(seed)
    place = [REMOVED if source.random() < removed_share else KEPT for _ in range(count)]
    kept = [number for number in range(1, count + 1) if place[number - 1] == KEPT]
    removed = [number for number in range(1, count + 1) if place[number - 1] == REMOVED]
    node = BrokerProcess(directory / "data", is_verified=False)
    try:
        node.start()
        with connect(node) as client:
            for queue in (KEPT, REMOVED):
                client.declare(1, queue, durable=True, arguments={"x-queue-mode": "lazy"})
            fill(client, count, BODY_BYTES, lambda number: place[number - 1])
            client.close()
        found = Shrinking(len(kept) * BODY_BYTES, node.disk_bytes(), expected=len(kept))
        probe = LagProbe(node)
        probe.start()
        with connect(node) as client:
            drain_in_order(client, REMOVED, iter(removed))
            client.close()
        began = time.monotonic()
        while time.monotonic() < began + DEADLINE_S:
            found.disk_bytes, found.seconds = node.disk_bytes(), time.monotonic() - began
            if found.disk_bytes <= found.bound_bytes:
                break
            time.sleep(0.05)
        probe.ending.set()
        probe.join()
        found.lag_p999_s = probe.p999_s()
        read_metrics(node, found)
        with connect(node) as client:
            found.kept = drain_in_order(client, KEPT, iter(kept))
            client.close()
        assert node.stop() == 0
        assert "Traceback" not in node.log_of_this_start(), node.log_of_this_start()[-3000:]
    finally:
        node.kill()
    return found


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--removed", type=float, default=0.75)
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="compaction-", dir=options.directory) as place:
        found = measure(Path(place), options.megabytes, options.removed)
    sys.stdout.write(
        f"full {found.full_bytes / 1e6:.0f} MB, live {found.live_bytes / 1e6:.0f} MB, after"
        f" {found.seconds:.2f} s {found.disk_bytes / 1e6:.0f} MB (bound"
        f" {found.bound_bytes / 1e6:.0f}), copied {found.copied_bytes / 1e6:.0f} MB of"
        f" {found.appended_bytes / 1e6:.0f} appended, loop stall p99.9 <= {found.stall_p999_s * 1000:.0f} ms,"
        f" round trip p99.9 {found.lag_p999_s * 1000:.1f} ms,"
        f" kept {found.kept} of {found.expected}: {'holds' if found.holds else 'MISSED'}\n"
    )
    return 0 if found.holds else 1


if __name__ == "__main__":
    sys.exit(main())
