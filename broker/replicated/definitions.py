"""Definitions that all front-ends of a cluster have.

These are virtual hosts, users, permissions, policies, limits, exchanges, quorum queues, streams and bindings between
them.
They are rows of the bucket `burrowmq`, the same rows that the store keeps: what is written to the store is shared as
well (`change`), and what others have changed is put in force here (`in_force`), which writes it to the store. So the
store always has the last state that was known, and a node starts with it when the cluster is away.

Each front-end's own are classic queues with what is bound to them, shovels, and what begins with `internal_`.

State owned: which row is being put in force. Made by `broker.node.replication`.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any, Final

from burrowmq.broker.definitions.parameters import INTERNAL, VHOST_LIMITS
from burrowmq.broker.definitions.restore import ORDER
from burrowmq.broker.queue.rules.quorum import QUORUM
from burrowmq.broker.queue.rules.stream import STREAM
from burrowmq.broker.replicated.agreed import LARGE, AgreedRows
from burrowmq.broker.replicated.in_force import Enforcer, InForce, InTheWay, in_order
from burrowmq.broker.words.resource import row_key, unpack_arguments
from burrowmq.cluster.bucket import Bucket
from burrowmq.protocol.errors import AmqpError, InternalError, PreconditionFailed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from burrowmq.broker.replicated.front_end import FrontEnd
    from burrowmq.broker.turn.clock import Scheduler
    from burrowmq.broker.vhost.share import Agreed
    from burrowmq.broker.words.resource import DefinitionLog, Row

BUCKET: Final = "burrowmq"
JOINED: Final = f"{INTERNAL}shared_definitions"
"""The note that a node belongs to a bucket: what it has and the bucket has not was removed."""
SHARED_TYPES: Final = frozenset((QUORUM, STREAM))
FIRST_KEPT: Final = frozenset(("exchange", "queue"))
_OWN: Final = frozenset(("made_ms", "version"))
"""Of a queue's row: what two declarations of one queue may differ in."""


