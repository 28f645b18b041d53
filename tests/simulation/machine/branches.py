"""Further ends of one run: the process is copied, the machine goes off in the copy, and what a start finds there is audited.

The run itself goes on as if nothing had happened, so that one run shows what a power cut would leave at dozens of its
calls to the disk, for a tenth of the price of as many runs. Where they lie one generator says, which the run does not
draw from. `met` says that something of interest is under way: copies are made behind such moments, fewer with each.

State owned: how many copies were made, what the first that failed said. Called by `tests.simulation.machine.run`.
Invariant: a copy ends in `finish`, and nothing of it but its reason reaches the run.
"""

from __future__ import annotations

import gc
import os
import random
import signal

MOST = 5  # copies of one run
WINDOW = 24  # calls to the disk behind a moment of interest
SHARE = 0.3  # of these calls
SHARE_ELSEWHERE = 0.004
COPY_S = 20  # of a processor


class Branches:
    """See the module. Without `most` there are none."""

    def __init__(self, seed: int, most: int = 0) -> None:
        self.is_open = False  # whether the power may go just now
        self.is_copy = False
        self.start = 0  # which start of the machine the copy was made in
        self.reason = ""
        self.rng = random.Random(f"branches {seed}")
        self.copies = 0
        self._most = most
        self._window = 0
        self._windows = 0
        self._pipe = -1

    def met(self) -> None:
        """Something of interest is under way."""
        if self._window or self.copies >= self._most or self.is_copy:
            return
        self._windows += 1
        if self.rng.random() < 3 / (2 + self._windows):
            self._window = WINDOW

    def at_call(self, start: int) -> bool:
        """Whether the power goes before this call to the disk: this is a copy then."""
        if self.copies >= self._most or not self.is_open or self.is_copy or self.reason:
            return False
        share = SHARE if self._window else SHARE_ELSEWHERE
        self._window = max(0, self._window - 1)
        if self.rng.random() >= share:
            return False
        self.copies += 1
        self.start = start
        return self._fork(self.rng.random())

    def _fork(self, seed: float) -> bool:
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
            self.reason = pipe.read().decode()
        _, status = os.waitpid(copy, 0)
        if status and not self.reason:
            self.reason = f"a start does not end within {COPY_S} s"
        return False

    def finish(self, reason: str = "") -> None:
        """The copy ends, with the reason why it failed."""
        os.write(self._pipe, reason.encode()[:4000])
        os._exit(bool(reason))
