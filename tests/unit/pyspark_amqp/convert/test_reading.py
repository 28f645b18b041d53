# ruff: noqa: E402 - without pyarrow the file is skipped before its imports
from __future__ import annotations

import datetime

import pytest

pa = pytest.importorskip(
    "pyarrow", reason="pyarrow is not installed: pip install 'burrowmq[spark]'"
)

from pyspark_amqp.convert import MESSAGE, Reader, reading, schema_of
from pyspark_amqp.wire.deliveries import Deliveries, Delivery
from pyspark_amqp.wire.properties import PropertyValue, encode
from pyspark_amqp.wire.table import Timestamp, encode_table

UTC = datetime.timezone.utc


def deliveries(*rows: tuple[bytes, dict[str, PropertyValue]]) -> Deliveries:
    found = Deliveries("work")
    for tag, (body, properties) in enumerate(rows, start=1):
        found.append(tag, Delivery(b"\x02ex\x03key", encode(properties), body, tag % 2 == 0))
    return found


FULL: dict[str, PropertyValue] = {
    "content_type": "text/plain",
    "content_encoding": "gzip",
    "headers": {"k": "v", "n": 5, "x-death": [{"queue": "q", "count": 2, "time": Timestamp(9)}]},
    "delivery_mode": 2,
    "priority": 7,
    "correlation_id": "c",
    "reply_to": "r",
    "expiration": "1000",
    "message_id": "m",
    "timestamp": 1_700_000_000,
    "type": "t",
    "user_id": "guest",
    "app_id": "a",
    "cluster_id": "old",
}


def test_all_columns_of_a_full_and_a_bare_message() -> None:
    batch = Reader().batch(deliveries((b"full", FULL), (b"", {})))
    assert batch.schema.equals(MESSAGE)
    full, bare = batch.to_pylist()
    time = datetime.datetime(2023, 11, 14, 22, 13, 20, tzinfo=UTC)
    assert full.pop("timestamp") == time
    death = {"queue": "q", "count": 2, "time": datetime.datetime(1970, 1, 1, 0, 0, 9, tzinfo=UTC)}
    nothing = dict.fromkeys(["reason", "exchange", "routing_keys", "original_expiration"])
    assert full.pop("x_death") == [death | nothing]
    assert full.pop("headers") == [("k", "v"), ("n", "5")]
    skipped = ("headers", "timestamp", "cluster_id")
    properties = {name: value for name, value in FULL.items() if name not in skipped}
    route = {"exchange": "ex", "routing_key": "key", "queue": "work"}
    assert full == {"body": b"full", "redelivered": False, **route, **properties}
    assert {n: v for n, v in bare.items() if v is not None} == {
        "body": b"",
        "redelivered": True,
        **route,
    }


@pytest.mark.parametrize("names", [["body"], ["queue", "redelivered"], ["x_death", "message_id"]])
def test_only_the_columns_asked_for_in_that_order(names: list[str]) -> None:
    found = deliveries((b"a", FULL), (b"b", {"message_id": "m2"}))
    whole = Reader().batch(found)
    assert Reader(schema_of(names)).batch(found).equals(whole.select(names))


def test_no_messages_make_an_empty_batch_of_the_same_schema() -> None:
    batch = Reader().batch(Deliveries("q"))
    assert batch.num_rows == 0
    assert batch.schema.equals(MESSAGE)
    assert list(Reader().batches(Deliveries("q"))) == []


def test_headers_raw_keeps_the_octets() -> None:
    batch = Reader(schema_of(["headers_raw"])).batch(deliveries((b"", FULL), (b"", {})))
    assert batch.column(0).to_pylist() == [encode_table(FULL["headers"]), None]


def test_text_that_is_no_utf_8_is_replaced() -> None:
    found = deliveries((b"", {"message_id": "\udcffx"}), (b"", {"message_id": "ok"}))
    found.routes[0] = b"\x00\x01\xff"
    batch = Reader(schema_of(["message_id", "routing_key"])).batch(found)
    assert batch.to_pylist() == [
        {"message_id": "\ufffdx", "routing_key": "\ufffd"},
        {"message_id": "ok", "routing_key": "key"},
    ]


def test_one_bad_message_does_not_stop_the_others() -> None:
    found = deliveries((b"a", FULL), (b"b", FULL), (b"c", {"timestamp": 2**63}))
    found.properties[1] = b"\x20\x00\x00\x00\x00\x01\xff"  # a table that is none
    rows = Reader(schema_of(["body", "headers", "timestamp"])).batch(found).to_pylist()
    assert [row["body"] for row in rows] == [b"a", b"b", b"c"]
    assert rows[1]["headers"] is None
    assert rows[2]["timestamp"] is None


def test_batches_have_moderate_sizes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "BATCH_ROWS", 3)
    monkeypatch.setattr(reading, "BATCH_BYTES", 100)
    found = deliveries(*[(b"x" * size, {}) for size in (1, 1, 1, 90, 90, 200, 1)])
    sizes = [batch.num_rows for batch in Reader().batches(found)]
    assert sum(sizes) == 7
    assert sizes[0] == 3
    joined = pa.Table.from_batches(Reader().batches(found)).column("body").to_pylist()
    assert joined == found.bodies


def test_a_wrong_column_or_type_is_named() -> None:
    with pytest.raises(ValueError, match="colour"):
        Reader(pa.schema([pa.field("colour", pa.string())]))
    with pytest.raises(ValueError, match="column priority is of type int32, not string"):
        Reader(pa.schema([pa.field("priority", pa.string())]))
