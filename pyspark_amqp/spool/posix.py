"""A spool's files in a folder that driver and executors share: a local disk, NFS, Lustre, CephFS.

State: the files; the object keeps the folder's name only, so it may be pickled.

`create` is link(2), which fails where the name is taken, between fsync of the file and fsync of its folders. A network
file system that repeats a request may say "taken" of one's own link: who calls settles that by reading.

Invariants: a file has its name only when its octets are on disk; folders are made when something goes into them, and
removed with the last that was in them, so that queues which are gone cost nothing.
"""

from __future__ import annotations

import contextlib
import os
import time
import uuid
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final

from pyspark_amqp.spool.store import Entry, FileGone, SpoolError

TEMPORARY: Final = ".tmp"
# Somebody may remove an empty folder just before something is written into it.
_TRIES: Final = 100


class PosixStore:
    """A folder."""

    is_path = True

    def __init__(self, root: str | Path) -> None:
        self.root = Path(root)

    def __str__(self) -> str:
        return str(self.root)

    @contextlib.contextmanager
    def scratch(self, key: str) -> Iterator[Path]:
        """See `Store`."""
        final = self._path(key)
        path = final.parent / f"{final.stem}.{uuid.uuid4().hex}{TEMPORARY}"
        for left in reversed(range(_TRIES)):
            _make_folder(path.parent)
            with _telling(path, "made"):
                try:
                    path.touch()
                    break
                except FileNotFoundError:
                    if not left:
                        raise
        try:
            yield path
        finally:
            path.unlink(missing_ok=True)

    def create(self, key: str, source: Path) -> bool:
        """See `Store`."""
        final = self._path(key)
        with _telling(source, "synced"):
            _sync(source)
        try:
            os.link(source, final)
        except FileExistsError:
            return False
        except OSError as error:
            reason = f"{final}: cannot be published ({error}); the spool needs a POSIX file system with links"
            raise SpoolError(reason) from error
        self._sync_folders(final)
        return True

    def put(self, key: str, content: bytes, *, is_durable: bool = True) -> None:
        """See `Store`."""
        final = self._path(key)
        with self.scratch(key) as path, _telling(final, "written"):
            path.write_bytes(content)
            if is_durable:
                _sync(path)
            path.replace(final)
        if is_durable:
            self._sync_folders(final)

    def get(self, key: str) -> bytes | None:
        """See `Store`."""
        try:
            return self._path(key).read_bytes()
        except FileNotFoundError:
            return None
        except OSError as error:
            raise SpoolError(f"{self._path(key)}: cannot be read ({error})") from error

    def head(self, key: str) -> Entry | None:
        """See `Store`. A key that ends with `/` asks for a folder, which an older version left empty."""
        return _entry(key, self._path(key))

    def list(self, prefix: str) -> Iterator[Entry]:
        """See `Store`."""
        within, _, start = prefix.rpartition("/")
        for name in _names(self._path(within)):
            if not name.startswith(start) or name.endswith(TEMPORARY):
                continue
            key = f"{within}/{name}" if within else name
            path = self._path(key)
            with _telling(path, "looked at"):
                is_folder = path.is_dir()
            if is_folder:
                yield from self.list(f"{key}/")
            elif (found := _entry(key, path)) is not None:
                yield found

    def delete(self, keys: Iterable[str]) -> None:
        """See `Store`."""
        folders = set()
        for key in keys:
            path = self._path(key)
            with _telling(path, "removed"):
                path.unlink(missing_ok=True)
            folders.add(path.parent)
        for folder in folders:
            self._remove_empty(folder)

    @contextlib.contextmanager
    def open(self, key: str) -> Iterator[Path]:
        """See `Store`."""
        path = self._path(key)
        # Not `exists`: Python 3.14's says so, too, of what the disk refuses to look at.
        if _entry(key, path) is None:
            raise FileGone(f"{path}: is not there")
        yield path

    def tidy(self, prefix: str, age_s: float) -> int:
        """See `Store`."""
        now, removed_count = time.time(), 0
        for folder, _, names in os.walk(self._path(prefix.rstrip("/")), topdown=False):
            for name in names:
                path = Path(folder, name)
                if name.endswith(TEMPORARY) and _age_s(path, now) >= age_s:
                    path.unlink(missing_ok=True)
                    removed_count += 1
            if _age_s(Path(folder), now) >= age_s:
                self._remove_empty(Path(folder))
        return removed_count

    def _path(self, key: str) -> Path:
        return self.root / key

    def _sync_folders(self, final: Path) -> None:
        """Make the name durable: another task may have made the folders and not synced them yet."""
        folder = final.parent
        # Not OutcomeUnknown: who reads would find the file, and acknowledge what a power cut may take.
        with _telling(folder, "synced"):
            while folder != self.root:
                _sync(folder)
                folder = folder.parent
            _sync(self.root)

    def _remove_empty(self, folder: Path) -> None:
        """Remove folders that have become empty, below the root."""
        while folder != self.root and self.root in folder.parents:
            try:
                folder.rmdir()
            except OSError:
                return  # something is in it, or somebody else has removed it
            folder = folder.parent


@contextlib.contextmanager
def _telling(path: Path, what: str) -> Iterator[None]:
    """Name the place where the disk refuses."""
    try:
        yield
    except OSError as error:
        raise SpoolError(f"{path}: cannot be {what} ({error})") from error


def _names(folder: Path) -> list[str]:
    with _telling(folder, "listed"):
        try:
            return sorted(os.listdir(folder))
        except (FileNotFoundError, NotADirectoryError):
            return []


def _entry(key: str, path: Path) -> Entry | None:
    with _telling(path, "looked at"):
        try:
            found = path.stat()
        except (FileNotFoundError, NotADirectoryError):
            return None
    return Entry(key, found.st_size, found.st_mtime)


def _age_s(path: Path, now: float) -> float:
    with contextlib.suppress(FileNotFoundError):
        return now - path.stat().st_mtime
    return 0.0


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileNotFoundError:
        return  # a parent was removed meanwhile: who calls tries again
    except OSError as error:
        raise SpoolError(f"{folder}: cannot be made ({error})") from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
