"""burrowmq.broker.imports.move: this node is killed while a part of a batch is stored, and all of it comes once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, TypeVar

import pytest

from burrowmq.broker.imports.inbox import Inbox
from burrowmq.broker.imports.journal import Journal
from burrowmq.broker.imports.move import Kind, Move, Refused, Row
from burrowmq.broker.queue.browse import Seen, browse
from burrowmq.protocol.codec import Message
from tests.support.import_bench import There
from tests.support.messages import body_of, message
from tests.support.queue_bench import QueueBench

T = TypeVar("T")

TOP = 3
BATCH = 9
BY_PRIORITY = [3] * 17 + [2] * 15 + [1] * 9 + [0] * 12
"""The priorities of a queue's messages, as RabbitMQ gives them out: no batch ends where a priority does."""


class Killed(Exception):
    """The process is no more."""


class Life:
    """A run of this node, up to a kill; it begins with what the one before left."""

    def __init__(self, run: int, found: list[Message], kept: Callable[[list[Seen]], list[Seen]]) -> None:  # fmt: skip
        self.run = run
        self.bench = QueueBench(max_priority=TOP)
        self.stored: list[Message] = []
        """What a start finds after a kill."""
        self.commits = 0
        self.dies_at = 0
        self._kept = kept
        for each in found:
            self.bench.publish(each)
        self._durable = self._all()

    def _all(self) -> list[Seen]:
        found: list[Seen] = []
        browse(self.bench.queue, 1_000, found.extend)
        self.bench.run()
        return found

    def queue(self, vhost: str, name: str) -> Any:
        """The only one."""
        return self.bench.queue

    async def commit(self, acked: Iterable[int] = ()) -> Refused:
        """Everything is durable, or the process dies with a part of it written."""
        self.commits += 1
        found = self._all()
        known = {(each.level, each.seq) for each in self._durable}
        if self.commits == self.dies_at:
            new = [each for each in found if (each.level, each.seq) not in known]
            self.stored = [each.message for each in [*self._durable, *self._kept(new)]]
            raise Killed
        self._durable = found
        return frozenset()

    async def may_go_on(self, count: int) -> None:
        """At any rate."""

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Do it at once."""
        return work()

    def now_ms(self) -> int:
        """The wall's clock."""
        return self.bench.scheduler.wall_ms()

    def move(self, path: Path, left: list[Message]) -> None:
        """Move what is left there."""
        inbox = Inbox()
        journal = Journal(path, "/", "q", 1)
        journal.open()
        kind = Kind(
            is_copy=False,
            is_quiet=True,
            trusts_times=False,
            batch=BATCH,
            run=self.run,
            was_down=lambda: False,
        )
        link: Any = There(left, inbox)
        try:
            move = Move(self, link, inbox, journal, Row("/", "q"), kind)
            asyncio.run(move.run(may_come_again=True))
        finally:
            journal.close()


def highest(new: list[Seen]) -> list[Seen]:
    """Only the files of the highest priority that a commit has something of were written."""
    return [each for each in new if each.level == new[0].level]


def lowest(new: list[Seen]) -> list[Seen]:
    """Only those of the lowest."""
    return [each for each in new if each.level == new[-1].level]


def half_of_the_highest(new: list[Seen]) -> list[Seen]:
    """Its run goes into two segments, of which one was written."""
    some = highest(new)
    return some[: len(some) // 2]


@pytest.mark.parametrize("kept", [highest, lowest, half_of_the_highest])
@pytest.mark.parametrize("dies_at", range(1, 7))
def test_a_queue_with_priorities_has_all_of_it_once(
    tmp_path: Path, dies_at: int, kept: Callable[[list[Seen]], list[Seen]]
) -> None:
    left = [
        message(b"%d" % index, persistent=True, priority=priority)
        for index, priority in enumerate(BY_PRIORITY)
    ]
    wanted = [body_of(each.raw) for each in left]
    first = Life(1, [], kept)
    first.dies_at = dies_at
    with pytest.raises(Killed):
        first.move(tmp_path / "journal", left)
    second = Life(2, first.stored, kept)
    second.move(tmp_path / "journal", left)
    assert left == []
    assert second.bench.drain() == wanted
