"""max-length of a replicated queue as a front-end keeps it: the oldest ready messages go, or no new ones are taken.

What arguments ask for with `x-overflow: reject-publish` the servers do (`stream_settings`). The rest is done here, by
every front-end that has the queue and sees that there are too many:

    looked -> how many are ready -> those of the shelf -> pull the oldest -> enough behind them? -> dead letters, acked

Each delivery says how many messages lie behind it that nobody was given. So a message is dropped only if so many newer
ones are ready as the queue may have, whoever else drops at that moment; what stays goes the way of others that were
pulled. Of octets no delivery says anything: there the last look counts.

Two that drop at once give back what both have pulled in vain. So where several front-ends use a queue, one drops: that
of the lowest name, and the others only when it has not for `TURN_MS`.

What has come back to the servers is first among what is pulled, but they do not tell it from what is handed out: what
came back from here is counted here (`Intake.returned_count`), what came back from elsewhere is not.

A queue is over its limit from when its publish is confirmed until the look and the pull that follow are answered. Who
asks how many there are, or for one of them, waits until that is over (`when_done`).

State owned: the limits, what is over them, the pull under way. Called by `broker.replicated.queue`.
"""

from __future__ import annotations

from collections.abc import Callable
from math import ceil
from typing import Final

from burrowmq.broker.queue.rules.settings import Settings
from burrowmq.broker.replicated.front_end import FrontEnd
from burrowmq.broker.replicated.intake import Intake
from burrowmq.broker.replicated.shelf import Shelf
from burrowmq.broker.replicated.stream import CONSUMER, QueueStream
from burrowmq.cluster import api
from burrowmq.cluster.pin import SETTLED_MS
from burrowmq.cluster.record import RecordError, unpack
from burrowmq.cluster.wire import Delivered, encode_publish
from burrowmq.protocol.codec import Message

STEP_MAX: Final = 1_000
TURN_MS: Final = 1_000.0
HEARD_MS: Final = 3_000.0
"""Whoever has said so long ago that it uses the queue does, as far as one can tell."""
LATER_MS: Final = 4_000.0
"""What was pulled in vain is not pulled again at once: what is too much is not to be had yet."""
PATIENCE_MS: Final = 2_000.0
"""What is asked and not answered for so long is asked again."""


