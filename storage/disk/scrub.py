"""The scrubber: it reads again all that is stored, so that damage is found before a consumer finds it.

A pass goes over all queues, the frames of the shared stores and the commit log, a slice at a time
(`storage.disk.scrub_walk`). A queue that cannot be read is left where it was and tried again after pauses that double;
nothing of it counts as damaged for that.

It reads as fast as the period asks for and no faster than its limit; a pass that somebody asked for goes at the limit.
How far it is survives a restart (`storage.directory.scrub_state`).

State owned: the pass, when its next slice is due, the queues that it could not read. Called by the backends: `step` on
the reader thread, `request` and `status` on the loop. Invariants: a step is one slice; nothing here writes to a queue.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from burrowmq.records import dataclass
from burrowmq.storage import real_time as time
from burrowmq.storage.directory import scrub_state
from burrowmq.storage.directory.context import StoreContext
from burrowmq.storage.disk.counters import Counters
from burrowmq.storage.disk.reader import Reader
from burrowmq.storage.disk.scrub_walk import STEP_BYTES, Place, ScrubWalk
from burrowmq.storage.errors import DiskFull, ReadFailed, refused_for_now
from burrowmq.storage.queue.verify import SLICE_BYTES
from burrowmq.storage.types import ScrubPass, ScrubStatus

SCRUBBING: Final = "scrubbing"
"""The kind of fault of a queue that it cannot read."""
FIRST_PAUSE_S: Final = 1.0
LONGEST_PAUSE_S: Final = 60.0
# The disk thread has so long to look at the next of the last suspicions before a pass ends without them.
_JUDGED_WITHIN_S: Final = 5.0
# A pass that keeps to its period ends when so much of it is over.
_SHARE: Final = 0.9
_LONGEST_WAIT_S: Final = 60.0
_SAVE_S: Final = 60.0
_WEIGH_S: Final = 60.0


@dataclass(slots=True)
class _Refused:
    """A queue that could not be read, and from where on."""

    at: Place
    due: float
    count: int = 1


class Left:
    """What a pass has not come to, the next one last, by id.

    A pass may take a week. The names of queues that are deleted meanwhile, small strings all over the memory,
    would keep all of it from being given back.
    """

    __slots__ = ("_ids", "_others")

    def __init__(self, units: Sequence[tuple[str, int]]) -> None:
        """Begin with these directories and ids; what has an id below 0 is no queue."""
        self._ids = array("q", [one for _, one in units])
        self._others = [directory for directory, one in units if one < 0]

    def __len__(self) -> int:
        return len(self._ids)

    def pop(self, directory_of: Callable[[int], str]) -> tuple[str, int]:
        """Take the next one out: its directory, empty for a queue that is gone, and its id."""
        one = self._ids.pop()
        return (self._others.pop() if one < 0 else directory_of(one)), one


@dataclass(slots=True)
class _Pass:
    """The pass under way. `left` is what it has not come to."""

    began_ms: int
    deadline: float
    is_on_demand: bool
    left: Left
    bytes: int
    found_before: int
    waits_until: float = 0.0
    suspicions: int = 0  # that were left when that was set


def _nobody(_: int, __: str, ___: str) -> None:
    return None


class Scrub:
    """See the module."""

    def __init__(
        self,
        context: StoreContext,
        walk: ScrubWalk,
        reader: Reader,
        counters: Counters,
    ) -> None:
        options = context.options
        self.tell: Callable[[int, str, str], None] = _nobody
        self._context = context
        self._reader = reader
        self._counters = counters
        self._walk = walk
        self._period_s = options.scrub_period_s
        self._most = options.scrub_bytes_per_s
        self._saved = scrub_state.load(context.filesystem, context.data_dir)
        self._is_wanted = False
        self._pass: _Pass | None = None
        self._slices: Iterator[int] | None = None
        self._first = ("", 0)  # from where on the first queue is read: directory, segment
        self._refused: dict[str, _Refused] = {}
        self._next_step = 0.0
        self._next_save = 0.0
        self._is_unsaved = False  # a pass has ended
        self._next_weighing = 0.0
        self._total = 0
        self._rate = 0.0
        self.status = ScrubStatus()
        self._tell_status()

    # -- when -----------------------------------------------------------------------------------------------------

    def request(self) -> None:
        """Begin a pass now, at full speed; one that is under way goes on at full speed. Any thread."""
        self._is_wanted = True
        self._next_step = 0.0

    def on_found(self, tell: Callable[[], None]) -> None:
        """`tell` is called on the reader thread when the disk thread has something to look at."""
        self._walk.tell_found = tell

    @property
    def is_on(self) -> bool:
        """Whether there is anything to do, now or later."""
        return bool(self._period_s or self._is_wanted or self._pass is not None or self._refused)

    def patience_s(self, now: float) -> float | None:
        """How long until the next step is due; None when there is none."""
        return min(max(self._next_step - now, 0.0), _LONGEST_WAIT_S) if self.is_on else None

    def is_due(self, now: float) -> bool:
        """Whether it is time for a step."""
        return self.is_on and now >= self._next_step

    def lateness_s(self, now: float) -> float:
        """How long a step has been due."""
        return now - self._next_step if self.is_on else 0.0

    # -- what -----------------------------------------------------------------------------------------------------

    def step(self, now: float) -> None:
        """Read one slice, or find out that there is none. Raises StorageError, but not ReadFailed."""
        if self._pass is None and self._context.recovered:
            self._next_step = now + FIRST_PAUSE_S  # a start has not opened all queues yet
            return
        if self._is_wanted:
            self._is_wanted = False
            if self._pass is None:
                self._begin(now, is_on_demand=True)
            else:
                self._pass.is_on_demand = True
        elif self._pass is None and not self._begin_when_due(now) and not self._refused:
            return
        size = self._read(now)
        if self._pass is not None:
            self._pass.bytes += size
        self._rate = self._rate_of(self._pass, now)
        if self._slices is None and (self._pass is None or self._pass.waits_until):
            self._next_step = self._idle_until(now)
        else:
            self._next_step = now + max(size, STEP_BYTES) / self._rate
        self._save(now)
        self._tell_status()

    def save(self) -> None:
        """Keep the position: the node is about to stop."""
        if self._pass is not None:
            self._next_save = 0.0
            self._save(time.monotonic())

    def _begin_when_due(self, now: float) -> bool:
        if not self._period_s:
            return False
        due_ms = self._due_ms()
        wall_ms = int(time.time() * 1000)
        if wall_ms < due_ms:
            self._next_step = self._idle_until(now)
            return False
        self._begin(now, is_on_demand=False)
        return True

    def _due_ms(self) -> int:
        """When the next pass is to begin: a period after the last one did.

        At once where that is still to come: a clock was set back, and nobody knows how long ago it was.
        """
        last = self._saved.last
        if self._saved.is_under_way or last is None or last.began_ms > time.time() * 1000:
            return 0
        return last.began_ms + int(self._period_s * 1000)

    def _idle_until(self, now: float) -> float:
        """When to look again while there is no pass."""
        if self._pass is not None:
            return now + _JUDGED_WITHIN_S / 100
        waits = [_LONGEST_WAIT_S]
        waits += [max(one.due - now, 0.0) for one in self._refused.values()]
        if self._period_s:
            waits.append(max(self._due_ms() / 1000 - time.time(), 0.0))
        return now + min(waits)

    def _begin(self, now: float, *, is_on_demand: bool) -> None:
        """Begin a pass, or go on with the one that the last process was at."""
        wall_ms = int(time.time() * 1000)
        saved, after = self._saved, ""
        began_ms, size, found = wall_ms, 0, 0
        if saved.is_under_way:
            after = f"{self._context.data_dir}/{saved.position}" if saved.position else ""
            began_ms, size, found = min(saved.began_ms, wall_ms), saved.bytes, saved.found
        gone_s = (wall_ms - began_ms) / 1000
        left = sorted((one for one in self._walk.units() if one[0] >= after), reverse=True)
        self._pass = _Pass(
            began_ms,
            now + self._period_s * _SHARE - gone_s,
            is_on_demand,
            Left(left),
            size,
            self._counters.scrub_found - found,
        )
        self._first = (after, saved.segment if saved.is_under_way else 0)
        self._walk.begin_pass()
        self._next_weighing = 0.0
        self._next_save = now + _SAVE_S

    def _rate_of(self, one: _Pass | None, now: float) -> float:
        """Bytes a second: what is left, in the time that is left."""
        if one is None:
            return self._most
        if now >= self._next_weighing:
            self._next_weighing = now + _WEIGH_S
            self._total = self._walk.weigh()
        if one.is_on_demand or not self._period_s:
            return self._most
        left = max(self._total - one.bytes, SLICE_BYTES)
        return min(self._most, left / max(one.deadline - now, 1.0))

    # -- one slice ------------------------------------------------------------------------------------------------

    def _read(self, now: float) -> int:
        """Read one slice of the queue that it is at; what cannot be read is put off. Gives the bytes."""
        if self._slices is None:
            self._choose(now)
        slices = self._slices
        if slices is None:
            return 0
        at = self._walk.at
        try:
            size = next(slices, None)
        except ReadFailed as error:
            self._slices = None
            self._refuse(refused_for_now(error), now)
            return 0
        except DiskFull:  # no descriptor is left to open a file: that says nothing about the queue
            self._slices = self._walk.slices(at)
            return SLICE_BYTES
        if size is None:
            self._slices = None
            if self._refused.pop(at.directory, None) is not None:
                self.tell(at.queue_id, SCRUBBING, "")
            return 0
        return size

    def _choose(self, now: float) -> None:
        """Choose the next queue: one to be tried again, else the next of the pass; the pass ends without one."""
        for refused in self._refused.values():
            if refused.due <= now:
                self._slices = self._walk.slices(refused.at)
                return
        one = self._pass
        while one is not None and one.left:
            directory, queue_id = one.left.pop(self._walk.directory_of)
            if not directory or directory in self._refused:
                continue  # it has its own time
            first, number = self._first
            place = Place(queue_id, directory, number if directory == first else 0)
            self._slices = self._walk.slices(place)
            return
        if one is None:
            return
        suspicions = self._reader.lost_count
        if not one.waits_until or suspicions < one.suspicions:
            one.waits_until, one.suspicions = now + _JUDGED_WITHIN_S, suspicions
        if not self._reader.has_lost or now >= one.waits_until:
            self._end(one, now)

    def _refuse(self, reason: str, now: float) -> None:
        """The queue that it is at cannot be read: it waits, the others go on."""
        at = self._walk.at
        known = self._refused.get(at.directory)
        if known is None:
            self._refused[at.directory] = _Refused(at, now + FIRST_PAUSE_S)
            self.tell(at.queue_id, SCRUBBING, reason)
            return
        pause = min(FIRST_PAUSE_S * 2.0**known.count, LONGEST_PAUSE_S)
        known.count = min(known.count + 1, 16)
        known.at, known.due = at, now + pause

    def _end(self, one: _Pass, now: float) -> None:
        ended_ms = int(time.time() * 1000)
        done = ScrubPass(
            began_ms=one.began_ms,
            ended_ms=ended_ms,
            bytes=one.bytes,
            found=self._counters.scrub_found - one.found_before,
            unread=len(self._refused),
        )
        self._pass = None
        self._walk.end_pass()
        self._saved.end(done)
        self._is_unsaved = True
        self._tell_status()
        self._context.observer.scrub_finished(
            done.bytes, done.found, done.unread, float(ended_ms - one.began_ms)
        )

    # -- told and kept --------------------------------------------------------------------------------------------

    def _save(self, now: float) -> None:
        if self._pass is None and not self._is_unsaved:
            return
        if self._pass is not None and now < self._next_save:
            return
        self._next_save = now + _SAVE_S
        one = self._pass
        if one is not None:
            at = self._walk.at
            place = at.directory.removeprefix(f"{self._context.data_dir}/")
            found = self._counters.scrub_found - one.found_before
            self._saved.note(one.began_ms, place, at.segment, one.bytes, found)
        self._is_unsaved = False
        scrub_state.save(self._context.filesystem, self._context.data_dir, self._saved)

    def _tell_status(self) -> None:
        one = self._pass
        self.status = ScrubStatus(
            is_running=one is not None,
            is_on_demand=one is not None and one.is_on_demand,
            period_s=self._period_s,
            bytes_per_s=int(self._rate) if one is not None else 0,
            began_ms=one.began_ms if one is not None else 0,
            next_ms=self._due_ms() if one is None and self._period_s else 0,
            position=self._walk.position if one is not None else "",
            bytes_done=one.bytes if one is not None else 0,
            bytes_total=max(self._total, one.bytes) if one is not None else 0,
            found=self._counters.scrub_found - one.found_before if one is not None else 0,
            unread=len(self._refused),
            damaged_files=self._walk.damaged_files,
            last=self._saved.last,
            last_complete=self._saved.last_complete,
        )
