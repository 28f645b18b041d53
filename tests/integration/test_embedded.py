"""`burrowmq.Broker`, with pika in the same process.

Covers: embedded/broker.py, broker/node/dissolve.py, embedded/directory.py, embedded/errors.py, embedded/in_thread.py
Covers: embedded/kept_ports.py, embedded/settings.py
"""

from __future__ import annotations

import gc
import os
import socket
import threading
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pika
import pytest

import burrowmq
from burrowmq.embedded import Broker, BrokerError, directory
from tests.support.left_behind import held

PERSISTENT = pika.BasicProperties(delivery_mode=pika.DeliveryMode.Persistent)


def publish(broker: Broker, *bodies: bytes) -> None:
    """Publish with confirms to the durable queue "q"."""
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        channel.queue_declare("q", durable=True)
        channel.confirm_delivery()
        for body in bodies:
            channel.basic_publish("", "q", body, PERSISTENT)


def taken(broker: Broker) -> list[bytes]:
    """All bodies of the queue, acked."""
    with pika.BlockingConnection(pika.URLParameters(broker.url)) as connection:
        channel = connection.channel()
        count = channel.queue_declare("q", passive=True).method.message_count
        return [channel.basic_get("q", auto_ack=True)[2] for _ in range(count)]


def test_it_takes_and_gives_messages() -> None:
    with burrowmq.Broker() as broker:  # type: ignore[operator]
        publish(broker, b"a", b"b")
        assert taken(broker) == [b"a", b"b"]


def test_its_address_is_that_of_the_virtual_host_that_it_starts_with() -> None:
    with Broker(config={"default_vhost": "a/b"}) as broker:
        assert broker.url.endswith(f":{broker.port}/a%2Fb")
        publish(broker, b"a")
        assert taken(broker) == [b"a"]


