"""What the disk side counts since the start: one object, which everybody there adds to and `Writer.stats` reads.

State owned: the counts. Each field is added to by one thread only, because adding is no single step: `lost_in_reads`
and `scrub_renewed` by the reader thread, all others by the disk thread. Read by any thread.
"""

from __future__ import annotations

from dataclasses import field

from burrowmq.records import dataclass
from burrowmq.storage.disk.histogram import (
    COMMIT_EDGES_BYTES,
    SYNC_EDGES_S,
    Histogram,
    Spread,
)


@dataclass(slots=True)
class Counters:
    """Counts since the start."""

    commits: int = 0
    syncs: int = 0
    elided: int = 0  # messages that were acked before they were written
    written: int = 0
    lost: int = 0  # messages that a rewrite could not read
    lost_in_reads: int = 0  # messages that a read could not read
    scrub_found: int = 0  # damaged messages that the scrubber found
    scrub_repaired: int = 0  # copies of acks that it found damaged, and that were written again
    scrub_renewed: int = 0  # commit logs that it found damaged, and that were begun anew
    set_aside: int = 0  # damaged messages whose bytes were kept in quarantine
    rewritten: int = 0  # stores of one queue written anew without their dead messages
    rescues: int = 0  # syncs that failed, and whose messages were written elsewhere
    converted_segments: int = 0
    sync_s: Histogram = field(default_factory=lambda: Histogram(SYNC_EDGES_S))
    commit_bytes: Histogram = field(default_factory=lambda: Histogram(COMMIT_EDGES_BYTES))

    def spreads(self) -> dict[str, Spread]:
        """How long syncs took, and how large commits were."""
        return {"sync_s": self.sync_s.spread(), "commit_bytes": self.commit_bytes.spread()}

    def stats(self) -> dict[str, int]:
        """Give them by the names that metrics use; what is lost is lost, whoever found it."""
        return {
            "commits": self.commits,
            "syncs": self.syncs,
            "elided": self.elided,
            "written": self.written,
            "lost": self.lost + self.lost_in_reads + self.scrub_found,
            "set_aside": self.set_aside,
            "scrub_found": self.scrub_found,
            "scrub_repaired": self.scrub_repaired + self.scrub_renewed,
            "rewritten": self.rewritten,
            "rescues": self.rescues,
            "converted_segments": self.converted_segments,
        }
