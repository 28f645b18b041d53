"""Compression and ETags of the API's answers."""

from __future__ import annotations

import gzip
import http.client
import json

import pytest
from aiohttp.test_utils import make_mocked_request

from burrowmq.management.aio import accepts_gzip
from burrowmq.management.answers.encoding import COMPRESSED_FROM_BYTES
from tests.support.served import Served

LOGIN = {"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}


def ask(served: Served, path: str, **headers: str) -> tuple[http.client.HTTPResponse, bytes]:
    """The answer as it came over the wire."""
    connection = http.client.HTTPConnection("127.0.0.1", served.port, timeout=10)
    try:
        connection.request("GET", path, headers={**LOGIN, **headers})
        answer = connection.getresponse()
        return answer, answer.read()
    finally:
        connection.close()


def test_who_has_it_already_gets_no_body(served: Served) -> None:
    first, body = ask(served, "/api/exchanges")
    tag = first.headers["ETag"]
    assert tag.startswith('W/"')
    again, nothing = ask(served, "/api/exchanges", **{"If-None-Match": f'"other", {tag}'})
    assert (again.status, nothing, again.headers["ETag"]) == (304, b"", tag)
    assert again.headers["Cache-Control"] == first.headers["Cache-Control"]
    served.api("PUT", "/api/exchanges/%2F/new", {"type": "fanout"})
    changed, other = ask(served, "/api/exchanges", **{"If-None-Match": tag})
    assert (changed.status, len(other) > len(body)) == (200, True)
    assert changed.headers["ETag"] != tag


@pytest.mark.parametrize("columns", ["name,arguments,state,type", "name"])
def test_what_is_long_is_compressed_for_who_accepts_it(served: Served, columns: str) -> None:
    for n in range(20):
        served.bench.queue(f"queue-{n}")
    path = f"/api/queues?columns={columns}"
    plain, body = ask(served, path)
    packed, text = ask(served, path, **{"Accept-Encoding": "br, gzip"})
    is_long = len(body) >= COMPRESSED_FROM_BYTES
    assert is_long == (columns != "name")
    assert packed.headers.get("Content-Encoding") == ("gzip" if is_long else None)
    assert json.loads(gzip.decompress(text) if is_long else text) == json.loads(body)
    assert packed.headers["ETag"] == plain.headers["ETag"]


@pytest.mark.parametrize(
    ("said", "is_accepted"),
    [("gzip", True), ("br;q=1, GZIP;q=0.5", True), ("*", True), ("", False), ("gzip; q=0", False), ("br", False)],
)  # fmt: skip
def test_what_a_request_accepts(said: str, is_accepted: bool) -> None:
    request = make_mocked_request("GET", "/", headers={"Accept-Encoding": said})
    assert accepts_gzip(request) == is_accepted


def test_a_change_has_no_tag(served: Served) -> None:
    answer = served.api("PUT", "/api/queues/%2F/q", {})
    assert (answer.status, "etag" in answer.headers) == (201, False)
