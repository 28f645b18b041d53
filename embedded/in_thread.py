"""A node in a thread of the caller's process, on an event loop of its own.

State: the thread, its loop, the node. Called from any thread but that one. The process stays the caller's: no signal
handler is set, its garbage collector and its memory are left alone, and no thread outlives `stop` or `kill`.

In a child of a fork the broker is not there: threads do not come along. Its listening sockets and its lock on the data
directory do, and are let go of in the child, so that they are the parent's alone.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Coroutine
from typing import Any, TypeVar
from weakref import WeakSet

import uvloop

from burrowmq.broker.machine.collector import HostsCollector
from burrowmq.broker.machine.reclaim import HostsAllocator
from burrowmq.broker.node.node import START_ERRORS, Node, reason_of
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.node.server_process import Machine
from burrowmq.broker.report.log import LogObserver
from burrowmq.broker.report.log_sinks import Sinks
from burrowmq.broker.rules.auth import Permission
from burrowmq.embedded.errors import BrokerError
from burrowmq.embedded.settings import Settings

T = TypeVar("T")
EVERYTHING = Permission(configure=".*", write=".*", read=".*")


def guests_machine() -> Machine:
    """What a node stands on in a process that is not its own."""
    return Machine(collector=HostsCollector(), allocator=HostsAllocator(), end=None, is_shared=True)


class InThread:
    """One run of a node, from its start to its end."""

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._loaded = settings.loaded()
        self._observer = LogObserver(Sinks(()))
        self._loop = uvloop.new_event_loop()
        self._thread = threading.Thread(target=self._run, name="burrowmq", daemon=True)
        self._node: Node | None = None
        self._pid = os.getpid()
        _running.add(self)

    def start(self) -> int:
        """Start it; gives the port. Raises BrokerError, and leaves nothing then."""
        self._thread.start()
        try:
            return self._call(self._start())
        except START_ERRORS as error:
            self._end()
            raise BrokerError(f"the broker cannot start: {reason_of(error)}") from error
        except BaseException:
            self._end()
            raise

    async def _start(self) -> int:
        loaded = self._loaded
        self._node = node = Node(
            loaded.config, self._observer, machine=guests_machine(), effective=loaded.effective
        )
        await node.start()
        assert node.running is not None
        self._let_in(node.running)
        return node.running.acceptor.ports[0]

    def _let_in(self, running: RunningNode) -> None:
        """A directory that was used before knows its user by another password, or not at all."""
        user, auth = self._settings.user, running.auth
        auth.set_password(user, self._settings.password)
        auth.set_tags(user, ("administrator",))
        for vhost in running.vhosts:
            auth.set_permission(vhost, user, EVERYTHING)
        running.scheduler.touch()

    def stop(self) -> bool:
        """Stop it cleanly; False when the store could not be closed so."""
        assert self._node is not None
        try:
            return self._call(self._node.stop())
        finally:
            self._end()

    def kill(self) -> None:
        """End it as if its process were killed."""
        assert self._node is not None
        try:
            self._call(self._node.kill())
        finally:
            self._end()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        self._loop.run_forever()

    def _call(self, step: Coroutine[Any, Any, T]) -> T:
        return asyncio.run_coroutine_threadsafe(step, self._loop).result()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.run_until_complete(self._loop.shutdown_default_executor())
        self._loop.close()
        _running.discard(self)

    def forget(self) -> None:
        """In a forked child: nothing of it is there any more."""
        if self._node is not None:
            self._node.forget()


_running: WeakSet[InThread] = WeakSet()


def _forget_all() -> None:
    for each in list(_running):
        each.forget()
    _running.clear()


os.register_at_fork(after_in_child=_forget_all)
