"""Taking apart what a node was, when it has ended and its loop will not run any of it again.

A node's parts refer to each other in circles, so that only Python's collector finds out that nobody needs them, at a
time of its own. A server ends with its node, and has no use for this. A program that starts one node after the other
(a test suite) would hold on to dozens of them, each with the loop that it ran on (256 KB) and the messages of its
queues. Owns no state. Called by `embedded.hosted_node`. Nobody may use a node, or a part of one, after this.
"""

from __future__ import annotations

from contextlib import suppress

from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.queue.queue import Queue


def dissolve(running: RunningNode) -> None:
    """Cut the references of those parts that all circles go through: the rest falls apart by itself."""
    for vhost in running.vhosts.values():
        for queue in vhost.queues.values():
            for name in Queue.__slots__:
                with suppress(AttributeError):  # one that sleeps has not all of them
                    delattr(queue, name)
    owners = (
        *running.sessions,
        *running.vhosts.values(),
        *running.engine.take_remains(),
        running.engine,
        running.scheduler,
        running,
    )
    for owner in owners:
        vars(owner).clear()
