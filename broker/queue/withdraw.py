"""Taking messages out of a queue that nobody was told of, wherever they stand: as if they had never been published.

What a node that stopped had begun to store, and is to be stored again in its order, must not be there twice. They are
no dead letters, and count as nothing that happened. State: none. Called by whoever publishes to the queue next
(`broker.imports`), which has its consumers served again; `browse` has found the messages.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import groupby
from operator import attrgetter

from burrowmq.broker.queue.browse import Seen
from burrowmq.broker.queue.queue import Queue


def withdraw(queue: Queue, messages: Iterable[Seen]) -> list[int]:
    """Take out those that are still ready; gives what the store calls the levels that had some.

    The store is told in the commit that collects, and has to be told that somebody waits for it (`require_acks`): else
    a crash may bring them back.
    """
    ids = []
    by_level = attrgetter("level")
    for number, some in groupby(sorted(messages, key=by_level), by_level):
        found = {each.seq: each.message for each in some}
        level = queue.levels[number]
        for seq, kind in level.remove(found):
            queue.counts.gone(1, found[seq].size, kind)
        if level.has_log:
            ids.append(level.log.queue_id)
    return ids
