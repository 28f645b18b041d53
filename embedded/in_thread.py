"""A node in a thread of the caller's process, on an event loop of its own.

State: the thread, its loop, the node. Called from any thread but that one. No thread outlives `stop` or `kill`. In a
child of a fork the broker is not there, since threads do not come along: `forget`.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from concurrent.futures import CancelledError
from typing import Any, TypeVar

import uvloop

from burrowmq.embedded.errors import BrokerError
from burrowmq.embedded.hosted_node import HostedNode, no_thread
from burrowmq.embedded.settings import Ports, Settings

T = TypeVar("T")
ENDED = "the broker has ended meanwhile"


class InThread:
    """One run of a node, from its start to its end."""

    def __init__(self, settings: Settings) -> None:
        self._node = HostedNode(settings, has_own_loop=True)
        self._loop = uvloop.new_event_loop()
        self._entering = threading.Lock()
        self._has_ended = False
        self._thread = threading.Thread(target=self._run, name="burrowmq", daemon=True)

    def start(self) -> Ports:
        """Start it; gives its ports. Raises BrokerError, and leaves nothing then."""
        __tracebackhide__ = True
        try:
            self._thread.start()
        except RuntimeError as error:
            self._loop.close()
            raise no_thread(error) from None
        try:
            return self._call(self._node.start())
        except BaseException:
            self._end()
            raise

    def stop(self) -> bool:
        """Stop it cleanly; False when the store could not be closed so."""
        try:
            return self._call(self._node.stop())
        finally:
            self._end()

    def kill(self) -> None:
        """End it as if its process were killed."""
        try:
            self._call(self._node.kill())
        finally:
            self._end()

    def ask(self, name: str, *arguments: object) -> object:
        """Call a command of the node, and give what it gives. Raises BrokerError."""
        __tracebackhide__ = True
        from burrowmq.embedded.commands import COMMANDS  # noqa: PLC0415 - 20 modules; a start can do without

        return self._call(COMMANDS[name](self._node, *arguments))

    def forget(self) -> None:
        """In a forked child: nothing of it is there any more."""
        self._node.forget()

    def _run(self) -> None:
        loop = self._loop
        asyncio.set_event_loop(loop)
        loop.run_forever()
        # Somebody may still wait, for messages that will not come.
        waiting = asyncio.all_tasks(loop)
        for task in waiting:
            task.cancel()
        loop.run_until_complete(asyncio.gather(*waiting, return_exceptions=True))
        # Here, since the thread that ends the broker may have a loop that runs: a notebook's, or that of an async test.
        loop.run_until_complete(loop.shutdown_default_executor())

    def _call(self, step: Coroutine[Any, Any, T]) -> T:
        __tracebackhide__ = True  # pytest shows the line of the test, not those of the broker
        with self._entering:
            if self._has_ended:
                step.close()
                raise BrokerError(ENDED)
            asked = asyncio.run_coroutine_threadsafe(step, self._loop)
        try:
            return asked.result()
        except CancelledError:
            raise BrokerError(ENDED) from None
        except BrokerError as error:
            raise BrokerError(str(error)) from None

    def _end(self) -> None:
        with self._entering:
            self._has_ended = True
            self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()
        self._node.dissolve()
