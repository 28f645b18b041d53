"""The spool's files: published whole or not at all, by the first who does.

    <root>/<stream>/committed                  the last sequence number that Spark will never ask for again
    <root>/<stream>/plan.json                  a drain's plan: its only offset
    <root>/<stream>/<queue>/<seq>-<part>.arrow the messages of one piece
    <root>/<stream>/<queue>/<seq>-<part>.acked the broker has handled their acknowledgement
    <root>/<stream>/<queue>/<seq>-<part>.ids   message ids of a committed piece, kept for comparison
    <root>/<stream>/<queue>/*.tmp              being written, or left by a task that was killed

State: the files, on one POSIX file system that all executors and the driver share. `Spool` keeps nothing
else, so it may be pickled. Called by the tasks (publish, acked), by the driver (commit, sweep) and by jobs.

A piece that is published but not marked as acked is in doubt: the broker may deliver its messages again.

Invariants
- A file has its name only when its octets and the name are on disk: written to a temporary file, fsync,
  link (which fails when the name is taken), fsync of the directory.
- `committed` is on disk before a file of that number is removed. So a task that comes too late either
  finds the piece published, or finds after publishing that its number is committed: it must not
  acknowledge then, because nobody will read what it published (`is_stale`).
- Files in doubt are not removed by a commit, only by age.

Not for object stores: they have no link, so two tasks could both be first.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import time
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote

from pyspark_amqp.spool.offset import Offset, Piece

_NAME_MAX: Final = 200
COMMITTED: Final = "committed"
PLAN: Final = "plan.json"
IDS: Final = ".ids"


class SpoolError(Exception):
    """The spool cannot be used as it is."""


class Published(NamedTuple):
    """A published file."""

    path: Path
    seq: int
    part: int

    @property
    def is_in_doubt(self) -> bool:
        """Whether its messages may come again."""
        return not self.path.with_suffix(".acked").exists()


class Spool:
    """A folder of published pieces."""

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def open_stream(self, stream: str) -> None:
        """Make the stream's folder and sync it; to be called before the first offset that names pieces is written."""
        folder = self.root / _name(stream)
        _make_folder(folder)
        _sync(folder)
        _sync(self.root)

    def has_stream(self, stream: str) -> bool:
        """Whether the stream was opened in this spool: its folder is here."""
        return (self.root / _name(stream)).is_dir()

    def plan(self, stream: str, make: Callable[[], Offset]) -> Offset:
        """Return the plan that was published first for this stream; `make` it when there is none.

        Raises: SpoolError, BadOffset, and what `make` raises.
        """
        final = self.root / _name(stream) / PLAN
        if not final.exists():
            text = json.dumps(make().to_json())
            self.open_stream(stream)
            _publish(final, lambda path: path.write_text(text))
            _sync(final.parent)
        try:
            found = json.loads(final.read_text())
        except ValueError as error:
            raise SpoolError(f"{final}: cannot be read ({error})") from error
        return Offset.from_json(found)

    def remove_stream(self, stream: str) -> bool:
        """Remove everything of a stream; False: there was nothing."""
        folder = self.root / _name(stream)
        if not folder.is_dir():
            return False
        # Rename it first, so that nobody finds half of a stream.
        aside = self.root / f"{uuid.uuid4().hex}.removed"
        folder.rename(aside)
        shutil.rmtree(aside)
        return True

    def path(self, piece: Piece) -> Path:
        """Return where the piece is or will be."""
        return self._folder(piece.stream, piece.queue) / f"{piece.seq:012}-{piece.part:04}.arrow"

    def find(self, piece: Piece) -> Path | None:
        """Return the file if the piece was published."""
        path = self.path(piece)
        return path if path.exists() else None

    def publish(self, piece: Piece, write: Callable[[Path], None]) -> bool:
        """Let `write` fill a temporary file and publish it; False: somebody else was first.

        Raises: SpoolError when the file system cannot do it; what `write` raises.
        """
        final = self.path(piece)
        _make_folder(final.parent)
        if not _publish(final, write):
            return False
        # Sync the folders too: another task may have made them and not synced them yet.
        for folder in (final.parent, final.parent.parent, self.root):
            _sync(folder)
        return True

    def mark_acked(self, piece: Piece) -> None:
        """Note that the broker will not send the piece's messages again.

        Not synced: after a power cut the piece is in doubt again, which costs nothing but a comparison.
        """
        self.path(piece).with_suffix(".acked").touch()

    def is_stale(self, piece: Piece) -> bool:
        """Whether the piece belongs to a batch that Spark has left behind for ever."""
        return piece.seq <= self.committed(piece.stream)

    def withdraw(self, piece: Piece) -> None:
        """Remove a stale piece that was just published and not acknowledged."""
        self.path(piece).unlink(missing_ok=True)

    def committed(self, stream: str) -> int:
        """Return the last committed number, -1 when there is none."""
        try:
            return int((self.root / _name(stream) / COMMITTED).read_text())
        except FileNotFoundError:
            return -1

    def commit(
        self, stream: str, seq: int, keep_ids: Callable[[Path, Path], object] | None = None
    ) -> int:
        """Remove the files of batches up to `seq`, except those in doubt; return how many files went.

        `keep_ids` writes the ids of a file that goes into another (`kept_ids` finds it).
        """
        folder = self.root / _name(stream)
        if seq > self.committed(stream):
            _make_folder(folder)
            temporary = folder / f"{COMMITTED}.{uuid.uuid4().hex}.tmp"
            temporary.write_text(str(seq))
            _sync(temporary)
            temporary.replace(folder / COMMITTED)
            _sync(folder)
            _sync(self.root)
        removed_count = 0
        for queue_folder in self._queue_folders(stream):
            for found in _published_in(queue_folder):
                if found.seq <= seq and not found.is_in_doubt:
                    if keep_ids is not None:
                        _keep_ids(found.path, keep_ids)
                    _remove(found)
                    removed_count += 1
        return removed_count

    def forget_ids(self, stream: str, age_s: float) -> int:
        """Remove kept ids that are older; return how many files went."""
        now = time.time()
        removed_count = 0
        for folder in self._queue_folders(stream):
            for path in folder.glob(f"*{IDS}"):
                if _age_s(path, now) >= age_s:
                    path.unlink(missing_ok=True)
                    removed_count += 1
        return removed_count

    def kept_ids(self, stream: str, queue: str) -> list[Path]:
        """Return the files with ids of committed pieces."""
        return sorted(self._folder(stream, queue).glob(f"*{IDS}"))

    def published(self, stream: str, queue: str) -> list[Published]:
        """Return the files of a queue in order."""
        return _published_in(self._folder(stream, queue))

    def in_doubt(self, stream: str, queue: str) -> list[Published]:
        """Return the files whose messages may come again."""
        return [found for found in self.published(stream, queue) if found.is_in_doubt]

    def sweep(self, stream: str, *, temporary_age_s: float, in_doubt_age_s: float) -> int:
        """Remove old temporary files, and old files in doubt of committed batches; return how many.

        By age, never by owner: a task that seems dead may still be writing.
        """
        now = time.time()
        committed = self.committed(stream)
        removed_count = 0
        for folder in self._queue_folders(stream):
            for path in folder.glob("*.tmp"):
                if _age_s(path, now) >= temporary_age_s:
                    path.unlink(missing_ok=True)
                    removed_count += 1
            for found in _published_in(folder):
                if found.seq > committed or not found.is_in_doubt:
                    continue
                if _age_s(found.path, now) >= in_doubt_age_s:
                    _remove(found)
                    removed_count += 1
        return removed_count

    def _queue_folders(self, stream: str) -> Iterator[Path]:
        """Yield the folders of all queues; a long queue name cannot be told from its folder's."""
        return (self.root / _name(stream)).glob("q-*/")

    def _folder(self, stream: str, queue: str) -> Path:
        return self.root / _name(stream) / f"q-{_name(queue)}"