@pytest.mark.parametrize("refused", ["burrowmq", "disk"])
def test_where_no_thread_is_to_be_had_it_says_so_and_leaves_nothing(
    refused: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    usual = threading.Thread.start

    def start(self: threading.Thread) -> None:
        if self.name == refused:
            raise RuntimeError("can't start new thread")
        usual(self)

    before = threading.enumerate()
    broker = Broker()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(
            BrokerError, match=r"cannot start: can't start new thread: raise the limit"
        ):
            broker.start()
    assert threading.enumerate() == before
    with broker:
        publish(broker, b"a")


def is_free(port: int) -> bool:
    """Whether the system could give it to somebody else."""
    with socket.socket() as other:
        try:
            other.bind(("127.0.0.1", port))
        except OSError:
            return False
        return True


def test_nobody_else_gets_the_ports_of_one_that_was_killed() -> None:
    with Broker() as broker:
        port = broker.port
        for _ in range(2):
            broker.kill()
            assert not is_free(port)
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", port))
            broker.start()
            assert broker.port == port
            publish(broker, b"a")
        assert taken(broker) == [b"a", b"a"]


@pytest.mark.parametrize("is_stopped", [True, False])
def test_a_port_is_kept_for_nobody_when_no_start_can_follow(is_stopped: bool) -> None:
    broker = Broker().start()  # and no connection, whose port would be taken for some time
    broker.restart()
    port, before = broker.port, held()
    broker.kill()
    broker.start()
    assert len(held() - before) <= len(before - held())  # its own went, as many came
    broker.kill()
    assert not is_free(port)
    if is_stopped:
        broker.stop()
    del broker
    gc.collect()
    assert is_free(port)


def test_nothing_of_it_is_left() -> None:
    with Broker():
        pass  # what is loaded and opened once for all
    gc.collect()  # what other tests left behind is none of this one's
    before = held()
    for _ in range(5):
        broker = Broker().start()
        publish(broker, b"x")
        broker.kill()
        broker.start()
        broker.restart()
        broker.stop()
    assert not held() - before


@pytest.mark.parametrize("end", ["stop", "kill"])
def test_its_memory_goes_with_it_and_does_not_wait_for_the_collector(end: str) -> None:
    """Of hundreds of starts dozens would lie there at a time, each with its loop and its messages."""
    gc.collect()
    gc.disable()
    try:
        broker = Broker(clock="manual").start()
        broker.clock.advance(1)
        publish(broker, b"x" * 100)
        node = broker._run._node  # type: ignore[union-attr]
        running = node.running
        parts = [
            weakref.ref(each)
            for each in (
                broker, broker._run, broker._run._loop, node, running, running.engine,  # type: ignore[union-attr]
                running.scheduler, running.engine._writer, running.vhosts["/"], *running.sessions,
            )
        ]  # fmt: skip
        del node, running
        getattr(broker, end)()
        broker.stop()
        del broker
        assert [part() for part in parts] == [None] * len(parts)
    finally:
        gc.enable()


@pytest.mark.parametrize("end", ["restart", "kill"])
def test_what_was_confirmed_is_there_again_on_the_same_port(end: str) -> None:
    with Broker() as broker:
        publish(broker, b"a", b"b")
        port = broker.port
        if end == "restart":
            broker.restart()
        else:
            broker.kill()
            assert not broker.is_running
            broker.start()
        assert broker.port == port
        assert taken(broker) == [b"a", b"b"]


def test_a_directory_that_was_named_stays_and_one_of_its_own_goes(tmp_path: Path) -> None:
    with Broker(tmp_path / "data") as broker:
        publish(broker, b"kept")
    with Broker(tmp_path / "data", config={"default_user": "u", "default_pass": "p"}) as broker:
        assert broker.user == "u"
        assert taken(broker) == [b"kept"]
    with Broker() as broker:
        own = Path(broker.data_dir)
        assert own.is_dir()
    assert not own.exists()


def test_two_at_a_time_know_nothing_of_each_other() -> None:
    with Broker() as first, Broker() as second:
        publish(first, b"first")
        publish(second, b"second")
        assert (taken(first), taken(second)) == ([b"first"], [b"second"])


def test_a_child_that_was_forked_before_the_stop_keeps_nothing(tmp_path: Path) -> None:
    broker = Broker(tmp_path / "data", management=True).start()
    port, api_port = broker.port, int(broker.management_url.rpartition(":")[2])
    reading, writing = os.pipe()
    child = os.fork()
    if not child:
        os.close(writing)
        os.read(reading, 1)  # until the parent is done
        os._exit(0)
    os.close(reading)
    try:
        publish(broker, b"while the child is there")
        broker.stop()
        for each in (port, api_port):
            with pytest.raises(ConnectionRefusedError):
                socket.create_connection(("127.0.0.1", each))
        with Broker(tmp_path / "data", port=port):
            pass
    finally:
        os.close(writing)
        os.waitpid(child, 0)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        ({"port": -1}, "port is -1: give a number from 0"),
        ({"port": True}, "port is True"),
        ({"management": 15672}, "management is 15672: give True or False"),
        (
            {"config": {"no_such_key": 1}},
            "^config: no_such_key: there is no setting with that name",
        ),
        ({"config": {"heartbeet": 1}}, "^config: heartbeet: .*; did you mean heartbeat"),
        ({"config": "x=y"}, "^config is 'x=y': give keys with their values, {'heartbeat': 10}"),
        ({"config": [("heartbeat", 1)]}, "^config is "),
        ({"config": {1: 2}}, "^config has the key 1: give names of keys"),
        ({"config": {"heartbeat": "soon"}}, "heartbeat"),
        ({"config": {"listeners.tcp.default": 5672}}, "give its port as port="),
        ({"config": {"management.tcp.port": 15672}}, "has no HTTP API but with management=True"),
        ({"config": {"data_dir": "/d"}}, "data_dir: give its directory as data_dir="),
        (
            {"config": {"log.console": True}},
            "log.console: an embedded broker has no metrics and no log",
        ),
    ],
)
def test_what_it_cannot_do_it_says_before_anything_is_made(
    arguments: dict[str, object], text: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(directory, "IN_MEMORY", str(tmp_path))
    with pytest.raises(BrokerError, match=text):
        Broker(**arguments)  # type: ignore[arg-type]
    assert list(tmp_path.iterdir()) == []


def test_a_directory_or_a_port_that_somebody_uses(tmp_path: Path) -> None:
    with Broker(tmp_path / "data") as broker:
        with pytest.raises(BrokerError, match="is in use by process"):
            Broker(tmp_path / "data").start()
        with pytest.raises(BrokerError, match=f"cannot listen on 127.0.0.1:{broker.port}") as taken:
            Broker(port=broker.port).start()
        way = "stop what uses it, or name another with port= (0: one that is free)"
        assert str(taken.value).endswith(way)
        publish(broker, b"still here")


def test_a_directory_that_cannot_be_used_is_said_without_a_command_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", encoding="ascii")
    with pytest.raises(BrokerError, match=r"cannot be used: .*choose another$") as refused:
        Broker(tmp_path / "file" / "data").start()
    assert refused.value.__cause__ is None


def test_a_directory_of_its_own_goes_also_without_a_run(monkeypatch: pytest.MonkeyPatch) -> None:
    with Broker() as there:
        with pytest.raises(BrokerError, match="cannot listen"), Broker(port=there.port):
            pass
        failed = Broker(port=there.port)
        with pytest.raises(BrokerError, match="cannot listen"):
            failed.start()
    with failed:  # the port is free now
        kept = failed.data_dir
        failed.kill()
        assert os.path.isdir(kept)
    killed = Broker().start()
    killed.kill()
    left = [kept, killed.data_dir, Broker().data_dir]
    del killed, failed
    assert [os.path.exists(each) for each in left] == [False] * 3


def test_who_waits_while_another_thread_ends_the_broker_is_told() -> None:
    with Broker() as broker, broker.vhost("own") as vhost, ThreadPoolExecutor(1) as waiting:
        with pika.BlockingConnection(pika.URLParameters(vhost.url)) as connection:
            connection.channel().queue_declare("q", durable=True)
        asked = waiting.submit(vhost.wait_for, "q", 1, 30)
        while not asked.running():
            pass
        broker.restart()
        with pytest.raises(BrokerError, match=r"has ended meanwhile|does not run"):
            asked.result(10)


def test_stop_twice_and_use_after_the_stop() -> None:
    broker = Broker()
    with pytest.raises(BrokerError, match=r"does not run: call start\(\)"):
        _ = broker.url
    broker.start()
    with pytest.raises(BrokerError, match="runs already"):
        broker.start()
    broker.stop()
    broker.stop()
    for use in (lambda: broker.url, broker.restart, broker.kill):
        with pytest.raises(BrokerError, match="does not run any more: it was stopped"):
            use()
    with pytest.raises(BrokerError, match="was stopped: make another one"):
        broker.start()
