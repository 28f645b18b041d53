"""/api/burrowmq/search: queues, exchanges, users, policies and virtual hosts by a part of their name.

Owns no state. Every name that the caller may see is compared, a few milliseconds at a time, so that a hundred thousand
queues hold up nobody; only the best ten are kept. Who has gone away meanwhile, as a browser does with each letter
typed, is searched for no longer. A name is found when it has the letters of the query in their order: the whole name
first, then its beginning, the beginning of a word, any part, and last letters with others between.
"""

from __future__ import annotations

import asyncio
import heapq
import time
from collections.abc import Iterator
from typing import Any, NamedTuple

from burrowmq.broker import inspect
from burrowmq.management.aio import web
from burrowmq.management.answers.reply import Call, Route, bad_request, reply

FOUND_MAX = 10
QUERY_MAX = 200
# Names that are compared before the clock is looked at, and how long a turn may be.
NAMES_PER_LOOK = 100
TURN_S = 0.004
WORD_ENDS = frozenset(" .-_/:|")


class Named(NamedTuple):
    """Something that has a name."""

    kind: str
    vhost: str
    name: str


def rank(query: str, name: str) -> tuple[int, int] | None:
    """How well a name fits a query, the best lowest; None when it does not. Both are folded."""
    place = name.find(query)
    if place >= 0:
        if place == 0:
            return (0 if len(name) == len(query) else 1, len(name))
        return (2 if name[place - 1] in WORD_ENDS else 3, len(name))
    first = last = -1
    for letter in query:
        if letter != " ":
            last = name.find(letter, last + 1)
            if last < 0:
                return None
            first = last if first < 0 else first
    return (4, last - first)


def _names(call: Call) -> Iterator[Named]:
    node, caller = call.node, call.caller
    wanted = call.query("vhost")
    for vhost in list(node.vhosts.values()):
        if not caller.may_see(node, vhost.name) or (wanted and vhost.name != wanted):
            continue
        yield Named("vhost", "", vhost.name)
        for name in list(vhost.queues):
            yield Named("queue", vhost.name, name)
        for name in list(vhost.exchanges):
            yield Named("exchange", vhost.name, name)
        for name in list(vhost.policies.policies):
            yield Named("policy", vhost.name, name)
        for name in list(vhost.policies.operator_policies):
            yield Named("operator policy", vhost.name, name)
    if caller.may("administrator"):
        for row in inspect.users(node):
            yield Named("user", "", row["name"])


async def search(call: Call) -> web.Response:
    """The ten names that fit `query` best, of the virtual host `vhost` or of all."""
    query = call.query("query").strip().casefold()
    if not query or len(query) > QUERY_MAX:
        raise bad_request(f"query has to be 1 to {QUERY_MAX} characters long")
    best: list[tuple[tuple[int, int], Named]] = []
    compared = 0
    turn = time.monotonic()
    for compared, named in enumerate(_names(call), start=1):
        fit = rank(query, named.name.casefold())
        if fit is not None:
            best.append((fit, named))
            if len(best) > 20 * FOUND_MAX:
                best = heapq.nsmallest(FOUND_MAX, best)
        if compared % NAMES_PER_LOOK == 0 and time.monotonic() - turn > TURN_S:
            await asyncio.sleep(0)
            turn = time.monotonic()
            if call.request.transport is None or call.request.transport.is_closing():
                break
    found: list[dict[str, Any]] = [
        {"kind": named.kind, "vhost": named.vhost, "name": named.name}
        for _, named in heapq.nsmallest(FOUND_MAX, best)
    ]
    return reply({"found": found, "compared": compared})


ROUTES = (Route("GET", "/api/burrowmq/search", search),)
