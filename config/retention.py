"""How long the management keeps samples: `management.sample_retention_policies.SECTION.AGE = EVERY`, both in seconds.

Owns no state; called by `compose`. AGE may be minute, hour or day. A section without keys has RabbitMQ's defaults,
which the management knows. Source: the schema of rabbitmq_management.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from burrowmq.config import units
from burrowmq.config.errors import ConfigError, Problem
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


def retention(values: Mapping[str, Any], section: str) -> tuple[tuple[int, int], ...]:
    """Return (age, every) pairs of a section, the shortest first. Raises: ConfigError for an age that is none."""
    found = {}
    for key, every_s in values.items():
        if not key.startswith(f"{PREFIX}{section}."):
            continue
        word = key.rpartition(".")[2]
        age_s = AGES_S.get(word) or (int(word) if word.isascii() and word.isdigit() else 0)
        if not 0 < age_s <= AGE_MAX_S:
            reason = f"not an age: minute, hour, day or seconds up to {AGE_MAX_S}"
            raise ConfigError((Problem(source="configuration", line=0, key=key, reason=reason),))
        found[age_s] = int(every_s)
    return tuple(sorted(found.items()))
