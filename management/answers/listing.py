"""The query parameters of list endpoints: vhost filter, name filter, sort, page, columns.

Owns no state; called by every list handler with things of `broker.inspect` and how each becomes a row (`Listed`), or
with rows. Rows are made last, of what is shown: a page of a hundred costs the same work in a hundred thousand but for
looking at their names, or at the column that they are sorted by. Errors are RabbitMQ's. A reply without
`page` is a bare array, and always where RabbitMQ has no pages; with it, an object with one page and the counts that the
UI and scripts need. Source: rabbit_mgmt_util:reply_list, reply_list_or_paginate.
"""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain
from typing import Any, Generic, NamedTuple, TypeVar

from burrowmq.broker.rules.pattern import BadPattern, compile_pattern
from burrowmq.management.aio import web
from burrowmq.management.answers.reply import (
    ApiError,
    Call,
    array_texts,
    is_number,
    reply,
    reply_long,
    reply_rows,
    reply_whole,
)
from burrowmq.management.answers.turns import (
    KEYS_PER_TURN,
    ROWS_PER_TURN,
    first_places,
    gathered,
    pieces,
)

T = TypeVar("T")

PAGE_SIZE = 100
PAGE_SIZE_LIMIT = 500
# A regular expression from a query runs on the event loop: at most so long at a time, and altogether.
PATTERN_LIMIT = 200
TURN_S = 0.005
FILTER_S = 5.0

# A row's history may be a few thousand samples: some milliseconds.
ROWS_FINISHED_PER_TURN = 2

Row = dict[str, Any]
Tree = dict[str, Any]


class Finish(NamedTuple):
    """What is dear and done last, to rows that are shown: at most to so many of them."""

    act: Callable[[Row], object]
    rows_max: int


@dataclass(frozen=True, slots=True)
class Listed(Generic[T]):
    """What a list shows, in its own order and not yet as rows: a page of it needs only a few."""

    things: Sequence[T]
    row: Callable[[T], Row]
    name: Callable[[T], str]
    key: Callable[[str], Callable[[T], Any] | None]
    """By a column: what to sort by it with. None: that is the list's own order."""
    keys_per_turn: int = KEYS_PER_TURN
    """`ROWS_PER_TURN` where the key takes a row."""


def by_rows(
    things: Sequence[T], row: Callable[[T], Row], name: Callable[[T], str], own: str = ""
) -> Listed[T]:
    """Things by their names, or, where they are in the order of the column `own` already, in that order.

    To sort by another column takes the rows of all.
    """

    def key(column: str) -> Callable[[T], Any] | None:
        if own and column in ("", own):
            return None
        return name if column in ("", "name") else lambda thing: rank(dig(row(thing), column))

    return Listed(things, row, name, key, ROWS_PER_TURN)


async def reply_list(
    call: Call,
    rows: Iterable[Row],
    sort: Sequence[str] = ("vhost", "name"),
    finish: Finish | None = None,
) -> web.Response:
    """Filter, sort, page and project rows as the query asks; for lists of things that are few."""
    visible: list[Row] = []
    async for piece in pieces(rows, ROWS_PER_TURN):
        visible += [row for row in piece if "vhost" not in row or _may_see(call, row["vhost"])]
    listed = Listed(visible, _itself, _name_of, _rank_by(sort))
    if call.asks_for_page:
        return await _reply_page(call, listed, finish)
    things = await _all(call, listed)
    if finish is None:
        return await reply_whole(array_texts(things, partial(_shown, call, listed)))
    rows = await _finished(call, listed, things[: finish.rows_max], finish)
    rest = await gathered(things[finish.rows_max :])
    return await reply_rows(rows + [_shown(call, listed, thing) for thing in rest])


async def reply_listed(
    call: Call, listed: Listed[T], finish: Finish | None = None
) -> web.StreamResponse:
    """Page first and make rows after: filter, sort, page and project as the query asks.

    `things` are those that the caller may see.
    """
    if call.asks_for_page:
        return await _reply_page(call, listed, finish)
    things = await _all(call, listed)
    if finish is None:
        return await reply_long(call, things, partial(_shown, call, listed))
    rows = await _finished(call, listed, things[: finish.rows_max], finish)
    if len(rows) == len(things):
        return await reply_rows(rows)

    def row(thing: T | _Done) -> Row:
        return thing.row if isinstance(thing, _Done) else _shown(call, listed, thing)

    every: Iterable[T | _Done] = chain(map(_Done, rows), things[finish.rows_max :])
    return await reply_long(call, every, row)


class _Done(NamedTuple):
    """A row that was finished."""

    row: Row


async def _reply_page(call: Call, listed: Listed[T], finish: Finish | None) -> web.Response:
    page = await _page(call, listed, finish)
    if finish is None:
        return reply(page)
    return await reply_rows(page.pop("items"), {**page, "items": None})


async def _all(call: Call, listed: Listed[T]) -> Sequence[T]:
    things = listed.things
    if not call.query("sort") and not call.flag("sort_reverse"):
        return things
    return await _first(call, listed, things, len(things))


async def _finished(
    call: Call, listed: Listed[T], things: Iterable[T], finish: Finish | None
) -> list[Row]:
    """The rows of some things; where they are to be finished, a few in each turn."""
    if finish is None:
        return [_shown(call, listed, thing) for thing in things]
    rows: list[Row] = []
    async for piece in pieces(things, ROWS_FINISHED_PER_TURN):
        for thing in piece:
            row = listed.row(thing)
            finish.act(row)
            rows.append(_projected(call, row))
    return rows


def _shown(call: Call, listed: Listed[T], thing: T) -> Row:
    return _projected(call, listed.row(thing))


