"""Opening a data directory, after a clean stop or any other, and stopping cleanly.

After a clean stop the terms say everything and no message is looked at. Otherwise the queue indexes are the truth: each
is walked once, one segment in memory at a time; the references they hold are tallied and given to the shared stores;
what has no body any more is taken out of the indexes again.

State: none. Called by the engine before the disk thread starts and by the disk thread when it ends.

Invariants: the mark of a clean stop is durably gone before anything is written; transient messages never survive; after
an unclean start no old file is appended to: queues go on in a new index segment, shared stores in a new segment whose
number was never used. Source: storage of a queue in docs/formats; rabbit_classic_queue_index_v2 recover.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from storage.backup import discard_staging
from storage.definition_store import DefinitionStore, SqliteDefinitionStore
from storage.errors import DiskFull, StoreRefused, SyncFailed
from storage.file_cache import FileCache, as_storage_errors, write_error
from storage.filesystem import FileSystem
from storage.queue_disk import QueueDisk
from storage.queue_journal import JournalLimits
from storage.queue_names import NAME_FILE, parse_names
from storage.queue_scan import QueueScan, drop_handles, scan_queue
from storage.queue_segment import Segment
from storage.queue_upkeep import settle
from storage.references import ReferenceTally
from storage.segment_recovery import StoreRecovery
from storage.space import give_up_ballast
from storage.store_context import VHOST_NAME_FILE, StoreContext, directory_name, queue_files
from storage.swap import finish_swap
from storage.terms import (
    TERMS_FILE,
    dump_json,
    load_json,
    recorded_store,
    reserve_segments,
    take_terms,
    write_terms,
)
from storage.types import (
    JsonValue,
    LoadMessage,
    RecoveredQueue,
    RecoveryReport,
    StoreObserver,
    StoreOptions,
)
from storage.vhost_store import VhostStore

DEFINITIONS_FILE = "definitions.db"
DefinitionsAt = Callable[[str], DefinitionStore]
# Of a segment's row in the terms; the bit sets follow where there are any.
_FIXED_FIELDS = 13


def open_store(
    data_dir: str,
    filesystem: FileSystem,
    options: StoreOptions,
    observer: StoreObserver,
    load_message: LoadMessage,
    definitions_at: DefinitionsAt | None,
) -> tuple[StoreContext, RecoveryReport]:
    """Open what is in a data directory.

    Raises StoreRefused, and has then written nothing; StorageError when a file cannot be read or written: what cannot
    be read is never taken for damaged or missing, so the next start finds all that this one should have found.
    """
    rest = (data_dir, filesystem, options, observer, load_message, definitions_at)
    try:
        with as_storage_errors():
            return _open_store(*rest)
    except DiskFull:
        if not give_up_ballast(filesystem, data_dir):
            raise
    with as_storage_errors():
        return _open_store(
            *rest
        )  # whatever the first attempt has done, a start may be cut off anywhere


def _has_vhosts(filesystem: FileSystem, data_dir: str) -> bool:
    directory = f"{data_dir}/vhosts"
    return filesystem.exists(directory) and bool(filesystem.listdir(directory))


def _open_store(
    data_dir: str,
    filesystem: FileSystem,
    options: StoreOptions,
    observer: StoreObserver,
    load_message: LoadMessage,
    definitions_at: DefinitionsAt | None,
) -> tuple[StoreContext, RecoveryReport]:
    filesystem.keep_spare()
    finish_swap(filesystem, data_dir)
    recorded = recorded_store(filesystem, data_dir, options)
    path = f"{data_dir}/{DEFINITIONS_FILE}"
    if definitions_at is None and _has_vhosts(filesystem, data_dir) and not filesystem.exists(path):
        # Without it nobody would open the queues, and they would go.
        raise StoreRefused(f"{data_dir} has a store but no {DEFINITIONS_FILE}: restore that file")
    discard_staging(filesystem, data_dir)  # of a backup that a kill interrupted
    parts = take_terms(filesystem, data_dir)
    definitions = (definitions_at or SqliteDefinitionStore)(f"{data_dir}/{DEFINITIONS_FILE}")

    def new_context() -> StoreContext:
        return StoreContext(
            data_dir,
            filesystem,
            options,
            observer,
            load_message,
            recorded,
            definitions,
            FileCache(
                filesystem,
                queue_files(options.open_files),
                options.cache_size,
                options.is_checked,
            ),
            journals=JournalLimits(
                options.journal_entries,
                run_bytes=options.journal_run_bytes,
                direct_bytes=options.journal_direct_bytes,
            ),
        )

    report = RecoveryReport(clean=False)
    context = new_context()
    if parts is not None and _restore(context, parts, report):
        report.clean = True
    else:
        report, context = RecoveryReport(), new_context()
        if filesystem.exists(f"{data_dir}/vhosts"):
            recorded.first_segment = recorded.ceiling
            reserve_segments(filesystem, recorded)
            _rebuild(context, report, is_exact=parts is not None)
    report.definitions = definitions.load()
    if not (report.definitions or report.queues):
        report.clean = True  # a new directory: no stop came before
    report.messages = sum(queue.count for queue in report.queues.values())
    return context, report


# -- after a clean stop -------------------------------------------------------------------------------------------


def _restore(context: StoreContext, parts: list[bytes], report: RecoveryReport) -> bool:
    """Take the terms of a clean stop; False when a shared store does not agree with them."""
    terms = cast("dict[str, list[list[object]]]", load_json(parts[0]))
    if "version_1" not in terms:
        return False  # of a release that knew version 2 only: looked at as after a crash
    for (vhost,), snapshot in zip(terms["vhosts"], parts[1:], strict=True):
        store = _begin_vhost(context, str(vhost))
        if not store.persistent.open_clean(snapshot):
            return False
        context.adopt_vhost(store)
    for row in terms["queues"]:
        found = RecoveredQueue(*cast("tuple[str, str, int, int, int, int, int, int, int]", row[:9]))
        names = (found.vhost, found.name)
        queue = context.new_queue(names, durable=True)
        queue.is_made = True
        for fields in cast("list[list[int | str]]", row[9]):
            queue.index.adopt(_segment_from(fields))
        if row[10]:
            journal = queue.files_v1().journal
            journal.next_number = journal.durable = cast("int", row[10])
        context.keep_recovered(queue, found)
        report.queues[names] = found
    return True


def _begin_vhost(context: StoreContext, vhost: str) -> VhostStore:
    """Wipe what is transient and build a vhost's stores."""
    context.filesystem.rmtree(f"{context.vhost_dir(vhost)}/transient")
    return context.build_vhost(vhost)


