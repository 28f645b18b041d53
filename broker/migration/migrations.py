"""The migrations of one node: begun when the cluster and the disk know of them, gone on with by the next start.

Each has a note among the node's own parameters from before its first message moves until the commit in which the new
queue is what a start finds. Without the note a start would take what is left of the old queue for all of it.

State owned: those under way. Made by `broker.node.running`; asked by management.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Protocol

from burrowmq.broker.definitions.parameters import MIGRATION_NOTE, Parameters
from burrowmq.broker.migration.migration import Migration, obstacle, successor_of
from burrowmq.broker.queue.port import QueuePort
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.report.observer import Observer
from burrowmq.broker.session.session import Session
from burrowmq.broker.turn.clock import Scheduler
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.broker.words.resource import row_key
from burrowmq.protocol.errors import AmqpError
from burrowmq.records import NamedTuple
from burrowmq.storage.engine import Engine


class MigrationNode(Protocol):
    """What they need of their node."""

    vhosts: dict[str, Vhost]
    sessions: dict[Session, None]
    parameters: Parameters
    engine: Engine

    @property
    def scheduler(self) -> Scheduler:
        """Time, and turns."""
        ...

    @property
    def observer(self) -> Observer:
        """What is told of those that begin and end."""
        ...


class Progress(NamedTuple):
    """How far one is."""

    vhost: str
    name: str
    state: str
    moved_count: int
    left_count: int
    refused_count: int


class Migrations:
    """Those of one node."""

    def __init__(self, node: MigrationNode) -> None:
        self._node = node
        self._under_way: dict[tuple[str, str], Migration] = {}
        self._beginning: set[tuple[str, str]] = set()

    def progress(self) -> list[Progress]:
        """Those that have begun and not ended."""
        return [
            Progress(
                vhost,
                name,
                "finishing" if each.is_finishing else "moving",
                each.moved_count,
                each.left_count,
                each.refused_count,
            )
            for (vhost, name), each in self._under_way.items()
        ]

    def is_under_way(self, vhost: str, name: str) -> bool:
        """Whether a queue is on its way, or about to be."""
        place = vhost, name
        return place in self._under_way or place in self._beginning

    def begin(self, vhost: Vhost, queue: Queue, then: Callable[[str], None]) -> None:
        """Begin with one that `obstacle` has nothing against; `then` is told why that cannot be, or ""."""
        place = vhost.name, queue.name
        self._beginning.add(place)
        new = vhost.make_successor(successor_of(queue))

        def fail(reason: str) -> None:
            self._beginning.discard(place)
            new.leave()  # its stream may have been there, with what others have in it
            then(reason)

        def changed() -> str:
            if vhost.queues.get(queue.name) is not queue:
                return "the queue is gone"
            return obstacle(vhost, queue)

        def on_cluster(error: AmqpError | None) -> None:
            reason = changed() if error is None else error.text
            if reason:
                fail(reason)
                return
            value = {"vhost": vhost.name, "name": queue.name, "made_ms": queue.made_ms}
            self._node.parameters.put(_note(*place), value)
            engine, scheduler = self._node.engine, self._node.scheduler
            engine.require_sync()
            scheduler.when_committed(engine.epoch, on_noted)
            scheduler.touch()

        def on_noted() -> None:
            reason = changed()
            if reason:
                self._forget(place)
                fail(reason)
                return
            self._beginning.discard(place)
            self._start(vhost, queue, new)
            then("")

        new.ask(on_cluster)

    def resume(self) -> None:
        """At a start, before anybody is served: go on with those that were under way."""
        for key, vhost, queue in list(_noted(self._node.parameters.values, self._node.vhosts)):
            if vhost is None or queue is None:
                self._node.parameters.remove(key)
                continue
            place = vhost.name, queue.name
            try:
                new = vhost.make_successor(successor_of(queue, is_resumed=True))
            except ValueError as error:  # there is no cluster any more
                self._node.observer.migration_waits(*place, str(error))
                continue
            self._start(vhost, queue, new)

    def _start(self, vhost: Vhost, old: Queue, new: QueuePort) -> None:
        place = vhost.name, old.name
        migration = self._under_way[place] = Migration(
            vhost,
            old,
            new,
            self._node.scheduler,
            acked=lambda log_id: self._node.engine.require_acks((log_id,)),
            is_awaited=self._is_in_a_transaction,
            settled=partial(self._forget, place),
            ended=self._on_ended,
        )
        self._node.observer.migration_began(*place)
        migration.start()

    def _is_in_a_transaction(self, queue: Queue) -> bool:
        """Whether a publish into it waits for its tx.commit: such are routed already."""
        return any(
            queue in (route.queues or ())
            for session in self._node.sessions
            for channel in session.channels.values()
            if channel.transaction is not None
            for run in channel.transaction.publishes
            for route in run.routes
        )

    def _on_ended(self, migration: Migration) -> None:
        place = migration.vhost.name, migration.old.name
        del self._under_way[place]
        self._node.observer.migration_ended(*place, migration.moved_count)

    def _forget(self, place: tuple[str, str]) -> None:
        self._node.parameters.remove(_note(*place))


def _note(vhost: str, name: str) -> str:
    return MIGRATION_NOTE + row_key(vhost, name)


def _noted(
    parameters: Mapping[str, object], vhosts: Mapping[str, Vhost]
) -> Iterator[tuple[str, Vhost | None, Queue | None]]:
    """Each note, and what is there of its queue; one that was made anew since is another's."""
    for key, value in parameters.items():
        if key.startswith(MIGRATION_NOTE):
            place = value if isinstance(value, dict) else {}
            vhost = vhosts.get(str(place.get("vhost")))
            queue = None if vhost is None else vhost.queues.get(str(place.get("name")))
            if not isinstance(queue, Queue) or place.get("made_ms", queue.made_ms) != queue.made_ms:
                queue = None
            yield key, vhost, queue
