"""/api/burrowmq/quarantine: the damaged messages that were set aside; put one back, or drop it for good.

Owns no state: the files in the data directory are the truth, and are read in a thread. For administrators.
"""

from __future__ import annotations

from dataclasses import asdict

from burrowmq.management import commands
from burrowmq.management.aio import web
from burrowmq.management.answers.disk_threads import ask_disk
from burrowmq.management.answers.reply import Call, Route, bad_request, no_content, reply
from burrowmq.storage.errors import StorageError


async def listing(call: Call) -> web.Response:
    """Every message in quarantine: its name there, where it was, what is wrong with it."""
    try:
        found = await ask_disk(call.node.engine.quarantine.listing)
    except (StorageError, OSError) as error:
        raise bad_request(str(error)) from error
    return reply([{"name": name, **asdict(about)} for name, about in found])


async def restore(call: Call) -> web.Response:
    """Put one back into its queue, as far as it is whole."""
    await commands.quarantine.restore(call.node, call.path("name"))
    return no_content()


async def remove(call: Call) -> web.Response:
    """Drop one for good."""
    await commands.quarantine.remove(call.node, call.path("name"))
    return no_content()


ROUTES = (
    Route("GET", "/api/burrowmq/quarantine", listing, "administrator"),
    Route("POST", "/api/burrowmq/quarantine/{name}/restore", restore, "administrator"),
    Route("DELETE", "/api/burrowmq/quarantine/{name}", remove, "administrator"),
)
