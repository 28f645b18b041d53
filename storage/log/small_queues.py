"""The files of small queues: unpacked while somebody uses them, else as the bytes that a snapshot has of them.

State: for each directory the contents of its files by name, or their packed form; the open files. Called by
`storage.log.filesystem` on the disk thread; what opens a file or looks at one also on the reader thread, which may do
so while the disk thread syncs: `lock` keeps it from what a sync packs or lets move out. Invariant: a directory is
packed only when none of its files is open, so that nobody holds a content that does not count any more.
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Mapping
from weakref import WeakValueDictionary

from burrowmq.storage.log.content import Content, Piece
from burrowmq.storage.log.files import Journal, SmallFile
from burrowmq.storage.log.records import Kind, pack_record, records_in

Contents = dict[str, Content]
# So many directories may be unpacked, beside those in use, without a look at who uses them.
UNPACKED = 256
# Directories that one look goes through: a commit waits for it.
_LOOK = 128


class SmallQueues:
    """See the module. Paths are whole ones."""

    def __init__(
        self, journal: Journal, root: str, seed: int, directories: Mapping[str, Contents]
    ) -> None:
        """Begin with these; their paths are below the root."""
        self.lock = threading.RLock()
        self._journal = journal
        self._start = len(root)
        self._seed = seed
        self._contents: dict[str, Contents | bytes] = {
            sys.intern(f"{root}{name}"): contents for name, contents in directories.items()
        }
        self._open: WeakValueDictionary[str, SmallFile] = WeakValueDictionary()
        self._unpacked: dict[str, None] = dict.fromkeys(self._contents)
        self._forms: dict[str, bytes] = {}  # packed forms of those that have not changed since
        self._pack_above = UNPACKED
        self._in_use = 0  # directories that this round found in use
        self._unpacked_before = 0  # how many were unpacked after the last look
        self._looking_at: list[
            str
        ] = []  # directories that the round of looks has yet to go through
        self._grown: dict[str, None] = {}  # those that were written to since the last look
        self._refused: dict[str, int] = {}  # those that could not move out, with what they had then
        self._stored = self._stored_now()
        self._counted_at = self._stored

    def __contains__(self, directory: str) -> bool:
        return directory in self._contents

    def names(self) -> list[str]:
        """Give the directories."""
        return list(self._contents)

    def below(self, directory: str) -> list[str]:
        """Give those below a directory."""
        prefix = f"{directory}/"
        return [name for name in list(self._contents) if name.startswith(prefix)]

    def contents(self, directory: str) -> Contents | None:
        """Give the contents of a directory's files; None when it is no small queue's."""
        with self.lock:
            found = self._contents.get(directory)
            if isinstance(found, bytes):
                self._forms[directory] = found
                found = self._contents[directory] = self._unpack(found)
                self._unpacked[directory] = None
            return found

    def content(self, path: str) -> tuple[Content | None, bool]:
        """Give a file's content, and whether it would be in a small queue's directory."""
        directory, _, name = path.rpartition("/")
        contents = self.contents(directory)
        return (None, False) if contents is None else (contents.get(name), True)

    def stored_in(self, directory: str) -> int:
        """Give how many bytes a queue's files have, or a little more."""
        found = self._contents[directory]
        if isinstance(found, bytes):
            return len(found)
        return sum(content.stored for content in found.values())

    def note_changed(self, directory: str, written: int) -> None:
        """Something in a directory is not as it was; so many bytes were written."""
        self._forms.pop(directory, None)
        if written:
            self._grown[directory] = None
            self._stored += written

    @property
    def has_grown(self) -> bool:
        """Whether any was written to since the last look."""
        return bool(self._grown)

    def take_grown(self, limit: int, total_limit: int, count: int) -> list[str]:
        """Give up to so many directories that have to move out: those that have more than the limit.

        While all together have more than theirs, each that was written to since the last look has too much. One that
        the disk refused is tried again when it has twice as much, or the log begins anew (`retry_refused`).
        """
        grown, self._grown = self._grown, {}
        if self._stored > total_limit and self._stored - self._counted_at > total_limit // 16:
            # What is written over is not told; to count at each look would cost more than all else in it.
            self._stored = self._counted_at = self._stored_now()
        if self._stored > total_limit:
            limit = 0
        chosen = [
            one for one in grown if self.stored_in(one) > max(limit, 2 * self._refused.get(one, 0))
        ]
        self._grown = dict.fromkeys(chosen[count:])
        return chosen[:count]

    def note_refused(self, directory: str) -> None:
        """A directory could not move out."""
        self._refused[directory] = self.stored_in(directory)

    def retry_refused(self) -> None:
        """Those that could not move out are tried again, whatever they have by now."""
        for directory in self._refused:
            self._refused[directory] = 0
            self._grown[directory] = None

    def is_refused(self, directory: str) -> bool:
        """Whether a directory could not move out: the disk may have some of it all the same."""
        return directory in self._refused

    def _stored_now(self) -> int:
        return sum(self.stored_in(directory) for directory in self._contents)

    # -- files ----------------------------------------------------------------------------------------------------

    def open(self, path: str) -> tuple[SmallFile | None, bool]:
        """Open a file if it is there; gives also whether it would be in a small queue's directory."""
        with self.lock:
            content, is_small = self.content(path)
            if content is None:
                return None, is_small
            file = self._open.get(path)
            if file is None:
                file = self._open[path] = SmallFile(self._journal, path, content)
            return file, True

    def opened(self, path: str) -> SmallFile | None:
        """Give a file if somebody has it open."""
        return self._open.get(path)

    def create(self, path: str) -> SmallFile:
        """Make a file."""
        directory, _, name = path.rpartition("/")
        contents = self.contents(directory)
        assert contents is not None
        content = contents[name] = Content()
        file = self._open[path] = SmallFile(self._journal, path, content)
        return file

    def unlink(self, path: str) -> None:
        """Remove a file."""
        directory, _, name = path.rpartition("/")
        contents = self.contents(directory)
        assert contents is not None
        del contents[name]
        self._drop(path)

    def rename(self, source: str, target: str) -> None:
        """Rename a file within its directory."""
        directory, _, name = source.rpartition("/")
        contents = self.contents(directory)
        assert contents is not None
        content = contents.pop(name)
        self._drop(target)
        contents[target.rpartition("/")[2]] = content
        file = self._open.pop(source, None)
        if file is not None:
            file.name_again(target)
            self._open[target] = file

    def _drop(self, path: str) -> None:
        file = self._open.pop(path, None)
        if file is not None:
            file.drop()

    # -- directories ----------------------------------------------------------------------------------------------

    def add(self, directory: str) -> None:
        """Make a directory."""
        self._contents[directory] = {}
        self._unpacked[directory] = None

    def remove(self, directory: str) -> None:
        """Remove a directory with its files."""
        for name in self.contents(directory) or ():
            self._drop(f"{directory}/{name}")
        self._forget(directory)

    def let_go(self, directory: str) -> None:
        """Its files are somewhere else; who has one open goes on there."""
        for name in self.contents(directory) or ():
            self._open.pop(f"{directory}/{name}", None)
        self._forget(directory)

    def _forget(self, directory: str) -> None:
        self._stored -= self.stored_in(directory)
        del self._contents[directory]
        self._forms.pop(directory, None)
        self._unpacked.pop(directory, None)
        self._grown.pop(directory, None)
        self._refused.pop(directory, None)

    @property
    def unpacked_count(self) -> int:
        """How many directories are unpacked."""
        return len(self._unpacked)

    @property
    def is_packing_due(self) -> bool:
        """Whether `pack_idle` has something to look at when nothing else is to be done."""
        return bool(self._looking_at) or len(self._unpacked) > self._in_use + UNPACKED

    def pack_idle(self, *, is_at_rest: bool = False) -> None:
        """Pack some of the directories of which no file is open.

        Between commits only while there are many more than at the end of the last round: those that come and go all
        the time would be packed and unpacked all the time.
        """
        if not self._looking_at:
            if not self.is_packing_due if is_at_rest else len(self._unpacked) <= self._pack_above:
                return
            self._looking_at = list(reversed(self._unpacked))  # the next one last
            self._in_use = 0
        # A commit that unpacked many does not leave them behind: what is given back later leaves holes.
        count = max(_LOOK, 2 * (len(self._unpacked) - self._unpacked_before))
        part = self._looking_at[: -count - 1 : -1]
        del self._looking_at[-count:]
        for directory in part:
            self._in_use += not self._pack_if_idle(directory)
        self._unpacked_before = len(self._unpacked)
        if not self._looking_at:
            self._pack_above = len(self._unpacked) + UNPACKED

    def pack_all_idle(self) -> None:
        """Pack all directories of which no file is open: a start has looked at each."""
        self._looking_at = []
        for directory in list(self._unpacked):
            self._pack_if_idle(directory)

    def _pack_if_idle(self, directory: str) -> bool:
        with self.lock:
            contents = self._contents.get(directory)
            if contents is None or isinstance(contents, bytes):
                return True
            if any(f"{directory}/{name}" in self._open for name in contents):
                return False
            self._contents[directory] = self._form(directory)
            del self._forms[directory], self._unpacked[directory]
            return True

    def snapshot(self) -> Iterator[bytes]:
        """Give the records that make all of it again."""
        for directory in self.names():
            yield pack_record(self._seed, Kind.MAKE, directory[self._start :])
            yield self._form(directory)

    def _form(self, directory: str) -> bytes:
        """Give a directory's packed form, which is kept until something in it changes."""
        with self.lock:
            contents = self._contents[directory]
            if isinstance(contents, bytes):
                return contents
            form = self._forms.get(directory)
            if form is None:
                form = self._forms[directory] = self._pack(directory, contents)
            return form

    def _pack(self, directory: str, contents: Contents) -> bytes:
        records: list[bytes] = []
        for name, content in contents.items():
            path = f"{directory}/{name}"[self._start :]
            if len(content.pieces) > 1:
                content.join()
            records += [
                pack_record(self._seed, Kind.WRITE, path, offset, data)
                for offset, data in content.pieces
            ]
            if content.size != content.end:
                records.append(pack_record(self._seed, Kind.RESIZE, path, content.size))
        return b"".join(records)

    def _unpack(self, packed: bytes) -> Contents:
        pieces: dict[str, list[Piece]] = {}
        sizes: dict[str, int] = {}
        for record in records_in(packed, self._seed):
            assert record is not None
            name = record.path.rpartition("/")[2]
            if record.kind == Kind.WRITE:
                pieces.setdefault(name, []).append((record.offset, record.data))
            else:
                pieces.setdefault(name, [])
                sizes[name] = record.offset
        return {name: Content(tuple(found), sizes.get(name, -1)) for name, found in pieces.items()}
