"""A start that brings definitions by a file (`load_definitions`), with rules for queues that are there already."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from pika import spec

from burrowmq.broker.definitions.document import ImportRefused
from burrowmq.config.store import StoreConfig
from tests.support.bench.durable import two_of_priorities
from tests.support.bench.node import NodeBench
from tests.support.bench.world import publish

ENOUGH = {"vhost": "/", "name": "q", "arguments": {"x-max-priority": 5}}


@pytest.mark.parametrize("rules", [{"max-length": 2}, {"queue-mode": "default", "max-length": 2}])
@pytest.mark.parametrize("has_disk_thread", [False, True])
@pytest.mark.parametrize("count", [4, 40])
def test_a_policy_of_the_file_that_makes_a_stored_queue_shorter_does_so(
    tmp_path: Path, rules: dict[str, object], has_disk_thread: bool, count: int
) -> None:
    file = tmp_path / "definitions.json"
    policy = {"vhost": "/", "name": "p", "pattern": ".*", "apply-to": "queues", "priority": 0}
    file.write_text(json.dumps({"policies": [{**policy, "definition": rules}]}))
    with NodeBench(tmp_path, has_disk_thread=has_disk_thread) as bench:
        client = bench.connect(1)
        client.call(1, spec.Queue.Declare(queue="q", durable=True))
        publish(client, "q", count, size=1, is_persistent=True)
        bench.settle()
        bench.lose_clients()
        bench.loop.run_until_complete(bench.host.stop_application())
        process = bench.host.process
        config = replace(process.config, load_definitions=str(file))
        bench.host.process = replace(process, config=config)
        bench.loop.run_until_complete(bench.host.start_application())
        bench.settle()
        queue = bench.node.vhosts["/"].queues["q"]
        assert queue.ready_count == 2


def test_a_queue_of_the_file_that_could_not_hold_what_is_kept_of_it_ends_the_start_and_nothing_else(
    tmp_path: Path,
) -> None:
    """It tells what the file has to say; while the stored definition could be used, the file's was passed over."""
    file, row = tmp_path / "definitions.json", ("queue", '["/","q"]')
    file.write_text(json.dumps({"queues": [{"vhost": "/", "name": "q"}]}))
    with NodeBench(tmp_path, store=StoreConfig(commit_log="off")) as bench:
        two_of_priorities(bench)
        bench.lose_clients()
        bench.loop.run_until_complete(bench.host.stop_application())
        bench.store._texts[row] = bench.store._texts[row].replace("auto_delete", "auto_delate")
        process = bench.host.process
        config = replace(process.config, load_definitions=str(file))
        bench.host.process = replace(process, config=config)
        with pytest.raises(ImportRefused, match="declare it with x-max-priority 5 or more") as told:
            bench.loop.run_until_complete(bench.host.start_application())
        assert str(file) in str(told.value)
        file.write_text(json.dumps({"queues": [ENOUGH]}))
        bench.loop.run_until_complete(bench.host.start_application())
        assert bench.node.vhosts["/"].queues["q"].ready_count == 2
