"""What always holds of the loop side of the store between two turns, for BURROWMQ_VERIFY=1 and for tests.

`verify` raises AssertionError with a sentence that names the queue and both figures. It looks at what the engine and
its queue logs keep to themselves, as only a check may, changes nothing and reads no file. State: none. Called by
`broker.node.turn_check` at the end of a turn, for the logs of the queues that it looks at, and by tests.
`storage.disk.invariants` is the same for the disk side.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from burrowmq.storage.engine import Engine
from burrowmq.storage.loop.queue_log import QueueLog

COMMAND_LIMIT = 1000
"""Commands of the collecting commit up to which each is looked at."""


def verify(engine: Engine, logs: Iterable[QueueLog]) -> None:
    """Raise AssertionError with the first rule that does not hold of the engine or of one of its open logs.

    A store that has failed, or is being closed, in a thread of its own, promises nothing any more.
    """
    for place, sentence in _broken(engine, logs):
        # Asked now: the engine may be closed while it is looked at.
        if engine._backend is not None and engine.failure is None:
            raise AssertionError(f"{place}: {sentence}")


def _broken(engine: Engine, logs: Iterable[QueueLog]) -> Iterator[tuple[str, str]]:
    yield from (("store", sentence) for sentence in _commits(engine))
    for log in logs:
        yield from ((f"store of {log.names}", sentence) for sentence in _log(engine, log))


def _commits(engine: Engine) -> Iterator[str]:
    """Epochs follow each other, the room that is left and who is told of it are right, what is touched is noted."""
    commit, in_flight = engine._collecting, engine._in_flight
    limit = engine.options.backlog_limit
    if commit.epoch != engine.epoch:
        yield f"epoch {engine.epoch}, and the commit that collects is of {commit.epoch}"
    if in_flight is not None and in_flight.epoch != engine.epoch - 1:
        yield f"epoch {engine.epoch}, and the commit in flight is of {in_flight.epoch}"
    taken = in_flight.size if in_flight is not None else 0
    if engine._room_bytes != limit - taken:
        yield f"{taken} of {limit} bytes are in flight, the room that is left is {engine._room_bytes}"
    is_beyond, is_low = commit.size > engine._room_bytes, engine.backlog_bytes < limit // 2
    if is_low if engine._is_over_backlog else is_beyond:
        yield f"over the backlog's limit: {engine._is_over_backlog}, with {engine.backlog_bytes} of {limit} bytes"
    if len(commit.commands) <= COMMAND_LIMIT:
        missing = {command.queue_id for command in commit.commands} - commit.touched
        if missing:
            yield f"queue {min(missing)} has commands in the commit and is not among those it touches"


def _log(engine: Engine, log: QueueLog) -> Iterator[str]:
    """Runs are in order, apart and counted, and wait for no commit that is finished; so do acks."""
    if engine._logs.get(log.queue_id) is not log:
        yield f"queue {log.queue_id} is open and unknown to the engine"
    runs = log._runs
    for run in runs:
        if run.end_seq != run.first_seq + len(run.messages) or run.end_seq > log.next_seq:
            yield (
                f"a run of {len(run.messages)} messages from {run.first_seq} to {run.end_seq - 1}, "
                f"the next id is {log.next_seq}"
            )
    for left, right in pairwise(runs):
        if left.end_seq > right.first_seq:
            yield f"runs {left.first_seq}..{left.end_seq - 1} and {right.first_seq}.. overlap"
    size = sum(run.size for run in runs)
    is_owed = log.queue_id in engine._owed  # what the disk refuses stays in memory after its commit
    if log._runs_bytes != size or (size > engine.backlog_bytes and not is_owed):
        yield f"runs hold {size} bytes, {log._runs_bytes} are counted, {engine.backlog_bytes} staged"
    if log._applied_seq > log.next_seq:
        yield f"ids below {log._applied_seq} are on disk, the next id is {log.next_seq}"
    oldest = 0 if is_owed else engine.epoch - (engine._in_flight is not None)
    epochs = [run.epoch for run in runs] + [epoch for _, _, epoch in log._acked]
    if epochs and not oldest <= min(epochs) <= max(epochs) <= engine.epoch:
        yield (
            f"runs or acks of epochs {min(epochs)}..{max(epochs)} are kept, "
            f"and commits {oldest}..{engine.epoch} are not finished"
        )
