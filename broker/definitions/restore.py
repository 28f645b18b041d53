"""Durable definitions: taking over the rows of the store at start, and the first start's seed.

Owns no state. `restore` fills vhosts and users from the rows that the storage engine recovered, in the order in
which they depend on one another, and says what it could not use; `seed` makes what a node with an empty data
directory begins with: one vhost, one user, full permissions. Called by the node before anything is served; rows are
written where things change (`broker.vhost.vhost`, `broker.rules.auth`).

Invariant: restoring writes no row. A row that cannot be used is reported and left alone, never fatal: a damaged
binding must not keep a broker down.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, cast

from burrowmq.broker.definitions import parameters
from burrowmq.broker.exchange import TYPES
from burrowmq.broker.queue.rules.settings import PRIORITY_MAX, QueueDeclaration, compute
from burrowmq.broker.rules.auth import Permission, TopicPermission, User
from burrowmq.broker.rules.parameter_rules import default_queue_type, user_limits
from burrowmq.broker.rules.policy import Policy
from burrowmq.broker.vhost.vhost import Edge, ExchangeDeclaration
from burrowmq.broker.words.resource import Row, row_key, unpack_arguments
from burrowmq.records import dataclass

if TYPE_CHECKING:
    from burrowmq.broker.definitions.parameters import Parameters
    from burrowmq.broker.exchange.binding import DestinationKind
    from burrowmq.broker.rules.auth import Auth
    from burrowmq.broker.rules.policy import ApplyTo, PolicyValue
    from burrowmq.broker.vhost.vhost import Vhost
    from burrowmq.broker.words.resource import DefinitionLog
    from burrowmq.protocol.table import FieldTable
    from burrowmq.storage.names import QueueNames

MakeVhost = Callable[[str], "Vhost"]
ORDER = (
    "vhost",
    "user",
    "permission",
    "topic_permission",
    "policy",
    "parameter",
    "exchange",
    "queue",
    "binding",
)


DEFAULT_DESCRIPTION = "Default virtual host"
EVERYTHING = Permission(configure=".*", write=".*", read=".*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Seed:
    """What the first start makes; RabbitMQ's default_user, default_pass and so on."""

    vhost: str = "/"
    user: str = "guest"
    password: str = "guest"  # noqa: S105 - RabbitMQ's documented default, loopback only
    tags: tuple[str, ...] = ("administrator",)
    permission: Permission = EVERYTHING


@dataclass(frozen=True, slots=True, kw_only=True)
class UnusableRow:
    """A row that was left alone, and why."""

    kind: str
    key: str
    reason: str


def restore(
    rows: Iterable[tuple[str, str, object]],
    vhosts: dict[str, Vhost],
    auth: Auth,
    make_vhost: MakeVhost,
    known: Parameters | None = None,
) -> list[UnusableRow]:
    """Fill `vhosts`, `auth` and `known` parameters from recovered rows; returns those that could not be used."""
    by_kind: dict[str, list[tuple[str, Row]]] = {kind: [] for kind in ORDER}
    unusable: list[UnusableRow] = []
    for kind, key, value in rows:
        if kind in by_kind and isinstance(value, dict):
            by_kind[kind].append((key, cast("Row", value)))
        else:
            unusable.append(UnusableRow(kind=kind, key=key, reason="unknown kind or shape"))
    # In the order in which they were made, as they are listed and exported, where that counts.
    by_kind["binding"].sort(key=lambda found: _order(found[1]))
    for kind in ORDER:
        for key, value in by_kind[kind]:
            try:
                if kind == "parameter":
                    parameters.restore(value, vhosts, known)
                else:
                    restore_row(kind, value, vhosts, auth, make_vhost)
            except (KeyError, TypeError, ValueError) as error:
                unusable.append(UnusableRow(kind=kind, key=key, reason=repr(error)))
    return unusable


def may_be_defined(unusable: Iterable[UnusableRow], names: QueueNames) -> bool:
    """Whether one of these rows may be for a queue, or for its vhost: who mends it wants its messages."""
    keys = {"queue": row_key(names.vhost, names.name), "vhost": row_key(names.vhost)}
    return any(row.key == keys.get(row.kind) for row in unusable)


