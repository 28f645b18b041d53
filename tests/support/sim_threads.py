"""Threads that take turns as one seeded generator says: what `threading`, `queue` and `time` are to the code under test.

Each thread is a greenlet. It runs until it waits for something or comes to a `switch_point`, where the generator may
give another one the turn; nothing else ever changes threads, so that a seed gives the same run again. Time stands still
while anybody can run, and jumps to the next deadline when nobody can: a wait of weeks costs nothing.

State owned: the threads, the clock. `in_place` puts the three stand-ins into the modules of the store and of the broker
for as long as a simulation runs. Called by `tests.simulation.machine`; tested in
tests/unit/support/test_sim_threads.py.
"""

from __future__ import annotations

import contextlib
import functools
import queue
import random
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import greenlet

from burrowmq.storage import real_time

BEGAN_S = 1_700_000_000.0
_NAMES = ("threading", "queue", "time")
_PACKAGES = ("burrowmq.storage.", "burrowmq.broker.")


@functools.lru_cache(maxsize=1)
def _users(_: int) -> list[tuple[Any, str]]:
    """The loaded modules that have something of such a name; looked for again when others have been loaded."""
    return [
        (module, word)
        for name, module in sys.modules.items()
        if name.startswith(_PACKAGES)
        for word in _NAMES
        if word in vars(module)
    ]


class Stuck(AssertionError):
    """Somebody waits for what cannot happen any more."""


class SimThreads:
    """The threads of one simulated machine, and its clock."""

    def __init__(self, rng: random.Random, switch_share: float = 0.2) -> None:
        self.rng = rng
        self.switch_share = switch_share
        self.now_s = 0.0
        self.wall_shift_s = 0.0
        self.switches = 0
        self.threads: list[SimThread] = []
        self.running: SimThread | None = None  # None: the hub, which is the loop's thread
        self.is_dying = (
            False  # whoever leaves a block then has its lock no more, and nobody needs it
        )
        self._hub = greenlet.getcurrent()
        self.time = SimpleNamespace(
            monotonic=lambda: self.now_s,
            monotonic_ns=lambda: int(self.now_s * 1e9),
            perf_counter=lambda: self.now_s,
            time=lambda: BEGAN_S + self.now_s + self.wall_shift_s,
            time_ns=lambda: int((BEGAN_S + self.now_s + self.wall_shift_s) * 1e9),
            strftime=time.strftime,
            gmtime=time.gmtime,
            localtime=time.localtime,
            sleep=lambda seconds: self.wait(lambda: False, seconds),
        )
        self.threading = SimpleNamespace(
            Thread=self._thread,
            Lock=lambda: SimLock(self),
            RLock=lambda: SimRLock(self),
            Event=lambda: SimEvent(self),
            Condition=lambda lock: SimCondition(self, lock),
            current_thread=lambda: SimpleNamespace(name="simulated"),
        )
        self.queue = SimpleNamespace(SimpleQueue=self._simple_queue, Empty=queue.Empty)

    def _thread(self, **options: Any) -> SimThread:
        return SimThread(self, options["target"], options.get("args", ()), options.get("name", ""))

    def _simple_queue(self) -> SimQueue:
        return SimQueue(self)

    # -- turns --------------------------------------------------------------------------------------------------

    def switch_point(self) -> None:
        """A place where another thread may go on; nothing happens on the hub, which chooses for itself."""
        if self.running is not None and self.rng.random() < self.switch_share:
            self.switches += 1
            self._hub.switch()

    def wait(self, is_ready: Callable[[], bool], timeout_s: float | None = None) -> bool:
        """Let others go on until something is so, or so much time has passed; gives whether it is so."""
        if is_ready():
            return True
        until = None if timeout_s is None else self.now_s + max(0.0, timeout_s)
        thread = self.running
        if thread is None:
            while not is_ready():
                if until is not None and self.now_s >= until:
                    return False
                if not self.run_one() and not self.pass_time(until):
                    raise Stuck("the loop waits for a thread that waits itself")
            return True
        thread.is_ready, thread.until_s = is_ready, until
        self._hub.switch()
        thread.is_ready, thread.until_s = None, None
        return is_ready()

    def run_one(self) -> bool:
        """Give some thread that can go on its turn; False when there is none."""
        now_s = self.now_s
        able = [
            each
            for each in self.threads
            if each.is_ready is None
            or each.is_ready()
            or (each.until_s is not None and each.until_s <= now_s)
        ]
        if not able:
            return False
        thread = able[0] if len(able) == 1 else self.rng.choice(able)
        self.running = thread
        try:
            thread.greenlet.switch()
        finally:
            self.running = None
        if thread.greenlet.dead:
            self.threads.remove(thread)
        return True

    @property
    def next_deadline_s(self) -> float | None:
        """When the next thread has waited long enough, if any waits for a time."""
        return min(
            (each.until_s for each in self.threads if each.until_s is not None), default=None
        )

    def pass_time(self, until_s: float | None = None) -> bool:
        """Let time jump to the next deadline; False when nobody has one."""
        due = [each for each in (self.next_deadline_s, until_s) if each is not None]
        if not due:
            return False
        self.now_s = max(self.now_s, min(due))
        return True

    def kill(self) -> None:
        """The process is gone: no thread takes another step."""
        threads, self.threads = self.threads, []
        self.is_dying = True
        try:
            for thread in threads:
                if thread.greenlet:  # it has begun, and not ended
                    self.running = thread
                    thread.greenlet.throw(greenlet.GreenletExit)
        finally:
            self.running = None
            self.is_dying = False

    @contextlib.contextmanager
    def in_place(self) -> Iterator[None]:
        """Every module of store and broker that has been loaded sees these instead of the real ones."""
        changed: list[tuple[Any, str, Any]] = []
        real = {name: [sys.modules[name]] for name in _NAMES}
        real["time"].append(real_time)
        for module, word in _users(len(sys.modules)):
            was = getattr(module, word)
            if any(was is one for one in real[word]):
                changed.append((module, word, was))
                setattr(module, word, getattr(self, word))
        try:
            yield
        finally:
            self.kill()
            for module, word, was in changed:
                setattr(module, word, was)


