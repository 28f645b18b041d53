"""Which speed a test runs at where both run side by side (`--both-speeds`): both, or one of them where that is the same.

Called by tests/conftest.py; a run without the option runs everything.
"""

from __future__ import annotations

import os
import zlib

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


# Seeds, and places at which a disk or a process fails, simulated or real, of which any are as good as others: half of the
# cases at each speed. That both pack the same records is a matter of tests/property.
SHARED_OUT = ("tests/simulation/", "tests/crash/")
AT_BOTH = (
    "tests/simulation/test_machine.py",
)  # it shares out its own seeds; kept plans run at both


def is_left_to_the_other(test: str, *, is_interpreted: bool) -> bool:
    """Say whether a test (its node ID) runs only in the run beside this one."""
    if test.startswith(SHARED_OUT) and not test.startswith(AT_BOTH):
        return zlib.crc32(test.encode()) % 2 != is_interpreted
    return is_interpreted and test.startswith(COMPILED_RUN_ONLY)
