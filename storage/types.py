"""The values that cross the storage boundary.

Nothing here touches a file. `StoreOptions` is the part of the node's configuration that the store needs;
`StoredMessage` is what the store asks of a message (it never builds one: the loader given to the engine does);
`RecoveredQueue` and `RecoveryReport` are what a start hands to the broker; `StoreObserver` is the vocabulary of
events worth a log line. Who uses it: every storage module, and the broker through `storage.engine`.

Sequence numbers (`seq`) are a queue's own publish numbers. They only rise and are never used twice on disk, not
even after a crash; after an unclean start they jump to the next index segment, so a queue's range may have holes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import field
from typing import Protocol, TypeAlias

from burrowmq.records import dataclass
from burrowmq.storage.names import QueueNames

# The two message flags that the store reads or sets. They lie above the sixteen property bits of the content header;
# the codec and the broker use the same values.
PERSISTENT = 1 << 16
ON_DISK = 1 << 20

NO_HANDLE = -1  # the message has no copy in the shared store
NO_EXPIRY = 0

JsonValue: TypeAlias = "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] | None"


class StoredMessage(Protocol):
    """What the store reads of a message; `handle` is the only attribute that it writes."""

    address: bytes
    raw: bytes
    size: int
    flags: int
    handle: int


@dataclass(slots=True)
class CarriedMessage:
    """A message that was read back in order to be written to another place."""

    address: bytes
    raw: bytes
    size: int
    flags: int
    handle: int = NO_HANDLE


LoadMessage: TypeAlias = Callable[[bytes, bytes, int, int, int], StoredMessage]
# (seq, message, expiry_ms): a plain tuple, because a named one costs 0.3 microseconds more for each message.
LoadedMessage: TypeAlias = tuple[int, StoredMessage, int]
OnRead: TypeAlias = Callable[[list[LoadedMessage], int], None]
Post: TypeAlias = Callable[[Callable[[], None]], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class StoreOptions:
    """The store's settings.

    `segment_size_limit`, `segment_entry_count`: recorded on disk; a start with others is refused.
    `embed_below`: a message whose body, or body and properties, have so many bytes goes to the shared store.
    `cache_size`: a queue's own store is written in pieces of at most this, and read in pieces of twice that.
    `is_checked`: a message that is read from there for a consumer has its checksum verified; at a start all have.
    `store_index`: the shared stores' index, one of `storage.shared.index.NAMES`.
    `backlog_limit`: above so many bytes that are staged or in flight, publishers are paused.
    `unsynced_limit`: after so many bytes the disk thread syncs, though nobody waits for it.
    `ballast_bytes`: space that is reserved, and given up when the disk is full.
    `rewrite_above`: a queue's own store of this size is written anew when less than a quarter of it is live.
    `journal_entries`: how many entries a version 1 journal holds before it is flushed.
    `journal_run_bytes`: a run of this size goes past the journal to a segment file.
    `journal_direct_bytes`: when so many bytes went past a journal, it is flushed however few entries it has.
    `convert_slice`: how many index segments one slice of a conversion writes.
    `has_log`: small queues, and small writes to many queues, go into a commit log.
    `log_limit`: a file of the log; it grows to twice what small queues have in it, if that is more.
    `log_queue_limit`, `log_total_limit`: with more bytes than this a queue has files of its own; so has, when the
    queues in the log have more than that together, the one that is written to.
    `idle_s`: after so long without a commit the disk thread does its idle work.
    `scrub_period_s`: everything that is stored is read again within this time, 0: only when somebody asks.
    `scrub_bytes_per_s`: no faster than this.
    """

    confirm: str = "fsync"
    segment_size_limit: int = 16 * 1024 * 1024
    segment_entry_count: int = 16_384
    embed_below: int = 4096
    cache_size: int = 512 * 1024
    is_checked: bool = True
    store_index: str = "array"
    backlog_limit: int = 8 * 1024 * 1024
    unsynced_limit: int = 32 * 1024 * 1024
    open_files: int = 256
    ballast_bytes: int = 0
    rewrite_above: int = 4 * 1024 * 1024
    journal_entries: int = 32_768
    journal_run_bytes: int = 16 * 1024
    journal_direct_bytes: int = 64 * 1024 * 1024
    convert_slice: int = 32
    idle_s: float = 0.2
    scrub_period_s: float = 0.0
    scrub_bytes_per_s: int = 8 * 1024 * 1024
    has_log: bool = False
    log_limit: int = 8 * 1024 * 1024
    log_queue_limit: int = 16 * 1024
    log_total_limit: int = 16 * 1024 * 1024


@dataclass(slots=True)
class RecoveredQueue:
    """One level of a queue as a start found it: the range of its sequence numbers and what is ready in it.

    Recovery fills it in; whoever gets it changes nothing.
    """

    names: QueueNames
    first_seq: int = 0
    next_seq: int = 0
    next_deliver_seq: int = 0
    count: int = 0
    bytes: int = 0
    persistent_count: int = 0
    persistent_bytes: int = 0
    version: int = 2  # of its newest index segment; 2 when it has none
    may_expire: bool = True  # False: no message has a deadline


NO_LIMIT = 1 << 62
"""As many bytes as there are."""
ALL = 1 << 62
"""`ReadRequest.wanted`: bodies in the shared store are read like all others."""
EMBEDDED_ONLY = -1
"""`ReadRequest.wanted`: bodies in the shared store are left out, yet count towards the read's length."""