class Excess:
    """That of one queue.

    `drop` is given the oldest messages, with the subjects of their acknowledgements; `drop_here` drops so many of the
    shelf, and says how many; `on_blind` is called when a look is needed.
    """

    def __init__(
        self,
        stream: str,
        front_end: FrontEnd,
        intake: Intake,
        served_limits: tuple[int | None, int | None],
        *,
        drop: Callable[[list[Message], list[bytes]], None],
        drop_here: Callable[[int], int],
        on_blind: Callable[[], None],
        changed: Callable[[], None],
    ) -> None:
        self._stream = stream
        self._front_end = front_end
        self._intake = intake
        self._served_limits = served_limits
        self._drop = drop
        self._drop_here = drop_here
        self._on_blind = on_blind
        self._changed = changed
        self._max_length: int | None = None
        self._max_bytes: int | None = None
        self._is_refusing = False
        self.is_dropping = False
        """Whether the queue has a limit at which its oldest messages go."""
        self._heard_ms: dict[str, float] = {}  # of others, by name
        self._over_ms: float | None = None  # since when there are too many, and another is to drop
        self._sid = 0
        self._inbox = b""
        self._number = 0
        self._asked_ms: float | None = None
        self._later_ms = 0.0  # before that nothing is pulled
        self._left_count = 0  # of the pull under way
        self._pulled: list[Delivered] = []
        self._over_count = 0
        self._over_bytes = 0.0
        self._waiting: list[Callable[[], None]] = []

    def apply(self, settings: Settings) -> None:
        """Put these limits in force."""
        self._max_length, self._max_bytes = settings.max_length, settings.max_length_bytes
        limits = (self._max_length, self._max_bytes)
        is_refusing = settings.overflow == "reject-publish"
        self._is_refusing = settings.is_limited and is_refusing and limits != self._served_limits
        self.is_dropping = settings.is_limited and not is_refusing
        if not self.is_dropping:
            self._settle()

    def _is_beyond(self, ready_count: int, ready_bytes: int) -> bool:
        return (self._max_length is not None and ready_count > self._max_length) or (
            self._max_bytes is not None and ready_bytes > self._max_bytes
        )

    def refuses(self, ready_count: int, ready_bytes: int) -> bool:
        """Whether there is no room for another message."""
        if not self._is_refusing or not self._is_beyond(ready_count + 1, ready_bytes + 1):
            return False
        self._on_blind()  # somebody else may have taken some
        return True

    # -- dropping -------------------------------------------------------------------------------------------------

    @property
    def is_busy(self) -> bool:
        """Whether something is to be dropped."""
        return self._over_count > 0

    def when_done(self, then: Callable[[], None]) -> None:
        """Call `then` once nothing is to be dropped, as far as is known now."""
        self._waiting.append(then)

    def may_be_over(self, ready_count: int, ready_bytes: int) -> bool:
        """Whether something may have to be dropped, with what was published since the last look."""
        return self.is_dropping and self._is_beyond(ready_count, ready_bytes)

    def stored(self, ready_count: int, ready_bytes: int) -> None:
        """There is more in the stream."""
        if self.may_be_over(ready_count, ready_bytes):
            self._on_blind()

    def heard(self, who: str, now_ms: float) -> None:
        """Another front-end uses the queue."""
        if self.is_dropping:
            self._forget(now_ms)  # each life of each has a name of its own
            self._heard_ms[who] = now_ms

    def _forget(self, now_ms: float) -> None:
        self._heard_ms = {
            who: at_ms for who, at_ms in self._heard_ms.items() if now_ms < at_ms + HEARD_MS
        }

    def _is_first(self) -> bool:
        """Whether it is for this front-end to drop."""
        now_ms, mine = self._front_end.now_ms(), self._front_end.token.decode()
        self._forget(now_ms)
        if all(who >= mine for who in self._heard_ms):
            return True
        if self._over_ms is None:
            self._over_ms = now_ms
        return now_ms >= self._over_ms + TURN_MS

    def looked(self, stream: QueueStream, shelf: Shelf) -> None:
        """The stream says anew what lies in it that nobody was given; some more is on the shelf."""
        if not self.is_dropping or self._asked_ms is not None:
            return
        if self._front_end.now_ms() < self._later_ms:
            self._settle()
            return
        if self._max_bytes is not None and not stream.is_exact:
            self._on_blind()
        behind_count = stream.behind + self._intake.returned_count
        behind_bytes = behind_count * stream.byte_count / max(1, stream.message_count)
        here_count, here_bytes = shelf.count, shelf.size
        over_bytes = 0.0
        if self._max_bytes is not None:
            over_bytes = behind_bytes + here_bytes - self._max_bytes
        over_count = 0
        if self._max_length is not None:
            over_count = behind_count + here_count - self._max_length
            if over_count > 0 and here_count:
                over_count -= self._drop_here(min(here_count, over_count))
        if over_bytes > 0:
            mean = behind_bytes / behind_count if behind_count else over_bytes
            over_count = max(over_count, ceil(over_bytes / max(mean, 1.0)))
        self._over_count = max(0, min(over_count, behind_count))
        self._over_bytes = over_bytes if self._over_count else 0.0
        if not self._over_count:
            self._over_ms = None
            self._settle()
        elif self._is_first():
            self._changed()
        else:
            self._on_blind()
            self._settle()

    def send(self, now_ms: float) -> None:
        """Pull what is to be dropped."""
        if self._asked_ms is not None:
            if now_ms < self._asked_ms + PATIENCE_MS:
                return
            self._give_up()
            self._on_blind()
        if self._later_ms and now_ms >= self._later_ms:
            self._later_ms = 0.0
            self._on_blind()
        if self._over_count <= 0 or now_ms < self._intake.returned_ms + SETTLED_MS:
            return
        if not self._sid:
            self._sid, self._inbox = self._front_end.subscribe(self._on_answers)
        self._asked_ms = now_ms
        self._number += 1
        self._left_count = min(self._over_count + self._intake.returned_count, STEP_MAX)
        request = api.pull_now(self._stream, CONSUMER, self._left_count)
        reply = b"%b.%d" % (self._inbox, self._number)
        self._front_end.write(encode_publish(request.subject, request.payload, reply))

    def _on_answers(self, deliveries: list[Delivered]) -> None:
        is_over = False
        for each in deliveries:
            if api.place_of(each.reply) is None:
                is_over |= each.subject == b"%b.%d" % (self._inbox, self._number)
            else:
                self._pulled.append(each)
                self._left_count -= 1
        if self._asked_ms is None:
            self._give_up()  # it was given up before
        elif is_over or self._left_count <= 0:
            self._decide()
        self._changed()

    def _decide(self) -> None:
        """All that was pulled is here: how many of these are too many is known now, as far as they are counted."""
        pulled, self._pulled = self._pulled, []
        behind_count = api.behind_of(pulled[-1].reply) if pulled else 0
        pulled.sort(key=_sequence)  # one that came back meanwhile is older than those before it
        messages: list[Message] = []
        is_vain = bool(pulled)
        for index, each in enumerate(pulled):
            later_count = behind_count + len(pulled) - 1 - index
            is_surplus = self._max_length is not None and later_count >= self._max_length
            if not self.is_dropping or not (is_surplus or self._over_bytes > 0):
                break
            is_vain = False
            try:
                messages.append(unpack(each.payload))
            except RecordError:
                break  # who is given it will say so
            self._over_bytes -= len(each.payload)
        if messages:
            replies = [each.reply for each in pulled[: len(messages)]]
            self._intake.note_returned(replies)
            self._drop(messages, replies)
        if is_vain:
            self._later_ms = self._front_end.now_ms() + LATER_MS
            self._settle()
        self._intake.put(pulled[len(messages) :])
        if self._max_length is not None and messages and len(messages) == len(pulled):
            self._over_count = max(0, behind_count - self._max_length)
            self._asked_ms = None
        if not self._over_count or self._asked_ms is not None:
            self._on_blind()  # there may be more by now
            self._settle()

    def _give_up(self) -> None:
        """What is here of a pull whose rest does not come is as any other that was pulled."""
        pulled, self._pulled = self._pulled, []
        self._intake.put(pulled)
        self._settle()

    def _settle(self) -> None:
        self._asked_ms = None
        self._over_count, self._over_bytes = 0, 0.0
        waiting, self._waiting = self._waiting, []
        for then in waiting:
            then()

    def due_ms(self) -> float | None:
        """When `send` has something to do, if nothing happens; None for never."""
        if self._asked_ms is not None:
            return self._asked_ms + PATIENCE_MS
        if self._over_count > 0:
            return self._intake.returned_ms + SETTLED_MS
        return self._later_ms or None

    def lost(self) -> None:
        """The connection broke: what was asked will not come."""
        self._give_up()

    def end(self) -> None:
        """The queue is gone."""
        if self._sid:
            self._front_end.unsubscribe(self._sid)
            self._sid = 0
        self._settle()


def _sequence(delivered: Delivered) -> int:
    place = api.place_of(delivered.reply)
    assert place is not None, "what has none is no message"
    return place.sequence
