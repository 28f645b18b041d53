"""When a change counts: what was staged is written at the end of a turn, and a reply may wait for it.

Owns no state; the modules beside this one call `staged` after each change, the server calls `durable` before it
answers. Never waits longer than `COMMIT_TIMEOUT_S`, nor for a store that has failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import TypeVar

from burrowmq.broker.node.running import RunningNode
from burrowmq.broker.queue.outcome import Outcome, Rejected
from burrowmq.broker.queue.port import QueuePort
from burrowmq.management.answers.reply import ApiError
from burrowmq.protocol.errors import AmqpError, PreconditionFailed

COMMIT_TIMEOUT_S = 10.0
PASSES_MAX = 1000
"""Passes of the loop after which a turn is not waited for any more; one or two do."""
T = TypeVar("T")


def staged(node: RunningNode) -> None:
    """Something may have been staged in the store, or become deliverable: the end of this turn takes care of it."""
    node.scheduler.touch()


async def durable(node: RunningNode) -> None:
    """Return when everything staged so far is on disk, and agreed with other front-ends.

    Raises: ApiError 503 when the store does not answer, or the cluster; PreconditionFailed when that never takes it.
    """
    share = node.replication.share
    if share is not None and share.is_waiting:
        await proposed(share.when_agreed)
    await _done(node, _waiter(node, lambda _: None))


async def turned(node: RunningNode) -> None:
    """Return when a turn has ended, and with it what is said to clients so far is on its way; the disk is not asked."""
    turns = node.scheduler.turns
    node.scheduler.touch()
    for _ in range(PASSES_MAX):  # a stopped application has none
        if node.scheduler.turns != turns:
            return
        await asyncio.sleep(0)


def require_cluster(node: RunningNode) -> None:
    """Refuse what all front-ends have to agree on, and cannot be taken back. Raises: ApiError 503."""
    share = node.replication.share
    if share is not None and share.rows.is_away:
        raise ApiError(503, "unavailable", share.rows.away_reason)


async def proposed(
    propose: Callable[[Callable[[AmqpError | None], None]], None], words: str = ""
) -> None:
    """Return when other front-ends have agreed to something. Raises: ApiError 503 when they have not, AmqpError."""
    await _asked(propose, "the cluster does not answer", words)


def refused(node: RunningNode) -> Coroutine[None, None, frozenset[tuple[str, str]]]:
    """The same for messages: the queues (virtual host, name) of which the disk has refused some of what is staged now.

    It may be awaited later, whatever is staged until then. Raises: ApiError 503.
    """
    return _done(node, refused_later(node))


def refused_later(node: RunningNode) -> asyncio.Future[frozenset[tuple[str, str]]]:
    """The same for whoever does not give up waiting; never done where the store fails, or the application stops."""
    return _waiter(node, node.queue_faults.refused_in)


def _waiter(node: RunningNode, found: Callable[[int], T]) -> asyncio.Future[T]:
    """Gets what is `found` about the commit that collects now at the moment when it is done."""
    waiter: asyncio.Future[T] = asyncio.get_running_loop().create_future()
    epoch = node.engine.epoch

    def on_committed() -> None:
        if not waiter.done():
            waiter.set_result(found(epoch))

    node.engine.require_sync()
    node.scheduler.when_committed(epoch, on_committed)
    node.scheduler.touch()
    return waiter


async def _done(node: RunningNode, waiter: asyncio.Future[T]) -> T:
    await asyncio.wait(
        (waiter, node.failed), timeout=COMMIT_TIMEOUT_S, return_when=asyncio.FIRST_COMPLETED
    )
    if not waiter.done():
        full = node.alarms.causes.get("store", "")
        why = f" yet: {full}" if full else "; see the log"
        raise ApiError(503, "store_failed", f"the change was not written to disk{why}")
    return waiter.result()


async def counted(queue: QueuePort) -> None:
    """Return when it is known how many messages a queue has, and what was asked of it before is done.

    Raises: ApiError 503 when that cannot be learnt.
    """
    await _answered(queue, queue.ask)


async def released(queue: QueuePort) -> None:
    """Return when a queue that is to be deleted has let go of what it has elsewhere. Raises: ApiError 503."""
    await _answered(queue, queue.release)


async def _answered(
    queue: QueuePort, ask: Callable[[Callable[[AmqpError | None], None]], None]
) -> None:
    await _asked(ask, f"queue '{queue.name}' does not answer")


async def _asked(
    ask: Callable[[Callable[[AmqpError | None], None]], None], silence: str, words: str = ""
) -> None:
    answer: asyncio.Future[AmqpError | None] = asyncio.get_running_loop().create_future()

    def on_answer(error: AmqpError | None) -> None:
        if not answer.done():
            answer.set_result(error)

    ask(on_answer)
    await asyncio.wait((answer,), timeout=COMMIT_TIMEOUT_S)
    error = answer.result() if answer.done() else None
    if isinstance(error, PreconditionFailed):  # nor another time
        raise error
    if error is not None or not answer.done():
        raise ApiError(503, "unavailable", f"{words}{error or silence}")


async def taken(outcome: Outcome) -> bool:
    """Whether a queue takes what it was given, when that is known; whether the disk does is for `refused` to say.

    Raises: ApiError 503 when a queue that is kept elsewhere does not say.
    """
    if isinstance(outcome, int | Rejected):
        return not isinstance(outcome, Rejected)
    if not outcome.is_done:
        done = asyncio.Event()
        outcome.on_done = done.set
        try:
            await asyncio.wait_for(done.wait(), COMMIT_TIMEOUT_S)
        except TimeoutError:
            raise ApiError(
                503, "cluster_silent", "the cluster does not say that it has it"
            ) from None
    return not outcome.refused
