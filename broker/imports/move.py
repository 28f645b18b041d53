"""One queue's messages from another broker into the queue of that name here: batch by batch, confirmed before acked.

    declare (passive)     how many are there; nobody may consume there
    consume (exclusive)   at most PREFETCH messages unacked
    each batch: its digests into the journal, synced -> into the queue here -> the commit is durable -> ack there
    done                  twice nothing is ready there, and nothing is left here

What comes first after a stop is looked up in the journal (`recognise`): messages that are here already (`remains`) are
acked there and not stored again. With `is_copy` nothing is acked: the other broker has everything back, in its places,
when the link closes, and a copy that goes on passes over what it has.

Messages go to the queue itself, with exchange, routing key, properties and body as they came, past the exchanges
here; the queue's own rules hold (limits, priorities, TTL, which begins anew unless `ages` knows how much was left).

State owned: the link's inbox, the counters of one row of the report. Called by `job`. Invariants: nothing is acked
there that is not durable here (as `confirm` has it); the order is that of the deliveries.
"""

from __future__ import annotations

import functools
from collections.abc import Awaitable, Callable, Iterable
from operator import or_
from typing import TYPE_CHECKING, Final, Protocol, TypeAlias, TypeVar

from burrowmq.broker.imports import remains
from burrowmq.broker.imports.ages import runs
from burrowmq.broker.imports.inbox import PREFETCH, REPLY_S, Failed, Inbox, Lost
from burrowmq.broker.imports.recognise import (
    CERTAIN,
    SIZE,
    digest,
    may_be_again,
    persistent_count,
    repeated,
)
from burrowmq.broker.queue.outcome import Rejected
from burrowmq.broker.queue.withdraw import withdraw
from burrowmq.protocol import methods
from burrowmq.protocol.codec import Message, body_bytes
from burrowmq.records import dataclass

if TYPE_CHECKING:
    from burrowmq.broker.imports.journal import Journal
    from burrowmq.broker.link.link import Link
    from burrowmq.broker.queue.queue import Queue

T = TypeVar("T")

