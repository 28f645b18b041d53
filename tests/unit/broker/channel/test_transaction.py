"""Transaction: what it keeps, and how much of it."""

from __future__ import annotations

import pytest

from burrowmq.broker.channel import transaction as transaction_module
from burrowmq.broker.channel.transaction import Transaction
from burrowmq.broker.vhost.router import Route
from burrowmq.protocol.errors import ResourceError
from tests.support.bench.broker import BrokerBench
from tests.support.messages import message


def test_it_is_bounded_but_takes_one_message_of_any_size(monkeypatch):
    monkeypatch.setattr(transaction_module, "TRANSACTION_BYTES", 10_000)
    transaction = Transaction()
    route = Route(BrokerBench().vhost.exchanges[""], ())
    large = message(b"x" * 20_000)
    transaction.add(route, (), large)
    with pytest.raises(ResourceError, match="transaction exceeds 10000 bytes"):
        transaction.add(route, (), message(b"y"))
    assert [publish[2] for publish in transaction.publishes] == [large]
