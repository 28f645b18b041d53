"""The simulated machine's node: the real broker and the real store, with its threads, on one seeded scheduler.

`Machine` has the threads (`tests.support.sim_threads`), the disk (`tests.support.machine_disk`) and a loop, and starts
a `RunningNode` on them: the same one that serves, without listeners. Threads change places at every call to the disk
if the seed says so. `stop`, `die` and `start` are the life of the process.

State owned: the disk as it is now, the node that runs, what was logged. Invariants: nothing moves but in `step`,
`settle` and `let_pass`.
"""

from __future__ import annotations

import asyncio
import heapq
import io
import itertools
import json
import random
from collections.abc import Callable, Coroutine, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field, replace
from types import SimpleNamespace
from typing import Any, cast

from burrowmq.broker.node import options as node_options
from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.node.server_process import Machine as Standing
from burrowmq.broker.node.server_process import ServerProcess
from burrowmq.broker.peer.wire import Peer
from burrowmq.broker.session.session import Session
from burrowmq.broker.turn import commit_pacing
from burrowmq.broker.turn.loop_scheduler import LoopScheduler
from burrowmq.config.schema import LoginConfig, NodeConfig, ResourceConfig
from burrowmq.config.store import StoreConfig
from burrowmq.offline.directory import StoreDirectory
from burrowmq.offline.resegment import resegment
from burrowmq.offline.streams import Streams
from burrowmq.storage.directory import context, terms
from burrowmq.storage.directory.definition_store import DefinitionStore, SqliteDefinitionStore
from burrowmq.storage.directory.terms import ENTRY_COUNT_KEY, FILE_SIZE_KEY, read_recorded
from burrowmq.storage.disk.refusals import Refusals
from burrowmq.storage.log import commit_log, mount, own_files, small_queues, syncs
from burrowmq.storage.log import files as log_files
from burrowmq.storage.loop import staged_commit
from burrowmq.storage.queue import table
from burrowmq.storage.types import StoreOptions
from tests.simulation.machine.branches import Branches
from tests.simulation.machine.coverage import KILLED, POWER_CUT, Met, fault_of
from tests.simulation.machine.definitions import LoggedDefinitions
from tests.simulation.machine.model import keyed, place_of
from tests.simulation.machine.places import All, CutAt, Ending
from tests.support.bench.node import Figures
from tests.support.bench.observer import RecordingObserver
from tests.support.collector import IdleCollector
from tests.support.counting_entropy import CountingEntropy
from tests.support.machine_disk import MachineDisk
from tests.support.sim_filesystem import PowerCut
from tests.support.sim_os import SimOsFileSystem, sim_os_in_place
from tests.support.sim_threads import SimThreads
from tests.support.sqlite_disk import DiskVFS

# Limits that no option says, as small as the others of a run.
SCALED: tuple[tuple[Any, str, int], ...] = (
    (commit_log, "_PART", 300),
    (commit_log, "_THROUGH", 400),
    (mount, "_STEP", 2),
    (own_files, "_LOGGED_BYTES", 1500),
    (own_files, "_LOGGED_EACH", 200),
    (own_files, "_LOGGED_MOST", 4000),
    (own_files, "_WITH_LARGE", 1),
    (log_files, "LARGE", 400),
    (small_queues, "UNPACKED", 2),
    (syncs, "_MOVES", 1),
    (table, "_EMPTY_TAIL", 400),
)
COUNTED = "requeued ids up to"  # the self-check's word for more messages than ids
DATA_DIR = "/data"
SETTLE_STEPS = 200_000
CALLS_MAX = 200_000  # a run makes some thousand
LAG_SAMPLE = f"{LoopScheduler.watch_lag.__qualname__}.<locals>.sample"


class Violation(AssertionError):
    """Something that was promised does not hold."""


@dataclass(frozen=True)
class Limits:
    """The small limits of one run, so that a few dozen operations roll, empty, rewrite, compact and flush."""

    store: dict[str, Any] = field(default_factory=dict)
    embed_below: int = 120
    segment_size: int = 3000
    entry_count: int = 16
    journal_entries: int = 20
    cache_size: int = 4096
    default_version: int = 2
    default_mode: str = "bounded"
    index: str = "array"
    reserved_segments: int = 4096  # numbers that a start takes before it uses any
    logs: tuple[bool, ...] = (False,)  # whether the store has a commit log, by start, in turn
    is_checked_each_turn: bool = False
    is_scaled: bool = False  # `SCALED`
    has_os: bool = False  # the store's file system is the real one, whose calls are the disk's
    alone: int = commit_pacing.ALONE  # commits of one publisher before the loop writes them itself
    acked_bytes: int = staged_commit.ACKED_BYTES  # acked messages that a commit which waits keeps
    has_sqlite: bool = False  # the definitions are SQLite's own files, else those of its twin


