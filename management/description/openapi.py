"""/api/openapi.json and /api/index.html: the API described from the table of its routes.

Owns no state but the two documents, made when they are asked for first. Path, verb, least tag and summary are those of
the table and its handlers, so a route that exists is described; bodies are in `management.description.bodies`. A list
has the query parameters of `answers.listing`.
"""

from __future__ import annotations

import html
import re
from functools import cache, partial
from typing import Any

from burrowmq.broker.product import RABBITMQ_VERSION, VERSION
from burrowmq.management.aio import web
from burrowmq.management.answers.reply import Call, Route, dump
from burrowmq.management.description.bodies import BODIES, OBJECT, WITHOUT_BODY

VARIABLE = re.compile(r"\{(\w+)(?::([^}]+))?\}")
VERBS = ("GET", "PUT", "POST", "DELETE")
TEXT = {"type": "string"}
FLAG = {"type": "boolean"}
NUMBER = {"type": "integer", "minimum": 1}
QUERIES: dict[str, tuple[dict[str, Any], str]] = {
    "page": (NUMBER, "which page, from 1; without it the answer is an array of everything"),
    "page_size": ({**NUMBER, "maximum": 500}, "rows of a page; 100 when it is not given"),
    "name": (TEXT, "only rows whose name has this in it"),
    "use_regex": (FLAG, "`name` is a regular expression"),
    "sort": (TEXT, "a column, `a.b` for one inside an object"),
    "sort_reverse": (FLAG, "the greatest first"),
    "columns": (TEXT, "only these, separated by commas; `a.b` reaches into an object"),
    "disable_stats": (FLAG, "what can be told without statistics"),
    "enable_queue_totals": (FLAG, "with `disable_stats`: the numbers of messages all the same"),
}
OF_PAGES = frozenset({"page", "page_size", "name", "use_regex"})
# GETs of one thing, or of a list without the parameters above.
PLAIN = re.compile(
    r"/api/(overview|whoami|auth.*|cluster-name|extensions|health.*|aliveness-test.*|definitions.*|all-configuration"
    r"|reset.*|config.*|nodes/.*|feature-flags|deprecated-features.*|burrowmq/.*|openapi.json|index.html|.*\{name\}"
    r"|.*\{properties\})"
)
CONDITIONS = {
    "/api/queues/{vhost}/{name}": ("if-unused", "if-empty"),
    "/api/exchanges/{vhost}/{exchange}": ("if-unused",),
}
REFUSALS = {
    "400": "what was sent cannot be taken; `reason` says why",
    "401": "no login, a wrong one, or too few rights",
    "404": "there is no such thing",
}
PUBLIC = ("/api/auth", "/api/login")


def with_description(routes: tuple[Route, ...]) -> tuple[Route, ...]:
    """The routes, and those of their description, which describes itself too."""
    described: list[Route] = list(routes)

    @cache
    def document() -> bytes:
        return dump(openapi(tuple(described)))

    @cache
    def page() -> bytes:
        return index(tuple(described)).encode()

    async def json_description(call: Call) -> web.Response:
        """This API in OpenAPI 3.1."""
        return web.Response(body=document(), content_type="application/json")

    async def html_index(call: Call) -> web.Response:
        """This API as a page: each path with its verbs."""
        return web.Response(body=page(), content_type="text/html", charset="utf-8")

    described.append(Route("GET", "/api/openapi.json", json_description))
    described.append(Route("GET", "/api/index.html", html_index))
    return tuple(described)


