"""The metrics pages: /metrics (sums), /metrics/per-object, /metrics/detailed?family=.

Owns no state. prometheus_client and the families are imported at the first scrape, away from the loop: a node that
nobody scrapes starts sooner and stays smaller. No login, as in RabbitMQ. Source: the rabbitmq_prometheus plugin (3.13).
"""

from __future__ import annotations

import asyncio
from importlib import import_module
from typing import Any

from management import settings
from management.aio import web

CONTENT_TYPE = "text/plain; version=0.0.4"
NODE: web.AppKey[Any] = web.AppKey("node")


def create_app(node: Any) -> web.Application:
    """The application that listens on the metrics port."""
    app = web.Application()
    app[NODE] = node
    path = settings.metrics_path(node.config)
    app.router.add_get(
        path, _per_object if settings.metrics_per_object(node.config) else _aggregated
    )
    app.router.add_get(f"{path}/per-object", _per_object)
    app.router.add_get(f"{path}/detailed", _detailed)
    return app


async def _exposition() -> Any:
    return await asyncio.to_thread(import_module, "management.exposition")


async def _aggregated(request: web.Request) -> web.Response:
    exposition = await _exposition()
    return await _page(request, exposition, await exposition.aggregated(request.app[NODE]))


async def _per_object(request: web.Request) -> web.Response:
    exposition = await _exposition()
    return await _page(request, exposition, await exposition.per_object(request.app[NODE]))


async def _detailed(request: web.Request) -> web.Response:
    exposition = await _exposition()
    wanted = set(request.query.getall("family", []))
    vhosts = set(request.query.getall("vhost", [])) or None
    return await _page(
        request, exposition, await exposition.detailed(request.app[NODE], wanted, vhosts)
    )


async def _page(request: web.Request, exposition: Any, families: list[Any]) -> web.Response:
    accepted = request.headers.get("Accept", "*/*")
    if "openmetrics" in accepted and "text/plain" not in accepted and "*/*" not in accepted:
        return web.Response(status=406)
    body = await asyncio.to_thread(exposition.text, families)
    response = web.Response(body=body, headers={"Content-Type": CONTENT_TYPE})
    if "gzip" in request.headers.get("Accept-Encoding", ""):
        response.enable_compression(web.ContentCoding.gzip)
    return response
