"""Messages between AMQP 0-9-1 brokers (BurrowMQ, RabbitMQ) and Spark, in pure Python.

Owns no state. These parts stand on their own and need no JVM:

    wire      a blocking bulk client: standard library only
    convert   messages to Arrow record batches and back: needs pyarrow
    spool     messages made durable in files before they are acknowledged: needs pyarrow

These are Spark's (4.2 and newer):

    options   what a query may say
    columns   messages' columns as Spark's types, and those that a query asks for
    source    streams, `mode=peek`, `mode=drain`
    sink      batch and streaming writes
    datasource  `format("amqp")`

Spark finds an installed module `pyspark_*` with a `DefaultSource` at the first use of any Python data source;
where the package came as a zip (`--py-files`), call `register(spark)`.

Invariants: imports nothing of the server, nothing compiled, so that one small zip works on any
cluster whose workers have pyarrow; importing this module loads neither pyarrow nor pyspark.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark_amqp.datasource import AmqpDataSource, register
    from pyspark_amqp.datasource import AmqpDataSource as DefaultSource

__all__ = ["AmqpDataSource", "DefaultSource", "register"]


def __getattr__(name: str) -> Any:
    """Load Spark's part on first use."""
    if name not in __all__:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from pyspark_amqp import datasource  # noqa: PLC0415 - the client and the conversion run without Spark

    return getattr(datasource, "AmqpDataSource" if name == "DefaultSource" else name)
