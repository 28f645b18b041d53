"""A replicated queue's stream and consumer: made, asked how many messages they have, trimmed, purged, deleted.

The stream's name is a digest of the queue's: every front-end that declares the queue, now or after it has lost its
disk, finds the same messages. Requests are repeated until there is an answer; who waits for one is told after
`api`'s patience that the cluster does not answer.

A stream with limits keeps what is acknowledged until it is trimmed: with each look at how many messages there are, up
to the oldest that is not acknowledged. That is one entry of the servers' log for thousands of messages; a work queue,
which `StreamSettings` may ask for, has one for each, and a write beside it.

State owned: whether stream and consumer are there, what the last answer said, who waits. Called by
`broker.replicated.queue`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from hashlib import blake2b
from typing import ClassVar, Final, Protocol, TypeAlias

from burrowmq.broker.queue.placement import Placement
from burrowmq.broker.report.observer import Observer
from burrowmq.broker.turn.clock import Scheduler
from burrowmq.cluster import api
from burrowmq.cluster.api import (
    ConsumerSettings,
    Depth,
    Document,
    Refusal,
    Request,
    StreamSettings,
)
from burrowmq.cluster.pin import PINNED, pinned_id
from burrowmq.cluster.questions import LINK_LOST
from burrowmq.protocol.table import FieldTable

CONSUMER: Final = "q"
SINGLE_ACK_WAIT_MS: Final = 5_000
"""Where one client is given all: what a front-end that died has held is to be back before another is pinned."""
AGAIN_S: Final = 1.0
SOON_S, SOON_COUNT = 0.2, 10
"""With a new connection, so often first: who led the stream may have died with the old one, and others elect."""
REFUSED_AGAIN_S: Final = 5.0
"""Where the account may not: whoever runs the servers has to change that."""
MISSING_S: Final = 1.0
"""One that was there is made anew after so long: where a queue is deleted, its stream goes before others hear of it."""
NEW_MS: Final = 60_000
"""So long after its declaration at another front-end a queue may have no stream yet."""
LOOK_AGAIN_S: Final = 5.0
"""After a look that the cluster has not answered, or refused."""
GONE: Final = "the queue is deleted"
TRIM_EVERY_S: Final = 1.0
ELECTION_LOOK_S: Final = 0.1
ELECTION_LOOKS: Final = 30
"""So often a queue is looked at for its new leader, which takes one or two mostly."""
_NAME_OCTETS: Final = 15
_NOT_FOUND: Final = frozenset((api.STREAM_NOT_FOUND, api.CONSUMER_NOT_FOUND))

Waiting: TypeAlias = Callable[[str], None]
"""Told why there is no answer; "" when there is one."""


class Asking(Protocol):
    """Where requests go."""

    def ask(self, request: Request, then: Callable[[Document | Refusal], None]) -> None:
        """Send a request; `then` is called once, with the answer or a refusal of our own."""
        ...

    def when_gone(self, stream: str, then: Callable[[str], None]) -> None:
        """Call `then` when an earlier queue's stream of this name is deleted, or with why that cannot be done yet."""
        ...

    @property
    def knows_queues(self) -> bool:
        """Whether what other front-ends have declared and deleted is known by now, or is not to be waited for."""
        ...

    def doom(self, stream: str, created: object) -> None:
        """Delete a stream whose queue is gone, which was made at that time; None if that is not known."""
        ...


class Named(Protocol):
    """A queue, as far as operators are told of it."""

    name: str
    made_ms: int

    @property
    def vhost_name(self) -> str:
        """Where it is."""
        ...


def tell_lost(queue: Named, observer: Observer, now_ms: int, count: int | None) -> None:
    """Say that its stream is another one. One that is missed and was never seen may not have been made yet."""
    if count is not None or now_ms >= queue.made_ms + NEW_MS:
        observer.stream_lost(queue.vhost_name, queue.name, count)


def stream_name(vhost: str, queue: str, kind: str = "Q") -> str:
    """A name without dots or spaces for any two names."""
    names = f"{len(vhost)} {vhost}{queue}".encode("utf-8", "surrogateescape")
    return f"{kind}_{blake2b(names, digest_size=_NAME_OCTETS).hexdigest()}"


