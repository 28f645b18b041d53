"""Further ends of one run: the process is copied, the machine goes off in the copy, and what a start finds there is audited.

The run itself goes on as if nothing had happened, so that one run shows what a power cut would leave at some of its
calls to the disk, for a third of the price of as many runs. Where they lie one generator says, which the run does not
draw from: over the whole of a run, whose later moments have more to lose. `met` says that something of interest is
under way: copies are made behind such moments. Where it is known which calls to the disk a run makes without the change
that is looked for (`expected`, of an earlier run that was given `calls`), they are made where it first makes others: at
each of the next calls, and at some later ones. A run that makes the same calls, with the same bytes, gets `BEFORE`: what a start makes of them
may be another matter.

State owned: how many copies were made, what the first that failed said. Called by `tests.simulation.machine.run`.
Invariant: a copy ends in `finish`, and nothing of it but its reason reaches the run.
"""

from __future__ import annotations

import bisect
import gc
import os
import random
import select
import signal
from collections.abc import Sequence

MOST = 5  # copies of one run
BEFORE = 2  # of a run that has made the expected calls so far
DENSE = 16  # calls to the disk, from the first that was not expected on, that each get a copy
WINDOW = 24  # calls to the disk behind a moment of interest
SHARE_ELSEWHERE = 0.004  # of other calls, where nobody knows how many there will be
ELSEWHERE = 3  # of them in a run, where that is known
# What a cut leaves of names and of contents that were not synced (all, none, any part): a sync that was left out shows
# best where nothing of it is left, a wrong order where one is there and the other is not.
CUTS = ((None, None), (None, None), (False, False), (False, False), (True, False), (False, True))
COPY_S = 10  # of a processor
WALL_S = 300.0  # a copy that waits for what cannot happen uses no processor


class Branches:
    """See the module. Without `most` there are none."""

    def __init__(
        self,
        seed: int,
        most: int = 0,
        *,
        expected: Sequence[int] = (),
        calls: list[int] | None = None,
    ) -> None:
        self.is_open = False  # whether the power may go just now
        self.is_copy = False
        self.start = 0  # which start of the machine the copy was made in
        self.reason = ""
        self.rng = random.Random(f"branches {seed}")
        self.copies = 0  # behind moments of interest
        self.forks = 0  # copies, in all
        self.is_looking = bool(most) or calls is not None
        self._expected = expected
        self._share = ELSEWHERE / len(expected) if expected else SHARE_ELSEWHERE
        self._calls = calls
        self._at = 0  # calls to the disk, as long as they are those that were expected
        self._is_apart = not expected
        self._dense = 0  # calls to come that each get a copy
        self._moments = sorted(self.rng.random() for _ in range(most))
        self._due = 0  # copies, so far into the run
        self._countdown = 0  # calls to the disk until the next one
        self._pipe = -1

    def begin(self, share: float) -> None:
        """A step of the run begins; so much of the run is over."""
        self.is_open = True
        self._due = bisect.bisect(self._moments, share)

    @property
    def _may_copy(self) -> bool:
        return (
            self.is_open
            and self.copies < (self._due if self._is_apart else min(self._due, BEFORE))
            and not (self.is_copy or self.reason)
        )

    def met(self) -> None:
        """Something of interest is under way."""
        if not self._countdown and self._may_copy and self._is_apart:
            self._countdown = 1 + int(WINDOW * self.rng.random() ** 2)

    def at_call(self, start: int, operation: str, path: str, written: object = None) -> bool:
        """Whether the power goes before this call to the disk: this is a copy then. `written`: what was, by those before."""
        if self._calls is not None:
            self._calls.append(hash((operation, path, written)))
        if not self._is_apart:
            self._compare(hash((operation, path, written)))
        if self._dense and self.is_open and not (self.is_copy or self.reason):
            self._dense -= 1
            self.start = start
            return self._fork(self.rng.random())
        if not self._may_copy:
            return False
        if self._countdown:
            self._countdown -= 1
            if self._countdown:
                return False
        elif self.rng.random() >= self._share:
            return False
        self.copies += 1
        self.start = start
        return self._fork(self.rng.random())

    def _compare(self, call: int) -> None:
        if self._at < len(self._expected) and self._expected[self._at] == call:
            self._at += 1
        else:
            self._is_apart, self._dense = True, DENSE

    def cut(self) -> tuple[bool | None, bool | None]:
        """What a cut leaves of names and contents that were not synced."""
        return self.rng.choice(CUTS) if self.is_copy else (None, None)

    def _fork(self, seed: float) -> bool:
        self.forks += 1
        read, write = os.pipe()
        copy = os.fork()
        if not copy:
            os.close(read)
            gc.disable()
            self._pipe, self.is_copy = write, True
            self.rng = random.Random(seed)
            signal.signal(signal.SIGPROF, signal.SIG_DFL)
            signal.setitimer(signal.ITIMER_PROF, COPY_S)
            return True
        os.close(write)
        with os.fdopen(read, "rb") as pipe:
            if select.select([pipe], [], [], WALL_S)[0]:
                self.reason = pipe.read().decode()
            else:
                os.kill(copy, signal.SIGKILL)
        _, status = os.waitpid(copy, 0)
        if status and not self.reason:
            self.reason = f"a start does not end within {COPY_S} s"
        return False

    def finish(self, reason: str = "") -> None:
        """The copy ends, with the reason why it failed."""
        os.write(self._pipe, reason.encode()[:4000])
        os._exit(bool(reason))
