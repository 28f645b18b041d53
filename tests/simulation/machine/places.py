"""Where on the disk something is to happen: patterns of paths by short names; the calls at which the machine goes off, and how.

`log`, `log/`: the files of the commit log, and their directory; `shared`, `shared/`: those of the shared store;
`own`, `queues/`: files of queues, the directory of all of theirs; `a`, `a/`, `a/*.qs`: those of one queue, `a#2` and so on
those of its level of priority; `definitions`: SQLite's; anything else is a pattern itself. State: how often a chosen call has still to come.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from burrowmq.storage.names import QueueNames
from tests.support.sim_filesystem import Fate

PLACES = {
    "log": "/data/commit_log/?.log*",
    "log/": "/data/commit_log",
    "data/": "/data",
    "shared": "*/msg_store_persistent/*",
    "shared/": "*/msg_store_persistent",
    "own": "*/queues/*/*",
    "queues/": "*/queues",
    "definitions": "/data/definitions.db*",
    "all": "*",
}
QUEUES = ("a", "b", "c", "d", "dead")


def pattern_of(place: str) -> str:
    """The pattern of paths that a place stands for."""
    queue, slash, rest = place.partition("/")
    queue, _, level = queue.partition("#")
    if queue in QUEUES:
        directory = f"*/queues/{QueueNames('/', queue, int(level or 0)).directory}"
        return directory if slash and not rest else f"{directory}/{rest or '*'}"
    return PLACES.get(place, place)


class All(random.Random):
    """For a cut of which everything is chosen: a directory that comes back has all that it had."""

    def random(self) -> float:
        """Below any share."""
        return 0.0


@dataclass(slots=True)
class CutAt:
    """The machine goes off before the `nth` of these calls from now on, or behind it."""

    operation: str
    pattern: str
    nth: int
    is_behind: bool = False

    def meets(self, operation: str, path: str) -> bool:
        """Whether it is this call; each that fits is counted."""
        if operation != self.operation or not fnmatchcase(path, self.pattern):
            return False
        self.nth -= 1
        return self.nth == 0


@dataclass(frozen=True, slots=True)
class Ending:
    """How the machine goes off: what is not synced is lost, but where a pattern says otherwise; the last that fits counts."""

    is_power: bool
    fates: Sequence[tuple[str, str, Fate]] = ()  # of a name, or of a file's content

    def fate_of(self, kind: str, path: str) -> Fate:
        """What becomes of a name or of a file's content that was not synced."""
        found: Fate = "lost"
        for about, pattern, fate in self.fates:
            if about == kind and fnmatchcase(path, pattern):
                found = fate
        return found