@dataclass(slots=True)
class RecoveryReport:
    """What a start found. `definitions` are (kind, key, value) rows in the order of kind and key.

    `by_directory` has every queue, by vhost and the name of its directory; `queues` those whose name could be read.
    `unnamed_vhosts` are directories with files in them that were left out: nobody knows whose they are. `removals` are
    places (vhost and directory, "" for all of the vhost) whose queue was deleted.
    """

    clean: bool = False
    definitions: list[tuple[str, str, JsonValue]] = field(default_factory=list)
    queues: dict[QueueNames, RecoveredQueue] = field(default_factory=dict)
    by_directory: dict[tuple[str, str], RecoveredQueue] = field(default_factory=dict)
    unnamed_vhosts: list[str] = field(default_factory=list)
    removals: frozenset[tuple[str, str]] = frozenset()
    messages: int = 0
    lost: int = 0
    quarantined: int = 0
    dropped: int = 0

    def add(self, directory: str, found: RecoveredQueue, *, is_named: bool = True) -> None:
        """Take in a queue that was found in a directory of this name."""
        self.by_directory[found.names.vhost, directory] = found
        if is_named:
            self.queues[found.names] = found
            self.messages += found.count

    @property
    def unnamed_count(self) -> int:
        """Queues whose name cannot be read: only their definition tells whose they are."""
        return len(self.by_directory) - len(self.queues)


@dataclass(slots=True)
class BackupJob:
    """One backup, from the request to its end. `labels` go into the manifest.

    `message_count`: live at the cut; once all is copied, those of them that are persistent, which a restore brings.
    """

    directory: str
    labels: dict[str, JsonValue] = field(default_factory=dict)
    state: str = "waiting"  # then running, and done or failed
    reason: str = ""
    queue_count: int = 0
    message_count: int = 0
    file_count: int = 0
    files_done: int = 0
    byte_count: int = 0
    bytes_done: int = 0
    linked_bytes: int = 0
    cut_ms: float = 0.0
    is_marked: bool = False
    """Whether the directory is marked as incomplete: one in which nothing could be made is not."""

    @property
    def is_over(self) -> bool:
        """Whether it has ended, well or not."""
        return self.state in ("done", "failed")

    def count_queue(self, message_count: int) -> None:
        """A queue with so many messages is in the cut."""
        self.queue_count += 1
        self.message_count += message_count

    def begin(self, file_count: int, byte_count: int) -> None:
        """The cut is taken: so much is to be copied."""
        self.file_count, self.byte_count = file_count, byte_count
        self.state = "running"

    def note_cut(self, duration_ms: float) -> None:
        """The cut, or the attempt at it, held the disk thread up for so long."""
        self.cut_ms = duration_ms

    def count_bytes(self, size: int, *, is_linked: bool) -> None:
        """So many bytes are in the backup; linked ones were only given a second name."""
        self.bytes_done += size
        if is_linked:
            self.linked_bytes += size

    def count_file(self) -> None:
        """One more file is there."""
        self.files_done += 1

    def finish(self) -> None:
        """End it well."""
        self.state = "done"

    def fail(self, reason: str) -> None:
        """End it badly."""
        self.reason, self.state = reason, "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubPass:
    """A pass over everything that is stored, ended. `unread` queues could not be read to their end."""

    began_ms: int
    ended_ms: int
    bytes: int
    found: int
    unread: int

    @property
    def is_complete(self) -> bool:
        """Whether all was read."""
        return self.unread == 0


