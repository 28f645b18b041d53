r"""The header that a proxy puts in front of what it relays: PROXY protocol, versions 1 and 2.

Owns no state, does no I/O. Called by broker.sockets.proxy_socket with what a socket has sent so far. Whether a proxy is
to be believed is not decided here.

Version 1 is one line of text of at most 107 octets, CR LF included:

    PROXY TCP4 <source> <destination> <source port> <destination port>
    PROXY TCP6 ...
    PROXY UNKNOWN [anything]                         the addresses are the socket's own

Version 2, numbers big endian:

    offset  size  field
    0       12    0D 0A 0D 0A 00 0D 0A 51 55 49 54 0A
    12      1     version (upper half, 2), command (lower half: 0 LOCAL, the proxy speaks for itself; 1 PROXY)
    13      1     family (upper half: 0 none, 1 IPv4, 2 IPv6, 3 Unix), transport (lower half: 0 none, 1 stream)
    14      2     how many octets follow, at most BLOCK_MAX
    16      4|16  source address
            4|16  destination address
            2     source port
            2     destination port
            ...   extensions, skipped

Source: haproxy.org, The PROXY protocol, versions 1 & 2.
"""

from __future__ import annotations

import ipaddress
import struct

from burrowmq.records import dataclass

LINE_MAX = 107
BLOCK_MAX = 4096
"""Most octets behind the fixed part of version 2: addresses take 36, a certificate in the extensions thousands."""

_LINE_START = b"PROXY "
_SIGNATURE = b"\r\n\r\n\x00\r\nQUIT\n"
_FIXED = struct.Struct(">12sBBH")
_LOCAL, _PROXY = 0x20, 0x21
_BLOCKS = {0x11: struct.Struct(">4s4sHH"), 0x21: struct.Struct(">16s16sHH")}
_FAMILIES: dict[str, type[ipaddress.IPv4Address | ipaddress.IPv6Address]] = {
    "TCP4": ipaddress.IPv4Address,
    "TCP6": ipaddress.IPv6Address,
}

Address = tuple[str, int]


class BadProxyHeader(ValueError):
    """What came is no PROXY header; the text says why."""


@dataclass(frozen=True, slots=True)
class ProxyHeader:
    """What a proxy says of the connection that it relays; an end is None where the header names nobody."""

    source: Address | None
    destination: Address | None
    size: int
    """Octets of the header; what the client sent begins behind them."""


def read_proxy_header(data: bytes) -> ProxyHeader | None:
    """The header at the beginning of `data`, None while it is not complete.

    Raises: BadProxyHeader as soon as it can be none.
    """
    if data[:6] == _LINE_START[: len(data)]:
        return _line(data)
    if data[:12] == _SIGNATURE[: len(data)]:
        return _block(data)
    raise BadProxyHeader("no PROXY header")


def _line(data: bytes) -> ProxyHeader | None:
    end = data.find(b"\r\n", 0, LINE_MAX)
    if end < 0:
        if len(data) >= LINE_MAX:
            raise BadProxyHeader(f"a PROXY line of more than {LINE_MAX} octets")
        return None
    words = data[:end].decode("latin-1").split(" ")
    if words[1] == "UNKNOWN":
        return ProxyHeader(None, None, end + 2)
    family = _FAMILIES.get(words[1])
    if family is None or len(words) != 6:
        raise BadProxyHeader("a PROXY line without TCP4 or TCP6, two addresses and two ports")
    try:
        source, destination = _written(family(words[2])), _written(family(words[3]))
    except ValueError as error:
        raise BadProxyHeader(f"a PROXY line with a wrong address: {error}") from error
    return ProxyHeader((source, _port(words[4])), (destination, _port(words[5])), end + 2)


def _written(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> str:
    """One of IPv4 in IPv6's words, as a proxy has it of a socket for both, is what it is elsewhere."""
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def _port(word: str) -> int:
    if not (word.isascii() and word.isdigit()) or int(word) > 65535:
        raise BadProxyHeader("a PROXY line with a wrong port")
    return int(word)


def _block(data: bytes) -> ProxyHeader | None:
    if len(data) < _FIXED.size:
        return None
    _, command, family, follows = _FIXED.unpack_from(data)
    if command not in {_LOCAL, _PROXY}:
        raise BadProxyHeader("a PROXY header of an unknown version or command")
    if follows > BLOCK_MAX:
        raise BadProxyHeader(f"a PROXY header of more than {BLOCK_MAX} octets")
    size = _FIXED.size + follows
    if len(data) < size:
        return None
    block = _BLOCKS.get(family)
    if command == _LOCAL or block is None:
        return ProxyHeader(None, None, size)
    if follows < block.size:
        raise BadProxyHeader("a PROXY header too short for its addresses")
    source, destination, source_port, destination_port = block.unpack_from(data, _FIXED.size)
    return ProxyHeader(
        (_written(ipaddress.ip_address(source)), source_port),
        (_written(ipaddress.ip_address(destination)), destination_port),
        size,
    )