def _segment_row(segment: Segment) -> list[JsonValue]:
    bits: list[JsonValue] = []
    if segment.live_bits is not None:
        bits = [f"{segment.live_bits:x}", f"{segment.acked_bits:x}"]
    return [
        segment.number,
        segment.generation,
        segment.epoch,
        segment.store_end,
        segment.synced_end,
        segment.used,
        segment.shared,
        segment.live,
        segment.start,
        segment.low,
        segment.high,
        segment.version,
        f"{segment.written:x}",
        *bits,
    ]


def _segment_from(row: list[int | str]) -> Segment:
    fields = [int(value) for value in row[:12]]
    segment = Segment(fields[0], fields[11])
    segment.generation, segment.epoch, segment.store_end, segment.synced_end = fields[1:5]
    segment.used, segment.shared, segment.live = fields[5:8]
    segment.start, segment.low, segment.high = fields[8:11]
    segment.written = int(str(row[12]), 16)
    if len(row) > _FIXED_FIELDS:
        segment.live_bits, segment.acked_bits = int(str(row[13]), 16), int(str(row[14]), 16)
    return segment


def save_clean(
    context: StoreContext,
    queues: list[tuple[QueueDisk, int, int]],
) -> None:
    """Stop cleanly: (queue, next_seq, next_deliver_seq) of every open one; all acks are in the files.

    Recovered queues that nobody opened are kept as they are. Raises StorageError; the stop is then not clean.
    """
    rows: list[JsonValue] = []
    unclaimed = [
        (queue, found.next_seq, found.next_deliver_seq)
        for queue, found in context.recovered.values()
    ]
    _empty_journals(context, [queue for queue, _, _ in [*queues, *unclaimed]])
    for queue, next_seq, next_deliver_seq in [*queues, *unclaimed]:
        if context.cache.is_crowded:
            _sync(context)
        if queue.durable and not queue.is_made and queue.index.numbers:
            queue.make()  # the file that names it was damaged
        if queue.durable and queue.is_made:
            rows.append(_queue_row(context, queue, next_seq, next_deliver_seq))
        elif not queue.durable:
            _drop_all(context, queue)
    for store in context.vhosts():
        store.persistent.close()
        store.transient.close()
    _sync(context)
    vhosts = context.vhosts()
    # The key "version_1" says that the rows of segments have their version.
    text: JsonValue = {"version_1": [], "vhosts": [[one.vhost] for one in vhosts], "queues": rows}
    parts = [dump_json(text)]
    parts += [store.persistent.snapshot_terms() for store in vhosts]
    if not context.is_miscounted:  # without terms the next start counts the references
        try:
            write_terms(context.filesystem, context.data_dir, parts)
        except OSError as error:
            raise write_error(f"{context.data_dir}/{TERMS_FILE}", error) from error
    for store in vhosts:
        store.persistent.close_index()
        store.transient.close_index()


