"""Opening a data directory, after a clean stop or any other.

After a clean stop the terms say everything and no message is looked at (`clean_stop`). Otherwise the queues' indexes
are the truth. Each is walked once, with one segment in memory at a time. The references to the shared stores that they
hold are counted and given to these stores; entries whose message a store does not have are removed from the indexes.

State: none. Called by the engine before the disk thread starts.

Invariants: the mark of a clean stop is durably gone before anything is written; transient messages never survive; after
an unclean stop no old file is appended to: queues go on in a new index segment, shared stores in a new segment whose
number was never used. Source: docs/formats; RabbitMQ's rabbit_classic_queue_index_v2, recover.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from typing import TYPE_CHECKING

from burrowmq.records import NamedTuple
from burrowmq.storage import real_time as time
from burrowmq.storage.directory import clean_stop
from burrowmq.storage.directory.backup import discard_staging
from burrowmq.storage.directory.context import (
    GONE,
    VHOST_NAME_FILE,
    StoreContext,
    behind_files,
    queue_files,
)
from burrowmq.storage.directory.definition_store import DefinitionStore, SqliteDefinitionStore
from burrowmq.storage.directory.removals import KIND as REMOVAL
from burrowmq.storage.directory.removals import Removals, deleted_vhosts
from burrowmq.storage.directory.swap import finish_swap
from burrowmq.storage.directory.takeover import HighestLevels, renamed_terms, take_over
from burrowmq.storage.directory.terms import (
    CLEAN_FILE,
    RecordedStore,
    recorded_store,
    replace_file,
    take_terms,
)
from burrowmq.storage.errors import DiskFull, StoreRefused, WriteFailed
from burrowmq.storage.files.cache import FileCache, as_storage_errors, open_file, parent_of
from burrowmq.storage.files.filesystem import FileSystem
from burrowmq.storage.files.space import give_up_ballast
from burrowmq.storage.log.filesystem import LogFileSystem
from burrowmq.storage.log.groups import LogOptions
from burrowmq.storage.log.mount import mount, remove_log, unmount
from burrowmq.storage.names import NAME_FILE, QueueNames, parse_names
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.journal_limits import JournalLimits
from burrowmq.storage.shared.recovery import StoreRecovery
from burrowmq.storage.shared.references import ReferenceTally
from burrowmq.storage.shared.segment import parse_file_name
from burrowmq.storage.types import (
    LoadMessage,
    RecoveryReport,
    StoreObserver,
    StoreOptions,
)

if TYPE_CHECKING:
    from burrowmq.storage.queue.recovery import QueueRecovery

DEFINITIONS_FILE = "definitions.db"
# SQLite takes a file that is shorter than its header for a new database.
_SQLITE_HEADER = 100
DefinitionsAt = Callable[[str], DefinitionStore]


def definitions_bytes(filesystem: FileSystem, data_dir: str) -> int:
    """Give what the definitions of a data directory take on disk, before anything of it is opened."""
    total = 0
    for name in (DEFINITIONS_FILE, f"{DEFINITIONS_FILE}-wal"):
        with suppress(OSError):
            total += filesystem.file_size(f"{data_dir}/{name}")
    return total


class StoreSetup(NamedTuple):
    """What a store is opened with.

    `definitions_at` opens the definitions (None: SQLite). `highest_levels` says which queues have levels, for a store
    of format 1 (None: nobody can, and such a store is refused). `log` is the file system too, once the log is open.
    """

    data_dir: str
    filesystem: FileSystem
    options: StoreOptions
    observer: StoreObserver
    load_message: LoadMessage
    definitions_at: DefinitionsAt | None = None
    highest_levels: HighestLevels | None = None
    log: LogFileSystem | None = None


def open_store(setup: StoreSetup) -> tuple[StoreContext, RecoveryReport]:
    """Open what is in a data directory.

    Raises StoreRefused, and has then written nothing. Raises StorageError when a file cannot be read or written: a file
    that cannot be read is never taken for a damaged or missing one, so that the next start may still find all in it.
    """
    began = time.monotonic()
    try:
        context, report = _attempt(setup)
    except DiskFull:
        with as_storage_errors():
            has_given = give_up_ballast(setup.filesystem, setup.data_dir)
        if not has_given:
            raise
        # Whatever the first attempt has written is no obstacle: a start may be cut off anywhere.
        context, report = _attempt(setup)
    duration_ms = (time.monotonic() - began) * 1000
    setup.observer.recovery_finished(report.clean, report.messages, report.lost, duration_ms)
    return context, report


def _attempt(setup: StoreSetup) -> tuple[StoreContext, RecoveryReport]:
    with as_storage_errors():
        return _open_store(setup)


def _open_store(setup: StoreSetup) -> tuple[StoreContext, RecoveryReport]:
    data_dir, filesystem = setup.data_dir, setup.filesystem
    filesystem.keep_spare()
    leftovers: list[str] = []
    finish_swap(filesystem, data_dir, leftovers)
    recorded = recorded_store(filesystem, data_dir, setup.options)
    _refuse_without_definitions(setup)
    discard_staging(filesystem, data_dir)  # of a backup that a kill interrupted
    if recorded.taking_over and setup.highest_levels is None:
        raise StoreRefused(f"{data_dir} is of format 1: start a node on it, which takes it over")
    was_clean = filesystem.exists(f"{data_dir}/{CLEAN_FILE}")
    parts = take_terms(filesystem, data_dir)
    definitions = (setup.definitions_at or SqliteDefinitionStore)(f"{data_dir}/{DEFINITIONS_FILE}")
    with ExitStack() as attempt:
        attempt.callback(definitions.close)
        rows = definitions.load()  # before any queue is looked at: a damaged one refuses the start
        if recorded.taking_over and setup.highest_levels is not None:
            highest = setup.highest_levels(rows)
            take_over(filesystem, data_dir, recorded, highest)
            parts = renamed_terms(parts, highest)
        report = RecoveryReport()
        setup, damaged = _with_log(setup, recorded)
        context = _new_context(setup, recorded, definitions)
        if parts is not None and clean_stop.restore(context, parts, report):
            report.clean = True
        else:
            report, context = RecoveryReport(), _new_context(setup, recorded, definitions)
            if filesystem.exists(f"{data_dir}/vhosts"):
                for vhost in deleted_vhosts(rows):
                    context.remove_tree(context.vhost_dir(vhost))
                _rebuild(context, report, is_exact=was_clean)
        for place in damaged:
            report.lost += 1
            setup.observer.record_lost(place, 0, "damaged in the commit log")
        context.take_leftovers(f"{data_dir}/vhosts")
        context.leftover_trees += leftovers
        context.sweep()
        if context.log is not None:
            context.release_clean_files()
            context.log.settle()
        context.removals = Removals(rows)
        report.definitions = [row for row in rows if row[0] != REMOVAL]
        report.removals = context.removals.found
        if not (report.definitions or report.queues):
            report.clean = True  # a new directory: no stop came before
        attempt.pop_all()
        return context, report


def _with_log(setup: StoreSetup, recorded: RecordedStore) -> tuple[StoreSetup, list[str]]:
    """Open the commit log, begin one or take leave of it; gives also which places of it are damaged."""
    base, data_dir, options = setup.filesystem, setup.data_dir, setup.options
    if not recorded.has_log:
        remove_log(base, data_dir)
        if not options.has_log:
            return setup, []
    bounds = LogOptions(
        options.log_limit,
        options.log_queue_limit,
        options.log_total_limit,
        behind_files(options.open_files),
    )
    filesystem, damaged = mount(
        base, data_dir, recorded.identity, bounds, is_new=not recorded.has_log
    )
    if not options.has_log:
        unmount(filesystem)
        recorded.set_log(base, has_log=False)
        remove_log(base, data_dir)
        return setup, damaged
    if not recorded.has_log:
        recorded.set_log(base, has_log=True)
    return setup._replace(filesystem=filesystem, log=filesystem), damaged


def _refuse_without_definitions(setup: StoreSetup) -> None:
    """Refuse a store whose definitions are missing: nobody would open its queues, and they would go."""
    filesystem, data_dir = setup.filesystem, setup.data_dir
    if setup.definitions_at is not None:
        return
    path, vhosts = f"{data_dir}/{DEFINITIONS_FILE}", f"{data_dir}/vhosts"
    is_there = filesystem.exists(path)
    if is_there and filesystem.file_size(path) >= _SQLITE_HEADER:
        return
    if filesystem.exists(vhosts) and filesystem.listdir(vhosts):
        what = "its definitions are cut off" if is_there else "no definitions"
        raise StoreRefused(f"{data_dir} has a store but {what}: restore {DEFINITIONS_FILE}")


def _new_context(
    setup: StoreSetup, recorded: RecordedStore, definitions: DefinitionStore
) -> StoreContext:
    options = setup.options
    return StoreContext(
        setup.data_dir,
        setup.filesystem,
        options,
        setup.observer,
        setup.load_message,
        recorded,
        definitions,
        FileCache(
            setup.filesystem,
            queue_files(options.open_files)
            - (behind_files(options.open_files) if setup.log is not None else 0),
            options.cache_size,
            options.is_checked,
        ),
        journals=JournalLimits(
            options.journal_entries,
            run_bytes=options.journal_run_bytes,
            direct_bytes=options.journal_direct_bytes,
        ),
        log=setup.log,
    )


def _rebuild(context: StoreContext, report: RecoveryReport, *, is_exact: bool) -> None:
    """Walk all indexes, then open the shared stores with the references found.

    `is_exact`: the stop was a clean one, so that the files are complete. What an index names and a shared store does
    not have is then reported as lost; after another stop its ack, or its confirm, may just not have come that far.
    """
    if context.log is not None:
        context.log.distrust()
    root = f"{context.data_dir}/vhosts"
    for entry in context.filesystem.listdir(root):
        directory = f"{root}/{entry}"
        if entry.endswith(GONE):
            continue
        vhost = _vhost_name(context, directory)
        if vhost is None and not _holds_anything(context.filesystem, directory):
            # An attempt to make one that did not come to its name.
            context.remove_tree(directory, is_synced=False)
            continue
        if vhost is None:
            report.lost += 1
            report.unnamed_vhosts.append(directory)
            context.observer.record_lost(directory, 0, "whose vhost this is cannot be read")
            continue
        queues = _rebuild_vhost(context, vhost, report, is_exact=is_exact)
        _hold_on_to(context, directory, vhost)
        context.sync()
        for queue in queues:
            with suppress(WriteFailed):  # a journal that cannot be removed goes after another sync
                queue.after_sync()


def _hold_on_to(context: StoreContext, directory: str, vhost: str) -> None:
    """Have the directories of a vhost synced: what a process that was killed has made may not be durable.

    Whatever is confirmed from now on lies in them. That of the queues may not even be there, and whoever makes a queue
    syncs no more than its own directory and that one.
    """
    context.filesystem.mkdir(f"{directory}/queues")
    cache, path = context.cache, f"{directory}/{VHOST_NAME_FILE}"
    name = vhost.encode()
    if not context.filesystem.exists(path) or context.filesystem.read_file(path) != name:
        # Damaged, and a queue told it: the next damage may be to that.
        replace_file(context.filesystem, path, name)
    if context.filesystem.exists(path):
        cache.store_written(path, open_file(context.filesystem, path))
    for changed in (f"{directory}/queues", directory, parent_of(directory), context.data_dir):
        cache.dir_changed(changed)


def _vhost_name(context: StoreContext, directory: str) -> str | None:
    """Give the vhost whose directory it is, as its name file says, or the name file of a queue in it.

    Else the definitions do: they would open it all the same, and its new queues would write over what lies there.
    """
    filesystem = context.filesystem
    candidates: list[str] = []
    path = f"{directory}/{VHOST_NAME_FILE}"
    if filesystem.exists(path):
        candidates.append(filesystem.read_file(path).decode("utf-8", "replace"))
    if filesystem.exists(f"{directory}/queues"):
        for entry in filesystem.listdir(f"{directory}/queues"):
            names = _queue_names(context, f"{directory}/queues/{entry}")
            if names is not None:
                candidates.append(names.vhost)
                break
    for name in (*candidates, *_defined_vhosts(context)):
        if context.vhost_dir(name) == directory:
            return name
    return None


def _defined_vhosts(context: StoreContext) -> Iterator[str]:
    """Give what the keys of vhosts' rows say; the name of a directory is the check of it."""
    for kind, key, _ in context.definitions.load():
        if kind == "vhost":
            yield from map(str, json.loads(key))


