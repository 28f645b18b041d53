"""Run plans of the simulated machine until one fails, and say which.

Called in a copy of the process that has a mutant, and once more in one that has none: there the plan has to hold.
Behind moments in which the function runs that the mutant is in, copies of the run lose their power
(`tests.simulation.machine.branches`). A plan that does not end is one that fails. State: none.
"""

from __future__ import annotations

import builtins
import os
import signal
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import NamedTuple

from tests.mutation.mutant import MET
from tests.mutation.plans import plan_by
from tests.simulation.machine.branches import MOST, Branches
from tests.simulation.machine.draw import Plan
from tests.simulation.machine.run import run

PLAN_S = 15  # of a processor: a plan and its copies need 0.3 s


class Found(NamedTuple):
    """What some plans or tests came to: how many ran, the one that failed, and why."""

    ran: int
    by: str
    why: str


class NoEnd(BaseException):
    """A plan does not end. Not an Exception: nobody of the machine is to handle it."""


def attempt(plan: Plan, branches: Branches | None = None) -> str:
    """Run a plan: why it failed, empty if it did not."""

    def give_up(*_: object) -> None:
        raise NoEnd

    signal.signal(signal.SIGPROF, give_up)
    signal.setitimer(signal.ITIMER_PROF, PLAN_S)
    try:
        run(plan, branches)
    except NoEnd:
        return f"it does not end within {PLAN_S} s"
    except Exception as error:
        lines = str(error).strip().splitlines()
        return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
    return ""


def calls_of(names: Sequence[str]) -> list[list[int]]:
    """The calls to the disk that these plans make, as hashes that are good for this process and its copies."""
    found: list[list[int]] = []
    for name in names:
        found.append([])
        plan = plan_by(name)
        attempt(plan, Branches(plan.seed, calls=found[-1]))
    return found


def hunt(
    names: Sequence[str],
    seconds: float,
    copies: int = MOST,
    calls: Mapping[str, Sequence[int]] = MappingProxyType({}),
) -> Found:
    """Run the plans of these names for so many seconds of a processor, each with so many copies.

    `calls`: those that they make to the disk without the mutant, where that is known.
    """
    for number, name in enumerate(names, start=1):
        plan = plan_by(name)
        branches = Branches(plan.seed, copies, expected=calls.get(name, ()))
        setattr(builtins, MET, branches.met)
        reason = attempt(plan, branches)
        if reason:
            return Found(number, name, reason)
        if sum(os.times()[:4]) > seconds:
            return Found(number, "", "")
    return Found(len(names), "", "")
