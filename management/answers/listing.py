"""The query parameters of list endpoints: vhost filter, name filter, sort, page, columns.

Owns no state; called by every list handler with rows of `broker.inspect`. Errors are RabbitMQ's. A reply without
`page` is a bare array; with it, an object with one page and the counts that the UI and scripts need. Source:
rabbit_mgmt_util:reply_list.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple

from burrowmq.broker.rules.pattern import BadPattern, compile_pattern
from burrowmq.management.aio import web
from burrowmq.management.answers.reply import (
    ROWS_INLINE,
    ApiError,
    Call,
    collect,
    reply,
    reply_rows,
)

PAGE_SIZE = 100
PAGE_SIZE_LIMIT = 500
# A regular expression from a query runs on the event loop: at most so long at a time, and altogether.
PATTERN_LIMIT = 200
TURN_S = 0.005
FILTER_S = 5.0

# A row's history may be a few thousand samples: some milliseconds.
ROWS_FINISHED_PER_TURN = 2

Row = dict[str, Any]


class Finish(NamedTuple):
    """What is dear and done last, to rows that are shown: at most to so many of them."""

    act: Callable[[Row], object]
    rows_max: int


async def reply_list(
    call: Call,
    rows: Iterable[Row],
    sort: Sequence[str] = ("vhost", "name"),
    finish: Finish | None = None,
) -> web.Response:
    """Filter, sort, page and project rows as the query asks.

    Rows that were finished may be long: they are turned into text in a thread.
    """
    found = await collect(rows)
    visible = [row for row in found if "vhost" not in row or _may_see(call, row["vhost"])]
    if "page" in call.request.query:
        page = await _page(call, visible, sort, finish)
        if finish is None:
            return reply(page)
        return await reply_rows(page.pop("items"), {**page, "items": None}, inline_max=0)
    if call.query("sort"):
        visible = _sorted(call, visible, sort)
    await _finish(visible, finish)
    columns = call.query("columns")
    result = [project(row, columns) for row in visible] if columns else visible
    return await reply_rows(result, inline_max=ROWS_INLINE if finish is None else 0)


async def _finish(rows: list[Row], finish: Finish | None) -> None:
    """Finish the first rows, a few at a time."""
    if finish is None:
        return
    for count, row in enumerate(rows[: finish.rows_max]):
        finish.act(row)
        if count % ROWS_FINISHED_PER_TURN == ROWS_FINISHED_PER_TURN - 1:
            await asyncio.sleep(0)


def project(row: Row, columns: str) -> Row:
    """Only the columns asked for; `a.b` reaches into an object. A column that is not there is left out."""
    found: Row = {}
    for column in columns.split(","):
        value, path = _dig(row, column), column.split(".")
        if value is _ABSENT:
            continue
        target = found
        for step in path[:-1]:
            target = target.setdefault(step, {})
        target[path[-1]] = value
    return found


_ABSENT = object()


def _dig(row: Any, column: str) -> Any:
    value = row
    for step in column.split("."):
        if not isinstance(value, dict) or step not in value:
            return _ABSENT
        value = value[step]
    return value


def _may_see(call: Call, vhost: str) -> bool:
    return vhost == "" or call.caller.may_see(call.node, vhost)


def _sorted(call: Call, rows: list[Row], default: Sequence[str]) -> list[Row]:
    column = call.query("sort")
    keys = [column] if column else list(default)

    def rank(row: Row) -> list[tuple[int, Any]]:
        return [_rank(_dig(row, key)) for key in keys]

    return sorted(rows, key=rank, reverse=call.flag("sort_reverse"))


def _rank(value: Any) -> tuple[int, Any]:
    """A key that sorts columns of mixed values: absent ones first, then numbers, then text."""
    if value is _ABSENT or value is None:
        return (0, 0)
    if isinstance(value, bool | int | float):
        return (1, value)
    return (2, str(value))


def _number(call: Call, name: str, default: int) -> int:
    text = call.query(name, str(default))
    if not text.removeprefix("-").isdigit():
        raise ApiError(400, "bad_request", "Pagination parameters are invalid")
    return int(text)


async def _page(call: Call, rows: list[Row], sort: Sequence[str], finish: Finish | None) -> Row:
    page, size = _number(call, "page", 1), _number(call, "page_size", PAGE_SIZE)
    if page < 1 or not 1 <= size <= PAGE_SIZE_LIMIT:
        raise ApiError(
            400,
            "invalid_pagination_parameters",
            f"Invalid pagination parameters: page number {page},"
            f" page size {call.query('page_size', 'undefined')}",
        )
    filtered = _sorted(call, await _named(call, rows), sort)
    pages = max(1, -(-len(filtered) // size))
    if page > pages:
        reason = f"Page out of range, page: {page} page size: {size}, len: {len(filtered)}"
        raise ApiError(400, "page_out_of_range", reason)
    items, columns = filtered[(page - 1) * size : page * size], call.query("columns")
    await _finish(items, finish)
    return {
        "filtered_count": len(filtered),
        "item_count": len(items),
        "items": [project(row, columns) for row in items] if columns else items,
        "page": page,
        "page_count": pages,
        "page_size": size,
        "total_count": len(rows),
    }


async def _named(call: Call, rows: list[Row]) -> list[Row]:
    """Rows whose name the query asks for, giving way to other work while a slow expression is compared."""
    name = call.query("name")
    if not name:
        return rows
    if not call.flag("use_regex"):
        return [row for row in rows if name.lower() in str(row.get("name", "")).lower()]
    try:
        pattern = compile_pattern(name[:PATTERN_LIMIT])
    except BadPattern as error:
        raise ApiError(400, "bad_request", f"invalid regular expression: {error}") from error
    found: list[Row] = []
    began = turn = time.monotonic()
    for row in rows:
        if pattern.is_in(str(row.get("name", ""))):
            found.append(row)
        if time.monotonic() - turn > TURN_S:
            await asyncio.sleep(0)
            turn = time.monotonic()
            if turn - began > FILTER_S:
                raise ApiError(400, "bad_request", "the regular expression takes too long")
    return found
