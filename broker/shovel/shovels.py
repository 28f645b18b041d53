"""All shovels of a node: they follow their parameters, and can be listed, restarted and deleted.

State owned: the workers, by virtual host and name (static ones have no virtual host), and those that are gone until
their links are closed: who takes the name of one waits for its end. Made by `broker.node.shovels`
when the first shovel is configured; told of every parameter that is set or cleared.

Source: rabbit_shovel_dyn_worker_sup_sup, rabbit_shovel_status, rabbit_shovel_util.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from burrowmq.broker.link.connect import Opener
from burrowmq.broker.link.uri import BadUri
from burrowmq.broker.report.observer import Observer
from burrowmq.broker.shovel.definition import read
from burrowmq.broker.shovel.worker import Worker
from burrowmq.records import dataclass

Key = tuple[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Surroundings:
    """What shovels need of their node."""

    opener: Opener
    cluster_name: Callable[[], str]
    token: Callable[[int], bytes]
    observer: Observer
    wall_ms: Callable[[], int]
    forget: Callable[[str, str], None]
    """Clear the parameter of a shovel that has moved what it was to move."""


class Shovels:
    """The shovels of a node."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self.workers: dict[Key, Worker] = {}
        self.leaving: dict[Key, tuple[Worker, asyncio.Task[None]]] = {}
        """Those that are gone and whose links are not closed yet."""
        self._is_stopped = False

    def put(self, vhost: str, name: str, value: object, *, is_static: bool = False) -> None:
        """A shovel is new, or has another definition: the one before it ends first."""
        if self._is_stopped:
            return
        around = self._surroundings
        try:
            definition = read(name, vhost, value, is_static=is_static)
        except (BadUri, KeyError, TypeError, ValueError, OverflowError) as error:
            # Kept by an earlier version with other rules.
            around.observer.shovel_failed(vhost, name, f"its parameter cannot be used: {error}")
            return
        before = self.workers.get((vhost, name)) or self._leaving_worker((vhost, name))
        worker = self.workers[vhost, name] = Worker(
            definition,
            around.opener,
            around.cluster_name,
            lambda: int.from_bytes(around.token(2), "big"),
            around.observer,
            around.wall_ms,
            self._done,
        )
        worker.start(before)

    def remove(self, vhost: str, name: str) -> None:
        """A shovel's parameter is gone, and so is the shovel; its links close meanwhile."""
        key = vhost, name
        worker = self.workers.pop(key, None)
        if worker is not None:
            worker.end()
            before = self.leaving.get(key)
            ends = self._leave(key, worker, None if before is None else before[1])
            self.leaving[key] = worker, asyncio.get_running_loop().create_task(ends)

    async def _leave(self, key: Key, worker: Worker, before: asyncio.Task[None] | None) -> None:
        """Wait for the end of one that is gone, and of the one before it: who takes its name waits for it, too."""
        try:
            await worker.stop()
            if before is not None:
                await before
        finally:
            if self._leaving_worker(key) is worker:
                del self.leaving[key]

    def _leaving_worker(self, key: Key) -> Worker | None:
        found = self.leaving.get(key)
        return None if found is None else found[0]

    def restart(self, vhost: str, name: str) -> bool:
        """Begin a shovel's next run now; whether there is such a shovel."""
        worker = self.workers.get((vhost, name))
        if worker is None:
            return False
        worker.restart()
        return True

    def _done(self, worker: Worker) -> None:
        definition = worker.definition
        key = (definition.vhost, definition.name)
        if self.workers.get(key) is worker:
            del self.workers[key]
            if not definition.is_static:
                self._surroundings.forget(*key)

    async def stop(self) -> None:
        """End all, and wait for it."""
        self._is_stopped = True
        workers = list(self.workers.values())
        for worker in workers:
            worker.end()
        leaving = (task for _, task in list(self.leaving.values()))
        await asyncio.gather(*(worker.stop() for worker in workers), *leaving)

    def abandon(self) -> None:
        """Let go of everything at once."""
        self._is_stopped = True
        for worker in (*self.workers.values(), *(each for each, _ in self.leaving.values())):
            worker.abandon()