def _empty_journals(context: StoreContext, queues: list[QueueDisk]) -> None:
    """Move what is only in journals to the segment files, until no journal is left."""
    waiting = [queue for queue in queues if queue.durable and not queue.is_settled]
    while waiting:
        for queue in waiting:
            queue.settle_now()
        _sync(context)
        for queue in waiting:
            queue.after_sync()
        waiting = [queue for queue in waiting if not queue.is_settled]


def _queue_row(
    context: StoreContext, queue: QueueDisk, next_seq: int, next_deliver_seq: int
) -> list[JsonValue]:
    """Look at a queue's index once more: transient messages end here, the rest is counted."""
    found = RecoveredQueue(queue.vhost, queue.name)
    dropped: list[int] = []
    scan = QueueScan(queue, found)
    for number in list(queue.index.numbers):
        scan.count_live(queue.index.segments[number], dropped)
    if dropped:
        context.vhost(queue.vhost).drop_refs(dropped)
    settle(queue, is_idle=True)
    numbers = queue.index.numbers
    if numbers:
        tail = queue.index.segments[numbers[-1]]
        next_seq = max(next_seq, numbers[-1] * queue.index.entry_count + tail.used)
    segments: list[JsonValue] = [_segment_row(queue.index.segments[number]) for number in numbers]
    return [
        queue.vhost,
        queue.name,
        found.first_seq,
        next_seq,
        next_deliver_seq,
        found.count,
        found.bytes,
        found.persistent_count,
        found.persistent_bytes,
        segments,
        # After the one that would be next: what went past the journals is of its time, and durable by then.
        queue.v1.journal.next_number + 1 if queue.v1 is not None else 0,
    ]


def _drop_all(context: StoreContext, queue: QueueDisk) -> None:
    """A queue that is not durable ends with the node; so do its references."""
    handles = queue.all_handles()
    if handles:
        context.vhost(queue.vhost).drop_refs(handles)


# -- after any other stop -----------------------------------------------------------------------------------------


def _rebuild(context: StoreContext, report: RecoveryReport, *, is_exact: bool) -> None:
    """Walk all indexes, then open the shared stores with the references found.

    `is_exact`: the stop was a clean one, so that no ack and no end of a file was left to a power cut: what an index
    names and a shared store has not is lost.
    """
    root = f"{context.data_dir}/vhosts"
    for entry in context.filesystem.listdir(root):
        directory = f"{root}/{entry}"
        vhost = _vhost_name(context, directory)
        if vhost is None and not _holds_anything(context.filesystem, directory):
            context.filesystem.rmtree(
                directory
            )  # an attempt to make one that did not come to its name
            continue
        if vhost is None:
            report.lost += 1
            context.observer.record_lost(directory, 0, "whose vhost this is cannot be read")
            continue
        scans = _rebuild_vhost(context, vhost, report, is_exact=is_exact)
        _sync(context)
        for scan in scans:
            scan.queue.after_sync()