@dataclass(frozen=True, slots=True, kw_only=True)
class ScrubStatus:
    """How far the scrubber is. `position` is where in words, `found` counts damaged messages of this pass."""

    is_running: bool = False
    is_on_demand: bool = False
    period_s: float = 0.0
    bytes_per_s: int = 0  # at which it reads now
    began_ms: int = 0
    next_ms: int = 0  # when the next pass begins, 0 when none is due
    position: str = ""
    bytes_done: int = 0
    bytes_total: int = 0
    found: int = 0
    unread: int = 0
    damaged_files: tuple[tuple[str, str], ...] = ()  # path, what is wrong
    last: ScrubPass | None = None
    last_complete: ScrubPass | None = None

    def stats(self) -> dict[str, int]:
        """Figures for metrics."""
        complete = self.last_complete
        return {
            "scrub_running": int(self.is_running),
            "scrub_bytes_done": self.bytes_done,
            "scrub_pass_bytes": self.bytes_total,
            "scrub_bytes_per_second": self.bytes_per_s,
            "scrub_unread_queues": self.unread,
            "scrub_damaged_files": len(self.damaged_files),
            "scrub_completed_at_seconds": complete.ended_ms // 1000 if complete is not None else 0,
        }


class StoreObserver(Protocol):
    """Store events worth a log line. Any thread of the store, and the loop, may call: it has to be thread-safe."""

    def segment_rolled(self, store: str, segment: int) -> None:
        """A shared store segment was sealed and another one begun."""

    def segment_deleted(self, store: str, segment: int) -> None:
        """A shared store segment held nothing any more and its file is gone."""

    def compaction_finished(
        self, store: str, segment: int, freed_bytes: int, copied_bytes: int
    ) -> None:
        """A segment was rewritten without its dead records."""

    def compaction_failed(self, store: str, reason: str) -> None:
        """A compaction was given up; what it was to copy stays as it is."""

    def record_lost(self, place: str, seq_or_handle: int, reason: str) -> None:
        """A record is damaged: a start drops its message, a read has it set aside."""

    def file_damaged(self, path: str, what: str) -> None:
        """The scrubber found damage that belongs to no message."""

    def scrub_finished(self, bytes_read: int, found: int, unread: int, duration_ms: float) -> None:
        """Everything that is stored was read again, but for so many queues that cannot be read."""

    def message_set_aside(self, vhost: str, queue: str, seq: int, name: str, reason: str) -> None:
        """A damaged message leaves its queue; its bytes are in quarantine under this name."""

    def index_unreadable(self, place: str, reason: str) -> None:
        """Messages were acknowledged whose entries cannot be read: their space comes back after the next start."""

    def recovery_finished(self, clean: bool, messages: int, lost: int, duration_ms: float) -> None:
        """The store is open."""

    def sync_failed(self, path: str, reason: str) -> None:
        """An fdatasync failed; un-synced records are being written again elsewhere."""

    def space_exhausted(self, reason: str, is_exhausted: bool) -> None:
        """The disk is full (True; which write found no room), or writable again (False)."""
