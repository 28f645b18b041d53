"""Which speed a test runs at where both run side by side (`--both-speeds`): both, or one where it is the same at both.

Called by tests/conftest.py; a run without the option runs everything.
"""

from __future__ import annotations

import os
import zlib

IS_INTERPRETED = os.environ.get("BURROWMQ_PURE", "") not in ("", "0")

# Texts, settings, builds and the programs around the broker: no compiled module has a part in them.
COMPILED_RUN_ONLY = (
    "tests/architecture/",
    "tests/deployment/",
    "tests/packaging/",
    "tests/unit/bench/",
    "tests/unit/config/",
    "tests/unit/differential/",
    "tests/unit/scripts/",
)
# New seeds of the store alone, on a simulated disk: each speed has its own. (test_machine deals out its own seeds.)
ONE_SPEED_EACH = ("tests/simulation/test_commit_log.py",)


def is_left_to_the_other(test: str, *, is_interpreted: bool) -> bool:
    """Say whether a test (its node ID) runs only in the run beside this one."""
    if test.startswith(COMPILED_RUN_ONLY):
        return is_interpreted
    return test.startswith(ONE_SPEED_EACH) and bool(zlib.crc32(test.encode()) & 1) != is_interpreted
