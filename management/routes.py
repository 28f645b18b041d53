"""All routes of the HTTP API: the handlers' table, with what the query may ask of many of them, and its description.

Owns no state; `management.server` serves these.
"""

from __future__ import annotations

from burrowmq.management import api
from burrowmq.management.answers.reply import Route
from burrowmq.management.description.openapi import with_description
from burrowmq.management.without_stats import with_short_ways

ROUTES: tuple[Route, ...] = with_description(with_short_ways(api.ROUTES))
