"""An embedded broker beside libraries that change what a process is: freezegun, gevent, the pool of Celery's prefork."""

from __future__ import annotations

import subprocess
import sys

import pika
import pytest
from freezegun import freeze_time

from burrowmq.embedded import Broker

PERSISTENT = pika.BasicProperties(delivery_mode=2)


def publish_and_take(url: str) -> None:
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        channel = connection.channel()
        channel.queue_declare("q", durable=True)
        channel.confirm_delivery()
        for number in range(3):
            channel.basic_publish("", "q", b"%d" % number, PERSISTENT)
        assert [channel.basic_get("q", auto_ack=True)[2] for _ in range(3)] == [b"0", b"1", b"2"]


@pytest.mark.parametrize("clock", ["real", "manual"])
def test_frozen_time_stops_neither_the_broker_nor_its_clock(clock: str) -> None:
    with freeze_time("2001-01-01"), Broker(clock=clock) as broker:
        with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
            channel = connection.channel()
            channel.confirm_delivery()
            channel.queue_declare("short", durable=True, arguments={"x-message-ttl": 20})
            channel.basic_publish("", "short", b"x", PERSISTENT)
            if clock == "manual":
                assert broker.clock.now().year > 2001
                broker.clock.advance(0.02)
            with broker.vhost("watch"):
                broker.ask("wait_for", "/", "short", 0, 5.0)
            assert channel.queue_declare("short", passive=True).method.message_count == 0
        broker.restart()
        publish_and_take(broker.url)


FROZEN = """
from freezegun import freeze_time
with freeze_time("2001-01-01"):
    import pika
    from burrowmq.embedded import Broker  # all of the broker is loaded while time stands still
    with Broker() as broker, broker.vhost("own") as vhost:
        with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
            channel = connection.channel()
            channel.queue_declare("short", arguments={"x-message-ttl": 20})
            channel.basic_publish("", "short", b"x")
            vhost.wait_for("short", 0)
"""

GEVENT = """
from gevent import monkey
monkey.patch_all()
import gevent, pika
from burrowmq.embedded import Broker, BrokerError

try:
    Broker(mode="thread")
except BrokerError as error:
    assert "give mode='process', or none" in str(error)
else:
    raise AssertionError("a broker has no use for greenlets")
with Broker(clock="manual") as broker, broker.vhost("own") as vhost:
    def use(number):
        with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
            channel = connection.channel()
            channel.queue_declare("q", arguments={"x-message-ttl": 1000})
            channel.basic_publish("", "q", b"%d" % number)
    gevent.joinall([gevent.spawn(use, number) for number in range(5)], raise_error=True)
    assert sorted(each.body for each in vhost.wait_for("q", 5)) == [b"%d" % n for n in range(5)]
    broker.clock.advance(1)
    assert vhost.messages("q") == []
    broker.restart()
"""

GEVENT_UNPATCHED = """
import gevent, gevent.socket
from burrowmq.embedded import Broker
with Broker() as broker:
    def greet():
        connection = gevent.socket.create_connection(("127.0.0.1", broker.port))
        connection.sendall(b"AMQP\\x00\\x00\\x09\\x01")
        assert connection.recv(1) == b"\\x01"
        connection.close()
    gevent.joinall([gevent.spawn(greet) for _ in range(5)], raise_error=True)
"""

PREFORK = """
import os, socket
import pika
from billiard import Pool  # what Celery's prefork pool is made of
from burrowmq.embedded import Broker

broker = Broker().start()
port = broker.port
connection = pika.BlockingConnection(pika.URLParameters(broker.url))

def task(url):
    with pika.BlockingConnection(pika.URLParameters(url)) as connection:
        connection.channel().queue_declare("from-a-child")
    return os.getpid()

pool = Pool(2)
assert pool.apply(task, (broker.url,)) != os.getpid()
broker.stop()
try:
    socket.create_connection(("127.0.0.1", port), 1)
except ConnectionRefusedError:
    pass
else:
    raise AssertionError("somebody listens still")
try:
    connection.process_data_events(5)
except pika.exceptions.AMQPError:
    pass
else:
    raise AssertionError("the connection is there still")
pool.terminate()
pool.join()
"""

PREFORK_WORKER = """
import os, threading
from celery import Celery
from celery.worker import state
from burrowmq.embedded import Broker

app = Celery("shop")
app.conf.update(task_ignore_result=True, broker_connection_retry_on_startup=True, worker_hijack_root_logger=False)
reading, writing = os.pipe()

@app.task
def tell():
    os.write(writing, b"%d " % os.getpid())  # the pipe came with the fork

with Broker() as broker, broker.vhost("own") as vhost:
    app.conf.broker_url = vhost.url
    worker = app.Worker(
        pool="prefork", concurrency=2, without_heartbeat=True, without_mingle=True, without_gossip=True
    )
    working = threading.Thread(target=worker.start)
    working.start()
    for _ in range(4):
        tell.delay()
    told = b""
    while len(told.split()) < 4:
        told += os.read(reading, 1000)
    vhost.wait_for("celery", 0)
    broker.restart()
    tell.delay()
    while len(told.split()) < 5:
        told += os.read(reading, 1000)
    assert str(os.getpid()).encode() not in told.split()
    state.should_stop = 0  # worker.stop() would read the connection of the worker's thread in this one
    tell.delay()  # it looks at that when something happens
    working.join()
"""

GEVENT_WAITS = """
from gevent import monkey
monkey.patch_all()
import gevent, pika
from burrowmq.embedded import Broker

with Broker() as broker, broker.vhost("own") as vhost:
    with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
        channel = connection.channel()
        channel.queue_declare("q")
        waiting = gevent.spawn(vhost.wait_for, "q", 1, 20)
        gevent.sleep(0.05)
        channel.basic_publish("", "q", b"x")  # who waits lets others run
        assert [each.body for each in waiting.get(timeout=10)] == [b"x"]
"""


@pytest.mark.slow
@pytest.mark.parametrize(
    "program",
    [FROZEN, GEVENT, GEVENT_WAITS, GEVENT_UNPATCHED, PREFORK, PREFORK_WORKER],
    ids=[
        "frozen from the first import",
        "gevent",
        "gevent's other greenlets run",
        "gevent without patches",
        "prefork",
        "a prefork worker",
    ],
)
def test_a_program_with_a_library(program: str) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
