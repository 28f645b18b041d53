"""`format("amqp-store")`: Spark's batch reader on a data directory or a backup.

State: the options; the readers are pickled and do their work on the executors, which must see the directory under the
same path. Called by Spark, and by `register` where Spark cannot find this package itself.

Spark tells a Python source which rows a query wants only if the query asks for that (`pushFilters`), and never which
columns. A schema that the query gives (`spark.read.schema("queue string, seq long")`) therefore saves decoding, and
bodies are not even read if none of its columns is in them.

Invariant: a filter that was taken over is also right for rows of files that are read whole.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, MutableMapping, Sequence
from dataclasses import replace
from typing import Any, Final

import pyarrow as pa
from pyspark.sql import SparkSession
from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
)
from pyspark.sql.types import StructType

from pyspark_amqp.columns import arrow_schema, struct_of
from pyspark_amqp_store import messages, records
from pyspark_amqp_store.columns import MESSAGES, view_schema
from pyspark_amqp_store.files import Store
from pyspark_amqp_store.messages import MessageReader, Part, Wanted
from pyspark_amqp_store.options import StoreOptions, read_store_options

FORMAT: Final = "amqp-store"


class PartPartition(InputPartition):
    """Index segments of one queue."""

    def __init__(self, part: Part) -> None:
        self.part = part


class FilePartition(InputPartition):
    """One store file."""

    def __init__(self, file: records.StoreFile) -> None:
        self.file = file


class MessagesReader(DataSourceReader):
    """Rows of the view `messages`."""

    def __init__(self, options: StoreOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema
        self._wanted = _wanted(options)

    def partitions(self) -> Sequence[InputPartition]:
        """Return the parts that may have rows."""
        options = self._options
        store = Store(options.path)
        if options.fails_on_loss:
            messages.refuse_damaged_log(store)
        parts = messages.plan(store, self._wanted, options.partition_bytes)
        return [PartPartition(part) for part in parts]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a part's messages."""
        if not isinstance(partition, PartPartition):
            return  # nothing is there: Spark has one empty partition
        options = self._options
        reader = MessageReader(
            Store(options.path),
            self._schema,
            self._wanted,
            is_checked=options.is_checked,
            fails_on_loss=options.fails_on_loss,
        )
        try:
            yield from reader.batches(partition.part)
        finally:
            reader.close()


class PushingReader(MessagesReader):
    """The same, with filters that Spark hands over."""

    def pushFilters(self, filters: list[Filter]) -> Iterable[Filter]:
        """Take over what narrows the plan; yield the others, which Spark then applies."""
        for one in filters:
            narrowed = narrow(self._wanted, one)
            if narrowed is None:
                yield one
            else:
                self._wanted = narrowed


class RecordsReader(DataSourceReader):
    """Rows of the view `records`."""

    def __init__(self, options: StoreOptions, schema: pa.Schema) -> None:
        self._options = options
        self._schema = schema

    def partitions(self) -> Sequence[InputPartition]:
        """Return a partition for each file."""
        files = records.files_of(Store(self._options.path), _wanted(self._options))
        return [FilePartition(file) for file in files]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a file's records."""
        if isinstance(partition, FilePartition):
            yield from records.batches(Store(self._options.path), partition.file, self._schema)


class StoreDataSource(DataSource):
    """BurrowMQ's store as a batch source."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self.options = options

    @classmethod
    def name(cls) -> str:
        """Return the format's name."""
        return FORMAT

    def schema(self) -> StructType:
        """Return the view's columns."""
        options = read_store_options(self.options)
        return struct_of(view_schema(options.view, has_headers_raw=options.has_headers_raw))

    def reader(self, schema: StructType) -> DataSourceReader:
        """Return what reads the view, with the columns of this schema. Raises: BadColumns."""
        options = read_store_options(self.options)
        known = view_schema(options.view, has_headers_raw=True)
        wanted = arrow_schema(schema, known, options.view)
        if options.view != MESSAGES:
            return RecordsReader(options, wanted)
        if options.pushes_filters:
            return PushingReader(options, wanted)
        return MessagesReader(options, wanted)


def _wanted(options: StoreOptions) -> Wanted:
    return Wanted(
        vhosts=frozenset(options.vhosts) or None,
        queues=frozenset(options.queues) or None,
        seq_from=options.min_seq,
        seq_to=options.max_seq,
        is_acked_too=options.includes_deleted,
    )


def narrow(wanted: Wanted, one: Filter) -> Wanted | None:
    """Return what is wanted with a filter applied, None for a filter that we cannot use."""
    column = getattr(one, "attribute", ())
    value: Any = getattr(one, "value", None)
    if column == ("seq",) and isinstance(value, int):
        return _narrow_seq(wanted, one, value)
    if column in (("vhost",), ("queue",)):
        if not isinstance(one, EqualTo | In):
            return None
        values = (value,) if isinstance(one, EqualTo) else one.value
        names = frozenset(str(each) for each in values if each is not None)  # nothing equals null
        if column == ("vhost",):
            return replace(wanted, vhosts=_both(wanted.vhosts, names))
        return replace(wanted, queues=_both(wanted.queues, names))
    return None


def _both(known: frozenset[str] | None, names: frozenset[str]) -> frozenset[str]:
    """Return the names that are in both; no set is all names, an empty one is none."""
    return names if known is None else known & names


def _narrow_seq(wanted: Wanted, one: Filter, value: int) -> Wanted | None:
    low, high = wanted.seq_from, wanted.seq_to
    last: int | None
    match one:
        case EqualTo():
            first, last = value, value
        case GreaterThan():
            first, last = value + 1, None
        case GreaterThanOrEqual():
            first, last = value, None
        case LessThan():
            first, last = 0, value - 1
        case LessThanOrEqual():
            first, last = 0, value
        case _:
            return None
    ends = [end for end in (high, last) if end is not None]
    return replace(wanted, seq_from=max(low, first), seq_to=min(ends) if ends else None)


def register(spark: SparkSession) -> None:
    """Make `format("amqp-store")` known to a session that did not find it by itself."""
    spark.dataSource.register(StoreDataSource)
