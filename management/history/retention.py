"""How long samples are kept, from the configuration and as the API shows it.

Owns no state. RabbitMQ's keys are `management.sample_retention_policies.SECTION.AGE = EVERY`, both in seconds, AGE
also as minute, hour or day; a section with keys replaces its defaults. What is kept of virtual hosts and the node
follows `global`, of other objects `basic`; `detailed` (of a channel with an exchange or queue) is shown only: nothing
is kept for it. Source: rabbit_mgmt_wm_overview.
"""

from __future__ import annotations

from collections.abc import Callable

from burrowmq.management.history.timeline import DETAILED, Policies

# An age within a tenth of a round number is shown as that number, any other as 0: pages make their choices from them.
ROUND_S = (60, 600, 3600, 28_800, 86_400)


def shown(policies: Callable[[bool], Policies]) -> dict[str, list[int]]:
    """The ages of each section in seconds, as overview has them; `policies` of what is whole, and of other objects."""
    return {
        "global": sorted(_rounded(age_s) for age_s, _ in policies(True)),
        "basic": sorted(_rounded(age_s) for age_s, _ in policies(False)),
        "detailed": [_rounded(age_s) for age_s, _ in DETAILED],
    }


def _rounded(age_s: int) -> int:
    if age_s <= ROUND_S[0]:
        return ROUND_S[0]
    return next((each for each in ROUND_S if each * 0.9 <= age_s <= each * 1.1), 0)
