"""What `malformed=fail` refuses, and that it looks at nothing else."""

from __future__ import annotations

import pytest

pytest.importorskip("pyarrow", reason="needs pyarrow: run by `make test-spark`")

from pyspark_amqp.convert import BadMessage, Reader, schema_of
from pyspark_amqp.wire.deliveries import Deliveries, Delivery
from pyspark_amqp.wire.framing import shortstr
from pyspark_amqp.wire.properties import BITS, encode

GOOD = encode({"message_id": "m1", "headers": {"k": ["v", {"n": 1}]}, "timestamp": 1_700_000_000})
ROUTE = shortstr("ex") + shortstr("key")


def stamp(seconds: int) -> bytes:
    return BITS["timestamp"].to_bytes(2, "big") + seconds.to_bytes(8, "big")


def text(name: str, octets: bytes) -> bytes:
    return BITS[name].to_bytes(2, "big") + bytes((len(octets),)) + octets


def table(octets: bytes) -> bytes:
    return BITS["headers"].to_bytes(2, "big") + len(octets).to_bytes(4, "big") + octets


def read(block: bytes, columns: list[str] | None = None, route: bytes = ROUTE) -> int:
    found = Deliveries("orders")
    found.append(1, Delivery(ROUTE, GOOD, b"x", False))
    found.append(2, Delivery(route, block, b"x", False))
    whole = list(Reader(schema_of(columns), is_strict=True).batches(found))
    return sum(batch.num_rows for batch in whole)


def test_good_messages_pass() -> None:
    assert read(GOOD) == 2
    assert read(encode({})) == 2


@pytest.mark.parametrize(
    ("block", "column", "said"),
    [
        (text("app_id", b"\xff"), "app_id", r"app_id is no UTF-8"),
        (text("message_id", b"12")[:-1], "message_id", "its properties cannot be read"),
        (b"", "type", "its properties cannot be read"),
        (stamp(1_700_000_000_000), "timestamp", "1700000000000 is beyond the year 9999"),
        (table(b"\x01kQ"), "headers", "its headers cannot be read"),
        (table(b"\x01\xffV"), "headers", "text in its headers that is no UTF-8"),
        (table(b"\x01aA\x00\x00\x00\x06S\x00\x00\x00\x01\xff"), "x_death", "no UTF-8"),
    ],
)
def test_what_would_be_shown_otherwise_is_refused(block: bytes, column: str, said: str) -> None:
    for columns in (None, [column]):
        with pytest.raises(BadMessage, match=said) as raised:
            read(block, columns)
        assert "queue 'orders', number 2 of those taken" in str(raised.value)
    other = {"type", "priority"} - {column}
    if block and said != "its properties cannot be read":
        assert read(block, [*other]) == 2  # nobody asked for what is wrong
    assert read(block, ["body", "queue"]) == 2


def test_routing_keys_are_looked_at_too() -> None:
    route = shortstr("ex") + b"\x01\xff"
    with pytest.raises(BadMessage, match=r"message id 'm1': routing_key is no UTF-8 \(b'\\xff'\)"):
        read(GOOD, ["routing_key"], route)
    assert read(GOOD, ["exchange"], route) == 2
