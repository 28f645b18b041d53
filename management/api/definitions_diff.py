"""/api/burrowmq/definitions-diff: what an import of definitions would do, before anybody does it.

Owns no state, changes nothing. `broker.inspect.difference` says what becomes of each entry; here they are counted a few
at a time, and the first of those that would change something are given in full.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Any

from burrowmq.broker.definitions.document import ImportRefused
from burrowmq.broker.inspect import difference
from burrowmq.management.aio import web
from burrowmq.management.answers.reply import Call, Route, bad_request, reply
from burrowmq.management.api.definitions import document_of

ENTRIES_PER_TURN = 50
ROWS_MAX = 200


async def compare(call: Call) -> web.Response:
    """POST a document: how many entries are new, changed, stay or are refused, by section; and which."""
    vhost = call.vhost_or_all()
    document = await document_of(call)
    sections: dict[str, Counter[str]] = {}
    rows: list[dict[str, Any]] = []
    total = 0
    try:
        for count, found in enumerate(difference.steps(call.node, document, vhost), start=1):
            sections.setdefault(found.section, Counter())[found.action] += 1
            if found.action != difference.SAME:
                total += 1
                if len(rows) < ROWS_MAX:
                    rows.append(found._asdict())
            if count % ENTRIES_PER_TURN == 0:
                await asyncio.sleep(0)
    except ImportRefused as error:
        raise bad_request(error.reason) from error
    return reply({"sections": sections, "rows": rows, "total": total})


ROUTES = tuple(
    Route("POST", path, compare, "administrator", is_kept=False)
    for path in ("/api/burrowmq/definitions-diff", "/api/burrowmq/definitions-diff/{vhost}")
)
"""They change nothing: `management.server` does not log them as changes."""
