"""A move of many queues: some at a time, again after a loss, until nothing is left; its progress and its report.

`Job.start` begins, `stop` ends it between two batches; starting one for the same broker again goes on where it was. A
link that is lost, a broker that is down, a queue that has consumers are waited for. When a link was lost after a queue
was done, that queue is looked at again before the end: a broker that was killed gives back what it was told last.

Journals lie in `<data-dir>/import/<host>_<port>/`, a file for each queue. A move that has ended without a failure
removes them; a copy keeps them, so that copying again, or moving, passes over what is here. The URI, which has a
password in it, is nowhere but in memory.

State owned: the tasks, the rows, the directory while it runs (one job of a node at a time). Called by
`management.commands.imports`; ended by the node. Source: none, RabbitMQ has no such thing.
"""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol, TypeVar
from zlib import crc32

from burrowmq.broker.imports.inbox import BATCH, Failed, Inbox, Lost
from burrowmq.broker.imports.journal import Journal
from burrowmq.broker.imports.move import Kind, Move, Refused, Row
from burrowmq.broker.link.connect import CannotConnect, Opener, open_link
from burrowmq.broker.queue.queue import Queue
from burrowmq.records import dataclass

if TYPE_CHECKING:
    from burrowmq.broker.link.link import Link
    from burrowmq.broker.link.uri import Target
    from burrowmq.broker.vhost.vhost import Vhost

T = TypeVar("T")

AT_ONCE: Final = 4
"""Queues that are moved at the same time."""
RETRY_S: Final = 1.0
ALARM_S: Final = 0.2
STOP_GRACE_S: Final = 10.0
DIRECTORY: Final = "import"
_PLAIN: Final = re.compile(r"[A-Za-z0-9.:_-]{1,100}")


class Stopped(Exception):
    """Somebody has stopped the job."""


class Store(Protocol):
    """What of the store a job needs."""

    @property
    def epoch(self) -> int:
        """The commit that collects."""
        ...

    def require_sync(self) -> None:
        """Somebody waits for it."""
        ...

    def require_acks(self, queue_ids: Iterable[int]) -> None:
        """And for what was acked in these queues."""
        ...


