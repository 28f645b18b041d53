"""How many Python functions a step calls: what a cost test compares, because times are nobody's to judge."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any


def calls(step: Callable[[], object], *paths: str) -> int:
    """Calls that a step makes of functions of ours in files with one of these in their path; tests do not count."""
    count = 0

    def profile(frame: Any, event: str, _: Any) -> None:
        nonlocal count
        path = frame.f_code.co_filename
        count += event == "call" and "/tests/" not in path and any(part in path for part in paths)

    sys.setprofile(profile)
    try:
        step()
    finally:
        sys.setprofile(None)
    return count
