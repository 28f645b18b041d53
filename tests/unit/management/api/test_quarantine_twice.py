"""A message in quarantine is put back once, whoever asks how often, and whether who asked has waited for it.

Covers: management/commands/quarantine.py
"""

from __future__ import annotations

import contextlib
import errno
import threading
from typing import Any

import pytest

from burrowmq.management.commands import quarantine
from burrowmq.storage.names import QueueNames
from tests.support.bench.world import publish
from tests.support.fake_ticket import QueueElsewhere
from tests.support.served import Served

PATH = "/api/burrowmq/quarantine"


def spoiled(served: Served) -> str:
    """Damage the body of the last of three persistent messages, and have it found; its name in quarantine."""
    disk = served.bench.disk
    served.bench.queue("t", arguments={"x-queue-mode": "lazy"})
    publish(served.bench.clients[0], "t", 3, size=1000, is_persistent=True)
    ours = QueueNames("/", "t").directory
    (path,) = [one for one in disk.paths() if ours in one and one.endswith(".qs")]
    disk.damage(path, disk.file_size(path) - 10, b"?")
    wanted = {"count": 3, "ackmode": "ack_requeue_true", "encoding": "auto"}
    served.api("POST", "/api/queues/%2F/t/get", wanted)
    served.bench.perform(served.node.engine.idle)
    (row,) = served.get(PATH)
    return str(row["name"])


def message_count(served: Served) -> int:
    return int(served.get("/api/queues/%2F/t")["messages"])


def test_two_who_ask_at_once_put_a_message_back_once(
    served_files: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = served_files
    name = spoiled(served)
    kept, found = served.node.engine.quarantine, list[int]()
    both_there, load = threading.Barrier(2), kept.load

    def load_together(name: str) -> Any:
        with contextlib.suppress(threading.BrokenBarrierError):
            both_there.wait(0.2)
        return load(name)

    monkeypatch.setattr(kept, "load", load_together)

    def ask() -> None:
        found.append(served.api("POST", f"{PATH}/{name}/restore").status)

    both = [threading.Thread(target=ask) for _ in range(2)]
    for one in both:
        one.start()
    for one in both:
        one.join()
    assert (message_count(served), served.get(PATH)) == (3, [])
    assert sorted(found) == [204, 400]


def test_who_asks_again_while_the_disk_has_not_answered_puts_nothing_back(
    served_files: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = served_files
    name = spoiled(served)
    monkeypatch.setattr(quarantine, "COMMIT_TIMEOUT_S", 0.05)
    scheduler, waiting = served.node.scheduler, []
    with monkeypatch.context() as held:
        held.setattr(scheduler, "when_committed", lambda *given: waiting.append(given))
        assert served.api("POST", f"{PATH}/{name}/restore").status == 503
        answer = served.api("POST", f"{PATH}/{name}/restore")
        assert (answer.status, "being put back" in answer.body["reason"]) == (400, True)
        assert [row["name"] for row in served.get(PATH)] == [name]
    ((epoch, callback),) = waiting
    served.bench.perform(lambda: scheduler.when_committed(epoch, callback))
    assert served.api("POST", f"{PATH}/{name}/restore").status in (400, 404)
    assert (message_count(served), _left(served)) == (3, [])


def test_a_queue_elsewhere_that_has_not_answered_is_given_it_once(
    served_files: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    served = served_files
    name = spoiled(served)
    monkeypatch.setattr(quarantine, "COMMIT_TIMEOUT_S", 0.05)
    elsewhere = QueueElsewhere()
    kind = type(served.node.vhosts["/"].queues["t"])
    monkeypatch.setattr(kind, "publish", lambda _, *given: elsewhere.publish(*given))
    assert served.api("POST", f"{PATH}/{name}/restore").status == 503
    assert served.api("POST", f"{PATH}/{name}/restore").status == 400
    (ticket,) = elsewhere.tickets
    served.bench.perform(lambda: ticket.finish(0))
    assert (
        served.api("POST", f"{PATH}/{name}/restore").status == 503
    )  # it was refused, and may be put back again
    served.bench.perform(elsewhere.tickets[1].finish)
    assert (len(elsewhere.tickets), _left(served)) == (2, [])


def test_one_that_is_back_and_cannot_be_removed_is_not_put_back_again(served_files: Served) -> None:
    served, disk = served_files, served_files.bench.disk
    name = spoiled(served)
    disk.fail("unlink", errno.EIO, path_part="quarantine")
    answer = served.api("POST", f"{PATH}/{name}/restore")
    assert (answer.status, "it is back in its queue, but" in answer.body["reason"]) == (400, True)
    assert served.api("POST", f"{PATH}/{name}/restore").status == 400
    assert (message_count(served), len(served.get(PATH))) == (3, 1)
    assert served.api("DELETE", f"{PATH}/{name}").status == 204
    assert (message_count(served), served.get(PATH)) == (3, [])


@pytest.mark.parametrize("is_restored", [True, False])
def test_one_that_may_come_back_is_told_of(served_files: Served, is_restored: bool) -> None:
    served, disk = served_files, served_files.bench.disk
    name = spoiled(served)
    disk.fail("fsync_dir", errno.EIO, path_part="quarantine")
    way = ("POST", f"{PATH}/{name}/restore") if is_restored else ("DELETE", f"{PATH}/{name}")
    answer = served.api(*way)
    assert (answer.status, "again after a power cut" in answer.body["reason"]) == (400, True)
    assert ("back in its queue" in answer.body["reason"]) is is_restored
    assert served.get(PATH) == []
    assert message_count(served) == (3 if is_restored else 2)


def _left(served: Served) -> list[str]:
    """What is in quarantine once what was put back has left it: a thread removes the files."""
    for _ in range(100):
        served.bench.perform(lambda: None)
        if not served.get(PATH):
            return []
    return [row["name"] for row in served.get(PATH)]
