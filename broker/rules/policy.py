"""Policies: which one applies to a queue or exchange, and what it says.

At most one policy and one operator policy apply to an entity: the matching one with the highest priority, of several
the first by name. Their definitions merge key by key (the lower limit, the operator's word for the rest); how the
result meets the entity's own arguments is `broker.queue.rules.settings`' business. A policy with a key that queues of a
type do not know does not match a queue of that type at all. `PolicySet` belongs to one vhost and owns its policies; it
remembers which policy applies to which queue until policies change, because a list of many queues asks for every row;
who is asked about a name is the business of `policy_index`. What may stand in a policy is that of
`broker.rules.parameter_rules`.

Source: RabbitMQ's rabbit_policy, rabbit_policies, rabbit_policy_merge_strategy.
"""

from __future__ import annotations

from dataclasses import field
from typing import TYPE_CHECKING, Literal

from burrowmq.broker.rules.pattern import Pattern, compile_pattern
from burrowmq.broker.rules.policy_index import PolicyIndex
from burrowmq.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Mapping

PolicyValue = str | int | float | bool
ApplyTo = Literal["all", "queues", "exchanges", "classic_queues", "quorum_queues", "streams"]
PolicyKind = Literal["queue", "quorum", "was_classic", "stream", "exchange"]
"""What a policy is asked about: a classic queue, a quorum queue, one that was declared as a classic one, and so on."""

FOREIGN_TO_CLASSIC = frozenset(
    {
        "max-age",
        "stream-max-segment-size-bytes",
        "queue-leader-locator",
        "initial-cluster-size",
        "delivery-limit",
        "dead-letter-strategy",
        "max-in-memory-length",
        "max-in-memory-bytes",
        "target-group-size",
    }
)
FOREIGN_TO_QUORUM = frozenset(
    {
        "max-priority",
        "queue-mode",
        "single-active-consumer",
        "ha-mode",
        "ha-params",
        "ha-sync-mode",
        "ha-promote-on-shutdown",
        "ha-promote-on-failure",
        "queue-master-locator",
        "max-age",
        "stream-max-segment-size-bytes",
        "initial-cluster-size",
    }
)
FOREIGN_TO_STREAMS = frozenset(
    {
        "expires",
        "message-ttl",
        "dead-letter-exchange",
        "dead-letter-routing-key",
        "dead-letter-strategy",
        "max-length",
        "max-in-memory-length",
        "max-in-memory-bytes",
        "max-priority",
        "overflow",
        "queue-mode",
        "single-active-consumer",
        "delivery-limit",
        "ha-mode",
        "ha-params",
        "ha-sync-mode",
        "ha-promote-on-shutdown",
        "ha-promote-on-failure",
        "queue-master-locator",
        "target-group-size",
    }
)
# When both kinds of policy have one of these keys, the lower value holds; for other keys the operator's does.
LOWER_HOLDS = frozenset(
    {
        "expires",
        "message-ttl",
        "max-length",
        "max-length-bytes",
        "max-in-memory-length",
        "max-in-memory-bytes",
        "delivery-limit",
    }
)
_APPLIES: dict[PolicyKind, frozenset[str]] = {
    "queue": frozenset({"all", "queues", "classic_queues"}),
    "quorum": frozenset({"all", "queues", "quorum_queues"}),
    "was_classic": frozenset({"all", "queues", "classic_queues", "quorum_queues"}),
    "stream": frozenset({"all", "queues", "streams"}),
    "exchange": frozenset({"all", "exchanges"}),
}
_FOREIGN: dict[PolicyKind, frozenset[str]] = {
    "queue": FOREIGN_TO_CLASSIC,
    "quorum": FOREIGN_TO_QUORUM,
    # What it was declared with says that it may have either kind of policy: with mirroring went limits, and still do.
    "was_classic": FOREIGN_TO_CLASSIC & FOREIGN_TO_QUORUM,
    "stream": FOREIGN_TO_STREAMS,
    "exchange": frozenset(),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Policy:
    """One policy of a vhost, ordinary or operator."""

    name: str
    pattern: str
    definition: Mapping[str, PolicyValue]
    apply_to: ApplyTo = "all"
    priority: int | float = 0
    regex: Pattern = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "regex", compile_pattern(self.pattern))

    def matches(self, kind: PolicyKind, name: str) -> bool:
        """Whether the policy is about this entity."""
        if self.apply_to not in _APPLIES[kind]:
            return False
        if not _FOREIGN[kind].isdisjoint(self.definition):
            return False
        return self.regex.is_in(name)

    def may_match(self, name: str) -> bool:
        """Whether it is about an entity of that name, of whatever kind."""
        return self.regex.is_in(name)


