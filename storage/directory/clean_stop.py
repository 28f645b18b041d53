"""What a clean stop leaves for the next start: the terms, written here and taken here.

The terms hold the counts of each durable queue, with a row for every segment of its index, and a snapshot of the tables
of each vhost's persistent store. With them a start needs to look at no message. They are written last, when everything
that they speak of is durable.

State: none. `save` is called by the disk thread when it ends, `restore` by recovery. Invariants: a start without terms
finds the same, only later; terms that do not agree with the files are not used.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from burrowmq.records import NamedTuple
from burrowmq.storage.directory.context import VHOST_NAME_FILE, StoreContext
from burrowmq.storage.directory.terms import (
    TERMS_FILE,
    dump_json,
    load_json,
    replace_file,
    write_terms,
)
from burrowmq.storage.errors import WriteFailed
from burrowmq.storage.files.cache import write_error
from burrowmq.storage.names import NAME_FILE, QueueNames
from burrowmq.storage.queue.disk import QueueDisk
from burrowmq.storage.queue.live_count import count_persistent
from burrowmq.storage.queue.places import mask_of
from burrowmq.storage.queue.segment import Segment, SegmentState
from burrowmq.storage.queue.versions import file_names
from burrowmq.storage.shared.vhost_store import VhostStore
from burrowmq.storage.types import JsonValue, RecoveredQueue, RecoveryReport

# Of a segment's row in the terms; the bit sets follow where there are any.
_FIXED_FIELDS = 13
# In a queue's row.
_LEVEL_AT, _MAY_EXPIRE_AT, _DIRECTORY_AT = 11, 12, 13


def save(
    context: StoreContext,
    queues: list[tuple[QueueDisk, int, int]],
) -> None:
    """Write the terms and the mark of a clean stop; `queues` has (queue, next_seq, next_deliver_seq) of the open ones.

    All acks are in the files by then. Recovered queues that nobody opened are kept as they are. Raises StorageError;
    the stop is then not a clean one. May be called again, when there was no room.
    """
    rows: list[JsonValue] = []
    unclaimed = [
        (queue, found.next_seq, found.next_deliver_seq)
        for queue, found in list(context.recovered.values())
    ]
    _empty_journals(context, [queue for queue, _, _ in [*queues, *unclaimed]])
    for queue, next_seq, next_deliver_seq in [*queues, *unclaimed]:
        if context.cache.is_crowded:
            context.sync()
        is_known = _is_known(queue)
        if queue.durable and is_known and not queue.is_made and queue.index.numbers:
            queue.make()  # the file that names it was damaged
        if queue.durable and (queue.is_made or not is_known):
            rows.append(_queue_row(context, queue, next_seq, next_deliver_seq))
        elif not queue.durable:
            _drop_all(context, queue)
    for store in context.vhosts():
        store.finish_refs()
        store.persistent.close()
        store.transient.close()
    context.sync()
    if context.cache.has_outlived:  # some waited for that
        context.cache.sweep()
        context.sync()
    vhosts = context.vhosts()
    # The key "version_1" says that the rows of segments have their version.
    text: JsonValue = {"version_1": [], "vhosts": [[one.vhost] for one in vhosts], "queues": rows}
    parts = [dump_json(text)]
    parts += [store.persistent.snapshot_terms() for store in vhosts]
    # Without terms the next start counts the references, and looks for files of before a conversion.
    if not context.is_miscounted and not context.cache.has_outlived:
        try:
            write_terms(context.filesystem, context.data_dir, parts)
        except OSError as error:
            raise write_error(f"{context.data_dir}/{TERMS_FILE}", error) from error
    for store in vhosts:
        store.persistent.close_index()
        store.transient.close_index()


def _empty_journals(context: StoreContext, queues: list[QueueDisk]) -> None:
    """Move what is only in journals to the segment files, and sync, until no journal is left."""
    refused: set[QueueDisk] = set()
    waiting = [queue for queue in queues if queue.durable and queue.has_journal]
    while waiting:
        for queue in waiting:
            queue.flush_journals()
        context.sync()
        for queue in waiting:
            try:
                queue.after_sync()
            except WriteFailed:  # a journal that cannot be removed goes after another sync
                if queue in refused:
                    raise
                refused.add(queue)
        waiting = [queue for queue in waiting if queue.has_journal]


def _queue_row(
    context: StoreContext, queue: QueueDisk, next_seq: int, next_deliver_seq: int
) -> list[JsonValue]:
    """Look at a queue's index once more: drop its transient messages, count the others, and give its row."""
    dropped: list[int] = []
    live = count_persistent(queue, dropped)
    if dropped:
        context.vhost(queue.vhost).drop_refs(dropped)
    queue.keep_up(is_idle=True)
    numbers = queue.index.numbers
    if numbers:
        tail = queue.index.segments[numbers[-1]]
        next_seq = max(next_seq, numbers[-1] * queue.index.entry_count + tail.used)
    segments: list[JsonValue] = [_segment_row(segment) for segment in queue.index]
    place: list[JsonValue] = [] if _is_known(queue) else [_directory_of(queue)]
    return [
        queue.names.vhost,
        queue.names.name,
        live.first_seq,
        next_seq,
        next_deliver_seq,
        live.count,
        live.bytes,
        live.count,  # the persistent ones: all of them
        live.bytes,
        segments,
        queue.journal_mark,
        queue.names.level,
        live.may_expire,
        *place,
    ]


