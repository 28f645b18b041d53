"""Rows of definitions that others have changed, put in force: what a start does with rows, while clients are there.

A queue of another front-end is let go of here and nowhere else: who deletes it deletes its stream. What is replaced
(deleted and declared differently while this node was away) goes first, with its consumers.

Owns no state. Called by `broker.replicated.definitions`; what is changed here is written to the store as ever.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

from burrowmq.broker.definitions import parameters, restore
from burrowmq.broker.definitions.restore import ORDER
from burrowmq.broker.exchange import TYPES
from burrowmq.broker.exchange.graph import ExchangeDeclaration
from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.broker.replicated.queue import ReplicatedQueue
from burrowmq.broker.replicated.stream_queue import StreamQueue
from burrowmq.broker.rules.parameter_rules import default_queue_type, vhost_limits
from burrowmq.broker.vhost import agreement
from burrowmq.broker.words.resource import DefinitionLog, row_key, unpack_arguments

if TYPE_CHECKING:
    from burrowmq.broker.definitions.parameters import Parameters
    from burrowmq.broker.queue.port import QueuePort
    from burrowmq.broker.rules.auth import Auth
    from burrowmq.broker.session.session import Session
    from burrowmq.broker.vhost.vhost import Vhost

Row = dict[str, Any]
SHARED = (ReplicatedQueue, StreamQueue)
"""Queues that all front-ends have."""


class InTheWay(Exception):
    """What is here, and nobody else's, has the name of something shared."""


class InForce(Protocol):
    """What of a node definitions are about."""

    vhosts: dict[str, Vhost]
    auth: Auth
    parameters: Parameters
    sessions: dict[Session, None]

    def make_vhost(self, name: str) -> Vhost:
        """A virtual host, empty."""
        ...

    def forget_vhost(self, name: str) -> None:
        """Remove what the store has of one."""
        ...


def in_order(changes: list[tuple[str, str, Any]]) -> list[tuple[str, str, Any]]:
    """What goes first, the last things that depend on others before those; then what comes."""
    place = {kind: number for number, kind in enumerate(ORDER)}
    gone = [change for change in changes if change[2] is None]
    come = [change for change in changes if change[2] is not None]
    gone.sort(key=lambda change: -place.get(change[0], 0))
    come.sort(key=lambda change: place.get(change[0], len(place)))
    return gone + come


