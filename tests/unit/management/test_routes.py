"""The routes that are served are those of the handlers, and two of their description."""

from __future__ import annotations

from burrowmq.management import api
from burrowmq.management.routes import ROUTES


def test_nothing_is_lost_on_the_way() -> None:
    described = [(route.method, route.path) for route in ROUTES]
    assert described == [
        *((route.method, route.path) for route in api.ROUTES),
        ("GET", "/api/openapi.json"),
        ("GET", "/api/index.html"),
    ]
    assert len(set(described)) == len(described)