def openapi(routes: tuple[Route, ...]) -> dict[str, Any]:
    """The description."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        operations = paths.setdefault(plain_path(route.path), {})
        operations[route.method.lower()] = _operation(route)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "BurrowMQ: RabbitMQ's HTTP API",
            "version": VERSION,
            "description": f"The API of RabbitMQ {RABBITMQ_VERSION}. Paths below /api/burrowmq are burrowctl's and the"
            " UI's own, and may change. In a path a virtual host and every name is percent-encoded: / is %2F.",
        },
        "security": [{"basic": []}],
        "components": {
            "securitySchemes": {"basic": {"type": "http", "scheme": "basic"}},
            "schemas": {
                "Refusal": {
                    "type": "object",
                    "properties": {"error": TEXT, "reason": {}},
                    "required": ["error", "reason"],
                }
            },
        },
        "paths": dict(sorted(paths.items())),
    }


def plain_path(path: str) -> str:
    """A path without the patterns of its variables."""
    return VARIABLE.sub(r"{\1}", path)


def is_list(route: Route) -> bool:
    """Whether it takes the parameters of lists."""
    return route.method == "GET" and PLAIN.fullmatch(plain_path(route.path)) is None


def summary(route: Route) -> str:
    """The first line of what its handler says."""
    handler = route.handler.func if isinstance(route.handler, partial) else route.handler
    return (handler.__doc__ or "").strip().partition("\n")[0]


def _operation(route: Route) -> dict[str, Any]:
    path = plain_path(route.path)
    module = route.handler.func if isinstance(route.handler, partial) else route.handler
    operation: dict[str, Any] = {
        "operationId": _operation_id(route),
        "tags": [module.__module__.rpartition(".")[2].replace("_", "-")],
        "summary": summary(route),
        "x-least-tag": route.level,
        "parameters": [*_path_parameters(route.path), *_query_parameters(route)],
        "responses": _responses(route),
    }
    if path in PUBLIC:
        operation["security"] = []
    key = (route.method, path)
    if route.method in ("PUT", "POST") and key not in WITHOUT_BODY:
        schema = BODIES.get(key, OBJECT)
        operation["requestBody"] = {
            "required": "required" in schema,
            "content": {"application/json": {"schema": schema}},
        }
    return operation


def _operation_id(route: Route) -> str:
    words = re.findall(r"\w+", plain_path(route.path).removeprefix("/api/"))
    return "_".join([route.method.lower(), *words]).replace("-", "_")


def _path_parameters(path: str) -> list[dict[str, Any]]:
    return [
        {
            "name": name,
            "in": "path",
            "required": True,
            "schema": {**TEXT, "enum": pattern.split("|")} if pattern else TEXT,
        }
        for name, pattern in VARIABLE.findall(path)
    ]


def _query_parameters(route: Route) -> list[dict[str, Any]]:
    found = [("columns", *QUERIES["columns"])] if route.path == "/api/overview" else []
    if is_list(route):
        found = [
            (name, schema, text)
            for name, (schema, text) in QUERIES.items()
            if route.is_paged or name not in OF_PAGES
        ]
    if route.method == "DELETE":
        found = [(name, FLAG, "refuse otherwise") for name in CONDITIONS.get(route.path, ())]
    return [
        {"name": name, "in": "query", "description": text, "schema": schema}
        for name, schema, text in found
    ]


def _responses(route: Route) -> dict[str, Any]:
    done = {
        "GET": ("200",),
        "PUT": ("201", "204"),
        "DELETE": ("204",),
        "POST": ("200", "201", "204"),
    }
    responses: dict[str, Any] = {
        status: {"description": {"200": "found", "201": "made", "204": "done"}[status]}
        for status in done[route.method]
    }
    if "/health" in route.path:
        responses["503"] = {"description": "not well; `reason` says why"}
    refusal = {"application/json": {"schema": {"$ref": "#/components/schemas/Refusal"}}}
    for status, text in REFUSALS.items():
        responses[status] = {"description": text, "content": refusal}
    return responses


def index(routes: tuple[Route, ...]) -> str:
    """A page with a row for each path."""
    rows: dict[str, dict[str, Route]] = {}
    for route in routes:
        rows.setdefault(plain_path(route.path), {})[route.method] = route
    lines = []
    for path, verbs in sorted(rows.items()):
        cells = "".join(f"<td>{'X' if verb in verbs else ''}</td>" for verb in VERBS)
        told = " ".join(
            f"{verb}: {summary(verbs[verb])}" if len(verbs) > 1 else summary(verbs[verb])
            for verb in VERBS
            if verb in verbs
        )
        lines.append(f"<tr>{cells}<td>{html.escape(path)}</td><td>{html.escape(told)}</td></tr>")
    head = "".join(f"<th>{word}</th>" for word in (*VERBS, "Path", "Description"))
    return (
        "<!doctype html><html lang=en><meta charset=utf-8><title>BurrowMQ HTTP API</title><h1>BurrowMQ HTTP API</h1>"
        '<p>The same as data: <a href="openapi.json">openapi.json</a>.</p>'
        f"<table border=1><tr>{head}</tr>{''.join(lines)}</table></html>"
    )
