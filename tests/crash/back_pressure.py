"""A consumer that stops reading and a publisher that floods must each cost little memory.

State: a node of its own per case. Callers: test_volume (scaled down) and
`python -m tests.crash.back_pressure [--megabytes 1000]`, which prints RSS growth and what was lost.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from pika import spec

from tests.crash.journal import make_body
from tests.crash.load import persistent_publish
from tests.crash.volume import check_in_order, connect, drain_in_order, fill, ping
from tests.support.broker_process import BrokerProcess

QUEUE = "pressed"
BODY_BYTES = 10_000
ALLOWED_GROWTH = 64 << 20


@dataclass
class Growth:
    """What one case cost."""

    case: str
    published_bytes: int
    growth_bytes: int
    seconds: float
    delivered: int
    expected: int

    @property
    def holds(self) -> bool:
        """Say whether the promise held."""
        return self.growth_bytes <= ALLOWED_GROWTH and self.delivered == self.expected


def stalled_consumer(node: BrokerProcess, count: int, mode: str, *, acks: bool) -> Growth:
    """Publish everything past a consumer that reads nothing, then let it read all of it."""
    with connect(node) as consumer, connect(node) as publisher:
        consumer.declare(1, QUEUE, durable=True, arguments={"x-queue-mode": mode})
        consumer.send_method(1, spec.Basic.Consume(queue=QUEUE, no_ack=not acks, consumer_tag="d"))
        consumer.expect(spec.Basic.ConsumeOk)
        before = _rested_rss(node)
        took = fill(publisher, count, BODY_BYTES, lambda _number: QUEUE, window=2000)
        growth = node.peak_rss_bytes() - before
        taken = check_in_order(consumer, range(1, count + 1), acks=acks)
        ping(publisher)
        case = f"stalled consumer, {mode}, {'acks' if acks else 'no_ack'}"
        return Growth(case, count * BODY_BYTES, growth, took, taken, count)


def publisher_flood(node: BrokerProcess, count: int, mode: str) -> Growth:
    """Publish without confirms from one socket as fast as it takes them, then drain."""
    with connect(node) as publisher, connect(node) as consumer:
        consumer.declare(1, QUEUE, durable=True, arguments={"x-queue-mode": mode})
        before = _rested_rss(node)
        began = time.monotonic()
        publisher.socket.settimeout(120)
        for start in range(1, count + 1, 100):
            numbers = range(start, min(start + 100, count + 1))
            publisher.send(
                *(
                    persistent_publish("", QUEUE, make_body(0, number, BODY_BYTES))
                    for number in numbers
                )
            )
        ping(publisher)
        took = time.monotonic() - began
        growth = node.peak_rss_bytes() - before
        taken = drain_in_order(consumer, QUEUE, range(1, count + 1))
        return Growth(f"publisher flood, {mode}", count * BODY_BYTES, growth, took, taken, count)


def other_client_is_served(node: BrokerProcess, during: threading.Thread) -> float:
    """Return the longest round trip of an unconcerned client while the thread runs."""
    longest = 0.0
    with connect(node) as client:
        while during.is_alive():
            began = time.monotonic()
            ping(client)
            longest = max(longest, time.monotonic() - began)
            time.sleep(0.01)
    return longest


def _rested_rss(node: BrokerProcess) -> int:
    node.reset_peak()
    return node.rss_bytes()


Case = Callable[[BrokerProcess, int], Growth]
CASES: tuple[Case, ...] = (
    lambda node, count: stalled_consumer(node, count, "default", acks=False),
    lambda node, count: stalled_consumer(node, count, "lazy", acks=False),
    lambda node, count: publisher_flood(node, count, "default"),
    lambda node, count: publisher_flood(node, count, "lazy"),
)


def measure(directory: Path, megabytes: int, cases: Sequence[Case] = CASES) -> list[Growth]:
    """Run each case on a fresh node."""
    found = []
    for number, case in enumerate(cases):
        node = BrokerProcess(directory / f"node{number}" / "data", is_verified=False)
        try:
            node.start()
            found.append(case(node, megabytes * 1_000_000 // BODY_BYTES))
            assert node.stop() == 0
            assert "Traceback" not in node.log_of_this_start(), node.log_of_this_start()[-3000:]
        finally:
            node.kill()
    return found


def main() -> int:
    """Run from the command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=int, default=1000)
    parser.add_argument("--directory", type=Path, default=None)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="pressure-", dir=options.directory) as place:
        found = measure(Path(place), options.megabytes)
    for growth in found:
        verdict = "holds" if growth.holds else "MISSED"
        sys.stdout.write(
            f"{growth.case}: {growth.published_bytes / 1e6:.0f} MB in {growth.seconds:.1f} s,"
            f" RSS +{growth.growth_bytes / (1 << 20):.1f} MiB,"
            f" {growth.delivered} of {growth.expected} delivered in order: {verdict}\n"
        )
    return 0 if all(growth.holds for growth in found) else 1


if __name__ == "__main__":
    sys.exit(main())
