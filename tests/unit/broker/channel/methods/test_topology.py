"""burrowmq.broker.channel.methods.topology: what the handlers share."""

from __future__ import annotations

import pytest

from burrowmq.broker.channel.methods.topology import answer, clean_name, refuse_default_exchange
from burrowmq.broker.vhost.vhost import ExchangeDeclaration
from burrowmq.protocol.errors import AccessRefused
from burrowmq.protocol.methods import Queue as Methods
from tests.support.bench.broker import BrokerBench


def test_names() -> None:
    assert clean_name("a\rb\n\r\n") == "ab"
    refuse_default_exchange("x")
    with pytest.raises(AccessRefused):
        refuse_default_exchange("")


@pytest.mark.parametrize(
    ("is_own", "is_durable", "batches_later", "waits"),
    [
        (True, False, 9, True),
        (False, False, 0, False),
        (False, True, 1, True),
        (False, True, 2, False),
    ],
)
def test_a_reply_waits_for_what_it_promises(
    is_own: bool, is_durable: bool, batches_later: int, waits: bool
) -> None:
    bench = BrokerBench()
    client = bench.connect(1)
    before = bench.vhost.rows.staged
    bench.vhost.declare_exchange(ExchangeDeclaration(name="x", durable=True))
    for _ in range(batches_later):
        bench.engine.require_sync()
        bench.engine.hand_over()
        bench.engine.commit()
    staged = before if is_own else bench.vhost.rows.staged
    channel = client.session.channels[1]
    answer(channel, Methods.BindOk(), nowait=False, staged=staged, is_durable=is_durable)
    bench.scheduler.touch()
    bench.run()
    assert client.names() == ([] if waits else ["Queue.BindOk"])
    if waits:
        bench.commit()
        assert client.names() == ["Queue.BindOk"]
