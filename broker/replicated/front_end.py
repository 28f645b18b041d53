"""A node's connection to the cluster, shared by all its replicated queues.

    queue, stream                       FrontEnd                    a server
    ask(request, then)          ---->   write          ----------->
    on_answers / on_messages    <----   received       <-----------  all of one read, by subscription
    returned, lost              <----   opened, lost
    not taken                   <----   refused        <-----------  what this account may not, which has no answer

Front-ends tell each other what has changed, and what is used (`broker.replicated.news`).

Each member (a queue) has subscriptions of its own, by whose numbers what comes is told apart. A message that comes for
a subscription that has ended goes back to the stream at once.

State owned: the link and what operators are told of it, the questions, who has which subscription. Never keeps what
could not be written: members know what they have to send again. Everything is called from the loop.
"""

from __future__ import annotations

import ssl
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import reduce
from itertools import groupby
from operator import attrgetter
from typing import Final, Protocol, TypeAlias, TypeVarTuple

from burrowmq.broker.replicated.news import CHANGED, SUBJECTS, USED, Hearer, News
from burrowmq.broker.replicated.silence import Silence
from burrowmq.broker.replicated.troubles import Troubles
from burrowmq.broker.report.cluster_state import Flow, LinkState, ServerState
from burrowmq.broker.report.metrics import QueueMetrics
from burrowmq.broker.report.observer import Observer
from burrowmq.broker.turn.clock import Entropy, Scheduler
from burrowmq.cluster.api import (
    NAK,
    NOT_PERMITTED,
    STREAM_NOT_FOUND,
    TOO_LARGE,
    Document,
    Refusal,
    Request,
    delete_stream,
    is_no_room,
    stream_state,
)
from burrowmq.cluster.denied import is_lasting, kind_of, published_subject
from burrowmq.cluster.link import Link, Server, server
from burrowmq.cluster.probe import Caller, sight
from burrowmq.cluster.questions import LINK_LOST, NO_ANSWER, Questions
from burrowmq.cluster.wire import Delivered, Greeting, encode_publish

TOKEN_OCTETS: Final = 12
PAYLOAD_MAX: Final = 1 << 20
"""What a server takes unless it is configured otherwise: until one has said what it takes."""
EXPIRE_S: Final = 1.0
"""Between two looks at requests that nobody answers."""
AGAIN_S: Final = 1.0
_ANSWERS_SID: Final = 1
_NEWS_SIDS: Final = range(2, 2 + len(SUBJECTS))
_ACK_PREFIX: Final = b"$JS.ACK."
OF_NO_USE: Final = "nobody answers there for JetStream, another server is tried"

Handler: TypeAlias = Callable[[list[Delivered]], None]
Said = TypeVarTuple("Said")
_sid = attrgetter("sid")


class Member(Hearer, Protocol):
    """A queue, as the front-end sees it."""

    def cluster_opened(self) -> None:
        """There is a connection again."""
        ...

    def cluster_lost(self) -> None:
        """It broke: nothing that was asked for will come."""
        ...

    def cluster_drained(self) -> None:
        """What was written has been taken."""
        ...

    def cluster_closing(self) -> None:
        """The node stops: what is still to be said is said now."""
        ...

    @property
    def flow(self) -> Flow:
        """What is on its way to the cluster and from it."""
        ...


def servers(urls: Sequence[str], user: str | None, password: str | None) -> list[Server]:
    """Where to connect, and as whom."""
    return [replace(server(url), user=user, password=password) for url in urls]


