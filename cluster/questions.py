"""Requests of the JetStream API that wait for their answers. No I/O, and no clock of its own.

Each request is answered once: by JetStream, or by a refusal of our own when nobody has answered for `ANSWER_MS`, or the
link broke meanwhile (what became of it is not known then: who asks for a change asks again, and all changes that `api`
knows may be repeated), or the server has said that it passes nothing on to that subject.

A server that was just elected, or not yet, may leave unanswered who asks for a state: JetStream lets those be silent
who do not lead, and says nothing when that changes. So such a question is asked again meanwhile.

State owned: who waits, by number. Called by who holds the link, as `cluster.window` is.
"""

from __future__ import annotations

from collections.abc import Callable
from math import inf
from typing import Final, TypeAlias

from burrowmq.cluster.api import Document, Refusal, Request, answer
from burrowmq.cluster.wire import Delivered, encode_publish

ANSWER_MS: Final = 5_000.0
AGAIN_MS: Final = 500.0
"""Who asks for a state asks again after so long, and then after `LATER_MS`."""
LATER_MS: Final = 2_000.0
WAITING_MAX: Final = 10_000
"""More than that are refused at once."""

Then: TypeAlias = Callable[[Document | Refusal], None]
NO_ANSWER: Final = Refusal(0, 0, f"no answer for {ANSWER_MS / 1000:.0f} s")
LINK_LOST: Final = Refusal(0, 0, "the connection to the cluster broke")
TOO_MANY: Final = Refusal(0, 0, f"more than {WAITING_MAX} requests wait")


class _Waiting:
    """One request that is not answered, and when it is to be sent again."""

    __slots__ = ("again_ms", "due_ms", "request", "then")

    def __init__(self, request: Request, then: Then, now_ms: float) -> None:
        is_state = b".INFO." in request.subject
        # Messages for another front-end, which may stand still, are not kept until it is known that it does.
        self.request = request if is_state else Request(request.subject, b"")
        self.then = then
        self.due_ms = now_ms + ANSWER_MS
        self.again_ms = now_ms + AGAIN_MS if is_state else inf


class Questions:
    """Those of one link; answers come to subjects below `inbox`."""

    def __init__(self, inbox: bytes) -> None:
        self._inbox = inbox
        self._number = 0
        self._waiting: dict[int, _Waiting] = {}

    @property
    def is_waiting(self) -> bool:
        """Whether anybody waits for an answer."""
        return bool(self._waiting)

    def ask(self, request: Request, then: Then, now_ms: float) -> bytes:
        """What is to be sent; `then` is called with the answer, once."""
        if len(self._waiting) >= WAITING_MAX:
            then(TOO_MANY)
            return b""
        self._number += 1
        self._waiting[self._number] = _Waiting(request, then, now_ms)
        return self._encoded(self._number, request)

    def _encoded(self, number: int, request: Request) -> bytes:
        reply = b"%b.%d" % (self._inbox, number)
        return encode_publish(request.subject, request.payload, reply, request.headers)

    def answered(self, delivered: Delivered) -> None:
        """An answer has come. One that is late says nothing any more."""
        number = delivered.subject[len(self._inbox) + 1 :]
        if number.isdigit():
            waiting = self._waiting.pop(int(number), None)
            if waiting is not None:
                waiting.then(answer(delivered))

    def refused(self, subject: bytes, refusal: Refusal) -> None:
        """The server passes on nothing that is sent to this subject: the oldest that was is answered with that."""
        for number, waiting in self._waiting.items():
            if waiting.request.subject == subject:
                del self._waiting[number]
                waiting.then(refusal)
                return

    def expire(self, now_ms: float) -> bytes:
        """Refuse those that have waited too long; what is to be sent again."""
        parts = []
        for number, waiting in list(self._waiting.items()):
            if now_ms >= waiting.due_ms:
                del self._waiting[number]
                waiting.then(NO_ANSWER)
            elif now_ms >= waiting.again_ms:
                waiting.again_ms = now_ms + LATER_MS
                parts.append(self._encoded(number, waiting.request))
        return b"".join(parts)

    def lost(self) -> None:
        """The link broke: no answer will come."""
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            each.then(LINK_LOST)
