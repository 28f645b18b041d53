"""What BURROWMQ_VERIFY=1 looks at after every turn of a node.

The queues that were touched (`TOUCHED_LIMIT` of them at most), `SAMPLE` others in rotation, and what the first virtual
hosts remember of their routes; `broker.queue.invariants`, `broker.vhost.invariants` and `storage.invariants` say what
they leave out when there is much. State owned: the rotation. Made by `broker.node.self_check`, called on the loop.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping, Sequence

from burrowmq.broker.queue import invariants as queue_invariants
from burrowmq.broker.queue.queue import Queue
from burrowmq.broker.turn.clock import Pumpable
from burrowmq.broker.vhost import invariants as vhost_invariants
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.storage import invariants as store_invariants
from burrowmq.storage.engine import Engine
from burrowmq.storage.loop.queue_log import QueueLog

TOUCHED_LIMIT = 64
SAMPLE = 4


class TurnCheck:
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
