"""Runtime parameters: policies, limits and global parameters, changed while the node runs and kept over restarts.

Everything that an operator sets by name goes through here: it was validated (`broker.rules.parameter_rules`), its row
is staged in the commit being collected, and it comes into force at once. `Parameters` owns the node's global
parameters; policies and limits are their vhost's, user limits their user's. Called by management, by the import of
definitions, by the node at start and, for rows, by `broker.definitions.restore`.

RabbitMQ's components `operator_policy` and `vhost-limits` are these policies and limits under their parameter names.
Those of parts that are loaded when they are configured (`shovel`) are their vhost's `components`; any other is refused.

Invariant: setting what is there already changes nothing and writes nothing.
Source: rabbit_runtime_parameters, rabbit_policy, rabbit_vhost_limit.
"""

from __future__ import annotations

import base64
from collections.abc import Callable
from typing import TYPE_CHECKING, cast

from burrowmq.broker.rules import parameter_rules as rules
from burrowmq.broker.vhost import mirrored
from burrowmq.broker.words.exact import exact
from burrowmq.broker.words.resource import row_key

if TYPE_CHECKING:
    from burrowmq.broker.rules.auth import User
    from burrowmq.broker.rules.policy import Policy
    from burrowmq.broker.vhost.vhost import Vhost
    from burrowmq.broker.words.resource import DefinitionLog, Row

OPERATOR_POLICY = "operator_policy"
VHOST_LIMITS = "vhost-limits"
LIMITS_NAME = "limits"
SHOVEL = "shovel"


INTERNAL = "internal_"
"""Names that begin so are the node's own, and in no document of definitions."""
CLUSTER_ID = f"{INTERNAL}cluster_id"
MIGRATION_NOTE = f"{INTERNAL}migration "
"""How those begin that say which queue is on its way to be a quorum queue (`broker.migration`)."""


class Parameters:
    """The global parameters of a node: any name, any JSON value."""

    def __init__(self, definitions: DefinitionLog) -> None:
        self.values: dict[str, object] = {}
        self._definitions = definitions

    def put(self, name: str, value: object) -> bool:
        """Set one; whether it is new."""
        is_new = name not in self.values
        if is_new or exact(self.values[name]) != exact(value):
            self.values[name] = value
            row = {"name": name, "value": value, "is_global": True}
            self._definitions.put("parameter", row_key("global", name), cast("Row", row))
        return is_new

    def identify_cluster(self, token: Callable[[int], bytes]) -> None:
        """Give the cluster the name that it keeps whatever it is called, if it has none yet."""
        if CLUSTER_ID not in self.values:
            text = base64.urlsafe_b64encode(token(16)).decode().rstrip("=")
            self.put(CLUSTER_ID, f"rabbitmq-cluster-id-{text}")

    @property
    def cluster_id(self) -> str:
        """That name."""
        return str(self.values.get(CLUSTER_ID, ""))

    def remove(self, name: str) -> bool:
        """Forget one; whether there was one."""
        if name not in self.values:
            return False
        del self.values[name]
        self._definitions.delete("parameter", row_key("global", name))
        return True


def set_policy(vhost: Vhost, policy: Policy, *, is_operator: bool = False) -> bool:
    """Make or replace a policy and put it in force; whether it is new."""
    known = vhost.policies.of_kind(is_operator=is_operator)
    before = known.get(policy.name)
    if before is None or before != policy or _said(before) != _said(policy):
        known[policy.name] = policy
        try:
            vhost.policies_changed(*(each for each in (before, policy) if each is not None))
        except Exception:
            # A bug; but what was refused is not in the next start's way, and not shown as if it were in force.
            if before is None:
                del known[policy.name]
            else:
                known[policy.name] = before
            vhost.policies.changed()
            raise
        row = {
            "vhost": vhost.name,
            "name": policy.name,
            "pattern": policy.pattern,
            "definition": dict(policy.definition),
            "apply_to": policy.apply_to,
            "priority": policy.priority,
            "is_operator": is_operator,
        }
        key = _policy_key(vhost, policy.name, is_operator=is_operator)
        vhost.rows.put("policy", key, cast("Row", row))
        mirrored.tell(vhost, policy, is_operator=is_operator)
    return before is None


