"""The store's surface for one queue, kept in a dict: what the broker's queue needs of storage.engine, at once.

`MemoryEngine(answers_later=True)` answers reads only when `answer_reads` is called, as the reader thread would.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from burrowmq.protocol.codec import Message, body_bytes, load_message
from burrowmq.protocol.constants import ON_DISK
from burrowmq.storage.types import ALL, EMBEDDED_ONLY

Loaded = tuple[int, Message, int]


class MemoryLog:
    """One queue's log."""

    def __init__(
        self, engine: MemoryEngine, names: tuple[str, str] = ("/", "q"), *, durable: bool = False
    ) -> None:
        self._engine = engine
        self._names = names
        self._durable = durable
        self.entries: dict[int, tuple[Message, int]] = {}
        self.queue_id = 1 + len(engine.logs)
        self.recovered = None
        self.memory_bytes = 0
        self.is_deleted = False
        self.next_deliver_seq = 0
        self.end_seq = 0
        self.version = 2
        self.written_count = 0
        self.loaded_count = 0

    @property
    def next_seq(self) -> int:
        """The id after the highest that was stored."""
        return self.end_seq

    def append(
        self, first_seq: int, messages: Sequence[Message], expiries: Sequence[int] | None, size: int
    ) -> None:
        """Store a run."""
        assert size >= sum(m.size for m in messages)
        for index, message in enumerate(messages):
            assert first_seq + index not in self.entries
            self.entries[first_seq + index] = (message, expiries[index] if expiries else 0)
        self.end_seq = max(self.end_seq, first_seq + len(messages))
        self.written_count += len(messages)

    def ack(
        self,
        first_seq: int,
        last_seq: int,
        messages: Sequence[Message] | None = None,
        size: int = 0,
    ) -> None:
        """Forget a range."""
        if messages is not None:
            assert len(messages) == last_seq - first_seq + 1
        assert size == body_bytes(messages or ())
        for seq in range(first_seq, last_seq + 1):
            self.entries.pop(seq, None)

    def ack_many(self, seqs: Sequence[int]) -> None:
        """Forget single ones."""
        for seq in seqs:
            del self.entries[seq]

    def set_delivered(self, next_deliver_seq: int) -> None:
        """Remember."""
        self.next_deliver_seq = next_deliver_seq

    def set_version(self, version: int) -> None:
        """Remember."""
        self.version = version

    def delete(self) -> None:
        """Forget all."""
        self.is_deleted = True
        self.entries.clear()
        if self._durable:
            self._engine.deleting.add(self._names)

    def read(
        self,
        first_seq: int,
        max_count: int,
        max_bytes: int,
        on_read: Callable[[list[Loaded], int], None],
        wanted: int = ALL,
    ) -> tuple[list[Loaded], int] | None:
        """Entries from first_seq on; bodies from `large_from` bytes on are those of the shared store."""

        def answer() -> tuple[list[Loaded], int]:
            loaded: list[Loaded] = []
            size = left_out = 0
            for seq in sorted(seq for seq in self.entries if seq >= first_seq):
                if len(loaded) + left_out >= max_count or (loaded and size >= max_bytes):
                    return loaded, seq
                message, due = self.entries[seq]
                if message.size >= self._engine.large_from:
                    if wanted == EMBEDDED_ONLY:
                        left_out += 1
                        continue
                    if len(loaded) >= wanted:
                        return loaded, seq
                copy = load_message(
                    message.address, message.raw, message.size, message.flags | ON_DISK, -1
                )
                loaded.append((seq, copy, due))
                size += message.size
            return loaded, self.end_seq

        def counted() -> tuple[list[Loaded], int]:
            found = answer()
            self.loaded_count += len(found[0])
            return found

        if not self._engine.answers_later:
            return counted()
        self._engine.reads.append(lambda: on_read(*counted()))
        return None


class MemoryEngine:
    """Hands out logs."""

    def __init__(self, *, answers_later: bool = False) -> None:
        self.answers_later = answers_later
        self.large_from = 1 << 62
        self.reads: list[Callable[[], None]] = []
        self.logs: dict[str, MemoryLog] = {}
        self.deleting: set[tuple[str, str]] = set()  # by virtual host and name, in this batch
        self.owed: dict[tuple[str, str], str] = {}  # by source: who is owed its dead letters
        self.epoch = 1
        self.sync_required = 0
        self.acks_required: list[set[int]] = []
        self.moves = 0
        self.failure: str | None = None
        self.is_hungry = False

    def wants_commit(self) -> bool:
        """As the test says."""
        return self.is_hungry

    def open_queue(
        self, vhost: str, name: str, *, durable: bool, version: int = 2, level: int = 0
    ) -> MemoryLog:
        """A new log, or the one of that name; levels above 0 have their number behind it, other vhosts stand before."""
        key = f"{name}-{level}" if level else name
        if vhost != "/":
            key = f"{vhost}/{key}"
        if key not in self.logs or self.logs[key].is_deleted:
            self.logs[key] = MemoryLog(self, (vhost, name), durable=durable)
        return self.logs[key]

    def is_deleting(self, vhost: str, name: str) -> bool:
        """Whether the batch being collected deletes a durable queue of this name."""
        return (vhost, name) in self.deleting

    def is_stored(self, vhost: str, name: str, level: int = 0) -> bool:
        """There was no start."""
        return False

    def kept_level(self, vhost: str, name: str) -> int:
        """There was no start."""
        return -1

    def owed_copies(self, vhost: str, name: str) -> str:
        """As the test says."""
        return self.owed.get((vhost, name), "")

    def require_sync(self, count: int = 1) -> None:
        """Count who waits."""
        self.sync_required += 1

    def require_acks(self, queue_ids: Iterable[int]) -> None:
        """Remember whose."""
        self.acks_required.append(set(queue_ids))

    def note_passed_on(self, *_: str) -> None:
        """What died when it arrived went on to another queue: nothing is refused here."""

    def note_way(self, *_: str) -> None:
        """Messages went to a queue that is not durable."""

    def order_acks(self, *_: str) -> None:
        """Count the moves."""
        self.moves += 1

    def answer_reads(self) -> None:
        """Answer what was asked, in order."""
        while self.reads:
            self.reads.pop(0)()