class SimLoop:
    """As much of an event loop as a node without sockets uses; its clock is the threads'."""

    def __init__(self, threads: SimThreads) -> None:
        self._threads = threads
        self.ready: list[tuple[Callable[..., object], tuple[Any, ...]]] = []
        self.errors: list[dict[str, Any]] = []
        self._timers: list[tuple[float, int, SimTimer]] = []
        self._count = itertools.count()

    def time(self) -> float:
        """Seconds."""
        return self._threads.now_s

    def get_debug(self) -> bool:
        """What asyncio's futures ask."""
        return False

    def create_future(self) -> asyncio.Future[Any]:
        """A future of this loop."""
        return asyncio.Future(loop=cast("asyncio.AbstractEventLoop", self))

    def call_soon(
        self, callback: Callable[..., object], *arguments: Any, context: Any = None
    ) -> None:
        """Run in the next pass."""
        self.ready.append((callback, arguments))

    call_soon_threadsafe = call_soon

    def call_later(
        self, delay_s: float, callback: Callable[..., object], *arguments: Any
    ) -> SimTimer:
        """Run when time has come so far. The loop's lag is not measured: a turn takes no time here."""
        timer = SimTimer(callback, arguments)
        if getattr(callback, "__qualname__", "") == LAG_SAMPLE:
            return timer
        heapq.heappush(self._timers, (self._threads.now_s + delay_s, next(self._count), timer))
        return timer

    def call_exception_handler(self, context: dict[str, Any]) -> None:
        """A turn's step has failed: a bug."""
        self.errors.append(context)

    def run_in_executor(
        self, _: object, function: Callable[..., object], *arguments: Any
    ) -> asyncio.Future[Any]:
        """Another thread does it while the loop waits; nothing else is asked of it then."""
        future = self.create_future()
        try:
            future.set_result(function(*arguments))
        except Exception as error:
            future.set_exception(error)
        return future

    @property
    def next_deadline_s(self) -> float | None:
        """When the next timer is due."""
        timers = self._timers
        while timers and timers[0][2].callback is None:
            heapq.heappop(timers)
        return timers[0][0] if timers else None

    @property
    def is_ready(self) -> bool:
        """Whether a pass would do something."""
        if self.ready:
            return True
        due = self.next_deadline_s
        return due is not None and due <= self._threads.now_s

    def run_once(self) -> None:
        """One pass: due timers, then what was ready before it began."""
        while (due := self.next_deadline_s) is not None and due <= self._threads.now_s:
            timer = heapq.heappop(self._timers)[2]
            if timer.callback is not None:
                self.ready.append((timer.callback, timer.arguments))
        ready, self.ready = self.ready, []
        for callback, arguments in ready:
            callback(*arguments)


class SimTimer:
    """A pending call."""

    def __init__(self, callback: Callable[..., object], arguments: tuple[Any, ...]) -> None:
        self.callback: Callable[..., object] | None = callback
        self.arguments = arguments

    def cancel(self) -> None:
        """Forget it."""
        self.callback = None


def with_limits_of(disk: MachineDisk, limits: Limits) -> Limits:
    """Give the limits of the store that a start would find: the new one where it is to take the old one's place."""
    paths = set(disk.paths())
    new = f"{DATA_DIR}/store.new/STORE.json"
    path = new if {new, f"{DATA_DIR}/SWAP"} <= paths else f"{DATA_DIR}/STORE.json"
    text = json.loads(disk.content(path))
    return replace(limits, segment_size=text[FILE_SIZE_KEY], entry_count=text[ENTRY_COUNT_KEY])


