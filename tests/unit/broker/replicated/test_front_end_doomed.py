"""The stream of a queue that is gone is deleted, whatever comes between; a later one of its name is not.

Covers: broker/replicated/front_end.py
"""

from __future__ import annotations

from tests.support.cluster_bench import ClusterBench
from tests.support.fake_jetstream import Stream
from tests.support.quorum_clients import publish, publisher


def delete_unanswered(bench: ClusterBench, *, is_heard: bool) -> Stream:
    """A queue goes with its virtual host, and the connection with the servers' answer; gives its stream."""
    client = publisher(bench)
    bench.declared(client)
    publish(client, b"1")
    bench.settle()
    stream = bench.stream()
    bench.world.is_silent = not is_heard
    bench.vhost.delete_queue(bench.vhost.queues["q"])
    bench.link.lose()
    bench.world.is_silent = False
    bench.settle()
    return stream


def test_one_of_its_name_that_was_declared_elsewhere_since_stays(bench: ClusterBench) -> None:
    old = delete_unanswered(bench, is_heard=True)
    assert not bench.world.streams
    new = bench.world.streams[str(old.config["name"])] = Stream(old.config)
    new.has_consumer = True
    bench.link.open()
    bench.settle(3)
    assert bench.stream() is new


def test_one_whose_deletion_was_not_heard_is_deleted_later(bench: ClusterBench) -> None:
    delete_unanswered(bench, is_heard=False)
    assert bench.world.streams
    bench.link.open()
    bench.settle(3)
    assert not bench.world.streams


def test_one_that_is_gone_is_not_waited_for(bench: ClusterBench) -> None:
    delete_unanswered(bench, is_heard=True)
    bench.link.open()
    bench.settle(3)
    bench.declared(bench.connect(1))
