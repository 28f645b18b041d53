"""An embedded broker at the two moments at which nobody thinks of it: a fork, and the interpreter's end.

Covers: embedded/left_over.py
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pika
import pytest

from burrowmq.embedded import Broker, BrokerError
from burrowmq.embedded.left_over import LeftOver

LEFT_RUNNING = """
import sys, pika
from burrowmq.embedded import Broker
broker = Broker(sys.argv[1] or None).start()
channel = pika.BlockingConnection(pika.URLParameters(broker.url)).channel()
channel.queue_declare("q", durable=True)
channel.confirm_delivery()
channel.basic_publish("", "q", b"x", pika.BasicProperties(delivery_mode=2))
print(broker.data_dir)
sys.exit(int(sys.argv[2]))
"""

KILLED = """
import burrowmq
killed, failed, never = burrowmq.Broker().start(), burrowmq.Broker(), burrowmq.Broker()
failed._settings = failed._settings._replace(port=killed.port)
try:
    failed.start()
except burrowmq.BrokerError:
    pass
killed.kill()
print(killed.data_dir, failed.data_dir, never.data_dir)
"""

CHILD_OF_ITS_OWN = """
import os
import pika
from burrowmq.embedded import Broker
with Broker():
    child = os.fork()
    if not child:
        with Broker() as own, pika.BlockingConnection(pika.URLParameters(own.url)) as there:
            is_open = there.channel().is_open
        os._exit(0 if is_open else 1)
    raise SystemExit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""


def in_a_child(call: Callable[[], object]) -> str:
    """What a call gives in a forked child, or the error that it raises."""
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        try:
            text = repr(call())
        except BaseException as error:
            text = f"{type(error).__name__}: {error}"
        os.write(writing, text.encode())
        os._exit(0)
    os.close(writing)
    try:
        with open(reading, encoding="utf-8") as told:
            return told.read()
    finally:
        os.waitpid(child, 0)


@pytest.mark.slow
def test_one_that_is_left_running_is_stopped_with_the_interpreter(tmp_path: Path) -> None:
    data = tmp_path / "data"
    for directory in (str(data), ""):
        done = subprocess.run(
            [sys.executable, "-c", LEFT_RUNNING, directory, "3"],
            capture_output=True,
            text=True,
            timeout=30,
            check=False,
        )
        assert (done.returncode, done.stderr) == (3, "")
        assert Path(done.stdout.strip()).exists() == bool(directory)
    with Broker(data) as broker:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            queue = connection.channel().queue_declare("q", passive=True)
            assert queue.method.message_count == 1


@pytest.mark.slow
def test_directories_of_brokers_that_do_not_run_go_with_the_interpreter() -> None:
    done = subprocess.run(
        [sys.executable, "-c", KILLED], capture_output=True, text=True, timeout=30, check=True
    )
    assert done.stderr == ""
    assert [os.path.exists(each) for each in done.stdout.split()] == [False] * 3


def test_a_forked_child_has_none_and_can_do_nothing_to_the_parents() -> None:
    with Broker(clock="manual") as broker:
        there = "BrokerError: the broker is in the process that started it"
        assert in_a_child(lambda: broker.is_running) == "False"
        for call in (lambda: broker.url, broker.restart, broker.kill, broker.start):
            assert in_a_child(call).startswith(there)
        assert in_a_child(lambda: broker.clock.advance(1)).startswith(there)
        assert in_a_child(broker.stop) == "None"
        assert os.path.isdir(broker.data_dir)
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            connection.channel().queue_declare("q")


@pytest.mark.slow
def test_a_child_may_have_one_of_its_own() -> None:
    # In a program of its own: a worker of pytest has threads besides, whose locks a child would inherit as they are.
    done = subprocess.run([sys.executable, "-c", CHILD_OF_ITS_OWN], timeout=60, check=False)
    assert done.returncode == 0


def test_a_client_of_the_parent_sees_the_end_while_a_child_lives() -> None:
    """The child has a descriptor of each connection: it must not keep them open."""
    with Broker() as broker:
        connection = pika.BlockingConnection(pika.URLParameters(broker.url))
        reading, writing = os.pipe()
        child = os.fork()
        if not child:
            os.close(writing)
            os.read(reading, 1)
            os._exit(0)
        os.close(reading)
        try:
            broker.kill()
            with pytest.raises(pika.exceptions.AMQPConnectionError):
                connection.process_data_events(5)
        finally:
            os.close(writing)
            os.waitpid(child, 0)


def test_one_that_fails_to_end_does_not_keep_the_others_from_it() -> None:
    ended = []

    class Fake:
        def __init__(self, error: type[Exception] | None) -> None:
            self.error = error

        def end(self) -> None:
            ended.append(self)
            if self.error is not None:
                raise self.error

        forget = end

    left = LeftOver()
    broken, sound = Fake(BrokerError), Fake(None)
    left.add(broken)
    left.add(sound)
    left.end_all()
    assert ended == [broken, sound]
    left.discard(broken)
    left.forget_all()
    assert ended == [broken, sound, sound]
    left.end_all()
    assert len(ended) == 3
