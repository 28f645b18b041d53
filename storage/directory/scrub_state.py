"""How far the scrubber is, kept over a restart: a node that is restarted every day still reads everything in a week.

`scrub.json` in the data directory: the last pass, the last complete one, and where the one under way is. It is replaced
by a rename and never synced: what a power cut takes of it costs reading something twice. A file that cannot be read is
none. State: none but a `ScrubState`, which belongs to `storage.disk.scrub`. Called on the reader thread.
"""

from __future__ import annotations

import json
from contextlib import suppress
from dataclasses import asdict
from typing import Any, Final

from burrowmq.records import dataclass
from burrowmq.storage.files.filesystem import FileSystem
from burrowmq.storage.types import ScrubPass

FILE: Final = "scrub.json"


@dataclass(slots=True)
class ScrubState:
    """What is kept. `position` is the queue's directory, below the data directory, and `segment` where in it."""

    is_under_way: bool = False
    began_ms: int = 0
    position: str = ""
    segment: int = 0
    bytes: int = 0
    found: int = 0
    last: ScrubPass | None = None
    last_complete: ScrubPass | None = None

    def note(self, began_ms: int, position: str, segment: int, size: int, found: int) -> None:
        """A pass is under way, and has come so far."""
        self.is_under_way = True
        self.began_ms, self.bytes, self.found = began_ms, size, found
        self.position, self.segment = position, segment

    def end(self, done: ScrubPass) -> None:
        """It has ended."""
        self.is_under_way = False
        self.position, self.segment, self.bytes, self.found = "", 0, 0, 0
        self.last = done
        if done.is_complete:
            self.last_complete = done


def load(filesystem: FileSystem, data_dir: str) -> ScrubState:
    """Give what was kept; nothing when there is no such file, or none that can be made out."""
    try:
        kept = json.loads(filesystem.read_file(f"{data_dir}/{FILE}"))
        state = ScrubState(**{**kept, "last": None, "last_complete": None})
        state.last, state.last_complete = _pass(kept["last"]), _pass(kept["last_complete"])
        _check(kept, ("began_ms", "segment", "bytes", "found"), int)
        _check(kept, ("position",), str)
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return ScrubState()
    return state


def _pass(kept: dict[str, Any] | None) -> ScrubPass | None:
    if kept is None:
        return None
    _check(kept, tuple(kept), int)
    return ScrubPass(**kept)


def _check(kept: dict[str, Any], names: tuple[str, ...], kind: type) -> None:
    """Raise TypeError for a value of another kind: anybody may have written the file."""
    if any(type(kept[name]) is not kind for name in names):
        raise TypeError("a value of another kind")


def save(filesystem: FileSystem, data_dir: str, state: ScrubState) -> None:
    """Keep it. What the disk refuses is kept the next time."""
    path = f"{data_dir}/{FILE}"
    aside = f"{path}.tmp"
    with suppress(OSError):
        if filesystem.exists(aside):
            filesystem.unlink(aside)
        filesystem.create(aside).pwrite(json.dumps(asdict(state)).encode(), 0)
        filesystem.rename(aside, path)
