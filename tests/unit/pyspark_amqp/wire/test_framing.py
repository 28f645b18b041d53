from __future__ import annotations

import pytest
from pika import spec

from pyspark_amqp.wire import framing as f


def test_a_frame_is_taken_when_it_is_whole() -> None:
    octets = f.method(f.QUEUE_DELETE, b"rest") + f.HEARTBEAT_FRAME
    taken = f.take_frame(octets, 0)
    assert taken is not None
    found, pos = taken
    assert (found.type, found.channel, found.method) == (f.METHOD, 1, f.QUEUE_DELETE)
    assert found.payload[4:] == b"rest"
    second = f.take_frame(octets, pos)
    assert second is not None
    assert second[0].type == f.HEARTBEAT
    assert second[0].method == (0, 0)
    for cut in range(pos):
        assert f.take_frame(octets[:cut], 0) is None


@pytest.mark.parametrize(
    ("octets", "says"),
    [
        (b"HTTP/1.1", "unknown type"),
        (f.FRAME.pack(1, 1, f.FRAME_MAX + 1), "agreed"),
        (f.FRAME.pack(1, 1, 0) + b"\x00", "end octet"),
    ],
)
def test_what_is_no_frame_is_malformed(octets: bytes, says: str) -> None:
    with pytest.raises(f.Malformed, match=says):
        f.take_frame(octets, 0)


def test_strings() -> None:
    assert f.shortstr("ab") == b"\x02ab"
    assert f.longstr(b"ab") == b"\x00\x00\x00\x02ab"
    assert f.read_shortstr(b"xx\x02ab", 2) == ("ab", 5)
    with pytest.raises(ValueError, match="255"):
        f.shortstr("x" * 256)
    for payload, pos in ((b"\x05ab", 0), (b"", 0)):
        with pytest.raises(f.Malformed):
            f.read_shortstr(payload, pos)


def test_publish_and_its_route_as_pika_reads_them() -> None:
    octets = f.publish_method(b"ex", b"key", mandatory=True)
    taken = f.take_frame(octets, 0)
    assert taken is not None
    read = spec.Basic.Publish().decode(taken[0].payload[4:])
    assert (read.exchange, read.routing_key, read.mandatory) == ("ex", "key", True)
    assert f.split_route(b"\x02ex\x03key") == (b"ex", b"key")


def test_method_ids_are_pika_s() -> None:
    for name in ("Deliver", "GetOk", "GetEmpty", "Nack", "Return", "QosOk", "ConsumeOk"):
        snake = "".join(f"_{c}" if c.isupper() else c for c in name).upper()
        ids = getattr(f, f"BASIC{snake}")
        assert ids[0] << 16 | ids[1] == getattr(spec.Basic, name).INDEX
