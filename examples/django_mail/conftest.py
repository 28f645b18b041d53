"""The project, connected to a virtual host of each test's own."""

import threading
from contextlib import contextmanager

import pytest
from mail import queues


@pytest.fixture
def postman(monkeypatch):
    """Who was written to; the test says in `answers` what sending raises, one mail after the other."""

    class Postman:
        def __init__(self):
            self.sent, self.answers = [], []

        def __call__(self, mail):
            self.sent.append(mail["to"])
            if self.answers and (answer := self.answers.pop(0)) is not None:
                raise answer

    found = Postman()
    monkeypatch.setattr(queues, "send_mail", found)
    return found


@pytest.fixture(autouse=True)
def mails(burrowmq, postman, settings):
    """The queues."""
    settings.AMQP_URL = burrowmq.url
    with queues.connect() as connection:
        queues.declare(connection.channel())


@pytest.fixture
def worker(mails):
    """`with worker():` while mails are to be sent, in a thread."""

    @contextmanager
    def run():
        done = threading.Event()
        working = threading.Thread(target=queues.work, args=(done.is_set,))
        working.start()
        try:
            yield
        finally:
            done.set()
            working.join(5)

    return run
