"""BurrowMQ's own files as a Spark source: `format("amqp-store")`, and the reader beneath it, which needs no Spark.

Reads a data directory (of a node that runs or not) or a backup; never writes, never imports the server.

    formats     headers, records, names: the bytes
    segments    tables of the shared store's segments
    indexes     index entries and files; `index_v1` puts version 1 together
    files       which files there are
    commit_log  the files that are in a log only
    columns     the columns of the views `messages` and `records`
    messages    messages of queues as Arrow batches
    records     records of store files, for audits
    options     what a query may say
    datasource  Spark's part

Spark finds an installed module `pyspark_*` with a `DefaultSource` at the first use of any Python data source; where the
package came as a zip (`--py-files`), call `register(spark)`. Importing this module loads neither pyarrow nor pyspark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark_amqp_store.datasource import StoreDataSource, register
    from pyspark_amqp_store.datasource import StoreDataSource as DefaultSource

__all__ = ["DefaultSource", "StoreDataSource", "register"]


def __getattr__(name: str) -> Any:
    """Load Spark's part on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pyspark_amqp_store import datasource  # noqa: PLC0415 - the reader runs without Spark

    return getattr(datasource, "StoreDataSource" if name == "DefaultSource" else name)
