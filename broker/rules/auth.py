"""Users and what they may do.

Owns the users, their permissions per vhost (three regular expressions), the topic permissions, and a bounded cache
of answers. Passwords are kept as hashes (`broker.rules.passwords`), and who guesses them is refused
(`broker.rules.failed_logins`). Users named in `loopback_users` log in from this machine only. The session asks
`authenticate` once and `check` before each operation; management and definitions change users here. Every change is a
row of the definition store and empties the cache.

Never here: an opinion on whether the thing asked about exists. All permission checks precede existence checks.
An operator's regular expression takes bounded time, whatever it is: `broker.rules.pattern`.

Source: RabbitMQ's rabbit_access_control, rabbit_auth_backend_internal.
"""

from __future__ import annotations

import re
from dataclasses import field, replace
from typing import TYPE_CHECKING, Literal

from burrowmq.broker.rules.failed_logins import FailedLoginLimits, FailedLogins
from burrowmq.broker.rules.granted import Granted
from burrowmq.broker.rules.password_rules import ANY_PASSWORD, PasswordRules
from burrowmq.broker.rules.passwords import SALT_SIZE, SHA256, fits, hash_password
from burrowmq.broker.rules.pattern import BadPattern, Pattern, compile_pattern
from burrowmq.broker.words.resource import ResourceKind, describe, row_key
from burrowmq.protocol.errors import AccessRefused
from burrowmq.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping

    from burrowmq.broker.turn.clock import Entropy
    from burrowmq.broker.words.resource import DefinitionLog

Access = Literal["configure", "write", "read"]
TopicAccess = Literal["write", "read"]

ANSWERS_MAX = 4096
DEFAULT_EXCHANGE_ALIAS = "amq.default"
NO_LIMIT = FailedLogins(FailedLoginLimits(limit=0), lambda: 0.0)


class LoginRefused(Exception):
    """The login failed; the text is for the log, never for the client."""


class NotFromAfar(LoginRefused):
    """The password is right, and the user may log in on the node's machine only."""


class TooManyFailures(LoginRefused):
    """Too many passwords from there were wrong: this one was not looked at."""

    def __init__(self, text: str, wait_s: float) -> None:
        super().__init__(text)
        self.wait_s = wait_s


@dataclass(frozen=True, slots=True, kw_only=True)
class User:
    """A user; `password_hash` of "" means that no password logs in."""

    name: str
    password_hash: str = field(default="", repr=False)
    tags: tuple[str, ...] = ()
    hashing_algorithm: str = SHA256
    limits: Mapping[str, int] = field(default_factory=dict, hash=False)
    """max-connections and max-channels; a negative one is no limit."""


