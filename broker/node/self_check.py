"""BURROWMQ_VERIFY=1: invariants of queues and store are checked after every turn; a broken one ends the process.

The switch is read once, when the process makes its `Machine`: then the node takes a `CheckedScheduler` and a
`CheckedWriter` instead of the plain ones, and everybody else pays nothing. A check that fails is logged as
`invariant_broken`, with the sentence, and ends the process with `EXIT_STATUS` at once, without a stop: what is in
memory is not to be trusted and must not be written. The files then are those of a crash.

What looks is loaded only where something is looked at: `broker.node.turn_check` after each turn,
`storage.disk.checked_writer` at each commit. Owns no state. The refusal is called on the loop, and on the disk thread.

Model: bbolt's BBOLT_VERIFY.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence

from burrowmq.broker.report.observer import Observer
from burrowmq.broker.turn.clock import Pumpable
from burrowmq.broker.vhost.vhost import Vhost
from burrowmq.storage.directory.context import StoreContext
from burrowmq.storage.disk.writer import Writer
from burrowmq.storage.engine import Engine

EXIT_STATUS = 70
"""EX_SOFTWARE: an internal error was found."""


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
    if refuse is None:
        return Writer
    from burrowmq.storage.disk.checked_writer import CheckedWriter  # noqa: PLC0415 - see above

    return functools.partial(CheckedWriter, on_broken=refuse)


def look_of(
    vhosts: Mapping[str, Vhost], engine: Engine, refuse: Callable[[str], None] | None
) -> Callable[[Sequence[Pumpable]], None] | None:
    """What the turn's end is shown to, where there is a `refuse`."""
    if refuse is None:
        return None
    from burrowmq.broker.node.turn_check import TurnCheck  # noqa: PLC0415 - see above

    return TurnCheck(vhosts, engine, refuse).look
