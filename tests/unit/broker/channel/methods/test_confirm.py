"""confirm.select."""

from __future__ import annotations

from pika import spec

from tests.support.bench.broker import BrokerBench
from tests.support.wire_client import publish_bytes


def test_sequence_numbers_begin_with_select_and_go_on_after_a_second_one():
    client = BrokerBench().connect(1)
    client.send(publish_bytes(1, "", "nobody", b""))
    assert client.names() == []
    client.call(1, spec.Confirm.Select())
    client.send(publish_bytes(1, "", "nobody", b""))
    assert client.call(1, spec.Confirm.Select(nowait=True))[0][1].delivery_tag == 1
    client.send(publish_bytes(1, "", "nobody", b""))
    assert [ack.delivery_tag for _, ack in client.read()] == [2]


def test_not_on_a_transactional_channel():
    client = BrokerBench().connect(1)
    client.call(1, spec.Tx.Select())
    ((_, close),) = client.call(1, spec.Confirm.Select())
    assert close.reply_text == "PRECONDITION_FAILED - cannot switch from tx to confirm mode"
