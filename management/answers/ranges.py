"""The past in answers: `msg_rates_age`, `msg_rates_incr` and their like, and what they add to `_details`.

Owns no state. Four families of figures have an age and an increment each, in seconds; a family with both whole numbers
gets `samples` (the newest first), `avg` and `avg_rate` beside `rate`, which is then the slope at the range's end. The
grid lies on multiples of the increment in wall time; a point shows the last sample up to it. Other values of the
parameters mean nothing; ages and increments below 1, or more than 500 points, are refused. Source:
rabbit_mgmt_util:range, rabbit_mgmt_stats, exometer_slide (3.10 and 3.13).
"""

from __future__ import annotations

import re
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple

from burrowmq.broker import inspect
from burrowmq.management.answers.listing import PAGE_SIZE_LIMIT, Finish
from burrowmq.management.answers.reply import ApiError, Call
from burrowmq.management.history import history as kinds
from burrowmq.management.history.history import Kind
from burrowmq.management.history.series import Values

POINTS_MAX = 500
FAMILIES = ("lengths", "msg_rates", "data_rates", "node_stats")
INTEGER = re.compile(r"[+-]?[0-9]+\Z")
DIGITS_MAX = 15

# In one answer: about 10 MB of text.
SAMPLES_MAX = 250_000
COLUMNS_OF_FAMILY = 8
# How far pages look back, and the time between two points: as finely as that is kept.
STEPS_S = {"60": 5, "600": 5, "3600": 60, "28800": 600, "86400": 1800}

Row = dict[str, Any]


class Range(NamedTuple):
    """A grid of times, in milliseconds of wall time; both ends belong to it."""

    first_ms: int
    last_ms: int
    step_ms: int


class Ranges(NamedTuple):
    """What was asked of each family; None for nothing."""

    lengths: Range | None = None
    msg_rates: Range | None = None
    data_rates: Range | None = None
    node_stats: Range | None = None


NO_RANGES = Ranges()


