"""`format("amqp")`: what Spark asks for a reader or a writer.

State: the options, until one of them is made. Called by Spark, in short-lived processes on the driver; by
`register` where Spark cannot find this package itself (`--py-files`).

Invariants: nothing connects here; `load()` reports all wrong options of a read at once, as far as they are wrong for
every kind of read.
"""

from __future__ import annotations

import os
from collections.abc import MutableMapping
from pathlib import Path
from typing import Final

from pyspark import cloudpickle
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    DataSourceStreamWriter,
    DataSourceWriter,
)
from pyspark.sql.types import StructType

import pyspark_amqp
from pyspark_amqp.columns import struct_of
from pyspark_amqp.convert import schema_of
from pyspark_amqp.options import (
    BadOptions,
    PeekOptions,
    StreamQueueOptions,
    is_stream_queue,
    read_batch_options,
    read_sink_options,
    read_stream_options,
    read_stream_queue_options,
)
from pyspark_amqp.sink.writers import BatchWriter, StreamWriter
from pyspark_amqp.source.batch import DrainReader, PeekReader
from pyspark_amqp.source.stream import AmqpStreamReader
from pyspark_amqp.source.stream_queue import ReplayReader, StreamQueueReader

FORMAT: Final = "amqp"


class AmqpDataSource(DataSource):
    """Queues of BurrowMQ and RabbitMQ as a source and a sink."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.options = options

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return FORMAT

    def schema(self) -> StructType:
        """Return a message's columns."""
        self._refuse_what_no_read_takes()
        wants_raw = str(self.options.get("includeHeadersRaw", "false")).strip().lower() == "true"
        has_offset = is_stream_queue(self.options)
        return struct_of(schema_of(has_headers_raw=wants_raw, has_stream_offset=has_offset))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what reads a batch."""
        options = read_batch_options(self.options)
        if isinstance(options, PeekOptions):
            return PeekReader(options, schema)
        if isinstance(options, StreamQueueOptions):
            return ReplayReader(options, schema)
        return DrainReader(options, schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:
        """Return what reads a stream; it tells of wrong options itself."""
        if is_stream_queue(self.options):
            return StreamQueueReader(dict(self.options), schema)
        return AmqpStreamReader(dict(self.options), schema)

    def writer(self, schema: StructType, overwrite: bool) -> DataSourceWriter:
        """Return what writes a batch."""
        return BatchWriter(read_sink_options(self.options), schema, overwrite=overwrite)

    def streamWriter(self, schema: StructType, overwrite: bool) -> DataSourceStreamWriter:
        """Return what writes a stream."""
        return StreamWriter(read_sink_options(self.options), schema, overwrite=overwrite)

    def _refuse_what_no_read_takes(self) -> None:
        """Unless the options suit a batch or a stream, raise the problems of the kind that they are nearer to."""
        found: list[BadOptions] = []
        streams = (
            read_stream_queue_options if is_stream_queue(self.options) else read_stream_options
        )
        for read in (streams, read_batch_options):
            try:
                read(self.options)
            except BadOptions as error:
                found.append(error)
        if len(found) == 2:
            raise min(found, key=lambda error: (-error.fitting_count, len(error.problems)))


def register(spark: SparkSession) -> None:
    """Make `format("amqp")` known to a session that did not find it by itself.

    With Spark Connect the session's server need not have this package, and its processes that plan streams do not see
    what `addArtifacts` brought (4.2, 4.3). So the source goes there by value, with all of this package that it uses.

    Spark (4.3) looks for the zips of `--py-files` in a wrong folder when it starts what plans a stream. So the zip that
    this package came in is told to its Python processes; on other machines no file has that name, and none is needed.
    """
    archive = Path(__file__).parents[1]
    context = getattr(spark, "_sc", None)  # None with Spark Connect
    if context is None:
        cloudpickle.register_pickle_by_value(pyspark_amqp)
    elif archive.is_file():
        known = context.environment.get("PYTHONPATH", "")
        if str(archive) not in known.split(os.pathsep):
            context.environment["PYTHONPATH"] = os.pathsep.join(filter(None, [str(archive), known]))
    spark.dataSource.register(AmqpDataSource)
