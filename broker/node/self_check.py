"""BURROWMQ_VERIFY=1: invariants of queues and store are checked after every turn; a broken one ends the process.

The switch is read once, when the process makes its `Machine`: then the node takes a `CheckedScheduler` and a
`CheckedWriter` instead of the plain ones, and everybody else pays nothing. A check that fails is logged as
`invariant_broken`, with the sentence, and ends the process with `EXIT_STATUS` at once, without a stop: what is in
memory is not to be trusted and must not be written. The files then are those of a crash.

After each turn the queues that were touched are looked at (`TOUCHED_LIMIT` of them at most), `SAMPLE` others in
rotation, and what the first virtual hosts remember of their routes; `broker.queue.invariants`,
`broker.vhost.invariants` and `storage.disk.checked_writer` say what they leave out when there is much. State owned: the
rotation. Called by the node's turn, on the loop; the refusal also on the disk thread.

Model: bbolt's BBOLT_VERIFY.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from burrowmq.broker.queue import invariants as queue_invariants
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.report.observer import Observer
from burrowmq.broker.turn.clock import Pumpable
from burrowmq.broker.vhost import invariants as vhost_invariants
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.storage import invariants as store_invariants
from burrowmq.storage.directory.context import StoreContext
from burrowmq.storage.disk.checked_writer import CheckedWriter
from burrowmq.storage.disk.writer import Writer
from burrowmq.storage.engine import Engine
from burrowmq.storage.loop.queue_log import QueueLog

EXIT_STATUS = 70
"""EX_SOFTWARE: an internal error was found."""
TOUCHED_LIMIT = 64
SAMPLE = 4


def refusal(
    observer: Observer, end: Callable[[int], object] | None
) -> Callable[[str], None] | None:
    """What happens when a check has failed, on whatever thread: the sentence is logged, and `end` ends the process.

    None where there is no `end`: then nothing is checked.
    """
    if end is None:
        return None

    def refuse(sentence: str) -> None:
        observer.invariant_broken(sentence)
        end(EXIT_STATUS)

    return refuse


def writer_maker(refuse: Callable[[str], None] | None) -> Callable[[StoreContext], Writer]:
    """What the engine makes its writer with: a checked one where there is a `refuse`."""
    return Writer if refuse is None else functools.partial(CheckedWriter, on_broken=refuse)


def look_of(
    vhosts: Mapping[str, Vhost], engine: Engine, refuse: Callable[[str], None] | None
) -> Callable[[Sequence[Pumpable]], None] | None:
    """What the turn's end is shown to, where there is a `refuse`."""
    return None if refuse is None else SelfCheck(vhosts, engine, refuse).look


class SelfCheck:
    """What one node's turns are followed by; `refuse` is told what does not hold."""

    def __init__(
        self, vhosts: Mapping[str, Vhost], engine: Engine, refuse: Callable[[str], None]
    ) -> None:
        self._vhosts = vhosts
        self._engine = engine
        self._refuse = refuse
        self._rest: Iterator[Queue] = iter(())

    def look(self, touched: Sequence[Pumpable]) -> None:
        """Check the queues that were touched, some others, and the store behind them."""
        queues = {each for each in touched[-TOUCHED_LIMIT:] if isinstance(each, Queue)}
        queues.update(self._sample())
        try:
            for queue in queues:
                queue_invariants.verify(queue)
            for vhost in itertools.islice(self._vhosts.values(), SAMPLE):
                vhost_invariants.verify(vhost)
            store_invariants.verify(self._engine, _logs(queues))
        except AssertionError as error:
            self._refuse(str(error))

    def _sample(self) -> list[Queue]:
        """The next few queues of all; a round begins anew when it is through."""
        sample = list(itertools.islice(self._rest, SAMPLE))
        if len(sample) < SAMPLE:
            vhosts = self._vhosts.values()
            self._rest = iter([queue for vhost in vhosts for queue in vhost.classic_queues()])
        return sample


def _logs(queues: set[Queue]) -> list[QueueLog]:
    used = [queue for queue in queues if not (queue.is_deleted or queue.is_asleep)]
    levels = [level for queue in used for level in queue.levels]
    return [level.log for level in levels if level.has_log]
