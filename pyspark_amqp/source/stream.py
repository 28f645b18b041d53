"""Spark's stream reader: a micro-batch is planned, taken into the spool, and read from there.

State: in the long-lived process that Spark runs for a query, the first offset and the planner. Copies that
were pickled for executors have options and columns only.

What Spark does, and what follows from it (4.2 and newer):

    initialOffset  twice for a first batch: the stream's random name is made once
    latestOffset   its result is durable before anything of it is read
    partitions     also for a batch that is tried again after a crash: only the end offset counts
    commit         of a batch comes when the next is planned, and never for the last one: it only removes
                   files, and no acknowledgement depends on it
    stop           may not be called at all: nothing depends on it

Errors in options are raised by the first method that Spark calls: from the constructor they would reach the user as an
`UnboundLocalError` of Spark's.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

import pyarrow as pa
from pyspark.sql.datasource import DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import (
    ReadAllAvailable,
    ReadLimit,
    ReadMaxRows,
    SupportsTriggerAvailableNow,
)
from pyspark.sql.types import StructType

from pyspark_amqp.columns import arrow_schema
from pyspark_amqp.options import StreamOptions, read_stream_options
from pyspark_amqp.options.source import COUNT_MAX
from pyspark_amqp.source.listing import Listing
from pyspark_amqp.source.planning import Counts, Planner, TriggerPatience
from pyspark_amqp.source.report import figures, tell
from pyspark_amqp.source.tasks import PiecePartition, partitions_of, rows_of, spool_at
from pyspark_amqp.spool import Offset, Spool, SpoolError, check, keep_ids

TEMPORARY_AGE_S: Final = 3600.0
SWEEP_EVERY_S: Final = 3600.0
"""A query may run for a year."""

Json = dict[str, Any]


class AmqpStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Reads queues in micro-batches."""

    def __init__(self, options: Mapping[str, str], schema: StructType) -> None:
        self._refusal: ValueError | None = None
        self._planner_once: Planner | None = None
        self._spool_once: Spool | None = None
        self._first: Offset | None = None
        self._is_limited = True
        self._prepared: str | None = None
        self._told = 0
        self._swept_at_s = time.monotonic()
        try:
            self._options = read_stream_options(options)
            self._schema = arrow_schema(schema)
        except ValueError as error:
            self._refusal = error

    def __getstate__(self) -> Json:
        """Leave connections out."""
        return {**self.__dict__, "_planner_once": None, "_spool_once": None, "_prepared": None}

    # ---- on the driver --------------------------------------------------------------------------

    def initialOffset(self) -> Json:
        """Return where a new checkpoint begins."""
        self._checked()
        if self._first is None:
            self._first = Offset.first()
        return self._first.to_json()

    def getDefaultReadLimit(self) -> ReadLimit:
        """Return the limit that the query's options set."""
        options = self._checked()
        if options.record_limit is not None:
            return ReadMaxRows(options.record_limit)
        # So that "all that is there" is what a trigger says (`once`), which sets aside what the options say.
        is_limited = options.byte_limit is not None or options.least_records
        return ReadMaxRows(COUNT_MAX) if is_limited else ReadAllAvailable()

    def prepareForTriggerAvailableNow(self) -> None:
        """Note what is ready now: the query ends with it."""
        self._planner().stop_at_what_is_ready()

    def latestOffset(self, start: Json, limit: ReadLimit) -> Json:
        """Return the offset that names the next batch's pieces, `start` when nothing is ready."""
        at = Offset.from_json(start)
        self._prepare(self._spool(), at)
        self._is_limited = isinstance(limit, ReadMaxRows)
        record_limit = limit.max_rows if isinstance(limit, ReadMaxRows) else None
        takes_all = not self._is_limited
        planner = self._planner()
        found = planner.following(at, record_limit, takes_all=takes_all)
        if planner.outcome is not None and planner.outcome.offset.seq != self._told:
            self._told = planner.outcome.offset.seq
            tell(planner.outcome, planner.ready_counts or {})
        return found.to_json()

    def reportLatestOffset(self) -> Json | None:
        """Return what was ready in each queue when it was asked last, and what became of the last batch.

        Spark shows it as progress.
        """
        planner = self._planner_once
        if planner is None or planner.ready_counts is None:
            return None
        found: Json = {"ready": planner.ready_counts}
        if planner.outcome is not None:
            found["batch"] = figures(planner.outcome)
        return found

    def partitions(self, start: Json, end: Json) -> Sequence[InputPartition]:
        """Return the pieces that the end offset names."""
        options = self._checked()
        at = Offset.from_json(end)
        if start == end:
            return []
        spool = self._spool()
        if self._prepared != at.stream:
            self._require_stream(spool, at)
        byte_limit = options.byte_limit if self._is_limited else None
        return partitions_of(spool, at.pieces(), options.task.task_bytes, byte_limit)

    def commit(self, end: Json) -> None:
        """Remove the files of batches that Spark does not ask for again, and what is too old: ids, files in doubt."""
        at, spool = Offset.from_json(end), self._spool()
        retention_s = self._checked().task.dedupe_retention_s
        spool.commit(at.stream, at.seq, keep_ids if retention_s else None, retention_s)
        if time.monotonic() >= self._swept_at_s + SWEEP_EVERY_S:
            self._sweep(spool, at)

    def stop(self) -> None:
        """Close the connection; Spark may also end the process without calling this."""
        if self._planner_once is not None:
            self._planner_once.close()

    # ---- on the executors ----------------------------------------------------------------------------

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        """Yield a piece's rows."""
        if not isinstance(partition, PiecePartition):
            return iter(())  # without partitions Spark makes an empty one
        return rows_of(partition, self._checked().task, self._schema)

    # ---- inner steps ---------------------------------------------------------------------------------

    def _checked(self) -> StreamOptions:
        if self._refusal is not None:
            raise self._refusal
        return self._options

    def _spool(self) -> Spool:
        if self._spool_once is None:
            self._spool_once = spool_at(self._checked().task.spool)
        return self._spool_once

    def _planner(self) -> Planner:
        if self._planner_once is None:
            options = self._checked()
            check(self._spool().store)
            counts = Counts(
                options.task.addresses,
                Listing(options.task.addresses, options.queues),
                retry_timeout_s=options.task.retry_timeout_s,
                fails_on_missing_queue=options.fails_on_missing_queue,
            )
            self._planner_once = Planner(
                counts,
                self._spool(),
                consumer_count=options.consumer_count,
                prefetch_count=options.prefetch_count,
                patience=TriggerPatience(options.least_records, options.longest_delay_s),
            )
        return self._planner_once

    def _prepare(self, spool: Spool, at: Offset) -> None:
        """Open the stream, or look for it, once: Spark asks a hundred times a second while nothing comes."""
        if self._prepared == at.stream:
            return
        if at.seq:
            self._require_stream(spool, at)
        else:
            spool.open_stream(at.stream)
        self._prepared = at.stream

    def _require_stream(self, spool: Spool, at: Offset) -> None:
        """Refuse another spool than the checkpoint's: acknowledged messages are in that one only."""
        options = self._checked()
        if spool.has_stream(at.stream):
            if self._first is None:
                self._first = at
                spool.open_stream(
                    at.stream
                )  # version 0.1.0 only made a folder, which is swept when it is empty
                self._sweep(spool, at)
            return
        if options.fails_on_data_loss:
            raise SpoolError(
                f"{spool}: no folder of this checkpoint's stream {at.stream}. Messages of its "
                "last batch may be acknowledged and nowhere else: name the spoolLocation that the "
                "query had, or set failOnDataLoss=false to go on without them"
            )
        spool.open_stream(at.stream)

    def _sweep(self, spool: Spool, at: Offset) -> None:
        """Remove what killed tasks left."""
        self._swept_at_s = time.monotonic()
        spool.sweep(
            at.stream,
            temporary_age_s=TEMPORARY_AGE_S,
            in_doubt_age_s=self._checked().in_doubt_retention_s,
        )
