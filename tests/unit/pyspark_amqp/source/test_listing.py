"""Queues by a pattern, from the management API of a broker, and from servers that are none."""

from __future__ import annotations

import socket
import threading
import uuid
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

pytest.importorskip("pyarrow", reason="needs pyarrow: run by `make test-spark`")

from pyspark_amqp.options import OptionReader, Queues
from pyspark_amqp.options.connection import Addresses, read_addresses
from pyspark_amqp.source.listing import REFRESH_S, Listing, ListingRefused
from pyspark_amqp.source.patience import Clock
from pyspark_amqp.wire import ConnectFailed, connect, declare_queue, delete_queue
from tests.support.broker_process import BrokerProcess


class StoppedClock(Clock):
    at_s = 0.0

    def now_s(self) -> float:
        return self.at_s


def addresses(url: str, **more: str) -> Addresses:
    return read_addresses(OptionReader({"amqp.uri": url, **more}))


def pattern(text: str, *places: str) -> Queues:
    return Queues(pattern=text, management_uris=places)


def test_names_are_given_as_they_are() -> None:
    listing = Listing(addresses("amqp://nowhere"), Queues(names=("b", "a")))
    assert list(listing) == ["b", "a"]


@pytest.mark.needs_server
def test_what_matches_is_looked_up_again_after_a_while(node: BrokerProcess) -> None:
    place, clock = f"http://127.0.0.1:{node.management_port}", StoppedClock()
    start = uuid.uuid4().hex
    listing = Listing(addresses(node.url), pattern(rf"{start}\.\d+", place), clock)
    assert list(listing) == []
    with connect(node.url) as connection:
        for name in (f"{start}.2", f"{start}.1", f"{start}.1.dead", f"x{start}.1"):
            declare_queue(connection, name)
        assert list(listing) == []
        clock.at_s += REFRESH_S
        assert list(listing) == [f"{start}.1", f"{start}.2"]
        delete_queue(connection, f"{start}.1")
        clock.at_s += REFRESH_S
        assert list(listing) == [f"{start}.2"]


@pytest.mark.needs_server
@pytest.mark.slow
def test_more_than_a_page(node: BrokerProcess) -> None:
    start = uuid.uuid4().hex
    with connect(node.url) as connection:
        for number in range(510):
            declare_queue(connection, f"{start}.{number}")
    place = f"http://127.0.0.1:{node.management_port}/"
    assert len(list(Listing(addresses(node.url), pattern(f"{start}.*", place)))) == 510


@pytest.mark.needs_server
def test_the_password_may_be_in_a_file(node: BrokerProcess, tmp_path: Path) -> None:
    place = f"http://127.0.0.1:{node.management_port}"
    secret = tmp_path / "password"
    url = node.url.replace("guest:guest@", "guest@")
    asked = addresses(url, **{"amqp.passwordFile": str(secret)})
    secret.write_text("wrong\n")
    with pytest.raises(ListingRefused, match="401"):
        list(Listing(asked, pattern(".*", place)))
    secret.write_text("guest\n")
    list(Listing(asked, pattern(".*", place)))


@pytest.mark.needs_server
def test_one_broker_after_the_other_is_asked(node: BrokerProcess) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        nobody = f"http://127.0.0.1:{free.getsockname()[1]}"
    place = f"http://127.0.0.1:{node.management_port}"
    assert list(Listing(addresses(node.url), pattern("no such", nobody, place))) == []
    with pytest.raises(ConnectFailed, match="queuePattern needs the management API"):
        list(Listing(addresses(node.url), pattern(".*", nobody)))


def test_the_usual_port_is_asked_when_none_is_given() -> None:
    for url, place in (
        ("amqp://127.0.0.2:1", "http://127.0.0.2:15672: "),
        ("amqps://127.0.0.2:1", "https://127.0.0.2:15671: "),
        ("amqp://[::1]:1?connection_timeout=1000", "http://[::1]:15672: "),
    ):
        with pytest.raises(ConnectFailed) as raised:
            list(Listing(addresses(url), pattern(".*")))
        assert str(raised.value).startswith(place)


class Other(BaseHTTPRequestHandler):
    """Answers what is no list of queues; it says that a page follows and is asked for it."""

    answers: tuple[bytes, ...] = ()
    asked: list[str]

    def do_GET(self) -> None:
        self.asked.append(self.path)
        body = self.answers[min(len(self.asked), len(self.answers)) - 1]
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.mark.parametrize("answer", [b"hello", b"[]", b'{"items":[{}],"page_count":1}'])
def test_another_server_is_told_apart(answer: bytes) -> None:
    handler = type("Handler", (Other,), {"answers": (answer,), "asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{server.server_port}/prefix"
        with pytest.raises(ListingRefused, match="this is no management API"):
            list(Listing(addresses("amqp://h/a%2Fb"), pattern(".*", place)))
        assert handler.asked == [
            "/prefix/api/queues/a%2Fb?page=1&page_size=500&columns=name,exclusive"
        ]
        server.shutdown()


def test_exclusive_queues_are_left_out() -> None:
    page = b'{"items":[{"name":"a","exclusive":true},{"name":"b"}],"page_count":1}'
    handler = type("Handler", (Other,), {"answers": (page,), "asked": []})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        place = f"http://127.0.0.1:{server.server_port}"
        assert list(Listing(addresses("amqp://h"), pattern(".*", place))) == ["b"]
        server.shutdown()
