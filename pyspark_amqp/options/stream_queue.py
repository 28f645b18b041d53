"""What a read of stream queues may say: where it begins, and for `mode=replay` where it ends.

Owns no state. Called by the data source; objects of this module are pickled to the executors.

`startingOffsets` says that the queues are streams. It is one position for all, or a JSON object with one for each:

    first, last, next   see wire/stream_queue.py
    a number            that offset
    a time              ISO 8601 with its zone, or without one for UTC: `2026-11-24T18:00:00Z`
    {"orders": 1000, "returns": "first"}

Invariants: nothing is taken, so there is no spool and nothing about one; what a queue's position is, is known before
anything connects.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from pyspark_amqp.options.connection import Addresses, read_addresses
from pyspark_amqp.options.reading import OptionReader
from pyspark_amqp.wire.stream_queue import FIRST, LAST, NEXT, WINDOW, Position
from pyspark_amqp.wire.table import Timestamp

STARTING: Final = "startingOffsets"
ENDING: Final = "endingOffsets"
REPLAY: Final = "replay"
COUNT_MAX: Final = 1 << 40
OFFSET_MAX: Final = (1 << 63) - 1
_DIGITS_MAX: Final = len(str(OFFSET_MAX))  # Python refuses to read thousands
IDLE_TIMEOUT_S: Final = 10.0
RETRY_TIMEOUT_S: Final = 60.0
_WORDS: Final = (FIRST, LAST, NEXT)
_WHAT: Final = f"none of {', '.join(_WORDS)}, no offset and no time (2026-11-24T18:00:00Z)"


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamQueueOptions:
    """How stream queues are read, by a streaming query or by `mode=replay`."""

    addresses: Addresses
    starting: Mapping[str, Position]
    """The queues, and where each begins."""
    ending: Mapping[str, Position]
    """Where a replay ends: before this offset, or before what was written at this time; or with what there is."""
    has_headers_raw: bool = False
    record_limit: int | None = None
    consumer_count: int = 1
    window: int = WINDOW
    idle_timeout_s: float = IDLE_TIMEOUT_S
    retry_timeout_s: float = RETRY_TIMEOUT_S
    fails_on_data_loss: bool = True
    fails_on_malformed: bool = False


def is_stream_queue(options: Mapping[str, str]) -> bool:
    """Whether a query's options are those of stream queues."""
    given = {name.lower(): str(value).strip().lower() for name, value in options.items()}
    return STARTING.lower() in given or given.get("mode") == REPLAY


def stream_queue_options(found: OptionReader) -> StreamQueueOptions:
    """Read the options of a streaming query; what is wrong is among the problems."""
    if found.text("mode"):
        found.problems.append("option 'mode' is for batch reads")
    limits = [name for name in ("maxRecordsPerTrigger", "maxOffsetsPerTrigger") if name in found]
    if len(limits) > 1:
        found.problems.append(f"{' and '.join(limits)} are the same option: set one")
    limit = found.number(limits[0], None, least=1, most=COUNT_MAX) if limits else None
    return _made(found, limit, {})


def replay_options(found: OptionReader) -> StreamQueueOptions:
    """Read the options of `mode=replay`; what is wrong is among the problems."""
    queues = found.names("queue")
    ending = _positions(found, ENDING, queues, str(OFFSET_MAX))
    for word in {position for position in ending.values() if isinstance(position, str)}:
        found.refuse(ENDING, word, "no offset and no time: a replay ends before one")
    return _made(found, None, ending)


def _made(
    found: OptionReader, record_limit: int | None, ending: Mapping[str, Position]
) -> StreamQueueOptions:
    queues = found.names("queue")
    if not queues and not found.text("queue"):
        found.problems.append("option 'queue' is missing: one or more streams, with commas")
    return StreamQueueOptions(
        addresses=read_addresses(found),
        starting=_positions(found, STARTING, queues, FIRST),
        ending=ending,
        has_headers_raw=found.flag("includeHeadersRaw", default=False),
        record_limit=record_limit,
        consumer_count=found.number("consumersPerQueue", 1, least=1, most=1000) or 1,
        window=found.number("prefetch", WINDOW, least=2, most=65535) or WINDOW,
        idle_timeout_s=found.milliseconds("pollTimeoutMs", IDLE_TIMEOUT_S, least_ms=1),
        retry_timeout_s=found.milliseconds("retryTimeoutMs", RETRY_TIMEOUT_S),
        fails_on_data_loss=found.flag("failOnDataLoss", default=True),
        fails_on_malformed=found.choice("malformed", ("keep", "fail"), "keep") == "fail",
    )


def _positions(
    found: OptionReader, name: str, queues: tuple[str, ...], default: str
) -> dict[str, Position]:
    """Return a position for each queue."""
    text = found.text(name, default) or default
    if not text.startswith("{"):
        return dict.fromkeys(queues, _position(found, name, text))
    try:
        given = json.loads(text)
    except (ValueError, RecursionError):
        found.refuse(name, text, "no JSON object")
        return dict.fromkeys(queues, FIRST)
    strange = [queue for queue in given if queue not in queues]
    missing = [queue for queue in queues if queue not in given]
    if strange:
        found.problems.append(f"option '{name}': {', '.join(strange)} is not in 'queue'")
    if missing:
        found.problems.append(f"option '{name}': says nothing of {', '.join(missing)}")
    return {queue: _position(found, name, str(given.get(queue, FIRST))) for queue in queues}


def _position(found: OptionReader, name: str, text: str) -> Position:
    """Return what x-stream-offset takes for a text."""
    word = text.strip().lower()
    if word in _WORDS:
        return word
    if word.isdecimal() and len(word) <= _DIGITS_MAX and int(word) <= OFFSET_MAX:
        return int(word)
    try:
        when = datetime.fromisoformat(text.strip())
    except ValueError:
        found.refuse(name, text, _WHAT)
        return FIRST
    seconds = (when if when.tzinfo else when.replace(tzinfo=UTC)).timestamp()
    if seconds < 0:
        found.refuse(name, text, "before 1970")
        return FIRST
    return Timestamp(int(seconds))