def _is_known(queue: QueueDisk) -> bool:
    """Tell whether anybody knows what a queue is called: its own file is damaged, and nobody opened it, where not."""
    return queue.names.directory == _directory_of(queue)


def _directory_of(queue: QueueDisk) -> str:
    return queue.directory.rpartition("/")[2]


def _drop_all(context: StoreContext, queue: QueueDisk) -> None:
    """A queue that is not durable ends with the node: drop its references, once, as `save` may be called again."""
    handles = queue.all_handles()
    if queue.unread:
        context.note_miscounted()
    queue.forget()
    if handles:
        context.vhost(queue.vhost).drop_refs(handles)


class SegmentFiles(NamedTuple):
    """What the terms say of a segment: its files, the one with its index first, and which places are live."""

    number: int
    live: int
    names: list[str]
    low: int
    high: int
    live_bits: int | None

    @property
    def live_mask(self) -> int:
        """The bits of the live places."""
        if self.live_bits is None:
            return mask_of(self.low, self.high - self.low)
        return self.live_bits


def files_in(parts: list[bytes]) -> Iterator[tuple[str, str, list[SegmentFiles]]]:
    """Give the vhost and the name of the directory of each queue of the terms, with the files that it had at the stop.

    Those of a store of format 1 have levels among their names, as their directories have: `takeover`.
    """
    for row in _read(parts).get("queues", []):
        yield str(row[0]), _directory_in(row), list(_segments_in(row))


def restore(context: StoreContext, parts: list[bytes], report: RecoveryReport) -> bool:
    """Take the terms of a clean stop; False when a shared store or a queue's directory does not agree with them."""
    terms = _read(parts)
    if not terms:
        return False  # looked at as after a crash
    unnamed = _look_for_files(context, terms["queues"])
    if unnamed is None:
        return False
    for (vhost,), snapshot in zip(terms["vhosts"], parts[1:], strict=True):
        store = context.begin_vhost(str(vhost))
        if not store.persistent.open_clean(snapshot):
            return False
        _name_again(context, store)
        context.adopt_vhost(store)
    for row in terms["queues"]:
        names = _names_in(row)
        counts = cast("tuple[int, int, int, int, int, int, int]", row[2:9])
        # Rows of earlier releases do not say it.
        may_expire = len(row) <= _MAY_EXPIRE_AT or row[_MAY_EXPIRE_AT] is not False
        found = RecoveredQueue(names, *counts, may_expire=may_expire)
        context.vhost(names.vhost)
        queue = context.queue_at(names, _path_in(context, row))
        if queue.directory not in unnamed:
            queue.mark_made()
        for fields in cast("list[list[int | str]]", row[9]):
            queue.adopt(_state_in(fields), version=int(fields[11]))
        if row[10]:
            mark = cast("int", row[10])
            queue.resume_journals(mark, mark)
        context.keep_recovered(queue, found)
        report.add(_directory_in(row), found, is_named=_is_known(queue))
    return True


