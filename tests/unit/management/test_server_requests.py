"""burrowmq.management.server: requests that are broken before any handler sees them."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import struct
import threading
from collections.abc import Iterator

import pytest

from burrowmq.management.commands import commit
from tests.support.served import Served

GZIP = {"Content-Encoding": "gzip"}


@pytest.mark.parametrize(
    "path", ["%2F/%ZZ", "%2F/100%", "%2F/%f", "%2F/%ff", "%2F/a%C3", "%2F/q?columns=%"]
)
def test_escapes_that_are_none_are_no_part_of_a_name(served: Served, path: str) -> None:
    answer = served.api("PUT", f"/api/queues/{path}", {})
    assert (answer.status, answer.body) == (400, "")
    assert set(served.node.vhosts["/"].queues) == {"orders", "lazy"}


def test_a_percent_sign_that_is_escaped_is_one(served: Served) -> None:
    assert served.api("PUT", "/api/queues/%2F/100%25", {}).status == 201
    assert served.get("/api/queues/%2F/100%25")["name"] == "100%"


@pytest.mark.parametrize("path", ["/api/queues/%2F/q", "/api/definitions"])
def test_a_body_that_is_not_packed_as_it_says_is_the_clients_fault(
    served: Served, path: str, caplog: pytest.LogCaptureFixture
) -> None:
    method = "POST" if "definitions" in path else "PUT"
    answer = served.api(method, path, "{}", **GZIP)
    assert (answer.status, answer.body["reason"]) == (400, "not_json")
    login = served.api("POST", "/api/login", "{}", login=None, **GZIP)
    assert login.status == 400
    assert not [each for each in caplog.records if each.levelno >= logging.ERROR]


@pytest.mark.parametrize(
    ("method", "path", "body"),
    [
        ("PUT", "/api/users/u", {"password": "\ud800", "tags": ""}),
        (
            "POST",
            "/api/exchanges/%2F/amq.default/publish",
            {
                "routing_key": "q",
                "properties": {},
                "payload": "\ud800",
                "payload_encoding": "string",
            },
        ),
        (
            "POST",
            "/api/exchanges/%2F/amq.default/publish",
            {
                "routing_key": "\ud800",
                "properties": {},
                "payload": "",
                "payload_encoding": "string",
            },
        ),
    ],
)
def test_half_a_surrogate_pair_is_the_clients_fault(
    served: Served, method: str, path: str, body: dict[str, str]
) -> None:
    answer = served.api(method, path, body)
    assert (answer.status, answer.body["reason"]) == (400, "not_json")


@pytest.mark.parametrize("longer", ["line", "header"])
def test_what_is_too_long_is_a_bad_request(served: Served, longer: str) -> None:
    """RabbitMQ: 414 and 431."""
    path, header = ("/" + "x" * 20_000, "x") if longer == "line" else ("/", "x" * 20_000)
    assert served.api("GET", path, None, Long=header).status == 400


LOGIN = b"Host: x\r\nAuthorization: Basic Z3Vlc3Q6Z3Vlc3Q=\r\n"
RESET_AT_CLOSE = struct.pack("ii", 1, 0)


@pytest.mark.parametrize("is_reset", [False, True])
def test_who_leaves_while_sending_is_no_error_of_the_server(
    served: Served, caplog: pytest.LogCaptureFixture, is_reset: bool
) -> None:
    with socket.create_connection(("127.0.0.1", served.port)) as peer:
        if is_reset:
            peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET_AT_CLOSE)
        peer.sendall(
            b"PUT /api/queues/%2F/q HTTP/1.1\r\nContent-Length: 50\r\n" + LOGIN + b"\r\n{}"
        )
        served.get("/api/whoami")
    served.get("/api/whoami")
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


def test_who_leaves_before_a_long_answer_begins_is_no_error_of_the_server(
    served: Served, caplog: pytest.LogCaptureFixture
) -> None:
    queues = [{"name": f"q{i}", "vhost": "/", "durable": False} for i in range(200)]
    assert served.api("POST", "/api/definitions", {"queues": queues}).status == 204
    with held(served.bench.loop), socket.create_connection(("127.0.0.1", served.port)) as peer:
        peer.sendall(b"GET /api/queues HTTP/1.1\r\n" + LOGIN + b"\r\n")
    served.get("/api/whoami")
    assert not [each for each in caplog.records if each.levelno >= logging.WARNING]


@contextlib.contextmanager
def held(loop: asyncio.AbstractEventLoop) -> Iterator[None]:
    """The server's thread looks at nothing that is done meanwhile before all of it is."""
    begun, done = threading.Event(), threading.Event()

    def hold() -> None:
        begun.set()
        done.wait(10)

    loop.call_soon_threadsafe(hold)
    assert begun.wait(10)
    try:
        yield
    finally:
        done.set()