def finish_of(act: Callable[[Row], object], ranges: Ranges) -> Finish | None:
    """How a list gets its samples: as many rows as make SAMPLES_MAX of them; the others have rates alone."""
    points = sum(
        each.last_ms // each.step_ms - each.first_ms // each.step_ms + 1 for each in ranges if each
    )
    if not points:
        return None
    return Finish(act, max(1, min(PAGE_SIZE_LIMIT, SAMPLES_MAX // (points * COLUMNS_OF_FAMILY))))


def ranges_of(
    call: Call, *, error: str = "bad_request", are_lengths_rounded_up: bool = False
) -> Ranges:
    """The ranges of a request. Raises: ApiError 400, with `error` as RabbitMQ's word of that path."""
    if not any(name.endswith("_age") for name in call.request.query):
        return NO_RANGES
    now_ms = call.node.scheduler.wall_ms()
    found: list[Range | None] = []
    for family in FAMILIES:
        age, step = _number(call, f"{family}_age"), _number(call, f"{family}_incr")
        if age is None or step is None:
            found.append(None)
            continue
        if age <= 0 or step <= 0 or age // step > POINTS_MAX or max(age, step) >= 10**DIGITS_MAX:
            reason = f"Invalid range parameters: age {age}, incr {step}"
            raise ApiError(400, error, reason)
        step_ms = step * 1000
        last_ms = now_ms // step_ms * step_ms
        if family == "lengths" and are_lengths_rounded_up and last_ms != now_ms:
            last_ms += step_ms
        # RabbitMQ's grid begins at the age and goes on in steps: an age that is no multiple ends before `last_ms`.
        found.append(Range(last_ms - age * 1000, last_ms, step_ms))
    return Ranges(*found)


def _number(call: Call, name: str) -> int | None:
    text = call.query(name)
    return int(text[: DIGITS_MAX + 2]) if INTEGER.match(text) else None


class Past:
    """Figures of one object, or of some together, at the points of the ranges asked for; looked at from now on."""

    def __init__(self, call: Call, kind: Kind, keys: Sequence[Hashable], ranges: Ranges) -> None:
        self._rates = call.rates
        self._keys, self._columns = keys, kind.columns
        self._ranges = ranges
        self._grids: dict[Range, list[tuple[int, Values]]] = {}
        if ranges != NO_RANGES:
            for key in keys:
                self._rates.history.look(kind, key)
            scheduler = call.node.scheduler
            self._ahead_ms = scheduler.wall_ms() - int(scheduler.monotonic() * 1000)

    def rows(self, asked: Range) -> list[Values | None]:
        """The figures at each point, the oldest first; None where they are not known."""
        first_ms, last_ms = asked.first_ms - self._ahead_ms, asked.last_ms - self._ahead_ms
        times = range(first_ms, last_ms + 1, asked.step_ms)
        unknown: list[Values | None] = [None] * len(times)
        found = [self._rates.history.rows(key, times) or unknown for key in self._keys]
        if len(found) == 1:
            return found[0]
        return [_sum(each) for each in zip(*found, strict=True)] or unknown

    def _points(self, asked: Range) -> list[tuple[int, Values]]:
        """(wall time, figures) at each point that is known, the newest first."""
        if asked not in self._grids:
            wall = range(asked.first_ms, asked.last_ms + 1, asked.step_ms)
            rows = zip(wall, self.rows(asked), strict=True)
            found = [(at, row) for at, row in rows if row is not None]
            self._grids[asked] = found[::-1]
        return self._grids[asked]

    def details(self, name: str, family: str) -> Row:
        """What stands beside a figure of a family."""
        asked: Range | None = getattr(self._ranges, family)
        if asked is None:
            return {"rate": round(sum(self._rates.rate(key, name) for key in self._keys), 2)}
        place = self._columns.index(name)
        points = self._points(asked)
        samples = [{"sample": row[place], "timestamp": at} for at, row in points]
        if len(points) <= 1:
            return {"rate": 0.0, "samples": samples}
        newest, before, oldest = (row[place] for _, row in (points[0], points[1], points[-1]))
        return {
            "avg": sum(row[place] for _, row in points) / len(points),
            "avg_rate": (newest - oldest) * 1000 / (points[0][0] - points[-1][0]),
            "rate": (newest - before) * 1000 / (points[0][0] - points[1][0]),
            "samples": samples,
        }

    def beside(self, figures: Mapping[str, Any], family: str) -> Row:
        """The figures, each with its details."""
        row: Row = {}
        for name, value in figures.items():
            if not name.endswith("_details"):
                row[name] = value
                row[f"{name}_details"] = self.details(name, family)
        return row


def _sum(rows: Sequence[Values | None]) -> Values | None:
    known = [row for row in rows if row is not None]
    return tuple(map(sum, zip(*known, strict=True))) if known else None


def history_of(
    call: Call, kind: Kind, keys: Sequence[Hashable], names: Sequence[str]
) -> Row | None:
    """Columns of the past of an object, or of some together, for a page that asks for `history` seconds; else None.

    `from` is the wall time of the first point, each column has one figure a point, the oldest first, and null for what
    is not known. Short, where `samples` are not: a page asks again every few seconds. Raises: ApiError 400.
    """
    asked = call.query("history")
    if not asked:
        return None
    step_s = STEPS_S.get(asked)
    if step_s is None:
        raise ApiError(400, "bad_request", f"history is one of {', '.join(STEPS_S)} seconds")
    step_ms, age_ms = step_s * 1000, int(asked) * 1000
    last_ms = call.node.scheduler.wall_ms() // step_ms * step_ms
    family = Range(last_ms - age_ms, last_ms, step_ms)
    rows = Past(call, kind, keys, Ranges(lengths=family)).rows(family)
    places = {name: kind.columns.index(name) for name in names}
    return {
        "age": int(asked),
        "incr": step_s,
        "from": family.first_ms,
        "columns": {
            name: [None if row is None else row[place] for row in rows]
            for name, place in places.items()
        },
    }


def with_past(call: Call, kind: Kind, key: Hashable, row: Row, ranges: Ranges = NO_RANGES) -> Row:
    """A row with details beside its lengths, octets and message counters; no counters where nothing was counted."""
    past = Past(call, kind, [key], ranges)
    stats = row.get("message_stats")
    if stats:
        row["message_stats"] = past.beside(stats, "msg_rates")
    elif stats is not None:
        del row["message_stats"]
    # As RabbitMQ has it: a virtual host's lengths follow the message rates.
    family = "msg_rates" if kind is kinds.VHOST else "lengths"
    for names, of in ((inspect.TOTALS, family), (kinds.OCTETS, "data_rates")):
        for name in names:
            if name in row and name in kind.columns:
                row[f"{name}_details"] = past.details(name, of)
    return row