class SharedDefinitions:
    """Those of one node; `broker.vhost.share.Share` is what virtual hosts see of them."""

    def __init__(
        self,
        node: InForce,
        definitions: DefinitionLog,
        front_end: FrontEnd,
        scheduler: Scheduler,
        *,
        replicas: int,
    ) -> None:
        self._node = node
        self._observer = front_end.observer
        self._scheduler = scheduler
        self._enforcer = Enforcer(node, definitions, self._bind_again)
        self.rows = AgreedRows(Bucket(BUCKET, replicas), front_end, scheduler, self)
        front_end.are_queues_known = lambda: self.rows.is_ready or self.rows.is_away
        self._is_started = False
        self.is_seeded = False
        """Whether this is the first start, which has made what it has by itself."""
        self._in_force: tuple[str, str] | None = None  # the row that is being put in force
        self._went_with: list[tuple[str, str]] = []
        self._in_the_way: set[str] = set()
        """Keys of queues that are classic ones here."""

    # -- the node's side --------------------------------------------------------------------------------------------

    def remember(self, rows: Iterable[tuple[str, str, object]]) -> None:
        """The store had these."""
        for kind, key, value in sorted(rows, key=_by_kind):
            if self._is_shared(kind, key, value):
                self.rows.remember(kind, key, value)

    def start(self) -> None:
        """Agree with others from now on."""
        self._is_started = True
        self.rows.start()

    def written(self, kind: str, key: str, value: Any) -> None:
        """A row goes to the store."""
        if self._in_force is not None:
            if value is None and self._in_force != (kind, key) and self.rows.has(kind, key):
                self._went_with.append((kind, key))
            return
        if kind == "queue" and value is None and key in self._in_the_way:
            self._in_the_way.discard(key)
            self._scheduler.call_later(0.0, self._take_up)
            return
        if not self._is_shared(kind, key, value):
            return
        if not self._is_started:
            self.rows.remember(kind, key, value)
            return
        is_new = value is not None and not self.rows.has(kind, key)
        self.rows.change(kind, key, value)
        if is_new and kind == "queue":
            self._share_bindings(value)

    def _take_up(self) -> None:
        """Nothing is in the way of some queue any more."""
        self.apply([*self.rows.of_kind("queue"), *self.rows.of_kind("binding")])

    def _share_bindings(self, row: Row) -> None:
        """A queue that was classic has bindings already, which nobody knew of."""
        vhost = self._node.vhosts[str(row["vhost"])]
        for key, binding in vhost.graph.rows_to("queue", str(row["name"])):
            self.rows.change("binding", key, binding)

    def _is_shared(self, kind: str, key: str, value: Any) -> bool:
        if kind == "binding" and self._leads_to_own(key):
            return False
        if value is None:
            return self.rows.has(kind, key)
        match kind:
            case "queue":
                arguments = unpack_arguments(str(value.get("arguments", "")))
                return arguments.get("x-queue-type") in SHARED_TYPES
            case "binding" if value.get("kind") == "queue":
                return self.rows.has("queue", row_key(value["vhost"], value["destination"]))
            case "parameter" if value.get("is_global"):
                return not str(value.get("name", "")).startswith(INTERNAL)
            case "parameter":
                return bool(value.get("component") == VHOST_LIMITS)
            case _:
                return kind in ORDER

    def _leads_to_own(self, key: str) -> bool:
        """Whether a binding leads to a classic queue that has the name of a shared one."""
        if not self._in_the_way:
            return False
        vhost, _, kind, name, *_ = json.loads(key)
        return kind == "queue" and row_key(vhost, name) in self._in_the_way

    # -- virtual hosts' side; see `broker.vhost.share.Share` ----------------------------------------------------------

    @property
    def is_waiting(self) -> bool:
        """Whether something is not agreed yet."""
        return self.rows.pending_count > 0

    def has(self, kind: str, key: str) -> bool:
        """Whether there is such a row, or is to be one."""
        return self.rows.has(kind, key)

    def propose(self, kind: str, key: str, row: Row | None, then: Agreed) -> None:
        """See there."""
        self.rows.propose(kind, key, row, lambda reason: then(_error(reason)))

    def when_agreed(self, then: Agreed) -> None:
        """See there."""
        self.rows.when_agreed(lambda reason: then(_error(reason)))

    # -- the rows' side; see `broker.replicated.agreed.Keeper` ------------------------------------------------------

    def apply(self, changes: list[tuple[str, str, Any]]) -> None:
        """Put rows in force, and have what went with removed ones removed."""
        for kind, key, value in in_order(changes):
            if kind == "binding" and self._leads_to_own(key):
                continue
            self._in_force = kind, key
            try:
                if value is None:
                    self._enforcer.remove(kind, json.loads(key))
                else:
                    self._enforcer.put(kind, value)
            except InTheWay as error:
                self._in_the_way.add(key)
                self._observer.definition_unusable(kind, key, str(error))
            except (KeyError, TypeError, ValueError) as error:
                self._observer.definition_unusable(kind, key, repr(error))
            finally:
                self._in_force = None
            gone, self._went_with = self._went_with, []
            if value is None:
                self._in_the_way.discard(key)
                for each in gone:
                    self.rows.change(*each, None)
        if changes:
            self._scheduler.touch()

    def _bind_again(self) -> None:
        """What leads to a thing, or from it, went with it when another took its place."""
        self._went_with.clear()
        for kind, key, row in self.rows.of_kind("binding"):
            self._in_force = kind, key
            try:
                self._enforcer.put(kind, row)
            except (KeyError, TypeError, ValueError):
                continue  # its other end comes, or has gone

    def offers(self, created: str, *, is_empty: bool) -> bool:
        """Not what the first start has made of itself, where others are; nor what others have removed since."""
        return self._node.parameters.values.get(JOINED) != created and (
            is_empty or not self.is_seeded
        )

    def joined(self, created: str) -> None:
        """From now on the bucket is right."""
        if self._node.parameters.values.get(JOINED) != created:
            self._node.parameters.put(JOINED, created)
            self._scheduler.touch()

    def is_same(self, kind: str, one: Any, other: Any) -> bool:
        """But for what is each front-end's own."""
        if kind != "queue" or not (isinstance(one, dict) and isinstance(other, dict)):
            return bool(one == other)
        return _declared(one) == _declared(other)

    def is_first_kept(self, kind: str) -> bool:
        """What clients declare, and are told of when it is there and different."""
        return kind in FIRST_KEPT


def _by_kind(row: tuple[str, str, object]) -> int:
    return ORDER.index(row[0]) if row[0] in ORDER else len(ORDER)


def _declared(row: Row) -> dict[str, object]:
    return {name: value for name, value in row.items() if name not in _OWN}


def _error(reason: str) -> AmqpError | None:
    if not reason:
        return None
    if reason.startswith(LARGE):
        return PreconditionFailed(reason)
    return InternalError(f"the metadata store operation timed out: {reason}")
