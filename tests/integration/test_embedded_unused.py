"""What an embedded broker adds for tests (faults, a moved clock, a record of publishes) is on no message's way unasked.

Every Python call of the broker's threads is seen while messages go through it.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from types import FrameType

import pika

import burrowmq
from burrowmq.embedded import Broker

ROOT = os.path.realpath(os.path.dirname(os.path.dirname(burrowmq.__file__)))
MESSAGES = 50
OF_TESTS = (
    "embedded/",
    "broker/node/advance.py",
    "broker/turn/manual_scheduler.py",
    "broker/turn/timeline.py",
    "broker/vhost/recorder.py",
    "broker/vhost/trace.py",
)


class Calls:
    """The calls of the threads that are started under `threading.setprofile`, by module."""

    def __init__(self) -> None:
        self.is_counting = False
        self.found: Counter[str] = Counter()

    def take(self, frame: FrameType, event: str, argument: object) -> None:
        if self.is_counting and event == "call":
            path = os.path.realpath(frame.f_code.co_filename)
            if path.startswith(ROOT):
                self.found[os.path.relpath(path, ROOT)] += 1

    @property
    def of_tests(self) -> set[str]:
        return {path for path in self.found if path.startswith(OF_TESTS)}


def run(calls: Calls, broker: Broker, url: str) -> None:
    """Publish, deliver and acknowledge, and count the calls of that."""
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.queue_declare("q", exclusive=True)
        channel.confirm_delivery()
        calls.is_counting = True
        for _ in range(MESSAGES):
            channel.basic_publish("", "q", b"x")
        for method, _, _ in channel.consume("q"):
            channel.basic_ack(method.delivery_tag)
            if method.delivery_tag == MESSAGES:
                break
        assert channel.queue_declare("q", passive=True).method.message_count == 0
        calls.is_counting = False
    assert calls.found["broker/channel/methods/publish.py"]
    assert calls.found["broker/queue/serve/serving.py"]


def profiled(calls: Calls, **arguments: str) -> Broker:
    """A broker whose threads are looked at."""
    threading.setprofile(calls.take)
    try:
        return Broker(**arguments).start()  # type: ignore[arg-type] # strings, of which there are two
    finally:
        threading.setprofile(None)


def test_nothing_of_it_is_called_for_a_message() -> None:
    calls = Calls()
    broker = profiled(calls)
    try:
        run(calls, broker, broker.url)
    finally:
        broker.stop()
    # The store's files are that disk's: asked once for each write, where a server's go to the system straight away.
    assert calls.of_tests <= {"embedded/disk_faults.py"}


def test_what_was_asked_for_is_seen_so() -> None:
    calls = Calls()
    broker = profiled(calls, clock="manual")
    try:
        with broker.vhost("v") as vhost:
            vhost.nack_next(0)
            run(calls, broker, vhost.url)
    finally:
        broker.stop()
    assert {
        "embedded/refusals.py",
        "broker/vhost/recorder.py",
        "broker/turn/manual_scheduler.py",
    } <= (calls.of_tests)
