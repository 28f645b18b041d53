"""The NATS client protocol without I/O: octets in, events out; and what a client says, as octets.

    server   INFO {json}   MSG subject sid [reply] size   HMSG subject sid [reply] head size   PING   PONG
             +OK   -ERR 'text'
    client   CONNECT {json}   PUB subject [reply] size   HPUB subject [reply] head size   SUB   UNSUB   PING   PONG

A line ends in CR LF; what follows MSG and HMSG is so many octets and CR LF. Of a HMSG the first `head` octets are
headers: a status line `NATS/1.0 [code [text]]`, lines `Name: value`, an empty line.

State owned: octets of what has not come whole, within limits (`LINE_MAX`, the payload's). Called by `cluster.link`.
Whatever a server sends gives events or `WireError`, and after an error nothing more. Never keeps a line or a payload
beyond its event. A delivery costs one find, one split and two slices.

Source: docs.nats.io, "NATS Protocol"; nats-server, server/parser.go.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

LINE_MAX: Final = 64 * 1024
"""Octets of a line: INFO, which names all servers, is the longest."""
PAYLOAD_MAX: Final = 64 * 1024 * 1024
"""Octets of a payload with its headers: what a nats-server can be configured to take at most."""
PING: Final = b"PING\r\n"
PONG: Final = b"PONG\r\n"
_new: Final = tuple.__new__
"""Makes a named tuple in half the time: its own __new__ takes the fields one by one."""
_STATUS: Final = b"NATS/1.0"
_DELIVERIES: Final = frozenset((b"MSG", b"HMSG"))


class WireError(Exception):
    """The server has sent what the protocol does not allow; the text says what."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Greeting:
    """What a server says of itself: first of all, and whenever that changes."""

    server_id: str
    server_name: str
    version: str
    max_payload: int
    has_headers: bool
    has_jetstream: bool
    needs_tls: bool
    needs_login: bool
    is_leaving: bool
    """It is about to stop, and asks its clients to go elsewhere."""
    urls: tuple[str, ...]
    """host:port of the cluster's servers."""


class Delivered(NamedTuple):
    """A message of a subscription; `headers` is the block as it came, b"" without one."""

    sid: int
    subject: bytes
    reply: bytes
    headers: bytes
    payload: bytes


class Pinged(NamedTuple):
    """The server wants a PONG."""


class Ponged(NamedTuple):
    """The server has taken all that was sent before the oldest PING that it had not answered."""


class Refused(NamedTuple):
    """-ERR: mostly the last thing that is said on a connection."""

    text: str


Event: TypeAlias = Greeting | Delivered | Pinged | Ponged | Refused


class Parser:
    """Cuts what one connection receives."""

    __slots__ = ("_has_failed", "_held", "_held_size", "_payload_max", "_wanted")

    def __init__(self, payload_max: int = PAYLOAD_MAX) -> None:
        self._payload_max = payload_max
        self._held: list[bytes] = []
        self._held_size = 0
        self._wanted = 0  # so many octets have to be there before it is worth a look
        self._has_failed = False

    def feed(self, data: bytes) -> list[Event]:
        """What has become whole with these octets. Raises: WireError."""
        if self._has_failed:
            raise WireError("nothing is read after an error")
        held = self._held
        held.append(data)
        self._held_size += len(data)
        if self._held_size < self._wanted:
            return []
        octets = data if len(held) == 1 else b"".join(held)
        events: list[Event] = []
        try:
            pos, self._wanted = self._cut(octets, events)
        except WireError:
            self._has_failed = True
            raise
        rest = octets[pos:]
        self._held = [rest] if rest else []
        self._held_size = len(rest)
        return events

    def _cut(self, octets: bytes, events: list[Event]) -> tuple[int, int]:
        """(where the first line begins that is not whole, how many octets from there it needs at least)."""
        pos = 0
        total = len(octets)
        find = octets.find
        append = events.append
        while True:
            end = find(b"\r\n", pos, pos + LINE_MAX)
            if end < 0:
                if len(octets) - pos >= LINE_MAX:
                    raise WireError(f"a line of more than {LINE_MAX} octets")
                return pos, 0
            fields = octets[pos:end].split()
            name = fields[0] if fields else b""
            if name in _DELIVERIES:
                start = end + 2
                sid, reply, head, size = self._delivery(fields, has_head=len(name) == 4)
                middle, stop = start + head, start + size
                if stop + 2 > total:
                    return pos, stop + 2 - pos
                if octets[stop : stop + 2] != b"\r\n":
                    raise WireError("a payload is longer than it was said to be")
                found = sid, fields[1], reply, octets[start:middle], octets[middle:stop]
                append(_new(Delivered, found))
                pos = stop + 2
            else:
                event = _line(name, octets[pos:end])
                if event is not None:
                    append(event)
                pos = end + 2

    def _delivery(self, fields: list[bytes], *, has_head: bool) -> tuple[int, bytes, int, int]:
        """(number of the subscription, reply, octets of the headers, octets of all). Raises: WireError."""
        least = 5 if has_head else 4
        count = len(fields)
        sid = head = size = -1
        if least <= count <= least + 1:
            try:
                sid, size = int(fields[2]), int(fields[-1])
                head = int(fields[-2]) if has_head else 0
            except ValueError:
                head = -1
        if sid < 0 or not 0 <= head <= size:
            raise WireError(f"not a delivery: {_shown(b' '.join(fields))}")
        if size > self._payload_max:
            raise WireError(f"a payload of {size} octets; at most {self._payload_max} are taken")
        return sid, fields[3] if count > least else b"", head, size


