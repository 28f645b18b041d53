"""burrowmq.management.browser.origins, behind the server: what pages and tools send."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import pytest

from burrowmq.config.schema import ManagementConfig
from burrowmq.management.aio import web
from burrowmq.management.browser.origins import Origins
from tests.support.bench.world import small_world
from tests.support.served import Answer, Served, serving

EVIL = "http://evil.example"
FRIEND = "https://console.example"
ADMINISTRATOR = json.dumps(
    {"users": [{"name": "mallory", "password": "x", "tags": "administrator"}]}
)
FORMS = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x")


def import_users(served: Served, **headers: str) -> Answer:
    return served.api("POST", "/api/definitions", ADMINISTRATOR, **headers)


def names(served: Served) -> set[str]:
    return set(served.node.auth.users)


@pytest.mark.parametrize("kind", [*FORMS, "application/json", None])
@pytest.mark.parametrize(
    "marks",
    [
        {"Origin": EVIL},
        {"Origin": "null"},
        {"Origin": EVIL, "Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Referer": f"{EVIL}/page"},
        {"Origin": "http://127.0.0.1"},
        {"Origin": "http://127.0.0.1:1"},
    ],
)
def test_a_page_of_another_origin_changes_nothing(
    served: Served, marks: dict[str, str], kind: str | None
) -> None:
    sent = {**marks, **({} if kind is None else {"Content-Type": kind})}
    answer = import_users(served, **sent)
    assert (answer.status, answer.body["error"]) == (403, "forbidden")
    assert "mallory" not in names(served)
    assert "access-control-allow-origin" not in answer.headers
    for method in ("PUT", "DELETE"):
        assert served.api(method, "/api/queues/%2F/orders", "{}", **sent).status == 403
    assert served.api("GET", "/api/overview", **marks).status == 200  # which that page cannot read


@pytest.mark.parametrize("kind", [None, *FORMS[:2], "application/json", "application/octet-stream"])
def test_tools_send_what_they_like(served: Served, kind: str | None) -> None:
    """None from requests and http.client, a form's from urllib and curl -d, JSON from all that are made for it."""
    sent = {} if kind is None else {"Content-Type": kind}
    assert import_users(served, **sent).status == 204
    assert "mallory" in names(served)
    assert served.api("PUT", "/api/queues/%2F/new", "{}", **sent).status == 201


def test_the_servers_own_pages_write_json(served: Served) -> None:
    for marks in (
        {"Origin": f"http://127.0.0.1:{served.port}"},
        {"Origin": "http://proxied.example", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "https://proxied.example", "Host": "proxied.example"},
        {"Origin": "https://proxied.example", "Host": "Proxied.example:443"},
        {"Sec-Fetch-Site": "none"},
        {"Referer": f"http://127.0.0.1:{served.port}/"},
    ):
        sent = {**marks, "Content-Type": "application/json"}
        assert import_users(served, **sent).status == 204, marks
        assert served.api("DELETE", "/api/queues/%2F/orders/contents", **marks).status == 204


@pytest.mark.parametrize("kind", FORMS)
def test_forms_of_our_own_pages_are_refused_but_for_an_upload(served: Served, kind: str) -> None:
    own = {"Origin": f"http://127.0.0.1:{served.port}", "Sec-Fetch-Site": "same-origin"}
    assert served.api("PUT", "/api/users/u", "{}", **own, **{"Content-Type": kind}).status == 403
    body = (
        '--x\r\nContent-Disposition: form-data; name="file"; filename="a.json"\r\n\r\n'
        f"{ADMINISTRATOR}\r\n--x--\r\n"
    )
    answer = served.api("POST", "/api/definitions", body, **own, **{"Content-Type": kind})
    assert answer.status == (204 if kind.startswith("multipart") else 403)


@pytest.fixture
def friendly(tmp_path: Path) -> Iterator[Served]:
    config = ManagementConfig(allowed_origins=(FRIEND,))
    with serving(tmp_path / "data", small_world, config) as running:
        yield running


def preflight(served: Served, origin: str) -> Answer:
    return served.api(
        "OPTIONS",
        "/api/queues/%2F/q",
        login=None,
        Origin=origin,
        **{"Access-Control-Request-Headers": "authorization"},
    )


def test_a_named_origin_is_told_that_it_may(friendly: Served) -> None:
    answer = preflight(friendly, FRIEND)
    told = {name: answer.headers.get(f"access-control-{name}") for name in ALLOWED}
    assert answer.status == 200
    assert told == {**ALLOWED, "allow-origin": FRIEND, "allow-credentials": "true"}
    answer = friendly.api("GET", "/api/overview", Origin=FRIEND)
    assert answer.headers["access-control-allow-origin"] == FRIEND
    assert answer.headers["vary"] == "Origin"
    answer = friendly.api("GET", "/api/overview", Origin=FRIEND, login="guest:wrong")
    assert (answer.status, answer.headers["access-control-allow-origin"]) == (401, FRIEND)
    assert "access-control-allow-origin" not in preflight(friendly, EVIL).headers


ALLOWED: dict[str, Any] = {
    "allow-origin": None,
    "allow-credentials": None,
    "allow-methods": "HEAD, GET, PUT, DELETE, OPTIONS",
    "allow-headers": "authorization",
    "max-age": "1800",
}


def test_a_named_origin_writes_what_its_browser_has_asked_about(friendly: Served) -> None:
    sent = {"Origin": FRIEND, "Sec-Fetch-Site": "cross-site"}
    for kind in FORMS:
        assert import_users(friendly, **sent, **{"Content-Type": kind}).status == 403
    assert import_users(friendly, **sent).status == 403  # a body without a type is not asked about
    assert import_users(friendly, **sent, **{"Content-Type": "application/json"}).status == 204
    assert friendly.api("DELETE", "/api/users/mallory", **sent).status == 204


def test_any_origin_gets_no_login_along(tmp_path: Path) -> None:
    config = ManagementConfig(allowed_origins=("*",))
    with serving(tmp_path / "data", small_world, config) as served:
        headers = preflight(served, EVIL).headers
        assert headers["access-control-allow-origin"] == "*"
        assert "access-control-allow-credentials" not in headers
        assert "access-control-allow-origin" not in preflight(served, "null").headers


class Asked:
    """A request over TLS."""

    headers: dict[str, str]
    secure = True
    method = "PUT"
    path = "/api/users/u"
    content_type = "application/json"
    host = "mq.example"


def test_over_tls_a_plain_page_of_the_same_host_is_a_foreign_one() -> None:
    request = Asked()
    request.headers = {"Origin": "http://mq.example"}
    assert "http://mq.example may not" in Origins().fault(cast("web.Request", request))
    request.headers = {"Origin": "https://mq.example"}
    assert Origins().fault(cast("web.Request", request)) == ""
