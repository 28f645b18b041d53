"""A bucket of the cluster, made, read whole, and watched from then on; read anew whenever something may be missing.

State owned: the watch, and the rows that have come while all are read. Called by `broker.replicated.agreed`.
"""

from __future__ import annotations

from typing import Final, Protocol

from burrowmq.broker.replicated.front_end import FrontEnd
from burrowmq.broker.turn.clock import Scheduler
from burrowmq.cluster.api import (
    NOT_PERMITTED,
    STREAM_NAME_TAKEN,
    Document,
    Extent,
    Refusal,
    extent_of,
    stream_state,
)
from burrowmq.cluster.bucket import Bucket, Entry, Watch
from burrowmq.cluster.wire import Delivered, encode_publish

AGAIN_S: Final = 0.5
REFUSED_AGAIN_S: Final = 5.0
"""Where the account may not: whoever runs the servers has to change that."""
SILENT_MS: Final = 4_000.0
"""A watch that says nothing for so long is made anew: it has a heartbeat each second."""


class Watcher(Protocol):
    """Who wants to know."""

    def all_read(self, found: dict[str, Entry], extent: Extent) -> None:
        """These are all rows, and markers of removed ones, that have come; `extent` is as it was when that began."""
        ...

    def seen(self, entry: Entry) -> None:
        """A row has changed since."""
        ...


class Watching:
    """That of one bucket."""

    def __init__(
        self, bucket: Bucket, front_end: FrontEnd, scheduler: Scheduler, owner: Watcher
    ) -> None:
        self._bucket = bucket
        self._front_end = front_end
        self._scheduler = scheduler
        self._owner = owner
        self._sid = 0
        self._inbox = b""
        self._number = 0
        self._name = ""
        self._extent = Extent("", 0, 0)
        self._watch: Watch | None = None
        self._found: dict[str, Entry] | None = None  # while all rows are being read
        self._heard_ms = 0.0
        self._is_begun = False  # the bucket is asked for
        self._is_counting = (
            False  # all has been read, and that is less than there was when it began
        )
        self.is_current = False
        """Whether all rows are known, and changes are heard of."""
        self.reason = ""
        """Why not, as of the last attempt."""
        self.is_refused = False
        """Whether that is that the account may not."""

    def begin(self) -> None:
        """Read all rows, and hear of changes from then on."""
        self.end()
        if self._front_end.is_open and not self._is_begun:
            self._is_begun = True
            self._front_end.ask(self._bucket.create(), self._on_made)

    def opened(self) -> None:
        """There is a connection."""
        self._is_begun = False
        self.begin()

    def end(self) -> None:
        """Hear of nothing any more."""
        self.is_current = False
        if self._watch is not None:
            self._front_end.unsubscribe(self._sid)
            if self._front_end.is_open:
                request = self._bucket.unwatch(self._name)
                self._front_end.write(encode_publish(request.subject, request.payload))
            self._watch = self._found = None
            self._is_counting = False

    def begin_later(self) -> None:
        """Something may have changed that is not heard of."""
        self._scheduler.call_later(AGAIN_S, self.begin)

    def look(self, now_ms: float) -> None:
        """Begin anew if it has been silent for long."""
        if self._watch is not None and now_ms >= self._heard_ms + SILENT_MS:
            self.begin()

    # -- what the servers answer ------------------------------------------------------------------------------------

    def _on_made(self, found: Document | Refusal) -> None:
        if isinstance(found, Refusal) and found.error != STREAM_NAME_TAKEN:
            self._begin_again(found)
        else:
            self._front_end.ask(stream_state(self._bucket.stream), self._on_state)

    def _on_state(self, found: Document | Refusal) -> None:
        if isinstance(found, Refusal):
            self._begin_again(found)
            return
        self._is_begun = False
        self._extent = extent_of(found)
        self._number += 1
        self._name = f"{self._front_end.token.decode()}_{self._number}"
        self._sid, self._inbox = self._front_end.subscribe(self._on_watched)
        watch = self._watch = Watch(self._bucket, self._name, b"%b.w" % self._inbox)
        self._found = {}
        self._heard_ms = self._front_end.now_ms()
        request = self._bucket.watch(self._name)
        self._front_end.ask(request, lambda found: self._on_watching(watch, found))

    def _on_watching(self, watch: Watch, found: Document | Refusal) -> None:
        if watch is not self._watch:
            return
        if isinstance(found, Refusal):
            self.end()
            self._begin_again(found)
            return
        if not found.get("num_pending"):
            self._all_read()
        self._front_end.write(watch.poll())

    def _begin_again(self, refusal: Refusal) -> None:
        self._is_begun, self.reason = False, refusal.text
        self.is_refused = refusal.error == NOT_PERMITTED
        pause_s = REFUSED_AGAIN_S if self.is_refused else AGAIN_S
        self._scheduler.call_later(pause_s, self._begin_if_idle)

    def _begin_if_idle(self) -> None:
        if self._watch is None:
            self.begin()

    def _on_watched(self, deliveries: list[Delivered]) -> None:
        self._heard_ms = self._front_end.now_ms()
        for delivered in deliveries:
            if self._watch is None:
                return
            said = self._watch.delivered(delivered)
            if isinstance(said, Entry):
                self._on_entry(said)
            elif said is not None:
                self.begin()
        if self._watch is not None:
            self._front_end.write(self._watch.poll())

    def _on_entry(self, entry: Entry) -> None:
        if self._found is None:
            self._owner.seen(entry)
            return
        self._found[entry.token] = entry
        if not entry.rest:
            self._all_read()

    def _all_read(self) -> None:
        found = self._found or {}
        if len(found) >= self._extent.message_count:
            self._tell_all(found)
        elif not self._is_counting:
            # Markers may have had their time meanwhile, as somewhere one has at any moment where queues come and go.
            self._is_counting = True
            watch = self._watch
            self._front_end.ask(
                stream_state(self._bucket.stream), lambda state: self._on_counted(watch, state)
            )

    def _on_counted(self, watch: Watch | None, state: Document | Refusal) -> None:
        if watch is not self._watch or not self._is_counting:
            return
        if isinstance(state, Refusal):
            self.end()
            self._begin_again(state)
            return
        now, before = extent_of(state), self._extent
        still_there = now.message_count - (
            now.newest - before.newest
        )  # at least: of what there was
        count = min(before.message_count, max(0, still_there))
        self._extent = before._replace(message_count=count)
        self._tell_all(self._found or {})

    def _tell_all(self, found: dict[str, Entry]) -> None:
        self._found, self._is_counting = None, False
        self.is_current, self.is_refused, self.reason = True, False, ""
        self._owner.all_read(found, self._extent)