NODE_USER = User(name="none", tags=("impersonator",))
"""Whom the node's own links into itself run as, unless they name a user: everything is allowed. RabbitMQ's dummy user,
with its name; it is known by identity, so that a real user of that name is not it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Permission:
    """What a user may do in a vhost."""

    configure: str
    write: str
    read: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicPermission:
    """Which routing keys a user may use with one topic exchange."""

    write: str
    read: str


class Auth:
    """The users of a node."""

    def __init__(
        self,
        definitions: DefinitionLog,
        entropy: Entropy,
        loopback_users: Collection[str] = ("guest",),
        failed_logins: FailedLogins = NO_LIMIT,
        password_rules: PasswordRules = ANY_PASSWORD,
    ) -> None:
        self.users: dict[str, User] = {}
        self.permissions: dict[tuple[str, str], Permission] = {}  # (vhost, user)
        # (vhost, user) -> exchange -> permission
        self.topic_permissions: dict[tuple[str, str], dict[str, TopicPermission]] = {}
        self.granted = Granted()  # who has either, where
        self.loopback_users = frozenset(loopback_users)
        self.generation = 0  # raised by every change: answers remembered before are stale
        self._failed_logins = failed_logins
        self._password_rules = password_rules
        self._definitions = definitions
        self._entropy = entropy
        self._answers: dict[tuple[str, ...], bool] = {}
        self._compiled: dict[str, Pattern] = {}

    # -- questions ----------------------------------------------------------------------------------------------

    @property
    def refusal_delay_s(self) -> float:
        """How long the answer to a refused login takes: a guess costs time, whatever the guesser does meanwhile."""
        return self._failed_logins.delay_s

    def authenticate(
        self, name: str, password: str, *, is_loopback: bool, address: str = ""
    ) -> User:
        """The user who logs in with a password; from an address, wrong ones are counted.

        Raises: LoginRefused.
        """
        wait_s = self._failed_logins.wait_s(address, name)
        if wait_s:
            text = f"user '{name}' - too many failed logins from {address}, next in {wait_s:.0f} s"
            raise TooManyFailures(text, wait_s)
        try:
            user = self._with_password(name, password)
            self.check_loopback(name, is_loopback=is_loopback)
        except LoginRefused:
            self._failed_logins.failed(address, name)
            raise
        self._failed_logins.succeeded(address, name)
        return user

    def _with_password(self, name: str, password: str) -> User:
        user = self.users.get(name)
        # An unknown name costs what a wrong password does, so that time does not tell which names exist.
        asked = user if user is not None else _NOBODY
        is_right = fits(asked.password_hash, asked.hashing_algorithm, password)
        if user is None or not is_right:
            raise LoginRefused(f"user '{name}' - invalid credentials")
        return user

    def authenticate_by_certificate(self, name: str, *, is_loopback: bool) -> User:
        """The user whom a certificate names; the handshake has proved it, no password is asked for.

        Raises: LoginRefused.
        """
        user = self.users.get(name)
        if user is None:
            raise LoginRefused(f"user '{name}' - invalid credentials")
        self.check_loopback(name, is_loopback=is_loopback)
        return user

    def check_loopback(self, name: str, *, is_loopback: bool) -> None:
        """Refuse a loopback user who comes from elsewhere.

        Raises: LoginRefused.
        """
        if not is_loopback and name in self.loopback_users:
            raise NotFromAfar(f"user '{name}' can only connect via localhost")

    def may_enter(self, user: User, vhost: str) -> bool:
        """Whether the user has any permission record for the vhost, whatever it says."""
        return user is NODE_USER or (vhost, user.name) in self.permissions

    def trusted(self, name: str) -> User:
        """The user of that name, without a password; the node's own for no name. Raises: LoginRefused."""
        if not name:
            return NODE_USER
        user = self.users.get(name)
        if user is None:
            raise LoginRefused(f"user '{name}' - invalid credentials")
        return user

    def as_of_now(self, user: User) -> User:
        """A user who logged in a while ago, with what was changed since."""
        return user if user is NODE_USER else self.users.get(user.name, user)

    def check(self, user: User, vhost: str, access: Access, kind: ResourceKind, name: str) -> None:
        """Refuse what the user may not do; the default exchange goes by the name amq.default.

        Raises: AccessRefused.
        """
        if user is NODE_USER:
            return
        if kind == "exchange" and not name:
            name = DEFAULT_EXCHANGE_ALIAS
        if not self.may(user.name, vhost, access, name):
            raise AccessRefused(
                f"{access} access to {describe(kind, name, vhost)} refused for user '{user.name}'"
            )

    def may(self, user_name: str, vhost: str, access: Access, name: str) -> bool:
        """Whether the user's permission for the vhost covers the name."""
        permission = self.permissions.get((vhost, user_name))
        if permission is None:
            return False
        pattern: str = getattr(permission, access)
        if pattern == ".*":
            return True
        return self._answer((user_name, vhost, access, name), pattern, name)

    def is_topic_limited(self, user: User, vhost: str, exchange: str) -> bool:
        """Whether `check_topic` has anything to refuse there."""
        return user is not NODE_USER and exchange in self.topic_permissions.get(
            (vhost, user.name), ()
        )

    def check_topic(
        self, user: User, vhost: str, access: TopicAccess, exchange: str, routing_key: str
    ) -> None:
        """Refuse a routing key that the topic permission does not cover; without a permission record all are covered.

        Raises: AccessRefused.
        """
        by_exchange = self.topic_permissions.get((vhost, user.name))
        if user is NODE_USER:
            return
        record = None if by_exchange is None else by_exchange.get(exchange)
        if record is None:
            return
        pattern = record.write if access == "write" else record.read
        # Escaped, so that a user cannot widen the expression with a name of their own choosing.
        pattern = pattern.replace("{username}", re.escape(user.name))
        pattern = pattern.replace("{vhost}", re.escape(vhost))
        question = (user.name, vhost, access, exchange, routing_key)
        reason = ""
        try:
            is_covered = self._answer(question, pattern, routing_key)
        except BadPattern as error:  # with names in it; without them it was looked at when set
            is_covered, reason = False, f": {error}"
        if not is_covered:
            raise AccessRefused(
                f"{access} access to topic '{routing_key}' in"
                f" {describe('exchange', exchange, vhost)} refused for user '{user.name}'{reason}"
            )

    def _answer(self, question: tuple[str, ...], pattern: str, text: str) -> bool:
        found = self._answers.get(question)
        if found is None:
            # RabbitMQ: the empty expression covers nothing (Python's would cover everything).
            found = bool(pattern) and self._regex(pattern).is_in(text)
            if len(self._answers) >= ANSWERS_MAX:
                self._answers.clear()
            self._answers[question] = found
        return found

    def _regex(self, pattern: str) -> Pattern:
        compiled = self._compiled.get(pattern)
        if compiled is None:
            compiled = compile_pattern(pattern)
            if len(self._compiled) >= ANSWERS_MAX:
                self._compiled.clear()
            self._compiled[pattern] = compiled
        return compiled

    # -- changes ------------------------------------------------------------------------------------------------

    def check_password(self, password: str) -> None:
        """Ask the rules about a password that somebody is to be given, "" for none. Raises: WeakPassword."""
        self._password_rules.check(password)

    def set_password(self, name: str, password: str) -> User:
        """Make a user, or give one another password, whatever the rules say of it."""
        return self.put_user(name, hash_password(password, self._entropy.token(SALT_SIZE)))

    def put_user(
        self,
        name: str,
        password_hash: str,
        tags: tuple[str, ...] | None = None,
        hashing_algorithm: str = SHA256,
    ) -> User:
        """Make or replace a user by hash; with `tags` None, those that there are stay."""
        known = self.users.get(name)
        if tags is None:
            tags = known.tags if known is not None else ()
        user = User(
            name=name,
            password_hash=password_hash,
            tags=tags,
            hashing_algorithm=hashing_algorithm,
            limits=known.limits if known is not None else {},
        )
        self._put(user)
        return user

    def set_tags(self, name: str, tags: tuple[str, ...]) -> User:
        """Replace a user's tags. Raises KeyError for an unknown user."""
        user = self.users[name]
        return self.put_user(name, user.password_hash, tags, user.hashing_algorithm)

    def set_limits(self, name: str, limits: Mapping[str, int]) -> User:
        """Replace a user's limits. Raises KeyError for an unknown user."""
        user = replace(self.users[name], limits=dict(limits))
        self._put(user)
        return user

    def add_limits(self, name: str, limits: Mapping[str, int]) -> User:
        """Set these; others that the user has stay. Raises KeyError for an unknown user."""
        return self.set_limits(name, {**self.users[name].limits, **limits})

    def _put(self, user: User) -> None:
        if self.users.get(user.name) != user:
            self.restore_user(user)
            self._write_user(user)

    def delete_user(self, name: str) -> None:
        """Remove a user with all permissions. Raises KeyError for an unknown user."""
        del self.users[name]
        self._definitions.delete("user", row_key(name))
        for vhost in self.granted.vhosts_of(name):
            self._clear(vhost, name)
        self._changed()

    def _clear(self, vhost: str, user: str) -> None:
        if (vhost, user) in self.permissions:
            self.clear_permission(vhost, user)
        if (vhost, user) in self.topic_permissions:
            self.clear_topic_permissions(vhost, user)

    def set_permission(self, vhost: str, user: str, permission: Permission) -> None:
        """Say what a user may do in a vhost.

        Raises: BadPattern.
        """
        if self.permissions.get((vhost, user)) == permission:
            return
        self.restore_permission(vhost, user, permission)
        self._definitions.put(
            "permission",
            row_key(vhost, user),
            {
                "vhost": vhost,
                "user": user,
                "configure": permission.configure,
                "write": permission.write,
                "read": permission.read,
            },
        )

    def clear_permission(self, vhost: str, user: str) -> None:
        """Take a user's access to a vhost away; harmless when there is none."""
        self.permissions.pop((vhost, user), None)
        self._definitions.delete("permission", row_key(vhost, user))
        self._note(vhost, user)

    def set_topic_permission(
        self, vhost: str, user: str, exchange: str, permission: TopicPermission
    ) -> None:
        """Say which routing keys a user may use with an exchange.

        Raises: BadPattern.
        """
        if self.topic_permissions.get((vhost, user), {}).get(exchange) == permission:
            return
        self.restore_topic_permission(vhost, user, exchange, permission)
        self._definitions.put(
            "topic_permission",
            row_key(vhost, user, exchange),
            {
                "vhost": vhost,
                "user": user,
                "exchange": exchange,
                "write": permission.write,
                "read": permission.read,
            },
        )

    def clear_topic_permissions(self, vhost: str, user: str, exchange: str | None = None) -> None:
        """Remove a user's topic permissions in a vhost, all or those of one exchange."""
        by_exchange = self.topic_permissions.get((vhost, user), {})
        for name in [each for each in by_exchange if exchange in (None, each)]:
            del by_exchange[name]
            self._definitions.delete("topic_permission", row_key(vhost, user, name))
        if not by_exchange:
            self.topic_permissions.pop((vhost, user), None)
        self._note(vhost, user)

    def delete_vhost(self, vhost: str) -> None:
        """Remove every permission in a vhost that is gone."""
        for user in self.granted.users_of(vhost):
            self._clear(vhost, user)

    def _note(self, vhost: str, user: str) -> None:
        """What a user has in a vhost has changed."""
        key = (vhost, user)
        if key in self.permissions or key in self.topic_permissions:
            self.granted.add(vhost, user)
        else:
            self.granted.discard(vhost, user)
        self._changed()

    # -- from rows ----------------------------------------------------------------------------------------------

    def restore_user(self, user: User) -> None:
        """Take over a user without writing a row."""
        self.users[user.name] = user
        self._changed()

    def restore_permission(self, vhost: str, user: str, permission: Permission) -> None:
        """Take over a permission without writing a row.

        Raises: BadPattern.
        """
        for pattern in (permission.configure, permission.write, permission.read):
            compile_pattern(pattern)
        self.permissions[(vhost, user)] = permission
        self._note(vhost, user)

    def restore_topic_permission(
        self, vhost: str, user: str, exchange: str, permission: TopicPermission
    ) -> None:
        """Take over a topic permission without writing a row.

        Raises: BadPattern.
        """
        compile_pattern(permission.write)
        compile_pattern(permission.read)
        self.topic_permissions.setdefault((vhost, user), {})[exchange] = permission
        self._note(vhost, user)

    def _write_user(self, user: User) -> None:
        self._definitions.put(
            "user",
            row_key(user.name),
            {
                "name": user.name,
                "password_hash": user.password_hash,
                "hashing_algorithm": user.hashing_algorithm,
                "tags": list(user.tags),
                "limits": dict(user.limits),
            },
        )

    def _changed(self) -> None:
        self._answers.clear()
        self.generation += 1


_NOBODY = User(name="", password_hash=hash_password("", b"\0" * SALT_SIZE))