def test_an_origin_that_is_none_is_another_one(served: Served) -> None:
    answer = served.api("PUT", "/api/queues/%2F/q", {}, Origin="http://[")
    assert (answer.status, answer.body["error"]) == (403, "forbidden")


NOTHING_KEPT = (
    ("POST", "/api/login", {"username": "guest", "password": "guest"}),
    ("DELETE", "/api/login", None),
    ("POST", "/api/burrowmq/authenticate", {"username": "guest", "password": "guest"}),
    ("POST", "/api/burrowmq/hash-password", {"password": "x"}),
    ("POST", "/api/burrowmq/definitions-diff", {}),
    (
        "POST",
        "/api/burrowmq/pages/policy-preview/%2F",
        {"name": "p", "pattern": "o", "definition": {"max-length": 1}},
    ),
    ("POST", "/api/burrowmq/pages/route/%2F/amq.topic", {"routing_key": "a"}),
    ("POST", "/api/burrowmq/disk-free-limit", {"absolute": 1}),
    ("POST", "/api/burrowmq/memory-watermark", {"relative": 0.5}),
    ("POST", "/api/burrowmq/disk-watch", {"enabled": True}),
    ("POST", "/api/burrowmq/listeners", {"accept": True}),
    ("POST", "/api/burrowmq/maintenance", {"enabled": False}),
    ("POST", "/api/burrowmq/close-connections", {"reason": "x", "vhost": "/"}),
    ("DELETE", "/api/connections/username/guest", None),
    ("DELETE", "/api/auth/attempts/rabbit%40test", None),
    ("DELETE", "/api/reset", None),
)


@pytest.fixture
def full(served: Served, monkeypatch: pytest.MonkeyPatch) -> Served:
    """A node whose disk takes nothing."""
    monkeypatch.setattr(commit, "COMMIT_TIMEOUT_S", 0.05)
    monkeypatch.setattr(served.node.scheduler, "when_committed", lambda *_: None)
    return served


@pytest.mark.parametrize(("method", "path", "body"), NOTHING_KEPT)
def test_a_full_disk_keeps_nobody_from_what_leaves_nothing_on_it(
    full: Served, method: str, path: str, body: object
) -> None:
    answer = full.api(method, path, body)
    assert answer.status in (200, 204), answer


def test_messages_that_were_got_are_answered_though_the_disk_takes_no_acks(full: Served) -> None:
    body = {"count": 9, "ackmode": "ack_requeue_false", "encoding": "auto"}
    answer = full.api("POST", "/api/queues/%2F/orders/get", body)
    assert (answer.status, len(answer.body)) == (200, 3)


def test_a_change_that_a_full_disk_does_not_take_says_so(full: Served) -> None:
    full.node.alarms.causes["store"] = "/x/0.seg: pwrite failed: No space left on device"
    answer = full.api("PUT", "/api/users/bob", {"password": "x", "tags": ""})
    reason = (
        "the change was not written to disk yet: /x/0.seg: pwrite failed: No space left on device"
    )
    assert (answer.status, answer.body["reason"]) == (503, reason)