class Enforcer:
    """Puts rows in force; `replaced` is called when bindings went with what was there before."""

    def __init__(
        self,
        node: InForce,
        definitions: DefinitionLog,
        replaced: Callable[[], None],
    ) -> None:
        self._node = node
        self._definitions = definitions
        self._replaced = replaced

    def put(self, kind: str, row: Row) -> None:
        """There is this row, new or changed. Raises: KeyError, TypeError, ValueError for one that cannot be used."""
        match kind:
            case "vhost":
                self._put_vhost(row)
            case "user" | "permission" | "topic_permission":
                self._put_of_user(kind, row)
            case "parameter":
                self._put_parameter(row)
            case "policy":
                self._put_policy(row)
            case "exchange":
                self._put_exchange(row)
            case "queue":
                self._put_queue(row)
            case "binding":
                self._put_binding(row)
            case _:
                raise ValueError(f"unknown kind {kind!r}")

    def remove(self, kind: str, key: list[str]) -> None:
        """There is none any more of this key, which is that of its row."""
        if kind == "vhost":
            self._remove_vhost(key[0])
        elif kind == "user":
            self._remove_user(key[0])
        elif kind == "permission":
            self._node.auth.clear_permission(*key)
        elif kind == "topic_permission":
            self._node.auth.clear_topic_permissions(*key)
        elif kind == "parameter":
            self._remove_parameter(key)
        elif key[0] in self._node.vhosts:
            self._remove_in(self._node.vhosts[key[0]], kind, key[1:])

    # -- virtual hosts and users ------------------------------------------------------------------------------------

    def _put_vhost(self, row: Row) -> None:
        name = str(row["name"])
        vhost = self._node.vhosts.get(name)
        if vhost is None:
            vhost = self._node.vhosts[name] = self._node.make_vhost(name)
        vhost.description = str(row["description"])
        vhost.tags = [str(each) for each in row["tags"]]
        vhost.default_queue_type = default_queue_type(
            row.get("default_queue_type"), has_cluster=True
        )
        vhost.is_protected = row.get("protected_from_deletion") is True
        restore.put_vhost(vhost, self._definitions)

    def _remove_vhost(self, name: str) -> None:
        vhost = self._node.vhosts.get(name)
        if vhost is None:
            return
        for session in list(self._node.sessions):
            if session.vhost_name == name:
                session.cancel_consumers()
                session.force_close(f"vhost '{name}' is deleted")
        for queue in vhost.queues.values():
            if isinstance(queue, SHARED):
                queue.disown()
        restore.delete_vhost(vhost, self._node.vhosts, self._node.auth, self._definitions)
        self._node.forget_vhost(name)

    def _put_of_user(self, kind: str, row: Row) -> None:
        restore.restore_row(kind, row, self._node.vhosts, self._node.auth, self._node.make_vhost)
        names = {
            "user": ("name",),
            "permission": ("vhost", "user"),
            "topic_permission": ("vhost", "user", "exchange"),
        }[kind]
        self._definitions.put(kind, row_key(*(str(row[name]) for name in names)), row)

    def _remove_user(self, name: str) -> None:
        if name not in self._node.auth.users:
            return
        self._node.auth.delete_user(name)
        for session in list(self._node.sessions):
            if session.user.name == name:
                session.force_close(f"user '{name}' is deleted")

    # -- policies and parameters ------------------------------------------------------------------------------------

    def _put_policy(self, row: Row) -> None:
        parameters.set_policy(
            self._node.vhosts[str(row["vhost"])],
            restore.policy_of(row),
            is_operator=bool(row.get("is_operator")),
        )

    def _put_parameter(self, row: Row) -> None:
        if row.get("is_global"):
            self._node.parameters.put(str(row["name"]), row["value"])
        elif row["component"] == parameters.VHOST_LIMITS:
            limits = vhost_limits(row["value"])
            parameters.set_vhost_limits(self._node.vhosts[str(row["vhost"])], limits)

    def _remove_parameter(self, key: list[str]) -> None:
        if key[0] == "global":
            self._node.parameters.remove(key[1])
        elif key[0] == parameters.VHOST_LIMITS and key[1] in self._node.vhosts:
            parameters.set_vhost_limits(self._node.vhosts[key[1]], {})

    # -- exchanges, queues, bindings --------------------------------------------------------------------------------

    def _put_exchange(self, row: Row) -> None:
        vhost, name, kind = self._node.vhosts[str(row["vhost"])], str(row["name"]), row["type"]
        if kind not in TYPES:
            raise ValueError(f"cannot make exchange {name!r} of type {kind!r}")
        declaration = ExchangeDeclaration(
            name=name,
            type=str(kind),
            durable=True,
            auto_delete=bool(row["auto_delete"]),
            internal=bool(row["internal"]),
            arguments=unpack_arguments(str(row["arguments"])),
        )
        known = vhost.exchanges.get(name)
        if known is not None:
            is_same = (
                known.durable
                and (known.type, known.auto_delete, known.internal)
                == (declaration.type, declaration.auto_delete, declaration.internal)
                and known.arguments == declaration.arguments
            )
            if is_same:
                return
            vhost.delete_exchange(known)
        vhost.create_exchange(declaration)
        if known is not None:
            self._replaced()

    def _put_queue(self, row: Row) -> None:
        vhost, name = self._node.vhosts[str(row["vhost"])], str(row["name"])
        arguments = unpack_arguments(str(row["arguments"]))
        known = vhost.queues.get(name)
        if known is not None:
            if not isinstance(known, SHARED):
                raise InTheWay("this front-end has a classic queue of that name")
            if known.arguments == arguments:
                return
            self._leave(vhost, known)
        elif vhost.engine.kept_level(vhost.name, name) >= 0:
            # Its row stays, for which the next start keeps them, too.
            raise InTheWay("messages of a classic queue of that name are kept here")
        agreement.adopt_queue(
            vhost,
            QueueDeclaration(
                name=name,
                durable=True,
                arguments=arguments,
                former_arguments=restore.former_arguments_of(row),
            ),
            row.get("made_ms"),
        )
        if known is not None:
            self._replaced()

    def _leave(self, vhost: Vhost, queue: QueuePort) -> None:
        if isinstance(queue, SHARED):
            queue.disown()
            vhost.delete_queue(queue)

    def _put_binding(self, row: Row) -> None:
        vhost = self._node.vhosts[str(row["vhost"])]
        if not agreement.adopt_binding(vhost, restore.edge_of(row)):
            raise ValueError("source or destination is missing")

    def _remove_in(self, vhost: Vhost, kind: str, key: list[str]) -> None:
        if kind == "policy":
            parameters.clear_policy(vhost, key[1], is_operator=key[0] == "operator")
        elif kind == "exchange" and key[0] in vhost.exchanges:
            vhost.delete_exchange(vhost.exchanges[key[0]])
        elif kind == "queue" and key[0] in vhost.queues:
            self._leave(vhost, vhost.queues[key[0]])
        elif kind == "binding":
            vhost.graph.forget(key)
