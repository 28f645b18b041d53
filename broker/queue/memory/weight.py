"""What a queue weighs: an estimate that operators see, cheap enough to be asked of thousands of queues.

No state. Called by the queue.
"""

from __future__ import annotations

from burrowmq.broker.queue.order.levels import Levels

# What objects weigh, as tracemalloc measures it; a message's is that of its header and frames beside the body.
QUEUE_BYTES = 1_420
SERVING_BYTES = 700
LEVEL_BYTES = 610
CONSUMER_BYTES = 600
MESSAGE_BYTES = 200


def weight_of(levels: Levels, consumer_count: int, *, is_serving: bool) -> int:
    """Bytes of a queue's own objects, buffers of the store included, and of what is ready in RAM. O(levels)."""
    own = QUEUE_BYTES + LEVEL_BYTES * len(levels) + CONSUMER_BYTES * consumer_count
    ready = levels.ram_ready_bytes + MESSAGE_BYTES * levels.ram_ready_count
    return own + SERVING_BYTES * is_serving + ready + levels.log_bytes
