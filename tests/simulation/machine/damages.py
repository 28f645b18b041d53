"""Damage of a chosen kind to the files of a queue, and whose bytes it were: the disk put something in another's place.

`entry`: an index entry is written where another one is to be, or none is yet; `record`: a message in its queue's own
store. Both pass their checksums, so that only their place tells. What was in that place is damaged, and its message
may be lost; nothing else may be, and what was copied is there once. The k-th message of a queue is the one that was
published to it as the k-th, which is true until its first start. `damage_a_write` and `stray` take what a power cut finds,
`damage_a_body` what a running process has written.
State: none. Called by `tests.simulation.machine.script` and `tests.simulation.machine.run`.
"""

from __future__ import annotations

import random
import struct
from typing import TYPE_CHECKING

from burrowmq.storage.names import QueueNames, vhost_directory
from burrowmq.storage.queue.v2.index import entries_at
from burrowmq.storage.record import ENTRY_SIZE
from tests.simulation.machine.model import place_of

if TYPE_CHECKING:
    from tests.simulation.machine.model import Home
    from tests.simulation.machine.run import Run
    from tests.support.machine_disk import MachineDisk

_ENTRY = struct.Struct("<BBHB3sQIIQ")
NEAR = 512  # what stands in a record before its body: a dead letter has 350 octets of headers
PIECE = 8  # octets by which a part of a body is known


def misplace(run: Run, kind: str, home: Home, number: int, over: int) -> None:
    """What the disk has of the message `number` of a queue is in the place of the message `over`, too."""
    files = _Files(run.machine.disk, home, run.machine.limits.entry_count)
    numbers = list(home.copies)
    if kind == "entry":
        path, at = files.index(over)
        data = files.entry(number)
        is_damaged = files.entry(over) not in (b"", bytes(ENTRY_SIZE))
    else:
        path, data = files.record(number)
        at = files.location(over)
        is_damaged = True
        assert len(data) == len(files.record(over)[1]), "records of other lengths hide each other"
    _put(run.machine.disk, path, at, data)
    run.auditor.exempt({numbers[over]} if is_damaged else (), ())


def damage_a_write(run: Run) -> None:
    """One of the last writes has gone lost, or elsewhere."""
    damages = run.machine.disk.misplace(run.rng, _is_queue_file)
    numbers: set[int] = set()
    homes: set[str] = set()
    for damage in damages:
        content = run.machine.disk.content(damage.path)
        run.note(f"damage: {damage.path} {damage.offset} {len(damage.lost)}")
        # A record that was written to another place of its segment hides those between: that costs the segment.
        is_elsewhere = len(damages) > 1 and damage.path.endswith(".seg")
        # With what stands on both sides: a short body may lie across an edge, or its frame's last octet behind one.
        end = damage.offset + len(damage.lost)
        before = content[max(0, damage.offset - PIECE) : damage.offset]
        numbers |= _numbers_in(run, before + damage.lost + content[end : end + PIECE - 1])
        if damage.path.endswith((".seg", ".qs")) and damage.offset >= 64 and not is_elsewhere:
            numbers |= _numbers_in(run, content[damage.offset : end + NEAR])
        else:
            homes |= {home.name for home in run.model.homes if _owns(home.name, damage.path)}
            numbers |= _numbers_in(run, content)
    if damages:
        run.result.operations["damage"] += 1
        run.auditor.exempt(numbers, homes)


def damage_a_body(run: Run) -> None:
    """A body that is durable changes on the disk while the process runs: whoever reads it finds that, and nobody else."""
    rng, disk = run.rng, run.machine.disk
    paths = [path for path in disk.paths() if path.endswith((".seg", ".qs"))]
    for path in rng.sample(paths, len(paths)):
        content = disk.content(path) if disk.is_durable(path) else b""
        bodies = [each.body for each in run.model.publications.values() if each.body in content]
        if bodies:
            body = rng.choice(bodies)
            at = content.find(body) + rng.randrange(len(body))
            run.note(f"damage: {path} {at}")
            disk.damage(path, at, bytes((content[at] ^ 1,)))
            run.auditor.exempt(_numbers_in(run, body), ())
            return


