"""Message ids that are the same when a task runs again, so that consumers can leave out duplicates.

State: the number of the next row. Made by each task.

    <prefix>-<partition>-<row>

The prefix is the query's id and the batch's number in a stream; in a batch write a random one that the
driver made, or the option `messageIdPrefix`. A row that has a message id keeps it.

Invariant: the same prefix, partition and order of rows give the same ids. The order is Spark's: it is the
same again after a source that repeats itself (files, this package's streams), not after a shuffle.
"""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

_COLUMN = "message_id"


class Identity:
    """Gives ids to one task's rows, in their order."""

    def __init__(self, prefix: str, partition: int) -> None:
        self._start = f"{prefix}-{partition}-"
        self._next = 0

    def on(self, batch: pa.RecordBatch) -> pa.RecordBatch:
        """Return the batch with an id in every row."""
        first, self._next = self._next, self._next + batch.num_rows
        position = batch.schema.get_field_index(_COLUMN)
        if position >= 0 and batch.column(position).null_count == 0:
            return batch
        made = pa.array([f"{self._start}{row}" for row in range(first, self._next)], pa.string())
        if position < 0:
            return batch.append_column(_COLUMN, made)
        own = batch.column(position).cast(pa.string())
        field = pa.field(_COLUMN, pa.string())
        return batch.set_column(position, field, pc.coalesce(own, made))


def without_ids(batch: pa.RecordBatch) -> pa.RecordBatch:
    """Return the batch without the column of ids."""
    position = batch.schema.get_field_index(_COLUMN)
    return batch if position < 0 else batch.remove_column(position)
