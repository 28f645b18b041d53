"""A move of one queue on the real store, on a disk whose power is cut: runs of a node, one after the other.

`There` is the other broker's end of a link. `Node` is one run of ours: an engine that works inline, the queue that it
found, and the move; `Power` has what outlives it, the disk, the definitions, the journal and what is left there. State:
all of that. Callers: tests of `burrowmq.broker.imports`.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any, TypeVar, cast

from burrowmq.broker.imports.inbox import Inbox
from burrowmq.broker.imports.journal import Journal
from burrowmq.broker.imports.move import Kind, Move, Refused, Row
from burrowmq.broker.queue.context import QueueContext, QueueOptions
from burrowmq.broker.queue.invariants import verify
from burrowmq.broker.queue.origin import Origin
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.queue.rules.settings import Settings
from burrowmq.broker.queue.run import DeliveryRun as QueueRun
from burrowmq.broker.report.metrics import NodeMetrics
from burrowmq.protocol import methods
from burrowmq.protocol.client.events import ClientEvent, DeliveryRun, ReplyReceived
from burrowmq.protocol.codec import Message, load_message
from burrowmq.storage.disk.checked_writer import CheckedWriter
from burrowmq.storage.engine import Engine
from burrowmq.storage.types import StoreOptions
from tests.simulation.store_world import SilentObserver, SimDefinitions
from tests.support.fake_scheduler import FakeScheduler
from tests.support.messages import body_of
from tests.support.sim_filesystem import PowerCut, SimFileSystem

T = TypeVar("T")


class There:
    """The other broker's end of a link: one queue, which nobody else uses. It has forgotten nobody's acks.

    What it says comes in that order, as far as the link is read. With `is_slow` it begins to deliver, one message after
    the other, when it is asked how many there are: its answer is behind them.
    """

    def __init__(
        self, messages: list[Message], inbox: Inbox, *, seen: int = 0, is_slow: bool = False
    ) -> None:
        self.left = messages
        self.connection = self
        self._inbox = inbox
        self._ready = len(messages)
        self._acked = 0
        self._seen = seen
        self._is_slow = is_slow
        self._due: list[ClientEvent] = []
        self._wire: deque[ClientEvent] = deque()
        self._is_paused = False

    def send(self, channel: int, method: methods.Method) -> None:
        """Answer."""
        if isinstance(method, methods.Basic.Consume):
            self._wire.append(ReplyReceived(1, methods.Basic.ConsumeOk("import")))
            self._due = self._deliveries(channel)
            self._ready = 0
            if not self._is_slow:
                self._deliver()
            self._go_on()
        elif isinstance(method, methods.Queue.Declare):
            self._deliver()
            self._answer(methods.Queue.DeclareOk("q", self._ready, 0))
        elif isinstance(method, methods.Basic.Qos):
            self._answer(methods.Basic.QosOk())
        else:
            self._answer(methods.Channel.OpenOk())

    def _deliveries(self, channel: int) -> list[ClientEvent]:
        again, new = self.left[: self._seen], self.left[self._seen :]
        if not self._is_slow:
            runs = [(1, True, again), (1 + len(again), False, new)]
        else:
            runs = [(1 + at, at < len(again), [each]) for at, each in enumerate(self.left)]
        return [
            DeliveryRun(channel, b"import", tag, is_again, some, sum(each.size for each in some))
            for tag, is_again, some in runs
            if some
        ]

    def _deliver(self) -> None:
        self._wire += self._due
        self._due = []

    def _answer(self, method: methods.Method) -> None:
        self._wire.append(ReplyReceived(1, method))
        self._go_on()

    def _go_on(self) -> None:
        while self._wire and not self._is_paused:
            self._inbox.received(cast("Any", self), [self._wire.popleft()])

    def ack(self, _channel: int, tag: int, *, multiple: bool) -> None:
        """They are gone here."""
        assert multiple
        del self.left[: tag - self._acked]
        self._acked = tag

    def flush(self) -> None:
        """All was sent at once."""

    def pause_reading(self) -> None:
        """What comes has to wait."""
        self._is_paused = True

    def resume_reading(self) -> None:
        """It goes on in another turn."""
        self._is_paused = False
        asyncio.get_running_loop().call_soon(self._go_on)


class Node:
    """One run of ours, on the disk as it is found."""

    def __init__(self, power: Power, run: int) -> None:
        self._power = power
        self._run = run
        self.scheduler = FakeScheduler()
        disk, rows = power.disk, power.rows
        self.engine = Engine(
            "/data",
            disk,
            power.options,
            SilentObserver(),
            load_message,
            lambda _: SimDefinitions(disk, rows),
            make_writer=CheckedWriter,
        )
        self.engine.recover()
        self.engine.start_inline()
        context = QueueContext(
            vhost_name="/",
            scheduler=self.scheduler,
            engine=self.engine,
            metrics=NodeMetrics(),
            options=QueueOptions(),
            republish=lambda death, messages: None,
            republish_surely=lambda *_: None,
            on_unused=lambda name: None,
        )
        self.found = Queue("q", power.settings, context, durable=True, arguments=power.arguments)
        self.found.recover(lambda name, level: self.engine.is_stored("/", name, level))
        if power.is_loaded:
            self.found.load_start_batch(1 << 20)
        verify(self.found)

    def queue(self, vhost: str, name: str) -> Any:
        """The only one."""
        return self.found

    async def commit(self, acked: Iterable[int] = ()) -> Refused:
        """Everything is durable, unless the power goes first, or the disk refuses it."""
        refused: set[tuple[str, str]] = set()
        self.engine.on_refused = lambda epoch, names, acks_of: refused.update(
            (each.vhost, each.name) for each in names
        )
        self.engine.require_sync()
        self.engine.require_acks(acked)
        self.engine.hand_over()
        return frozenset(refused)

    async def may_go_on(self, count: int) -> None:
        """At any rate; between two batches the power may go, too."""
        self._power.note_batch()

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Do it at once."""
        return work()

    def now_ms(self) -> int:
        """The wall's clock."""
        return self.scheduler.wall_ms()

    def move(self) -> None:
        """Move what is left there."""
        power, inbox = self._power, Inbox()
        journal = Journal(power.path, "/", "q", 1)
        journal.open()
        kind = Kind(
            is_copy=power.is_copy,
            is_quiet=power.is_quiet,
            trusts_times=power.trusts_times,
            batch=power.batch,
            run=self._run,
            was_down=lambda: False,
        )
        link: Any = There(power.left, inbox, seen=power.seen, is_slow=power.is_slow)
        try:
            move = Move(self, link, inbox, journal, power.row, kind)
            asyncio.run(move.run(may_come_again=True))
        finally:
            power.seen = min(len(power.left), 2 * power.batch)
            journal.close()
        verify(self.found)

    def drain(self) -> list[bytes]:
        """The bodies of everything that is here, in order."""
        bodies: list[bytes] = []

        def take(origin: Origin | None, run: QueueRun | None) -> None:
            if origin is not None and run is not None:
                origin.got(run, no_ack=True)
                bodies.extend(body_of(message.raw) for message in run.messages)

        count = -1
        while count != len(bodies):
            count = len(bodies)
            self.found.get(take)
            self.scheduler.end_turn()
        return bodies