def _publish(final: Path, write: Callable[[Path], object]) -> bool:
    """Write a temporary file, sync it and give it its name; False: the name is taken."""
    temporary = final.parent / f"{final.stem}.{uuid.uuid4().hex}.tmp"
    try:
        write(temporary)
        _sync(temporary)
        try:
            os.link(temporary, final)
        except FileExistsError:
            return False
        except OSError as error:
            reason = f"{final}: cannot be published ({error}); the spool needs a POSIX file system with links"
            raise SpoolError(reason) from error
        return True
    finally:
        temporary.unlink(missing_ok=True)


def _name(text: str) -> str:
    """Return a file name for any text."""
    quoted = quote(text, safe="").replace(".", "%2E").replace("~", "%7E")
    if len(quoted) <= _NAME_MAX:
        return quoted
    return f"{quoted[:100]}~{hashlib.sha256(text.encode()).hexdigest()}"


def _published_in(folder: Path) -> list[Published]:
    found = []
    for path in sorted(folder.glob("*.arrow")):
        seq, _, part = path.stem.partition("-")
        found.append(Published(path, int(seq), int(part)))
    return found


def _keep_ids(path: Path, keep_ids: Callable[[Path, Path], object]) -> None:
    """Keep a file's ids; not synced, since they only spare a duplicate after another failure."""
    temporary = path.parent / f"{path.stem}.{uuid.uuid4().hex}.tmp"
    keep_ids(path, temporary)
    temporary.replace(path.with_suffix(IDS))


def _remove(found: Published) -> None:
    """Remove a file and then its mark: in the other order it would look in doubt for a moment."""
    found.path.unlink(missing_ok=True)
    found.path.with_suffix(".acked").unlink(missing_ok=True)


def _age_s(path: Path, now: float) -> float:
    with contextlib.suppress(FileNotFoundError):
        return now - path.stat().st_mtime
    return 0.0


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise SpoolError(f"{folder}: cannot be made ({error})") from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
