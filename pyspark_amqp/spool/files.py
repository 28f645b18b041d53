"""The spool's files: published whole or not at all, by the first who does.

    <stream>/opened                     the stream began here
    <stream>/committed                  the last sequence number that Spark will never ask for again
    <stream>/plan.json                  a drain's plan: its only offset
    <stream>/<queue>/<seq>-<part>.arrow the messages of one piece
    <stream>/<queue>/<seq>-<part>.acked the broker has handled their acknowledgement (marks.py)
    <stream>/<queue>/<seq>-<part>.read  in doubt, and Spark has read it: its batch was committed
    <stream>/<queue>/<seq>-<part>.ids   message ids of a committed piece, kept for comparison

State: the files, in one store that all executors and the driver share (store.py). `Spool` keeps nothing else. Called
by the tasks (create, acked), by the driver (commit, sweep) and by jobs.

A piece that is published but not marked as acked is in doubt: the broker may deliver its messages again.

Invariants
- A piece has its name only when it is durable, and nobody else's piece ever takes that name.
- `committed` is durable before a file of that number is removed. So a task that comes too late either finds the piece
  published, or finds after publishing that its number is committed: it must not acknowledge then, because nobody will
  read what it published (`is_stale`).
- Files in doubt are not removed by a commit, only by age.
"""

from __future__ import annotations

import hashlib
import json
import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, NamedTuple
from urllib.parse import quote, unquote

from pyspark_amqp.spool.marks import Mark
from pyspark_amqp.spool.offset import Offset, Piece
from pyspark_amqp.spool.posix import PosixStore
from pyspark_amqp.spool.store import CHECKS, Entry, OutcomeUnknown, SpoolError, Store

_NAME_MAX: Final = 200
_SHORTENED: Final = re.compile(r"[A-Za-z0-9_%-]{100}~[0-9a-f]{64}")
OPENED: Final = "opened"
COMMITTED: Final = "committed"
PLAN: Final = "plan.json"
PIECE: Final = ".arrow"
ACKED: Final = ".acked"
READ: Final = ".read"
IDS: Final = ".ids"
_QUEUE: Final = "q-"
_TRIES: Final = 5
_NOTHING: Final = Mark()


class Published(NamedTuple):
    """A published piece."""

    key: str
    seq: int
    part: int
    is_in_doubt: bool
    """Its messages may come again."""
    is_read: bool
    """It is in doubt, and its batch was committed: Spark has its rows."""
    modified_s: float

    @property
    def folder(self) -> str:
        """What the keys of all pieces of its stream and queue begin with."""
        return self.key.rpartition("/")[0]

    @property
    def queue(self) -> str:
        """The queue's name; of a very long one its beginning and a hash."""
        return unquote(self.folder.rpartition("/")[2].removeprefix(_QUEUE))


class Outcome(NamedTuple):
    """What became of a batch."""

    offset: Offset
    size_bytes: int
    in_doubt_count: int
    """Pieces of this and earlier batches whose messages may come again."""
    marks: Mapping[Piece, Mark | None]
    """What tasks had to say; None: a task was killed before it could; missing: all went as planned."""


