"""Paths that are written as `file:` URLs: of the standard's three slashes, Spark and Hadoop write one.

Owns no state. Called by who takes a path from a query or a command line.
"""

from __future__ import annotations

import re
from typing import Final

_BEFORE_PATH: Final = re.compile(r"file:(//(?=/)|(?=/(?!/)))", re.IGNORECASE)


def path_in(location: str) -> str | None:
    """Return the path that a `file:` URL names; None for what is no such URL, or names another machine."""
    before = _BEFORE_PATH.match(location)
    return None if before is None else location[before.end() :]
