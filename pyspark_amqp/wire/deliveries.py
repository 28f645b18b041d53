"""Received messages as columns, and the loop that cuts them out of the octets in bulk.

State: `Deliveries` owns its columns; nothing else is kept. Called by the consumer; read by the
converters.

One delivery on the wire, as nearly all are, in three frames:

    method  1, channel, size | 60, 60, consumer tag, delivery tag (8), redelivered (1), route | CE
    header  2, channel, size | 60, 0, body size (8), property block                           | CE
    body    3, channel, size | body                                                           | CE

where `route` is exchange and routing key as two short strings and the property block begins with its
flag word. Both are kept as they came: looking into them is the converters' business, column by column.

Invariants: `take_deliveries` never raises for octets that have not all arrived or are anything but such
a delivery: it stops before them. It costs three struct calls and three slices a message.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pyspark_amqp.wire import framing as f
from pyspark_amqp.wire.layout import Layout

CONSUMER_TAG: Final = "c1"
_TAG_OCTETS: Final = 1 + len(CONSUMER_TAG)

_METHOD: Final = Layout(f">BHII{_TAG_OCTETS}xQB")
_HEADER_AFTER_END: Final = Layout(">BBHIIQ")
_BODY_AFTER_END: Final = Layout(">BBHI")
_DELIVER: Final = f.BASIC_DELIVER[0] << 16 | f.BASIC_DELIVER[1]
_CONTENT_CLASS: Final = 60 << 16


class Delivery(NamedTuple):
    """One message, for whoever wants them singly."""

    route: bytes
    properties: bytes
    body: bytes
    is_redelivered: bool


@dataclass(slots=True)
class Deliveries:
    """Messages of one queue, in order; every column has the same length."""

    queue: str
    routes: list[bytes] = field(default_factory=list)
    """Exchange and routing key, each with its length octet."""
    properties: list[bytes] = field(default_factory=list)
    """Flag word and property list."""
    bodies: list[bytes] = field(default_factory=list)
    redelivered: bytearray = field(default_factory=bytearray)
    last_tag: int = 0
    """Delivery tag of the last message; acknowledging it with `multiple` settles all."""
    size_bytes: int = 0
    """Of bodies and property blocks."""

    def __len__(self) -> int:
        return len(self.bodies)

    def __iter__(self) -> Iterator[Delivery]:
        rows = zip(self.routes, self.properties, self.bodies, self.redelivered, strict=True)
        for route, properties, body, flag in rows:
            yield Delivery(route, properties, body, flag != 0)

    def between(self, start: int, end: int) -> Deliveries:
        """Return the messages from row `start` to before row `end`; they cannot be acknowledged by it."""
        bodies, properties = self.bodies[start:end], self.properties[start:end]
        return Deliveries(
            self.queue,
            self.routes[start:end],
            properties,
            bodies,
            self.redelivered[start:end],
            size_bytes=sum(map(len, bodies)) + sum(map(len, properties)),
        )

    def append(self, tag: int, delivery: Delivery) -> None:
        """Add one message at the end."""
        self.routes.append(delivery.route)
        self.properties.append(delivery.properties)
        self.bodies.append(delivery.body)
        self.redelivered.append(delivery.is_redelivered)
        self.last_tag = tag
        self.size_bytes += len(delivery.body) + len(delivery.properties)


def take_deliveries(
    data: bytes, pos: int, into: Deliveries, count_limit: int, size_limit: int
) -> int:
    """Append the whole deliveries that begin at pos, up to the limits; return the position after them.

    `size_limit` is compared before each message: the last one may go beyond it.
    """
    add_route, add_properties = into.routes.append, into.properties.append
    add_body, add_redelivered = into.bodies.append, into.redelivered.append
    unpack_method = _METHOD.unpack_from
    unpack_header, unpack_body = _HEADER_AFTER_END.unpack_from, _BODY_AFTER_END.unpack_from
    fixed_size = _METHOD.size
    size_bytes, tag = into.size_bytes, into.last_tag
    left = count_limit - len(into)
    try:
        while left > 0 and size_bytes < size_limit:
            kind, _, size, ids, new_tag, redelivered = unpack_method(data, pos)
            if kind != 1 or ids != _DELIVER:
                break
            method_end = pos + 7 + size
            end_octet, kind, _, size, content_class, body_size = unpack_header(data, method_end)
            if end_octet != 0xCE or kind != 2 or content_class != _CONTENT_CLASS:
                break
            header_end = method_end + 8 + size
            if body_size:
                end_octet, kind, _, size = unpack_body(data, header_end)
                if end_octet != 0xCE or kind != 3 or size != body_size:
                    break
                body_at = header_end + 8
                body_end = body_at + size
                if data[body_end] != 0xCE:
                    break
                body = data[body_at:body_end]
            else:
                body_end = header_end
                if data[body_end] != 0xCE:
                    break
                body = b""
            properties = data[method_end + 20 : header_end]
            add_route(data[pos + fixed_size : method_end])
            add_properties(properties)
            add_body(body)
            add_redelivered(redelivered)
            size_bytes += body_size + len(properties)
            tag = new_tag
            pos = body_end + 1
            left -= 1
    except (struct.error, IndexError):
        pass  # the rest of this message has not arrived
    into.size_bytes, into.last_tag = size_bytes, tag
    return pos