def highest_levels(rows: Iterable[tuple[str, str, object]]) -> dict[tuple[str, str], int]:
    """Give (vhost, name) of each queue with priorities among recovered rows, and its highest one.

    A queue whose row cannot be used may have any level: who mends it wants its messages, and nobody looks for them
    again. But where a row names a queue as a level was called in format 1, what lies there is that queue's.
    """
    found: dict[tuple[str, str], int] = {}
    named: set[tuple[str, str]] = set()
    unusable: list[tuple[str, str]] = []
    for kind, key, value in rows:
        place = _place_of(key, value) if kind == "queue" else None
        if place is None:
            continue
        named.add(place)
        try:
            highest = compute(
                unpack_arguments(_text(cast("Row", value), "arguments")), {}
            ).max_priority
        except (KeyError, TypeError, ValueError):
            unusable.append(place)
            continue
        if highest is not None:
            found[place] = highest
    for vhost, name in unusable:
        top = 0
        while top < PRIORITY_MAX and (vhost, f"{name}\0{top + 1}") not in named:
            top += 1
        found[vhost, name] = top
    return found


def _place_of(key: str, value: object) -> tuple[str, str] | None:
    """Give which vhost and queue a row is about, as it says or else its key."""
    try:
        row = cast("Row", value)
        return _text(row, "vhost"), _text(row, "name")
    except (KeyError, TypeError):
        pass
    try:
        vhost, name = map(str, json.loads(key))
    except (TypeError, ValueError, RecursionError):
        return None
    return vhost, name


def seed(
    what: Seed,
    vhosts: dict[str, Vhost],
    auth: Auth,
    make_vhost: MakeVhost,
    definitions: DefinitionLog,
    on_made: Callable[[Vhost], None] = lambda _: None,
) -> None:
    """Make the vhost, user and permission of a first start."""
    vhost = create_vhost(what.vhost, vhosts, make_vhost, definitions, on_made)
    vhost.description = DEFAULT_DESCRIPTION
    put_vhost(vhost, definitions)
    auth.set_password(what.user, what.password)
    auth.set_tags(what.user, what.tags)
    auth.set_permission(what.vhost, what.user, what.permission)


def create_vhost(
    name: str,
    vhosts: dict[str, Vhost],
    make_vhost: MakeVhost,
    definitions: DefinitionLog,
    on_made: Callable[[Vhost], None] = lambda _: None,
) -> Vhost:
    """Make a vhost that lasts, and tell `on_made` of it; an existing one stays as it is."""
    known = vhosts.get(name)
    if known is not None:
        return known
    vhost = vhosts[name] = make_vhost(name)
    put_vhost(vhost, definitions)
    on_made(vhost)
    return vhost


def delete_vhost(
    vhost: Vhost, vhosts: dict[str, Vhost], auth: Auth, definitions: DefinitionLog
) -> None:
    """Delete a vhost with everything in it; its connections were closed by the caller."""
    del vhosts[vhost.name]
    for queue in list(vhost.queues.values()):
        vhost.delete_queue(queue)
    for exchange in list(vhost.exchanges.values()):
        vhost.delete_exchange(exchange)
    parameters.forget_vhost(vhost)
    auth.delete_vhost(vhost.name)
    definitions.delete("vhost", row_key(vhost.name))


def put_vhost(vhost: Vhost, definitions: DefinitionLog) -> None:
    """Write a vhost's own row (name and metadata)."""
    definitions.put(
        "vhost",
        row_key(vhost.name),
        {
            "name": vhost.name,
            "description": vhost.description,
            "tags": list(vhost.tags),
            "default_queue_type": vhost.default_queue_type,
            "protected_from_deletion": vhost.is_protected,
        },
    )


