"""Delivery acknowledgement timeout: channels whose oldest delivery waits for its ack too long are closed.

Nothing is written down when a message is delivered. Once a second the node looks at the channels that have unacked
deliveries and notes how far their delivery tags have come; a tag below a note was delivered by then. So an age is never
overestimated, and underestimated by the distance of two notes: a second, or a twentieth of the age on a channel that
has been busy for so long that its notes were thinned out. On a node with more than `SCAN` connections the first note
of a channel comes later, since only so many are searched for such channels in a second.

State owned: the notes, at most MARKS_MAX a channel, none for a channel without unacked deliveries; which connections
are searched next. As in RabbitMQ only
the oldest delivery of a channel counts, those of basic.get included, and its queue's own timeout (argument or policy)
replaces the node's. Called by the node's sweep.

Source: rabbit_channel:evaluate_consumer_timeout; RabbitMQ's consumers guide.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Protocol

from burrowmq.broker.channel.channel import Channel
from burrowmq.broker.channel.unacked import Delivery
from burrowmq.broker.report.observer import Observer
from burrowmq.broker.turn.clock import Clock
from burrowmq.protocol.errors import PreconditionFailed

MARKS_MAX = 128
SCAN = 500
"""Connections searched in a second for channels that have unacked deliveries since lately."""


class TimedSession(Protocol):
    """What is asked of a connection."""

    @property
    def channels(self) -> Mapping[int, Channel]:
        """Its channels by number."""
        ...


class TagMarks:
    """When a channel's delivery tags had come how far."""

    __slots__ = ("_marks",)

    def __init__(self) -> None:
        self._marks: list[tuple[float, int]] = []

    def __len__(self) -> int:
        return len(self._marks)

    @property
    def first(self) -> float:
        """When the oldest delivery that is out was known to be out first."""
        return self._marks[0][0]

    def age_s(self, now: float, oldest_tag: int, next_tag: int) -> float:
        """Note `next_tag`, the next to be given; returns for how long at least `oldest_tag` has been out."""
        marks = self._marks
        settled = 0
        while settled < len(marks) and marks[settled][1] <= oldest_tag:
            settled += 1
        del marks[:settled]
        if not marks or marks[-1][1] < next_tag:
            marks.append((now, next_tag))
            if len(marks) > MARKS_MAX:
                self._thin()
        return now - self._marks[0][0]

    def since(self, tag: int) -> float | None:
        """When `tag` was known to be out first; None when it came after the last note."""
        return next((at for at, next_tag in self._marks if next_tag > tag), None)

    def _thin(self) -> None:
        """Drop notes so that those left are evenly apart; a tag whose note goes counts from the next one on."""
        marks = self._marks
        step_s = 2 * (marks[-1][0] - marks[0][0]) / MARKS_MAX
        kept = [marks[-1]]
        for mark in reversed(marks[1:-1]):
            if kept[-1][0] - mark[0] >= step_s:
                kept.append(mark)
        self._marks = [marks[0], *reversed(kept)]


class AckTimeouts:
    """The timeouts of one node's channels; `timeout_ms` of None is no limit for queues that set none."""

    def __init__(
        self,
        sessions: Collection[TimedSession],
        clock: Clock,
        observer: Observer,
        timeout_ms: int | None,
    ) -> None:
        self._sessions = sessions
        self._clock = clock
        self._observer = observer
        self._timeout_ms = timeout_ms
        self._marks: dict[Channel, TagMarks] = {}
        self._unsearched: list[TimedSession] = []

    def look(self) -> None:
        """Close the channels that are overdue. O(channels that have unacked deliveries, and `SCAN` connections)."""
        self._look(self._next_searched())

    def look_at_all(self) -> None:
        """The same, and know all channels by now. O(channels)."""
        self._look(list(self._sessions))

    def _look(self, searched: Collection[TimedSession]) -> None:
        now = self._clock.deadline_ms() / 1000
        for session in searched:
            for channel in session.channels.values():
                if channel.unacked.count and channel not in self._marks:
                    self._marks[channel] = TagMarks()
        for channel, marks in list(self._marks.items()):
            if not channel.unacked.count or channel.is_closed:
                del self._marks[channel]
            elif not channel.is_held:
                # A held one waits for its reply: it is looked at when it has got it, and is as old as it is.
                try:
                    self._look_at(channel, marks, now)
                except Exception as error:  # noqa: BLE001 - a bug in one must not keep all others from their timeouts
                    self._observer.bug_found(channel.session.name, error)

    def _next_searched(self) -> list[TimedSession]:
        if not self._unsearched:
            self._unsearched = list(self._sessions)
        found = self._unsearched[-SCAN:]
        del self._unsearched[-SCAN:]
        return found

    def next_due_ms(self) -> int | None:
        """When the next of the channels that were looked at is overdue; None when none can be. O(channels)."""
        now = self._clock.deadline_ms()
        due_ms = (
            round(marks.first * 1000) + timeout_ms + 1
            for channel, marks in self._marks.items()
            if len(marks)
            and channel.unacked.count
            and not channel.is_closed
            and not channel.is_held
            if (timeout_ms := self._timeout_of(next(channel.unacked.oldest_first()))) is not None
        )
        return min((each for each in due_ms if each > now), default=None)

    def age_s(self, channel: Channel, tag: int) -> float:
        """For how long at least an unacked delivery of a channel has been out; 0 until it was looked at."""
        marks = self._marks.get(channel)
        since = None if marks is None else marks.since(tag)
        return 0.0 if since is None else max(0.0, self._clock.deadline_ms() / 1000 - since)

    def _look_at(self, channel: Channel, marks: TagMarks, now: float) -> None:
        oldest = next(channel.unacked.oldest_first())
        tag = oldest.first_tag + oldest.head
        age_s = marks.age_s(now, tag, channel.next_tag)
        timeout_ms = self._timeout_of(oldest)
        if timeout_ms is None or age_s * 1000 <= timeout_ms:
            return
        del self._marks[channel]
        session = channel.session
        consumer_tag = "" if oldest.consumer is None else oldest.consumer.tag
        self._observer.consumer_timed_out(
            session.name, channel.number, consumer_tag, oldest.origin.queue_name, tag, timeout_ms
        )
        session.fail_channel(
            channel,
            PreconditionFailed(
                f"delivery acknowledgement on channel {channel.number} timed out."
                f" Timeout value used: {timeout_ms} ms."
                " This timeout value can be configured, see consumers doc guide to learn more"
            ),
        )

    def _timeout_of(self, oldest: Delivery) -> int | None:
        own = oldest.origin.consumer_timeout_ms
        return self._timeout_ms if own is None else own
