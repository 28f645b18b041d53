"""What every new virtual host begins with: limits, operator policies and users that the configuration names.

State owned: the compiled patterns. Called by the node for each virtual host that is made (by a command, over HTTP, by
an import or at the first start), never for one that is restored: what an operator changed since must stay.

Source: RabbitMQ 3.13's rabbit_db_vhost_defaults.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from burrowmq.broker.definitions import parameters
from burrowmq.broker.rules.auth import Auth, Permission
from burrowmq.broker.rules.parameter_rules import make_policy, vhost_limits
from burrowmq.broker.rules.pattern import Pattern, compile_pattern
from burrowmq.broker.rules.policy import Policy
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultUser:
    """A user and what he may do; one without a password cannot log in with one."""

    name: str
    password: str | None
    tags: tuple[str, ...]
    permission: Permission


class VhostDefaults:
    """The defaults of one node. Patterns are searched in the virtual host's name.

    Raises: BadPattern, ValidationFailed for what no virtual host could begin with.
    """

    def __init__(
        self,
        limits: Sequence[tuple[str, Mapping[str, int]]] = (),
        policies: Sequence[tuple[str, str, Mapping[str, object]]] = (),
        users: Sequence[tuple[str, DefaultUser]] = (),
    ) -> None:
        """Take (pattern, limits), (pattern, name of a policy, its document) and (pattern, user)."""
        self._limits = [
            (compile_pattern(each), vhost_limits(dict(known))) for each, known in limits
        ]
        self._policies: list[tuple[Pattern, Policy]] = [
            (compile_pattern(each), make_policy(name, dict(document), is_operator=True))
            for each, name, document in policies
        ]
        self._users = [(compile_pattern(each), user) for each, user in users]

    def apply(self, vhost: Vhost, auth: Auth) -> None:
        """Give a new virtual host what its name asks for: the first limits, and all policies and users that match."""
        name = vhost.name
        for limits in [each for pattern, each in self._limits if pattern.is_in(name)][:1]:
            parameters.set_vhost_limits(vhost, limits)
        for pattern, policy in self._policies:
            if pattern.is_in(name):
                parameters.set_policy(vhost, policy, is_operator=True)
        for pattern, user in self._users:
            if pattern.is_in(name):
                _put(user, name, auth)


def _put(user: DefaultUser, vhost: str, auth: Auth) -> None:
    if user.name not in auth.users:
        if user.password is None:
            auth.put_user(user.name, "")
        else:
            auth.set_password(user.name, user.password)
        auth.set_tags(user.name, user.tags)
    auth.set_permission(vhost, user.name, user.permission)
