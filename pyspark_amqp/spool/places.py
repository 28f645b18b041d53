"""From a `spoolLocation` to the store that it names.

Owns no state. Called wherever a spool is used: on the driver, in each task, by jobs.
"""

from __future__ import annotations

import re
from typing import Final

from pyspark_amqp.spool.objects import open_objects
from pyspark_amqp.spool.posix import PosixStore
from pyspark_amqp.spool.store import SpoolError, Store

_FILE: Final = re.compile(r"file:(//(?=/)|(?=/(?!/)))", re.IGNORECASE)
"""What stands before a path in a URL of it: of the standard's three slashes, Spark writes one."""


def open_store(
    location: str,
    *,
    endpoint: str | None = None,
    region: str | None = None,
    is_http_allowed: bool = False,
) -> Store:
    """Return the store of a path, a `file:` URL, or an object store's URL. Raises: SpoolError."""
    path = _FILE.match(location)
    if path is not None or "://" not in location:
        return PosixStore(location if path is None else location[path.end() :])
    if location.lower().startswith("file:"):
        raise SpoolError(f"{location}: no file:///path")
    return open_objects(location, endpoint=endpoint, region=region, is_http_allowed=is_http_allowed)
