"""Which speed a test runs at where both run side by side (`--both-speeds`): both, or compiled only where that is the same.

Called by tests/conftest.py; a run without the option runs everything.
"""

from __future__ import annotations

import os

IS_INTERPRETED = os.environ.get("BURROWMQ_PURE", "") not in ("", "0")

# Texts, settings, builds, pages in a browser and the programs around the broker: no compiled module has a part in them.
COMPILED_RUN_ONLY = (
    "tests/architecture/",
    "tests/browser/",
    "tests/deployment/",
    "tests/packaging/",
    "tests/unit/bench/",
    "tests/unit/config/",
    "tests/unit/differential/",
    "tests/unit/pyspark_amqp/",
    "tests/unit/scripts/",
)


def is_left_to_the_other(test: str, *, is_interpreted: bool) -> bool:
    """Say whether a test (its node ID) runs only in the run beside this one."""
    return is_interpreted and test.startswith(COMPILED_RUN_ONLY)