class Machine:
    """See the module."""

    def __init__(
        self, rng: random.Random, disk: MachineDisk, limits: Limits, switch_share: float
    ) -> None:
        self.rng = rng
        self.disk = disk
        self.limits = limits
        self.threads = SimThreads(rng, switch_share)
        self.loop = SimLoop(self.threads)
        self.observer = RecordingObserver()
        self.node: RunningNode | None = None
        self.starts = 0
        self.calls = 0  # to the disk, in all
        self.broken: list[str] = []
        # A start has read pages whose sync had failed: the power may take them, and a clean stop has counted them.
        self.is_suspicious = False
        self.doing = "start"  # what is under way, and what befell it
        self.met: Met = Met()
        self.has_failed = False  # the disk, some call, ever
        # A start has read what an earlier process had not made durable; the seals among it are hints, and nobody does.
        self.has_old_pages = False
        self.branches = Branches(0)
        self.cuts: list[CutAt] = []  # where the power goes, or the process is killed
        self.endings: list[Ending] = []  # how, the next times; as it is drawn behind these
        self._is_resegmented = False  # so that the store says itself which limits it has
        self.on_lost_pages: Callable[[int], None] = lambda process: None
        self._sqlite: list[DiskVFS] = []  # of this process

    @contextmanager
    def running(self) -> Iterator[None]:
        """The store's and the broker's modules see the machine's threads and clock, and its small limits."""
        original, reserved, margin = node_options.store, terms._RESERVED, context.SEGMENT_MARGIN
        new_identity, alone = terms._new_identity, commit_pacing.ALONE
        small_ones = (
            (staged_commit, "ACKED_BYTES", self.limits.acked_bytes),
            *(SCALED if self.limits.is_scaled else ()),
        )
        usual = [(module, name, getattr(module, name)) for module, name, _ in small_ones]

        def small(
            config: StoreConfig, open_files: int, *, has_ballast: bool = True
        ) -> StoreOptions:
            logs = self.limits.logs
            has_log = logs[self.starts % len(logs)]
            changed = {
                "ballast_bytes": 0,
                "open_files": 12,
                "has_log": has_log,
                **self.limits.store,
            }
            return replace(original(config, open_files, has_ballast=has_ballast), **changed)

        node_options.store = small
        commit_pacing.ALONE = self.limits.alone
        terms._new_identity = lambda: self.starts.to_bytes(16, "big")
        terms._RESERVED = self.limits.reserved_segments
        context.SEGMENT_MARGIN = self.limits.reserved_segments // 2
        for module, name, value in small_ones:
            setattr(module, name, value)
        try:
            with ExitStack() as stack:
                stack.enter_context(self.threads.in_place())
                if self.limits.has_os:
                    stack.enter_context(sim_os_in_place(lambda: self.disk))
                yield
        finally:
            node_options.store = original
            commit_pacing.ALONE = alone
            terms._new_identity = new_identity
            terms._RESERVED, context.SEGMENT_MARGIN = reserved, margin
            for module, name, value in usual:
                setattr(module, name, value)
            self.disk.is_off = True
            self._let_go_of_sqlite()

    @property
    def is_at_rest(self) -> bool:
        """Whether no commit is on its way: one that found no room is tried again after up to two seconds."""
        assert self.node is not None
        return self.node.engine.failure is None and self.node.engine.is_idle()

    def faulty(self) -> set[str]:
        """The queues that say that the disk refuses them something that a client asked for."""
        node = self.node
        assert node is not None
        return {
            keyed(vhost.name, name)
            for vhost in node.vhosts.values()
            for name in vhost.queues
            if any(fault.kind != "scrubbing" for fault in node.queue_faults.of(vhost.name, name))
        }

    def refusing(self) -> set[str]:
        """The queues that refuse publishes because the disk refuses what they have (ADR 25)."""
        node = self.node
        assert node is not None
        faults = {name: node.queue_faults.of(*place_of(name)) for name in self.faulty()}
        return {name for name, its in faults.items() if any(one.kind == "writing" for one in its)}

    def inaccessible(self) -> set[str]:
        """Queues that serve nobody until the next start (ADR 25): names in their directories may not be durable.

        What else the disk refuses is tried again: after some quiet seconds on a disk that is well it is over.
        """
        node = self.node
        assert node is not None
        assert node.engine._writer is not None
        refusals = node.engine._writer.refusals
        held = _stuck(refusals)
        stuck = {keyed(*refusals._found[one].queue.names[:2]) for one in held}
        withheld = refusals._withheld.values()
        waiting = {
            keyed(*one.queue.names[:2]) for one in withheld
        }  # for copies that others are owed
        for name in self.faulty() - stuck:
            allowed = ("acknowledging", "scrubbing") if name in waiting else ("scrubbing",)
            for fault in node.queue_faults.of(*place_of(name)):
                if fault.kind not in allowed:
                    raise Violation(f"{name}: {fault.kind} is refused for ever: {fault.reason}")
        return stuck

    # -- life ---------------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Start a process on the disk. Raises what the node's start raises, and PowerCut."""
        self.starts += 1
        self.loop = SimLoop(self.threads)
        self._watch_disk()
        if self._is_resegmented:
            self.limits = with_limits_of(self.disk, self.limits)
        process = ServerProcess(
            config=self._config(),
            observer=cast("Any", self.observer),
            machine=Standing(
                filesystem=SimOsFileSystem(self.disk) if self.limits.has_os else self.disk,
                definitions_at=self._definitions_at,
                measure=Figures().measure,
                allocator=Figures(),
                collector=IdleCollector(),
                entropy=CountingEntropy(),
                end=(lambda _: self.broken.append("self-check"))
                if self.limits.is_checked_each_turn
                else None,
            ),
            sockets_max=1000,
        )
        node = RunningNode(process, cast("asyncio.AbstractEventLoop", self.loop))
        self._drive(node.start())
        self.node = node

    def _watch_disk(self) -> None:
        self.disk.on_call = self._called
        self.disk.on_failure = self._failed

    def resegment(self, segment_size: int, entry_count: int) -> None:
        """Do what `burrowmq-store resegment` does, where no process runs. Raises PowerCut.

        The next start has the limits of whichever store is in place.
        """
        self._is_resegmented = True
        self._watch_disk()
        recorded = read_recorded(self.disk, DATA_DIR)
        directory = SimpleNamespace(path=DATA_DIR, filesystem=self.disk, recorded=recorded)
        wanted = {FILE_SIZE_KEY: segment_size, ENTRY_COUNT_KEY: entry_count}
        streams = Streams(io.StringIO(), io.StringIO())
        resegment(cast("StoreDirectory", directory), wanted, streams)

    def _definitions_at(self, path: str) -> DefinitionStore:
        if self.limits.has_sqlite:
            self._sqlite.append(DiskVFS(self.disk))
            return SqliteDefinitionStore(path, self._sqlite[-1].connect, self.disk)
        return LoggedDefinitions(self.disk, path)

    def _failed(self, operation: str, number: int) -> None:
        self.met[self.doing, fault_of(operation, number)] += 1
        if operation == "fdatasync" and self.disk.reverts:
            self.on_lost_pages(self.starts)

    def _called(self, operation: str, path: str) -> None:
        """Somebody calls the disk: others may go on first."""
        self.calls += 1
        if self.calls > CALLS_MAX:
            raise Violation("the disk is called for ever")
        branches, disk = self.branches, self.disk
        # SQLite's bytes are other ones each time.
        written = None if self.limits.has_sqlite else disk.last_write
        if branches.is_looking and branches.at_call(self.starts, operation, path, written):
            self.rng.seed(branches.rng.random())
            disk.cut_before = disk.operations
        for cut in self.cuts:
            if cut.meets(operation, path):
                disk.cut_before = disk.operations + cut.is_behind
        self.threads.switch_point()

    def _config(self) -> NodeConfig:
        limits = self.limits
        return NodeConfig(
            node_name="rabbit@test",
            data_dir=DATA_DIR,
            listeners=(),
            busy_wait="off",
            resources=ResourceConfig(memory_total_bytes=1_000_000_000, start_check="warn"),
            login=LoginConfig(failed_delay_ms=0),
            store=StoreConfig(
                default_mode=limits.default_mode,
                default_version=limits.default_version,
                embed_below_bytes=limits.embed_below,
                segment_size_limit_bytes=limits.segment_size,
                segment_entry_count=limits.entry_count,
                journal_entry_max=limits.journal_entries,
                cache_size_bytes=limits.cache_size,
                index_module=limits.index,
            ),
        )

    def _drive(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Run a coroutine to its end; where it waits, let everything else move."""
        asyncio._set_running_loop(cast("asyncio.AbstractEventLoop", self.loop))
        try:
            for _ in range(10_000):
                try:
                    waits_for = coroutine.send(None)
                except StopIteration as end:
                    return end.value
                if waits_for is not None:
                    waits_for._asyncio_future_blocking = False
                while waits_for is not None and not waits_for.done():
                    if not self.step() and not self.pass_time():
                        raise Violation("a start or a stop does not end")
        finally:
            asyncio._set_running_loop(None)
        raise Violation("a start or a stop goes on for ever")

    def stop(self) -> bool:
        """Stop cleanly; gives whether it was clean."""
        node, self.node = self.node, None
        assert node is not None
        for session in list(node.sessions):
            session.wire = None
            session.lost("")
        return bool(self._drive(node.stop()))

    def die(self, *, is_power: bool) -> bool:
        """The process is killed, or the power goes: what is left of the disk is what the next start finds.

        Gives which of both it was: an ending that was chosen goes before.
        """
        ending = self.endings.pop(0) if self.endings and not self.branches.is_copy else None
        is_power = is_power if ending is None else ending.is_power
        self.has_old_pages = not is_power
        self.met[self.doing, POWER_CUT if is_power else KILLED] += 1
        self.node = None
        old = self.disk
        old.cut_before = None
        if is_power and ending is not None:
            self.disk = old.cut(All(), fate_of=ending.fate_of)
        elif is_power:
            names, contents = self.branches.cut()
            self.disk = old.cut(self.rng, names=names, contents=contents)
        else:
            self.disk = old.process_killed()
        old.is_off = True
        self.threads.kill()
        self._let_go_of_sqlite()
        return is_power

    def _let_go_of_sqlite(self) -> None:
        while self._sqlite:
            self._sqlite.pop().let_go()

    # -- moving -------------------------------------------------------------------------------------------------

    def look_for_cut(self) -> None:
        """Raise PowerCut if a thread has met it that waits for a lock on its way out."""
        if self.disk.is_cut:
            raise PowerCut("off")

    def step(self) -> bool:
        """Let the loop make a pass or some thread go on; False when nobody can."""
        self.look_for_cut()
        loop = self.loop
        is_ready = loop.is_ready
        if not (is_ready and self.rng.random() < 0.5):
            if self.threads.run_one():
                return True
            if not is_ready:
                return False
        loop.run_once()
        if loop.errors or self.broken:
            self._look()
        return True

    def _look(self) -> None:
        if self.loop.errors:
            error = self.loop.errors[0].get("exception")
            raise Violation(f"a bug in a turn: {error!r}") from error
        if self.broken:
            found = self.observer.named("invariant_broken")
            if not self.is_suspicious or any(COUNTED not in str(one) for one in found):
                raise Violation(f"the self-check: {found}")
            self.broken.clear()

    def settle(self) -> None:
        """Until nobody can move without time passing."""
        for _ in range(SETTLE_STEPS):
            if not self.step():
                return
        raise Violation("the node goes on for ever")

    def pass_time(self, until_s: float | None = None) -> bool:
        """Jump to the next deadline, not beyond `until_s`."""
        due = [
            each
            for each in (self.loop.next_deadline_s, self.threads.next_deadline_s, until_s)
            if each is not None
        ]
        if not due:
            return False
        self.threads.now_s = max(self.threads.now_s, min(due))
        return True

    def let_pass(self, seconds: float) -> None:
        """Let so much time pass, and everything that is due."""
        until = self.threads.now_s + seconds
        self.settle()
        while self.threads.now_s < until:
            self.pass_time(until)
            self.settle()

    # -- for tests.support.bench.client.Client ---------------------------------------------------------------------

    def open_session(self, peer: Peer) -> Session:
        """A connection that was accepted."""
        assert self.node is not None
        return self.node.open_session(peer)

    def perform(self, step: Callable[[], object]) -> None:
        """Take a step on the loop, and let turns end; the disk stands still."""
        step()
        for _ in range(4):
            if self.loop.ready:
                self.loop.run_once()
        self._look()


def _stuck(refusals: Refusals) -> set[int]:
    """Refused queues that are not tried again: no file is written anew while one that is stuck is owed copies of it."""
    found = {queue_id for queue_id, one in refusals._found.items() if one.is_stuck}
    size = -1
    while size < len(found):
        size = len(found)
        for queue_id, withheld in refusals._withheld.items():
            one = refusals._found.get(queue_id)
            if one is not None and one.failed and withheld.targets & {queue_id, *found}:
                found.add(queue_id)
    return found
