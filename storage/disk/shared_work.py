"""What is left to do of a commit in the vhosts' shared stores: messages to append, references to add and to drop.

State owned: that work, by vhost; there is none between two commits. Called by the writer in three steps: `append` and
`add_refs` before the queues' entries are written, `drop_refs` after the acks are in memory. Each step removes what it
has done from the work, so that it may be tried again when the disk was full. A message that goes to several queues in
one commit is appended once, and has a reference for each of them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import field
from operator import attrgetter
from typing import Final

from burrowmq.records import dataclass
from burrowmq.storage.directory.context import StoreContext
from burrowmq.storage.shared.vhost_store import forget_handles
from burrowmq.storage.types import StoredMessage

_RAW = attrgetter("raw")
# A content header's payload without its properties: class, weight, body size, flags.
_BARE_HEADER: Final = 14


@dataclass(slots=True)
class _VhostWork:
    """The work in one vhost's shared stores."""

    fresh: list[StoredMessage] = field(default_factory=list)
    repeated: list[StoredMessage] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)


class SharedWork:
    """The work in all vhosts' shared stores."""

    def __init__(self, context: StoreContext) -> None:
        self._context = context
        self._work: dict[str, _VhostWork] = {}

    def vhosts(self) -> list[str]:
        """The vhosts that have work."""
        return list(self._work)

    def begin(self) -> None:
        """Nothing is chosen yet: where that found no room (the index, a descriptor) it is done from the start again."""
        for work in self._work.values():
            forget_handles(work.fresh)
            work.fresh, work.repeated = [], []

    def share(self, vhost: str, messages: Sequence[StoredMessage]) -> None:
        """Choose the messages of a run that go to the shared store: those with a large body, or large properties."""
        below = self._context.options.embed_below
        if max(map(len, map(_RAW, messages))) < below:
            return
        shared = [message for message in messages if _is_shared(message, below)]
        if shared:
            work = self._of(vhost)
            self._context.vhost(vhost).choose(shared, work.fresh, work.repeated)

    def dropped(self, vhost: str) -> list[int]:
        """Give the list of handles that lose a reference; the caller adds to it."""
        return self._of(vhost).dropped

    def _of(self, vhost: str) -> _VhostWork:
        work = self._work.get(vhost)
        if work is None:
            work = self._work[vhost] = _VhostWork()
        return work

    def append(self, vhost: str) -> None:
        """Append the messages that are new; each gets its handle. Raises WriteFailed or SyncFailed."""
        work = self._work[vhost]
        if work.fresh:
            self._context.reserve_segments()
            self._context.vhost(vhost).append(work.fresh)
            work.fresh = []

    def add_refs(self, vhost: str) -> None:
        """Add a reference to what is in the store already. Raises DiskFull: the rest is for the next call."""
        work = self._work[vhost]
        repeated, work.repeated = work.repeated, []
        self._context.vhost(vhost).add_refs(repeated)

    def forget(self, vhost: str) -> None:
        """A vhost is deleted: its work must not reach the stores of a vhost of the same name that is made next.

        This comes before anything of the commit is shared, so that the work is only the references of deleted queues.
        """
        self._work.pop(vhost, None)

    def drop_refs(self) -> None:
        """Drop a reference for each message that was acked or deleted, in all vhosts. No work is left then.

        Raises DiskFull: the rest is for the next call.
        """
        while self._work:
            vhost, work = next(iter(self._work.items()))
            dropped, work.dropped = work.dropped, []
            if self._context.has_vhost(vhost):
                self._context.vhost(vhost).drop_refs(dropped)
            del self._work[vhost]

    def rename(self, vhost: str, renames: Mapping[int, int]) -> None:
        """Messages of a vhost have other handles: old to new."""
        work = self._work.get(vhost)
        if work is not None:
            work.dropped[:] = [renames.get(handle, handle) for handle in work.dropped]


def _is_shared(message: StoredMessage, below: int) -> bool:
    """Tell whether the body, or the body and its encoded properties, reach `queue_index_embed_msgs_below`."""
    if message.size >= below:
        return True
    properties = int.from_bytes(message.raw[3:7], "big") - _BARE_HEADER
    return message.size + properties >= below
