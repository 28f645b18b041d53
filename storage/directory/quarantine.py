"""Messages that were set aside: their bytes cannot be believed, and are kept for whoever wants to look.

A message is set aside when its checksum fails, and fails again after the bytes were read once more; never because a
read was refused. One file a message in `quarantine/`, named `<queue's directory>.<sequence number>.<milliseconds>.msg`:

    a line of JSON: vhost, queue, level, seq, expiry, reason, source (file and offset), size, set_aside_at
    the bytes of its record as they were read, or of its index entry where that is what is damaged

The file is durable before the message leaves its queue's index. State: none; the files are the truth. Written on the
disk thread; read, restored and removed by whoever is asked to, a node or burrowmq-store. There are never more than
`LIMIT` of them: beyond that messages stay where they are until the next start finds them again.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from typing import Final

from burrowmq.records import dataclass
from burrowmq.storage import record
from burrowmq.storage.errors import StorageError, SyncFailed, error_text
from burrowmq.storage.files.cache import write_error
from burrowmq.storage.files.filesystem import FileSystem

DIRECTORY: Final = "quarantine"
LIMIT: Final = 10_000
_ENDING: Final = ".msg"


@dataclass(frozen=True, slots=True, kw_only=True)
class SetAside:
    """One message that was set aside, without its bytes."""

    vhost: str
    queue: str
    level: int
    seq: int
    expiry: int
    reason: str
    source: str
    size: int
    set_aside_at: int


def names(filesystem: FileSystem, data_dir: str) -> list[str]:
    """Give the names of the messages' files, in order. Raises OSError."""
    directory = f"{data_dir}/{DIRECTORY}"
    if not filesystem.exists(directory):
        return []
    return [name for name in filesystem.listdir(directory) if name.endswith(_ENDING)]


def keep(
    filesystem: FileSystem, data_dir: str, queue_directory: str, about: SetAside, data: bytes
) -> str:
    """Write a message's bytes down, durably; gives the file's name. Raises WriteFailed or DiskFull."""
    directory = f"{data_dir}/{DIRECTORY}"
    prefix = f"{queue_directory.rpartition('/')[2]}.{about.seq}"
    name = f"{prefix}.{about.set_aside_at}{_ENDING}"
    path = f"{directory}/{name}"
    head = json.dumps(asdict(about), separators=(",", ":")).encode() + b"\n"
    try:
        filesystem.mkdir(directory)
        if filesystem.exists(path):  # left by an attempt that found no room
            filesystem.unlink(path)
        file = filesystem.create(path)
        file.pwrite(head + data, 0)
        file.fdatasync()
        filesystem.fsync_dir(directory)
        filesystem.fsync_dir(data_dir)  # an attempt that failed, or was killed, may have made it
    except OSError as error:
        with suppress(OSError):
            filesystem.unlink(path)
        raise write_error(path, error) from error
    return name


def load(filesystem: FileSystem, data_dir: str, name: str) -> tuple[SetAside, bytes] | None:
    """Give a message and its bytes; None when there is no such file, or it is not one of ours. Raises StorageError."""
    if name not in _checked(name):
        return None
    path = f"{data_dir}/{DIRECTORY}/{name}"
    try:
        content = filesystem.read_file(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise StorageError(error_text(error, path)) from error
    head, _, data = content.partition(b"\n")
    about = _about(head)
    return None if about is None else (about, data)


def _about(head: bytes) -> SetAside | None:
    """What the first line says, if it says whose message it is: somebody may have changed the file."""
    try:
        found = SetAside(**json.loads(head))
    except (ValueError, TypeError, RecursionError):
        return None
    names: tuple[object, ...] = (found.vhost, found.queue)
    return found if all(isinstance(one, str) for one in names) else None


def listing(filesystem: FileSystem, data_dir: str) -> Iterator[tuple[str, SetAside]]:
    """Give every message that was set aside. Raises StorageError."""
    for name in names(filesystem, data_dir):
        found = load(filesystem, data_dir, name)
        if found is not None:
            yield name, found[0]


def remove(filesystem: FileSystem, data_dir: str, name: str) -> None:
    """Forget a message for good: it was restored, or nobody wants it.

    Raises OSError when it stays; SyncFailed when it is gone, and may be there again after a power cut.
    """
    if name not in _checked(name):
        return
    directory = f"{data_dir}/{DIRECTORY}"
    try:
        filesystem.unlink(f"{directory}/{name}")
    except FileNotFoundError:
        return
    try:
        filesystem.fsync_dir(directory)
    except OSError as error:  # another sync would say nothing of this name
        raise SyncFailed(error_text(error, directory)) from error


def parts_of(data: bytes) -> record.Record | None:
    """Give a record's (address, raw, size, flags) as they can be made out; None when not even that is possible."""
    if len(data) < record.HEADER_SIZE + record.META_FIXED:
        return None
    segment_no, slot = (int.from_bytes(data[at : at + 4], "little") for at in (4, 8))
    return record.unpack_many(data, (0,), segment_no, (slot,), 0, False)[0]


def _nothing() -> None:
    return None


class Quarantine:
    """That of a store in use, for operators. Reads and removes files: for any thread but the loop's.

    State: which messages are being put back, or were and could not be removed: they are to be put back once.
    """

    def __init__(self, filesystem: FileSystem, data_dir: str) -> None:
        self.on_removed: Callable[[], None] = _nothing
        self._filesystem = filesystem
        self._data_dir = data_dir
        self._claimed: set[str] = set()

    def claim(self, name: str) -> bool:
        """Whether a message may be put back by who asks; nobody else may until it is released. Of the loop's thread."""
        if name in self._claimed:
            return False
        self._claimed.add(name)
        return True

    def release(self, name: str) -> None:
        """A message was not put back."""
        self._claimed.discard(name)

    def listing(self) -> list[tuple[str, SetAside]]:
        """Give the damaged messages by their names. Raises StorageError."""
        return list(listing(self._filesystem, self._data_dir))

    def load(self, name: str) -> tuple[SetAside, record.Record | None] | None:
        """Give one: what is known of it, and its (address, raw, size, flags) as far as they can be made out."""
        found = load(self._filesystem, self._data_dir, name)
        return None if found is None else (found[0], parts_of(found[1]))

    def remove(self, name: str) -> None:
        """Remove one for good. Raises as `remove` above."""
        try:
            remove(self._filesystem, self._data_dir, name)
        except SyncFailed:
            self._removed(name)
            raise
        self._removed(name)

    def _removed(self, name: str) -> None:
        self._claimed.discard(name)
        self.on_removed()


def _checked(name: str) -> tuple[str, ...]:
    """The name, if it is one of a file here and of no other place."""
    return (name,) if name.endswith(_ENDING) and "/" not in name and "\0" not in name else ()
