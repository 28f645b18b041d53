"""How long a test waits for what a machine with enough processors does at once.

`BURROWMQ_TEST_PATIENCE=40` makes each such time forty times as long, for a run that others leave little processor
(`chrt -i 0`). Callers: what waits for a process: the wire client, the broker process, the kill cycles.
"""

from __future__ import annotations

import os


def patient(seconds: float) -> float:
    """Return how long to wait here for what should take less than that."""
    return seconds * float(os.environ.get("BURROWMQ_TEST_PATIENCE", "1"))