COPY_MAX: Final = 1_000_000
"""Messages of a queue that may be copied: the other broker holds all of them as unacked meanwhile."""
IDLE_S: Final = 0.5
NOT_AGAIN: Final = "what comes from there is not what came before: somebody uses the queue there"
NOT_SERVED: Final = "the disk refuses what the queue here is given"
Refused: TypeAlias = frozenset[tuple[str, str]]
"""Queues (virtual host, name) of which the disk refuses something of a commit."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """How queues are moved, and what may be relied on."""

    is_copy: bool
    is_quiet: bool
    """Whether nobody publishes there, as the operator says."""
    batch: int
    """So many messages at a time, at most."""
    run: int
    """The number of this run of the node, which forgets what is transient at its end."""
    trusts_times: bool
    """Whether the times that messages bear say when they came into the queue there (`ages`)."""
    was_down: Callable[[], bool]
    """Whether the other broker may have been started again, and have forgotten what was delivered."""


@dataclass(slots=True)
class Row:
    """One line of the report."""

    vhost: str
    name: str
    there: int = 0
    here: int = 0
    moved: int = 0
    again: int = 0
    """Messages that came again and were not stored again."""
    ttl_anew: int = 0
    """Of those that were moved, how many have all of their TTL again: nobody knows how much was used up."""
    is_unsure: bool = False
    """Whether some were stored that may have been here: they look like those that are."""
    left: int = 0
    state: str = "waiting"
    reason: str = ""


class Here(Protocol):
    """What a move needs of the node."""

    def queue(self, vhost: str, name: str) -> Queue | None:
        """The queue of that name."""
        ...

    def commit(self, acked: Iterable[int] = ()) -> Awaitable[Refused]:
        """When everything staged by now is durable, and what was acked in these queues of the store; but for these."""
        ...

    async def may_go_on(self, count: int) -> None:
        """When so many more messages may be taken: rate, alarms. Raises: Stopped."""
        ...

    def in_thread(self, work: Callable[[], T]) -> Awaitable[T]:
        """Do what waits for the disk."""
        ...

    def now_ms(self) -> int:
        """Milliseconds since the epoch."""
        ...


class Move:
    """That of one queue, over one link."""

    def __init__(
        self, here: Here, link: Link, inbox: Inbox, journal: Journal, row: Row, kind: Kind
    ) -> None:
        self._here = here
        self._link = link
        self._inbox = inbox
        self._journal = journal
        self._row = row
        self._kind = kind
        self._is_copy = kind.is_copy
        self._made_ms: int | None = None
        self._again = b""
        self._again_at = 0
        self._consumers_max: int | None = 0
        """So many may consume there, with us if we do; None: nobody else can."""
        self._places: remains.Places = []
        self._torn: remains.Torn | None = None

    async def run(self, *, may_come_again: bool) -> None:
        """Move everything that is there. Raises: Lost, Failed."""
        row, journal = self._row, self._journal
        queue = self._queue()
        if queue.is_blocked:  # what it has of the last batch may be in memory only
            raise Lost(NOT_SERVED)
        self._send(methods.Channel.Open())
        await self._inbox.reply(methods.Channel.OpenOk)
        self._ask()
        ready = self._heard(await self._inbox.reply(methods.Queue.DeclareOk))
        self._consumers_max = None
        if journal.there >= 0:
            await self._settle()
        if journal.count and not journal.is_moving:
            await self._check_copied(queue.ready_count + queue.unacked_count)
        if journal.there < 0:
            if self._is_copy and ready > COPY_MAX:
                raise Failed(f"{ready} messages cannot be copied, at most {COPY_MAX}: move them")
            await self._here.in_thread(functools.partial(journal.begin, ready))
        row.there, row.moved = max(journal.there, row.there), journal.count
        row.here = queue.ready_count + queue.unacked_count
        self._send(methods.Basic.Qos(0, 0 if self._is_copy else PREFETCH, False))
        await self._inbox.reply(methods.Basic.QosOk)
        await self._consume(queue)
        if not self._is_copy:
            await self._here.in_thread(journal.move)
        row.state = "copying" if self._is_copy else "moving"
        if journal.count and may_come_again:
            await self._recognise(ready)
        await self._take_all()

    async def _consume(self, queue: Queue) -> None:
        """Begin to get messages, and be the only one who does. Raises: Lost, Failed."""
        # Where only one consumer gets messages nobody may ask for more than that.
        is_single = queue.arguments.get("x-single-active-consumer") is True
        self._send(
            methods.Basic.Consume(
                queue=self._row.name, consumer_tag="import", exclusive=not is_single
            )
        )
        await self._inbox.reply(methods.Basic.ConsumeOk)
        if is_single:
            self._consumers_max = 1

    async def _check_copied(self, here: int) -> None:
        """Whether what was copied is still here, all of it: a move would acknowledge it there. Raises: Failed."""
        count = self._journal.count
        if not here:
            await self._here.in_thread(self._journal.forget)
        elif here < count and not self._is_copy:
            raise Failed(
                f"the queue here has {here} of the {count} messages that were copied: purge it, and all come again"
            )

    def _send(self, method: methods.Method) -> None:
        self._link.connection.send(1, method)
        self._link.flush()

    def _queue(self) -> Queue:
        queue = self._here.queue(self._row.vhost, self._row.name)
        if queue is None:
            raise Failed("there is no such queue here")
        if self._made_ms is None:
            self._made_ms = queue.made_ms
        elif self._made_ms != queue.made_ms:
            raise Lost("the queue here was declared anew")  # what is known of it is the other's
        return queue

    def _ask(self) -> None:
        """Ask how many are ready there; `_heard` is for the answer."""
        self._send(methods.Queue.Declare(queue=self._row.name, passive=True))

    def _heard(self, answer: methods.Queue.DeclareOk) -> int:
        """So many are. Raises: Lost, when more consume them than may."""
        allowed = self._consumers_max
        if allowed is not None and (answer.consumer_count or 0) > allowed:
            raise Lost("the queue there has consumers: stop them")
        self._row.left = answer.message_count or 0
        return self._row.left

    async def _settle(self) -> None:
        """After a stop: which messages of the last batch the queue here has. Raises: Lost."""
        journal, queue = self._journal, self._queue()
        batch = journal.batch
        if journal.stored_by == self._kind.run:
            return  # by this process, which still has all of it
        if journal.stored_by and persistent_count(batch) == journal.last:
            return
        try:
            seen = await remains.look(queue, journal.next_ids, journal.last)
        except TimeoutError as error:
            raise Lost("the queue here cannot be read") from error
        places = remains.places_of(batch, seen)
        stored = remains.beginning(places)
        if any(places[stored:]):
            self._places = places
        else:
            await self._here.in_thread(functools.partial(journal.settle, stored))

    async def _recognise(self, ready: int) -> None:
        """Look at what comes first, and find out how much of it is here already."""
        journal, inbox = self._journal, self._inbox
        await self._until_here(min(CERTAIN, ready))
        messages, redelivered = inbox.look(CERTAIN)
        seen = b"".join(digest(message) for message in messages)
        known = bytes(journal.known)
        count = len(known) // SIZE
        if not self._is_copy:
            expected = journal.count + ready - journal.there
            look = functools.partial(
                repeated,
                known,
                expected,
                seen,
                is_quiet=self._kind.is_quiet and journal.count <= journal.there,
                redelivered=None if self._kind.was_down() else redelivered,
            )
            known, count = await self._here.in_thread(look)
            if not count and not self._kind.is_quiet:
                look_like = functools.partial(may_be_again, known, seen)
                self._row.is_unsure |= await self._here.in_thread(look_like)
        end = len(known)
        if self._places:
            self._torn = remains.torn(journal.batch, self._places, known, count)
            end -= 0 if self._torn is None else len(self._torn.missing)
        self._again, self._again_at = known[len(known) - count * SIZE : end], 0

    async def _mend(self, torn: remains.Torn) -> None:
        """A batch has gaps here: what is behind the first one goes, and comes again. Raises: Lost, Failed."""
        count = len(torn.missing) // SIZE
        await self._until_here(count)
        messages, _ = self._inbox.look(count)
        if b"".join(map(digest, messages)) != torn.missing:
            raise Failed(NOT_AGAIN)
        await self._here.commit(withdraw(self._queue(), torn.behind))
        await self._here.in_thread(functools.partial(self._journal.settle, torn.kept))
        self._torn = None

    async def _until_here(self, count: int) -> None:
        """Return when so many messages wait here, or no more come. Raises: Lost, Failed."""
        while (before := self._inbox.count) < count and not self._inbox.is_full:
            await self._inbox.wait(REPLY_S)
            if self._inbox.count == before:
                break

    async def _take_all(self) -> None:
        empty, is_asked = 0, False
        while empty < 2:
            await self._here.may_go_on(min(self._inbox.count, self._kind.batch))
            self._inbox.check()
            if self._inbox.count:
                empty = 0
                await self._take_some()
                continue
            if not is_asked:
                is_asked = True
                self._ask()
            # Its answer is behind what is on its way, and that is not read on while too much waits here.
            answer = await self._inbox.answer(methods.Queue.DeclareOk)
            if answer is None:
                continue
            is_asked = False
            # A delivery may be on its way behind the first answer.
            if not self._heard(answer) and not self._inbox.count:
                empty += 1
            elif not self._inbox.count:
                await self._inbox.wait(IDLE_S)
        queue = self._queue()
        self._row.here = queue.ready_count + queue.unacked_count
        self._row.state = "done"

    async def _take_some(self) -> None:
        """The next batch, as far as it is all new or all of what comes again."""
        again = (len(self._again) - self._again_at) // SIZE
        if self._torn is not None and not again:
            await self._mend(self._torn)
        most = min(self._kind.batch, again or self._kind.batch)
        await self._take(*self._inbox.take(self._link, most))

    async def _take(self, tag: int, messages: list[Message]) -> None:
        """One batch."""
        new = self._without_known(messages)
        if new:
            await self._store(new)
        if not self._is_copy:
            self._link.connection.ack(1, tag, multiple=True)
            self._link.flush()

    def _without_known(self, messages: list[Message]) -> list[Message]:
        """Those that are not here yet."""
        count = 0
        while self._again_at < len(self._again) and count < len(messages):
            end = self._again_at + SIZE
            if self._again[self._again_at : end] != digest(messages[count]):
                raise Failed(NOT_AGAIN)
            self._again_at = end
            count += 1
        self._row.again += count
        return messages[count:]

    async def _store(self, messages: list[Message]) -> None:
        journal, in_thread = self._journal, self._here.in_thread
        digests = b"".join(digest(message) for message in messages)
        queue = self._queue()
        next_ids = [level.next_seq for level in queue.levels]
        await in_thread(functools.partial(journal.intend, digests, next_ids))
        self._queue()  # still the same
        refused = 0
        # A queue takes a run to be of one kind, by its flags; between two of them nobody else has a turn.
        ttl, now, is_trusted = queue.expiry.ttl_ms, self._here.now_ms(), self._kind.trusts_times
        for run, age, unknown in runs(messages, ttl, now, is_trusted=is_trusted):
            flags = functools.reduce(or_, [message.flags for message in run])
            queue.expiry.age_ms = age
            try:
                outcome = queue.publish(run, flags, body_bytes(run))
            finally:
                queue.expiry.age_ms = 0
            self._row.ttl_anew += unknown
            if isinstance(outcome, Rejected):
                refused += len(outcome.indexes)
        if (self._row.vhost, self._row.name) in await self._here.commit() or queue.is_blocked:
            raise Lost(NOT_SERVED)
        if refused:
            raise Failed(f"the queue here refuses {refused} messages: is it full?")
        await in_thread(functools.partial(journal.stored, self._kind.run))
        self._row.moved = journal.count
        self._row.here = queue.ready_count + queue.unacked_count
