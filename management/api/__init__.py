"""The HTTP API's resources, one module each; `ROUTES` is the table of all of them."""

from __future__ import annotations

from burrowmq.management.answers.reply import Route
from burrowmq.management.api import (
    auth,
    backup,
    bindings,
    burrowmq,
    connections,
    definitions,
    exchanges,
    feature_flags,
    health,
    limits,
    login,
    operator,
    overview,
    pages,
    parameters,
    policies,
    queues,
    reset,
    topic_permissions,
    users,
    vhosts,
)

ROUTES: tuple[Route, ...] = (
    *overview.ROUTES,
    *reset.ROUTES,
    *queues.ROUTES,
    *exchanges.ROUTES,
    *bindings.ROUTES,
    *connections.ROUTES,
    *vhosts.ROUTES,
    *users.ROUTES,
    *auth.ROUTES,
    *login.ROUTES,
    *topic_permissions.ROUTES,
    *policies.ROUTES,
    *parameters.ROUTES,
    *limits.ROUTES,
    *definitions.ROUTES,
    *health.ROUTES,
    *backup.ROUTES,
    *feature_flags.ROUTES,
    *operator.ROUTES,
    *burrowmq.ROUTES,
    *pages.ROUTES,
)
