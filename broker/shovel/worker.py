"""A shovel for as long as it exists: runs, the pauses between them, and its status.

    starting     links are being opened
    running      messages move
    terminated   the last run ended; the next begins after the reconnect delay (never, if that is 0)

State owned: the task, the run under way, state and since when. Never two runs at a time: the next opens its links when
the last has closed its own, so that what was given back is in order again.

Source: rabbit_shovel_worker, rabbit_shovel_status.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Literal

from burrowmq.broker.link.channel import ChannelClosed, LinkLost
from burrowmq.broker.link.connect import CannotConnect, Opener
from burrowmq.broker.report.observer import Observer
from burrowmq.broker.shovel.definition import Definition
from burrowmq.broker.shovel.headers import destination_names, source_names
from burrowmq.broker.shovel.run import DONE, Run

State = Literal["starting", "running", "terminated"]


class Worker:
    """One shovel."""

    def __init__(
        self,
        definition: Definition,
        opener: Opener,
        cluster_name: Callable[[], str],
        choose: Callable[[], int],
        observer: Observer,
        wall_ms: Callable[[], int],
        on_done: Callable[[Worker], None],
    ) -> None:
        self.definition = definition
        self.state: State = "starting"
        self.since_ms = wall_ms()
        self.reason = ""
        self.run: Run | None = None
        self.forwarded_before = 0
        """By earlier runs."""
        self._opener = opener
        self._cluster_name = cluster_name
        self._choose = choose
        self._observer = observer
        self._wall_ms = wall_ms
        self._on_done = on_done
        self._stopping = asyncio.Event()
        self._again = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def start(self, after: Worker | None = None) -> None:
        """Begin, once the shovel that was in its place has ended."""
        self._task = asyncio.get_running_loop().create_task(self._work(after))

    def restart(self) -> None:
        """End this run, and begin the next without a pause."""
        self._again.set()
        if self.run is not None:
            self.run.end("restarted")

    async def stop(self) -> None:
        """End for good; what was published is confirmed or given back."""
        self.end()
        if self._task is not None:
            with contextlib.suppress(asyncio.CancelledError):
                await asyncio.shield(self._task)

    def end(self) -> None:
        """Ask it to end; `stop` waits for it."""
        self._stopping.set()
        self._again.set()
        if self.run is not None:
            self.run.end("stopped")

    def abandon(self) -> None:
        """Let go of everything at once, as if the process were killed."""
        self._stopping.set()
        if self._task is not None:
            self._task.cancel()
        if self.run is not None:
            self.run.abort()

    async def _work(self, after: Worker | None) -> None:
        if after is not None:
            await after.stop()
        while not self._stopping.is_set():
            self._again.clear()
            reason = await self._run_once()
            if reason == DONE:
                self._observer.shovel_ended(self.definition.vhost, self.definition.name)
                self._on_done(self)
                return
            if self._stopping.is_set():
                return
            self._change("terminated", reason)
            delay_s = self.definition.reconnect_delay_s
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._again.wait(), delay_s or None)

    async def _run_once(self) -> str:
        """One run, from its links to their end; why it ended."""
        self._change("starting")
        run = self.run = Run(self.definition, self._opener, self._cluster_name())
        starting = asyncio.ensure_future(run.start(self._choose()))
        try:
            # A stop, or a link's end, is not to wait for an answer that does not come.
            await asyncio.wait((starting, run.ended), return_when=asyncio.FIRST_COMPLETED)
            if starting.done():
                starting.result()
                if not run.ended.done():
                    self._change("running")
            return await run.ended
        except (CannotConnect, ChannelClosed, LinkLost) as error:
            return str(error)
        except Exception as error:  # noqa: BLE001 - a bug in one must not end it for good, nor go unseen
            self._observer.bug_found(f"shovel '{self.definition.name}'", error)
            return "a bug was found, see the log"
        finally:
            starting.cancel()
            await asyncio.wait((starting,))
            if not starting.cancelled():
                starting.exception()  # seen
            self.forwarded_before += run.forwarded
            run.end("ended")
            await run.close()
            run.forwarded = 0

    def _change(self, state: State, reason: str = "") -> None:
        self.state, self.reason, self.since_ms = state, reason, self._wall_ms()
        vhost, name = self.definition.vhost, self.definition.name
        if state == "running":
            self._observer.shovel_running(vhost, name)
        elif state == "terminated":
            self._observer.shovel_failed(vhost, name, reason)

    def names(self, end: Literal["source", "destination"]) -> dict[str, str]:
        """What an end is called, by RabbitMQ's names for the status."""
        found = source_names if end == "source" else destination_names
        return {key.replace("-", "_"): name for key, name in found(self.definition).items()}

    @property
    def forwarded(self) -> int:
        """Messages that all runs have published."""
        return self.forwarded_before + (0 if self.run is None else self.run.forwarded)
