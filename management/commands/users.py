"""Users and what they may do: logins, permissions, topic permissions, limits.

Owns no state. With a user, all permissions and connections of that user go.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from burrowmq.broker import inspect
from burrowmq.broker.channel.methods.publish import check_user_id
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.rules.auth import (
    Access,
    Permission,
    TopicAccess,
    TopicPermission,
    User,
)
from burrowmq.broker.rules.parameter_rules import user_limits
from burrowmq.broker.rules.passwords import (
    ALGORITHMS,
    SALT_SIZE,
    SHA256,
    algorithm_of,
    fault_of,
    hash_password,
)
from burrowmq.broker.rules.pattern import BadPattern, compile_pattern
from burrowmq.broker.session.session import Session
from burrowmq.broker.words.resource import ResourceKind
from burrowmq.management.answers.reply import Call, bad_request
from burrowmq.management.answers.turns import pieces
from burrowmq.management.commands.commit import staged
from burrowmq.management.commands.sessions import close_sessions

DELETED_PER_TURN = 100
"""Users with what they may do: twenty microseconds each."""


def authenticate(
    node: RunningNode, name: str, password: str, *, is_loopback: bool = True, address: str = ""
) -> User:
    """The user; an address is watched for guesses. Raises: LoginRefused."""
    return node.auth.authenticate(name, password, is_loopback=is_loopback, address=address)


def require(call: Call, vhost: str, access: Access, kind: ResourceKind, name: str) -> None:
    """The AMQP permission of the caller; burrowctl has every one. Raises: AccessRefused."""
    if call.caller.is_trusted:
        return
    call.node.auth.check(call.node.auth.users[call.caller.name], vhost, access, kind, name)


def require_topic(call: Call, vhost: str, access: TopicAccess, exchange: str, key: str) -> None:
    """The caller's permission to use this key with an exchange, if that is a topic exchange. Raises: AccessRefused."""
    if call.caller.is_trusted or call.node.vhosts[vhost].exchanges[exchange].type != "topic":
        return
    user = call.node.auth.users[call.caller.name]
    call.node.auth.check_topic(user, vhost, access, exchange, key)


def require_way(call: Call, vhost: str, kind: ResourceKind, name: str, to: str | None) -> None:
    """A new queue or exchange may hand messages on to an exchange: who may read the one, and write to the other.

    Raises: AccessRefused.
    """
    if to is not None:
        require(call, vhost, "read", kind, name)
        require(call, vhost, "write", "exchange", to)


def require_user_id(call: Call, user_id: object) -> None:
    """A message says who published it: the caller, or an impersonator may say anybody. Raises: PreconditionFailed."""
    if user_id is not None and not call.caller.is_trusted:
        check_user_id(str(user_id), call.node.auth.users[call.caller.name])


def hash_of(node: RunningNode, password: str) -> str:
    """The hash of a password as definitions carry it."""
    return hash_password(password, node.entropy.token(SALT_SIZE))


def put_user(
    node: RunningNode,
    name: str,
    password: str | None,
    password_hash: str | None,
    tags: list[str],
    algorithm: str | None = None,
) -> bool:
    """Make or change a user; whether it is new. Neither password nor hash: no password logs in.

    Raises: ApiError, WeakPassword.
    """
    is_new = name not in node.auth.users
    if password_hash is None:
        node.auth.check_password(password or "")
    if password:
        node.auth.set_password(name, password)
        node.auth.set_tags(name, tuple(tags))
    else:
        # RabbitMQ passes white space over in base64.
        password_hash = "".join((password_hash or "").split())
        node.auth.put_user(
            name, password_hash, tuple(tags), _algorithm(node, name, password_hash, algorithm)
        )
    staged(node)
    return is_new


def _algorithm(node: RunningNode, name: str, password_hash: str, given: str | None) -> str:
    """What a hash was made with. Raises: ApiError for a hash that no password can fit, unless it is the user's."""
    try:
        algorithm = str(given or algorithm_of(password_hash))
        if algorithm not in ALGORITHMS:
            raise bad_request(["unknown_hashing_algorithm", algorithm])
        fault: str | list[str] = fault_of(password_hash, algorithm)
    except ValueError:
        algorithm, fault = str(given or SHA256), ["not_base64", password_hash]
    known = node.auth.users.get(name)
    if fault and (known is None or known.password_hash != password_hash):
        raise bad_request(fault)
    return algorithm


async def delete_users(node: RunningNode, names: Iterable[str]) -> str | None:
    """Remove users with all permissions, up to one that is not there, whose name is given; closes their connections."""
    gone: set[str] = set()
    missing = None
    async for some in pieces(names, DELETED_PER_TURN):
        for name in some:
            if name not in node.auth.users:
                missing = name
                break
            node.auth.delete_user(name)
            gone.add(name)
        staged(node)
        if missing is not None:
            break
    for name, sessions in _by_user(node, gone).items():
        await close_sessions(sessions, f"user '{name}' is deleted")
    return missing


def _by_user(node: RunningNode, names: set[str]) -> dict[str, list[Session]]:
    found: dict[str, list[Session]] = {}
    for session in node.sessions:
        name = inspect.user_name(session)
        if name in names:
            found.setdefault(name, []).append(session)
    return found


def set_user_limits(node: RunningNode, user: str, limits: Any) -> None:
    """Replace a user's limits. Raises: RefusedValue."""
    node.auth.set_limits(user, user_limits(limits))
    staged(node)


def add_user_limits(node: RunningNode, user: str, limits: dict[str, int]) -> None:
    """Set limits of a user beside those that there are."""
    node.auth.add_limits(user, limits)
    staged(node)


def put_permission(node: RunningNode, vhost: str, user: str, patterns: list[str]) -> None:
    """Say what a user may do in a vhost: configure, write, read. Raises: BadPattern."""
    configure, write, read = patterns
    node.auth.set_permission(vhost, user, Permission(configure=configure, write=write, read=read))
    staged(node)


def delete_permission(node: RunningNode, vhost: str, user: str) -> None:
    """Take a user's access to a vhost."""
    node.auth.clear_permission(vhost, user)
    staged(node)


def put_topic_permission(
    node: RunningNode, vhost: str, user: str, exchange: str, keys: list[str]
) -> None:
    """Say which routing keys a user may write and read with an exchange. Raises: ApiError."""
    write, read = keys
    for pattern in keys:
        try:
            compile_pattern(pattern)
        except BadPattern as error:
            raise bad_request(["invalid_regexp", pattern, [str(error), error.place]]) from error
    node.auth.set_topic_permission(vhost, user, exchange, TopicPermission(write=write, read=read))
    staged(node)


def delete_topic_permission(node: RunningNode, vhost: str, user: str, exchange: str | None) -> None:
    """Remove a user's topic permissions in a vhost, all or those of one exchange."""
    node.auth.clear_topic_permissions(vhost, user, exchange)
    staged(node)