class Spool:
    """Published pieces in a store; given a path, in that folder."""

    def __init__(self, store: Store | str | Path) -> None:
        self.store: Store = PosixStore(store) if isinstance(store, str | Path) else store

    def __str__(self) -> str:
        return str(self.store)

    # -- streams -----------------------------------------------------------------------------------------------------

    def open_stream(self, stream: str) -> None:
        """Note that the stream is here; to be called before the first offset that names pieces is written."""
        self.store.put(f"{_stream_name(stream)}/{OPENED}", b"")

    def has_stream(self, stream: str) -> bool:
        """Whether the stream was opened in this spool."""
        folder = _stream_name(stream)
        # Version 0.1.0 only made the folder.
        return any(self.store.head(f"{folder}/{name}") is not None for name in (OPENED, ""))

    def streams(self) -> list[str]:
        """Return the names of all streams; a long name is its beginning and a hash, and is taken as such, too."""
        found = {entry.key.partition("/")[0] for entry in self.store.list("")}
        return sorted(
            each if _SHORTENED.fullmatch(each) else unquote(each) for each in found - {CHECKS}
        )

    def plan(self, stream: str, make: Callable[[], Offset]) -> Offset:
        """Return the plan that was published first for this stream; `make` it when there is none.

        Raises: SpoolError, BadOffset, and what `make` raises.
        """
        key = f"{_stream_name(stream)}/{PLAN}"
        text = self.store.get(key)
        if text is None:
            self.open_stream(stream)
            with self.store.scratch(key) as path:
                made = json.dumps(make().to_json())
                try:
                    path.write_text(made, encoding="utf-8")
                except OSError as error:
                    raise SpoolError(f"{path}: cannot be written ({error})") from error
                text = self._first(key, path)
        try:
            found = json.loads(text)
        except ValueError as error:
            raise SpoolError(f"{self}/{key}: cannot be read ({error})") from error
        return Offset.from_json(found)

    def _first(self, key: str, path: Path) -> bytes:
        """Publish the file unless somebody has; return what was published."""
        for left in reversed(range(_TRIES)):
            try:
                self.store.create(key, path)
            except OutcomeUnknown:
                if not left:
                    raise
            found = self.store.get(key)
            if found is not None:
                return found
        raise SpoolError(f"{self}/{key}: cannot be made")

    def remove_stream(self, stream: str) -> bool:
        """Remove everything of a stream; False: there was nothing.

        What says that it is here, and its plan, go last: one that was removed in part is the same stream with fewer
        pieces.
        """
        folder = f"{_stream_name(stream)}/"
        keys = [entry.key for entry in self.store.list(folder)]
        last = [key for key in keys if key.count("/") == 1]
        self.store.delete(key for key in keys if key.count("/") > 1)
        self.store.delete(last)
        return bool(keys)

    # -- pieces ------------------------------------------------------------------------------------------------------

    def key(self, piece: Piece) -> str:
        """Return the piece's name in the store."""
        return f"{_folder(piece.stream, piece.queue)}/{piece.seq:012}-{piece.part:04}{PIECE}"

    def folder(self, piece: Piece) -> str:
        """Return what the keys of all pieces of its stream and queue begin with."""
        return _folder(piece.stream, piece.queue)

    def has(self, piece: Piece) -> bool:
        """Whether the piece was published."""
        return self.store.head(self.key(piece)) is not None

    def scratch(self, piece: Piece) -> AbstractContextManager[Path]:
        """Give a file to write the piece to, before it is published."""
        return self.store.scratch(self.key(piece))

    def open(self, piece: Piece) -> AbstractContextManager[Path]:
        """Give the published piece as a file. Raises: FileGone."""
        return self.store.open(self.key(piece))

    def mark_acked(self, piece: Piece, mark: Mark = _NOTHING) -> None:
        """Note that the broker will not send the piece's messages again, and what the task has to say.

        It need not be durable: after a power cut the piece is in doubt again, which costs nothing but a comparison.
        """
        self.store.put(_beside(self.key(piece), ACKED), mark.octets(), is_durable=False)

    def outcome(self, offset: Offset) -> Outcome:
        """Return what became of a batch whose tasks have ended: one list, and a read for each mark that says something.

        Raises: SpoolError.
        """
        entries = list(self.store.list(f"{_stream_name(offset.stream)}/{_QUEUE}"))
        sizes = {entry.key: entry.size for entry in entries}
        marks: dict[Piece, Mark | None] = {}
        size_bytes = 0
        for piece in offset.pieces():
            key = self.key(piece)
            size_bytes += sizes.get(key, 0)
            mark = _beside(key, ACKED)
            if mark not in sizes:
                marks[piece] = None
            elif sizes[mark]:
                marks[piece] = self._mark(mark)
        doubted = [each for each in _published(entries) if each.is_in_doubt]
        return Outcome(offset, size_bytes, len(doubted), marks)

    def _mark(self, key: str) -> Mark:
        try:
            return Mark.read(self.store.get(key) or b"")
        except (ValueError, TypeError) as error:
            raise SpoolError(f"{self}/{key}: cannot be read ({error})") from error

    def is_stale(self, piece: Piece) -> bool:
        """Whether the piece belongs to a batch that Spark has left behind for ever."""
        return piece.seq <= self.committed(piece.stream)

    def withdraw(self, piece: Piece) -> None:
        """Remove a stale piece that was just published and not acknowledged."""
        self.store.delete([self.key(piece)])

    def published(self, stream: str, queue: str) -> list[Published]:
        """Return the pieces of a queue in order."""
        return _published(self.store.list(f"{_folder(stream, queue)}/"))

    def siblings(self, piece: Piece) -> list[Published]:
        """Return the published pieces of the same queue and batch."""
        return _published(self.store.list(f"{_folder(piece.stream, piece.queue)}/{piece.seq:012}-"))

    def pieces(self, stream: str) -> list[Published]:
        """Return the pieces of all queues, a queue after the other."""
        return _published(self.store.list(f"{_stream_name(stream)}/{_QUEUE}"))

    def in_doubt(self, stream: str, queue: str) -> list[Published]:
        """Return the pieces whose messages may come again."""
        return [found for found in self.published(stream, queue) if found.is_in_doubt]

    def compared(self, stream: str, pieces: Sequence[Published]) -> list[Published]:
        """Return those of the pieces whose messages need not come once more: Spark has their rows, or will.

        A task that came after its batch was committed, and died before it could withdraw its piece, left what nobody
        reads.
        """
        if all(each.is_read for each in pieces):
            return list(pieces)
        committed = self.committed(stream)
        return [each for each in pieces if each.seq > committed or each.is_read]

    def kept_ids(self, stream: str, queue: str) -> list[str]:
        """Return the keys of the files with ids of committed pieces."""
        found = self.store.list(f"{_folder(stream, queue)}/")
        return [entry.key for entry in found if entry.key.endswith(IDS)]

    # -- batches that are done ---------------------------------------------------------------------------------------

    def committed(self, stream: str) -> int:
        """Return the last committed number, -1 when there is none. Raises: SpoolError."""
        key = f"{_stream_name(stream)}/{COMMITTED}"
        found = self.store.get(key)
        try:
            return -1 if found is None else int(found)
        except ValueError as error:
            raise SpoolError(f"{self}/{key}: cannot be read ({error})") from error

    def commit(
        self,
        stream: str,
        seq: int,
        keep_ids: Callable[[Path], bytes] | None = None,
        ids_age_s: float = 0.0,
    ) -> int:
        """Remove the pieces of batches up to `seq`, except those in doubt; return how many went.

        `keep_ids` makes of a piece what remembers its message ids (`kept_ids` finds it); such files go when they are
        older than `ids_age_s`.
        """
        before = self.committed(stream)
        entries = list(self.store.list(f"{_stream_name(stream)}/{_QUEUE}"))
        if seq > before:
            for each in _published(entries):
                # Not durable: a mark that is lost costs a duplicate.
                if each.is_in_doubt and before < each.seq <= seq:
                    self.store.put(_beside(each.key, READ), b"", is_durable=False)
            self.store.put(f"{_stream_name(stream)}/{COMMITTED}", str(seq).encode())
        gone = [each for each in _published(entries) if each.seq <= seq and not each.is_in_doubt]
        now = time.time()
        old = [
            entry.key
            for entry in entries
            if entry.key.endswith(IDS) and now - entry.modified_s >= ids_age_s
        ]
        if keep_ids is not None:
            for each in gone:
                with self.store.open(each.key) as path:
                    # They only spare a duplicate after another failure.
                    self.store.put(_beside(each.key, IDS), keep_ids(path), is_durable=False)
        self._remove(gone, old)
        return len(gone)

    def sweep(self, stream: str, *, temporary_age_s: float, in_doubt_age_s: float) -> int:
        """Remove what killed tasks left, and old pieces in doubt of committed batches; return how many.

        By age, never by owner: a task that seems dead may still be writing.
        """
        now, committed = time.time(), self.committed(stream)
        old = [
            each
            for each in self.pieces(stream)
            if each.is_in_doubt
            and each.seq <= committed
            and now - each.modified_s >= in_doubt_age_s
        ]
        self._remove(old)
        return len(old) + self.store.tidy(f"{_stream_name(stream)}/", temporary_age_s)

    def _remove(self, pieces: list[Published], others: Sequence[str] = ()) -> None:
        """Remove pieces and then their marks: in the other order they would look in doubt for a moment."""
        acked = [_beside(each.key, ACKED) for each in pieces if not each.is_in_doubt]
        read = [_beside(each.key, READ) for each in pieces if each.is_read]
        self.store.delete([*(each.key for each in pieces), *acked, *read, *others])


