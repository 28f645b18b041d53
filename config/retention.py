"""How long the management keeps samples: `management.sample_retention_policies.SECTION.AGE = EVERY`, both in seconds.

Owns no state; called by `reading`, which checks the keys, and `compose`. AGE may be minute, hour or day. A section
without keys has RabbitMQ's defaults, which the management knows. Source: the schema of rabbitmq_management.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burrowmq.config import units
from burrowmq.config.option import Option

PREFIX = "management.sample_retention_policies."
SECTIONS = ("global", "basic", "detailed")
AGES_S = {"minute": 60, "hour": 3600, "day": 86_400}
AGE_MAX_S = 31 * 86_400

OPTIONS = (
    Option(f"{PREFIX}global.$age", units.integer(1), None,
           "Samples of the node and of virtual hosts: one each so many seconds for `$age` seconds (or `minute`, `hour`,"
           " `day`). Any such key replaces the defaults (docs/management-history.md)."),
    Option(f"{PREFIX}basic.$age", units.integer(1), None, "The same for queues, exchanges, connections and channels."),
    Option(f"{PREFIX}detailed.$age", units.integer(1), None, "Of pairs of these; read, and nothing is kept."),
)  # fmt: skip


def check(key: str) -> None:
    """Refuse a key whose age is none; any other key passes. Raises ValueError."""
    if key.startswith(PREFIX) and not 0 < _age_s(key) <= AGE_MAX_S:
        raise ValueError(f"not an age: minute, hour, day or seconds up to {AGE_MAX_S}")


def retention(values: Mapping[str, Any], section: str) -> tuple[tuple[int, int], ...]:
    """Return (age, every) pairs of a section, the shortest first; the keys have passed `check`."""
    found = {
        _age_s(key): int(every_s)
        for key, every_s in values.items()
        if key.startswith(f"{PREFIX}{section}.")
    }
    return tuple(sorted(found.items()))


def _age_s(key: str) -> int:
    word = key.rpartition(".")[2]
    # Nobody's age has more digits than that, and Python refuses to read some thousand of them.
    is_number = word.isascii() and word.isdigit() and len(word) <= len(str(AGE_MAX_S))
    return AGES_S.get(word) or (int(word) if is_number else 0)