@dataclass(frozen=True, slots=True, kw_only=True)
class EffectivePolicy:
    """What applies to one entity."""

    policy: str | None = None
    operator_policy: str | None = None
    definition: Mapping[str, PolicyValue] = field(default_factory=dict)


NO_POLICY = EffectivePolicy()
REMEMBERED_MAX = 65_536


class PolicySet:
    """The policies of one vhost."""

    def __init__(self) -> None:
        self.policies: dict[str, Policy] = {}
        self.operator_policies: dict[str, Policy] = {}
        self.remembered: dict[tuple[PolicyKind, str], EffectivePolicy] = {}
        """What applies to which queue."""
        self._indexes: list[PolicyIndex[Policy]] = []  # of both kinds; none: they have changed
        self._merged: dict[tuple[str | None, str | None], EffectivePolicy] = {}

    def of_kind(self, *, is_operator: bool) -> dict[str, Policy]:
        """The policies, or operator policies, by name; who changes the dictionary calls `changed`."""
        return self.operator_policies if is_operator else self.policies

    def changed(self) -> None:
        """Policies came, went or changed."""
        self.remembered.clear()
        self._merged.clear()
        self._indexes = []

    def forget(self, kind: PolicyKind, name: str) -> None:
        """A queue of that name is deleted; harmless if nothing was asked about it."""
        remembered = self.remembered
        if remembered:
            remembered.pop((kind, name), None)
            if not remembered:
                remembered.clear()  # an emptied table keeps its room

    def effective(self, kind: PolicyKind, name: str) -> EffectivePolicy:
        """What applies to an entity of that name."""
        if not self.policies and not self.operator_policies:
            return NO_POLICY
        if kind == "exchange":  # which knows its policy itself
            return self._find(kind, name)
        found = self.remembered.get((kind, name))
        if found is None:
            if len(self.remembered) >= REMEMBERED_MAX:
                self.remembered.clear()
            found = self.remembered[(kind, name)] = self._find(kind, name)
        return found

    def _find(self, kind: PolicyKind, name: str) -> EffectivePolicy:
        if not self._indexes:
            both = self.policies, self.operator_policies
            self._indexes = [PolicyIndex(each.values()) for each in both]
        policy, operator = (_first(index, kind, name) for index in self._indexes)
        if policy is None and operator is None:
            return NO_POLICY
        names = policy.name if policy else None, operator.name if operator else None
        merged = self._merged.get(names)
        if merged is None:
            merged = self._merged[names] = EffectivePolicy(
                policy=names[0],
                operator_policy=names[1],
                definition=merge(
                    policy.definition if policy else {}, operator.definition if operator else {}
                ),
            )
        return merged


def merge(
    policy: Mapping[str, PolicyValue], operator: Mapping[str, PolicyValue]
) -> dict[str, PolicyValue]:
    """The definition in force where both kinds of policy apply."""
    merged = dict(policy)
    for key, value in operator.items():
        mine = merged.get(key)
        if key in LOWER_HOLDS and isinstance(mine, int) and isinstance(value, int) and mine < value:
            continue
        merged[key] = value
    return merged


def _first(index: PolicyIndex[Policy], kind: PolicyKind, name: str) -> Policy | None:
    return next((policy for policy in index.possible(name) if policy.matches(kind, name)), None)
