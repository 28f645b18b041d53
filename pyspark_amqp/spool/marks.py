"""What a task leaves beside its piece when the broker has handled its acknowledgement.

    ""                                                  nothing that is not in the plan
    {"cut_at": 60, "redelivered": 12, "left_out": 3}    what there is to say, JSON; names may be missing

Most marks are empty, so that who lists a batch's files knows from their sizes which of them to read.

Owns no state. Called by the tasks, and where a batch's outcome is looked at.
"""

from __future__ import annotations

import json
from typing import NamedTuple, Self


class Mark(NamedTuple):
    """What a task has to say."""

    cut_at: int | None = None
    """How many messages it took before it stopped at its limit of octets; None: it did not."""
    redelivered_count: int = 0
    """Messages that the broker had delivered before."""
    left_out_count: int = 0
    """Messages that were in files in doubt, and acknowledged without a row."""

    def octets(self) -> bytes:
        """Return the mark's content."""
        counts = {"redelivered": self.redelivered_count, "left_out": self.left_out_count}
        told: dict[str, int] = {name: count for name, count in counts.items() if count}
        if self.cut_at is not None:
            told["cut_at"] = self.cut_at
        return json.dumps(told).encode() if told else b""

    @classmethod
    def read(cls, octets: bytes) -> Self:
        """Return what a mark says. Raises: ValueError, TypeError."""
        found = json.loads(octets) if octets else {}
        if not isinstance(found, dict):
            raise TypeError("no JSON object")
        cut_at = found.get("cut_at")
        return cls(
            None if cut_at is None else int(cut_at),
            int(found.get("redelivered", 0)),
            int(found.get("left_out", 0)),
        )