class SimThread:
    """`threading.Thread`."""

    def __init__(
        self, threads: SimThreads, target: Callable[..., object], args: tuple[Any, ...], name: str
    ) -> None:
        self.name = name
        self.is_ready: Callable[[], bool] | None = None
        self.until_s: float | None = None
        self._threads = threads
        self.greenlet = greenlet.greenlet(lambda: target(*args), parent=threads._hub)

    def start(self) -> None:
        """It runs when the generator says so."""
        self._threads.threads.append(self)

    def join(self, timeout: float | None = None) -> None:
        """Wait for its end."""
        self._threads.wait(lambda: self.greenlet.dead, timeout)


class SimLock:
    """`threading.Lock`."""

    def __init__(self, threads: SimThreads) -> None:
        self._threads = threads
        self._is_held = False

    def acquire(self, blocking: bool = True) -> bool:
        """Take it."""
        if self._is_held:
            if not blocking:
                return False
            self._threads.wait(lambda: not self._is_held)
        self._is_held = True
        return True

    def release(self) -> None:
        """Let go of it."""
        assert self._is_held or self._threads.is_dying
        self._is_held = False

    def locked(self) -> bool:
        """Whether somebody has it."""
        return self._is_held

    def __enter__(self) -> bool:
        return self.acquire()

    def __exit__(self, *_: object) -> None:
        self.release()


class SimRLock(SimLock):
    """`threading.RLock`."""

    def __init__(self, threads: SimThreads) -> None:
        super().__init__(threads)
        self._owner: SimThread | None = None
        self._depth = 0

    def acquire(self, blocking: bool = True) -> bool:
        """Take it, once more if it is one's own."""
        current = self._threads.running
        if not self._depth or self._owner is not current:
            if not super().acquire(blocking):
                return False
            self._owner = current
        self._depth += 1
        return True

    def release(self) -> None:
        """Let go of it, as often as it was taken."""
        self._depth -= 1
        if not self._depth:
            super().release()


class SimEvent:
    """`threading.Event`."""

    def __init__(self, threads: SimThreads) -> None:
        self._threads = threads
        self._is_set = False

    def set(self) -> None:
        """It has happened."""
        self._is_set = True

    def is_set(self) -> bool:
        """Whether it has."""
        return self._is_set

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for it."""
        return self._threads.wait(self.is_set, timeout)


class SimCondition:
    """`threading.Condition` of a lock."""

    def __init__(self, threads: SimThreads, lock: SimLock) -> None:
        self._threads = threads
        self._lock = lock

    def __enter__(self) -> bool:
        return self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()

    def notify_all(self) -> None:
        """Whoever waits looks by itself."""

    def wait_for(self, predicate: Callable[[], bool]) -> bool:
        """Without the lock, until something is so."""
        while not predicate():
            self._lock.release()
            self._threads.wait(predicate)
            self._lock.acquire()
        return True


class SimQueue:
    """`queue.SimpleQueue`."""

    def __init__(self, threads: SimThreads) -> None:
        self._threads = threads
        self._items: deque[Any] = deque()

    def put(self, item: Any) -> None:
        """Append."""
        self._items.append(item)

    def get(self, timeout: float | None = None) -> Any:
        """Take the first, waiting for one. Raises queue.Empty."""
        if not self._items and not self._threads.wait(self._has_items, timeout):
            raise queue.Empty
        return self._items.popleft()

    def get_nowait(self) -> Any:
        """Take the first. Raises queue.Empty."""
        if not self._items:
            raise queue.Empty
        return self._items.popleft()

    def empty(self) -> bool:
        """Whether there is nothing to take."""
        return not self._items

    def qsize(self) -> int:
        """How many there are."""
        return len(self._items)

    def _has_items(self) -> bool:
        return bool(self._items)
