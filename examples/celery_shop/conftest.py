"""Celery, connected to a virtual host of each test's own."""

from contextlib import contextmanager

import pytest
import shop
from celery.contrib.testing.worker import start_worker


@pytest.fixture
def bank(monkeypatch):
    """What the bank was asked for; the test says in `answers` what it raises, one call after the other."""

    class Bank:
        asked, answers = [], []

        def __call__(self, order):
            self.asked.append(order)
            if self.answers:
                answer = self.answers.pop(0)
                if answer is not None:
                    raise answer

    found = Bank()
    found.asked, found.answers = [], []
    monkeypatch.setattr(shop, "bank", found)
    return found


@pytest.fixture
def celery_shop(burrowmq, bank):
    """The application with its queues."""
    shop.app.conf.broker_url = burrowmq.url
    shop.app.conf.broker_heartbeat = 0  # a worker that has timers looks for its end every 10 s only
    shop.declare()
    yield shop
    shop.app.pool.force_close_all()
    shop.app.__dict__.pop("amqp", None)
    shop.app._pool = None


@pytest.fixture
def worker(celery_shop):
    """`with worker():` while a worker is to run, in a thread."""

    @contextmanager
    def run():
        with start_worker(shop.app, pool="solo", queues=["orders"], perform_ping_check=False):
            yield

    return run