def restore_row(
    kind: str, row: Row, vhosts: dict[str, Vhost], auth: Auth, make_vhost: MakeVhost
) -> None:
    """Take over a row of any kind but a parameter's. Raises: KeyError, TypeError, ValueError."""
    match kind:
        case "vhost":
            name = _text(row, "name")
            vhost = vhosts[name] = make_vhost(name)
            vhost.description = _text(row, "description")
            vhost.tags = list(_texts(row, "tags"))
            # Without its cluster, too, it is what its owner has asked for: then declarations are refused.
            vhost.default_queue_type = default_queue_type(
                row.get("default_queue_type"), has_cluster=True
            )
            vhost.is_protected = row.get("protected_from_deletion") is True
        case "user":
            auth.restore_user(
                User(
                    name=_text(row, "name"),
                    password_hash=_text(row, "password_hash"),
                    hashing_algorithm=_text(row, "hashing_algorithm"),
                    tags=_texts(row, "tags"),
                    limits=user_limits(row.get("limits", {})),
                )
            )
        case "permission":
            permission = Permission(
                configure=_text(row, "configure"),
                write=_text(row, "write"),
                read=_text(row, "read"),
            )
            auth.restore_permission(_text(row, "vhost"), _text(row, "user"), permission)
        case "topic_permission":
            auth.restore_topic_permission(
                _text(row, "vhost"),
                _text(row, "user"),
                _text(row, "exchange"),
                TopicPermission(write=_text(row, "write"), read=_text(row, "read")),
            )
        case _:
            _restore_in_vhost(kind, row, vhosts[_text(row, "vhost")])


def _restore_in_vhost(kind: str, row: Row, vhost: Vhost) -> None:
    if kind == "policy":
        policy = policy_of(row)
        vhost.policies.of_kind(is_operator=bool(row.get("is_operator")))[policy.name] = policy
    elif kind == "exchange":
        name, exchange_type = _text(row, "name"), _text(row, "type")
        if exchange_type not in TYPES or name in vhost.exchanges:
            raise ValueError(f"cannot make exchange {name!r} of type {exchange_type!r}")
        vhost.graph.restore(
            ExchangeDeclaration(
                name=name,
                type=exchange_type,
                durable=True,
                auto_delete=bool(row["auto_delete"]),
                internal=bool(row["internal"]),
                arguments=unpack_arguments(_text(row, "arguments")),
            )
        )
    elif kind == "queue":
        name = _text(row, "name")
        if name in vhost.queues:
            raise ValueError(f"queue {name!r} is there already")
        queue = vhost.restore_queue(
            QueueDeclaration(
                name=name,
                durable=True,
                auto_delete=bool(row["auto_delete"]),
                arguments=unpack_arguments(_text(row, "arguments")),
                # Rows without one were written when there was only version 2.
                default_version=1 if row.get("version") == 1 else 2,
                former_arguments=former_arguments_of(row),
            )
        )
        queue.made_ms = _made_ms(row)
    elif not vhost.restore_binding(edge_of(row)):
        raise ValueError("source or destination is missing")


def former_arguments_of(row: Row) -> FieldTable | None:
    """Those in the row of a queue that was a classic one. Raises: TypeError, ValueError."""
    if "former_arguments" not in row:
        return None
    return unpack_arguments(_text(row, "former_arguments"))


def edge_of(row: Row) -> Edge:
    """The binding that a row is about. Raises: KeyError, TypeError, ValueError."""
    return Edge(
        source=_text(row, "source"),
        kind=cast("DestinationKind", _text(row, "kind")),
        destination=_text(row, "destination"),
        routing_key=_text(row, "routing_key").encode("utf-8", "surrogateescape"),
        arguments=unpack_arguments(_text(row, "arguments")),
        place=cast("int", row.get("place", 0)),
    )


def policy_of(row: Row) -> Policy:
    """The policy that a row is about. Raises: KeyError, TypeError."""
    definition, priority = row["definition"], row["priority"]
    if not isinstance(definition, dict) or not isinstance(priority, int | float):
        raise TypeError("definition or priority of the wrong type")
    return Policy(
        name=_text(row, "name"),
        pattern=_text(row, "pattern"),
        definition=cast("Mapping[str, PolicyValue]", definition),
        apply_to=cast("ApplyTo", _text(row, "apply_to")),
        priority=priority,
    )


def _text(row: Row, key: str) -> str:
    value = row[key]
    if not isinstance(value, str):
        raise TypeError(f"{key} is no text")
    return value


def _order(row: Row) -> int:
    """The place of a binding; in rows that have none, or are damaged, that of all others."""
    value = row.get("place")
    return value if isinstance(value, int) else 0


def _made_ms(row: Row) -> int:
    """When a queue was made; 0 in rows of versions that did not say it."""
    value = row.get("made_ms")
    return value if isinstance(value, int) else 0


def _texts(row: Row, key: str) -> tuple[str, ...]:
    value = row[key]
    if not isinstance(value, list):
        raise TypeError(f"{key} is no list")
    return tuple(str(each) for each in value)
