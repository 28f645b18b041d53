"""Fixtures for pytest: a broker for the session, and for each test a virtual host of its own.

    def test_an_order_is_sent(burrowmq):
        send_order(burrowmq.url)
        burrowmq.wait_for("orders", 1)

Loaded by pytest in every project that has BurrowMQ installed, so that nothing of the broker is imported before a test
asks for a fixture. `burrowmq_options` is for a project to override. Owns no state.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from burrowmq.embedded.broker import Broker
    from burrowmq.embedded.vhost import VirtualHost

_NUMBERS = itertools.count(1)


@pytest.fixture(scope="session")
def burrowmq_options() -> dict[str, Any]:
    """Arguments of `burrowmq.Broker` beside `clock="manual"`; to be overridden in a conftest.py."""
    return {}


@pytest.fixture(scope="session")
def burrowmq_broker(burrowmq_options: dict[str, Any]) -> Iterator[Broker]:
    """A broker for the whole session, with a clock that tests move."""
    from burrowmq.embedded.broker import Broker  # noqa: PLC0415 - see above

    with Broker(**{"clock": "manual", **burrowmq_options}) as broker:
        yield broker


@pytest.fixture
def burrowmq(burrowmq_broker: Broker) -> Iterator[VirtualHost]:
    """A virtual host of the test's own, empty; what the test made go wrong with the broker ends with it."""
    if not burrowmq_broker.is_running:
        burrowmq_broker.start()  # an earlier test has killed it
    vhost = burrowmq_broker.vhost(f"test-{next(_NUMBERS)}").make()
    try:
        yield vhost
    finally:
        if burrowmq_broker.is_running:
            from burrowmq.embedded.errors import BrokerError  # noqa: PLC0415 - as Broker is

            try:
                burrowmq_broker.heal()
                vhost.delete()
            except BrokerError:
                burrowmq_broker.kill()  # its store has failed: the next test starts it again
