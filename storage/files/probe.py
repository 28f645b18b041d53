"""Whether the disk takes anything at all: a small file in the data directory that is made, synced and removed.

When the disk refuses a write of one queue, this tells a fault of that queue's files from a fault of the disk. State:
none. Called on the disk thread, never while all is well. Where a removal fails the file stays: the next probe, which
makes it anew, and recovery, which looks for other names, take no notice of it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Final

from burrowmq.storage.files.cache import NO_ROOM
from burrowmq.storage.files.filesystem import FileSystem

PROBE_FILE: Final = "probe"
_BYTES = bytes(4096)


def takes_writes(filesystem: FileSystem, data_dir: str) -> bool:
    """Tell whether a new file of the data directory can be made durable; a full disk is another matter."""
    path = f"{data_dir}/{PROBE_FILE}"
    try:
        if filesystem.exists(path):
            filesystem.unlink(path)
        file = filesystem.create(path)
        file.pwrite(_BYTES, 0)
        file.fdatasync()
        file.close()
        filesystem.fsync_dir(data_dir)
    except OSError as error:
        return error.errno in NO_ROOM
    finally:
        with suppress(OSError):
            filesystem.unlink(path)
    return True
