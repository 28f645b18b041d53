"""How many bytes of bodies a queue may keep in RAM: more than the least while the node has memory to spare.

A queue of large bodies that is consumed as fast as it is filled is soon too long for the least, and from its first
message on disk on it has all that follow there, too, until its consumer has caught up: each body is then written and
read, which costs more than all else that is done with it. What is kept beyond the least a queue has to consume within
two seconds, at the pace of late (`memory.paging`).

State owned: the figure. The node's monitor renews it whenever it looks at its memory; all queues of a node share it.
Never below `RAM_BYTES`; above it only while less than half of what the memory alarm allows is in use, so that very many
long queues stay below that together, but for what comes between two looks.
"""

from __future__ import annotations

from typing import Final

RAM_BYTES: Final = 16 << 20
"""The least, and what is kept however slowly a queue is consumed."""
MOST_BYTES: Final = 128 << 20
QUEUES: Final = 32
"""So many queues may use what the memory alarm allows."""


class RamShare:
    """That of each queue of a node."""

    def __init__(self) -> None:
        self.queue_bytes = RAM_BYTES

    def renew(self, used_bytes: int, watermark_bytes: int) -> None:
        """So much memory is used; the alarm goes on at the watermark."""
        self.queue_bytes = RAM_BYTES
        if used_bytes < watermark_bytes // 2:
            self.queue_bytes = max(RAM_BYTES, min(MOST_BYTES, watermark_bytes // QUEUES))
