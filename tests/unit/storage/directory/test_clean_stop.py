"""What a clean stop writes down and the next start believes; where it does not fit, the files are looked at."""

from __future__ import annotations

import errno
import json
import random

import pytest

from burrowmq.storage.directory.terms import take_terms, write_terms
from burrowmq.storage.errors import WriteFailed
from burrowmq.storage.loop.staged_commit import Append, Open
from burrowmq.storage.names import QueueNames
from tests.support.disk_side import LARGE, SMALL, DiskSide, messages

Q = QueueNames("/", "q")
OPTIONS = {"segment_entry_count": 16, "journal_run_bytes": 500}


def stopped(*, version: int = 2) -> DiskSide:
    """40 messages in three index segments, some large, some acked; then a clean stop."""
    side = DiskSide(**OPTIONS)
    side.open(version=version)
    for first in range(0, 40, 4):
        side.append(first, 4, LARGE if first // 4 % 2 else SMALL)
    side.ack(0, 20)
    side.ack(30, 30)
    side.jobs.close({1: (40, 25)})
    return side


def live() -> list[int]:
    return [seq for seq in range(21, 40) if seq != 30]


def started(side: DiskSide) -> DiskSide:
    again = DiskSide(side.filesystem, **OPTIONS)
    if Q in again.report.queues:
        again.writer.bind(1, Q)
        again.commit(Open(1, Q, True, again.report.queues[Q].version))
    return again


@pytest.mark.parametrize("version", [1, 2])
def test_the_next_start_has_it_all_and_looks_at_no_message(version: int) -> None:
    side = stopped(version=version)
    before = side.filesystem.counters.calls["pread"]
    again = DiskSide(side.filesystem, **OPTIONS)
    assert again.report.clean
    reads = side.filesystem.counters.calls["pread"] - before
    assert reads <= 6, (
        "STORE.json, the terms and their mark; the header, trailer and seal of a segment"
    )
    found = again.report.queues[Q]
    assert (found.count, found.persistent_count) == (18, 18)
    assert (found.next_seq, found.next_deliver_seq, found.version) == (40, 25, version)
    assert found.bytes == sum(LARGE if seq // 4 % 2 else SMALL for seq in live())
    again.writer.bind(1, Q)
    assert again.read() == live()


@pytest.mark.parametrize("version", [1, 2])
def test_a_queue_goes_on_where_it_was(version: int) -> None:
    again = started(stopped(version=version))
    again.append(40, 3)
    assert again.read() == [*live(), 40, 41, 42]
    killed = DiskSide(again.filesystem.process_killed(), **OPTIONS)
    assert killed.report.queues[Q].count == 21


def test_transient_messages_end_with_the_stop() -> None:
    side = DiskSide(**OPTIONS)
    side.open()
    mixed = messages(0, 2, LARGE)
    mixed[1].flags = 0
    side.commit(Append(1, 0, list(mixed), None))
    side.jobs.close({1: (2, 0)})
    assert started(side).read() == [0]


def test_a_queue_that_ends_with_the_stop_gives_its_references_back() -> None:
    side = DiskSide(**OPTIONS)
    side.open()
    side.commit(Open(2, QueueNames("/", "transient"), False, 2))
    made = side.append(0, 2, LARGE)
    side.commit(Append(2, 0, [made[0], *messages(2, 1, LARGE)], None))
    handles = [each.handle for each in made]
    assert side.vhost().persistent.refs_of(handles[0]) == 2
    side.jobs.close({1: (2, 0), 2: (2, 0)})
    again = started(side)
    assert again.report.clean
    assert [again.vhost().persistent.refs_of(handle) for handle in handles] == [1, 1]
    assert again.vhost().persistent.stats()["live_messages"] == 2


@pytest.mark.parametrize("version", [1, 2])
def test_what_the_terms_speak_of_is_durable_before_them(version: int) -> None:
    side = DiskSide(**OPTIONS)
    side.open(version=version)
    for first, size in ((0, SMALL), (4, LARGE)):
        side.commit(Append(1, first, list(messages(first, 4, size)), None), sync=False)
    side.jobs.close({1: (8, 0)})
    for seed in range(12):
        again = DiskSide(side.filesystem.cut(random.Random(seed)), **OPTIONS)
        assert again.report.clean
        again.writer.bind(1, Q)
        assert again.read() == list(range(8))


def test_a_name_file_that_a_stop_makes_anew_is_durable() -> None:
    side = stopped()
    (path,) = side.paths(".queue_name")
    named = side.filesystem.content(path)
    side.filesystem.unlink(path)
    side.filesystem.fsync_dir(path.rpartition("/")[0])
    again = started(side)
    again.jobs.close({1: (40, 25)})
    for seed in range(12):
        assert again.filesystem.cut(random.Random(seed)).content(path) == named


def test_acks_after_a_stop_are_younger_than_those_before() -> None:
    side = DiskSide(**OPTIONS)
    side.open()
    side.append(0, 8)
    for seq in range(3):
        side.ack(seq, seq)
        side.jobs.idle()
    side.jobs.close({1: (8, 8)})
    again = started(side)
    again.ack(3, 3)
    again.jobs.idle()
    killed = DiskSide(again.filesystem.process_killed(), **OPTIONS)
    killed.take_up()
    assert killed.read() == [4, 5, 6, 7]


@pytest.mark.parametrize("times", [1, 2])
def test_a_journal_that_cannot_be_removed_once_does_not_make_a_stop_unclean(times: int) -> None:
    side = DiskSide(**OPTIONS)
    side.open(version=1)
    side.append(0, 4)
    side.ack(0, 1)
    side.filesystem.fail("unlink", errno.EIO, times=times, path_part=".jif")
    if times > 1:
        with pytest.raises(WriteFailed):
            side.jobs.close({1: (4, 0)})
    else:
        side.jobs.close({1: (4, 0)})
    again = started(side)
    assert again.report.clean == (times == 1)
    assert again.read() == [2, 3]


def test_no_journal_has_the_number_of_one_before_the_stop() -> None:
    """Blocks that came from it say so, and would be taken for durable ones of the new one."""
    side = DiskSide(**OPTIONS)
    side.open(version=1)
    side.append(0, 2)
    (before,) = side.paths(".jif")
    side.jobs.close({1: (2, 0)})
    again = started(side)
    assert not again.paths(".jif")
    again.append(2, 2)
    (after,) = again.paths(".jif")
    assert _number(after) > _number(before)


def _number(path: str) -> int:
    return int(path.rpartition("/")[2].partition(".")[0])


def test_recovered_queues_that_nobody_opened_are_kept() -> None:
    side = DiskSide(stopped().filesystem, **OPTIONS)
    side.jobs.close({})
    again = started(side)
    assert again.report.clean
    assert again.report.queues[Q].next_deliver_seq == 25
    assert again.read() == live()


@pytest.mark.parametrize("ending", ["2.qi", "2.qs", ".seg"])
def test_a_file_that_went_since_is_looked_for_and_the_rest_comes_back(ending: str) -> None:
    side = stopped()
    side.filesystem.unlink(side.paths(ending)[0])
    again = started(side)
    assert not again.report.clean
    assert set(again.read()) < set(live())
    if ending != ".seg":
        assert any(reason == "missing since the clean stop" for _, _, reason in again.observer.lost)


def test_a_missing_name_file_is_written_again() -> None:
    side = stopped()
    side.filesystem.unlink(side.paths(".queue_name")[0])
    again = started(side)
    assert again.report.clean
    again.append(40, 1)
    assert again.paths(".queue_name")


def test_stops_and_starts_beside_a_queue_without_a_name_leave_its_file_alone() -> None:
    side = DiskSide(**OPTIONS)
    side.open()
    side.append(0, 40)
    path = f"{side.context.queue_dir(Q, durable=True)}/.queue_name"
    side.filesystem.unlink(path)
    side.filesystem.create(path).pwrite(b"QUEUE: ", 0)
    for _ in range(3):
        side = DiskSide(side.filesystem, **OPTIONS)
        assert (side.report.unnamed_count, side.report.lost) == (1, 0)
        side.jobs.close({})
        assert side.filesystem.read_file(path) == b"QUEUE: "
    side = DiskSide(side.filesystem, **OPTIONS)
    side.take_up()
    assert side.read() == list(range(40))
    side.jobs.close({1: (40, 0)})
    assert side.filesystem.read_file(path).startswith(b'VHOST: "/"\nQUEUE: "q"\n')
    assert started(side).report.clean


def test_terms_of_a_release_that_knew_version_2_only_are_not_believed() -> None:
    side = stopped()
    parts = take_terms(side.filesystem, "/data")
    assert parts is not None
    terms = json.loads(parts[0])
    del terms["version_1"]
    write_terms(side.filesystem, "/data", [json.dumps(terms).encode(), *parts[1:]])
    again = started(side)
    assert not again.report.clean
    assert again.read() == live()


@pytest.mark.parametrize("expiry", [0, 5_000])
def test_whether_any_message_has_a_deadline_is_known(expiry: int) -> None:
    side = DiskSide(**OPTIONS)
    side.open()
    side.commit(Append(1, 0, list(messages(0, 1)), [expiry]))
    side.jobs.close({1: (1, 0)})
    again = DiskSide(side.filesystem, **OPTIONS)
    assert (again.report.clean, again.report.queues[Q].may_expire) == (True, bool(expiry))


def test_terms_that_do_not_say_whether_any_has_a_deadline_are_believed() -> None:
    side = stopped()
    parts = take_terms(side.filesystem, "/data")
    assert parts is not None
    terms = json.loads(parts[0])
    for row in terms["queues"]:
        assert row.pop() is False
    write_terms(side.filesystem, "/data", [json.dumps(terms).encode(), *parts[1:]])
    again = DiskSide(side.filesystem, **OPTIONS)
    assert (again.report.clean, again.report.queues[Q].may_expire) == (True, True)


def test_references_that_could_not_be_given_back_leave_no_terms() -> None:
    side = DiskSide(**OPTIONS)
    side.open()
    side.append(0, 3, LARGE)
    side.context.note_miscounted()
    side.jobs.close({1: (3, 0)})
    assert not side.filesystem.exists("/data/CLEAN")
    again = started(side)
    assert (again.report.clean, again.read()) == (False, [0, 1, 2])


def test_a_queue_whose_name_nobody_knows_is_not_taken_for_one_that_is_gone() -> None:
    """Its name file is damaged, and nobody has opened it: only its directory tells what it may be called."""
    side = DiskSide(**OPTIONS)
    side.open()
    side.append(0, 3, SMALL)
    path = f"{side.writer.queues()[1].directory}/.queue_name"
    disk = side.filesystem.process_killed()
    disk.damage(path, 10, b"?")
    kept = disk.content(path)
    again = DiskSide(disk, **OPTIONS)
    again.jobs.close({})
    assert again.filesystem.content(path) == kept, "a name that is none is written to no file"
    last = DiskSide(again.filesystem.process_killed(), **OPTIONS)
    assert last.report.clean
    assert not last.observer.events["record_lost"]
    last.take_up()
    assert last.read() == [0, 1, 2]
