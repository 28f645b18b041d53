"""RamShare: what each queue may keep, by what memory there is."""

from __future__ import annotations

import pytest

from burrowmq.broker.queue.memory.ram_share import MOST_BYTES, QUEUES, RAM_BYTES, RamShare


@pytest.mark.parametrize(
    ("used", "watermark", "expected"),
    [
        (0, 0, RAM_BYTES),
        (0, QUEUES * RAM_BYTES - 1, RAM_BYTES),
        (0, QUEUES * RAM_BYTES * 3, RAM_BYTES * 3),
        (QUEUES * RAM_BYTES * 3 // 2, QUEUES * RAM_BYTES * 3, RAM_BYTES),
        (0, 1 << 50, MOST_BYTES),
    ],
)
def test_more_than_the_least_while_memory_is_left(used: int, watermark: int, expected: int) -> None:
    share = RamShare()
    assert share.queue_bytes == RAM_BYTES
    share.renew(used, watermark)
    assert share.queue_bytes == expected
