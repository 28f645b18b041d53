"""Members of quorum queues and streams that come and go at real servers, while clients publish and consume."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pika
import pytest

from bench.nats_servers import NatsCluster
from tests.support.broker_process import BrokerProcess
from tests.support.front_ends import (
    PERSISTENT,
    STREAM,
    Nodes,
    change,
    declare,
    leader_of,
    members_of,
)
from tests.support.patience import patient


@pytest.fixture
def five(nats_server: Path, tmp_path: Path) -> Iterator[Nodes]:
    """A front-end's five servers."""
    cluster = NatsCluster(tmp_path / "five", count=5)
    try:
        cluster.start()
        nodes = Nodes(tmp_path / "nodes", cluster)
        yield nodes
        nodes.close()
    finally:
        cluster.stop()


class Load:
    """A publisher that awaits each confirm and a consumer that acknowledges, on connections of their own."""

    def __init__(self, process: BrokerProcess, name: str) -> None:
        self.confirmed: list[int] = []
        self.taken: list[int] = []
        self.failures: list[str] = []
        self._url = process.url
        self._name = name
        self._is_over = threading.Event()
        self._is_all_confirmed = threading.Event()  # only then is what is confirmed compared
        self._threads = [
            threading.Thread(target=self._guarded, args=(each,))
            for each in (self._publish, self._consume)
        ]
        for thread in self._threads:
            thread.start()

    def _guarded(self, run: Any) -> None:
        try:
            with pika.BlockingConnection(pika.URLParameters(self._url)) as connection:
                run(connection.channel())
        except Exception as failure:
            self.failures.append(repr(failure))

    def _publish(self, channel: Any) -> None:
        channel.confirm_delivery()
        number = 0
        while not self._is_over.is_set():
            channel.basic_publish("", self._name, b"%d" % number, PERSISTENT)
            self.confirmed.append(number)
            number += 1
        self._is_all_confirmed.set()

    def _consume(self, channel: Any) -> None:
        until = float("inf")
        for method, _, body in channel.consume(self._name, inactivity_timeout=0.5):
            if method is not None:
                self.taken.append(int(body))
                channel.basic_ack(method.delivery_tag)
            if self._is_over.is_set() and until == float("inf"):
                until = time.monotonic() + patient(30)
            is_all = self._is_all_confirmed.is_set() and set(self.taken) >= set(self.confirmed)
            if is_all or time.monotonic() > until:
                break

    def end(self) -> None:
        """Stop publishing, and take what is left."""
        self._is_over.set()
        for thread in self._threads:
            thread.join(patient(60))
        assert not self.failures
        assert set(self.taken) == set(self.confirmed)
        assert len(self.taken) - len(set(self.taken)) == 0
        print(f"confirmed {len(self.confirmed)}, taken {len(self.taken)}")


@pytest.mark.timeout(400)
def test_members_come_and_go_under_load(nodes: Nodes) -> None:
    node = nodes.start()
    declare(nodes.channel(node), "q")
    load = Load(node, "q")
    all_three = ["n1", "n2", "n3"]
    try:
        for _ in range(2):
            gone = leader_of(node)
            rest = [each for each in all_three if each != gone]
            assert change(node, "delete_member", "q", gone) == ""
            assert members_of(node) == rest
            second = leader_of(node)
            assert change(node, "delete_member", "q", second) == ""
            (last,) = members_of(node)
            assert "the last node cannot be removed" in change(node, "delete_member", "q", last)
            assert change(node, "add_member", "q", second) == ""
            assert members_of(node) == sorted((last, second))
            assert change(node, "add_member", "q", second) == ""  # has it
            assert change(node, "add_member", "q", gone) == ""
            assert members_of(node) == all_three
    finally:
        load.end()


@pytest.mark.timeout(400)
def test_a_single_active_consumer_goes_on_with_one_member(nodes: Nodes) -> None:
    """Its place is pinned to one front-end, and paused as any other until the change is known."""
    node = nodes.start()
    arguments = {"x-queue-type": "quorum", "x-single-active-consumer": True}
    nodes.channel(node).queue_declare("q", durable=True, arguments=arguments)
    load = Load(node, "q")
    try:
        for _ in range(2):
            assert change(node, "delete_member", "q", leader_of(node)) == ""
        assert len(members_of(node)) == 1
        until = time.monotonic() + patient(20)
        taken = len(load.taken)
        while len(load.taken) == taken:
            assert time.monotonic() < until, "nothing is delivered any more"
            time.sleep(0.05)
    finally:
        load.end()


@pytest.mark.timeout(400)
def test_of_five_servers_the_named_ones_keep_it(five: Nodes) -> None:
    node = five.start()
    declare(five.channel(node), "q")
    load = Load(node, "q")
    try:
        found = members_of(node)
        (first, second) = [each for each in ("n1", "n2", "n3", "n4", "n5") if each not in found]
        assert change(node, "add_member", "q", second) == ""
        assert members_of(node) == sorted([*found, second])
        assert change(node, "delete_member", "q", found[0]) == ""
        assert members_of(node) == sorted([*found[1:], second])
        assert change(node, "add_member", "q", first) == ""
        assert change(node, "add_member", "q", found[0]) == ""
        assert members_of(node) == ["n1", "n2", "n3", "n4", "n5"]
    finally:
        load.end()


@pytest.mark.timeout(300)
def test_a_stream_keeps_all_while_its_replicas_change(nodes: Nodes) -> None:
    node = nodes.start()
    declare(nodes.channel(node), "q")  # the servers have elected
    channel = nodes.channel(node)
    channel.queue_declare("s", durable=True, arguments=STREAM)
    channel.confirm_delivery()
    count = 0
    for words in (("delete_replica", "s", "n2"), ("add_replica", "s", "n2")):
        for _ in range(200):
            channel.basic_publish("", "s", b"%d" % count, PERSISTENT)
            count += 1
        assert change(node, *words) == ""
    assert members_of(node, "stream", "s") == ["n1", "n2", "n3"]
    reader = nodes.channel(node)
    reader.basic_qos(prefetch_count=100)
    taken: list[int] = []
    offset = {"x-stream-offset": "first"}
    for method, _, body in reader.consume("s", arguments=offset, inactivity_timeout=patient(20)):
        assert method is not None, taken
        taken.append(int(body))
        reader.basic_ack(method.delivery_tag)
        if len(taken) == count:
            break
    assert taken == list(range(count))


@pytest.mark.timeout(300)
def test_nothing_is_changed_while_a_server_is_down(nodes: Nodes) -> None:
    node = nodes.start()
    declare(nodes.channel(node), "q")
    nodes.cluster.by_name("n3").kill()
    for words in (
        ("delete_member", "q", "n3"),
        ("delete_member", "q", "n1"),
        ("add_member", "q", "n3"),
        ("grow", "n1", "all"),
        ("shrink", "n3"),
    ):
        with pytest.raises(RuntimeError, match="no member is added or removed while a server is"):
            node.ctl(*words)
    nodes.cluster.by_name("n3").start()
    assert change(node, "shrink", "n3") == ""
    assert members_of(node) == ["n1", "n2"]
    assert change(node, "grow", "n3", "even") == ""
    assert members_of(node) == ["n1", "n2", "n3"]
