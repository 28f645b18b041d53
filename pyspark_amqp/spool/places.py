"""From a `spoolLocation` to the store that it names.

Owns no state. Called wherever a spool is used: on the driver, in each task, by jobs.
"""

from __future__ import annotations

from typing import Final

from pyspark_amqp.spool.objects import open_objects
from pyspark_amqp.spool.posix import PosixStore
from pyspark_amqp.spool.store import Store

_FILE: Final = "file://"


def open_store(
    location: str,
    *,
    endpoint: str | None = None,
    region: str | None = None,
    is_http_allowed: bool = False,
) -> Store:
    """Return the store of a path, a `file://` URL, or an object store's URL. Raises: SpoolError."""
    if "://" not in location or location.lower().startswith(_FILE):
        return PosixStore(location[len(_FILE) :] if "://" in location else location)
    return open_objects(location, endpoint=endpoint, region=region, is_http_allowed=is_http_allowed)
