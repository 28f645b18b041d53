"""Where a spool's files lie: seven operations that a POSIX folder can keep, and an object store too.

    create   make a file under a name that nobody has, whole, durable; or learn that somebody has
    put      make or replace a small file
    get      read a small file
    head     look whether a file is there
    list     the files below a prefix
    delete   remove files
    open     have a file's octets as a local file

Owns no state. `posix` and `objects` keep it; `files` says what the names mean.

A name (`key`) is one or more parts with `/` between them, none of them empty or beginning with a dot. A prefix is the
beginning of keys; it need not end with a part. There are no folders: where a store has them, they come and go with
what is in them.

Invariants: a file is there whole or not at all; what `create`, and `put` unless it is told otherwise, returned from is
durable; `list` knows what they made before. `check` refuses a store that does not keep this.
"""

from __future__ import annotations

import uuid
from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Final, NamedTuple, Protocol

CHECKS: Final = "check"


class SpoolError(Exception):
    """The spool cannot be used as it is."""


class OutcomeUnknown(SpoolError):
    """The store gave no answer, or one that does not say whether the file is there now."""


class FileGone(SpoolError):
    """The file is not there, or not any more."""


class Entry(NamedTuple):
    """A file of the store."""

    key: str
    size: int
    modified_s: float
    """Seconds since 1970, by the clock of who keeps the file."""


class Store(Protocol):
    """A place for files. Methods raise SpoolError with the place in its text."""

    is_path: bool
    """The same name may be another place on another machine."""

    def scratch(self, key: str) -> AbstractContextManager[Path]:
        """Give a local file to write to, which `create` then publishes; it goes with the context."""

    def create(self, key: str, source: Path) -> bool:
        """Publish a scratch file; False: the name is taken. Raises: OutcomeUnknown; then it may be tried again."""

    def put(self, key: str, content: bytes, *, is_durable: bool = True) -> None:
        """Make or replace a file; `is_durable` of False: it need not survive a power cut."""

    def get(self, key: str) -> bytes | None:
        """Return a small file's octets, None when there is none."""

    def head(self, key: str) -> Entry | None:
        """Return what is known of a file, None when there is none."""

    def list(self, prefix: str) -> Iterator[Entry]:
        """Yield the files whose keys begin with the prefix, in the order of their keys."""

    def delete(self, keys: Iterable[str]) -> None:
        """Remove files, in their order where it takes several steps; those that are not there are none to remove."""

    def open(self, key: str) -> AbstractContextManager[Path]:
        """Give a file as a local one, to be read only. Raises: FileGone."""

    def tidy(self, prefix: str, age_s: float) -> int:
        """Remove what killed writers left below a prefix, if it is older; return how much that was."""


def check(store: Store) -> None:
    """Make a file twice, list it and remove it. Raises: SpoolError for a store on which a spool would not be safe."""
    key = f"{CHECKS}/{uuid.uuid4().hex}"
    try:
        with store.scratch(key) as path:
            try:
                path.write_bytes(b"1")
            except OSError as error:
                raise SpoolError(f"{path}: cannot be written ({error})") from error
            first, second = store.create(key, path), store.create(key, path)
        if not first:
            raise SpoolError(f"{store}: a new name is said to be taken")
        if second:
            raise SpoolError(
                f"{store}: lets two writers make the same file, so that two attempts at one task could both count; "
                "a spool needs a store with conditional writes, or a file system with hard links"
            )
        if key not in {entry.key for entry in store.list(f"{CHECKS}/")}:
            raise SpoolError(
                f"{store}: does not list a file that was just made; a spool needs a store whose lists are up to date"
            )
    finally:
        store.delete([key])
