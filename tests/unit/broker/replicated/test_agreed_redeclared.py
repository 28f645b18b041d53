"""A name that is declared again while all front-ends agree that it is gone.

Covers: broker/replicated/agreed.py
"""

from __future__ import annotations

import pytest
from pika import spec

from tests.support.bench.client import Client
from tests.support.cluster_bench import ClusterBench
from tests.support.front_ends_bench import FrontEnds, declare_queue, say


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> FrontEnds:
    return FrontEnds(monkeypatch)


def declaring_while_it_goes(ends: FrontEnds) -> tuple[ClusterBench, Client]:
    """Who has declared a queue whose deletion the servers have not agreed to yet."""
    one = ends.start()
    other, client = one.connect(1), one.connect(1)
    declare_queue(other)
    ends.settle()
    say(other, spec.Queue.Delete(queue="q"))
    while "q" in one.vhost.queues:
        one.run()
        ends.world.run()
    assert other.names() == ["Queue.DeclareOk"]
    declare_queue(client)
    return one, client


def test_who_declares_a_queue_while_it_goes_has_a_new_one(ends: FrontEnds) -> None:
    one, client = declaring_while_it_goes(ends)
    ends.settle(1)
    assert client.names() == ["Queue.DeclareOk"]
    assert "q" in one.vhost.queues
    assert len(ends.world.streams) == 1


def test_who_declares_it_while_nobody_agrees_is_told_so(ends: FrontEnds) -> None:
    _, client = declaring_while_it_goes(ends)
    ends.world.is_silent = True
    ends.settle(7)
    assert client.names() == ["Channel.Close"]
