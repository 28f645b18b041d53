"""Rows that all front-ends of a cluster agree on: a bucket of the cluster, and what is here of it.

    here                          AgreedRows                         the servers
    change, propose    ---->      put(revision)          ----------->  stored, or: another revision
    apply              <----      seen                   <-----------  the watch

Each row has a revision, and a change names the one that it is made of: the servers take one of two changes that were
made at once. `change` is for what is in force here already, `propose` for what is to be once it is agreed. Of two that
make the same name the first wins, and the other one has that row in force instead of its own; any other change that
came too late is made again of the newer row. What is not agreed while nothing is for `LIMIT_MS` is taken back; what the
servers refuse is at once, when there is somebody to be told.

Whenever there is a connection, all rows are read anew: what changed meanwhile is put in force, what was on its way is
looked at again. On the first time that a node meets a bucket it offers what it has, and takes what is there; and when
the servers have lost what was in it. A row that is larger than the servers take cannot have been in the bucket: it
stays at this node alone, and is offered again on each connection.

State owned: the rows that are shared, as they are in force here, and the changes under way. Never reads or writes a
definition itself: `apply` does. Made by `broker.replicated.definitions`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any, Final, Protocol

from burrowmq.broker.replicated.front_end import FrontEnd
from burrowmq.broker.replicated.watching import Watching
from burrowmq.broker.report.cluster_state import Flow
from burrowmq.broker.turn.clock import Scheduler
from burrowmq.cluster import bucket as buckets
from burrowmq.cluster.api import (
    NOT_PERMITTED,
    TOO_LARGE,
    Document,
    Extent,
    Refusal,
    is_for_now,
)
from burrowmq.cluster.bucket import Bucket, Entry

LIMIT_MS: Final = 5_000.0
"""A change is given up when nothing at all has been agreed for so long."""
AT_ONCE: Final = 1_000
"""Changes that are on their way at once; an import makes tens of thousands."""
AWAY_S: Final = 1.0
"""Without a connection for so long nothing is waited for."""
TICK_S: Final = 1.0
NOT_AGREED: Final = "the cluster has not agreed to it in time"
AWAY: Final = "the cluster is out of reach"
LARGE: Final = "larger than the servers take: "
"""How the reason begins that no time will change."""
NO_FLOW: Final = Flow()

Told = Callable[[str], None]
Change = tuple[str, str, Any]


class Keeper(Protocol):
    """Whose rows they are."""

    def apply(self, changes: list[Change]) -> None:
        """Put these rows in force; None for one that is removed."""
        ...

    def offers(self, created: str, *, is_empty: bool) -> bool:
        """Whether rows that this bucket does not have are offered; else they were removed while nobody was here."""
        ...

    def joined(self, created: str) -> None:
        """What was offered is agreed."""
        ...

    def is_same(self, kind: str, one: Any, other: Any) -> bool:
        """Whether two rows mean the same."""
        ...

    def is_first_kept(self, kind: str) -> bool:
        """Whether of two rows of this kind and one key the first stays."""
        ...


class Row:
    """One row: as it is agreed, and what it is to be."""

    __slots__ = (
        "behind", "is_offer", "is_pending", "is_proposal", "is_sent", "key", "kind", "refusal",
        "revision", "since_ms", "token", "value", "waiting", "wanted",
    )  # fmt: skip

    def __init__(self, kind: str, key: str, token: str) -> None:
        self.kind = kind
        self.key = key
        self.token = token
        self.revision = 0
        self.value: Any = None
        self.wanted: Any = None
        self.is_pending = False
        self.is_sent = False
        self.is_proposal = False  # it is put in force when it is agreed
        self.is_offer = False
        self.behind = 0  # the revision that the servers have said it has
        self.since_ms = 0.0
        self.refusal = ""  # why the servers do not take what it is to be
        self.waiting: list[Told] = []


class AgreedRows:
    """Those of one bucket."""

    def __init__(
        self, bucket: Bucket, front_end: FrontEnd, scheduler: Scheduler, keeper: Keeper
    ) -> None:
        self.bucket = bucket
        self._front_end = front_end
        self._scheduler = scheduler
        self._keeper = keeper
        self._rows: dict[str, Row] = {}
        self._pending: dict[Row, None] = {}
        self._unsent: deque[Row] = deque()  # pending ones, for which there was no room
        self._sent_count = 0
        self._agreed_ms = 0.0  # when something was, the last time
        self._said = ""  # why something was not, since then
        self._behind: dict[
            Row, None
        ] = {}  # pending ones that came too late for what is not seen yet
        self._offer_count = 0
        self._own: dict[Row, None] = {}  # not pending: what no server takes, in force here alone
        self.agreed_count = 0
        """Changes that this node has made, and that were settled, since its start as what follows."""
        self.refused_count = 0
        """Those that were not, or not in time."""
        self._seen = 0
        self._created = ""
        self._is_joining = False
        self._is_ticking = False
        self._watching = Watching(bucket, front_end, scheduler, self)

    # -- the node's side ------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Agree from now on."""
        self._front_end.join(self, self.bucket.stream)

    def remember(self, kind: str, key: str, value: Any) -> None:
        """A row as it was in force when the node was last there."""
        token = self.bucket.token(kind, key)
        if value is None:
            self._rows.pop(token, None)
            return
        row = self._rows.setdefault(token, Row(kind, key, token))
        row.value = value

    def has(self, kind: str, key: str) -> bool:
        """Whether there is such a row, or is to be one."""
        row = self._rows.get(self.bucket.token(kind, key))
        return row is not None and (row.value is not None or row.wanted is not None)

    def of_kind(self, kind: str) -> list[Change]:
        """All agreed rows of a kind."""
        return [
            (row.kind, row.key, row.value)
            for row in self._rows.values()
            if row.kind == kind and row.value is not None
        ]

    @property
    def count(self) -> int:
        """How many rows are shared."""
        return len(self._rows) - len(self._own)

    @property
    def own(self) -> list[tuple[str, str, str]]:
        """(kind, key, reason) of rows that are in force here alone, since no server takes them."""
        return [(row.kind, row.key, row.refusal) for row in self._own]

    @property
    def pending_count(self) -> int:
        """How many changes are under way."""
        return len(self._pending)

    @property
    def is_ready(self) -> bool:
        """Whether all rows are known, and changes are heard of."""
        return self._watching.is_current

    @property
    def is_away(self) -> bool:
        """Whether there is no point in waiting for the servers."""
        return self._watching.is_refused or self._front_end.state.down_s >= AWAY_S

    @property
    def away_reason(self) -> str:
        """Why there is none."""
        return self._watching.reason if self._watching.is_refused else AWAY

    def change(self, kind: str, key: str, value: Any) -> None:
        """This row is in force here: the others are to have it, too."""
        row = self._row(kind, key)
        if not row.is_pending and self._is_same(row, value):
            return
        self._offer_count -= row.is_offer
        row.is_proposal = row.is_offer = False
        self._refused_no_more(row)
        self._want(row, value)

    def propose(self, kind: str, key: str, value: Any, then: Told) -> None:
        """Agree on a row before it is in force; `then` is told "" when one of that name is, or why none is."""
        row = self._row(kind, key)
        if self.is_away:
            self._forget_if_nothing(row)
            self.refused_count += 1
            then(self.away_reason)
            return
        if row.is_pending and row.wanted is None and value is not None:
            # One of that name is on its way out.
            row.waiting.append(
                lambda reason: then(reason) if reason else self.propose(kind, key, value, then)
            )
            return
        row.waiting.append(then)
        if not row.is_pending:
            row.is_proposal, row.is_offer = True, False
            self._refused_no_more(row)
            self._want(row, value)

    def when_agreed(self, then: Told) -> None:
        """Say when the changes that are under way are agreed, or why one is not."""
        if not self._pending:
            then("")
            return
        if self.is_away:
            self._fail(list(self._pending), self.away_reason)
            then(self.away_reason)
            return
        left, reasons = len(self._pending), [""]

        def told(reason: str) -> None:
            nonlocal left
            left -= 1
            reasons.append(reason)
            if not left:
                then(max(reasons))

        for row in self._pending:
            row.waiting.append(told)
        for row in [row for row in self._pending if row.refusal]:
            self._fail([row], row.refusal)

    # -- changes --------------------------------------------------------------------------------------------------

    def _row(self, kind: str, key: str) -> Row:
        token = self.bucket.token(kind, key)
        row = self._rows.get(token)
        if row is None:
            row = self._rows[token] = Row(kind, key, token)
        return row

    def _is_same(self, row: Row, value: Any) -> bool:
        return self._keeper.is_same(row.kind, row.value, value)

    def _want(self, row: Row, value: Any) -> None:
        row.wanted = value
        if not row.is_pending:
            row.is_pending, row.since_ms = True, self._front_end.now_ms()
            self._pending[row] = None
        self._send(row)
        self._tick_later()

    def _send(self, row: Row) -> None:
        if not self.is_ready or row.is_sent:
            return
        if self._sent_count >= AT_ONCE:
            self._unsent.append(row)
            return
        row.is_sent = True
        self._sent_count += 1
        value = row.wanted
        request = self.bucket.put(row.kind, row.key, value, row.revision)
        self._front_end.ask(request, lambda found: self._answered(row, value, found))

    def _answered(self, row: Row, value: Any, found: Document | Refusal) -> None:
        row.is_sent = False
        self._sent_count -= 1
        self._settle(row, value, found)
        while self._unsent and self._sent_count < AT_ONCE and self.is_ready:
            waiting = self._unsent.popleft()
            if waiting.is_pending:
                self._send(waiting)

    def _settle(self, row: Row, value: Any, found: Document | Refusal) -> None:
        if isinstance(found, Refusal):
            if found.error == buckets.WRONG_REVISION:
                row.behind = buckets.current_revision(found)
                self._behind[row] = None
                self._meet_if_seen(row)
            elif found.error == NOT_PERMITTED or not is_for_now(found):
                self._refused(row, value, found)
            elif self._front_end.is_open:
                if found.code:  # an answer of the servers
                    self._said = f": {found.text}"
                self._watching.begin_later()  # whether it is stored is not known
            return
        self._agreed_ms, self._said = self._front_end.now_ms(), ""
        revision = int(found.get("seq") or 0)
        is_newest = revision >= row.revision
        if is_newest:
            row.revision, row.value = revision, value
        if not row.is_pending:  # it was given up by then
            self._apply([row])
        elif row.is_proposal or not is_newest:
            self._apply([row])
            self._finish(row)
        elif self._keeper.is_same(row.kind, row.wanted, value):
            self._finish(row)
        else:
            self._send(row)

    def _refused(self, row: Row, value: Any, refusal: Refusal) -> None:
        """The servers say that they do not take it."""
        if not row.is_pending:
            return
        if not self._keeper.is_same(row.kind, row.wanted, value):
            self._send(row)
            return
        is_large = refusal.error == TOO_LARGE
        reason = f"{LARGE * is_large}{row.kind} {row.key}: {refusal.text}"
        if row.refusal != reason and refusal.error != NOT_PERMITTED:  # of that is told for all
            self._front_end.observer.definition_not_shared(row.kind, row.key, reason)
        row.refusal = reason
        if row.is_offer and is_large:
            self._keep_own(row)
        elif row.waiting and not row.is_offer:
            self._fail([row], reason)

    def _keep_own(self, row: Row) -> None:
        """It was here before this node met others, or no server would have it: it stays what it is, here."""
        self.refused_count += 1
        row.value = row.wanted
        self._own[row] = None
        self._close(row, "")

    def _refused_no_more(self, row: Row) -> None:
        row.refusal = ""
        self._own.pop(row, None)

    def _meet_if_seen(self, row: Row) -> None:
        """A change came too late: go on when what it came too late for is known."""
        if not row.is_pending or row.is_sent or not row.behind or row.behind > self._seen:
            return
        # Of a row that was removed nothing else is known.
        row.revision = max(row.revision, row.behind)
        row.behind = 0
        self._behind.pop(row, None)
        self._meet(row)

    def _meet(self, row: Row) -> None:
        """Compare what is agreed with what was to be."""
        is_kept = row.is_offer or self._keeper.is_first_kept(row.kind)
        if self._is_same(row, row.wanted):
            if row.is_proposal:
                self._apply([row])
            self._finish(row)
        elif row.value is not None and row.wanted is not None and is_kept:
            self._apply([row])
            self._finish(row)
        else:
            self._send(row)

    def _finish(self, row: Row, reason: str = "") -> None:
        if reason:
            self.refused_count += 1
        else:
            self.agreed_count += 1
        self._refused_no_more(row)
        self._close(row, reason)

    def _close(self, row: Row, reason: str) -> None:
        self._pending.pop(row, None)
        self._behind.pop(row, None)
        self._offer_count -= row.is_offer
        row.is_pending = row.is_proposal = row.is_offer = False
        row.wanted, row.behind = None, 0
        waiting, row.waiting = row.waiting, []
        self._forget_if_nothing(row)
        self._join_if_agreed()
        for then in waiting:
            then(reason)

    def _forget_if_nothing(self, row: Row) -> None:
        if row.value is None and not row.is_pending:
            self._rows.pop(row.token, None)

    def _apply(self, rows: list[Row]) -> None:
        self._keeper.apply([(row.kind, row.key, row.value) for row in rows])

    def _fail(self, rows: list[Row], reason: str) -> None:
        """These are not to be: what is in force is what was agreed."""
        self._apply([row for row in rows if not (row.is_proposal or row.is_offer)])
        for row in rows:
            if row.is_offer:
                row.since_ms = self._front_end.now_ms()  # what is here stays here until it is known
                waiting, row.waiting = row.waiting, []
                if row.refusal:
                    self._send(row)
                for then in waiting:  # they do not wait for as long as that may be
                    then(reason)
            else:
                self._finish(row, reason)

    def _tick_later(self) -> None:
        if not self._is_ticking:
            self._is_ticking = True
            self._scheduler.call_later(TICK_S, self._tick)

    def _tick(self) -> None:
        self._is_ticking = False
        now_ms = self._front_end.now_ms()
        late, refused = [], []
        for row in self._pending:
            if now_ms >= row.since_ms + LIMIT_MS:
                if row.refusal:
                    refused.append(row)
                elif now_ms >= self._agreed_ms + LIMIT_MS:
                    late.append(row)
        if self.is_away:
            self._fail(list(self._pending), self.away_reason)
        else:
            for row in refused:
                self._fail([row], row.refusal)
            if late:
                self._fail(late, self._watching.reason or f"{NOT_AGREED}{self._said}")
        self._watching.look(now_ms)
        if self._pending or self._front_end.is_open:
            self._tick_later()

    # -- what others have changed; see `watching.Watcher` -------------------------------------------------------------

    def seen(self, entry: Entry) -> None:
        """A row has changed."""
        self._seen = max(self._seen, entry.revision)
        row = self._rows.get(entry.token)
        if row is None:
            if entry.value is not None:
                row = self._row(entry.kind, entry.key)
                row.revision, row.value = entry.revision, entry.value
                self._apply([row])
        elif entry.revision > row.revision:
            self._changed(row, entry)
        for waiting in list(self._behind):
            self._meet_if_seen(waiting)

    def _changed(self, row: Row, entry: Entry) -> None:
        is_new = not self._is_same(row, entry.value)
        self._refused_no_more(row)
        row.revision, row.value = entry.revision, entry.value
        if not row.is_pending:
            if is_new:
                self._apply([row])
            self._forget_if_nothing(row)

    def all_read(self, found: dict[str, Entry], extent: Extent) -> None:
        """Put in force what has changed, and go on with what was under way."""
        newest = max([extent.newest, *(entry.revision for entry in found.values())])
        is_lost = self._is_lost(found, extent, newest)
        self._created, self._seen = extent.created, newest
        self._behind.clear()
        is_empty = all(entry.value is None for entry in found.values())
        is_known = not self._keeper.offers(self._created, is_empty=is_empty)
        is_offered = is_lost or not is_known
        changed, offered = [], []
        for row in list(self._rows.values()):
            entry = found.pop(row.token, None)
            value = None if entry is None else entry.value
            row.revision = 0 if entry is None else entry.revision
            row.is_sent, row.behind = False, 0
            if row.is_pending:
                row.value = value
            elif value is None and row.value is not None and (is_offered or self._is_own(row)):
                offered.append(row)
            elif not self._is_same(row, value):
                self._refused_no_more(row)
                row.value = value
                changed.append(row)
        for entry in found.values():
            if entry.value is not None:
                row = self._row(entry.kind, entry.key)
                row.revision, row.value = entry.revision, entry.value
                changed.append(row)
        if is_lost and is_known and offered:
            self._front_end.observer.definitions_lost(len(offered))
        self._apply(changed)
        for row in changed:
            self._forget_if_nothing(row)
        self._go_on(offered)

    def _is_lost(self, found: dict[str, Entry], extent: Extent, newest: int) -> bool:
        """Whether the servers have lost some of what they had agreed to: what is missing was not deleted then.

        Revisions only rise, as long as it is the same bucket; and nobody deletes the last definition of all. Where the
        leader says that it has more than comes, it is another server that has lost it.
        """
        is_back = self._created == extent.created and newest < self._seen
        return not found or is_back or len(found) < extent.message_count

    def _is_own(self, row: Row) -> bool:
        """Whether nobody can have removed it, since no server takes it, or did."""
        if row in self._own:
            return True
        return not self._front_end.takes(self.bucket.put(row.kind, row.key, row.value, 0))

    def _go_on(self, offered: list[Row]) -> None:
        self._unsent.clear()  # all that is pending is looked at
        self._is_joining = True
        for row in offered:
            row.is_offer, value = True, row.value
            self._offer_count += 1
            row.value = None
            self._want(row, value)
        for row in list(self._pending):
            if not row.is_sent:
                self._meet(row)
        self._join_if_agreed()

    def _join_if_agreed(self) -> None:
        if self._is_joining and not self._offer_count:
            self._is_joining = False
            self._keeper.joined(self._created)

    # -- the connection; see `front_end.Member` ---------------------------------------------------------------------

    def cluster_opened(self) -> None:
        """Read what has changed."""
        self._watching.opened()
        self._tick_later()

    def cluster_lost(self) -> None:
        """Changes wait for the next connection, for a while."""
        self._watching.end()

    def cluster_drained(self) -> None:
        """Nothing waits for that."""

    def cluster_closing(self) -> None:
        """The node stops."""
        self._watching.end()

    def cluster_news(self, who: str) -> None:
        """Nothing: the watch says what has changed."""

    def cluster_used(self) -> None:
        """Nothing."""

    @property
    def flow(self) -> Flow:
        """Nothing of a queue's."""
        return NO_FLOW
