"""A damaged message that a length limit drops, to become a dead letter, keeps its bytes; the others go on.

Covers: broker/queue/rules/drops.py
"""

from __future__ import annotations

from pathlib import Path

import pytest

from burrowmq.config.schema import StoreConfig
from burrowmq.storage.names import QueueNames
from burrowmq.storage.queue.v2.index import entries_at
from burrowmq.storage.record import ENTRY_SIZE
from tests.support.bench.node import NodeBench
from tests.support.bench.world import publish

SIZE = 1000


def damage(bench: NodeBench, what: str, number: int) -> None:
    """Change an octet of the body, or of the index entry, of the queue's message of this number."""
    directory = QueueNames("/", "t").directory
    ending = ".qs" if what == "body" else ".qi"
    (path,) = [one for one in bench.disk.paths() if directory in one and one.endswith(ending)]
    if what == "body":
        size = bench.disk.file_size(path)
        record = size // 4
        bench.disk.damage(path, number * record + record - 100, b"?")
    else:
        entries = entries_at(bench.node.engine.options.segment_entry_count)
        bench.disk.damage(path, entries + number * ENTRY_SIZE + 20, b"?")


@pytest.mark.parametrize("what", ["body", "entry"])
@pytest.mark.parametrize("number", [0, 1, 3])
def test_what_is_damaged_and_dropped_is_set_aside(tmp_path: Path, what: str, number: int) -> None:
    with NodeBench(tmp_path / "data", store=StoreConfig(commit_log="off")) as bench:
        client = bench.connect(1)
        dead = bench.queue("dead")
        letters = {"x-dead-letter-exchange": "", "x-dead-letter-routing-key": "dead"}
        bench.queue("t", arguments={"x-queue-mode": "lazy", "x-max-length": 4, **letters})
        publish(client, "t", 4, size=SIZE, is_persistent=True)
        bench.perform(bench.node.engine.idle)
        damage(bench, what, number)
        publish(client, "t", 4, size=SIZE, is_persistent=True)
        bench.settle()
        bench.perform(bench.node.engine.idle)
        (found,) = bench.node.engine.quarantine.listing()
        assert (found[1].queue, found[1].seq) == ("t", number)
        queue = bench.node.vhosts["/"].queues["t"]
        assert (dead.ready_count, queue.ready_count, queue.drops.waiting_count) == (3, 4, 0)
        assert bench.node.engine.stats()["quarantined"] == 1
