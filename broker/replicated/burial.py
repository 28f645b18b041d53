"""What dies in a replicated queue: sent off and acknowledged at once, or kept until its dead letters are stored.

At most once, the default: copies go to the dead-letter exchange, whatever becomes of them. At least once (the strategy
of that name, and `overflow: reject-publish`, as RabbitMQ demands): the original stays at this front-end, neither ready
nor handed out, until every queue that its dead letter is for has it; what could not be stored, or goes nowhere, is
tried again. When the front-end dies the servers deliver it once more, as if nobody had rejected it: it may die twice,
but is never lost.

A rejection comes in two steps, since a channel tells first what is rejected and then that it is settled: between them
the messages are known by what they are.

State owned: the originals that are kept. Called by `broker.replicated.serving` and, when messages are forgotten, by the
shelf.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final, TypeAlias

from burrowmq.broker.queue.rules.dead_letter import DeadLetters, Death
from burrowmq.broker.queue.rules.settings import Settings
from burrowmq.broker.queue.run import LOGGED
from burrowmq.broker.replicated.shelf import Shelf
from burrowmq.broker.report.metrics import NodeMetrics
from burrowmq.broker.turn.clock import Scheduler
from burrowmq.protocol.codec import Message
from burrowmq.records import NamedTuple

RETRY_S: Final = 5.0
KEPT_MAX: Final = 4_000
"""With so many kept, no more is taken from the stream."""


Sure: TypeAlias = Callable[[Death, Message, set[str], Callable[[bool], None]], None]


class QuorumDeadLetters(DeadLetters):
    """What dies where no exchange is set is counted as a quorum queue's."""

    __slots__ = ()

    def drop(self, reason: str, count: int) -> None:
        """See there."""
        self._totals.count_dropped(reason, count, of_quorum=True)


class _Kept(NamedTuple):
    """One original: how it died, and which queues have its dead letter."""

    message: Message
    death: Death
    settled: set[str]


class Burial:
    """That of one queue; `sure` publishes a dead letter and tells whether all have it."""

    def __init__(
        self,
        shelf: Shelf,
        dead_letters: DeadLetters,
        sure: Sure,
        scheduler: Scheduler,
        totals: NodeMetrics,
        changed: Callable[[], None],
    ) -> None:
        self._shelf = shelf
        self._dead_letters = dead_letters
        self._sure = sure
        self._scheduler = scheduler
        self._totals = totals
        self._changed = changed
        self._is_sure = False
        self._is_ended = False
        self._rejected: dict[
            int, str
        ] = {}  # reasons, by the identity of messages that are to be settled
        self._kept: dict[int, _Kept] = {}  # by their sequence
        self._failed: set[int] = set()
        self._is_retrying = False
        shelf.on_forget = self._forgotten

    @property
    def count(self) -> int:
        """Originals that are kept."""
        return len(self._kept)

    @property
    def is_full(self) -> bool:
        """Whether so many are kept that no more may come."""
        return len(self._kept) >= KEPT_MAX

    def apply(self, settings: Settings) -> None:
        """Put these in force; what is kept stays so."""
        self._is_sure = (
            settings.is_at_least_once
            and settings.overflow == "reject-publish"
            and settings.dead_letter_exchange is not None
        )

    def reject(self, reason: str, messages: Sequence[Message]) -> None:
        """These have been rejected, and are going to be forgotten."""
        if self._is_sure:
            self._rejected |= {id(message): reason for message in messages}
        else:
            self._dead_letters.send(reason, messages)

    def bury(self, reason: str, seqs: Sequence[int], messages: list[Message]) -> None:
        """These have left the shelf, and nobody is to have them."""
        if self._is_sure:
            self._keep(reason, seqs, messages)
        else:
            self._dead_letters.send(reason, messages)
            self._shelf.forget(seqs, messages, LOGGED)

    def _forgotten(self, seqs: Sequence[int], messages: list[Message]) -> Sequence[int]:
        """Which of these may go at once."""
        if not self._rejected:
            return seqs
        gone = []
        for sequence, message in zip(seqs, messages, strict=True):
            reason = self._rejected.pop(id(message), None)
            if reason is None:
                gone.append(sequence)
            else:
                self._keep(reason, [sequence], [message])
        return gone

    def _keep(self, reason: str, seqs: Sequence[int], messages: list[Message]) -> None:
        death = self._dead_letters.death(reason)
        for sequence, message in zip(seqs, messages, strict=True):
            self._kept[sequence] = _Kept(message, death, set())
            self._try(sequence)

    def _try(self, sequence: int) -> None:
        kept = self._kept[sequence]
        self._sure(
            kept.death,
            kept.message,
            kept.settled,
            lambda is_stored: self._tried(sequence, is_stored=is_stored),
        )

    def _tried(self, sequence: int, *, is_stored: bool) -> None:
        if self._is_ended:
            return
        if is_stored:
            kept = self._kept.pop(sequence)
            self._totals.count_stored(kept.death.reason, 1)
            self._shelf.forget([sequence], [kept.message], LOGGED)
            self._changed()
            return
        self._failed.add(sequence)
        if not self._is_retrying:
            self._is_retrying = True
            self._scheduler.call_later(RETRY_S, self._retry)

    def _retry(self) -> None:
        self._is_retrying = False
        failed, self._failed = self._failed, set()
        if not self._is_ended:
            for sequence in sorted(failed):
                self._try(sequence)
            self._scheduler.touch()

    def end(self) -> None:
        """The queue is gone, and what it has kept."""
        self._is_ended = True
        self._kept.clear()
        self._rejected.clear()
