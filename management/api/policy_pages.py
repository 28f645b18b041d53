"""/api/burrowmq/pages of policies: the list, each with how many objects it is in force on, and where another wins.

Owns no state. The rows are RabbitMQ's with the two counts in them; they are counted once for a round of samples, a few
queues at a time, since every name is compared with every pattern. Where that would be too much, `outweighed` is null.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Awaitable, Callable
from functools import partial
from typing import Any

from burrowmq.broker import inspect
from burrowmq.broker.rules.policy import PolicyKind
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.management.aio import web
from burrowmq.management.answers.listing import reply_list
from burrowmq.management.answers.reply import Call, Route
from burrowmq.management.answers.turns import ROWS_PER_TURN, pieces

COMPARED_MAX = 200_000
Named = tuple[bool, str]


class Counts:
    """Of one virtual host, by kind and name: where each policy is in force, and where it matches."""

    def __init__(self, *, is_compared: bool) -> None:
        self.is_compared = is_compared
        self.in_force: Counter[Named] = Counter()
        self.matched: Counter[Named] = Counter()

    def add(self, vhost: Vhost, kind: PolicyKind, name: str) -> None:
        """One queue or exchange."""
        now = vhost.policies.effective(kind, name)
        for is_operator, holds in ((False, now.policy), (True, now.operator_policy)):
            if holds is not None:
                self.in_force[is_operator, holds] += 1
            if self.is_compared:
                for policy in vhost.policies.of_kind(is_operator=is_operator).values():
                    self.matched[is_operator, policy.name] += policy.matches(kind, name)


async def _counts(call: Call, vhost: Vhost) -> Counts:
    rules = vhost.policies
    # One that is changed is another object: it is counted at once.
    rivals = (*rules.policies.values(), *rules.operator_policies.values())
    key = ("policies", vhost.name, tuple(map(id, rivals)))
    found: Counts | None = call.rates.derived.get(key)
    if found is None:
        things: list[tuple[PolicyKind, str]] = [
            (vhost.settings.kind(name, queue.arguments), name)
            for name, queue in vhost.queues.items()
        ]
        things += [("exchange", name) for name in vhost.exchanges if name]
        found = Counts(is_compared=len(things) * len(rivals) <= COMPARED_MAX)
        async for piece in pieces(things, ROWS_PER_TURN):
            for kind, name in piece:
                found.add(vhost, kind, name)
        call.rates.derive(key, found)
    return found


async def _list(call: Call, *, is_operator: bool) -> web.Response:
    """The policies of a virtual host, or of all, with what they are in force on."""
    rows = inspect.policies(call.node, call.vhost_or_all(), is_operator=is_operator)
    return await reply_list(call, [await _counted(call, row, is_operator) for row in rows])


async def _counted(call: Call, row: dict[str, Any], is_operator: bool) -> dict[str, Any]:
    vhost = call.node.vhosts.get(row["vhost"])
    if vhost is None or not call.caller.may_see(call.node, row["vhost"]):
        return row
    counts, key = await _counts(call, vhost), (is_operator, row["name"])
    outweighed = counts.matched[key] - counts.in_force[key] if counts.is_compared else None
    return {**row, "in_force": counts.in_force[key], "outweighed": outweighed}


def _routes(prefix: str, *, is_operator: bool) -> tuple[Route, ...]:
    handler: Callable[[Call], Awaitable[web.Response]] = partial(_list, is_operator=is_operator)
    return Route("GET", prefix, handler), Route("GET", f"{prefix}/{{vhost}}", handler)


ROUTES = (
    *_routes("/api/burrowmq/pages/policies", is_operator=False),
    *_routes("/api/burrowmq/pages/operator-policies", is_operator=True),
)
