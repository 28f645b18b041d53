"""Frames outside the hot path: building one, and the texts about bad ones.

Owns no state. Called by content, channels, handshake and connection; the cutting of the byte stream into
frames is the codec's (it is the hot part).

    offset 0   1        type: 1 method, 2 content header, 3 body, 8 heartbeat
    offset 1   2        channel, big-endian
    offset 3   4        payload size, big-endian
    offset 7   size     payload
    then       1        end octet 0xCE

Source: AMQP 0-9-1 section 4.2.3; texts are those of RabbitMQ's rabbit_reader, which prints octets as
Erlang does: ``<<"text">>`` when all are printable Latin-1, else ``<<1,2,3>>``.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from burrowmq.protocol.errors import FrameError, UnexpectedFrame

_HEADER: Final = Struct(">BHI")
_SNIPPET_MAX: Final = 16
_ESCAPES: Final = {
    8: "\\b",
    9: "\\t",
    10: "\\n",
    11: "\\v",
    12: "\\f",
    13: "\\r",
    27: "\\e",
    34: '\\"',
    92: "\\\\",
}


def frame(frame_type: int, channel: int, payload: bytes) -> bytes:
    """One whole frame."""
    return _HEADER.pack(frame_type, channel, len(payload)) + payload + b"\xce"


def erlang_binary(octets: bytes) -> str:
    """Octets as Erlang's ~p prints them."""
    if octets and _is_printable(octets):
        return f'<<"{"".join(_ESCAPES.get(octet, chr(octet)) for octet in octets)}">>'
    return erlang_octets(octets)


def erlang_string(text: str) -> str:
    """The octets of a text as Erlang's ~p prints a list of them; what it prints as text is sent as it came."""
    octets = text.encode(errors="surrogateescape")
    if _is_printable(octets):
        return f'"{"".join(_ESCAPES.get(ord(char), char) for char in text)}"'
    return f"[{','.join(map(str, octets))}]"


def _is_printable(octets: bytes) -> bool:
    return all(32 <= octet < 127 or octet >= 160 or octet in _ESCAPES for octet in octets)


def erlang_octets(octets: bytes) -> str:
    """Octets as Erlang's ~w prints them: always as numbers."""
    return f"<<{','.join(map(str, octets))}>>"


def _seen(frame_type: int, payload: bytes) -> str:
    portion = "all" if len(payload) <= _SNIPPET_MAX else "first 16"
    return f"type {frame_type}, {portion} octets = {erlang_binary(payload[:_SNIPPET_MAX])}"


def bad_frame(frame_type: int, payload: bytes, reason: str) -> FrameError:
    """Error 501 about a frame: too large, wrong end octet, unknown type."""
    return FrameError(f"{_seen(frame_type, payload)}: {reason}")


def unexpected_frame(frame_type: int, payload: bytes) -> UnexpectedFrame:
    """Error 505 about a frame that must not come on its channel."""
    return UnexpectedFrame(_seen(frame_type, payload))
