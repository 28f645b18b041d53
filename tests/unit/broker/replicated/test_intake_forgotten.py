"""A server that leads since the last one died may not know what that one had delivered: it delivers it as if for the first time.

Covers: broker/replicated/intake.py
"""

from __future__ import annotations

from pika import spec

from tests.support.cluster_bench import ClusterBench
from tests.support.quorum_clients import bodies, consume, publish, publisher


def test_what_was_acknowledged_here_is_acknowledged_again_and_given_to_nobody(
    bench: ClusterBench,
) -> None:
    client = publisher(bench)
    queue = bench.declared(client)
    publish(client, b"1", b"2", b"3")
    bench.settle()
    other = consume(bench)
    assert len(bodies(other)) == 3
    bench.world.loses_acks = True
    other.call(1, spec.Basic.Ack(2, multiple=True))
    bench.settle(0.1)
    bench.world.loses_acks = False
    bench.stream().counts.clear()
    for sequence in (3, 2, 1):
        bench.world.again(bench.stream(), sequence)
    bench.settle(0.1)
    assert bodies(other) == []
    assert sorted(bench.stream().messages) == [3]
    assert queue.unacked_count == 1


def test_what_comes_behind_a_later_one_counts_as_redelivered(bench: ClusterBench) -> None:
    """Another front-end's clients may hold it."""
    client = publisher(bench)
    bench.declared(client)
    publish(client, b"1", b"2", b"3")
    bench.settle()
    bench.stream().ready.popleft()  # for another front-end
    other = consume(bench)
    assert bodies(other) == [(1, False), (2, False)]
    bench.world.again(bench.stream(), 1)
    bench.settle()
    assert bodies(other) == [(3, True)]
    publish(client, b"4")
    bench.settle()
    assert bodies(other) == [(4, False)]
