"""channel.flow and access.request."""

from __future__ import annotations

from pika import spec

from tests.support.bench.broker import BrokerBench


def test_flow_may_only_be_on():
    client = BrokerBench().connect(1)
    ((_, ok),) = client.call(1, spec.Channel.Flow(active=True))
    assert (type(ok).__name__, ok.active) == ("FlowOk", True)
    ((_, close),) = client.call(1, spec.Channel.Flow(active=False))
    assert (close.reply_code, close.reply_text) == (540, "NOT_IMPLEMENTED - active=false")


def test_any_ticket_will_do():
    client = BrokerBench().connect(1)
    found = client.call(1, spec.Access.Request(realm="/data"))
    assert [type(method).__name__ for _, method in found] == ["RequestOk"]
