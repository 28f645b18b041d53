"""The cost of a call in lines of Python that run: the same on every machine, however busy it is."""

from __future__ import annotations

import sys
from collections.abc import Callable


def steps_of(call: Callable[[], object]) -> int:
    """How many calls and lines it takes; those of compiled code are not counted."""
    count = 0

    def counted(*_: object) -> None:
        nonlocal count
        count += 1

    before = sys.gettrace()
    sys.settrace(lambda *_: counted)
    try:
        call()
    finally:
        sys.settrace(before)
    return count