class Power:
    """What outlives a run of our node."""

    def __init__(
        self,
        path: Path,
        left: Sequence[Message],
        *,
        options: StoreOptions,
        batch: int = 20,
        is_quiet: bool = True,
        is_copy: bool = False,
        is_loaded: bool = False,
        trusts_times: bool = False,
        is_slow: bool = False,
        arguments: dict[str, Any] | None = None,
        **settings: Any,
    ) -> None:
        self.path = path
        self.left = list(left)
        self.options = options
        self.batch = batch
        self.is_quiet = is_quiet
        self.is_copy = is_copy
        self.trusts_times = trusts_times
        self.is_slow = is_slow
        self.is_loaded = is_loaded
        self.arguments = arguments or {}
        self.settings = Settings(**settings)
        self.disk = SimFileSystem(strict=False)
        self.disk.sector = 64
        self.rows: dict[tuple[str, str], object] = {}
        self.row = Row("/", "q")
        self.seen = 0
        """So many of what is left there were sent to us before."""
        self.runs = 0
        self._batches_left = -1

    def note_batch(self) -> None:
        """A batch was acknowledged there, or the first is about to be taken."""
        self._batches_left -= 1
        if self._batches_left == 0:
            raise PowerCut

    def start(self) -> Node:
        """The next run."""
        self.runs += 1
        return Node(self, self.runs)

    def run_until_cut(self, rng: random.Random, within: int) -> bool:
        """One run, whose power is cut in one of the next calls that change the disk; False: it ended before that."""
        node = self.start()
        self._batches_left = -1
        if rng.random() < 0.2:
            self._batches_left = rng.randint(1, 4)
        else:
            self.disk.cut_before = self.disk.operations + rng.randint(1, within)
        try:
            node.move()
        except PowerCut:
            self.cut(rng)
            return True
        finally:
            self._batches_left = -1
            self.disk.cut_before = None
        return False

    def cut(self, rng: random.Random) -> None:
        """What was not synced is there in part; so is what the journal did not sync."""
        self.disk = self.disk.cut(rng)
        if rng.random() < 0.5:
            self._lose_stored()

    def _lose_stored(self) -> None:
        """A record that says that a batch was stored is not synced."""
        data = self.path.read_bytes() if self.path.exists() else b""
        if data[-STORED_SIZE:][:1] == b"S":
            self.path.write_bytes(data[:-STORED_SIZE])


STORED_SIZE = 17
"""Octets of a journal's record S, with its checksum."""
