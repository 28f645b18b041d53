"""The application, connected to a virtual host of each test's own."""

import orders
import pytest
from fastapi.testclient import TestClient


@pytest.fixture
def kitchen(monkeypatch):
    """What the kitchen was asked for; the test says in `answers` what it raises, one call after the other."""

    class Kitchen:
        def __init__(self):
            self.asked, self.answers = [], []

        async def __call__(self, order):
            self.asked.append(order["dish"])
            if self.answers and (answer := self.answers.pop(0)) is not None:
                raise answer

    found = Kitchen()
    monkeypatch.setattr(orders, "kitchen", found)
    return found


@pytest.fixture
def client(burrowmq, kitchen, monkeypatch):
    """Somebody who orders."""
    monkeypatch.setenv("AMQP_URL", burrowmq.url)
    monkeypatch.setattr(orders, "CONFIRM_S", 0.3)
    with TestClient(orders.app) as client:
        yield client
