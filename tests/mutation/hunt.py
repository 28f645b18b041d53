"""`python -m tests.mutation.hunt`: run seeds of the simulated machine until one fails, and say which.

It is started in a tree that has a mutant, and once more in one that has none: there the seed has to hold. Seeds run in
turn without and with failing calls; behind the first of them come the plans that failed once. Prints one line of JSON:
how many ran, and the one that failed with its reason. A seed that does not end is one that fails.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import resource
import signal
import sys
import time
from collections.abc import Iterator

from tests.simulation.machine.plans import failed
from tests.simulation.machine.run import Plan, plan_of, run

SEED_S = 60
SEEDS_BEFORE_PLANS = 10
MEMORY_BYTES = 4 << 30


def plans(first: int) -> Iterator[tuple[str, Plan]]:
    """Plans with their names, without end."""
    kept = [(f"plan {number}", plan) for number, (plan, _) in enumerate(failed())]
    for seed in itertools.count(first):
        if seed == first + SEEDS_BEFORE_PLANS:
            yield from kept
        yield f"seed {seed}", plan_of(seed)
        yield f"fault {seed}", plan_of(seed, may_fail=True)


def named(name: str) -> Plan:
    """The plan that goes by a name."""
    kind, _, number = name.partition(" ")
    if kind == "plan":
        return next(plan for at, (plan, _) in enumerate(failed()) if at == int(number))
    return plan_of(int(number), may_fail=kind == "fault")


def attempt(name: str, plan: Plan, ran: int) -> str:
    """Run a plan: why it failed, empty if it did not."""

    def give_up(*_: object) -> None:
        # Not an exception: whichever thread of the machine it met might take it for its own.
        tell(ran, name, f"it does not end within {SEED_S} s")
        os._exit(1)

    signal.signal(signal.SIGALRM, give_up)
    signal.alarm(SEED_S)
    try:
        run(plan)
    except Exception as error:
        lines = str(error).strip().splitlines()
        return f"{type(error).__name__}: {lines[0] if lines else ''}"[:300]
    finally:
        signal.alarm(0)
    return ""


def tell(ran: int, name: str, reason: str) -> None:
    """Print what came of it."""
    print(json.dumps({"ran": ran, "by": name, "why": reason}), flush=True)


def main() -> None:
    """Read the arguments."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", action="append", default=[], help="only the plan of this name")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--skip", type=int, default=0, help="plans that ran before")
    parser.add_argument("--count", type=int, default=600)
    parser.add_argument("--seconds", type=float, default=30.0)
    arguments = parser.parse_args()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    until = time.monotonic() + arguments.seconds
    ran = 0
    chosen = (
        ((name, named(name)) for name in arguments.only)
        if arguments.only
        else plans(arguments.first)
    )
    for number, (name, plan) in enumerate(chosen):
        if number < arguments.skip:
            continue
        if ran >= arguments.count or time.monotonic() > until:
            break
        ran += 1
        reason = attempt(name, plan, ran)
        if reason:
            tell(ran, name, reason)
            sys.exit(1)
    tell(ran, "", "")


if __name__ == "__main__":
    main()