def _sync(context: StoreContext) -> None:
    failed = context.cache.sync()
    if failed:
        raise SyncFailed(", ".join(failed.values()))


def _vhost_name(context: StoreContext, directory: str) -> str | None:
    """Give the name of a vhost's directory: its own note, or what its queues say."""
    filesystem = context.filesystem
    candidates: list[str] = []
    path = f"{directory}/{VHOST_NAME_FILE}"
    if filesystem.exists(path):
        candidates.append(filesystem.read_file(path).decode("utf-8", "replace"))
    if filesystem.exists(f"{directory}/queues"):
        for entry in filesystem.listdir(f"{directory}/queues"):
            names = _queue_names(context, f"{directory}/queues/{entry}")
            if names is not None:
                candidates.append(names[0])
                break
    for name in candidates:
        if context.vhost_dir(name) == directory:
            return name
    return None


def _holds_anything(filesystem: FileSystem, directory: str) -> bool:
    """Tell whether there is a queue or a segment file of the shared store in a vhost's directory."""
    return any(
        filesystem.exists(f"{directory}/{name}") and filesystem.listdir(f"{directory}/{name}")
        for name in ("queues", "msg_store_persistent")
    )


def _queue_names(context: StoreContext, directory: str) -> tuple[str, str] | None:
    path = f"{directory}/{NAME_FILE}"
    if not context.filesystem.exists(path):
        return None
    names = parse_names(context.filesystem.read_file(path))
    if names is None or directory_name(*names) != directory.rpartition("/")[2]:
        return None
    return names


def _rebuild_vhost(
    context: StoreContext, vhost: str, report: RecoveryReport, *, is_exact: bool
) -> list[QueueScan]:
    store = _begin_vhost(context, vhost)
    tally = ReferenceTally()
    scans: list[QueueScan] = []
    root = f"{context.vhost_dir(vhost)}/queues"
    entries = context.filesystem.listdir(root) if context.filesystem.exists(root) else []
    context.adopt_vhost(store)
    for entry in entries:
        if context.cache.dirty_count > context.options.open_files:
            _sync(context)
        scan = _rebuild_queue(context, vhost, f"{root}/{entry}", tally)
        if scan is not None:
            scans.append(scan)
    recovery = store.persistent.recover(tally, context.recorded.first_segment)
    report.quarantined += recovery.quarantined
    if is_exact:
        recovery = recovery._replace(lost=recovery.gone | recovery.torn | recovery.lost)
    _drop_missing(context, scans, recovery)
    for scan in scans:
        scan.finish()
        report.lost += scan.lost
        report.dropped += scan.dropped
        context.keep_recovered(scan.queue, scan.found)
        if scan.is_named:
            report.queues[(vhost, scan.queue.name)] = scan.found
    return scans


def _rebuild_queue(
    context: StoreContext, vhost: str, directory: str, tally: ReferenceTally
) -> QueueScan | None:
    """Walk one queue's index; a directory without one goes."""
    names = _queue_names(context, directory)
    files = context.filesystem.listdir(directory)
    if names is None and not any(name.endswith((".qi", ".qs", ".idx", ".jif")) for name in files):
        context.filesystem.rmtree(directory)
        return None
    queue = context.queue_at(names or (vhost, ""), directory)
    queue.is_made = names is not None
    found = RecoveredQueue(queue.vhost, queue.name)
    scan = QueueScan(queue, found)
    scan.is_named = names is not None
    scan_queue(context.filesystem, scan, files, tally, context.observer)
    return scan


def _drop_missing(context: StoreContext, scans: list[QueueScan], recovery: StoreRecovery) -> None:
    """Take the entries out whose message the shared store has not."""
    missing = recovery.gone | recovery.torn | recovery.lost
    if not missing:
        return
    for scan in scans:
        drop_handles(scan, missing, recovery.lost, context.observer)
