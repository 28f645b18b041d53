"""The table of all routes: complete, and each row answered by one module."""

from __future__ import annotations

import importlib
import pkgutil
from collections import Counter

from burrowmq.management import api
from burrowmq.management.answers.access import REFUSALS


def test_every_module_of_the_package_is_in_the_table() -> None:
    names = [module.name for module in pkgutil.iter_modules(api.__path__)]
    assert names
    for name in names:
        routes = importlib.import_module(f"burrowmq.management.api.{name}").ROUTES
        assert routes, name
        assert set(routes) <= set(api.ROUTES), name


def test_no_two_rows_answer_the_same_request() -> None:
    counts = Counter((route.method, route.path) for route in api.ROUTES)
    assert [request for request, count in counts.items() if count > 1] == []


def test_every_row_is_below_api_and_its_refusal_has_words() -> None:
    assert [route.path for route in api.ROUTES if not route.path.startswith("/api/")] == []
    assert {route.level for route in api.ROUTES} <= set(REFUSALS)
