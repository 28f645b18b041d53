"""The HTTP API's answers themselves: status, the headers that clients and browsers go by, and requests that are odd."""

from __future__ import annotations

import base64
from typing import Any

from tests.differential.broker import Broker

Record = Any
KEPT = ("Content-Type", "WWW-Authenticate", "Location", "Allow")
GUEST = {"Authorization": "Basic " + base64.b64encode(b"guest:guest").decode()}
JSON = {"Content-Type": "application/json"}


def _ask(
    broker: Broker,
    verb: str,
    path: str,
    headers: dict[str, str] | None = None,
    data: str | None = None,
    kept: tuple[str, ...] = KEPT,
) -> dict[str, Any]:
    status, found, body = broker.raw_http(verb, path, GUEST if headers is None else headers, data)
    record: dict[str, Any] = {"status": status, "is empty": not body}
    if verb == "GET" and status == 200:
        record["Cache-Control"] = found["Cache-Control"]
    return record | {key: found[key] for key in kept if key in found}


def lists_and_objects(broker: Broker) -> Record:
    return {
        path: _ask(broker, "GET", f"/api/{path}")
        for path in ("overview", "queues", "queues/%2F/none", "nonsense", "whoami", "definitions")
    }


def without_a_login(broker: Broker) -> Record:
    basic = base64.b64encode(b"guest").decode()
    return {
        "none": _ask(broker, "GET", "/api/overview", {}),
        "not basic": _ask(broker, "GET", "/api/overview", {"Authorization": "Digest abc"}),
        "no base64": _ask(broker, "GET", "/api/overview", {"Authorization": "Basic %%%"}),
        "no colon": _ask(broker, "GET", "/api/overview", {"Authorization": f"Basic {basic}"}),
        "the way to log in": _ask(broker, "GET", "/api/auth", {}),
    }


def created_and_there_already(broker: Broker) -> Record:
    vhost = broker.own("answered")
    broker.forget("queue", "q")
    broker.also(broker.http, "DELETE", f"vhosts/{vhost}")
    asked = (
        ("PUT", "/api/queues/%2F/q", "{}"),
        ("PUT", "/api/queues/%2F/q", "{}"),
        ("POST", "/api/bindings/%2F/e/amq.topic/q/q", '{"routing_key":"a b/#"}'),
        ("POST", "/api/bindings/%2F/e/amq.topic/q/q", '{"routing_key":""}'),
        ("PUT", f"/api/vhosts/{vhost}", "{}"),
        ("DELETE", "/api/queues/%2F/q", None),
    )
    return [_ask(broker, verb, path, GUEST | JSON, data) for verb, path, data in asked]


def verbs_on_each(broker: Broker) -> Record:
    paths = ("overview", "queues", "queues/%2F/q", "bindings/%2F/e/amq.topic/q/q", "definitions")
    return {
        f"{verb} {path}": _ask(broker, verb, f"/api/{path}", GUEST | JSON)
        for path in paths
        for verb in ("HEAD", "OPTIONS", "PATCH")
    }


def what_a_client_accepts(broker: Broker) -> Record:
    kinds = ("application/json", "*/*", "application/*", "application/json;q=0.9, */*;q=0.1")
    return {kind: _ask(broker, "GET", "/api/whoami", GUEST | {"Accept": kind}) for kind in kinds}


def kinds_of_bodies(broker: Broker) -> Record:
    broker.forget("queue", "q")
    kinds = ("application/json", "text/plain", "application/x-www-form-urlencoded", "*/*")
    return {
        kind: _ask(broker, "PUT", "/api/queues/%2F/q", GUEST | {"Content-Type": kind}, "{}")
        for kind in kinds
    }


def a_body_without_a_kind(broker: Broker) -> Record:
    broker.forget("queue", "q")
    return _ask(broker, "PUT", "/api/queues/%2F/q", GUEST, "{}")


def other_sites(broker: Broker) -> Record:
    """By default no page of another site may ask."""
    kept = ("Access-Control-Allow-Origin", "Access-Control-Allow-Methods")
    origin = {"Origin": "http://elsewhere.example", "Access-Control-Request-Method": "GET"}
    return [
        _ask(broker, verb, "/api/queues", GUEST | origin, kept=kept) for verb in ("GET", "OPTIONS")
    ]


def odd_addresses(broker: Broker) -> Record:
    paths = ("/api//queues", "/api/queues/", "/api/queues/%2f", "/api/queues//", "/nonsense")
    paths += ("/API/queues", "/api/queues/%2F/", "/api/exchanges/%2F/amq.topic/")
    return {path: broker.raw_http("GET", path, GUEST)[0] for path in paths}


def bodies_of_other_shapes(broker: Broker) -> Record:
    bodies = ("", "[]", "1", '"x"', "null", '{"a":}', '{"durable":"maybe"}', '{"arguments":[]}')
    broker.forget("queue", "q")
    return {
        body: broker.raw_http("PUT", "/api/queues/%2F/q", GUEST | JSON, body)[0] for body in bodies
    }


def pages_that_are_wrong(broker: Broker) -> Record:
    queries = ("page=x", "page=1&page_size=x", "page=-1", "page=1&page_size=501", "page_size=5")
    queries += ("page=1&page_size=0", "page=1&use_regex=true&name=(", "sort=nonsense", "page=")
    kept = {}
    for query in queries:
        status, found = broker.http("GET", f"exchanges/%2F?columns=name&{query}")
        kept[query] = [status, found if status != 200 else type(found).__name__]
    return kept


def sorted_lists(broker: Broker) -> Record:
    vhost, peer = broker.inside("sorting")
    for name, length in (("b", 2), ("a", 1), ("c", 3)):
        peer.queue(name, {"x-max-length": length})
    queries = ("sort=name", "sort=name&sort_reverse=true", "sort=name&sort_reverse=false")
    queries += ("sort=arguments.x-max-length&sort_reverse=true", "sort=name&columns=arguments")
    queries += ("sort=name&columns=name,arguments.x-max-length,nonsense",)
    found = {}
    for query in queries:
        rows = broker.http("GET", f"queues/{vhost}?{query}")[1]
        found[query] = [
            {key: row[key] for key in ("name", "arguments", "nonsense") if key in row}
            for row in rows
        ]
    return found
