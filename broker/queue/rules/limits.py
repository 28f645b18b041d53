"""Length limits: what is refused of what arrives, and what is dropped from the head.

`publish` is what every run goes through in a queue with limits, TTL or priorities: it decides what is refused
(reject-publish, before anything else) and drops from the head afterwards (drop-head); what is accepted goes on by
`accept`. Count and bytes are those of ready messages: what waiting consumers take at once never counts.

State owned: the limits in force. Drops are dead letters where the queue says so (`rules.dead_letter`).

Sources: the queue length limit guide; rabbit_amqqueue_process (maybe_deliver_or_enqueue, maybe_drop_head).
"""

from __future__ import annotations

from collections.abc import Callable

from burrowmq.broker.queue.counts import Counts
from burrowmq.broker.queue.order.levels import Levels
from burrowmq.broker.queue.outcome import PENDING, Rejected
from burrowmq.broker.queue.rules.dead_letter import DeadLetters
from burrowmq.broker.queue.rules.expiry import Expiry
from burrowmq.broker.queue.rules.settings import Overflow, Settings
from burrowmq.protocol.codec import Message, body_bytes

NO_LIMIT = 1 << 62
LOAD_COUNT = 2048
LOAD_BYTES = 1 << 20


class Limits:
    """Those of one queue.

    `accept` enqueues messages (a run, its flags, its size), refusing none; `taken_next` says how many of so many
    messages waiting consumers would take at once.
    """

    __slots__ = (
        "_accept",
        "_counts",
        "_dead_letters",
        "_expiry",
        "_levels",
        "_most",
        "_most_bytes",
        "_taken_next",
        "overflow",
    )

    def __init__(
        self,
        levels: Levels,
        counts: Counts,
        expiry: Expiry,
        dead_letters: DeadLetters,
        *,
        accept: Callable[[list[Message], int, int], int],
        taken_next: Callable[[int], int],
    ) -> None:
        self._levels = levels
        self._counts = counts
        self._expiry = expiry
        self._dead_letters = dead_letters
        self._accept = accept
        self._taken_next = taken_next
        self._most = self._most_bytes = NO_LIMIT
        self.overflow: Overflow = "drop-head"

    def apply(self, settings: Settings) -> None:
        """What is in force from now on; `enforce` drops what is too much."""
        most, most_bytes = settings.max_length, settings.max_length_bytes
        self._most = NO_LIMIT if most is None else most
        self._most_bytes = NO_LIMIT if most_bytes is None else most_bytes
        self.overflow = settings.overflow
        self._levels.keep_sizes(is_on=self.are_set)

    @property
    def are_set(self) -> bool:
        """Whether there is any limit."""
        return self._most != NO_LIMIT or self._most_bytes != NO_LIMIT

    @property
    def are_exceeded(self) -> bool:
        """Whether more is ready than there should be."""
        levels = self._levels
        return levels.ready_count > self._most or levels.ready_bytes > self._most_bytes

    # -- arrivals -----------------------------------------------------------------------------------------------

    def publish(self, messages: list[Message], flags: int, size: int) -> int | Rejected:
        """Publish a run under the limits; same answer as `Queue.publish`."""
        if self._refusals(messages):
            if len(messages) > 1 and self._is_any_due(messages, flags):
                return self._publish_singly(messages)
            return self._publish_some(messages, flags)
        outcome = self._accept(messages, flags, size)
        if self.overflow == "drop-head":
            self.enforce()
        return outcome

    def _is_any_due(self, messages: list[Message], flags: int) -> bool:
        deadlines = self._expiry.deadlines(messages, flags)
        return deadlines is not None and self._expiry.is_any_due(deadlines)

    def _publish_singly(self, messages: list[Message]) -> int | Rejected:
        """Publish a run of which some expire when they arrive: these take no room, unless a consumer has them."""
        outcome = 0
        refused = []
        for place, message in enumerate(messages):
            answer = self.publish([message], message.flags, message.size)
            if isinstance(answer, Rejected):
                refused.append(place)
            else:
                outcome |= answer
        return Rejected(refused, outcome == PENDING) if refused else outcome

    def _publish_some(self, messages: list[Message], flags: int) -> int | Rejected:
        """Publish a run that has more than there is room for: what waiting consumers take needs none.

        RabbitMQ decides message by message, each before it is delivered. The same in fewer steps: while the queue is
        empty, the next messages that fit an empty queue, as many as the consumers that are served next take at once.
        """
        places = self._fitting(messages)
        outcome = taken = 0
        while not self._levels.ready_count and (count := self._taken_next(len(places) - taken)):
            part = [messages[place] for place in places[taken : taken + count]]
            outcome |= self._accept(part, flags, body_bytes(part))
            taken += count
        left = places[taken:]
        over = set(self._refusals([messages[place] for place in left]))
        accepted = [place for index, place in enumerate(left) if index not in over]
        kept = {*places[:taken], *accepted}
        refused = [place for place in range(len(messages)) if place not in kept]
        if refused and self.overflow == "reject-publish-dlx":
            self._dead_letters.send("maxlen", [messages[place] for place in refused])
        if accepted:
            part = [messages[place] for place in accepted]
            outcome |= self._accept(part, flags, body_bytes(part))
        return Rejected(refused, outcome == PENDING) if refused else outcome

    def _refusals(self, messages: list[Message]) -> list[int]:
        """Places of the messages that reject-publish has no room for, were no consumer waiting; empty for drop-head."""
        if self.overflow == "drop-head" or not self.are_set:
            return []
        count, size = self._levels.ready_count, self._levels.ready_bytes
        refused = []
        for index, message in enumerate(messages):
            if count + 1 > self._most or size + message.size > self._most_bytes:
                refused.append(index)
            else:
                count += 1
                size += message.size
        return refused

    def _fitting(self, messages: list[Message]) -> list[int]:
        """Places of the messages that an empty queue has room for; no consumer gets the others."""
        if not self._most:
            return []
        return [place for place, each in enumerate(messages) if each.size <= self._most_bytes]

    # -- at the head --------------------------------------------------------------------------------------------

    def enforce(self) -> None:
        """Drop from the head until the queue is within its length limits (drop-head).

        What lies on disk with a dead-letter exchange set must be read before it goes; then the rest happens when the
        read is done, and this is called again.
        """
        if self.overflow != "drop-head" or not self.are_set:
            return
        levels = self._levels
        has_dropped = False
        while True:
            over = levels.ready_count - self._most
            over_bytes = levels.ready_bytes - self._most_bytes
            if over <= 0 and over_bytes <= 0:
                if has_dropped and levels.has_expiries:
                    # What comes to the head may have expired behind it.
                    self._expiry.drop_expired()
                return
            max_count = over if over > 0 else NO_LIMIT
            max_bytes = over_bytes if over <= 0 else NO_LIMIT
            if not self._drop(max_count, max_bytes):
                return
            has_dropped = True

    def _drop(self, max_count: int, max_bytes: int) -> bool:
        """Drop one run from the head of the highest level that has messages; False when it must be read first."""
        backlog = self._levels.head()
        assert backlog is not None, "more is ready than there should be"
        run = backlog.take(max_count, max_bytes)
        if run is not None:
            self._dead_letters.send("maxlen", run.messages)
            self._counts.gone(len(run.messages), run.size, run.kind)
            backlog.forget(run.seqs, run.messages, run.kind)
            return True
        if self._dead_letters.is_off:
            dropped = backlog.drop_disk(max_count, max_bytes)
            if dropped is not None:
                self._dead_letters.drop("maxlen", dropped[0])
                self._counts.gone(*dropped)
                return True
        backlog.load(min(max_count, LOAD_COUNT), LOAD_BYTES)
        return not backlog.is_loading
