"""The HTTP API's resources, one module each; `ROUTES` is the table of all of them."""

from __future__ import annotations

from management.api import (
    bindings,
    burrowmq,
    connections,
    definitions,
    exchanges,
    health,
    overview,
    queues,
    users,
    vhosts,
)
from management.reply import Route

ROUTES: tuple[Route, ...] = (
    *overview.ROUTES,
    *queues.ROUTES,
    *exchanges.ROUTES,
    *bindings.ROUTES,
    *connections.ROUTES,
    *vhosts.ROUTES,
    *users.ROUTES,
    *definitions.ROUTES,
    *health.ROUTES,
    *burrowmq.ROUTES,
)
