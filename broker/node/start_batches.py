"""What queues load when the node starts: one batch each, together within a tenth of the memory limit.

State owned: the queues whose first message has not been looked at yet. A queue that got no batch (no room, or bodies
that are not loaded ahead) has a head that may expire nevertheless; those heads are read a few hundred a second, once,
and kept only if they expire. Called by the node at start and by its sweep.

Source: RabbitMQ's guide on classic queues in lazy mode, node startup.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable

from burrowmq.broker.queue.memory.paging import START_BATCH, START_BATCH_BYTES
from burrowmq.broker.queue.queue import Queue

SHARE_OF_MEMORY = 10
"""Batches together take at most the memory limit divided by this."""
MESSAGE_BYTES = 300
"""What a loaded message takes besides its body."""
HEADS_PER_LOOK = 500


class StartBatches:
    """The batches of one start."""

    def __init__(self, memory_limit_bytes: int, embed_below_bytes: int) -> None:
        self._room = memory_limit_bytes // SHARE_OF_MEMORY
        self._embed_below = embed_below_bytes
        self._unseen: deque[Queue] = deque()

    def load(self, queues: Iterable[Queue]) -> None:
        """Ask for the batches; those for which there is no room stay on disk until first use.

        What is more than a queue may have, since a crash gave back what was unacknowledged or dropped, goes now.
        """
        for queue in queues:
            count = min(queue.ready_count, START_BATCH)
            if not count:
                continue
            if queue.is_asleep:
                continue  # it reads what it has when it wakes, and knows that nothing of it expires
            self._unseen.append(queue)
            self._load(queue, count)
            queue.drop_excess()

    def _load(self, queue: Queue, count: int) -> None:
        most = min(queue.ready_bytes, count * self._embed_below, START_BATCH_BYTES)
        room = self._room - count * MESSAGE_BYTES
        if not self._embed_below or room <= 0:
            return
        queue.load_start_batch(min(room, START_BATCH_BYTES))
        self._room -= min(room, most) + count * MESSAGE_BYTES

    def look(self) -> None:
        """Look at the heads of the next few hundred queues; where a batch has loaded the head, nothing is read."""
        for _ in range(min(HEADS_PER_LOOK, len(self._unseen))):
            queue = self._unseen.popleft()
            if not queue.is_deleted:
                queue.look_for_expiry()
