"""Kept queues (`queue_undefined`) are declared again, on the loop, while the disk thread looks at all of them.

Covers: storage/disk/writer.py, storage/disk/refused_queues.py, storage/disk/rescue.py, storage/directory/context.py
"""

from __future__ import annotations

import sys
import threading
from collections.abc import Callable

import pytest

from burrowmq.storage.directory.context import StoreContext
from burrowmq.storage.disk.rescue import paths_by_queue
from burrowmq.storage.disk.writer import Writer
from burrowmq.storage.engine import Engine
from burrowmq.storage.loop.staged_commit import StagedCommit
from burrowmq.storage.queue.disk import QueueDisk
from tests.support.engine_on_disk import commit, engine_on, publish, unopened
from tests.support.sim_filesystem import SimFileSystem

COUNT = 1500


def withhold(writer: Writer) -> None:
    refused = writer.refused
    refused.commit = StagedCommit(1)
    refused.commit.refused.add(0)
    refused.withhold()


# What the disk thread does: the cut of a backup, a start's first commit, a virtual host's end, a rescue, a directory's
# sync that failed, the acks of a commit of which something was refused.
LOOKS: dict[str, Callable[[Writer], object]] = {
    "backup": lambda writer: writer.durable_queues(),
    "start": lambda writer: writer.context.take_unclaimed(
        {
            (queue.vhost, at.rpartition("/")[2])
            for at, (queue, _) in dict(writer.context.recovered).items()
        }
    ),
    "vhost": lambda writer: writer.context.delete_vhost("other"),
    "rescue": lambda writer: paths_by_queue(writer.queues(), ["/data/none"]),
    "directory": lambda writer: writer.refused.is_own("/data/none"),
    "directories": lambda writer: writer.refused.refuse_directories({"/data/none"}, "no"),
    "acks": withhold,
}


def kept(disk: SimFileSystem, count: int = COUNT) -> Engine:
    engine = engine_on(disk)
    for number in range(count):
        publish(engine.open_queue("/", f"q{number}", durable=True), 0, 1)
    commit(engine)
    engine.close()
    engine = unopened(disk)
    engine.recover()
    assert len(engine.discard_unclaimed()) == count
    return engine


@pytest.mark.parametrize("look", LOOKS)
def test_declaring_them_again_ends_no_store(look: str) -> None:
    disk = SimFileSystem()
    disk.mkdir("/data")
    engine = kept(disk)
    writer = engine._writer
    assert writer is not None
    failures: list[Exception] = []
    is_over = threading.Event()

    def look_at_all() -> None:
        while not is_over.is_set() and not failures:
            try:
                LOOKS[look](writer)
            except Exception as error:
                failures.append(error)

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-5)  # many moments in one run; the server's is 0.001
    thread = threading.Thread(target=look_at_all)
    thread.start()
    try:
        for number in range(COUNT):
            engine.open_queue("/", f"q{number}", durable=True)
    finally:
        is_over.set()
        thread.join()
        sys.setswitchinterval(before)
    assert not failures, failures


@pytest.mark.parametrize(
    ("owner", "name"),
    [(QueueDisk, "name_again"), (StoreContext, "note_opened")],
)
def test_a_backup_has_a_queue_that_is_just_being_declared_again(
    monkeypatch: pytest.MonkeyPatch, owner: type, name: str
) -> None:
    """The cut is taken on the disk thread, between any two lines of the loop's."""
    disk = SimFileSystem()
    disk.mkdir("/data")
    engine = kept(disk, 2)
    writer = engine._writer
    assert writer is not None
    cuts: list[list[str]] = []
    original = getattr(owner, name)

    def cut() -> None:
        cuts.append(sorted(one.directory for one in writer.durable_queues()))

    def cut_around(*arguments: object) -> None:
        cut()
        original(*arguments)
        cut()

    monkeypatch.setattr(owner, name, cut_around)
    engine.open_queue("/", "q0", durable=True)
    cut()
    assert [len(found) for found in cuts] == [2, 2, 2]
