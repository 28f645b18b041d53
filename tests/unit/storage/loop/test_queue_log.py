"""One queue's log, in front of a collector that only writes down what it is given."""

from __future__ import annotations

from burrowmq.storage.loop.queue_log import QueueLog
from burrowmq.storage.loop.staged_commit import (
    Ack,
    AckMany,
    Append,
    Command,
    Delete,
    ReadRequest,
    SetVersion,
)
from burrowmq.storage.names import QueueNames
from burrowmq.storage.types import (
    EMBEDDED_ONLY,
    LoadedMessage,
    RecoveredQueue,
)
from tests.simulation.store_world import make_message
from tests.support.stored_message import FakeMessage

Answer = tuple[list[LoadedMessage], int]


class Collector:
    """The engine as a log sees it: an epoch, and reads that are answered when the test says so."""

    def __init__(self) -> None:
        self.epoch = 1
        self.commands: list[Command] = []
        self.sizes: list[int] = []
        self.reads: list[ReadRequest] = []
        self.at_once: Answer | None = None
        self.forgotten: list[int] = []

    def collect(self, command: Command, size: int) -> int:
        self.commands.append(command)
        self.sizes.append(size)
        return self.epoch

    def submit_read(self, request: ReadRequest) -> Answer | None:
        self.reads.append(request)
        return self.at_once

    def forget(self, queue_id: int) -> None:
        self.forgotten.append(queue_id)

    def index_bytes(self, queue_id: int) -> int:
        return 1000 * queue_id


def log_with(recovered: RecoveredQueue | None = None) -> tuple[QueueLog, Collector]:
    collector = Collector()
    return QueueLog(collector, 7, QueueNames("/", "q"), True, recovered), collector


def append(log: QueueLog, first: int, count: int) -> list[FakeMessage]:
    messages = [make_message(first + at, 50, True) for at in range(count)]
    log.append(first, list(messages), None, 50 * count)
    return messages


def seqs(answer: Answer | None) -> list[int]:
    assert answer is not None
    return [seq for seq, _, _ in answer[0]]


def nobody(*_: object) -> None:
    raise AssertionError("answered at once")


def test_each_change_is_one_command() -> None:
    log, collector = log_with()
    messages = append(log, 0, 3)
    log.ack(0, 1, messages[:2])
    log.ack_many([2])
    log.set_version(1)
    log.delete()
    assert collector.commands == [
        Append(7, 0, messages, None),
        Ack(7, 0, 1, messages[:2]),
        AckMany(7, [2]),
        SetVersion(7, 1),
        Delete(7, 3),
    ]
    assert collector.sizes[0] >= 150, "bodies, and what a message weighs besides"
    assert collector.sizes[1:] == [0] * 4
    assert collector.forgotten == [7]


def test_it_goes_on_where_the_last_start_left_it() -> None:
    found = RecoveredQueue(QueueNames("/", "q"), next_seq=40, next_deliver_seq=12)
    log, collector = log_with(found)
    assert (log.next_seq, log.next_deliver_seq) == (40, 12)
    append(log, 40, 2)
    log.set_delivered(41)
    assert (log.next_seq, log.next_deliver_seq) == (42, 41)
    assert len(collector.commands) == 1, "what was delivered is asked for at a clean stop"


def test_what_is_staged_is_read_from_memory() -> None:
    log, collector = log_with()
    messages = append(log, 0, 3)
    collector.epoch = 2
    log.append(3, [make_message(3, 50, True)], [999], 50)
    answer = log.read(1, 10, 1 << 20, nobody)
    assert answer is not None
    assert answer[0][:2] == [(1, messages[1], 0), (2, messages[2], 0)]
    assert answer[0][2][2] == 999
    assert (answer[1], collector.reads) == (4, [])


def test_a_read_from_memory_keeps_to_both_limits_and_brings_one_at_least() -> None:
    log, _ = log_with()
    append(log, 0, 10)
    for max_count, max_bytes, count in ((3, 1 << 20, 3), (10, 120, 2), (10, 1, 1)):
        answer = log.read(2, max_count, max_bytes, nobody)
        assert seqs(answer) == list(range(2, 2 + count))
        assert answer is not None
        assert answer[1] == 2 + count


def test_what_is_acked_is_left_out_of_every_read() -> None:
    log, _ = log_with()
    append(log, 0, 10)
    log.ack(2, 3)
    log.ack_many([5, 8])
    log.ack(0, 0)
    assert seqs(log.read(0, 99, 1 << 20, nobody)) == [1, 4, 6, 7, 9]


