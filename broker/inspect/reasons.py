"""Why a queue's settings are what they are: which of argument, policy and operator policy holds, and what it overrules.

Owns no state. `broker.rules.policy.merge` and `broker.queue.rules.settings.compute` decide; this tells the same story
key by key, and a test compares the two. Called by the UI's page of a queue.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from burrowmq.broker.inspect.values import Row, plain
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.queue.rules.settings import PRIORITY_MAX, Settings
from burrowmq.broker.rules.policy import LOWER_HOLDS
from burrowmq.broker.vhost.vhost import Vhost

# Of several words for a setting, which holds: the lower one, the argument's or the policies'; or there is only one.
LOWER, ARGUMENT, POLICY, ALONE = "lower", "argument", "policy", "alone"
RULES: dict[str, dict[str, str]] = {
    "classic": {
        "message-ttl": LOWER,
        "expires": LOWER,
        "max-length": LOWER,
        "max-length-bytes": LOWER,
        "consumer-timeout": LOWER,
        "overflow": ARGUMENT,
        "dead-letter-exchange": ARGUMENT,
        "dead-letter-routing-key": ARGUMENT,
        "queue-mode": ARGUMENT,
        "queue-version": ARGUMENT,
        "max-priority": ALONE,
        "single-active-consumer": ALONE,
    },
    "quorum": {
        "message-ttl": LOWER,
        "expires": POLICY,
        "max-length": LOWER,
        "max-length-bytes": LOWER,
        "consumer-timeout": LOWER,
        "delivery-limit": LOWER,
        "overflow": POLICY,
        "dead-letter-exchange": ARGUMENT,
        "dead-letter-routing-key": ARGUMENT,
        "dead-letter-strategy": ARGUMENT,
        "single-active-consumer": ALONE,
        "quorum-initial-group-size": ALONE,
    },
    "stream": {
        "max-age": POLICY,
        "max-length-bytes": POLICY,
        "consumer-timeout": LOWER,
        "initial-cluster-size": POLICY,
    },
}
LIMITS = frozenset(
    {
        "message-ttl",
        "expires",
        "max-length",
        "max-length-bytes",
        "consumer-timeout",
        "delivery-limit",
    }
)
MANY_PRIORITIES = 10


def settings(vhost: Vhost, queue: QueuePort) -> list[Row]:
    """Each setting in force: `key`, `value`, `source`, the policy's `name`, and what was `overruled` by it."""
    effective = vhost.effective_policy(queue)
    policies, operators = vhost.policies.policies, vhost.policies.operator_policies
    policy = policies.get(effective.policy or "")
    operator = operators.get(effective.operator_policy or "")
    rows = []
    for key, rule in RULES[queue.kind].items():
        given = [_given("argument", "", queue.arguments.get(f"x-{key}"))]
        if rule != ALONE:
            given.append(
                _given("policy", policy.name, policy.definition.get(key)) if policy else None
            )
            given.append(
                _given("operator policy", operator.name, operator.definition.get(key))
                if operator
                else None
            )
        row = _strongest(key, rule, given)
        if row is not None:
            rows.append(row)
    return rows


def defaults(vhost: Vhost, queue: QueuePort, consumer_timeout_ms: int | None) -> list[Row]:
    """What nobody said anything of, and what holds then: `key` and `value`, None for nothing."""
    said = {row["key"] for row in settings(vhost, queue)}
    now = queue.settings
    values = {
        "message-ttl": now.message_ttl_ms,
        "expires": now.expires_ms,
        "max-age": now.max_age_ms,
        "max-length": now.max_length,
        "max-length-bytes": now.max_length_bytes,
        "delivery-limit": now.delivery_limit,
        "overflow": now.overflow,
        "dead-letter-exchange": now.dead_letter_exchange,
        "dead-letter-strategy": "at-least-once" if now.is_at_least_once else "at-most-once",
        "queue-mode": now.mode,
        "queue-version": now.version,
        "consumer-timeout": consumer_timeout_ms,
        "max-priority": now.max_priority,
        "single-active-consumer": now.single_active_consumer,
    }
    known = RULES[queue.kind].keys() - said
    return [{"key": key, "value": value} for key, value in values.items() if key in known]


def _given(source: str, name: str, value: Any) -> Row | None:
    return None if value is None else {"source": source, "name": name, "value": plain(value)}


def _strongest(key: str, rule: str, given: list[Row | None]) -> Row | None:
    """The one that holds, of argument, policy and operator policy."""
    argument, *others = given
    rows = [each for each in given if each is not None]
    if not rows:
        return None
    policy, operator = others or (None, None)
    holds = operator if operator is not None else policy
    if policy and operator and key in LOWER_HOLDS and policy["value"] < operator["value"]:
        holds = policy
    if argument and (
        holds is None or rule == ARGUMENT or (rule == LOWER and argument["value"] <= holds["value"])
    ):
        holds = argument
    assert holds is not None
    return {"key": key, **holds, "overruled": [row for row in rows if row is not holds]}


def _above_the_operators(vhost: Vhost, queue: QueuePort) -> Iterator[str]:
    for row in settings(vhost, queue):
        if row["source"] != "operator policy" or row["key"] not in LIMITS:
            continue
        for other in row["overruled"]:
            if other["value"] == row["value"]:
                continue  # they agree
            who = (
                "The declaration" if other["source"] == "argument" else f"Policy '{other['name']}'"
            )
            yield (
                f"{who} asks for {row['key']} {other['value']}: the operator policy '{row['name']}'"
                f" allows {row['value']}."
            )


def warnings(vhost: Vhost, queue: QueuePort) -> list[str]:
    """Settings that fight each other, or do what hardly anybody means."""
    found, now = [*_above_the_operators(vhost, queue)], queue.settings
    target = now.dead_letter_exchange
    if target and target not in vhost.exchanges:
        found.append(
            f"The dead-letter exchange '{target}' does not exist: what is dead-lettered is dropped."
        )
    if now.message_ttl_ms == 0:
        found.append("A message TTL of 0 drops every message that no consumer takes at once.")
    if now.max_length == 0 or now.max_length_bytes == 0:
        found.append("A maximum length of 0 lets no message wait.")
    if queue.kind == "quorum":
        found += _of_quorum(now)
    elif now.overflow == "reject-publish-dlx" and target is None:
        found.append("reject-publish-dlx has no dead-letter exchange to send to.")
    if now.overflow != "drop-head" and now.max_length is None and now.max_length_bytes is None:
        found.append(f"{now.overflow} has no effect without a maximum length.")
    if (now.max_priority or 0) > MANY_PRIORITIES:
        found.append(
            f"{now.max_priority} priorities of at most {PRIORITY_MAX} cost memory each; a few do nearly always."
        )
    return found


def _of_quorum(now: Settings) -> Iterator[str]:
    if now.overflow == "reject-publish-dlx":
        yield "A quorum queue takes reject-publish-dlx for drop-head."
    if now.is_at_least_once and now.dead_letter_exchange is None:
        yield "The dead-letter strategy has no effect without a dead-letter exchange."
    elif now.is_at_least_once and now.overflow != "reject-publish":
        yield "At-least-once needs the overflow reject-publish: dead letters go at most once."
