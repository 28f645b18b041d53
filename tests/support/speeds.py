"""Which speed a test runs at where both run side by side (`--both-speeds`): both, or one where it is the same at both.

Called by tests/conftest.py; a run without the option runs everything.
"""

from __future__ import annotations

import os
import re
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
# The store alone, on a simulated disk: of its seeds and cases each speed has its own. All that can differ there are the
# packers of records, which tests/unit/storage/record holds to the same octets. (test_machine deals out its own seeds.)
ONE_SPEED_EACH = (
    "tests/property/storage/test_message_store_crash.py",
    "tests/simulation/test_acks.py",
    "tests/simulation/test_commit_log.py",
    "tests/simulation/test_conversion_cuts.py",
    "tests/simulation/test_failing_calls.py",
    "tests/simulation/test_io_errors.py",
    "tests/simulation/test_power_cuts.py",
    "tests/simulation/test_recovered_twice.py",
    "tests/simulation/test_refused_queues.py",
)
# What tests/crash does to a node without a commit log, at both speeds, and to one with a log once more.
WITH_A_LOG = re.compile(
    r"^tests/crash/.*(\[on|-on|with a commit log)\b|^tests/crash/test_commit_log"
)


def is_left_to_the_other(test: str, *, is_interpreted: bool) -> bool:
    """Say whether a test (its node ID) runs only in the run beside this one."""
    if test.startswith(COMPILED_RUN_ONLY):
        return is_interpreted
    is_dealt = test.startswith(ONE_SPEED_EACH) or WITH_A_LOG.match(test) is not None
    return is_dealt and bool(zlib.crc32(test.encode()) & 1) != is_interpreted
