"""What the journals of all queues of version 1 share.

State: the memory that they take together. Made with the store's context, which every queue is opened from, whatever its
version; so it stands outside of `storage.queue.v1`, which is loaded for queues that need it.
"""

from __future__ import annotations

from burrowmq.records import dataclass


@dataclass(slots=True)
class JournalLimits:
    """What the journals of all queues share: their limits, and the memory that they take together."""

    max_entries: int = 32_768  # in one journal
    max_bytes: int = 32 * 1024 * 1024  # of memory for the runs of all journals
    run_bytes: int = 16 * 1024  # a run of this size goes to the segment file at once
    direct_bytes: int = 64 * 1024 * 1024  # after so many bytes that went there a journal has to go
    used_bytes: int = 0  # of memory, now

    def weigh(self, change: int) -> None:
        """A queue's runs take so much more memory, or less."""
        self.used_bytes += change