def _holds_anything(filesystem: FileSystem, directory: str) -> bool:
    """Tell whether there is a queue's file or a segment file of the shared store in a vhost's directory."""
    queues, store = f"{directory}/queues", f"{directory}/msg_store_persistent"
    if filesystem.exists(store) and any(map(parse_file_name, filesystem.listdir(store))):
        return True
    entries = filesystem.listdir(queues) if filesystem.exists(queues) else []
    return any(
        set(_names_in(filesystem, f"{queues}/{entry}") or ()) - {NAME_FILE} for entry in entries
    )


def _names_in(filesystem: FileSystem, directory: str) -> list[str] | None:
    """Give what is in a queue's directory; None for what is a file, somebody else's, which is left alone."""
    try:
        return filesystem.listdir(directory)
    except NotADirectoryError:
        return None


def _queue_names(context: StoreContext, directory: str) -> QueueNames | None:
    path = f"{directory}/{NAME_FILE}"
    if not context.filesystem.exists(path):
        return None
    names = parse_names(context.filesystem.read_file(path))
    if names is None or names.directory != directory.rpartition("/")[2]:
        return None
    return names


def _rebuild_vhost(
    context: StoreContext, vhost: str, report: RecoveryReport, *, is_exact: bool
) -> list[QueueDisk]:
    store = context.begin_vhost(vhost)
    tally = ReferenceTally()
    queues: list[QueueRecovery] = []
    root = f"{context.vhost_dir(vhost)}/queues"
    entries = context.filesystem.listdir(root) if context.filesystem.exists(root) else []
    entries = [entry for entry in entries if not entry.endswith(GONE)]
    context.adopt_vhost(store)
    for entry in entries:
        _sync_when_crowded(context)
        queue = _rebuild_queue(context, vhost, f"{root}/{entry}", tally)
        if queue is not None:
            queues.append(queue)
    recovery = store.persistent.recover(tally, context.recorded.first_segment)
    report.quarantined += recovery.quarantined
    if is_exact:
        recovery = recovery._replace(lost=recovery.gone | recovery.torn | recovery.lost)
    _drop_missing(queues, recovery)
    for queue in queues:
        _sync_when_crowded(context)
        found = queue.finish()
        report.lost += queue.lost
        report.dropped += queue.dropped
        context.keep_recovered(queue.queue, found)
        # Not made: the file with its name is damaged.
        directory, is_named = queue.queue.directory, queue.queue.is_made
        report.add(directory.rpartition("/")[2], found, is_named=is_named)
    return [queue.queue for queue in queues]


