"""The NATS protocol: whatever way octets come in pieces, the same events; and what is no NATS ends in one error."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.cluster import wire
from burrowmq.cluster.wire import (
    Delivered,
    Event,
    Greeting,
    Parser,
    Pinged,
    Ponged,
    Refused,
    WireError,
    decode_headers,
    encode_headers,
    encode_publish,
)

INFO = {
    "server_id": "NA",
    "server_name": "n1",
    "version": "2.15.2",
    "max_payload": 1048576,
    "headers": True,
    "jetstream": True,
    "tls_required": False,
    "connect_urls": ["127.0.0.1:4222", "127.0.0.1:4223"],
}


def info_line(**changes: object) -> bytes:
    return b"INFO " + json.dumps(INFO | changes).encode() + b" \r\n"


def delivery(sid: int, subject: bytes, reply: bytes, headers: bytes, payload: bytes) -> bytes:
    """As a server writes it."""
    names = b" ".join(filter(None, (subject, b"%d" % sid, reply)))
    if headers:
        size = len(headers) + len(payload)
        return b"HMSG %b %d %d\r\n%b%b\r\n" % (names, len(headers), size, headers, payload)
    return b"MSG %b %d\r\n%b\r\n" % (names, len(payload), payload)


words = st.binary(min_size=1, max_size=12).map(lambda raw: raw.hex().encode())
blocks = st.lists(st.tuples(words, words), max_size=3).map(
    lambda pairs: encode_headers(pairs) if pairs else b""
)
deliveries = st.builds(
    Delivered,
    st.integers(0, 2**31),
    words,
    st.one_of(st.just(b""), words),
    blocks,
    st.binary(max_size=300),
)


def octets_of(event: Event) -> bytes:
    match event:
        case Delivered():
            return delivery(*event)
        case Pinged():
            return b"PING\r\n"
        case Ponged():
            return b"PONG\r\n"
        case Refused(text):
            return b"-ERR '%b'\r\n" % text.encode()
        case _:
            raise AssertionError(event)


events = st.one_of(
    deliveries,
    st.just(Pinged()),
    st.just(Ponged()),
    st.sampled_from(["Slow Consumer", "Stale Connection"]).map(Refused),
)


@given(st.lists(events, max_size=8), st.lists(st.integers(1, 40), max_size=60))
def test_any_cut_gives_the_same_events(sent: list[Event], cuts: list[int]) -> None:
    octets = b"+OK\r\n".join(map(octets_of, sent))
    parser = Parser()
    found: list[Event] = []
    pos = 0
    for cut in [*cuts, len(octets)]:
        found += parser.feed(octets[pos : pos + cut])
        pos += cut
    assert found == sent


@given(st.binary(max_size=200))
def test_any_octets_give_events_or_one_error(octets: bytes) -> None:
    parser = Parser()
    try:
        parser.feed(octets)
    except WireError:
        with pytest.raises(WireError, match="nothing is read after an error"):
            parser.feed(b"PING\r\n")


@given(
    st.lists(
        st.sampled_from([b"MSG", b"HMSG", b" ", b"a", b"3", b"-1", b"\r\n", b"9"]), max_size=12
    )
)
def test_lines_that_look_like_deliveries_give_events_or_an_error(parts: list[bytes]) -> None:
    try:
        for event in Parser().feed(b"".join(parts)):
            assert isinstance(event, Delivered)
    except WireError as error:
        assert str(error)  # noqa: PT017  either is right, and nothing else is


def test_a_server_says_what_it_is() -> None:
    (found,) = Parser().feed(info_line(ldm=True))
    assert found == Greeting(
        server_id="NA",
        server_name="n1",
        version="2.15.2",
        max_payload=1048576,
        has_headers=True,
        has_jetstream=True,
        needs_tls=False,
        needs_login=False,
        is_leaving=True,
        urls=("127.0.0.1:4222", "127.0.0.1:4223"),
    )


@pytest.mark.parametrize(
    ("line", "text"),
    [
        (b"INFO {\r\n", "not JSON"),
        (b"INFO []\r\n", "not a JSON object"),
        (b'INFO {"max_payload": true}\r\n', "max_payload"),
        (b"INFO " + b"[" * 30_000 + b"\r\n", "not JSON"),
        (b"HELLO\r\n", "unknown operation: 'HELLO'"),
        (b"MSG a 1\r\n", "not a delivery"),
        (b"MSG a x 1\r\n", "not a delivery"),
        (b"MSG a 1 -1\r\n", "not a delivery"),
        (b"HMSG a 1 5 4\r\n", "not a delivery"),
        (b"HMSG a 1 r t 4 4\r\n", "not a delivery"),
        (b"MSG a 1 11\r\n", "at most 10"),
        (b"MSG a 1 2\r\nabc\r\n", "longer than it was said to be"),
        (b"x" * wire.LINE_MAX, "a line of more than"),
    ],
)
def test_what_is_no_nats_is_refused(line: bytes, text: str) -> None:
    with pytest.raises(WireError, match=text):
        Parser(payload_max=10).feed(line)


def test_a_large_payload_is_joined_once() -> None:
    parser = Parser()
    payload = bytes(1 << 20)
    octets = delivery(7, b"a", b"", b"", payload)
    pieces = [octets[pos : pos + 4096] for pos in range(0, len(octets), 4096)]
    for piece in pieces[:-1]:
        assert parser.feed(piece) == []
    assert len(parser._held) == len(pieces) - 1  # nothing was copied meanwhile
    assert parser.feed(pieces[-1]) == [Delivered(7, b"a", b"", b"", payload)]


@given(st.lists(st.tuples(words, words), max_size=4, unique_by=lambda pair: pair[0]))
def test_headers_come_back(pairs: list[tuple[bytes, bytes]]) -> None:
    found = decode_headers(encode_headers(pairs))
    assert (found.status, found.text) == (0, "")
    assert found.values == {name.decode(): value.decode() for name, value in pairs}


@pytest.mark.parametrize(
    ("block", "status", "text", "values"),
    [
        (b"", 0, "", {}),
        (b"NATS/1.0 503\r\n\r\n", 503, "", {}),
        (b"NATS/1.0 408 Request Timeout\r\nNats-Pending-Messages: 3\r\n\r\n", 408, "Request Timeout", {"Nats-Pending-Messages": "3"}),
        (b"NATS/1.0\r\nA: 1\r\nA: 2\r\nno colon\r\n\r\n", 0, "", {"A": "2"}),
    ],
)  # fmt: skip
def test_a_status_is_read(block: bytes, status: int, text: str, values: dict[str, str]) -> None:
    assert decode_headers(block) == wire.Headers(status, text, values)


@pytest.mark.parametrize(
    "block", [b"HTTP/1.1 200\r\n\r\n", b"NATS/1.0 abc\r\n\r\n", b"NATS/1.0 1\r\n"]
)
def test_what_is_no_block_of_headers_is_refused(block: bytes) -> None:
    with pytest.raises(WireError):
        decode_headers(block)


@pytest.mark.parametrize("headers", [b"", encode_headers([(b"Nats-Msg-Id", b"7")])])
@pytest.mark.parametrize("reply", [b"", b"in.1"])
def test_what_is_published_is_what_a_server_delivers(headers: bytes, reply: bytes) -> None:
    octets = encode_publish(b"a.b", b"payload", reply, headers)
    name, rest = octets.split(b" ", 1)
    subject, rest = rest.split(b" ", 1)
    # A server puts the subscription's number behind the subject, and leaves the rest as it is.
    found = Parser().feed(b"%b %b 9 %b" % (name.replace(b"PUB", b"MSG"), subject, rest))
    assert found == [Delivered(9, b"a.b", reply, headers, b"payload")]


def test_a_client_says_who_it_is() -> None:
    plain = wire.encode_connect(name="n", version="1", user=None, password=None)
    verb, _, text = plain.partition(b" ")
    assert (verb, text[-2:]) == (b"CONNECT", b"\r\n")
    assert json.loads(text) == {
        "verbose": False, "pedantic": False, "lang": "python", "name": "n", "version": "1", "protocol": 1,
        "headers": True, "no_responders": True, "echo": False,
    }  # fmt: skip
    known = wire.encode_connect(name="n", version="1", user="u", password='p"')
    assert json.loads(known[8:])["pass"] == 'p"'


def test_subscriptions_are_made_and_ended() -> None:
    assert wire.encode_subscribe(b"a.>", 3) == b"SUB a.>  3\r\n"
    assert wire.encode_subscribe(b"a.>", 3, b"q") == b"SUB a.> q 3\r\n"
    assert wire.encode_unsubscribe(3) == b"UNSUB 3\r\n"
