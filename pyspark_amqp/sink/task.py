"""One task's rows: made into messages, published within a window, confirmed to the last one.

Owns no state. Called by the writers, on the executors.

Invariants: when a task ends well, every message was confirmed and, unless the query allows otherwise, taken by
a queue; else it fails and Spark may run it again, which publishes all of its rows again (with the same
ids). Nothing of a batch is sent when one of its rows cannot be.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import pyarrow as pa

from pyspark_amqp.convert import Writer
from pyspark_amqp.options.sink import NONE, SinkOptions
from pyspark_amqp.sink.identity import Identity, without_ids
from pyspark_amqp.sink.pace import Pace
from pyspark_amqp.wire import (
    Publisher,
    PublishRefused,
    PublishReturned,
    Returned,
    connect,
    declare_queue,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a task's rows."""

    published_count: int
    returned_count: int = 0
    first_returned: Returned | None = None


def publish(
    batches: Iterable[pa.RecordBatch],
    options: SinkOptions,
    identity: Identity | None,
    task_name: str,
) -> Outcome:
    """Publish all rows and return when the broker has confirmed them.

    Raises: BadRow, WireError; PublishReturned when a message came back and the query does not allow it.
    """
    name = f"{options.addresses[0].connection_name} {task_name}"
    pace = None if options.max_rate_per_task is None else Pace(options.max_rate_per_task)
    with connect([address.named(name) for address in options.addresses]) as connection:
        if options.declares_queue:
            declare_queue(connection, options.routing_key)
        writer = Writer(
            exchange=options.exchange,
            routing_key=options.routing_key,
            mandatory=options.is_mandatory,
            delivery_mode=options.delivery_mode,
            frame_max=connection.frame_max,
        )
        publisher = Publisher(
            connection,
            window=options.confirm_window,
            confirm_timeout_s=options.confirm_timeout_s,
        )
        for batch in batches:
            _send(publisher, writer.messages(_with_ids(batch, options, identity)), pace)
            if options.fails_on_return and publisher.returned_count:
                break  # the rest would only be published twice
        totals = publisher.settle()
        if totals.refused_count:
            raise PublishRefused(connection.place, "publishing", totals.refused_count)
        if totals.returned_count and options.fails_on_return:
            raise PublishReturned(
                connection.place, "publishing", totals.returned_count, publisher.returned
            )
    first = publisher.returned[0] if publisher.returned else None
    return Outcome(publisher.sent_count, totals.returned_count, first)


def _with_ids(
    batch: pa.RecordBatch, options: SinkOptions, identity: Identity | None
) -> pa.RecordBatch:
    if options.message_ids == NONE:
        return without_ids(batch)
    return batch if identity is None else identity.on(batch)


def _send(publisher: Publisher, messages: list[bytes], pace: Pace | None) -> None:
    if pace is None:
        publisher.send(messages)
        return
    for start in range(0, len(messages), pace.most):
        part = messages[start : start + pace.most]
        pace.take(len(part))
        publisher.send(part)