def stream_settings(
    name: str, queue: str, vhost: str, arguments: FieldTable, replicas: int
) -> StreamSettings:
    """The stream of a queue: full, it refuses what is new, as far as its arguments say so.

    Where its length counts, or its octets, what is acknowledged must not: there it is a work queue, which costs twice
    as much.
    """
    length, size = served_limits(arguments)
    return StreamSettings(
        name=name,
        subjects=(name,),
        replicas=replicas,
        is_work_queue=length is not None or "x-max-length-bytes" in arguments,
        messages_max=-1 if length is None else length,
        bytes_max=-1 if size is None else size,
        metadata=(("burrowmq_vhost", vhost), ("burrowmq_queue", queue)),
    )


def served_limits(arguments: FieldTable) -> tuple[int | None, int | None]:
    """At how many messages and octets a stream refuses what is new: no policy's, which may change, and not at 0.

    To the servers that is no limit.
    """
    if arguments.get("x-overflow") != "reject-publish":
        return None, None
    found = (arguments.get("x-max-length"), arguments.get("x-max-length-bytes"))
    length, size = (each if isinstance(each, int) and each > 0 else None for each in found)
    return length, size


class QueueStream:
    """That of one queue; `is_ours` when it was declared in an earlier life of the node.

    With `is_single` only one front-end at a time is given messages (`cluster.pin`).
    `changed` is called when it has become ready, `counted` when the number of messages is known anew, `renewed` when it
    is another stream than before: somebody has deleted it and made it again, and counts its messages from 1. It is told
    whether this node has ever seen the one before: else one that was declared earlier was missing.
    """

    consumer: ClassVar[str] = CONSUMER
    """Whom all front-ends pull by; "" where each reader goes by places."""

    def __init__(
        self,
        settings: StreamSettings,
        asking: Asking,
        scheduler: Scheduler,
        changed: Callable[[], None],
        counted: Callable[[], None],
        *,
        is_ours: bool,
        is_single: bool = False,
        renewed: Callable[[bool], None] | None = None,
    ) -> None:
        self._renewed = renewed
        self._is_lost = False  # when it was missed, nothing was known of it
        self._created: object = None  # when, as the servers say
        self._settings = settings
        self._is_single = is_single
        self._asking = asking
        self._scheduler = scheduler
        self._changed = changed
        self._counted = counted
        self._waiting: list[Waiting] = []
        self._open_count = 0  # requests that are not answered
        self._is_over = False
        self._is_ours = is_ours  # or has been found there
        self._is_released = False
        self._is_again_due = False
        self._soon_left = 0
        self._is_look_due = False
        self._is_missing = False  # and is made anew in a while
        self.is_ready = False
        self.is_known = False
        """Whether it was there when it was looked at last, maybe by another connection: what is published finds it."""
        self.is_refused = False
        """Whether the servers do not make it, now or another time."""
        self.message_count = 0
        """As of the last answer."""
        self.byte_count = 0
        self.behind = 0
        """Messages that were not delivered."""
        self.is_exact = True
        """Whether what is acknowledged has no part in the octets."""
        self._is_trimmed = False  # a moment ago
        self._is_trim_due = False
        self.fresh = 0
        """The first message that was not delivered, if nobody pulls; else 0."""
        self.placement: Placement | None = None
        self.is_pulled = False
        """Whether a front-end waits for messages."""
        self.pinned_id = ""
        """As whom the one that is given them is known; "" where there is none, or all are."""

    @property
    def name(self) -> str:
        """What the servers call it."""
        return self._settings.name

    # -- there --------------------------------------------------------------------------------------------------

    def meet(self) -> None:
        """See that stream and consumer are there: at first, and when a connection was made again.

        One that was there may be gone with its queue, of which this front-end will hear.
        """
        if self._is_ours:
            self._look()
        else:
            self.make()

    def lost(self) -> None:
        """There is no connection: it may be another one, of the same name, before there is the next.

        So nothing is acknowledged before it was looked at: that would be for another message.
        """
        self.is_ready = False
        self._soon_left = SOON_COUNT

    def make(self) -> None:
        """The same for one that is to be there."""
        if not (self._is_over or self._open_count or self._is_missing):
            self._open_count += 1
            self._asking.when_gone(self.name, self._create)

    def _create(self, reason: str) -> None:
        if reason:
            self._on_failed(Refusal(0, 0, reason))
            return
        self._asking.ask(api.create_stream(self._settings), self._on_stream)

    def _on_stream(self, found: Document | Refusal) -> None:
        if (
            isinstance(found, Refusal) and found.error != api.STREAM_NAME_TAKEN
        ):  # by the queue's own, as it was declared elsewhere
            self._on_failed(found)
            return
        self._note_age(found)
        settings = ConsumerSettings(name=CONSUMER)
        if self._is_single:
            settings = replace(settings, ack_wait_ms=SINGLE_ACK_WAIT_MS, more=PINNED)
        consumer = api.create_consumer(self.name, settings)
        self._asking.ask(consumer, self._on_consumer)

    def _note_age(self, found: Document | Refusal) -> None:
        created = None if isinstance(found, Refusal) else found.get("created")
        if created is None:
            return
        before, self._created = self._created, created
        is_lost, self._is_lost = self._is_lost, False
        is_other = before not in (None, created)
        if self._renewed is not None and (is_other or is_lost):
            self._renewed(is_other)

    def _on_consumer(self, found: Document | Refusal) -> None:
        if isinstance(found, Refusal):
            self._on_failed(found)
        else:
            self._on_there()

    def _on_there(self) -> None:
        self._open_count -= 1
        self._is_ours = True
        self._be_ready()
        self._look()

    def _be_ready(self) -> None:
        if not self.is_ready:
            self.is_ready = self.is_known = True
            self.is_refused = False
            self._changed()

    def _on_failed(self, refusal: Refusal) -> None:
        self._open_count -= 1
        self.is_refused = not api.is_for_now(refusal)
        self._try_later(refusal)
        self._tell(refusal.text)

    def _try_later(self, refusal: Refusal) -> None:
        if not (self._is_over or self._is_again_due):
            self._is_again_due = True
            pause_s = REFUSED_AGAIN_S if refusal.error == api.NOT_PERMITTED else AGAIN_S
            if pause_s == AGAIN_S and self._soon_left:
                self._soon_left -= 1
                pause_s = SOON_S
            self._scheduler.call_later(pause_s, self._try_again)

    def _try_again(self) -> None:
        self._is_again_due = False
        if not self.is_ready:
            self.meet()

    # -- how many -----------------------------------------------------------------------------------------------

    def ask(self, then: Waiting) -> None:
        """Learn how many messages there are, after what was asked for before."""
        if self._is_over:
            then(GONE)
            return
        self._waiting.append(then)
        self.meet()  # which says so when there is no connection

    def lead_by(self, server: str, then: Waiting) -> None:
        """Have another of its servers lead it; `then` is told when that does, or why it does not."""

        def on_answer(found: Document | Refusal) -> None:
            if isinstance(found, Refusal):
                then(found.text)
            else:
                look(ELECTION_LOOKS)

        def look(left: int) -> None:
            self.ask(lambda reason: on_looked(reason, left))

        def on_looked(reason: str, left: int) -> None:
            is_led = self.placement is not None and self.placement.leader == server
            if reason or is_led:
                then(reason)
            elif left:
                self._scheduler.call_later(ELECTION_LOOK_S, partial(look, left - 1))
            else:
                then("another server was elected, or none")

        self._asking.ask(api.step_down(self.name, server), on_answer)

    def refresh(self) -> None:
        """The same for nobody."""
        if self.is_ready:
            self._look()

    def _look(self) -> None:
        if not self._open_count and not self._is_over:
            self._open_count += 1
            waiting, self._waiting = self._waiting, []
            self._asking.ask(self._look_request(), lambda found: self._on_state(found, waiting))

    def _look_request(self) -> Request:
        return api.stream_state(self.name)

    def _on_state(self, stream: Document | Refusal, waiting: list[Waiting]) -> None:
        if isinstance(stream, Refusal):
            if self.placement is not None and stream != LINK_LOST:
                self.placement = self.placement._replace(leader="", online=())
            self._on_looked(stream, waiting)
            return
        self._note_age(stream)
        self.placement = Placement(*api.members_of(stream))
        self._measure(stream, waiting)

    def _measure(self, stream: Document, waiting: list[Waiting]) -> None:
        def on_consumer(consumer: Document | Refusal) -> None:
            if isinstance(consumer, Refusal):
                self._on_looked(consumer, waiting)
                return
            self.pinned_id = pinned_id(consumer)
            self._on_looked(api.depth_of(stream, consumer), waiting)

        self._asking.ask(api.consumer_state(self.name, CONSUMER), on_consumer)

    def _on_looked(self, found: Depth | Refusal, waiting: list[Waiting]) -> None:
        self._open_count -= 1
        if isinstance(found, Refusal):
            if found.error in _NOT_FOUND and not self._is_over:
                self._is_lost |= found.error == api.STREAM_NOT_FOUND and self._created is None
                self._waiting += waiting
                self._miss()
                return
            _tell(waiting, found.text)
            if found == LINK_LOST:  # with a new one it is looked at, at once
                pass
            elif not self.is_ready:
                self._try_later(found)
            else:
                self._look_again()
        else:
            self._be_ready()
            self._note(found)
            _tell(waiting, "")
        if self._waiting:
            self._look()

    def _miss(self) -> None:
        """It is not there: made anew at once it would be left behind by a queue that another front-end deletes."""
        self.is_ready = self.is_known = False
        if not self._is_missing:
            self._is_missing = True
            self._scheduler.call_later(MISSING_S, self._make_anew)

    def _make_anew(self) -> None:
        if not (self._asking.knows_queues or self._is_over):
            self._scheduler.call_later(MISSING_S, self._make_anew)
            return
        self._is_missing = False
        self.make()

    def _look_again(self) -> None:
        """What was learnt before may hold no longer, and what is shown meanwhile is not to last."""
        if not (self._is_over or self._is_look_due):
            self._is_look_due = True
            self._scheduler.call_later(LOOK_AGAIN_S, self._on_look_due)

    def _on_look_due(self) -> None:
        self._is_look_due = False
        self.refresh()

    def _note(self, depth: Depth) -> None:
        self.message_count, self.byte_count = depth.message_count, depth.byte_count
        self.fresh, self.is_pulled = depth.fresh, depth.is_pulled
        self.behind = depth.behind
        self.is_exact = depth.floor < depth.first or self._settings.is_work_queue
        self._counted()
        if not (self.is_exact or self._is_trimmed):
            self._is_trimmed = True
            self._asking.ask(api.trim_stream(self.name, depth.floor + 1), _ignore)
            self._scheduler.call_later(TRIM_EVERY_S, self._may_trim)
        elif not self.is_exact:
            self._is_trim_due = True

    def _may_trim(self) -> None:
        self._is_trimmed = False
        if self._is_trim_due:
            self._is_trim_due = False
            self.refresh()

    # -- gone ---------------------------------------------------------------------------------------------------

    def purge(self) -> None:
        """Remove all messages; who asks after that is told when it is done."""
        self._open_count += 1  # who asks how many there are waits
        self._asking.ask(api.purge_stream(self.name), self._on_purged)

    def _on_purged(self, found: Document | Refusal) -> None:
        self._open_count -= 1
        if not isinstance(found, Refusal):
            self._look()
            return
        self._tell(found.text)
        if not self.is_ready:  # as a look has found meanwhile
            self.meet()

    def release(self, then: Waiting) -> None:
        """Delete it; `then` is told why that cannot be done."""

        def on_answer(found: Document | Refusal) -> None:
            if isinstance(found, Refusal) and found.error != api.STREAM_NOT_FOUND:
                then(found.text)
                return
            self._is_over = self._is_released = True
            then("")

        self._asking.ask(api.delete_stream(self.name), on_answer)

    def stay(self) -> None:
        """It was released, and is used again: make it anew."""
        self._is_over = self._is_released = self._is_missing = False
        self.is_ready = self.is_known = False
        self.make()

    def disown(self) -> None:
        """It stays as it is when the queue ends."""
        self._is_released = True

    def end(self) -> None:
        """The queue is gone; so is the stream, as soon as the cluster answers.

        But for one that is new and was never found there: it may be full of messages, and its declaration has failed.
        """
        self._is_over = True
        if self._is_ours and not self._is_released:
            self._asking.doom(self.name, self._created)
        self._tell(GONE)

    def _tell(self, reason: str) -> None:
        waiting, self._waiting = self._waiting, []
        _tell(waiting, reason)


def _ignore(_: Document | Refusal) -> None:
    """Whether it was trimmed shows with the next look."""


def _tell(waiting: list[Waiting], reason: str) -> None:
    for then in waiting:
        then(reason)