def _name_again(context: StoreContext, store: VhostStore) -> None:
    """Write the file that names a vhost where it is missing: the next damage may be to what else tells it."""
    path = f"{store.directory}/{VHOST_NAME_FILE}"
    if context.filesystem.exists(store.directory) and not context.filesystem.exists(path):
        replace_file(context.filesystem, path, store.vhost.encode())


def _read(parts: list[bytes]) -> dict[str, list[list[object]]]:
    """Give the text of the terms; an empty one for those of a release that knew version 2 only."""
    terms = cast("dict[str, list[list[object]]]", load_json(parts[0]))
    return terms if "version_1" in terms else {}


def _names_in(row: list[object]) -> QueueNames:
    """Give whose a queue's row is."""
    level = cast("int", row[_LEVEL_AT]) if len(row) > _LEVEL_AT else 0
    return QueueNames(str(row[0]), str(row[1]), level)


def _directory_in(row: list[object]) -> str:
    """Give the name of the directory that a queue's row is about."""
    return str(row[_DIRECTORY_AT]) if len(row) > _DIRECTORY_AT else _names_in(row).directory


def _path_in(context: StoreContext, row: list[object]) -> str:
    return f"{context.vhost_dir(str(row[0]))}/queues/{_directory_in(row)}"


def _look_for_files(context: StoreContext, rows: list[list[object]]) -> set[str] | None:
    """Give the queues' directories that lack a whole name file; None when the file of a segment is missing.

    Missing files are reported. They are looked for here because a later write to one would end the store.
    """
    unnamed: set[str] = set()
    is_whole = True
    for row in rows:
        directory = _path_in(context, row)
        try:
            present = set(context.filesystem.listdir(directory))
        except FileNotFoundError:
            present = set()
        if NAME_FILE not in present or len(row) > _DIRECTORY_AT:
            unnamed.add(directory)
        for segment in _segments_in(row):
            for name in segment.names:
                if name not in present:
                    reason = "missing since the clean stop"
                    context.observer.record_lost(f"{directory}/{name}", segment.number, reason)
                    is_whole = False
    return unnamed if is_whole else None


def _segments_in(row: list[object]) -> Iterator[SegmentFiles]:
    """Give what a queue's row says of its segments."""
    for fields in cast("list[list[int | str]]", row[9]):
        state, version = _state_in(fields), int(fields[11])
        names = file_names(version, state.number, state.generation, state.store_end)
        yield SegmentFiles(state.number, state.live, names, state.low, state.high, state.live_bits)


def _segment_row(segment: Segment) -> list[JsonValue]:
    state = segment.state
    bits: list[JsonValue] = []
    if state.live_bits is not None:
        bits = [f"{state.live_bits:x}", f"{state.acked_bits:x}"]
    return [*state[:11], segment.files.version, f"{state.acked_in_file:x}", *bits]


def _state_in(row: list[int | str]) -> SegmentState:
    """Give what a segment's row says, but for the version of its files."""
    numbers = [int(value) for value in row[:11]]
    bits: list[int | None] = [int(str(value), 16) for value in row[12:]]
    if len(row) == _FIXED_FIELDS:
        bits += [None, 0]
    return SegmentState._make([*numbers, *bits])
