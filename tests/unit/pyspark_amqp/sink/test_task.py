# ruff: noqa: E402 - without Spark the file is skipped before its imports
"""A task's rows: published, confirmed, and told of when no queue took them."""

from __future__ import annotations

import pytest

pa = pytest.importorskip("pyarrow", reason="needs pyarrow: run by `make test-spark`")

from pyspark_amqp.convert import BadRow
from pyspark_amqp.options import SinkOptions, read_sink_options
from pyspark_amqp.sink.identity import Identity
from pyspark_amqp.sink.task import publish
from pyspark_amqp.wire import (
    ChannelClosed,
    PublishReturned,
    connect,
    delete_queue,
    peek,
    queue_state,
)
from pyspark_amqp.wire.properties import message_id


def options(url: str, **more: str) -> SinkOptions:
    return read_sink_options({"amqp.uri": url, **more})


def batch(**columns: list[object]) -> pa.RecordBatch:
    return pa.RecordBatch.from_pydict(columns)


def held(url: str, queue: str) -> list[tuple[bytes, str | None]]:
    with connect(url) as connection:
        found = peek(connection, queue, 1000)
    return [
        (body, message_id(block))
        for body, block in zip(found.bodies, found.properties, strict=True)
    ]


def test_rows_go_where_the_option_says(broker_url: str, queue: str) -> None:
    batches = [batch(body=["a", "b"]), batch(body=["c"])]
    outcome = publish(batches, options(broker_url, routingKey=queue), Identity("p", 4), "t")
    assert (outcome.published_count, outcome.returned_count) == (3, 0)
    assert held(broker_url, queue) == [(b"a", "p-4-0"), (b"b", "p-4-1"), (b"c", "p-4-2")]


def test_rows_go_where_their_columns_say(broker_url: str, queue: str) -> None:
    rows = batch(body=[b"a", b"b"], routing_key=[queue, None], exchange=[None, ""])
    publish([rows], options(broker_url, routingKey=queue), None, "t")
    assert [body for body, _ in held(broker_url, queue)] == [b"a", b"b"]


@pytest.mark.parametrize(("mode", "found"), [("column", "own"), ("none", None)])
def test_ids_as_the_option_says(broker_url: str, queue: str, mode: str, found: str | None) -> None:
    rows = batch(body=["a"], message_id=["own"])
    publish([rows], options(broker_url, routingKey=queue, messageIdMode=mode), None, "t")
    assert held(broker_url, queue) == [(b"a", found)]


def test_a_message_that_no_queue_takes_fails_the_task(broker_url: str, queue: str) -> None:
    rows = batch(body=["a", "b"], routing_key=[queue, "nowhere"])
    with pytest.raises(PublishReturned, match=r"1 messages came back .* routing key 'nowhere'"):
        publish([rows], options(broker_url), None, "t")


def test_messages_that_no_queue_takes_can_be_counted(broker_url: str, queue: str) -> None:
    rows = batch(body=["a", "b", "c"], routing_key=[queue, "nowhere", "nowhere"])
    outcome = publish([rows], options(broker_url, onReturn="count"), None, "t")
    assert (outcome.published_count, outcome.returned_count) == (3, 2)
    assert outcome.first_returned is not None
    assert outcome.first_returned.routing_key == "nowhere"


def test_or_dropped_by_the_broker(broker_url: str) -> None:
    rows = batch(body=["a"], routing_key=["nowhere"])
    outcome = publish([rows], options(broker_url, mandatory="false"), None, "t")
    assert outcome.returned_count == 0


def test_a_missing_exchange_is_the_brokers_error(broker_url: str) -> None:
    with pytest.raises(ChannelClosed, match="no exchange 'nowhere'"):
        publish([batch(body=["a"])], options(broker_url, exchange="nowhere"), None, "t")


def test_a_row_that_cannot_be_sent_keeps_its_batch_back(broker_url: str, queue: str) -> None:
    rows = batch(body=["a", "b"], routing_key=[queue, "k" * 256])
    with pytest.raises(BadRow, match="column routing_key"):
        publish([rows], options(broker_url), None, "t")
    assert held(broker_url, queue) == []


def test_a_queue_is_declared_on_request(broker_url: str, queue: str) -> None:
    name = f"{queue}.new"
    made = options(broker_url, routingKey=name, declareQueue="true")
    publish([batch(body=["a"])], made, None, "t")
    with connect(broker_url) as connection:
        assert queue_state(connection, name).ready_count == 1
        delete_queue(connection, name)


def test_a_rate_limit_lets_everything_through(broker_url: str, queue: str) -> None:
    rows = batch(body=["x"] * 250)
    made = options(broker_url, routingKey=queue, maxRatePerTask="1000")
    assert publish([rows], made, None, "t").published_count == 250
