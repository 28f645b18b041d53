"""/api/login and what its cookie is good for."""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import urlencode

import pytest

from burrowmq.management.callers import ASKED_BY_SCRIPT
from tests.support.bench.world import small_world
from tests.support.served import Answer, Served, request, serving

SCRIPT = {ASKED_BY_SCRIPT: "BurrowMQ"}
GUEST = {"username": "guest", "password": "guest"}


def post(served: Served, body: object, **headers: str) -> Answer:
    return request(served.port, "POST", "/api/login", body, {**SCRIPT, **headers})


def cookie_of(answer: Answer) -> str:
    return answer.headers["set-cookie"].partition(";")[0]


def log_in(served: Served) -> str:
    answer = post(served, GUEST)
    assert (answer.status, answer.body) == (200, "ok")
    return cookie_of(answer)


def ask(
    served: Served, cookie: str, method: str = "GET", path: str = "/api/whoami", **more: str
) -> Answer:
    headers = {"Cookie": cookie, **SCRIPT, **more}
    return request(served.port, method, path, None, headers)


def test_a_login_is_a_cookie_that_scripts_and_other_pages_do_not_have(served: Served) -> None:
    answer = post(served, GUEST)
    name, _, rest = answer.headers["set-cookie"].partition("=")
    assert re.fullmatch(r"burrowmq-[0-9a-f]{8}", name)
    token, *attributes = rest.split("; ")
    assert len(token) == 64
    assert sorted(attributes) == ["HttpOnly", "Max-Age=28800", "Path=/", "SameSite=Strict"]
    assert "guest" not in answer.headers["set-cookie"]
    answer = ask(served, cookie_of(answer))
    assert (answer.status, answer.body["name"]) == (200, "guest")


def test_before_a_proxy_that_ends_tls_the_cookie_is_secure(served: Served) -> None:
    proxied = {"Origin": "https://mq.example", "Host": "mq.example"}
    answer = post(served, GUEST, **proxied, **{"Content-Type": "application/json"})
    assert "Secure" in answer.headers["set-cookie"].split("; ")


def test_as_rabbitmq_a_form_logs_in(served: Served) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    assert post(served, urlencode(GUEST), **form).body == "ok"
    assert request(served.port, "GET", "/api/login").status == 405


@pytest.mark.parametrize(
    ("body", "status", "reason"),
    [
        ({"username": "guest", "password": "wrong"}, 401, "Login failed"),
        ({"username": "nobody", "password": "x"}, 401, "Login failed"),
        ({"username": "plain", "password": "x"}, 401, "Not management user"),
        ({"username": "guest"}, 400, "username and password are needed"),
        ({"username": ["guest"], "password": "guest"}, 400, "username and password are needed"),
        ("[]", 400, "username and password are needed"),
        ("{", 400, "not_json"),
        (b"\xff", 400, "not_json"),
        (b"x" * 70_000, 413, "a login is at most 65536 bytes"),
    ],
)
def test_what_does_not_log_in(served: Served, body: object, status: int, reason: str) -> None:
    served.api("PUT", "/api/users/plain", {"password": "x", "tags": ""})
    answer = post(served, body)
    assert (answer.status, answer.body["reason"]) == (status, reason)
    assert "set-cookie" not in answer.headers
    assert "www-authenticate" not in answer.headers


def test_the_cookie_counts_only_for_scripts_of_the_page(served: Served) -> None:
    """A link, a form or an image of any page cannot set a header."""
    cookie = log_in(served)
    answer = request(served.port, "GET", "/api/whoami", None, {"Cookie": cookie})
    assert answer.status == 401
    answer = ask(served, cookie, "DELETE", "/api/queues/%2F/orders", Origin="http://evil.example")
    assert answer.status == 403
    assert ask(served, cookie, "DELETE", "/api/queues/%2F/orders").status == 204


def test_scripts_are_not_asked_for_a_password_by_the_browser(served: Served) -> None:
    assert "www-authenticate" not in ask(served, "burrowmq-x=1").headers
    answer = request(served.port, "GET", "/api/whoami")
    assert (answer.status, "www-authenticate" in answer.headers) == (401, True)


def test_a_logout_ends_it_and_forgets_the_cookie(served: Served) -> None:
    cookie, other = log_in(served), log_in(served)
    answer = ask(served, cookie, "DELETE", "/api/login")
    assert answer.status == 204
    assert "Max-Age=0" in answer.headers["set-cookie"]
    assert ask(served, cookie).status == 401
    assert ask(served, other).status == 200
    assert ask(served, cookie, "DELETE", "/api/login").status == 204


@pytest.mark.parametrize(
    "change",
    [
        {"password": "new", "tags": "administrator"},
        {"password": "x", "tags": "administrator"},
        {"password": "x", "tags": "management"},
        None,
    ],
)
def test_it_ends_with_a_new_password_other_tags_or_the_user(
    served: Served, change: dict[str, str] | None
) -> None:
    served.api("PUT", "/api/users/ann", {"password": "x", "tags": "administrator"})
    cookie = cookie_of(post(served, {"username": "ann", "password": "x"}))
    assert ask(served, cookie).status == 200
    served.api("DELETE" if change is None else "PUT", "/api/users/ann", change)
    assert ask(served, cookie).status == 401


def test_a_login_is_no_change_for_the_log(served: Served) -> None:
    ask(served, log_in(served), "DELETE", "/api/login")
    assert served.bench.observer.named("change_made") == []


def test_guest_needs_to_be_here_with_the_cookie_too(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    cookie = log_in(served)
    monkeypatch.setattr("burrowmq.management.answers.access.peer_is_loopback", lambda _: False)
    answer = ask(served, cookie)
    assert (answer.status, answer.body["reason"]) == (401, "User can only log in via localhost")


def test_guesses_are_counted_here_too(tmp_path: Path) -> None:
    with serving(tmp_path / "data", small_world) as served:
        answers = [post(served, {"username": "guest", "password": "no"}).status for _ in range(11)]
    assert answers == [401] * 10 + [429]
