"""burrowmq.management.browser.headers: on every kind of answer."""

from __future__ import annotations

import http.client

import pytest

from burrowmq.management.browser.headers import HEADERS
from tests.support.served import Served, request


@pytest.mark.parametrize(
    ("method", "path", "login", "status"),
    [
        ("GET", "/api/overview", "guest:guest", 200),
        ("GET", "/api/overview", None, 401),
        ("GET", "/api/nosuch", "guest:guest", 404),
        ("DELETE", "/api/overview", "guest:guest", 405),
        ("OPTIONS", "/api/overview", None, 200),
        ("PUT", "/api/queues/%2F/new", "guest:guest", 201),
        ("PUT", "/api/users/u", "guest:guest", 400),
    ],
)
def test_every_answer_has_them(
    served: Served, method: str, path: str, login: str | None, status: int
) -> None:
    answer = served.api(method, path, {} if method == "PUT" else None, login=login)
    assert answer.status == status
    assert {name: answer.headers[name.lower()] for name in HEADERS} == HEADERS
    assert answer.headers["server"] == "BurrowMQ"


def test_a_body_beyond_the_limit_has_them(served: Served) -> None:
    answer = served.api("POST", "/api/definitions", b"x" * 20_971_521)
    assert answer.status == 400
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_the_page_has_them_and_may_be_kept(served: Served) -> None:
    answer = served.api("GET", "/", login=None)
    assert "frame-ancestors 'none'" in answer.headers["content-security-policy"]
    assert answer.headers["x-content-type-options"] == "nosniff"


def test_nobody_is_told_which_version_answers(served: Served) -> None:
    """Not by the metrics, nor to what is no HTTP."""
    assert request(served.metrics_port, "GET", "/metrics").headers["server"] == "BurrowMQ"
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
    connection.connect()
    connection.sock.sendall(b"AMQP\x00\x00\x09\x01\r\n\r\n")
    answer = connection.sock.recv(4096)
    connection.close()
    assert b"aiohttp" not in answer.lower()
    assert b"python" not in answer.lower()
