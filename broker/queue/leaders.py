"""Which queues another server should lead, so that each leads as many as the others. Owns no state.

Source: rabbit_amqqueue:rebalance, which moves queues from whoever leads most to whoever leads fewest.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Mapping
from typing import TypeVar

from burrowmq.broker.queue.placement import Placement

QueueKey = TypeVar("QueueKey", bound=Hashable)


def moves(placements: Mapping[QueueKey, Placement]) -> dict[QueueKey, str]:
    """The queues to move, each with the server that is to lead it: one of its own that is online.

    Afterwards no queue could move to one that leads two fewer. Queues without a leader stay out of it.
    """
    leaders = {key: each.leader for key, each in placements.items() if each.leader}
    leads = Counter(leaders.values())
    is_even = False
    while not is_even:
        is_even = True
        for key, leader in leaders.items():
            others = [server for server in placements[key].online if server != leader]
            if not others:
                continue
            target = min(others, key=lambda server: (leads[server], server))
            if leads[leader] - leads[target] > 1:  # each such move lowers the sum of squares
                leaders[key] = target
                leads[leader] -= 1
                leads[target] += 1
                is_even = False
    return {key: to for key, to in leaders.items() if to != placements[key].leader}
