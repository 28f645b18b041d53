"""Requests of the JetStream API that wait for their answers. No I/O, and no clock of its own.

Each request is answered once: by JetStream, or by a refusal of our own when nobody has answered for `ANSWER_MS`, or the
link broke meanwhile (what became of it is not known then: who asks for a change asks again, and all changes that `api`
knows may be repeated), or the server has said that it passes nothing on to that subject.

State owned: who waits, by number. Called by who holds the link, as `cluster.window` is.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from burrowmq.cluster.api import Document, Refusal, Request, answer
from burrowmq.cluster.wire import Delivered, encode_publish

ANSWER_MS: Final = 5_000.0
WAITING_MAX: Final = 10_000
"""More than that are refused at once."""

Then: TypeAlias = Callable[[Document | Refusal], None]
NO_ANSWER: Final = Refusal(0, 0, f"no answer for {ANSWER_MS / 1000:.0f} s")
LINK_LOST: Final = Refusal(0, 0, "the connection to the cluster broke")
TOO_MANY: Final = Refusal(0, 0, f"more than {WAITING_MAX} requests wait")


class Questions:
    """Those of one link; answers come to subjects below `inbox`."""

    def __init__(self, inbox: bytes) -> None:
        self._inbox = inbox
        self._number = 0
        self._waiting: dict[int, tuple[float, Then, bytes]] = {}

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
        self._waiting[self._number] = now_ms + ANSWER_MS, then, request.subject
        reply = b"%b.%d" % (self._inbox, self._number)
        return encode_publish(request.subject, request.payload, reply, request.headers)

    def answered(self, delivered: Delivered) -> None:
        """An answer has come. One that is late says nothing any more."""
        number = delivered.subject[len(self._inbox) + 1 :]
        if number.isdigit():
            waiting = self._waiting.pop(int(number), None)
            if waiting is not None:
                waiting[1](answer(delivered))

    def refused(self, subject: bytes, refusal: Refusal) -> None:
        """The server passes on nothing that is sent to this subject: the oldest that was is answered with that."""
        for number, (_, then, asked) in self._waiting.items():
            if asked == subject:
                del self._waiting[number]
                then(refusal)
                return

    def expire(self, now_ms: float) -> None:
        """Refuse those that have waited too long."""
        for number, (due_ms, then, _) in list(self._waiting.items()):
            if now_ms < due_ms:
                break  # they are in the order in which they were asked
            del self._waiting[number]
            then(NO_ANSWER)

    def lost(self) -> None:
        """The link broke: no answer will come."""
        waiting, self._waiting = self._waiting, {}
        for _, then, _ in waiting.values():
            then(LINK_LOST)
