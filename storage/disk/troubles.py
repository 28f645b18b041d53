"""What the disk refuses of single queues on the disk thread: acks and messages to write. It is tried again and again.

A write of one queue's file that is refused (and not for want of room) concerns that queue: what it was for stays in
memory (messages: `storage.disk.refusals`) and is due again after a pause that doubles. State: the queues in trouble, by
kind, and when each is due. Called by the writer; `tell` gets (queue id, kind, reason), once when it begins and once,
with an empty reason, when it ends.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from burrowmq.records import dataclass
from burrowmq.storage import real_time as time
from burrowmq.storage.errors import StorageError, refused_for_now

ACKING: Final = "acknowledging"
WRITING: Final = "writing"
LONGEST_PAUSE_S: Final = 5.0


def _nobody(_: int, __: str, ___: str) -> None:
    return None


@dataclass(slots=True)
class _Trouble:
    count: int = 0
    due: float = 0.0


class Troubles:
    """Those of all open queues."""

    def __init__(self) -> None:
        self.tell: Callable[[int, str, str], None] = _nobody
        self.first_pause_s = 0.0
        self._found: dict[tuple[int, str], _Trouble] = {}

    def __len__(self) -> int:
        return len(self._found)

    def note(self, queue_id: int, kind: str, error: StorageError) -> None:
        """The disk refused it, again or for the first time."""
        trouble = self._found.setdefault((queue_id, kind), _Trouble())
        if not trouble.count:
            self.tell(queue_id, kind, refused_for_now(error))
        pause = min(self.first_pause_s * 2**trouble.count, LONGEST_PAUSE_S)
        trouble.count = min(trouble.count + 1, 16)
        trouble.due = time.monotonic() + pause

    def is_waiting(self, queue_id: int, kind: str) -> bool:
        """Whether it was refused and is not due yet."""
        trouble = self._found.get((queue_id, kind))
        return trouble is not None and time.monotonic() < trouble.due

    def end(self, queue_id: int, kind: str) -> None:
        """It went well."""
        if self._found and self._found.pop((queue_id, kind), None) is not None:
            self.tell(queue_id, kind, "")

    def forget(self, queue_id: int) -> None:
        """The queue is gone."""
        for kind in (ACKING, WRITING):
            self._found.pop((queue_id, kind), None)
