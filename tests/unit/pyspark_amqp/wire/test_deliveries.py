from __future__ import annotations

import random

import pytest

from pyspark_amqp.wire import framing as f
from pyspark_amqp.wire.deliveries import Deliveries, Delivery, take_deliveries
from pyspark_amqp.wire.properties import encode

NO_LIMIT = 1 << 60


def delivery(tag: int, body: bytes, block: bytes = b"\x00\x00", redelivered: int = 0) -> bytes:
    arguments = b"\x02c1" + f.U64.pack(tag) + bytes([redelivered]) + b"\x02ex\x03key"
    octets = f.method(f.BASIC_DELIVER, arguments)
    octets += f.frame(f.HEADER, 1, f.CONTENT_HEADER.pack(60, 0, len(body)) + block)
    return octets + (f.frame(f.BODY, 1, body) if body else b"")


def tape(count: int) -> bytes:
    chosen = random.Random(5)
    return b"".join(
        delivery(
            tag,
            chosen.randbytes(chosen.choice([0, 1, 200])),
            encode({"message_id": f"m{tag}"}) if tag % 3 else b"\x00\x00",
            tag % 2,
        )
        for tag in range(1, count + 1)
    )


def test_columns_hold_what_was_sent() -> None:
    octets = tape(50)
    found = Deliveries("q")
    assert take_deliveries(octets, 0, found, 1000, NO_LIMIT) == len(octets)
    assert len(found) == 50
    assert found.last_tag == 50
    assert found.routes == [b"\x02ex\x03key"] * 50
    assert found.redelivered == bytearray(tag % 2 for tag in range(1, 51))
    assert found.size_bytes == sum(map(len, found.bodies)) + sum(map(len, found.properties))
    assert next(iter(found)) == Delivery(
        b"\x02ex\x03key", encode({"message_id": "m1"}), found.bodies[0], True
    )


def test_any_cut_gives_the_same() -> None:
    octets = tape(6)
    whole = Deliveries("q")
    take_deliveries(octets, 0, whole, 1000, NO_LIMIT)
    for cut in range(len(octets)):
        parts = Deliveries("q")
        pos = take_deliveries(octets[:cut], 0, parts, 1000, NO_LIMIT)
        assert pos <= cut
        assert take_deliveries(octets, pos, parts, 1000, NO_LIMIT) == len(octets)
        assert parts == whole


def test_limits_of_count_and_size() -> None:
    octets = b"".join(delivery(tag, b"x" * 100) for tag in range(1, 11))
    found = Deliveries("q")
    pos = take_deliveries(octets, 0, found, 4, NO_LIMIT)
    assert len(found) == 4
    take_deliveries(octets, pos, found, 10, 500)
    assert len(found) == 5  # 102 octets each: the fifth goes beyond


@pytest.mark.parametrize(
    "other",
    [
        f.HEARTBEAT_FRAME,
        f.method(f.BASIC_CANCEL, b"\x02c1\x01" + bytes(20)),
        delivery(2, b"x" * 40)[:-1] + b"\x00",
        delivery(2, b"", b"\x00\x00")[:-1] + b"\x00",
        f.method(f.BASIC_DELIVER, b"\x02c1" + bytes(9) + b"\x00\x00") + f.HEARTBEAT_FRAME * 4,
    ],
)
def test_it_stops_before_anything_else(other: bytes) -> None:
    octets = delivery(1, b"first")
    found = Deliveries("q")
    assert take_deliveries(octets + other + delivery(3, b"x"), 0, found, 9, NO_LIMIT) == len(octets)
    assert found.bodies == [b"first"]


def test_a_body_in_two_frames_is_left_for_the_long_way() -> None:
    octets = f.method(f.BASIC_DELIVER, b"\x02c1" + f.U64.pack(1) + b"\x00\x00\x01q")
    octets += f.frame(f.HEADER, 1, f.CONTENT_HEADER.pack(60, 0, 4) + b"\x00\x00")
    octets += f.frame(f.BODY, 1, b"ab") + f.frame(f.BODY, 1, b"cd")
    assert take_deliveries(octets, 0, Deliveries("q"), 9, NO_LIMIT) == 0
