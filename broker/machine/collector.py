"""Python's cycle collector, as the node uses it: what a start has made is settled, what a stop leaves is let go of.

A node at rest makes next to no circles, and a full collection looks at every object that there is: 0.1 s for a node
with 10,000 queues. So what a start has made is taken out of the collector's sight: a circle that is out of sight then
stays until the next stop. A stopped application is garbage full of circles, most of it out of sight: it is brought back
and collected at once.

While a start makes what stays, the collector would look at all of it again and again, each time that there is a quarter
more: it rests meanwhile.

Nor is it to look at what a commit's messages are made of while they are on their way: with 200 publishers that wait for
their confirms it came by in the middle of each commit, at all the runs and ranges in it. That was 4 % of the processor
time; with `YOUNG` it is a tenth of a percent.

Nor at everything in the middle of what makes it more: that is done when nobody waits (`broker.machine.circles`).

State owned: how often it came by before the start; all else is the process's. Called at starts, stops, by
`circles` and at an operator's wish. Cost of each: one full collection, in the thread that calls.

Source: gc(3) of Python, `gc.freeze`.
"""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Protocol

YOUNG = 5000
"""Objects that are made, and not let go of, before the collector looks at these. Python's own figure is 700."""
THRESHOLDS = (YOUNG, 2, 1_000_000_000)
"""Then: looks at the young before those that were young are looked at, and such looks before all are, which is never:
`broker.machine.circles` has that done. Python's own ten would be 55,000 objects at one moment, 20 ms, where messages to
many queues stay; with two it is 20,000. By its documentation Python 3.14 takes no notice of the third figure: it looks
at a part of all each time."""


class Collector(Protocol):
    """What looks for circles."""

    def collect(self) -> None:
        """Look now, at everything in sight."""

    def settle(self) -> None:
        """Collect; what is left lasts, and is not looked at again."""

    def resting(self) -> AbstractContextManager[None]:
        """While this lasts it looks at nothing by itself."""

    def let_go(self) -> None:
        """Bring everything back in sight, and collect."""


class PythonCollector:
    """The interpreter's."""

    def __init__(self) -> None:
        self._before: tuple[int, int, int] | None = None

    def collect(self) -> None:
        """A full collection."""
        gc.collect()

    def settle(self) -> None:
        """Collect, then freeze."""
        gc.collect()
        gc.freeze()
        if self._before is None:
            self._before = gc.get_threshold()
            gc.set_threshold(*THRESHOLDS)

    @contextmanager
    def resting(self) -> Iterator[None]:
        """Switch it off."""
        was_on = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if was_on:
                gc.enable()

    def let_go(self) -> None:
        """Unfreeze, then collect."""
        if self._before is not None:
            gc.set_threshold(*self._before)
            self._before = None
        gc.unfreeze()
        gc.collect()


class HostsCollector:
    """The collector of a process that is somebody else's: left alone."""

    def collect(self) -> None:
        """Nothing."""

    def settle(self) -> None:
        """Nothing."""

    def resting(self) -> AbstractContextManager[None]:
        """Nothing."""
        return nullcontext()

    def let_go(self) -> None:
        """Nothing."""
