"""What is promised of messages of queues that are gone meanwhile, and of those that a start has kept.

Covers: broker/vhost/vhost.py
Covers: broker/vhost/queue_checks.py
Covers: storage/engine.py
Covers: storage/loop/recovered_queues.py
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from pika import spec

from burrowmq.broker.queue.rules.settings import QueueDeclaration
from burrowmq.broker.vhost import queue_checks
from burrowmq.config.store import StoreConfig
from burrowmq.protocol.errors import PreconditionFailed
from burrowmq.storage.loop.staged_commit import StagedCommit
from tests.support.bench.durable import (
    TO_BAD,
    connect,
    declare,
    names,
    published,
    refuse,
    started_again,
    two_of_priorities,
)
from tests.support.bench.node import NodeBench
from tests.support.black_box import eventually
from tests.support.wire_client import method_bytes


@pytest.mark.parametrize("key", ["bad", "source"])
def test_what_the_disk_refused_of_a_queue_is_not_confirmed_while_its_deletion_is_not_durable(
    bench: NodeBench, key: str
) -> None:
    client, other = connect(bench), connect(bench)
    declare(client, "bad")
    declare(client, "source", arguments=TO_BAD)
    client.call(1, spec.Confirm.Select())
    refuse(bench)
    backend = bench.node.engine._backend
    assert backend is not None
    submit, held = backend.submit, list[StagedCommit]()
    backend.submit = held.append  # type: ignore[method-assign]
    client.send(published(key))
    other.send(method_bytes(1, spec.Queue.Delete(queue="bad")))
    bench.perform(lambda: submit(held.pop(0)))
    assert len(held) == 1, "the deletion is under way"
    assert names(other) == []
    assert names(client) == ["Basic.Nack"]
    backend.submit = submit  # type: ignore[method-assign]
    bench.perform(lambda: submit(held.pop(0)))
    assert names(other) == ["Queue.DeleteOk"]


@pytest.mark.parametrize("is_unusable", [False, True])
@pytest.mark.parametrize("more", [{}, {"x-max-priority": 3}, {"x-queue-mode": "lazy"}])
def test_what_has_expired_in_a_queue_declared_again_goes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_unusable: bool, more: dict[str, Any]
) -> None:
    arguments = {"x-message-ttl": 20, **more}
    with NodeBench(tmp_path, store=StoreConfig(commit_log="off")) as first:
        client = connect(first)
        declare(client, "q", arguments=arguments)
        client.call(1, spec.Confirm.Select())
        client.send(published("q"), published("q"))
        assert names(client) == ["Basic.Ack"]
    options = {"is_unusable": is_unusable, "has_disk_thread": True}
    with started_again(first, tmp_path, monkeypatch, **options) as bench:
        declare(connect(bench), "q", arguments=arguments)
        queue = bench.node.vhosts["/"].queues["q"]

        def is_empty() -> bool:
            bench.settle()
            return queue.ready_count == 0

        eventually(is_empty)


@pytest.mark.parametrize("priority", [None, 4])
def test_what_a_start_has_kept_of_a_priority_queue_is_not_lost_to_one_with_less(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, priority: int | None
) -> None:
    with NodeBench(tmp_path, store=StoreConfig(commit_log="off")) as first:
        two_of_priorities(first)
    with started_again(first, tmp_path, monkeypatch, is_unusable=True) as second:
        arguments = {} if priority is None else {"x-max-priority": priority}
        declaration = spec.Queue.Declare(queue="q", durable=True, arguments=arguments)
        ((_, refused),) = connect(second).call(1, declaration)
        assert refused.reply_code == 406
        assert refused.reply_text == (
            "PRECONDITION_FAILED - cannot declare queue 'q' in vhost '/': messages of priorities up to 5 are kept of it,"
            " whose definition could not be used; declare it with x-max-priority 5 or more"
        )
        declare(connect(second), "q", durable=False)
        assert not second.node.vhosts["/"].queues["q"].ready_count, "it has nothing to do with that"
    with started_again(second, tmp_path, monkeypatch) as third:
        declare(connect(third), "q", arguments={"x-max-priority": 7})
        assert third.node.vhosts["/"].queues["q"].ready_count == 2
    with started_again(third, tmp_path, monkeypatch) as fourth:
        assert fourth.node.vhosts["/"].queues["q"].ready_count == 2


def test_a_cluster_queue_does_not_take_the_name_of_a_classic_one_that_a_start_has_kept() -> None:
    declaration = QueueDeclaration(name="q", durable=True, arguments={"x-queue-type": "quorum"})
    where: dict[str, Any] = {"count": 0, "limit": -1, "has_cluster": True}
    queue_checks.check_new(declaration, "/", kept=-1, **where)
    with pytest.raises(PreconditionFailed, match="declare that one first"):
        queue_checks.check_new(declaration, "/", kept=0, **where)
