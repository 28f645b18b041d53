"""/api/burrowmq/migrations: classic queues that become quorum queues under their names, while clients use them.

Owns no state: the node has those under way, and goes on with them after a kill. `GET` tells how far they are, with a
virtual host and a `pattern` which queues could be moved and what prevents others; `POST` begins with one.
"""

from __future__ import annotations

from burrowmq.broker.queue.queue import Queue
from burrowmq.management import commands
from burrowmq.management.aio import web
from burrowmq.management.answers.reply import Call, Route, bad_request, reply


async def progress(call: Call) -> web.Response:
    """How far those under way are."""
    return reply(commands.migrations.progress(call.node))


async def candidates(call: Call) -> web.Response:
    """Which could be moved."""
    return reply(commands.migrations.candidates(call.node, call.vhost(), call.query("pattern")))


async def begin(call: Call) -> web.Response:
    """Begin with one; one that is under way goes on."""
    vhost = call.vhost()
    queue = commands.topology.queue_of(call.node, vhost, call.path("name"))
    if not isinstance(queue, Queue):
        raise bad_request(f"it is a {queue.kind} queue")
    await commands.migrations.begin(call.node, vhost, queue)
    return reply({"vhost": vhost, "name": queue.name}, 202)


ROUTES = (
    Route("GET", "/api/burrowmq/migrations", progress, "administrator"),
    Route("GET", "/api/burrowmq/migrations/{vhost}", candidates, "administrator"),
    Route("POST", "/api/burrowmq/migrations/{vhost}/{name}", begin, "administrator"),
)
