"""Requests that mean harm: formats, line ends, paths and passwords where they do not belong."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest
from pika import spec

from burrowmq.management.routes import ROUTES
from tests.support.bench.world import small_world
from tests.support.served import Served, serving

CANARY = "c4n4ry-pa55word"
HOSTILE = (
    "%s%n{0.__class__}${jndi}", "../../etc/passwd", "..\\\\..\\\\x", "a\r\nSet-Cookie: x=1", "a\x00b",
    "C:\\\\x", "/etc",
)  # fmt: skip


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Served]:
    with serving(tmp_path / "data", small_world) as running:
        yield running


def test_a_reason_is_text_and_no_format(served: Served) -> None:
    client = served.bench.clients[0]
    name = quote(served.get("/api/connections")[0]["name"], safe="")
    reason = "%s %(x)d {0} {0.__class__} ${x}"
    headers = {"X-Reason": reason}
    assert served.api("DELETE", f"/api/connections/{name}", None, **headers).status == 204
    (close,) = [found for _, found in client.read() if isinstance(found, spec.Connection.Close)]
    assert close.reply_text == f"CONNECTION_FORCED - {reason}"


def test_no_answer_can_be_split(served: Served) -> None:
    for text in HOSTILE:
        address = quote(text, safe="")
        answers = [
            served.api("GET", f"/api/queues/%2F/{address}"),
            served.api("PUT", f"/api/queues/%2F/{address}", {}),
            served.api("POST", f"/api/bindings/%2F/e/amq.topic/q/{address}", {"routing_key": text}),
            served.api("GET", f"/api/queues?page=1&name={address}&sort={address}"),
        ]
        for answer in answers:
            assert "set-cookie" not in answer.headers
            assert answer.headers.get("x-content-type-options") == "nosniff"
            assert answer.status < 500


def test_names_become_no_paths(served: Served, tmp_path: Path) -> None:
    before = {path.name for path in tmp_path.iterdir()}
    for text in HOSTILE:
        address = quote(text, safe="")
        served.api("PUT", f"/api/vhosts/{address}")
        served.api("PUT", f"/api/queues/{address}/{address}", {"durable": True})
        name = text.replace("\r", "").replace("\n", "")  # as it is declared
        found = served.api("GET", f"/api/queues/{address}/{quote(name, safe='')}").body
        assert (found["name"], found["vhost"]) == (name, text)
    places = served.bench.disk._names
    assert not [name for names in places.values() for name in names if "passwd" in name]
    assert {path.name for path in tmp_path.iterdir()} == before


def test_a_password_is_nowhere(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    body = {"password": CANARY, "tags": "administrator"}
    assert served.api("PUT", "/api/users/bob", body).status == 201
    assert served.api("GET", "/api/whoami", login=f"bob:{CANARY}").status == 200
    assert served.api("GET", "/api/whoami", login=f"eve:{CANARY}").status == 401
    assert served.api("POST", "/api/login", f"username=bob&password={CANARY}x").status >= 400
    assert served.api("PUT", "/api/users/x", {"password": CANARY, "password_hash": 1}).status == 400
    for route in ROUTES:
        if route.method == "GET" and "{" not in route.path:
            answer = served.api("GET", route.path, login=f"bob:{CANARY}")
            assert CANARY not in str(answer.body), route.path
            assert CANARY not in str(answer.headers), route.path
    for path in ("users/bob", "queues/%2F/lazy", "nodes/rabbit@test", "vhosts/%2F"):
        assert CANARY not in str(served.get(f"/api/{path}"))
    assert CANARY not in caplog.text
    assert CANARY not in str(served.bench.observer.events)
    assert CANARY not in str(served.bench.store.load())
