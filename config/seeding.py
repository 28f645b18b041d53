"""The keys that say what every new virtual host begins with: users, operator policies and limits.

`compose` lists the keys and puts those of one name together with `seeding`; `schema` has the result as a part of a
`NodeConfig`. Owns no state. Invariant: a pattern that is not given is `.*`, as in RabbitMQ.

Source: default_users, default_policies.operator and default_limits.vhosts of RabbitMQ 3.13's rabbit.schema.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from typing import Any

from burrowmq.config import units
from burrowmq.config.option import Option
from burrowmq.records import dataclass

EVERYTHING = ".*"


@dataclass(frozen=True, slots=True, kw_only=True)
class UserDefault:
    """A user that is made with, and given permissions in, each new virtual host whose name matches."""

    name: str
    vhost_pattern: str = EVERYTHING
    password: str | None = field(default=None, repr=False)
    configure: str = EVERYTHING
    write: str = EVERYTHING
    read: str = EVERYTHING
    tags: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyDefault:
    """An operator policy that each new virtual host whose name matches gets."""

    name: str
    definition: Mapping[str, int]
    vhost_pattern: str = EVERYTHING
    queue_pattern: str = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class LimitsDefault:
    """Limits of each new virtual host whose name matches; the first that matches counts."""

    limits: Mapping[str, int]
    pattern: str = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class SeedingConfig:
    """What new virtual hosts begin with."""

    users: tuple[UserDefault, ...] = ()
    operator_policies: tuple[PolicyDefault, ...] = ()
    limits: tuple[LimitsDefault, ...] = ()


NOTHING = SeedingConfig()


_USERS, _POLICIES, _LIMITS = "default_users", "default_policies.operator", "default_limits.vhosts"
_COUNT = units.integer(0)
_AT_LEAST_ONE = units.integer(1)
_POLICY_KEYS = {
    "expires": (units.duration_ms(1), "Time after which an unused queue is deleted, `1h` say."),
    "message_ttl": (units.duration_ms(0), "Longest time to live of messages, `10m` say."),
    "max_length": (_AT_LEAST_ONE, "Most messages in a queue."),
    "max_length_bytes": (units.binary_size(1), "Most bytes of bodies in a queue."),
    "max_in_memory_length": (
        _AT_LEAST_ONE,
        "For quorum queues; keeps the policy off classic ones.",
    ),
    "max_in_memory_bytes": (
        units.binary_size(1),
        "For quorum queues; keeps the policy off classic ones.",
    ),
    "delivery_limit": (_AT_LEAST_ONE, "For quorum queues; keeps the policy off classic ones."),
}
_LIMIT_KEYS = {
    "max_connections": "Most connections to it.",
    "max_queues": "Most queues in it.",
}


def options() -> tuple[Option, ...]:
    """Return the keys, each with a name of the operator's choice in it."""
    found = [
        _option(f"{_USERS}.$name.vhost_pattern", units.pattern, "New virtual hosts that get the user $name."),
        _option(f"{_USERS}.$name.password", units.text, "Password of that user, if it has to be made."),
        *(
            _option(f"{_USERS}.$name.{right}", units.pattern, f"What that user may {what} there.")
            for right, what in (("configure", "configure"), ("write", "write to"), ("read", "read from"))
        ),
        _option(f"{_USERS}.$name.tags", units.words, "Tags of that user, separated by commas."),
        _option(f"{_POLICIES}.$id.vhost_pattern", units.pattern, "New virtual hosts that get the operator policy $id."),
        _option(f"{_POLICIES}.$id.queue_pattern", units.pattern, "Queues that it applies to."),
        *(_option(f"{_POLICIES}.$id.{key}", *_POLICY_KEYS[key]) for key in _POLICY_KEYS),
        _option(f"{_LIMITS}.$id.pattern", units.pattern,
                "New virtual hosts that get the limits $id; the first that matches counts."),
        *(_option(f"{_LIMITS}.$id.{key}", _COUNT, doc) for key, doc in _LIMIT_KEYS.items()),
    ]  # fmt: skip
    return tuple(found)


def _option(name: str, read: units.Reader[Any], doc: str) -> Option:
    # Without a default of its own: one key of a name makes the whole, the others of that name are `.*` then.
    return Option(name, read, None, doc)


def seeding(values: Mapping[str, Any]) -> SeedingConfig:
    """Return what the values of these keys make, in the order of the file."""
    users = _grouped(values, _USERS)
    policies = _grouped(values, _POLICIES)
    limits = _grouped(values, _LIMITS)
    return SeedingConfig(
        users=tuple(UserDefault(name=name, **given) for name, given in users.items()),
        operator_policies=tuple(
            PolicyDefault(
                name=name,
                definition=_with_dashes(given, _POLICY_KEYS),
                **{key: each for key, each in given.items() if key not in _POLICY_KEYS},
            )
            for name, given in policies.items()
        ),
        limits=tuple(
            LimitsDefault(
                limits=_with_dashes(given, _LIMIT_KEYS),
                pattern=given.get("pattern", EVERYTHING),
            )
            for given in limits.values()
        ),
    )


def _grouped(values: Mapping[str, Any], prefix: str) -> dict[str, dict[str, Any]]:
    groups: dict[str, dict[str, Any]] = {}
    for key, value in values.items():
        if key.startswith(f"{prefix}."):
            name, _, field = key.removeprefix(f"{prefix}.").partition(".")
            groups.setdefault(name, {})[field] = value
    return groups


def _with_dashes(given: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, int]:
    return {key.replace("_", "-"): each for key, each in given.items() if key in known}
