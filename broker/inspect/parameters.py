"""Policies, parameters, limits and topic permissions as rows.

Owns no state. Keys are those of RabbitMQ's HTTP API; `definition` and `value` are JSON values.
Source: rabbit_policy:list, rabbit_runtime_parameters:list, rabbit_mgmt_format (3.13).
"""

from __future__ import annotations

from burrowmq.broker.inspect.queues import each_vhost
from burrowmq.broker.inspect.values import Row
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.rules.policy import Policy


def policies(
    node: RunningNode, vhost: str | None = None, *, is_operator: bool = False
) -> list[Row]:
    """Policies or operator policies, by vhost and name."""
    rows: list[Row] = []
    for owner in each_vhost(node, vhost):
        found = owner.policies.of_kind(is_operator=is_operator)
        rows.extend(policy_row(owner.name, found[name]) for name in sorted(found))
    return rows


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
) -> list[Row]:
    """Operator policies and limits under their parameter names; RabbitMQ lists policies elsewhere only."""
    rows: list[Row] = []
    for owner in each_vhost(node, vhost):
        if owner.limits:
            limits = dict(owner.limits)
            rows.append(_row(owner.name, "vhost-limits", "limits", limits))
        for row in policies(node, owner.name, is_operator=True):
            value = {key: row[key] for key in ("pattern", "definition", "priority", "apply-to")}
            rows.append(_row(owner.name, "operator_policy", row["name"], value))
        for each, values in sorted(owner.component_values.items()):
            rows.extend(_row(owner.name, each, name, values[name]) for name in sorted(values))
    return [row for row in rows if component in (None, row["component"])]


def _row(vhost: str, component: str, name: str, value: object) -> Row:
    return {"value": value, "vhost": vhost, "component": component, "name": name}


def global_parameters(node: RunningNode) -> list[Row]:
    """Those that were set, and the cluster's name if it was."""
    values = node.parameters.values
    return [{"name": name, "value": values[name]} for name in sorted(values)]


def vhost_limits(node: RunningNode, vhost: str | None = None) -> list[Row]:
    """Vhosts that have limits."""
    return [
        {"vhost": owner.name, "value": dict(owner.limits)}
        for owner in each_vhost(node, vhost)
        if owner.limits
    ]


def user_limits(node: RunningNode, user: str | None = None) -> list[Row]:
    """Users who have limits."""
    known = node.auth.users
    names = sorted(known) if user is None else [user]
    return [
        {"user": name, "value": dict(known[name].limits)} for name in names if known[name].limits
    ]


def topic_permissions(
    node: RunningNode,
    vhost: str | None = None,
    user: str | None = None,
    exchange: str | None = None,
) -> list[Row]:
    """Which routing keys a user may use with which exchange."""
    rows = [
        {"user": name, "vhost": owner, "exchange": target, "write": each.write, "read": each.read}
        for owner, name in node.auth.granted.pairs(vhost, user)
        for target, each in node.auth.topic_permissions.get((owner, name), {}).items()
        if exchange in (None, target)
    ]
    return sorted(rows, key=lambda row: (row["vhost"], row["user"], row["exchange"]))
