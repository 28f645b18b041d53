"""`Broker.serve()`: a broker on the event loop of who asks for it, asyncio's or uvloop's, without a thread for it.

    async with burrowmq.Broker.serve() as broker:
        connection = await aio_pika.connect(broker.url)

State: what `BaseBroker` has, and the node that runs, if one does. Everything is called on that loop. A client that
blocks the loop's thread waits for itself: such clients want `Broker`. A broker that its loop leaves running ends with
the interpreter as one that was killed.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Coroutine, Generator
from types import TracebackType
from typing import Any, Self, TypeVar, cast

from burrowmq.embedded.base import BaseBroker
from burrowmq.embedded.clock import ServedClock
from burrowmq.embedded.errors import BrokerError
from burrowmq.embedded.hosted_node import HostedNode
from burrowmq.embedded.left_over import LEFT

T = TypeVar("T")


def _check_loop() -> None:
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        raise BrokerError(
            "serve() needs a running event loop of asyncio's kind, which trio's is not: use Broker(), in a thread"
        ) from None


class ServedBroker(BaseBroker):
    """A broker on the running loop; started by `await`, `start` or `async with`."""

    _node: HostedNode | None = None

    @property
    def clock(self) -> ServedClock:
        """Its clock, which is to be moved. Raises BrokerError unless it was made with clock="manual"."""
        self._hands.check()
        return ServedClock(self._hands, self._advance)

    async def _advance(self, delta_ms: int) -> int:
        from burrowmq.embedded.commands import COMMANDS  # noqa: PLC0415 - 20 modules; a start can do without

        return cast("int", await COMMANDS["advance"](self._running(), delta_ms))

    # -- life ---------------------------------------------------------------------------------------------------------

    async def start(self) -> Self:
        """Start it; a port that the system chose stays the same from then on. Raises BrokerError."""
        _check_loop()
        node = HostedNode(self._next_run(), has_own_loop=False)
        self._started(await node.start())
        self._node = node
        LEFT.add(self)
        return self

    async def stop(self) -> None:
        """Stop it cleanly, and remove its directory if that is its own; harmless when it does not run.

        Raises: BrokerError, when the store could not be closed.
        """
        if self._pid != os.getpid():
            return  # a child that was forked: it is the parent's
        self._has_ended = True
        self._kept.release()
        await _through(self._stop(self._ended()))

    async def _stop(self, node: HostedNode | None) -> None:
        try:
            if node is not None and not await node.stop():
                raise BrokerError("the broker's store could not be closed cleanly")
        finally:
            self._directory.remove()

    async def restart(self) -> None:
        """Stop it cleanly and start it again, on the same port and directory. Raises BrokerError."""
        node = self._running()
        self._ended()
        await _through(node.stop())
        self._keep_ports()
        await self.start()

    async def kill(self) -> None:
        """End it as if its process were killed; `start` has it again. Raises BrokerError while it does not run."""
        node = self._running()
        self._ended()
        await _through(node.kill())
        self._keep_ports()

    def _ended(self) -> HostedNode | None:
        node, self._node = self._node, None
        self._is_running = False
        LEFT.discard(self)
        return node

    def _running(self) -> HostedNode:
        self._check_running()
        assert self._node is not None
        return self._node

    def end(self) -> None:
        """The interpreter ends, called by `left_over`: its loop does not run any more."""
        node = self._ended()
        if node is not None:
            node.drop()
        self._directory.remove()

    def forget(self) -> None:
        """In a forked child, called by `left_over`: what came along is the parent's."""
        if self._node is not None:
            self._node.forget()

    def __await__(self) -> Generator[Any, Any, Self]:
        return self.start().__await__()

    async def __aenter__(self) -> Self:
        try:
            return await self.start()
        except BaseException:
            if not self.is_running:
                await self.stop()  # nobody else will: there is no block to leave
            raise

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.stop()


async def _through(step: Coroutine[Any, Any, T]) -> T:
    """What has begun to end is ended, also when who waits for it is cancelled."""
    return await asyncio.shield(asyncio.ensure_future(step))