def _sync_when_crowded(context: StoreContext) -> None:
    """Sync when many files wait for it: they stay open until then, and a start must not run out of descriptors."""
    if context.cache.dirty_count > context.options.open_files:
        context.sync()


def _rebuild_queue(
    context: StoreContext, vhost: str, directory: str, tally: ReferenceTally
) -> QueueRecovery | None:
    """Walk over one queue's index. A directory that holds neither a name nor an index is removed: None."""
    names = _queue_names(context, directory)
    files = _names_in(context.filesystem, directory)
    if files is None:
        return None
    if names is None and not any(name.endswith((".qi", ".qs", ".idx", ".jif")) for name in files):
        context.remove_tree(directory, is_synced=False)
        return None
    queue = context.queue_at(names or QueueNames(vhost, ""), directory)
    # What a process that was killed has removed may not be gone durably: messages that were acked would be there again.
    context.cache.dir_changed(directory)
    if names is not None:
        queue.mark_made()
        # It was found, and nobody writes it again: of a process that was killed it may not be durable.
        path = f"{directory}/{NAME_FILE}"
        context.cache.store_written(path, open_file(context.filesystem, path))
    from burrowmq.storage.queue.recovery import QueueRecovery  # noqa: PLC0415 - a clean start does without

    recovering = QueueRecovery(queue, files, context.observer)
    recovering.take_in(tally)
    return recovering


def _drop_missing(queues: list[QueueRecovery], recovery: StoreRecovery) -> None:
    """Remove the entries whose message the shared store does not have."""
    missing = recovery.gone | recovery.torn | recovery.lost
    if not missing:
        return
    for queue in queues:
        queue.drop_missing(missing, recovery.lost)
