"""Policies, parameters, limits and topic permissions as rows.

Owns no state. Keys are those of RabbitMQ's HTTP API; `definition` and `value` are JSON values. There may be very many:
a row is made when it is asked for, if what it is about is still there.
Source: rabbit_policy:list, rabbit_runtime_parameters:list, rabbit_mgmt_format (3.13).
"""

from __future__ import annotations

from collections.abc import Iterator

from burrowmq.broker.inspect.queues import each_vhost
from burrowmq.broker.inspect.values import Row
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.rules.policy import Policy
from burrowmq.broker.vhost.vhost import Vhost


def policies(
    node: RunningNode, vhost: str | None = None, *, is_operator: bool = False
) -> Iterator[Row]:
    """Policies or operator policies, by vhost and name."""
    for owner in each_vhost(node, vhost):
        found = owner.policies.of_kind(is_operator=is_operator)
        for name in sorted(found):
            if name in found:
                yield policy_row(owner.name, found[name])


def policy_row(vhost: str, policy: Policy) -> Row:
    """One policy."""
    return {
        "vhost": vhost,
        "name": policy.name,
        "pattern": policy.pattern,
        "apply-to": policy.apply_to,
        "definition": dict(policy.definition),
        "priority": policy.priority,
    }


def parameters(
    node: RunningNode, vhost: str | None = None, component: str | None = None
) -> Iterator[Row]:
    """Operator policies and limits under their parameter names; policies only for whoever asks for that component."""
    for owner in each_vhost(node, vhost):
        if owner.limits and component in (None, "vhost-limits"):
            yield _row(owner.name, "vhost-limits", "limits", dict(owner.limits))
        if component == "policy":
            yield from _of_policies(node, owner.name, component)
        if component in (None, "operator_policy"):
            yield from _of_policies(node, owner.name, "operator_policy")
        for each in sorted(owner.component_values):
            if component in (None, each):
                yield from _of_component(owner, each)


def _of_policies(node: RunningNode, vhost: str, component: str) -> Iterator[Row]:
    for row in policies(node, vhost, is_operator=component == "operator_policy"):
        value = {key: row[key] for key in ("pattern", "definition", "priority", "apply-to")}
        yield _row(vhost, component, row["name"], value)


def _of_component(owner: Vhost, component: str) -> Iterator[Row]:
    values = owner.component(component)
    for name in sorted(values):
        if name in values:
            yield _row(owner.name, component, name, values[name])


def _row(vhost: str, component: str, name: str, value: object) -> Row:
    return {"value": value, "vhost": vhost, "component": component, "name": name}


def global_parameters(node: RunningNode) -> Iterator[Row]:
    """Those that were set, and the cluster's name if it was."""
    values = node.parameters.values
    return ({"name": name, "value": values[name]} for name in sorted(values) if name in values)


def vhost_limits(node: RunningNode, vhost: str | None = None) -> Iterator[Row]:
    """Vhosts that have limits."""
    for owner in each_vhost(node, vhost):
        if owner.limits:
            yield {"vhost": owner.name, "value": dict(owner.limits)}


def user_limits(node: RunningNode, user: str | None = None) -> Iterator[Row]:
    """Users who have limits."""
    known = node.auth.users
    for name in sorted(known) if user is None else [user]:
        if name in known and known[name].limits:
            yield {"user": name, "value": dict(known[name].limits)}


def each_topic_permission(
    node: RunningNode,
    vhost: str | None = None,
    user: str | None = None,
    exchange: str | None = None,
) -> Iterator[Row]:
    """Which routing keys a user may use with which exchange."""
    granted = node.auth.topic_permissions
    for owner, name in node.auth.granted.in_order(vhost, user):
        found = granted.get((owner, name), {})
        for target in sorted(found) if exchange is None else [exchange]:
            if target in found:
                each = found[target]
                yield {
                    "user": name,
                    "vhost": owner,
                    "exchange": target,
                    "write": each.write,
                    "read": each.read,
                }


def topic_permissions(
    node: RunningNode,
    vhost: str | None = None,
    user: str | None = None,
    exchange: str | None = None,
) -> list[Row]:
    """The same, of a user or of a virtual host, who have few."""
    return list(each_topic_permission(node, vhost, user, exchange))
