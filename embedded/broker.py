"""`burrowmq.Broker`: a whole broker for a test suite or a small program, started in milliseconds.

    with burrowmq.Broker() as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))

State: what `BaseBroker` has, and the run that is on, if one is. Start, stop, restart and kill may be called from any
thread, one at a time. One that is left running when the interpreter ends is stopped then.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from types import TracebackType
from typing import Self

from burrowmq.embedded.base import BaseBroker
from burrowmq.embedded.clock import Clock
from burrowmq.embedded.errors import BrokerError
from burrowmq.embedded.in_thread import InThread
from burrowmq.embedded.left_over import LEFT


class Broker(BaseBroker):
    """A broker in this process, in a thread of its own; started by `start` or by `with`.

    `data_dir`: where its files lie, and stay; without one they lie in memory where that can be had, and go with
    the broker. `port`: where it listens on 127.0.0.1, 0 for one that is free. `config`: keys of rabbitmq.conf with
    their values; neither that file nor the environment is read. `clock`: "real", or "manual" for one that stands still
    until `clock.advance` moves it. Raises: BrokerError.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str] | None = None,
        *,
        port: int = 0,
        config: Mapping[str, object] | None = None,
        clock: str = "real",
    ) -> None:
        super().__init__(data_dir, port, config, clock)
        self._run: InThread | None = None
        self._clock = Clock(self._hands, lambda delta_ms: self._running().advance(delta_ms))

    @property
    def clock(self) -> Clock:
        """Its clock, which is to be moved. Raises BrokerError unless it was made with clock="manual"."""
        self._hands.check()
        return self._clock

    # -- life ---------------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start it; a port that the system chose stays the same from then on. Raises BrokerError."""
        run = InThread(self._next_run())
        self._started(run.start())
        self._run = run
        LEFT.add(self)
        return self

    def stop(self) -> None:
        """Stop it cleanly, and remove its directory if that is its own; harmless when it does not run.

        Raises: BrokerError, when the store could not be closed.
        """
        if self._pid != os.getpid():
            return  # a child that was forked: it is the parent's
        self._has_ended = True
        run = self._ended()
        try:
            if run is not None and not run.stop():
                raise BrokerError("the broker's store could not be closed cleanly")
        finally:
            self._directory.remove()

    def restart(self) -> None:
        """Stop it cleanly and start it again, on the same port and directory. Raises BrokerError."""
        run = self._running()
        self._ended()
        run.stop()
        self.start()

    def kill(self) -> None:
        """End it as if its process were killed: connections break, what was not committed is lost.

        `start` has it again, on the same port and directory, as after a crash. Raises BrokerError while it does not
        run.
        """
        run = self._running()
        self._ended()
        run.kill()

    def _ended(self) -> InThread | None:
        run, self._run = self._run, None
        self._is_running = False
        LEFT.discard(self)
        return run

    def _running(self) -> InThread:
        self._check_running()
        assert self._run is not None
        return self._run

    def forget(self) -> None:
        """In a forked child, called by `left_over`: what came along is the parent's."""
        if self._run is not None:
            self._run.forget()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
