"""The description of the API is made of its routes, and RabbitMQ's index is all in it."""

from __future__ import annotations

import re
from pathlib import Path

from burrowmq.management.api import ROUTES as TABLE
from burrowmq.management.description.bodies import BODIES, WITHOUT_BODY
from burrowmq.management.description.openapi import openapi, plain_path, summary
from burrowmq.management.routes import ROUTES
from tests.support.served import Served

INDEX = Path(__file__).parents[3] / "data" / "management" / "rabbitmq-3.10.8-api.txt"
OF_A_PLUGIN = {"/api/federation-links", "/api/federation-links/{}"}
# Of RabbitMQ 3.13, or not on the index.
ALSO = """
GET /api/queues/detailed
GET /api/deprecated-features
GET /api/deprecated-features/used
GET /api/feature-flags
PUT /api/feature-flags/{}/enable
GET /api/config/effective
GET /api/auth/hash_password/{}
GET /api/policies
GET /api/healthchecks/node
GET /api/healthchecks/node/{}
GET /api/nodes/{}/memory
GET /api/nodes/{}/memory/relative
GET /api/nodes/{}/memory/ets
GET /api/nodes/{}/memory/ets/relative
GET /api/nodes/{}/memory/ets/{}
GET /api/nodes/{}/memory/ets/{}/relative
DELETE /api/reset
DELETE /api/reset/{}
POST /api/login
GET PUT DELETE /api/topic-permissions/{}/{}/{}
POST DELETE /api/vhosts/{}/deletion/protection
GET /api/index.html
"""


def served_operations() -> set[tuple[str, str]]:
    """Verb and path with {} for variables; a variable of few values is each of them."""
    found = set()
    for route in ROUTES:
        paths = [route.path]
        while any(re.search(r"\{\w+:", path) for path in paths):
            paths = [
                re.sub(r"\{\w+:[^}]+\}", value, path, count=1)
                for path in paths
                for value in re.search(r"\{\w+:([^}]+)\}", path)[1].split("|")  # type: ignore[index]
            ]
        found |= {(route.method, re.sub(r"\{\w+\}", "{}", path)) for path in paths}
    return found


def test_every_verb_of_every_path_of_rabbitmq_is_there() -> None:
    lines = [*INDEX.read_text().splitlines()[1:], *ALSO.split("\n")]
    wanted = {
        (verb, path)
        for *verbs, path in (line.split() for line in lines if line)
        for verb in verbs
        if path not in OF_A_PLUGIN
    }
    assert len(wanted) > 130
    assert wanted - served_operations() == set()


def test_what_is_described_is_what_is_routed(served: Served) -> None:
    description = served.get("/api/openapi.json")
    assert description["openapi"] == "3.1.0"
    described = {
        (verb.upper(), path) for path, verbs in description["paths"].items() for verb in verbs
    }
    assert described == {(route.method, plain_path(route.path)) for route in ROUTES}
    identities = [
        each["operationId"] for verbs in description["paths"].values() for each in verbs.values()
    ]
    assert len(identities) == len(set(identities))
    assert served.api("GET", "/api/openapi.json", login=None).status == 401


def test_every_operation_says_what_it_is_for_and_who_may() -> None:
    for path, verbs in openapi(ROUTES)["paths"].items():
        for verb, operation in verbs.items():
            assert operation["summary"], (verb, path)
            assert operation["x-least-tag"] in {
                "management", "monitoring", "policymaker", "administrator", "trusted",
            }  # fmt: skip
            named = {each["name"] for each in operation["parameters"] if each["in"] == "path"}
            assert named == set(re.findall(r"\{(\w+)\}", path)), path


def test_bodies_are_of_routes_and_every_route_of_rabbitmq_has_its_own() -> None:
    routed = {
        (route.method, plain_path(route.path)) for route in TABLE if route.method in ("PUT", "POST")
    }
    assert (BODIES.keys() | WITHOUT_BODY) - routed == set()
    missing = (
        {key for key in routed if "/api/burrowmq/" not in key[1]} - BODIES.keys() - WITHOUT_BODY
    )
    assert missing == set()


def test_lists_have_the_parameters_of_lists() -> None:
    paths = openapi(ROUTES)["paths"]

    def queries(path: str, verb: str = "get") -> set[str]:
        return {each["name"] for each in paths[path][verb]["parameters"] if each["in"] == "query"}

    assert {"page", "sort", "columns", "disable_stats"} <= queries("/api/queues/{vhost}")
    permissions = queries("/api/vhosts/{vhost}/permissions")
    assert {"sort", "columns"} <= permissions
    assert not {"page", "page_size", "name"} & permissions
    assert queries("/api/queues/{vhost}/{name}") == set()
    assert queries("/api/queues/{vhost}/{name}", "delete") == {"if-unused", "if-empty"}
    body = paths["/api/policies/{vhost}/{name}"]["put"]["requestBody"]
    assert body["content"]["application/json"]["schema"]["required"] == ["pattern", "definition"]
    assert paths["/api/auth"]["get"]["security"] == []
    assert "503" in paths["/api/health/checks/alarms"]["get"]["responses"]


def test_the_index_is_a_page_of_the_same(served: Served) -> None:
    page = served.api("GET", "/api/index.html")
    assert page.headers["content-type"] == "text/html; charset=utf-8"
    for route in ROUTES:
        assert f"<td>{plain_path(route.path)}</td>" in page.body
        assert summary(route)
