"""Definitions that the servers have lost, though not their bucket: nobody has deleted them.

Covers: broker/replicated/agreed.py, broker/replicated/watching.py
"""

from __future__ import annotations

from typing import Any

import pytest
from pika import spec

from tests.support.bench.client import Client
from tests.support.cluster_bench import ClusterBench
from tests.support.front_ends_bench import FrontEnds, bind, declare_exchange, declare_queue, say


@pytest.fixture
def ends(monkeypatch: pytest.MonkeyPatch) -> FrontEnds:
    return FrontEnds(monkeypatch)


def declared(ends: FrontEnds, bench: ClusterBench) -> Client:
    client = bench.connect(1)
    declare_exchange(client)
    declare_queue(client)
    ends.settle()
    bind(client)
    ends.settle()
    assert client.names() == ["Exchange.DeclareOk", "Queue.DeclareOk", "Queue.BindOk"]
    return client


def is_whole(bench: ClusterBench) -> bool:
    vhost = bench.vhost
    queue = vhost.queues.get("q")
    return "x" in vhost.exchanges and queue is not None and bool(vhost.graph.rows_to("queue", "q"))


def meet_again(ends: FrontEnds) -> None:
    for bench in ends.benches:
        bench.own_link.lose()
    for bench in ends.benches:
        bench.own_link.open()
    ends.settle(2.0)


@pytest.mark.parametrize("left", [0, 1, 4])
def test_what_the_servers_have_lost_is_offered_again(ends: FrontEnds, left: int) -> None:
    one, two = ends.start(), ends.start()
    client = declared(ends, one)
    before = {subject for subject, _, _ in ends.bucket.messages.values()}
    ends.bucket.go_back(left)
    meet_again(ends)
    assert client.names() == [], "its connection stays, and its consumers would"
    assert is_whole(one)
    assert is_whole(two)
    assert {subject for subject, _, _ in ends.bucket.messages.values()} == before
    told = [*one.observer.named("definitions_lost"), *two.observer.named("definitions_lost")]
    assert (len(before) - left,) in told
    declare_exchange(client, "y")
    ends.settle()
    assert "y" in two.vhost.exchanges


@pytest.mark.parametrize("left", [0, 4])
def test_what_the_leader_has_and_does_not_come_is_not_deleted(ends: FrontEnds, left: int) -> None:
    one, two = ends.start(), ends.start()
    client = declared(ends, one)
    newest = ends.bucket.last
    ends.bucket.shown = left
    meet_again(ends)
    ends.bucket.shown = None
    meet_again(ends)
    assert client.names() == []
    assert is_whole(one)
    assert is_whole(two)
    assert len(ends.bucket.messages) == len({each[0] for each in ends.bucket.messages.values()})
    assert ends.bucket.last > newest, "they were written again"


def test_who_comes_to_an_empty_bucket_that_it_knows_fills_it(ends: FrontEnds) -> None:
    one = ends.start()
    declared(ends, one)
    assert one.observer.named("definitions_lost") == []
    rows = ends.rows(one)
    ends.benches.clear()
    ends.bucket.go_back(0)
    again = ends.start(rows)
    ends.settle(2.0)
    assert is_whole(again)
    assert ends.bucket.messages


def test_what_others_have_deleted_meanwhile_is_gone(ends: FrontEnds) -> None:
    one, two = ends.start(), ends.start()
    client = declared(ends, one)
    two.own_link.lose()
    say(client, spec.Queue.Delete(queue="q"))
    ends.settle()
    for subject in [each[0] for each in ends.bucket.messages.values() if not each[2]]:
        ends.bucket.forget(subject)
    two.own_link.open()
    ends.settle(2.0)
    assert "q" not in two.vhost.queues
    assert two.observer.named("definitions_lost") == []


def test_a_marker_whose_time_ends_while_all_is_read_is_no_loss(
    ends: FrontEnds, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where queues come and go, one has been removed an hour ago at any moment."""
    one, two = ends.start(), ends.start()
    client = declared(ends, one)
    declare_queue(client, "old")
    ends.settle()
    say(client, spec.Queue.Delete(queue="old"))
    ends.settle()
    (marker,) = [each[0] for each in ends.bucket.messages.values() if not each[2]]
    two.own_link.lose()
    say(client, spec.Queue.Delete(queue="q"))
    ends.settle()
    watch = ends.bucket.watch

    def late_watch(name: str) -> dict[str, Any]:
        ends.bucket.forget(marker)
        return watch(name)

    monkeypatch.setattr(ends.bucket, "watch", late_watch)
    two.own_link.open()
    ends.settle(2.0)
    assert "q" not in two.vhost.queues
    assert "q" not in one.vhost.queues
    assert two.observer.named("definitions_lost") == []
    declare_exchange(client, "y")
    ends.settle()
    assert "y" in two.vhost.exchanges