class FrontEnd:
    """That of one node, from its start to its stop."""

    def __init__(
        self,
        servers: Sequence[Server],
        scheduler: Scheduler,
        entropy: Entropy,
        observer: Observer,
        *,
        name: str,
        version: str,
        on_eased: Callable[[], None],
        tls: ssl.SSLContext | None = None,
    ) -> None:
        self._scheduler = scheduler
        self.observer = observer
        self.on_eased = on_eased
        """To be called when a queue that had too much has so no more."""
        self._is_stopping = False
        token = entropy.token(TOKEN_OCTETS).hex().encode()
        self.token = token
        """Like that of no other front-end, and of no earlier life of this one."""
        self._inbox = b"_INBOX.%b" % token
        self._questions = Questions(b"%b.a" % self._inbox)
        self._link = Link(servers, self, name=name, version=version, tls=tls)
        self._caller = Caller(name, version, self._link.tls)
        self._link.subscribe(b"%b.a.*" % self._inbox, _ANSWERS_SID)
        self._handlers: dict[int, Handler] = {_ANSWERS_SID: self._on_answers}
        self._members: dict[Member, str] = {}
        self._by_stream: dict[str, Member] = {}
        self._past = Flow()  # of members that have left
        self.gone = {"quorum": QueueMetrics(), "stream": QueueMetrics()}
        """What deleted queues had counted, by their kind."""
        self._news = News(token.decode(), scheduler, self._link.write, self._by_stream)
        for sid, subject in zip(_NEWS_SIDS, SUBJECTS, strict=True):
            self._link.subscribe(subject, sid)
            self._handlers[sid] = self._news.heard
        self._last_sid = _NEWS_SIDS[-1]
        self._publishers: dict[str, Callable[[str], None]] = {}
        self._troubles = Troubles(observer.cluster_refuses)
        self._silence = Silence()
        self._doomed: dict[str, list[Callable[[str], None]]] = {}
        self._is_expiring = False
        self._was_lost = False
        self._is_holding_back = False
        self._servers = tuple(servers)
        self._server_names: dict[str, str] = {}  # by address, of those that have ever answered
        self._since_ms = scheduler.wall_ms()
        self._since_s = scheduler.monotonic()
        self._opened_count = 0
        self._reason = ""
        self.payload_max = PAYLOAD_MAX
        """Octets that the servers take as one message."""
        self.are_queues_known: Callable[[], bool] = lambda: True
        """Set by who shares definitions: see `knows_queues`."""

    # -- the node's side ----------------------------------------------------------------------------------------

    def start(self) -> None:
        """Connect, and stay connected."""
        self._changed_now()
        self._link.start()

    async def stop(self) -> None:
        """Let go of the servers, after what members have to say. What is not acknowledged is delivered again."""
        self._is_stopping = True
        for member in list(self._members):
            self._guard(member.cluster_closing)
        await self._link.close()

    def abandon(self) -> None:
        """The same at once, without a word."""
        self._link.abandon()

    @property
    def is_open(self) -> bool:
        """Whether there is a connection."""
        return self._link.is_open

    @property
    def state(self) -> LinkState:
        """What operators are told of the connection."""
        address, is_open = self._link.server_label, self._link.is_open
        refusals, refused_ms = self._troubles.shown(self.now_ms())
        return LinkState(
            is_open,
            address,
            self._server_names.get(address, ""),
            self._since_ms,
            0.0 if is_open else self._scheduler.monotonic() - self._since_s,
            "" if is_open else self._reason,
            self._opened_count,
            refusals if is_open else (),
            refused_ms,
        )

    def flow(self) -> Flow:
        """What is on its way between all queues and the cluster."""
        return reduce(Flow.plus, [member.flow for member in self._members], self._past)

    async def sight(self) -> list[ServerState]:
        """Ask each server of the list whether it is there."""
        found = await sight(self._servers, self._caller)
        for where, greeting, _ in found:
            if greeting is not None:
                self._server_names[where.label] = greeting.server_name
        return [
            ServerState(
                where.label,
                self._server_names.get(where.label, ""),
                "" if greeting is None else greeting.version,
                reason,
            )
            for where, greeting, reason in found
        ]

    # -- members' side ------------------------------------------------------------------------------------------

    def join(self, member: Member, stream: str) -> None:
        """Be told of the connection, and of what others do to the stream."""
        self._members[member] = stream
        self._by_stream[stream] = member
        if self._link.is_open:
            member.cluster_opened()

    def leave(self, member: Member) -> None:
        """Be told no more."""
        stream = self._members.pop(member, "")
        self._past = self._past.plus(member.flow.past())
        if self._by_stream.get(stream) is member:
            del self._by_stream[stream]

    def subscribe(self, handler: Handler) -> tuple[int, bytes]:
        """(number of the subscription, its inbox): what comes to subjects below goes to `handler`, a read at a time."""
        self._last_sid += 1
        sid = self._last_sid
        inbox = b"%b.%d" % (self._inbox, sid)
        self._handlers[sid] = handler
        self._link.subscribe(b"%b.>" % inbox, sid)
        return sid, inbox

    def listen(self, subject: bytes, handler: Handler) -> None:
        """Have what is published to a subject, for good."""
        self._last_sid += 1
        self._handlers[self._last_sid] = handler
        self._link.subscribe(subject, self._last_sid)

    def unsubscribe(self, sid: int) -> None:
        """Have it no longer; requests that are open below it end."""
        self._handlers.pop(sid, None)
        self._link.unsubscribe(sid)

    def ask(self, request: Request, then: Callable[[Document | Refusal], None]) -> None:
        """Send a request; `then` is called once, with the answer or a refusal of our own."""

        def answered(found: Document | Refusal) -> None:
            is_silent = self._silence.is_too_long(found, self.now_ms())
            if isinstance(found, Refusal):
                found = self._looked_at(found)
            self._guard(then, found)
            if is_silent and len(self._servers) > 1:
                self._link.leave(OF_NO_USE)

        refusal = self._refusal_of(request)
        if refusal is not None:
            # Not within the call: who asks may be in the middle of something.
            self._scheduler.call_later(0.0, lambda: answered(refusal))
            return
        self._link.write(self._questions.ask(request, answered, self.now_ms()))
        if not self._is_expiring:
            self._is_expiring = True
            self._scheduler.call_later(EXPIRE_S, self._expire)

    def takes(self, request: Request) -> bool:
        """Whether a request is no larger than the server takes; what is would end the connection."""
        return len(request.payload) + len(request.headers) <= self.payload_max

    def _refusal_of(self, request: Request) -> Refusal | None:
        if not self._link.is_open:
            return LINK_LOST
        if self.takes(request):
            return None
        size = len(request.payload) + len(request.headers)
        text = f"{size} octets, and the servers take {self.payload_max}"
        return Refusal(400, TOO_LARGE, text)

    def _looked_at(self, refusal: Refusal) -> Refusal:
        """The same, with why there is no answer, if the server has refused something: it may be that we hear it."""
        if is_no_room(refusal):
            self.trouble(refusal.text, refusal.text)
        if refusal == NO_ANSWER:
            texts, _ = self._troubles.shown(self.now_ms())
            return refusal._replace(text=f"{refusal.text}: {texts[0]}") if texts else refusal
        return refusal

    def _guard(self, callback: Callable[[*Said], None], *said: *Said) -> None:
        """A bug in one queue must not cost the others."""
        try:
            callback(*said)
        except Exception as error:  # noqa: BLE001 - see above
            self.failed(error)

    @property
    def knows_queues(self) -> bool:
        """Whether what other front-ends have declared and deleted is known by now, or is not to be waited for."""
        return self.are_queues_known()

    def publishes(self, stream: str, refused: Callable[[str], None] | None) -> None:
        """Tell `refused` when the server passes on nothing that is published there; None: no longer."""
        if refused is None:
            self._publishers.pop(stream, None)
        else:
            self._publishers[stream] = refused

    def trouble(self, kind: str, text: str, *, is_lasting: bool = False) -> None:
        """The servers refuse something that operators have to see to; `is_lasting`: as long as the connection lasts."""
        wall_ms = self._scheduler.wall_ms()
        self._troubles.hear(kind, text, self.now_ms(), wall_ms, is_lasting=is_lasting)

    def tell(self, stream: str) -> None:
        """Have other front-ends know, soon, that something has changed in a stream."""
        self._news.tell(CHANGED, stream)

    def tell_used(self, stream: str) -> None:
        """Have them know that clients use its queue."""
        self._news.tell(USED, stream)

    def doom(self, stream: str, created: object) -> None:
        """Delete a stream whose queue is gone, and no later one: now, or as soon as the cluster answers."""
        self._doomed[stream] = []
        self._delete(stream, created)

    def when_gone(self, stream: str, then: Callable[[str], None]) -> None:
        """Call `then` when an earlier queue's stream of this name is deleted, at once if there is none.

        It is told why that could not be done yet, or "".
        """
        waiting = self._doomed.get(stream)
        if waiting is None:
            then("")
        else:
            waiting.append(then)

    def _delete(self, stream: str, created: object) -> None:
        self.ask(delete_stream(stream), lambda found: self._deleted(stream, created, found))

    def _deleted(self, stream: str, created: object, found: Document | Refusal) -> None:
        reason = ""
        if isinstance(found, Refusal) and found.error != STREAM_NOT_FOUND:
            reason = found.text
            self._scheduler.call_later(AGAIN_S, lambda: self._delete_again(stream, created))
        waiting = self._doomed.pop(stream)
        if reason:
            self._doomed[stream] = []
        for then in waiting:
            then(reason)

    def _delete_again(self, stream: str, created: object) -> None:
        """It may be gone by now, and its name another one's, which was declared elsewhere since."""

        def on_state(found: Document | Refusal) -> None:
            is_there = not isinstance(found, Refusal) and created in (None, found.get("created"))
            if is_there:
                self._delete(stream, created)
            else:
                self._deleted(stream, created, found)

        self.ask(stream_state(stream), on_state)

    def write(self, data: bytes) -> None:
        """Send, if there is a connection."""
        self._link.write(data)

    @property
    def is_congested(self) -> bool:
        """Whether the server takes less than is written."""
        return self._link.is_congested

    def holds_back(self) -> bool:
        """Whether who publishes here is to wait until it is told that this has eased, since nobody else keeps count."""
        self._is_holding_back |= self._link.is_congested
        return self._link.is_congested

    def _ease(self) -> None:
        if self._is_holding_back:
            self._is_holding_back = False
            self.on_eased()

    def now_ms(self) -> float:
        """Milliseconds that never go back."""
        return self._scheduler.monotonic() * 1000.0

    def _expire(self) -> None:
        self._link.write(self._questions.expire(self.now_ms()))
        self._is_expiring = self._questions.is_waiting
        if self._is_expiring:
            self._scheduler.call_later(EXPIRE_S, self._expire)

    # -- the link's side ----------------------------------------------------------------------------------------

    def opened(self, info: Greeting) -> None:
        """There is a connection."""
        self.payload_max = info.max_payload
        self._silence.opened()
        self._was_lost = False
        self._opened_count += 1
        self._changed_now()
        self._server_names[self._link.server_label] = info.server_name
        self.observer.cluster_connected(self._link.server_label, info.server_name)
        for member in list(self._members):
            self._guard(member.cluster_opened)
        self._scheduler.touch()

    def received(self, deliveries: list[Delivered]) -> None:
        """What one read has brought."""
        for sid, group in groupby(deliveries, _sid):
            self._guard(self._handlers.get(sid, self._give_back), list(group))
        self._scheduler.touch()

    def _on_answers(self, deliveries: list[Delivered]) -> None:
        for delivered in deliveries:
            self._questions.answered(delivered)

    def _give_back(self, deliveries: list[Delivered]) -> None:
        replies = [each.reply for each in deliveries if each.reply.startswith(_ACK_PREFIX)]
        self._link.write(b"".join([encode_publish(reply, NAK) for reply in replies]))

    def drained(self) -> None:
        """What was written has been taken."""
        for member in list(self._members):
            self._guard(member.cluster_drained)
        self._ease()

    def refused(self, text: str) -> None:
        """This account may not do something: nobody else answers who has asked for it."""
        if not is_lasting(text):
            return  # it ends the connection, whose end says so
        subject = published_subject(text)
        self.trouble(kind_of(text), text, is_lasting=not subject)
        self._questions.refused(subject.encode(), Refusal(403, NOT_PERMITTED, text))
        publisher = self._publishers.get(subject.partition(".")[0])
        if publisher is not None:
            self._guard(publisher, text)
        self._scheduler.touch()

    def lost(self, reason: str) -> None:
        """It broke, or could not be made: once again, and then nobody has anything that was lost with it."""
        self._reason = reason
        is_known, self._was_lost = self._was_lost, True
        if is_known:
            return
        if not self._is_stopping:
            if self._opened_count:
                self._changed_now()
            self.observer.cluster_lost(reason)
        self._troubles.lost(self.now_ms())
        self._questions.lost()
        for member in list(self._members):
            self._guard(member.cluster_lost)
        self._ease()
        self._scheduler.touch()

    def _changed_now(self) -> None:
        self._since_ms, self._since_s = self._scheduler.wall_ms(), self._scheduler.monotonic()

    def failed(self, error: Exception) -> None:
        """Something here has a bug."""
        self.observer.bug_found("the cluster", error)