def stray(run: Run) -> None:
    """An index entry is in a place that holds none, too: that costs nothing, and gives nobody a message twice."""
    disk = run.machine.disk
    path = stray_entry(run.rng, disk, run.machine.limits.entry_count)
    if path:
        run.result.operations["stray"] += 1
        run.note(f"an entry is in two places of {path}")


def _numbers_in(run: Run, data: bytes) -> set[int]:
    """The messages of which some bytes are in there: all whose body shares eight octets with it, or is near."""
    found = set()
    for number, publication in run.model.publications.items():
        body = publication.body
        if body[:PIECE] in data or any(data.find(piece) >= 0 for piece in _turns(body)):
            found.add(number)
    return found


def _owns(name: str, path: str) -> bool:
    places = [QueueNames(*place_of(name), level) for level in range(5)]
    return any(
        f"/{vhost_directory(one.vhost)}/" in path and f"/{one.directory}/" in path for one in places
    )


def _turns(body: bytes) -> list[bytes]:
    """Pieces by which a part of a body is known, wherever it was cut."""
    return [(body[:PIECE] * 2)[at : at + PIECE] for at in range(PIECE)]


def _is_queue_file(path: str) -> bool:
    return path.endswith((".seg", ".qs", ".qi", ".idx"))


def stray_entry(rng: random.Random, disk: MachineDisk, entry_count: int) -> str:
    """Some entry of an index of version 2 is in a place behind all others, too; gives the index, nothing if none has room.

    Not behind one that a power cut has torn: what is written behind the end of a file puts zeros before it, which may be
    just what that one lacks.
    """
    begin = entries_at(entry_count)
    for path in rng.sample(
        paths := [one for one in disk.paths() if one.endswith(".qi")], len(paths)
    ):
        content = disk.content(path)[begin:]
        entries = content.rstrip(b"\0")
        used = -(-len(entries) // ENTRY_SIZE)
        is_torn = used * ENTRY_SIZE > len(content)
        if 0 < used < entry_count and not is_torn:
            at = rng.randrange(used) * ENTRY_SIZE
            entry = entries[at : at + ENTRY_SIZE].ljust(ENTRY_SIZE, b"\0")
            _put(disk, path, begin + rng.randrange(used, entry_count) * ENTRY_SIZE, entry)
            return path
    return ""


def _put(disk: MachineDisk, path: str, at: int, data: bytes) -> None:
    """Have the disk say this, also behind the end of the file."""
    end = len(disk.content(path))
    disk.damage(path, end, bytes(max(0, at - end)))
    disk.damage(path, at, data)


class _Files:
    """The version 2 files of a queue, as they lie there."""

    def __init__(self, disk: MachineDisk, home: Home, entry_count: int) -> None:
        self._disk = disk
        self._part = f"/queues/{QueueNames(home.vhost, home.queue).directory}/"
        self._entry_count = entry_count

    def _path(self, number: int, suffix: str) -> str:
        name = f"{self._part}{number // self._entry_count}.{suffix}"
        return next(path for path in self._disk.paths() if path.endswith(name))

    def index(self, number: int) -> tuple[str, int]:
        """Where the entry of a message is to be."""
        at = entries_at(self._entry_count) + number % self._entry_count * ENTRY_SIZE
        return self._path(number, "qi"), at

    def entry(self, number: int) -> bytes:
        """The entry of a message, zeros or nothing where there is none yet."""
        path, at = self.index(number)
        return self._disk.content(path)[at : at + ENTRY_SIZE]

    def location(self, number: int) -> int:
        """Where the body of a message begins, as its entry says."""
        return int(_ENTRY.unpack(self.entry(number))[5])

    def record(self, number: int) -> tuple[str, bytes]:
        """The body of a message, and the file that it is in."""
        path, at = self._path(number, "qs"), self.location(number)
        size = int(_ENTRY.unpack(self.entry(number))[6])
        return path, self._disk.content(path)[at : at + size]