def clear_policy(vhost: Vhost, name: str, *, is_operator: bool = False) -> bool:
    """Remove a policy; whether there was one."""
    gone = vhost.policies.of_kind(is_operator=is_operator).pop(name, None)
    if gone is None:
        return False
    vhost.rows.delete("policy", _policy_key(vhost, name, is_operator=is_operator))
    vhost.policies_changed(gone)
    return True


def _said(policy: Policy) -> tuple[object, object]:
    """What policies may be equal in for Python alone."""
    return exact(policy.definition), exact(policy.priority)


def _policy_key(vhost: Vhost, name: str, *, is_operator: bool) -> str:
    return row_key(vhost.name, "operator" if is_operator else "user", name)


def set_vhost_limits(vhost: Vhost, limits: dict[str, int]) -> bool:
    """Replace a vhost's limits; whether there were none before."""
    is_new = not vhost.limits
    if limits != vhost.limits:
        vhost.limits = limits
        key = row_key(VHOST_LIMITS, vhost.name)
        if limits:
            row = {
                "vhost": vhost.name,
                "component": VHOST_LIMITS,
                "name": LIMITS_NAME,
                "value": dict(limits),
            }
            vhost.rows.put("parameter", key, cast("Row", row))
        else:
            vhost.rows.delete("parameter", key)
    return is_new


def set_parameter(
    vhost: Vhost, component: str, name: str, value: object, user: User | None = None
) -> bool:
    """Set a parameter by component and name; whether it is new.

    Raises: ValidationFailed, RefusedValue.
    """
    if component == "policy":
        raise rules.RefusedValue("policies may not be set using this method")
    if component == OPERATOR_POLICY and isinstance(value, dict):
        policy = rules.make_policy(name, value, is_operator=True)
        return set_policy(vhost, policy, is_operator=True)
    if component == VHOST_LIMITS:
        return set_vhost_limits(vhost, rules.vhost_limits(value))
    if component in vhost.components:
        return _set_of_component(vhost, component, name, value, user)
    raise rules.ValidationFailed(f"component {component} not found")


def _set_of_component(
    vhost: Vhost, component: str, name: str, value: object, user: User | None
) -> bool:
    known = vhost.component(component)
    is_new = name not in known
    vhost.components[component].check(vhost.name, name, value, user)
    if is_new or exact(known[name]) != exact(value):
        known[name] = value
        row = {"vhost": vhost.name, "component": component, "name": name, "value": value}
        vhost.rows.put("parameter", row_key(component, vhost.name, name), cast("Row", row))
        vhost.components[component].changed(vhost.name, name, value)
    return is_new


def clear_parameter(vhost: Vhost, component: str, name: str) -> bool:
    """Remove a parameter; whether there was one.

    Raises: RefusedValue.
    """
    if component == "policy":
        raise rules.RefusedValue("policies may not be cleared using this method")
    if component == OPERATOR_POLICY:
        return clear_policy(vhost, name, is_operator=True)
    if component == VHOST_LIMITS and name == LIMITS_NAME and vhost.limits:
        set_vhost_limits(vhost, {})
        return True
    if name not in vhost.component_values.get(component, ()):
        return False
    del vhost.component_values[component][name]
    vhost.rows.delete("parameter", row_key(component, vhost.name, name))
    vhost.components[component].cleared(vhost.name, name)
    return True


def forget_vhost(vhost: Vhost) -> None:
    """Remove the rows of a vhost that is being deleted; its queues are gone by then."""
    for is_operator in (False, True):
        for name in list(vhost.policies.of_kind(is_operator=is_operator)):
            clear_policy(vhost, name, is_operator=is_operator)
    set_vhost_limits(vhost, {})
    for component, values in vhost.component_values.items():
        for name in list(values):
            clear_parameter(vhost, component, name)


def restore(row: Row, vhosts: dict[str, Vhost], parameters: Parameters | None) -> None:
    """Take over a parameter's row without writing one.

    Raises: KeyError, ValueError.
    """
    if row.get("is_global"):
        if parameters is not None:
            parameters.values[str(row["name"])] = row["value"]
    elif row["component"] == VHOST_LIMITS:
        vhosts[str(row["vhost"])].limits = rules.vhost_limits(row["value"])
    elif row["component"] in vhosts[str(row["vhost"])].components:
        vhost = vhosts[str(row["vhost"])]
        vhost.component(str(row["component"]))[str(row["name"])] = row["value"]
    else:
        raise ValueError(f"unknown component {row['component']!r}")