class Commits(Protocol):
    """Who tells of commits."""

    def when_committed(self, epoch: int, callback: Callable[[], None]) -> object:
        """Call back when it is durable."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """What of the node a job needs."""

    vhosts: dict[str, Vhost]
    store: Store
    commits: Commits
    refused_in: Callable[[int], Refused]
    """Of which queues the disk has refused something of a commit that has just been done."""
    alarm: Callable[[], str]
    """What this node is short of, empty when nothing is."""
    opener: Opener
    data_dir: str
    run: int
    """Names this run of the node."""
    now_ms: Callable[[], int]
    """Milliseconds since the epoch."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """What is to be moved; a `rate` of 0 is no limit."""

    target: Target
    queues: tuple[tuple[str, str], ...]
    is_copy: bool = False
    is_quiet: bool = False
    """Whether nobody publishes there: what is alike is counted then, else it may come twice after a stop."""
    trusts_times: bool = False
    """Whether TTLs go on from the times that messages bear."""
    rate: float = 0.0


class Job:
    """One move."""

    def __init__(self, world: World, wish: Wish) -> None:
        self.wish = wish
        self.rows = [Row(vhost, name) for vhost, name in wish.queues]
        self.state = "running"
        self.waits = ""
        """What all queues wait for, empty when they do not."""
        self._world = world
        self.run = world.run
        self.directory = Path(world.data_dir, DIRECTORY, _directory_name(wish.target))
        self._was_down = False
        # A second's messages at most, shared by those that work at the same time.
        self._batch = min(BATCH, max(1, int(wish.rate / AT_ONCE))) if wish.rate else BATCH
        self._links: set[Link] = set()
        self._losses = 0
        self._reached: set[str] = set()
        self._done_at: dict[int, int] = {}
        self._task: asyncio.Task[None] | None = None
        self._is_stopping = False
        self._next_s = 0.0

    # -- start and stop -------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Begin, on the running loop. Raises: OSError, when there can be no directory."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._task = asyncio.get_running_loop().create_task(self._run())

    @property
    def is_running(self) -> bool:
        """Whether it is at work."""
        return self._task is not None and not self._task.done()

    async def stop(self) -> None:
        """End between two batches."""
        self._is_stopping = True
        grace = STOP_GRACE_S if self._links else 0.0  # without a link nothing is on its way
        for link in list(self._links):
            link.abort()
        if self._task is not None:
            _, pending = await asyncio.wait({self._task}, timeout=grace)
            if pending:  # a link that is being made, for one
                self._task.cancel()
                await asyncio.wait(pending)

    def cancel(self) -> None:
        """End as if the process were killed."""
        self._is_stopping = True
        if self._task is not None:
            self._task.cancel()
        for link in list(self._links):
            link.abort()

    # -- work -----------------------------------------------------------------------------------------------------

    async def _run(self) -> None:
        try:
            while todo := [n for n in range(len(self.rows)) if self._is_open(n)]:
                await self._pass(todo)
            is_well = all(row.state == "done" for row in self.rows)
            if is_well and not self.wish.is_copy:
                await self.in_thread(lambda: shutil.rmtree(self.directory, ignore_errors=True))
            self.state = "finished" if is_well else "failed"
        except Stopped:
            self.state = "stopped"
        except asyncio.CancelledError:
            self.state = "stopped"
            raise
        except Exception as error:
            self.state = "failed"
            for row in self.rows:
                row.reason = row.reason or f"{type(error).__name__}: {error}"
            raise

    async def _pass(self, todo: list[int]) -> None:
        """Look at these queues, some at a time. Raises: Stopped, when all workers have come to their end."""
        waiting = iter(todo)
        workers = [self._work(waiting) for _ in range(min(AT_ONCE, len(todo)))]
        for error in await asyncio.gather(*workers, return_exceptions=True):
            if error is not None:
                raise error

    def _is_open(self, number: int) -> bool:
        """Whether a queue is still to be looked at."""
        if self.rows[number].state == "failed":
            return False
        return self._done_at.get(number, -1) != self._losses and (
            number not in self._done_at or not self.wish.is_copy
        )

    async def _work(self, waiting: Iterator[int]) -> None:
        """One of several workers, which share the iterator."""
        for number in waiting:
            await self._move(number)

    async def _move(self, number: int) -> None:
        """One queue, until it is done or cannot be."""
        row = self.rows[number]
        while True:
            before = self._losses
            try:
                await self._try(number, row)
            except (Lost, CannotConnect) as error:
                if self._is_stopping:
                    row.state = "stopped"
                    raise Stopped from error
                is_first = row.vhost not in self._reached and not self._losses
                if is_first and isinstance(error, CannotConnect):
                    # It never worked: a wrong address, password or certificate does not mend itself.
                    row.state, row.reason = "failed", f"{self.wish.target.public}: {error}"
                    return
                self._losses += 1
                self._was_down |= isinstance(error, CannotConnect)
                row.state, row.reason = "waiting", str(error)
                await asyncio.sleep(RETRY_S)
                continue
            except (Failed, OSError, ValueError) as error:
                row.state, row.reason = "failed", str(error)
                return
            row.reason = ""
            self._done_at[number] = before
            return

    async def _try(self, number: int, row: Row) -> None:
        if self._is_stopping:
            raise Stopped
        queue = self.queue(row.vhost, row.name)
        if queue is None:
            raise Failed("there is no such queue here")
        journal = Journal(self._path(row), row.vhost, row.name, queue.made_ms)
        inbox = Inbox()
        link: Link | None = None
        try:
            await self.in_thread(journal.open)
            target = replace(self.wish.target, vhost=row.vhost)
            link = await open_link(self._world.opener, target, inbox, f"import of {row.name}")
            self._links.add(link)
            self._reached.add(row.vhost)
            kind = Kind(
                is_copy=self.wish.is_copy,
                is_quiet=self.wish.is_quiet,
                batch=self._batch,
                run=self.run,
                trusts_times=self.wish.trusts_times,
                was_down=lambda: self._was_down,
            )
            move = Move(self, link, inbox, journal, row, kind)
            may_come_again = self._done_at.get(number, -1) != self._losses
            await move.run(may_come_again=may_come_again)
        finally:
            journal.close()
            if link is not None:
                self._links.discard(link)
                link.close()

    def _path(self, row: Row) -> Path:
        name = f"{row.vhost}\0{row.name}".encode("utf-8", "surrogateescape")
        return self.directory / f"{crc32(name):08x}{crc32(name[::-1]):08x}.journal"

    # -- what a move needs ------------------------------------------------------------------------------------------

    def queue(self, vhost: str, name: str) -> Queue | None:
        """The classic queue of that name."""
        found = self._world.vhosts.get(vhost)
        queue = None if found is None else found.queues.get(name)
        return queue if isinstance(queue, Queue) else None

    async def commit(self, acked: Iterable[int] = ()) -> Refused:
        """When everything staged by now is durable, and what was acked in these queues of the store; but for these."""
        done: asyncio.Future[Refused] = asyncio.get_running_loop().create_future()
        world = self._world
        epoch = world.store.epoch

        def committed() -> None:
            if not done.done():
                done.set_result(world.refused_in(epoch))

        world.store.require_sync()
        world.store.require_acks(acked)
        world.commits.when_committed(epoch, committed)
        return await done

    async def may_go_on(self, count: int) -> None:
        """When so many more messages may be taken. Raises: Stopped."""
        loop = asyncio.get_running_loop()
        while (short := self._world.alarm()) and not self._is_stopping:
            # Alarms are looked at here only: nobody tells a job of them.
            self.waits = f"this node is {short}"
            await asyncio.sleep(ALARM_S)
        self.waits = ""
        if self.wish.rate and count:
            now = loop.time()
            wait_s = max(0.0, self._next_s - now)
            self._next_s = max(self._next_s, now) + count / self.wish.rate
            while wait_s > 0 and not self._is_stopping:
                await asyncio.sleep(min(wait_s, 1.0))
                wait_s -= 1.0
        if self._is_stopping:
            raise Stopped

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        return self._world.now_ms()

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Do what waits for the disk, to its end."""
        return await asyncio.shield(asyncio.get_running_loop().run_in_executor(None, work))


def _directory_name(target: Target) -> str:
    """A file's name for a host and port, whatever somebody may call a host."""
    name = f"{target.host}_{target.port}"
    if _PLAIN.fullmatch(name):
        return name
    return f"host-{crc32(name.encode('utf-8', 'surrogatepass')):08x}"


def document(job: Job) -> dict[str, object]:
    """What is told of a job."""
    rows = [
        {
            "vhost": row.vhost,
            "name": row.name,
            "there": row.there,
            "here": row.here,
            "moved": row.moved,
            "again": row.again,
            "maybe_twice": row.is_unsure,
            "ttl_anew": row.ttl_anew,
            "left": row.left,
            "state": row.state,
            "reason": row.reason,
        }
        for row in job.rows
    ]
    return {
        "state": job.state,
        "waits": job.waits if job.is_running else "",
        "from": job.wish.target.public,
        "keep": job.wish.is_copy,
        "no_publishers": job.wish.is_quiet,
        "ttl_from_timestamp": job.wish.trusts_times,
        "rate": job.wish.rate,
        "there": sum(row.there for row in job.rows),
        "moved": sum(row.moved for row in job.rows),
        "left": sum(row.left for row in job.rows),
        "queues": rows,
    }
