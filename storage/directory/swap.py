"""Putting a whole store in the place of another: `vhosts`, the terms and STORE.json of a data directory, at once.

The new store is made complete and durable in `store.new` beside them. Then the file `SWAP` is made. Until it is durable
the old store counts, from then on the new one, however much of it has been renamed. Whoever made the new store renames
its parts, or the next start does; what is renamed already is left alone.

    SWAP       there: `store.new` is complete, go on moving it into place
    store.new  the new store; without SWAP it is an unfinished one and is removed
    store.old  the old `vhosts` on its way out; without SWAP it is removed, too

State: none. Called by burrowmq-store, and by recovery before it looks at anything.
"""

from __future__ import annotations

from burrowmq.storage.directory.terms import CLEAN_FILE, STORE_FILE, TERMS_FILE
from burrowmq.storage.errors import StorageError
from burrowmq.storage.files.cache import NO_ROOM, write_error
from burrowmq.storage.files.filesystem import FileSystem

NEW_DIRECTORY = "store.new"
_OLD_DIRECTORY = "store.old"
_MARK = "SWAP"


def begin_swap(filesystem: FileSystem, data_dir: str) -> str:
    """Give the directory for the new store, which is not there yet. Raises WriteFailed, DiskFull.

    It has to be gone, and so has the old store of an earlier swap: beside that one `vhosts` counts as the new one.
    """
    finish_swap(filesystem, data_dir)
    return f"{data_dir}/{NEW_DIRECTORY}"


def commit_swap(filesystem: FileSystem, data_dir: str) -> None:
    """The new store is complete and was closed cleanly: from here on it is the one. Raises StorageError."""
    mark = f"{data_dir}/{_MARK}"
    if not filesystem.exists(f"{data_dir}/{NEW_DIRECTORY}/{CLEAN_FILE}"):
        raise StorageError(f"{data_dir}/{NEW_DIRECTORY} was not closed cleanly")
    try:
        filesystem.fsync_dir(f"{data_dir}/{NEW_DIRECTORY}")
        filesystem.fsync_dir(data_dir)
        filesystem.create(mark).fdatasync()
        filesystem.fsync_dir(data_dir)
    except OSError as error:
        raise write_error(mark, error) from error
    # The new one counts by now: what cannot be removed of the old one is the next start's matter.
    finish_swap(filesystem, data_dir, [])


def is_swapping(filesystem: FileSystem, data_dir: str) -> bool:
    """Tell whether the parts of the new store, or some of them, are still to be moved into place."""
    return filesystem.exists(f"{data_dir}/{_MARK}")


def finish_swap(filesystem: FileSystem, data_dir: str, leftovers: list[str] | None = None) -> bool:
    """Finish a swap that was committed, or clear away one that was not; True when the store was replaced.

    `leftovers` gets what cannot be removed then: without the mark nobody looks into it. Raises WriteFailed, DiskFull;
    without `leftovers` for these, too.
    """
    mark, new = f"{data_dir}/{_MARK}", f"{data_dir}/{NEW_DIRECTORY}"
    try:
        is_committed = filesystem.exists(mark)
        if is_committed:
            # Whoever has made the mark, or moved a part, may have been killed before that was durable.
            if filesystem.exists(new):
                _sync_both(filesystem, data_dir)
            _move(filesystem, data_dir)
            filesystem.fsync_dir(data_dir)
            filesystem.unlink(mark)
            filesystem.fsync_dir(data_dir)
        for leftover in (new, f"{data_dir}/{_OLD_DIRECTORY}"):
            _clear(filesystem, leftover, leftovers)
    except OSError as error:
        raise write_error(mark, error) from error
    return is_committed


def _clear(filesystem: FileSystem, path: str, leftovers: list[str] | None) -> None:
    try:
        filesystem.rmtree(path)
    except OSError as error:
        if leftovers is None or error.errno in NO_ROOM:
            raise
        leftovers.append(path)


def _move(filesystem: FileSystem, data_dir: str) -> None:
    """Move every part that was not moved yet; the mark of a clean stop goes first and comes last."""
    new = f"{data_dir}/{NEW_DIRECTORY}"
    vhosts, old = f"{data_dir}/vhosts", f"{data_dir}/{_OLD_DIRECTORY}"
    if filesystem.exists(f"{new}/{CLEAN_FILE}") and filesystem.exists(f"{data_dir}/{CLEAN_FILE}"):
        filesystem.unlink(f"{data_dir}/{CLEAN_FILE}")
        filesystem.fsync_dir(data_dir)
    if filesystem.exists(f"{new}/{STORE_FILE}"):
        # STORE.json moves last of what the new store cannot do without: until then `vhosts` may still be the old one.
        if not filesystem.exists(old):  # once it is there, `vhosts` is the new one
            if filesystem.exists(vhosts):
                filesystem.rename(vhosts, old)
            else:
                filesystem.mkdir(old)
            filesystem.fsync_dir(data_dir)
        if filesystem.exists(f"{new}/vhosts"):
            filesystem.rename(f"{new}/vhosts", vhosts)
            _sync_both(filesystem, data_dir)
        filesystem.rename(f"{new}/{STORE_FILE}", f"{data_dir}/{STORE_FILE}")
        _sync_both(filesystem, data_dir)
    for name in (TERMS_FILE, CLEAN_FILE):
        if filesystem.exists(f"{new}/{name}"):
            filesystem.rename(f"{new}/{name}", f"{data_dir}/{name}")
            _sync_both(filesystem, data_dir)


def _sync_both(filesystem: FileSystem, data_dir: str) -> None:
    filesystem.fsync_dir(data_dir)
    filesystem.fsync_dir(f"{data_dir}/{NEW_DIRECTORY}")
