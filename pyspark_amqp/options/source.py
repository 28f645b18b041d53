"""What a read may say: streams, looking without taking (`mode=peek`), taking a queue whole (`mode=drain`).

Owns no state. Called by the data source where a query is planned. Objects of this module are pickled to
the executors.

Invariants: every option has a meaning in the mode that accepts it; if the query sets no byte limit, a task still stops
at TASK_BYTES, because it holds in memory what it takes.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

from pyspark_amqp.options.connection import Addresses, read_addresses
from pyspark_amqp.options.reading import OptionReader
from pyspark_amqp.options.spool import SpoolPlace, read_spool_place
from pyspark_amqp.options.stream_queue import (
    REPLAY,
    StreamQueueOptions,
    replay_options,
    stream_queue_options,
)

PREFETCH_MAX: Final = 65535
COUNT_MAX: Final = 1 << 40
TASK_BYTES: Final = 256 << 20
OBJECT_BYTES: Final = 4 << 30
IDLE_TIMEOUT_S: Final = 2.0
RETRY_TIMEOUT_S: Final = 60.0
IN_DOUBT_RETENTION_S: Final = 7 * 86400.0
PEEK_LIMIT: Final = 1000
TRIGGER_DELAY_S: Final = 900.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Queues:
    """Which queues: by their names, or all whose whole name matches a pattern."""

    names: tuple[str, ...] = ()
    pattern: str | None = None
    management_uris: tuple[str, ...] = ()
    """Where to ask which queues there are; by default at the usual port of the brokers."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOptions:
    """What a task needs to take one piece of a queue."""

    addresses: Addresses
    spool: SpoolPlace
    idle_timeout_s: float = IDLE_TIMEOUT_S
    retry_timeout_s: float = RETRY_TIMEOUT_S
    task_bytes: int = TASK_BYTES
    is_deduplicating: bool = True
    dedupe_retention_s: float = 0.0
    fails_on_malformed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamOptions:
    """`spark.readStream.format("amqp")`."""

    task: TaskOptions
    queues: Queues
    has_headers_raw: bool = False
    record_limit: int | None = None
    byte_limit: int | None = None
    least_records: int = 0
    longest_delay_s: float = TRIGGER_DELAY_S
    consumer_count: int = 1
    prefetch_count: int = PREFETCH_MAX
    in_doubt_retention_s: float = IN_DOUBT_RETENTION_S
    fails_on_missing_queue: bool = True
    fails_on_data_loss: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class PeekOptions:
    """`spark.read.format("amqp")`: looks, takes nothing."""

    addresses: Addresses
    queues: Queues
    has_headers_raw: bool = False
    limit: int = PEEK_LIMIT
    byte_limit: int = TASK_BYTES
    allows_redelivery: bool = False
    fails_on_missing_queue: bool = True
    fails_on_malformed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainOptions:
    """`spark.read.format("amqp").option("mode", "drain")`: takes what is ready, once for a `drainId`."""

    task: TaskOptions
    queues: Queues
    drain_id: str
    has_headers_raw: bool = False
    limit: int | None = None
    consumer_count: int = 1
    prefetch_count: int = PREFETCH_MAX
    fails_on_missing_queue: bool = True


def read_stream_options(options: Mapping[str, str]) -> StreamOptions:
    """Read the options of a stream.

    Raises: BadOptions.
    """
    found = OptionReader(options)
    made = _stream(found)
    found.finish('readStream.format("amqp")', kinds=_kinds)
    return made


