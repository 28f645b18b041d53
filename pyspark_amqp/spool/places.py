"""From a `spoolLocation` to the store that it names.

Owns no state. Called wherever a spool is used: on the driver, in each task, by jobs.
"""

from __future__ import annotations

from pyspark_amqp.file_urls import path_in
from pyspark_amqp.spool.objects import open_objects
from pyspark_amqp.spool.posix import PosixStore
from pyspark_amqp.spool.store import SpoolError, Store


def open_store(
    location: str,
    *,
    endpoint: str | None = None,
    region: str | None = None,
    is_http_allowed: bool = False,
) -> Store:
    """Return the store of a path, a `file:` URL, or an object store's URL. Raises: SpoolError."""
    path = path_in(location)
    if path is not None or "://" not in location:
        return PosixStore(location if path is None else path)
    if location.lower().startswith("file:"):
        raise SpoolError(f"{location}: no file:///path")
    return open_objects(location, endpoint=endpoint, region=region, is_http_allowed=is_http_allowed)
