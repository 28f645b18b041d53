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
    transaction.add([large], [route])
    with pytest.raises(ResourceError, match="transaction exceeds 10000 bytes"):
        transaction.add([message(b"y")], [route])
    assert [run.messages for run in transaction.publishes] == [[large]]
    with pytest.raises(ResourceError, match="transaction exceeds 10000 bytes"):
        Transaction().add([large, message(b"y")], [route, route])


def test_neighbours_that_are_alike_are_one_run():
    transaction = Transaction()
    route = Route(BrokerBench().vhost.exchanges[""], ())
    first, second, third = message(b"1"), message(b"2"), message(b"3", persistent=True)
    transaction.add([first], [route])
    transaction.add([second], [route])
    transaction.add([third], [route])
    transaction.add([], [])
    assert [(run.messages, run.routes) for run in transaction.publishes] == [
        ([first, second], [route, route]),
        ([third], [route]),
    ]
