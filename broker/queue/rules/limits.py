"""Length limits: what is refused of what arrives, and what is dropped from the head.

`publish` is what every run goes through in a queue with limits, TTL or priorities: it decides what is refused
(reject-publish) or dropped (drop-head), as if each message came alone; what is accepted goes on by `accept`. Count and
bytes are those of ready messages: what waiting consumers take at once never counts. What a run drops of itself is never
stored. When `publish` returns, no more is ready than there may be. One exception: messages of unknown size on disk
(found there at a start, or older than the limit) have to be read before they go, and count until then.

State owned: the limits in force. What is dropped goes where `rules.drops` sends it.

Sources: the queue length limit guide; rabbit_amqqueue_process (maybe_deliver_or_enqueue, maybe_drop_head).
"""

from __future__ import annotations

from collections.abc import Callable

from burrowmq.broker.queue.counts import Counts
from burrowmq.broker.queue.order.backlog import Backlog
from burrowmq.broker.queue.order.levels import Levels
from burrowmq.broker.queue.outcome import PENDING, Rejected
from burrowmq.broker.queue.rules.drops import Drops, drops_by_level
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
        "_expiry",
        "_levels",
        "_most",
        "_most_bytes",
        "_taken_next",
        "drops",
        "overflow",
    )

    def __init__(
        self,
        levels: Levels,
        counts: Counts,
        expiry: Expiry,
        drops: Drops,
        *,
        accept: Callable[[list[Message], int, int], int],
        taken_next: Callable[[int], int],
    ) -> None:
        self._levels = levels
        self._counts = counts
        self._expiry = expiry
        self.drops = drops
        """Where what is dropped goes."""
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

    def end(self) -> None:
        """The queue is gone, and what was dropped and waits with it."""
        self.drops.end()

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
        if not self.are_set:
            return self._accept(messages, flags, size)
        if self.overflow == "drop-head":
            if self.has_room(len(messages), size):
                return self._accept(messages, flags, size)
            return self._publish_dropping(messages, flags)
        if not self._refusals(messages):
            return self._accept(messages, flags, size)
        if len(messages) > 1 and self._is_any_due(messages, flags):
            return self._publish_singly(messages)
        return self._publish_some(messages, flags)

    def has_room(self, count: int, size: int) -> bool:
        """Whether so many messages, of so many bytes, may be ready besides those that are."""
        levels = self._levels
        return levels.ready_count + count <= self._most and (
            self._most_bytes == NO_LIMIT or levels.ready_bytes + size <= self._most_bytes
        )

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
            self.drops.send([messages[place] for place in refused])
        if accepted:
            part = [messages[place] for place in accepted]
            outcome |= self._accept(part, flags, body_bytes(part))
        return Rejected(refused, outcome == PENDING) if refused else outcome

    def _refusals(self, messages: list[Message]) -> list[int]:
        """Places of the messages that reject-publish has no room for, were no consumer waiting."""
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

    def _publish_dropping(self, messages: list[Message], flags: int) -> int | Rejected:
        """Publish a run that has more than there is room for (drop-head): what waiting consumers take needs none."""
        levels = self._levels
        if len(messages) > 1 and self._is_each_different(messages, flags):
            return self._publish_singly(messages)
        outcome = 0
        while not levels.ready_count and messages and (count := self._taken_next(len(messages))):
            part, messages = messages[:count], messages[count:]
            outcome |= self._accept(part, flags, body_bytes(part))
        decide = self._drop_by_level if len(levels) > 1 else self._drop_before
        kept = decide(messages)
        if len(levels) > 1 and len(kept) > 1 and self.drops.are_waiting:
            # What they push out has to wait for a read: in its order only if they come one by one.
            for message in kept:
                outcome |= self._accept([message], flags, message.size)
                self.enforce()
        elif kept:
            outcome |= self._accept(kept, flags, body_bytes(kept))
        if len(kept) < len(messages):
            # What became of the others is as durable as they are.
            outcome |= self.drops.outcome(flags)
        self.enforce()
        if levels.has_expiries:
            self._expiry.drop_expired()
        return outcome

    def _is_each_different(self, messages: list[Message], flags: int) -> bool:
        """Whether what is dropped after a message depends on more than how many there are. Rare; looked at singly."""
        if self._is_any_due(messages, flags):
            return True
        return len(self._levels) > 1 and self._most_bytes != NO_LIMIT

    def _drop_before(self, messages: list[Message]) -> list[Message]:
        """Drop what messages that arrive have no room for even in an empty queue, and before it all that is ready.

        Returns what is to be accepted: all, where what is ready can not be sent on before them.
        """
        excess = self._excess(messages)
        if not excess:
            return messages
        if not self._shrink(0, 0) or self.drops.are_waiting:
            return messages
        self.drops.send(messages[:excess])
        return messages[excess:]

    def _excess(self, messages: list[Message]) -> int:
        """How many of these, from the first on, do not stay in a queue that has nothing else."""
        excess = max(len(messages) - self._most, 0)
        if self._most_bytes != NO_LIMIT:
            size = body_bytes(messages[excess:])
            while size > self._most_bytes:
                size -= messages[excess].size
                excess += 1
        return excess

    def _drop_by_level(self, messages: list[Message]) -> list[Message]:
        """Drop what has to go for messages of several priorities, of what is ready and of themselves, in turn."""
        if self.drops.are_waiting:
            return messages
        levels = self._levels
        kept = set(range(len(messages)))
        for level, what in drops_by_level(messages, [each.count for each in levels], self._most):
            if isinstance(what, int):
                if not self._drop_from(levels[level], what):
                    break
            else:
                self.drops.send([messages[place] for place in what])
                kept.difference_update(what)
        return [messages[place] for place in sorted(kept)]

    def _drop_from(self, backlog: Backlog, count: int) -> bool:
        """Drop so many of a level; False when it takes a read before anything else may go."""
        while count > 0:
            before = backlog.count
            if not self._drop(backlog, count, NO_LIMIT):
                return False
            count -= before - backlog.count
        return not self.drops.are_waiting

    def enforce(self) -> None:
        """Drop from the head until the queue is within its length limits (drop-head).

        What lies on disk in sizes that nobody knows must be read before it goes; then the rest happens when the read
        is done, and this is called again.
        """
        if self.overflow == "drop-head" and self.are_set:
            self._shrink(self._most, self._most_bytes)

    def _shrink(self, most: int, most_bytes: int) -> bool:
        """Drop from the head until no more than this is ready; False when something must be read first."""
        levels = self._levels
        while True:
            over = levels.ready_count - most
            over_bytes = levels.ready_bytes - most_bytes
            if over <= 0 and over_bytes <= 0:
                return True
            max_count = over if over > 0 else NO_LIMIT
            max_bytes = over_bytes if over <= 0 else NO_LIMIT
            backlog = levels.head()
            assert backlog is not None, "more is ready than there should be"
            if levels.has_expiries:
                # What comes to the head may have expired behind it: that is no drop.
                max_count = self._expiry.live_count(backlog, max_count)
            if not self._drop(backlog, max_count, max_bytes):
                return False
            if levels.has_expiries:
                self._expiry.drop_expired()

    def _drop(self, backlog: Backlog, max_count: int, max_bytes: int) -> bool:
        """Drop one run from the head of a level; False when it must be read first."""
        run = backlog.take(max_count, max_bytes)
        if run is not None:
            self.drops.bury(backlog, run)
            self._counts.gone(len(run.messages), run.size, run.kind)
            return True
        unread = backlog.take_unread(max_count, max_bytes)
        if unread is not None:
            seqs, size, kind = unread
            self.drops.bury_unread(backlog, seqs)
            self._counts.gone(len(seqs), size * len(seqs), kind)
            return True
        backlog.load(min(max_count, LOAD_COUNT), LOAD_BYTES)
        return not backlog.is_loading
