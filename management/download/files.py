"""/cli/rabbitmqadmin: the script, for whoever asks, as in RabbitMQ; and the ways that lead to pages.

Owns no state.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

from burrowmq.management.aio import web

SCRIPT = Path(__file__).parent / "rabbitmqadmin.py"
MOVED = {
    "/cli": "/cli/rabbitmqadmin",
    "/cli/": "/cli/rabbitmqadmin",
    "/api": "/api/index.html",
    "/api/": "/api/index.html",
}


@cache
def script() -> bytes:
    """The script."""
    return SCRIPT.read_bytes()


async def rabbitmqadmin(request: web.Request) -> web.Response:
    """GET: a file to be saved."""
    headers = {"Content-Disposition": 'attachment; filename="rabbitmqadmin"'}
    return web.Response(body=script(), content_type="application/octet-stream", headers=headers)


async def moved(request: web.Request) -> web.Response:
    """GET: the page is elsewhere."""
    return web.Response(status=301, headers={"Location": MOVED[request.path]})


def add_routes(app: web.Application) -> None:
    """Serve it, to anybody."""
    app.router.add_get("/cli/rabbitmqadmin", rabbitmqadmin)
    for path in MOVED:
        app.router.add_get(path, moved)