def _stream(found: OptionReader) -> StreamOptions:
    if found.text("mode"):
        found.problems.append("option 'mode' is for batch reads; a stream always takes messages")
    limits = [name for name in ("maxRecordsPerTrigger", "maxOffsetsPerTrigger") if name in found]
    if len(limits) > 1:
        found.problems.append(f"{' and '.join(limits)} are the same option: set one")
    record_limit = found.number(limits[0], None, least=1, most=COUNT_MAX) if limits else None
    return StreamOptions(
        task=_task(found),
        queues=_queues(found),
        has_headers_raw=found.flag("includeHeadersRaw", default=False),
        record_limit=record_limit,
        byte_limit=found.size("maxBytesPerTrigger", None),
        least_records=_least_records(found, record_limit),
        longest_delay_s=found.duration("maxTriggerDelay", TRIGGER_DELAY_S),
        consumer_count=_consumer_count(found),
        prefetch_count=_prefetch_count(found),
        in_doubt_retention_s=found.duration("inDoubtRetention", IN_DOUBT_RETENTION_S),
        fails_on_missing_queue=_fails_on_missing_queue(found),
        fails_on_data_loss=found.flag("failOnDataLoss", default=True),
    )


def _least_records(found: OptionReader, record_limit: int | None) -> int:
    """Return how many messages a batch waits for."""
    least = found.number("minRecordsPerTrigger", 0, least=1, most=COUNT_MAX) or 0
    if record_limit is not None and least > record_limit:
        found.problems.append(
            f"option 'minRecordsPerTrigger': {least} is more than a batch may have ({record_limit})"
        )
    if not least and "maxTriggerDelay" in found:
        found.problems.append("option 'maxTriggerDelay' needs 'minRecordsPerTrigger'")
    return least


def read_stream_queue_options(options: Mapping[str, str]) -> StreamQueueOptions:
    """Read the options of a streaming query of stream queues. Raises: BadOptions."""
    found = OptionReader(options)
    made = stream_queue_options(found)
    found.finish('readStream.format("amqp") of stream queues (startingOffsets)', kinds=_kinds)
    return made


def _finished_replay(found: OptionReader) -> StreamQueueOptions:
    made = replay_options(found)
    found.finish(f'read.format("amqp") with mode={REPLAY}', kinds=_kinds)
    return made


def read_batch_options(
    options: Mapping[str, str],
) -> PeekOptions | DrainOptions | StreamQueueOptions:
    """Read the options of a batch read.

    Raises: BadOptions.
    """
    found = OptionReader(options)
    mode = found.choice("mode", ("peek", "drain", REPLAY), "peek")
    if mode == REPLAY:
        return _finished_replay(found)
    made = _peek(found) if mode == "peek" else _drain(found)
    found.finish(f'read.format("amqp") with mode={mode}', kinds=_kinds)
    return made


def _kinds() -> dict[str, tuple[str, ...]]:
    """Return which options there are for each kind of read."""
    found: dict[str, tuple[str, ...]] = {}
    reads: dict[str, Callable[[OptionReader], object]] = {
        "streams": _stream,
        "stream queues": stream_queue_options,
        "mode=peek": _peek,
        "mode=drain": _drain,
        f"mode={REPLAY}": replay_options,
    }
    for kind, read in reads.items():
        reader = OptionReader({})
        read(reader)
        found[kind] = reader.asked
    return found


def _peek(found: OptionReader) -> PeekOptions:
    limit = found.number("limit", PEEK_LIMIT, least=1, most=10_000_000)
    return PeekOptions(
        addresses=read_addresses(found),
        queues=_queues(found),
        has_headers_raw=found.flag("includeHeadersRaw", default=False),
        limit=limit or PEEK_LIMIT,
        byte_limit=found.size("maxBytesPerTask", TASK_BYTES) or TASK_BYTES,
        allows_redelivery=found.flag("allowRedelivery", default=False),
        fails_on_malformed=_fails_on_malformed(found),
        fails_on_missing_queue=_fails_on_missing_queue(found),
    )


def _drain(found: OptionReader) -> DrainOptions:
    why = "every run with the same id gives the same rows; a new id takes what is ready then"
    return DrainOptions(
        task=_task(found),
        queues=_queues(found),
        drain_id=found.required("drainId", why),
        has_headers_raw=found.flag("includeHeadersRaw", default=False),
        limit=found.number("limit", None, least=1, most=COUNT_MAX),
        consumer_count=_consumer_count(found),
        prefetch_count=_prefetch_count(found),
        fails_on_missing_queue=_fails_on_missing_queue(found),
    )


