"""`burrowmq.Broker`: a whole broker for a test suite or a small program, started in milliseconds.

    with burrowmq.Broker() as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))

State: what `BaseBroker` has, and the run that is on, if one is. Start, stop, restart and kill may be called from any
thread, one at a time. One that is left running when the interpreter ends is stopped then.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from types import TracebackType
from typing import Protocol, Self, cast

from burrowmq.embedded.base import BaseBroker
from burrowmq.embedded.clock import Clock
from burrowmq.embedded.errors import BrokerError
from burrowmq.embedded.in_thread import InThread
from burrowmq.embedded.left_over import LEFT
from burrowmq.embedded.served import ServedBroker
from burrowmq.embedded.settings import PlainMessage, Ports, Recorded, Settings
from burrowmq.embedded.vhost import VirtualHost


class Run(Protocol):
    """One run of a node, wherever it is."""

    def start(self) -> Ports:
        """Start it; gives its ports. Raises BrokerError, and leaves nothing then."""

    def stop(self) -> bool:
        """Stop it cleanly; False when the store could not be closed so."""

    def kill(self) -> None:
        """End it as if its process were killed, or by that."""

    def ask(self, name: str, *arguments: object) -> object:
        """Call one of its commands. Raises BrokerError."""

    def forget(self) -> None:
        """In a forked child: let go of what came along."""


def _kind_of_run(mode: str | None) -> Callable[[Settings], Run]:
    """What makes the runs of a broker. Raises BrokerError."""
    if mode == "process" or (mode is None and _are_threads_replaced()):
        from burrowmq.embedded.in_process import InProcess  # noqa: PLC0415 - few want it

        return InProcess
    if mode not in (None, "thread"):
        raise BrokerError(f"mode is {mode!r}: give 'thread' or 'process'")
    if _are_threads_replaced():
        raise BrokerError(
            "gevent has replaced threads, and a broker needs real ones: give mode='process', or none"
        )
    return InThread


def _are_threads_replaced() -> bool:
    """Whether gevent's `monkey` has put greenlets in the place of threads."""
    monkey = sys.modules.get("gevent.monkey")
    return monkey is not None and bool(monkey.is_module_patched("threading"))


class Broker(BaseBroker):
    """A broker in a thread of this process, or in a process of its own; started by `start` or by `with`.

    `data_dir`: where its files lie, and stay; without one they lie in memory where that can be had, and go with
    the broker. `port`: where it listens on 127.0.0.1, 0 for one that is free. `config`: keys of rabbitmq.conf with
    their values; neither that file nor the environment is read. `clock`: "real", or "manual" for one that stands still
    until `clock.advance` moves it. `mode`: "thread" or "process"; without one it is a thread, unless gevent has
    put something else in the place of threads. `management`: whether there are the HTTP API and the UI, too
    (`management_url`); they take 0.3 s to load. Raises: BrokerError.
    """

    def __init__(
        self,
        data_dir: str | os.PathLike[str] | None = None,
        *,
        port: int = 0,
        config: Mapping[str, object] | None = None,
        mode: str | None = None,
        clock: str = "real",
        management: bool = False,
    ) -> None:
        self._make_run = _kind_of_run(mode)
        super().__init__(data_dir, port, config, clock, management)
        self._run: Run | None = None
        self._recorded: dict[str, Sequence[PlainMessage]] = {}

    @staticmethod
    def serve(
        data_dir: str | os.PathLike[str] | None = None,
        *,
        port: int = 0,
        config: Mapping[str, object] | None = None,
        clock: str = "real",
        management: bool = False,
    ) -> ServedBroker:
        """One on the event loop that runs: `await` it, or use it in `async with`. Raises BrokerError."""
        return ServedBroker(data_dir, port, config, clock, management)

    @property
    def clock(self) -> Clock:
        """Its clock, which is to be moved. Raises BrokerError unless it was made with clock="manual"."""
        self._hands.check()
        return Clock(self._hands, self._advance)

    def _advance(self, delta_ms: int) -> int:
        return cast("int", self.ask("advance", delta_ms))

    # -- what a test wants of it --------------------------------------------------------------------------------------

    def vhost(self, name: str) -> VirtualHost:
        """A virtual host of that name, to be made by `with` and deleted at its end."""
        return VirtualHost(self, name)

    def add_vhost(self, name: str) -> None:
        """Make a virtual host in which publishes are recorded. Raises BrokerError."""
        self.ask("add_vhost", name)
        self._recorded[name] = ()

    def delete_vhost(self, name: str) -> None:
        """Delete a virtual host with all that is in it; its connections end. Raises BrokerError."""
        self.ask("delete_vhost", name)
        self._recorded.pop(name, None)

    def block(self) -> None:
        """Block connections that publish, as when memory is short, until `heal`. Raises BrokerError."""
        self.ask("block", True)

    def slow_disk(self, ms: float) -> None:
        """Have each sync of the disk take so much longer, until `heal`. Raises BrokerError."""
        self.ask("slow_disk", ms)

    def fail_disk(self, error: int) -> None:
        """Have each write to the disk fail with an errno (ENOSPC, EDQUOT, EIO), until `heal`. Raises BrokerError."""
        self.ask("fail_disk", error)

    def heal(self) -> None:
        """End `block`, `slow_disk`, `fail_disk` and what is left of `nack_next`. Raises BrokerError."""
        self.ask("heal")

    # -- life ---------------------------------------------------------------------------------------------------------

    def start(self) -> Self:
        """Start it; a port that the system chose stays the same from then on. Raises BrokerError."""
        __tracebackhide__ = True
        run = self._make_run(self._next_run()._replace(recorded=self._recorded))
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
        self._kept.release()
        run = self._ended()
        try:
            if run is not None and not run.stop():
                raise BrokerError("the broker's store could not be closed cleanly")
        finally:
            self._directory.remove()

    def restart(self) -> None:
        """Stop it cleanly and start it again, on the same port and directory. Raises BrokerError."""
        run = self._running()
        with suppress(BrokerError):  # its store has failed: what was recorded goes with it
            self._recorded.update(cast("Recorded", run.ask("recorded")))
        self._ended()
        run.stop()
        self._keep_ports()
        self.start()

    def kill(self) -> None:
        """End it as if its process were killed: connections break, what was not committed is lost.

        `start` has it again, on the same port and directory, as after a crash. Raises BrokerError while it does not
        run.
        """
        run = self._running()
        self._ended()
        self._recorded = dict.fromkeys(self._recorded, ())
        run.kill()
        self._keep_ports()

    def end(self) -> None:
        """The interpreter ends, called by `left_over`."""
        self.stop()

    def _ended(self) -> Run | None:
        run, self._run = self._run, None
        self._is_running = False
        LEFT.discard(self)
        return run

    def _running(self) -> Run:
        __tracebackhide__ = True
        self._check_running()
        assert self._run is not None
        return self._run

    def ask(self, name: str, *arguments: object) -> object:
        """Call one of the node's commands (`embedded.commands`). Raises BrokerError."""
        __tracebackhide__ = True
        return self._running().ask(name, *arguments)

    def forget(self) -> None:
        """In a forked child, called by `left_over`: what came along is the parent's."""
        if self._run is not None:
            self._run.forget()

    def __enter__(self) -> Self:
        __tracebackhide__ = True
        try:
            return self.start()
        except BaseException:
            if not self.is_running:
                self.stop()  # nobody else will: there is no block to leave
            raise

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self.stop()
