"""/api/burrowmq/import: messages of another broker's queues into those of the same names here.

Owns no state: the node has the job, one at a time. `POST` begins or goes on, `GET` tells how far it is, `DELETE`
stops it between two batches. The URI has a password in it, so only administrators and the control socket may send
one.
"""

from __future__ import annotations

from burrowmq.management import commands
from burrowmq.management.aio import web
from burrowmq.management.answers.reply import Call, Route, bad_request, reply

RATE_MAX = 1e12


async def start(call: Call) -> web.Response:
    """Begin, or go on after a stop."""
    body = await call.body()
    uri, queues, rate = body.get("uri"), body.get("queues"), body.get("rate", 0)
    if not isinstance(uri, str):
        raise bad_request("uri is missing")
    if not isinstance(queues, list) or not all(_is_place(each) for each in queues):
        raise bad_request("queues must be a list of objects with vhost and name")
    is_number = isinstance(rate, int | float) and not isinstance(rate, bool)
    if not is_number or not 0 <= rate <= RATE_MAX:
        raise bad_request("rate must be a number of messages a second")
    places = tuple(dict.fromkeys((each["vhost"], each["name"]) for each in queues))
    asked = commands.imports.Asked(
        uri=uri,
        queues=places,
        is_copy=body.get("keep") is True,
        is_quiet=body.get("no_publishers") is True,
        trusts_times=body.get("ttl_from_timestamp") is True,
        rate=float(rate),
    )
    return reply(commands.imports.start(call.node, asked), 202)


def _is_place(value: object) -> bool:
    return isinstance(value, dict) and all(
        isinstance(value.get(key), str) for key in ("vhost", "name")
    )


async def look(call: Call) -> web.Response:
    """How far the last one is, queue by queue."""
    return reply(commands.imports.look(call.node))


async def stop(call: Call) -> web.Response:
    """End it between two batches; nothing is lost."""
    return reply(await commands.imports.stop(call.node))


ROUTES = (
    Route("POST", "/api/burrowmq/import", start, "administrator"),
    Route("GET", "/api/burrowmq/import", look, "administrator"),
    Route("DELETE", "/api/burrowmq/import", stop, "administrator"),
)