def _task(found: OptionReader) -> TaskOptions:
    _refuse_other_places(found)
    dedupe = found.choice("dedupe", ("messageId", "none"), "messageId")
    retention_s = found.duration("dedupeRetention", 0.0)
    if retention_s and dedupe == "none":
        found.problems.append("option 'dedupeRetention' needs dedupe=messageId")
    place = read_spool_place(found)
    task_bytes = found.size("maxBytesPerTask", TASK_BYTES) or TASK_BYTES
    if place.is_object_store and task_bytes > OBJECT_BYTES:
        found.problems.append(
            "option 'maxBytesPerTask': at most 4g with a spool on object storage; a piece is sent in one request, and "
            "stores take no more than 5 GB in one"
        )
    return TaskOptions(
        addresses=read_addresses(found),
        spool=place,
        idle_timeout_s=found.milliseconds("pollTimeoutMs", IDLE_TIMEOUT_S, least_ms=1),
        retry_timeout_s=found.milliseconds("retryTimeoutMs", RETRY_TIMEOUT_S),
        task_bytes=task_bytes,
        is_deduplicating=dedupe == "messageId",
        dedupe_retention_s=retention_s,
        fails_on_malformed=_fails_on_malformed(found),
    )


def _queues(found: OptionReader) -> Queues:
    names, pattern = found.names("queue"), found.text("queuePattern")
    uris = found.names("managementUri")
    if pattern is None:
        if not names and not found.text("queue"):
            found.problems.append(
                "option 'queue' is missing: one or more names, separated by commas (or set "
                "'queuePattern', a regular expression)"
            )
        if uris:
            found.problems.append("option 'managementUri' needs 'queuePattern'")
        return Queues(names=names)
    if names:
        found.problems.append("option 'queuePattern' excludes 'queue'")
    try:
        re.compile(pattern)
    except re.error as error:
        found.refuse("queuePattern", pattern, f"no regular expression ({error})")
    for uri in uris:
        if not _is_management(uri):
            found.refuse(
                "managementUri", uri, "no http[s]://host:port; user and password are amqp.*'s"
            )
    return Queues(pattern=pattern, management_uris=uris)


def _is_management(uri: str) -> bool:
    try:
        parts = urlsplit(uri)
        return (
            parts.scheme in {"http", "https"}
            and bool(parts.hostname)
            and parts.port != 0
            and "@" not in parts.netloc
            and not parts.query
        )
    except ValueError:
        return False


def _fails_on_missing_queue(found: OptionReader) -> bool:
    """Whether a missing queue is an error; a queue that matched a pattern may be deleted at any time."""
    is_pattern = found.text("queuePattern") is not None
    if is_pattern and "failOnMissingQueue" in found:
        found.problems.append("option 'failOnMissingQueue' is for 'queue', not for 'queuePattern'")
    return found.flag("failOnMissingQueue", default=not is_pattern)


def _refuse_other_places(found: OptionReader) -> None:
    """Accept only the one place where messages are taken, and say what to do instead."""
    place = found.choice("consumeOn", ("executors", "driver"), "executors")
    if place == "driver":
        found.problems.append(
            "option 'consumeOn': messages are taken on executors only. Without a file system that driver and "
            "executors share, give a spoolLocation on object storage (s3://, gs://, abfss://)"
        )


def _fails_on_malformed(found: OptionReader) -> bool:
    return found.choice("malformed", ("keep", "fail"), "keep") == "fail"


def _consumer_count(found: OptionReader) -> int:
    return found.number("consumersPerQueue", 1, least=1, most=1000) or 1


def _prefetch_count(found: OptionReader) -> int:
    return found.number("prefetch", PREFETCH_MAX, least=1, most=PREFETCH_MAX) or PREFETCH_MAX