def _projected(call: Call, row: Row) -> Row:
    columns = call.query("columns")
    return project(row, columns) if columns else row


def _itself(row: Row) -> Row:
    return row


def _name_of(row: Row) -> str:
    return str(row.get("name", ""))


def _rank_by(default: Sequence[str]) -> Callable[[str], Callable[[Row], Any]]:
    def key(column: str) -> Callable[[Row], Any]:
        keys = [column] if column else list(default)
        return lambda row: [rank(dig(row, each)) for each in keys]

    return key


def reply_one(call: Call, row: Row) -> web.Response:
    """One thing, projected as the query asks."""
    return reply(_projected(call, row))


async def reply_with(call: Call, row: Row, name: str, things: Sequence[Row]) -> web.StreamResponse:
    """One thing with an array that may be long, a queue with its consumers: such a one is told some in each turn."""
    if call.query("columns") or len(things) <= ROWS_PER_TURN:
        return reply_one(call, row | {name: things})
    return await reply_long(call, things, _itself, {**row, name: None})


def project(row: Row, columns: str) -> Row:
    """Only the columns asked for; `a.b` reaches into an object, or into each of a list.

    A column that is not there is left out; one inside what has no inside brings the whole of it.
    """
    return _picked(row, _tree(columns))


@functools.lru_cache(maxsize=100)
def _tree(columns: str) -> Tree:
    """The columns asked for as objects inside each other; None for what is shown whole."""
    found: Tree = {}
    for column in columns.split(","):
        *path, last = column.split(".")
        at: Tree | None = found
        for step in path:
            if at is None:
                break
            at = at.setdefault(step, {})
        if at is not None:
            at[last] = None
    return found


def _picked(value: Row, wanted: Tree) -> Row:
    found: Row = {}
    for name in wanted:
        inner, deeper = value.get(name, _ABSENT), wanted[name]
        if inner is _ABSENT:
            continue
        if deeper is None:
            found[name] = inner
        elif isinstance(inner, list):
            found[name] = [_picked(each, deeper) for each in inner if isinstance(each, dict)]
        elif not isinstance(inner, dict):
            found[name] = inner
        elif kept := _picked(inner, deeper):
            found[name] = kept
    return found


_ABSENT = object()


def dig(row: Any, column: str) -> Any:
    """What `a.b` says in a row, or that it is not there."""
    value = row
    for step in column.split("."):
        if not isinstance(value, dict) or step not in value:
            return _ABSENT
        value = value[step]
    return value


def _may_see(call: Call, vhost: str) -> bool:
    return vhost == "" or call.caller.may_see(call.node, vhost)


async def _first(call: Call, listed: Listed[T], things: Sequence[T], count: int) -> Sequence[T]:
    """The first `count` of these things, as the query sorts them."""
    key, is_reversed = listed.key(call.query("sort")), call.flag("sort_reverse")
    if key is None:
        return things[: -count - 1 : -1] if is_reversed else things[:count]
    places = await first_places(
        things, key, count, is_reversed=is_reversed, keys_per_turn=listed.keys_per_turn
    )
    return [things[place] for place in places]


def rank(value: Any) -> tuple[int, Any]:
    """A key that sorts columns of mixed values: absent ones first, then numbers, then text."""
    if value is _ABSENT or value is None:
        return (0, 0)
    if isinstance(value, bool | int | float):
        return (1, value)
    return (2, str(value))


def _number(call: Call, name: str, default: int) -> int:
    text = call.query(name, str(default))
    if not is_number(text.removeprefix("-")):
        raise ApiError(400, "bad_request", "Pagination parameters are invalid")
    return int(text)


async def _page(call: Call, listed: Listed[T], finish: Finish | None) -> Row:
    page, size = _number(call, "page", 1), _number(call, "page_size", PAGE_SIZE)
    if page < 1 or not 1 <= size <= PAGE_SIZE_LIMIT:
        raise ApiError(
            400,
            "invalid_pagination_parameters",
            f"Invalid pagination parameters: page number {page},"
            f" page size {call.query('page_size', 'undefined')}",
        )
    filtered = await _named(call, listed)
    pages = -(-len(filtered) // size)
    if page > max(1, pages):
        reason = f"Page out of range, page: {page} page size: {size}, len: {len(filtered)}"
        raise ApiError(400, "page_out_of_range", reason)
    items = (await _first(call, listed, filtered, page * size))[(page - 1) * size :]
    rows = await _finished(call, listed, items, finish)
    return {
        "filtered_count": len(filtered),
        "item_count": len(items),
        "items": rows,
        "page": page,
        "page_count": pages,
        "page_size": size,
        "total_count": len(listed.things),
    }


async def _named(call: Call, listed: Listed[T]) -> Sequence[T]:
    """Those whose name the query asks for, giving way to other work while a slow expression is compared."""
    name, name_of = call.query("name"), listed.name
    if not name:
        return listed.things
    found: list[T] = []
    if not call.flag("use_regex"):
        wanted = name.lower()
        async for piece in pieces(listed.things, KEYS_PER_TURN):
            found += [thing for thing in piece if wanted in name_of(thing).lower()]
        return found
    try:
        # As in RabbitMQ, and as without an expression: letters are the same in either case.
        pattern = compile_pattern(f"(?i){name[:PATTERN_LIMIT]}")
    except BadPattern as error:
        raise ApiError(400, "bad_request", f"invalid regular expression: {error}") from error
    began = turn = time.monotonic()
    for thing in listed.things:
        if pattern.is_in(name_of(thing)):
            found.append(thing)
        if time.monotonic() - turn > TURN_S:
            await asyncio.sleep(0)
            turn = time.monotonic()
            if turn - began > FILTER_S:
                raise ApiError(400, "bad_request", "the regular expression takes too long")
    return found
