"""Time passes, and processes follow each other: rest, a look at everything, a clean stop and a start. State: none."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tests.simulation.machine.node import Violation

if TYPE_CHECKING:
    from tests.simulation.machine.run import Run


def wait(run: Run) -> None:
    """Time passes."""
    run.machine.let_pass(run.rng.choice((0.001, 0.02, 0.1, 0.3)))


def idle(run: Run) -> None:
    """Nothing happens for a while: acks are written, segments compacted."""
    run.machine.let_pass(run.rng.choice((1.0, 3.0)))
    if not run.is_faulty:
        run.pump()
        if run.machine.is_at_rest:
            run.model.all_safe(run.machine.faulty())


def look(run: Run) -> None:
    """Compare while it runs, when all is quiet."""
    if run.is_faulty:
        return
    run.quiet(5.0)
    for client in list(run.clients):
        run.lose(client)
    run.quiet(2.0)
    run.auditor.look(is_exact=True)


def restart(run: Run) -> None:
    """A clean stop, and a start."""
    is_power = run.stop()
    starts = run.machine.starts
    run.start()
    # A second start would be that after a crash in the first.
    if run.has_stopped and run.machine.starts == starts + 1 and not run.was_clean():
        raise Violation("a start takes a clean stop for a crash")
    run.adopt(is_power=is_power)


def resegment(run: Run) -> None:
    """A clean stop, and what `burrowmq-store` makes of the store, with other limits."""
    if run.rng.random() < 0.3:
        run.do("crash")
    run.resegment(run.rng.choice((1500, 3000, 20_000)), run.rng.choice((8, 16, 64)))