def _line(name: bytes, line: bytes) -> Event | None:
    """The event of a line without a payload; None for +OK."""
    if name == b"PING":
        return Pinged()
    if name == b"PONG":
        return Ponged()
    if name == b"+OK":
        return None
    if name == b"-ERR":
        return Refused(line[4:].strip().strip(b"'").decode("utf-8", "replace"))
    if name == b"INFO":
        return _greeting(line[4:])
    raise WireError(f"an unknown operation: {_shown(line)}")


def _shown(line: bytes) -> str:
    return ascii(line[:60].decode("latin-1"))


def _greeting(text: bytes) -> Greeting:
    try:
        found: Any = json.loads(text)  # Any: JSON, whose types are looked at below
    except (ValueError, RecursionError) as error:
        raise WireError("INFO is not JSON") from error
    if not isinstance(found, dict):
        raise WireError("INFO is not a JSON object")

    def flag(name: str) -> bool:
        return found.get(name) is True

    urls = found.get("connect_urls")
    return Greeting(
        server_id=str(found.get("server_id", "")),
        server_name=str(found.get("server_name", "")),
        version=str(found.get("version", "")),
        max_payload=_whole(found.get("max_payload")),
        has_headers=flag("headers"),
        has_jetstream=flag("jetstream"),
        needs_tls=flag("tls_required"),
        needs_login=flag("auth_required"),
        is_leaving=flag("ldm"),
        urls=tuple(map(str, urls)) if isinstance(urls, list) else (),
    )


def _whole(value: object) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise WireError("INFO names no max_payload")
    return value


# -- what a client says -----------------------------------------------------------------------------------------------


def encode_connect(*, name: str, version: str, user: str | None, password: str | None) -> bytes:
    """CONNECT, of a client that wants headers, and to be told at once where nobody listens."""
    wish: dict[str, object] = {
        "verbose": False,
        "pedantic": False,
        "lang": "python",
        "name": name,
        "version": version,
        "protocol": 1,
        "headers": True,
        "no_responders": True,
        "echo": False,
    }
    if user is not None:
        wish |= {"user": user, "pass": password or ""}
    return b"CONNECT %b\r\n" % json.dumps(wish).encode()


def encode_subscribe(subject: bytes, sid: int, queue: bytes = b"") -> bytes:
    """SUB; of those that name the same `queue` one gets a message."""
    return b"SUB %b %b %d\r\n" % (subject, queue, sid)


def encode_unsubscribe(sid: int) -> bytes:
    """UNSUB, at once."""
    return b"UNSUB %d\r\n" % sid


def encode_publish(
    subject: bytes, payload: bytes, reply: bytes = b"", headers: bytes = b""
) -> bytes:
    """PUB, or with a block of headers HPUB."""
    if headers:
        head = len(headers)
        lead = b"HPUB %b %b %d %d\r\n" % (subject, reply, head, head + len(payload))
        return b"".join((lead, headers, payload, b"\r\n"))
    return b"".join((b"PUB %b %b %d\r\n" % (subject, reply, len(payload)), payload, b"\r\n"))


def encode_headers(pairs: Iterable[tuple[bytes, bytes]]) -> bytes:
    """A block of headers. Values must not have line ends: whoever takes one from outside looks first."""
    lines = [b"%b: %b\r\n" % pair for pair in pairs]
    return b"".join((_STATUS, b"\r\n", *lines, b"\r\n"))


@dataclass(frozen=True, slots=True)
class Headers:
    """A block of headers that was read: its status (0 for none), the text behind that, the last value of each name."""

    status: int
    text: str
    values: dict[str, str]


NO_HEADERS: Final = Headers(0, "", {})


def decode_headers(block: bytes) -> Headers:
    """Read a block. Raises: WireError."""
    if not block:
        return NO_HEADERS
    first, *lines = block.decode("utf-8", "surrogateescape").split("\r\n")
    version, _, rest = first.partition(" ")
    if version != _STATUS.decode():
        raise WireError(f"not a block of headers: {_shown(block)}")
    code, _, text = rest.strip().partition(" ")
    if code and not (code.isascii() and code.isdigit() and len(code) == 3):
        raise WireError(f"not a status of headers: {_shown(block)}")
    values = {}
    for line in lines:
        name, colon, value = line.partition(":")
        if colon:
            values[name.strip()] = value.strip()
    return Headers(int(code or 0), text.strip(), values)
