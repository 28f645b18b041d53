"""Expiry: as many messages may expire together as the store still has in memory, where a read of heads answers at once.

Covers: broker/queue/rules/expiry.py
"""

from __future__ import annotations

import sys

import pytest

from burrowmq.broker.queue.rules import expiry
from tests.support.messages import message
from tests.support.queue_bench import QueueBench


def test_more_reads_than_python_has_frames(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(expiry, "HEAD_BATCH", 1)
    count = 2 * sys.getrecursionlimit()
    bench = QueueBench(queue_mode="lazy", message_ttl_ms=1000, dead_letter_exchange="x")
    one = message(b"", persistent=True)
    bench.queue.publish([one] * count, one.flags, 0)
    bench.scheduler.now_ms += 2000
    bench.queue.pump()
    assert (bench.queue.ready_count, len(bench.dead)) == (0, count)
