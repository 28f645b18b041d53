"""What a cluster would do with a backlog, without a cluster: `python -m bench.spark_scale` (in .venv/spark).

The plans are the source's own (`Offset`), batch after batch; tasks take slots as Spark gives them, longest waiting
first. How long a piece takes is assumed, with the numbers that the command line names: a task's rate, a queue's rate
(shared by the pieces that take from it at the same time), the rate of all brokers together, and fixed times for a piece
and a batch. Keys weigh 1/rank and are hashed to the shards, so that some shards have more than others.
"""

from __future__ import annotations

import argparse
import heapq
import zlib
from collections import defaultdict
from dataclasses import dataclass

from pyspark_amqp.spool import Offset, Piece, Share


@dataclass(frozen=True, slots=True)
class Cluster:
    """What is assumed."""

    slots: int = 64
    task_rate: float = 100_000.0
    queue_rate: float = 30_000.0
    broker_rate: float = 300_000.0
    piece_s: float = 0.1
    batch_s: float = 0.3


@dataclass(frozen=True, slots=True)
class Drained:
    """How long a backlog took."""

    batch_count: int
    seconds: float
    busy_share: float
    """Of all slots, while tasks ran."""


def backlog(shard_count: int, total: int, key_count: int = 10_000) -> dict[str, int]:
    """Return the messages of each shard when keys weigh 1/rank."""
    weights: dict[int, float] = defaultdict(float)
    for rank in range(1, key_count + 1):
        weights[zlib.crc32(b"key-%d" % rank) % shard_count] += 1 / rank
    whole = sum(weights.values())
    return {f"q.{shard}": int(total * weights[shard] / whole) for shard in range(shard_count)}


def makespan(pieces: list[Piece], cluster: Cluster) -> tuple[float, float]:
    """Return how long a batch's tasks take together, and the sum of all of them."""
    beside: dict[str, int] = defaultdict(int)
    for piece in pieces:
        beside[piece.queue] += 1
    free_at = [0.0] * cluster.slots
    work_s = 0.0
    for piece in pieces:
        rate = min(cluster.task_rate, cluster.queue_rate / min(beside[piece.queue], cluster.slots))
        taken_s = cluster.piece_s + piece.count / rate
        heapq.heapreplace(free_at, free_at[0] + taken_s)
        work_s += taken_s
    longest_s = max(free_at)
    slowed = sum(piece.count for piece in pieces) / cluster.broker_rate
    return max(longest_s, slowed), work_s


def drain(
    ready: dict[str, int], cluster: Cluster, *, limit: int, prefetch_count: int = 65_535
) -> Drained:
    """Take the whole backlog, batch by batch."""
    ready = dict(ready)
    offset = Offset("simulated")
    seconds = work_s = task_s = 0.0
    while (found := offset.following(ready, limit)) is not offset:
        cut = {
            queue: Share(share.count, max(1, -(-share.count // prefetch_count)))
            for queue, share in found.plan.items()
        }
        offset = Offset(found.stream, found.seq, cut)
        spent_s, batch_work_s = makespan(offset.pieces(), cluster)
        seconds += cluster.batch_s + spent_s
        work_s += batch_work_s
        task_s += spent_s * cluster.slots
        for queue, share in cut.items():
            ready[queue] -= share.count
    return Drained(offset.seq, seconds, work_s / task_s if task_s else 0.0)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.spark_scale", description=__doc__)
    parser.add_argument("--total", type=int, default=10_000_000)
    parser.add_argument("--slots", type=int, default=64)
    parser.add_argument("--queue-rate", type=float, default=30_000)
    parser.add_argument("--broker-rate", type=float, default=300_000)
    asked = parser.parse_args()
    cluster = Cluster(slots=asked.slots, queue_rate=asked.queue_rate, broker_rate=asked.broker_rate)
    print("| shards | records per trigger | prefetch | batches | messages/s | slots busy |")
    print("|---|---|---|---|---|---|")
    for shard_count, limit, prefetch_count in (
        *((1, 1_000_000, 65_535), (8, 1_000_000, 65_535), (64, 1_000_000, 65_535)),
        *((64, 100_000, 65_535), (64, 1_000_000, 10_000), (192, 1_000_000, 65_535)),
    ):
        ready = backlog(shard_count, asked.total)
        found = drain(ready, cluster, limit=limit, prefetch_count=prefetch_count)
        print(
            f"| {shard_count} | {limit:,} | {prefetch_count:,} | {found.batch_count} "
            f"| {sum(ready.values()) / found.seconds:,.0f} | {found.busy_share:.0%} |"
        )


if __name__ == "__main__":
    main()