def _name(text: str) -> str:
    """Return a file name for any text."""
    quoted = quote(text, safe="").replace(".", "%2E").replace("~", "%7E")
    if len(quoted) <= _NAME_MAX:
        return quoted
    return f"{quoted[:100]}~{hashlib.sha256(text.encode()).hexdigest()}"


def _stream_name(text: str) -> str:
    """Return the file name of a stream; a long one may be given as `streams` has it."""
    return text if _SHORTENED.fullmatch(text) else _name(text)


def _folder(stream: str, queue: str) -> str:
    return f"{_stream_name(stream)}/{_QUEUE}{_name(queue)}"


def _beside(key: str, suffix: str) -> str:
    return key.removesuffix(PIECE) + suffix


def _published(entries: Iterable[Entry]) -> list[Published]:
    entries = list(entries)
    marks = {entry.key for entry in entries if entry.key.endswith((ACKED, READ))}
    return [_piece(entry, marks) for entry in _pieces_of(entries)]


def _pieces_of(entries: Iterable[Entry]) -> Iterator[Entry]:
    return (entry for entry in entries if entry.key.endswith(PIECE))


def _piece(entry: Entry, marks: set[str]) -> Published:
    seq, _, part = entry.key.rpartition("/")[2].removesuffix(PIECE).partition("-")
    is_in_doubt = _beside(entry.key, ACKED) not in marks
    is_read = _beside(entry.key, READ) in marks
    return Published(entry.key, int(seq), int(part), is_in_doubt, is_read, entry.modified_s)
