"""burrowmq.protocol.proxy_header: both versions, any chunking, and what is refused."""

from __future__ import annotations

import ipaddress
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from burrowmq.protocol.proxy_header import (
    BLOCK_MAX,
    LINE_MAX,
    BadProxyHeader,
    ProxyHeader,
    read_proxy_header,
)

SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"


def block(command: int, family: int, body: bytes) -> bytes:
    return SIGNATURE + bytes((command, family)) + struct.pack(">H", len(body)) + body


def addresses(source: str, destination: str, ports: tuple[int, int] = (4711, 5672)) -> bytes:
    packed = [ipaddress.ip_address(each).packed for each in (source, destination)]
    return b"".join(packed) + struct.pack(">HH", *ports)


LINE = b"PROXY TCP4 192.168.1.1 192.168.1.2 80 81\r\n"
BLOCK = block(0x21, 0x11, addresses("192.168.1.1", "192.168.1.2", (80, 81)))
BLOCK_6 = block(0x21, 0x21, addresses("2001:db8::1", "::1"))


@pytest.mark.parametrize(
    ("octets", "source", "destination"),
    [
        (LINE, ("192.168.1.1", 80), ("192.168.1.2", 81)),
        (b"PROXY TCP6 2001:DB8:0::1 ::1 0 65535\r\n", ("2001:db8::1", 0), ("::1", 65535)),
        (b"PROXY UNKNOWN\r\n", None, None),
        (b"PROXY UNKNOWN ffff::1 ffff::2 1 2\r\n", None, None),
        (BLOCK, ("192.168.1.1", 80), ("192.168.1.2", 81)),
        (BLOCK_6, ("2001:db8::1", 4711), ("::1", 5672)),
        (block(0x21, 0x11, addresses("10.0.0.1", "10.0.0.2") + b"\x04\x00\x01x"), ("10.0.0.1", 4711), ("10.0.0.2", 5672)),
        (b"PROXY TCP6 ::ffff:10.0.0.1 ::FFFF:a00:2 1 2\r\n", ("10.0.0.1", 1), ("10.0.0.2", 2)),
        (block(0x21, 0x21, addresses("::ffff:127.0.0.1", "::ffff:10.0.0.2")), ("127.0.0.1", 4711), ("10.0.0.2", 5672)),
        (block(0x20, 0x11, addresses("10.0.0.1", "10.0.0.2")), None, None),
        (block(0x20, 0x00, b""), None, None),
        (block(0x21, 0x00, b"whatever"), None, None),
        (block(0x21, 0x31, b"/a".ljust(108, b"\0") + b"/b".ljust(108, b"\0")), None, None),
    ],
)  # fmt: skip
def test_who_is_named(
    octets: bytes, source: tuple[str, int] | None, destination: tuple[str, int] | None
) -> None:
    assert read_proxy_header(octets) == ProxyHeader(source, destination, len(octets))
    assert read_proxy_header(octets + b"AMQP\0\0\x09\x01") == ProxyHeader(
        source, destination, len(octets)
    )


@pytest.mark.parametrize("octets", [LINE, BLOCK, BLOCK_6, b"PROXY UNKNOWN\r\n"])
def test_any_part_of_a_header_asks_for_more(octets: bytes) -> None:
    for size in range(len(octets)):
        assert read_proxy_header(octets[:size]) is None


@pytest.mark.parametrize(
    "octets",
    [
        b"A",
        b"AMQP\0\0\x09\x01",
        b"\x16\x03\x01",
        b"PROXI",
        b"\r\n\r\n\x00\r\nQUIX",
        b"PROXY TCP4 1.2.3.4 5.6.7.8 1\r\n",
        b"PROXY TCP4 1.2.3.4 5.6.7.8 1 2 3\r\n",
        b"PROXY TCP4 1.2.3.4 5.6.7.8 1 65536\r\n",
        b"PROXY TCP4 1.2.3.4 5.6.7.8 -1 2\r\n",
        b"PROXY TCP4 1.2.3.4 5.6.7.8 1 \xb2\r\n",
        b"PROXY TCP4 ::1 ::2 1 2\r\n",
        b"PROXY TCP6 1.2.3.4 5.6.7.8 1 2\r\n",
        b"PROXY UDP4 1.2.3.4 5.6.7.8 1 2\r\n",
        b"PROXY  \r\n",
        b"PROXY TCP4 " + b"1" * LINE_MAX,
        block(0x22, 0x11, addresses("10.0.0.1", "10.0.0.2")),
        block(0x11, 0x11, addresses("10.0.0.1", "10.0.0.2")),
        block(0x21, 0x11, addresses("10.0.0.1", "10.0.0.2")[:-1]),
        SIGNATURE + b"\x21\x11" + struct.pack(">H", BLOCK_MAX + 1),
    ],
)
def test_what_is_refused(octets: bytes) -> None:
    with pytest.raises(BadProxyHeader):
        read_proxy_header(octets)


def test_a_line_is_complete_within_107_octets_or_refused() -> None:
    longest = b"PROXY UNKNOWN".ljust(LINE_MAX - 2, b" ") + b"\r\n"
    assert read_proxy_header(longest) == ProxyHeader(None, None, LINE_MAX)
    with pytest.raises(BadProxyHeader, match="107"):
        read_proxy_header(longest[:-2] + b" \r\n")


@given(st.binary(max_size=300) | st.binary(max_size=300).map(lambda rest: b"PROXY " + rest)
       | st.binary(max_size=300).map(lambda rest: SIGNATURE + rest))  # fmt: skip
def test_any_octets_are_a_header_or_refused_or_ask_for_more(octets: bytes) -> None:
    try:
        header = read_proxy_header(octets)
    except BadProxyHeader:
        return
    if header is not None:
        assert 0 < header.size <= len(octets)


@given(st.ip_addresses(v=4) | st.ip_addresses(v=6), st.integers(0, 65535), st.integers(0, 65535))
def test_both_versions_say_the_same(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, source: int, destination: int
) -> None:
    line = f"PROXY TCP{address.version} {address} {address} {source} {destination}\r\n".encode()
    family = 0x11 if address.version == 4 else 0x21
    octets = block(0x21, family, addresses(str(address), str(address), (source, destination)))
    one, two = read_proxy_header(line), read_proxy_header(octets)
    assert one is not None
    assert two is not None
    assert (one.source, one.destination) == (two.source, two.destination)
