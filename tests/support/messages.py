"""Messages for tests, made the way the broker makes its own."""

from __future__ import annotations

from burrowmq.protocol.codec import Message, join_address
from burrowmq.protocol.properties import Properties, build


def message(
    body: bytes = b"",
    *,
    routing_key: bytes = b"q",
    exchange: bytes = b"",
    persistent: bool = False,
    expiration: str | None = None,
    priority: int | None = None,
) -> Message:
    """One message as a client would have published it."""
    properties = Properties(
        delivery_mode=2 if persistent else None, expiration=expiration, priority=priority
    )
    return build(join_address(exchange, routing_key), properties, body)


def body_of(raw: bytes) -> bytes:
    """The body in a message's frames."""
    header_end = 7 + int.from_bytes(raw[3:7], "big") + 1
    body = b""
    offset = header_end
    while offset < len(raw):
        size = int.from_bytes(raw[offset + 3 : offset + 7], "big")
        body += raw[offset + 7 : offset + 7 + size]
        offset += size + 8
    return body
