"""What is told of a batch: a line in the driver's log, and figures for the query's progress.

Owns no state. Called on the driver, when the next batch is asked for: then the tasks of this one have ended.

The line goes to the logger `pyspark_amqp` at INFO. Spark runs a source in a Python process of its own, where nobody has
configured logging: there it goes to standard error, which Spark adds to the driver's.
"""

from __future__ import annotations

import logging
import sys
from collections.abc import Mapping
from typing import Final

from pyspark_amqp.spool import Outcome

_LOG: Final = logging.getLogger("pyspark_amqp")
_FORMAT: Final = "%(asctime)s %(levelname)s %(name)s: %(message)s"


def figures(outcome: Outcome) -> dict[str, int]:
    """Return a batch's figures by name."""
    said = [mark for mark in outcome.marks.values() if mark is not None]
    pieces = outcome.offset.pieces()
    return {
        "seq": outcome.offset.seq,
        "planned": sum(piece.count for piece in pieces),
        "pieces": len(pieces),
        "spool_bytes": outcome.size_bytes,
        "in_doubt": outcome.in_doubt_count,
        "redelivered": sum(mark.redelivered_count for mark in said),
        "left_out": sum(mark.left_out_count for mark in said),
        "cut_short": sum(mark.cut_at is not None for mark in said),
    }


def tell(outcome: Outcome, ready_counts: Mapping[str, int]) -> None:
    """Log a batch's line."""
    _make_heard()
    told = " ".join(f"{name}={count}" for name, count in figures(outcome).items())
    ready = sum(ready_counts.values())
    _LOG.info("batch of stream %s: %s ready=%d", outcome.offset.stream, told, ready)


def _make_heard() -> None:
    """Send lines to standard error, unless the process has its own idea of logging."""
    if _LOG.level != logging.NOTSET or _LOG.hasHandlers():
        return
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter(_FORMAT))
    _LOG.addHandler(handler)
    _LOG.setLevel(logging.INFO)
