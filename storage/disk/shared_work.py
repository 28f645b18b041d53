"""What one commit still has to do in the vhosts' shared stores: messages to append, references to add and to drop.

State owned: that work, by vhost; empty between commits. Called by the writer in three steps of a commit, each of which
takes off what it has done, so that it may be tried again when the disk was full: `append` and `add_refs` before the
queues' entries are written, `drop_refs` after the acks are in memory. A message that several queues of a commit get is
appended once and referred to for each.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from operator import attrgetter
from typing import Final

from burrowmq.storage.directory.context import StoreContext
from burrowmq.storage.types import StoredMessage

_RAW = attrgetter("raw")
# A content header's payload without its properties: class, weight, body size, flags.
_BARE_HEADER: Final = 14


@dataclass(slots=True)
class _VhostWork:
    """That of one vhost."""

    fresh: list[StoredMessage] = field(default_factory=list)
    repeated: list[StoredMessage] = field(default_factory=list)
    dropped: list[int] = field(default_factory=list)


class SharedWork:
    """That of all vhosts."""

    def __init__(self, context: StoreContext) -> None:
        self._context = context
        self._work: dict[str, _VhostWork] = {}

    def vhosts(self) -> list[str]:
        """The vhosts that have some."""
        return list(self._work)

    def share(self, vhost: str, messages: Sequence[StoredMessage]) -> None:
        """Choose what of a run goes to the shared store: bodies, or bodies with properties, that are large."""
        below = self._context.options.embed_below
        if max(map(len, map(_RAW, messages))) < below:
            return
        shared = [message for message in messages if _is_shared(message, below)]
        if shared:
            work = self._of(vhost)
            self._context.vhost(vhost).choose(shared, work.fresh, work.repeated)

    def dropped(self, vhost: str) -> list[int]:
        """The handles that lose a reference, to be added to."""
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
        """One more reference for those that are there."""
        work = self._work[vhost]
        if work.repeated:
            self._context.vhost(vhost).add_refs(work.repeated)
            work.repeated = []

    def forget(self, vhost: str) -> None:
        """A vhost's stores go away: what is to be done there must not reach the stores of one that is made again.

        Before anything of the commit was shared: that is all references of queues that went with it.
        """
        self._work.pop(vhost, None)

    def drop_refs(self) -> None:
        """One reference less for what was acked or deleted, in all vhosts. The commit has no more work then."""
        while self._work:
            vhost, work = self._work.popitem()
            if work.dropped and self._context.has_vhost(vhost):
                self._context.vhost(vhost).drop_refs(work.dropped)


def _is_shared(message: StoredMessage, below: int) -> bool:
    """The embed rule: the body, or the body and its encoded properties, reach the threshold."""
    if message.size >= below:
        return True
    properties = int.from_bytes(message.raw[3:7], "big") - _BARE_HEADER
    return message.size + properties >= below