def test_an_older_run_may_be_staged_after_a_younger_one() -> None:
    log, _ = log_with()
    append(log, 20, 2)
    append(log, 5, 2)
    assert seqs(log.read(5, 99, 1 << 20, nobody)) == [5, 6, 20, 21]


def test_a_read_of_what_is_on_disk_ends_where_memory_begins() -> None:
    log, collector = log_with(RecoveredQueue(QueueNames("/", "q"), next_seq=10))
    append(log, 10, 2)
    assert log.read(3, 50, 4096, nobody, wanted=EMBEDDED_ONLY) is None
    (request,) = collector.reads
    assert (request.queue_id, request.first_seq, request.limit_seq) == (7, 3, 10)
    assert (request.max_count, request.max_bytes, request.wanted) == (50, 4096, EMBEDDED_ONLY)


def test_an_answer_leaves_out_what_was_acked_while_it_was_on_its_way() -> None:
    log, collector = log_with(RecoveredQueue(QueueNames("/", "q"), next_seq=10))
    answers: list[Answer] = []
    assert log.read(0, 50, 4096, lambda *found: answers.append(found)) is None
    log.ack(1, 1)
    message = make_message(0, 50, True)
    collector.reads[0].on_read([(0, message, 0), (1, message, 0)], 2)
    assert answers == [([(0, message, 0)], 2)]
    collector.at_once = ([(1, message, 0), (2, message, 0)], 3)
    assert seqs(log.read(1, 50, 4096, nobody)) == [2]


def test_a_deleted_queue_gets_no_answer() -> None:
    log, collector = log_with(RecoveredQueue(QueueNames("/", "q"), next_seq=10))
    assert log.read(0, 50, 4096, nobody) is None
    log.delete()
    collector.reads[0].on_read([], 10)


def test_behind_the_last_message_there_is_nothing_to_ask_for() -> None:
    log, collector = log_with(RecoveredQueue(QueueNames("/", "q"), next_seq=10))
    assert log.read(10, 50, 4096, nobody) == ([], 10)
    assert collector.reads == []


def test_memory_is_given_back_when_the_commit_is_on_disk() -> None:
    log, collector = log_with()
    empty = log.memory_bytes
    assert empty > 7000, "the disk side's part counts"
    append(log, 0, 3)
    collector.epoch = 2
    append(log, 3, 3)
    log.ack(1, 1)
    full = log.memory_bytes
    log.release(1)
    half = log.memory_bytes
    assert empty < half < full
    assert log.read(0, 50, 4096, nobody) is None, "the first run is on disk only"
    assert collector.reads[0].limit_seq == 3
    assert seqs(log.read(3, 50, 4096, nobody)) == [3, 4, 5]
    log.release(2)
    assert log.memory_bytes == empty
    collector.at_once = ([(1, make_message(1, 50, True), 0)], 6)
    assert seqs(log.read(0, 50, 4096, nobody)) == [1], "the disk side knows of the ack by now"


def test_what_was_written_and_what_had_to_be_read_is_counted() -> None:
    log, collector = log_with()
    messages = append(log, 0, 3)
    found: list[Answer] = []
    at_once = log.read(0, 10, 1000, lambda *answer: found.append(answer))
    assert at_once is not None
    assert (log.written_count, log.loaded_count) == (3, 0)
    log.release(collector.epoch)
    assert log.read(0, 10, 1000, lambda *answer: found.append(answer)) is None
    collector.reads[0].on_read([(0, messages[0], 0), (1, messages[1], 0)], 2)
    assert (log.written_count, log.loaded_count) == (3, 2)
    collector.at_once = [(2, messages[2], 0)], 3
    assert log.read(2, 10, 1000, lambda *answer: found.append(answer)) == collector.at_once
    assert log.loaded_count == 3


def test_an_ack_is_known_until_its_own_commit_is_on_disk() -> None:
    log, collector = log_with(RecoveredQueue(QueueNames("/", "q"), next_seq=10))
    collector.epoch = 2
    log.ack(1, 1)
    log.release(1)
    collector.at_once = ([(seq, make_message(seq, 50, True), 0) for seq in (0, 1)], 2)
    assert seqs(log.read(0, 50, 4096, nobody)) == [0]
