"""The metrics pages: /metrics (sums), /metrics/per-object, /metrics/detailed?family=.

State: two locks, one for the sums and one for the pages with a series for each object. Pages under the same lock are
made one after the other: if each took longer than the interval between scrapes, making them side by side would slow
them and the node down more and more. A scraper that has gone away while it waited gets no page made, and one that does
not read its page within two minutes is cut off. prometheus_client and the families are imported at the first scrape,
away from the loop: a node that nobody scrapes starts sooner and stays smaller. No login, as in RabbitMQ, unless the
configuration wants one. Source: the rabbitmq_prometheus plugin (3.13).
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from importlib import import_module
from typing import Any

from burrowmq.broker.node.node import Node
from burrowmq.management import deadlines, settings
from burrowmq.management.aio import web
from burrowmq.management.answers import access
from burrowmq.management.answers.encoding import compress
from burrowmq.management.answers.reply import ApiError, LoginRequired, reply, unauthorised
from burrowmq.management.callers import CALLERS, Callers

PAGE_LIMIT_S = 120.0
CONTENT_TYPE = "text/plain; version=0.0.4"
HOST: web.AppKey[Node] = web.AppKey("host")
SUMS: web.AppKey[asyncio.Lock] = web.AppKey("sums", asyncio.Lock)
OBJECTS: web.AppKey[asyncio.Lock] = web.AppKey("objects", asyncio.Lock)

REALM = 'Basic realm="RabbitMQ Prometheus"'
Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
# The module management.prometheus.exposition and the node -> what a page shows.
Families = Callable[[Any, Any], Awaitable[list[Any]]]


def create_app(host: Node, callers: Callers) -> web.Application:
    """The application that listens on the metrics port."""
    config = host.process.config
    app = web.Application(middlewares=[_for_monitors] if config.prometheus.wants_login else [])
    app[HOST], app[CALLERS] = host, callers
    app[SUMS], app[OBJECTS] = asyncio.Lock(), asyncio.Lock()
    path = settings.metrics_path(config)
    default = _per_object if settings.metrics_per_object(config) else _aggregated
    pages = {"": default, "/default": default, "/per-object": _per_object, "/detailed": _detailed}
    for name, handler in pages.items():
        for end in ("", "/"):  # RabbitMQ's answers with a slash behind it as well
            app.router.add_get(f"{path}{name}{end}", handler)
    return app


@web.middleware
async def _for_monitors(request: web.Request, handler: Handler) -> web.StreamResponse:
    try:
        caller = await request.app[CALLERS].caller(request)
        if not caller.may("monitoring"):
            raise unauthorised(access.REFUSALS["monitoring"])
    except LoginRequired:
        return web.Response(status=401, headers={"WWW-Authenticate": REALM})
    except access.UnreadableLogin:
        return web.Response(status=400)
    except ApiError as error:
        response = reply(error.body(), error.status)
        response.headers.update(error.headers)
        return response
    return await handler(request)


async def _aggregated(request: web.Request) -> web.StreamResponse:
    return await _page(
        request, request.app[SUMS], lambda exposition, node: exposition.aggregated(node)
    )


async def _per_object(request: web.Request) -> web.StreamResponse:
    return await _page(
        request, request.app[OBJECTS], lambda exposition, node: exposition.per_object(node)
    )


async def _detailed(request: web.Request) -> web.StreamResponse:
    wanted = set(request.query.getall("family", []))
    vhosts = set(request.query.getall("vhost", [])) or None
    return await _page(
        request,
        request.app[OBJECTS],
        lambda exposition, node: exposition.detailed(node, wanted, vhosts),
    )


async def _page(request: web.Request, turn: asyncio.Lock, families: Families) -> web.StreamResponse:
    accepted = request.headers.get("Accept", "*/*")
    if "openmetrics" in accepted and "text/plain" not in accepted and "*/*" not in accepted:
        return web.Response(status=406)
    if request.method == "HEAD":
        return web.Response(headers={"Content-Type": CONTENT_TYPE})
    exposition = await asyncio.to_thread(import_module, "burrowmq.management.prometheus.exposition")
    has_waited = turn.locked()
    async with turn:
        if request.transport is None or request.transport.is_closing():
            return web.Response(status=503)  # nobody reads it
        if has_waited and deadlines.has_ended(request):
            # A scraper whose time is over; who ends its side to read the answer is rare, and can ask again.
            return web.Response(status=503)
        node = request.app[HOST].running
        if node is None:
            return web.Response(status=503)
        response = web.StreamResponse(headers={"Content-Type": CONTENT_TYPE})
        compress(request, response)
        try:
            async with asyncio.timeout(PAGE_LIMIT_S):
                found = await families(exposition, node)
                await response.prepare(request)
                async for lines in exposition.written(found):
                    await response.write(lines)
                await response.write_eof()
        except (ConnectionError, TimeoutError):
            # Nobody reads it, or too slowly: others wait for their turn.
            if request.transport is not None:
                request.transport.abort()
        return response
