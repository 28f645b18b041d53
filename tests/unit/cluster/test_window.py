"""Bursts: collected, one in flight, sent again until their outcome is known; each message stored once, in order."""

from __future__ import annotations

import json
from collections import deque
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from burrowmq.cluster.chunk import pack_chunk
from burrowmq.cluster.tickets import Ticket
from burrowmq.cluster.window import ChunkWindow, Window, WindowLimits
from burrowmq.cluster.wire import Delivered, Parser, decode_headers

INBOX = b"in.w.1"


class Stream:
    """What a stream does with what a window sends: as nats-server 2.15, without time."""

    def __init__(self, room: int = 1_000_000) -> None:
        self.stored: list[bytes] = []
        self.room = room
        self._ids: set[str] = set()
        self._batches: dict[str, list[tuple[bytes, dict[str, str]]]] = {}

    def take(self, octets: bytes) -> list[Delivered]:
        """The answers."""
        # What a client publishes is cut as what a server delivers, once there is a number behind the subject.
        answers = []
        for message in Parser().feed(as_delivered(octets)):
            assert isinstance(message, Delivered)
            answer = self._one(message)
            if answer is not None and message.reply:
                answers.append(Delivered(1, message.reply, b"", b"", json.dumps(answer).encode()))
        return answers

    def _one(self, message: Delivered) -> dict[str, object] | None:
        headers = decode_headers(message.headers).values
        batch_id = headers.get("Nats-Batch-Id")
        if batch_id is None:
            return self._store([(message.payload, headers)])
        number = int(headers["Nats-Batch-Sequence"])
        batch = (
            self._batches.setdefault(batch_id, []) if number == 1 else self._batches.get(batch_id)
        )
        if batch is None or len(batch) != number - 1:
            self._batches.pop(batch_id, None)
            return failed(10176, "atomic publish batch is incomplete")
        batch.append((message.payload, headers))
        if "Nats-Batch-Commit" not in headers:
            return None
        del self._batches[batch_id]
        return self._store(batch)

    def _store(self, batch: list[tuple[bytes, dict[str, str]]]) -> dict[str, object]:
        ids = {headers["Nats-Msg-Id"] for _, headers in batch if "Nats-Msg-Id" in headers}
        if ids & self._ids:
            if len(batch) == 1:
                return {"seq": len(self.stored), "duplicate": True}
            return failed(10201, "atomic publish batch contains duplicate message id")
        if len(self.stored) + len(batch) > self.room:
            return failed(10077, "maximum messages exceeded")
        self._ids |= ids
        self.stored += [payload for payload, _ in batch]
        return {"seq": len(self.stored)}


def failed(error: int, text: str) -> dict[str, object]:
    return {"error": {"code": 400, "err_code": error, "description": text}}


def as_delivered(octets: bytes) -> bytes:
    parts = []
    pos = 0
    while pos < len(octets):
        end = octets.index(b"\r\n", pos)
        fields = octets[pos:end].split()
        size = int(fields[-1])
        parts.append(
            b" ".join((b"HMSG", fields[1], b"1", *fields[2:])) + octets[end : end + size + 4]
        )
        pos = end + 4 + size
    return b"".join(parts)


def refuse(window: Window, octets: bytes, error: int, text: str, now_ms: float) -> None:
    reply = as_delivered(octets)
    last = [each for each in Parser().feed(reply) if isinstance(each, Delivered)][-1]
    window.answered(
        Delivered(1, last.reply, b"", b"", json.dumps(failed(error, text)).encode()), now_ms
    )


def opened(**limits: float) -> Window:
    return Window(b"q.1", b"name", INBOX, WindowLimits(**limits))  # type: ignore[arg-type]  # numbers of either kind


def payloads(first: int, count: int) -> list[bytes]:
    return [b"%d" % number for number in range(first, first + count)]


def exchange(window: Window, stream: Stream, now_ms: float) -> int:
    """Let the window send what it wants to, and hear the answers; how many bursts went."""
    bursts = 0
    while out := window.poll(now_ms):
        bursts += 1
        for answer in stream.take(out):
            window.answered(answer, now_ms)
    return bursts


# -- collecting -------------------------------------------------------------------------------------------------------


def test_few_messages_wait_two_milliseconds() -> None:
    window, stream = opened(), Stream()
    ticket = window.add(payloads(0, 3), 10.0)
    assert window.poll(11.9) == b""
    assert window.due_ms() == 12.0
    assert exchange(window, stream, 12.0) == 1
    assert stream.stored == payloads(0, 3)
    assert window.take_done() == [ticket]
    assert window.take_done() == []
    assert window.is_idle
    assert window.due_ms() is None


def test_many_messages_go_at_once() -> None:
    window, stream = opened(collect_count=128), Stream()
    window.add(payloads(0, 128), 10.0)
    assert window.due_ms() == 10.0
    assert exchange(window, stream, 10.0) == 1


def test_while_a_burst_is_in_flight_the_rest_collects() -> None:
    window, stream = opened(burst_count=200), Stream()
    first = window.add(payloads(0, 150), 0.0)
    out = window.poll(0.0)
    second = window.add(payloads(150, 300), 0.0)
    assert window.poll(900.0) == b""
    (answer,) = stream.take(out)
    window.answered(answer, 5.0)
    assert window.take_done() == [first]
    assert exchange(window, stream, 5.0) == 2  # 200, and the rest of it
    assert stream.stored == payloads(0, 450)
    assert window.take_done() == [second]


def test_a_burst_ends_with_its_octets() -> None:
    window, stream = opened(burst_bytes=100, collect_ms=0), Stream()
    window.add([bytes(60), bytes(30), bytes(60), bytes(500)], 0.0)
    assert exchange(window, stream, 0.0) == 3
    assert [len(each) for each in stream.stored] == [60, 30, 60, 500]


def test_a_window_says_when_it_is_full() -> None:
    window = opened(waiting_count=3, waiting_bytes=100)
    window.add(payloads(0, 2), 0.0)
    assert not window.is_full
    window.add([b"x"], 0.0)
    assert window.is_full
    assert window.waiting_count == 3
    window = opened(waiting_count=3, waiting_bytes=100)
    window.add([bytes(100)], 0.0)
    assert window.is_full


def test_a_window_counts_what_becomes_of_messages() -> None:
    window, stream = opened(burst_count=4), Stream(room=6)
    window.add(payloads(0, 4), 0.0)
    answers = stream.take(window.poll(2.0))
    window.add(payloads(4, 4), 2.0)
    assert (window.flight_count, window.waiting_count) == (4, 4)
    window.answered(answers[0], 12.0)
    assert (window.burst_count, window.burst_ms, window.stored_count) == (1, 10.0, 4)
    exchange(window, stream, 13.0)
    assert window.is_idle
    assert (window.stored_count, window.refused_count) == (6, 2)
    assert (window.flight_count, window.resent_count) == (0, 0)
    window.add(payloads(8, 3), 14.0)
    window.give_up("the queue is deleted")
    assert window.refused_count == 5


# -- outcomes that are not known --------------------------------------------------------------------------------------


def test_a_burst_whose_answer_was_lost_is_stored_once() -> None:
    window, stream = opened(), Stream()
    ticket = window.add(payloads(0, 3), 0.0)
    stream.take(window.poll(2.0))
    window.lost(3.0)
    assert exchange(window, stream, 4.0) == 1
    assert stream.stored == payloads(0, 3)
    assert (ticket.is_done, ticket.refused) == (True, [])
    assert window.resent_count == 1


def test_a_single_message_whose_answer_was_lost_is_stored_once() -> None:
    window, stream = opened(), Stream()
    ticket = window.add([b"0"], 0.0)
    stream.take(window.poll(2.0))
    assert window.poll(1_001.9) == b""
    assert exchange(window, stream, 1_002.0) == 1
    assert stream.stored == [b"0"]
    assert ticket.refused == []


def test_a_burst_that_was_cut_off_is_sent_whole() -> None:
    window, stream = opened(), Stream()
    window.add(payloads(0, 9), 0.0)
    out = window.poll(2.0)
    stream.take(out[: out.index(b"HPUB", len(out) // 2)])
    window.lost(3.0)
    exchange(window, stream, 3.0)
    assert stream.stored == payloads(0, 9)


def test_nobody_goes_before_a_burst_of_which_nothing_is_known() -> None:
    window, stream = opened(), Stream()
    window.add(payloads(0, 3), 0.0)
    window.poll(2.0)  # lost on the way
    window.add(payloads(3, 300), 2.0)
    assert window.poll(900.0) == b""
    window.lost(900.0)
    exchange(window, stream, 900.0)
    assert stream.stored == payloads(0, 303)


def test_an_answer_to_an_earlier_attempt_counts_if_it_says_stored() -> None:
    window, stream = opened(), Stream()
    ticket = window.add(payloads(0, 3), 0.0)
    (late,) = stream.take(window.poll(2.0))
    assert window.poll(5_002.0)
    window.answered(late, 5_003.0)
    assert ticket.is_done
    window.answered(late, 5_004.0)  # and says nothing of the next burst
    window.add(payloads(3, 3), 5_004.0)
    assert window.poll(5_006.0)
    window.answered(late, 5_007.0)
    assert window.take_done() == [ticket]


def test_of_an_earlier_attempt_that_was_refused_nothing_is_concluded() -> None:
    window, stream = opened(), Stream()
    ticket = window.add(payloads(0, 3), 0.0)
    first = window.poll(2.0)
    again = window.poll(5_002.0)
    refuse(window, first, 10174, "atomic publish is disabled", 5_003.0)
    assert not ticket.is_done
    for answer in stream.take(again):
        window.answered(answer, 5_004.0)
    assert ticket.refused == []


def test_a_cluster_without_a_leader_is_asked_again_and_less_often() -> None:
    window = opened()
    window.add(payloads(0, 3), 0.0)
    now_ms, times = 2.0, []
    while now_ms < 4_000:
        out = window.poll(now_ms)
        times.append(now_ms)
        refuse(window, out, 10009, "not the leader", now_ms)
        due_ms = window.due_ms()
        assert due_ms is not None
        now_ms = due_ms
    gaps = [after - before for before, after in pairwise(times)]
    assert gaps[:6] == [50.0, 100.0, 200.0, 400.0, 800.0, 800.0]


def test_a_stream_that_answers_slowly_is_given_more_time() -> None:
    window, stream = opened(), Stream()
    for took_ms, patience_ms in ((100.0, 1_000.0), (700.0, 2_800.0), (3_000.0, 5_000.0)):
        start_ms = 100_000.0
        window.add(payloads(0, 3), start_ms - 2.0)
        answers = stream.take(window.poll(start_ms))
        window.answered(answers[0], start_ms + took_ms)
        window.add(payloads(0, 3), start_ms + 5_000.0)
        assert window.poll(start_ms + 6_000.0)
        assert window.due_ms() == start_ms + 6_000.0 + patience_ms
        window.give_up("next")


def test_after_thirty_seconds_without_an_answer_messages_are_refused() -> None:
    window, stream = opened(), Stream()
    lost = window.add(payloads(0, 3), 0.0)
    window.poll(2.0)
    after = window.add(payloads(3, 3), 29_000.0)
    assert not window.expire(29_999.9)
    assert window.expire(30_000.0)
    assert lost.refused == [0, 1, 2]
    assert window.last_refusal == "no answer for 30 s"
    assert exchange(window, stream, 30_000.0) == 1
    assert after.refused == []


def test_what_waits_for_a_link_is_refused_when_each_has_waited_thirty_seconds() -> None:
    window = opened()
    first, second = window.add(payloads(0, 3), 0.0), window.add(payloads(3, 3), 10_000.0)
    assert not window.expire(29_999.9)
    assert window.expire(30_000.0)
    assert window.take_done() == [first]
    assert window.expire(40_000.0)
    assert window.take_done() == [second]
    assert (first.refused, second.refused) == ([0, 1, 2], [0, 1, 2])
    assert window.is_idle


def test_behind_a_burst_that_nobody_answers_nothing_waits_longer_than_itself() -> None:
    window = opened(burst_count=3)
    tickets = [window.add(payloads(3 * number, 3), 100.0 * number) for number in range(4)]
    done, now_ms = [], 0.0
    while now_ms < 31_000.0:
        window.poll(now_ms)
        done += [(ticket, now_ms) for ticket in window.take_done()]
        due_ms = window.due_ms()
        now_ms = max(now_ms + 1.0, 31_000.0 if due_ms is None else due_ms)
    assert [ticket for ticket, _ in done] == tickets
    assert all(at - ticket.came_ms <= 30_002.0 for ticket, at in done)


def test_who_is_decided_upon_slowly_is_waited_for_from_the_last_decision_on() -> None:
    window, stream = opened(burst_count=3), Stream()
    window.add(payloads(0, 3), 0.0)
    later = window.add(payloads(3, 3), 0.0)
    answers = stream.take(window.poll(2.0))
    window.answered(answers[0], 29_000.0)
    assert not window.is_stalled(29_001.0)
    assert not window.expire(58_999.9)  # the link is gone
    assert window.expire(59_000.0)
    assert later.refused == [0, 1, 2]


def test_the_last_attempt_ends_in_time() -> None:
    window = opened(attempt_ms=20_000, attempt_most_ms=20_000)
    window.add(payloads(0, 3), 0.0)
    window.poll(2.0)
    assert window.poll(20_002.0)
    assert window.due_ms() == 30_000.0
    assert window.poll(30_000.0) == b""
    assert window.is_idle


def test_who_stops_refuses_everything() -> None:
    window = opened()
    first = window.add(payloads(0, 3), 0.0)
    window.poll(2.0)
    second = window.add(payloads(3, 2), 3.0)
    window.give_up("the queue is gone")
    assert window.take_done() == [first, second]
    assert (first.refused, second.refused) == ([0, 1, 2], [0, 1])
    assert window.is_idle
    window.give_up("again")
    assert window.last_refusal == "the queue is gone"


# -- refusals ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("room", range(8))
def test_of_a_burst_what_has_room_is_stored(room: int) -> None:
    window, stream = opened(), Stream(room=room)
    ticket = window.add(payloads(0, 7), 0.0)
    exchange(window, stream, 2.0)
    assert stream.stored == payloads(0, room)
    assert ticket.refused == list(range(room, 7))
    assert window.is_idle


@pytest.mark.parametrize("room", [0, 1, 255, 300, 511])
def test_a_stream_that_is_full_is_not_asked_for_each_message(room: int) -> None:
    window, stream = opened(), Stream(room=room)
    ticket = window.add(payloads(0, 512), 0.0)
    assert exchange(window, stream, 2.0) <= 50
    assert ticket.refused == list(range(room, 512))


def test_a_refused_burst_does_not_take_later_ones_with_it() -> None:
    window, stream = opened(burst_count=4, collect_ms=0), Stream(room=1)
    first = window.add(payloads(0, 4), 0.0)
    out = window.poll(0.0)
    second = window.add(payloads(4, 2), 0.0)
    for answer in stream.take(out):
        window.answered(answer, 0.0)
    while not first.is_done:
        for answer in stream.take(window.poll(1.0)):
            window.answered(answer, 1.0)
    assert not second.is_done
    stream.room = 10
    exchange(window, stream, 1.0)
    assert second.refused == []
    assert stream.stored == [b"0", b"4", b"5"]


def test_a_burst_that_may_be_stored_is_refused_whole() -> None:
    window, stream = opened(), Stream(room=0)
    ticket = window.add(payloads(0, 4), 0.0)
    window.poll(2.0)  # still on its way
    window.lost(3.0)
    assert exchange(window, stream, 3.0) == 1
    assert ticket.refused == [0, 1, 2, 3]


def test_what_cannot_be_stored_is_refused_at_once() -> None:
    window = opened()
    ticket = window.add(payloads(0, 4), 0.0)
    refuse(window, window.poll(2.0), 10054, "message size exceeds maximum allowed", 3.0)
    assert ticket.refused == [0, 1, 2, 3]
    assert window.last_refusal == "message size exceeds maximum allowed"


def test_what_no_server_would_take_is_refused_and_never_sent() -> None:
    window, stream = opened(), Stream()
    window.payload_max = 1_000
    ticket = window.add([b"0", bytes(489), b"1", b"2", bytes(488)], 0.0)
    assert not ticket.is_done
    exchange(window, stream, 2.0)
    assert stream.stored == [b"0", b"1", b"2", bytes(488)]
    assert ticket.refused == [1]
    alone = window.add([bytes(1_000)], 3.0)
    assert window.take_done() == [ticket, alone]
    assert window.last_refusal == "a record of 1000 octets; the servers take 488"
    assert window.is_idle


def test_a_burst_of_which_servers_take_less_than_before_is_refused_and_not_sent_again() -> None:
    window, stream = opened(), Stream()
    window.payload_max = 10_000
    first = window.add([b"0", bytes(2_000)], 0.0)
    assert window.poll(2.0), "it is on its way, and may be stored"
    second = window.add([b"1", bytes(3_000), b"2"], 2.0)
    window.lost(3.0)
    window.limit(1_000)
    assert first.refused == [0, 1]
    assert window.trouble == "a record of 2000 octets; the servers take 488"
    assert second.refused == [1]
    exchange(window, stream, 5.0)
    assert stream.stored == [b"1", b"2"]
    assert second.is_done
    assert window.trouble == ""
    window.limit(10_000)
    third = window.add([bytes(3_000)], 6.0)
    exchange(window, stream, 8.0)
    assert third.refused == []


def test_what_servers_still_take_is_sent_again() -> None:
    window, stream = opened(), Stream()
    ticket = window.add(payloads(0, 3), 0.0)
    window.poll(2.0)
    window.lost(3.0)
    window.limit(1_000)
    exchange(window, stream, 3.0)
    assert (ticket.refused, len(stream.stored)) == ([], 3)


def test_a_chunk_is_no_larger_than_the_servers_take() -> None:
    window = ChunkWindow(b"s", b"w", INBOX)
    window.payload_max = 4_096
    window.add([bytes(1_000)] * 10, 0.0)
    sent = [message for message in Parser().feed(as_delivered(window.poll(2.0)))]
    assert len(sent) > 1
    for message in sent:
        assert isinstance(message, Delivered)
        assert len(message.headers) + len(message.payload) <= 4_096


def test_servers_without_room_are_asked_again_for_a_while() -> None:
    window, stream = opened(), Stream()
    ticket = window.add(payloads(0, 4), 0.0)
    now_ms = 2.0
    while not ticket.is_done:
        octets = window.poll(now_ms)
        if octets:
            refuse(window, octets, 10023, "insufficient resources", now_ms)
        now_ms += 10.0
    assert ticket.refused == [0, 1, 2, 3]
    assert 3_000.0 <= now_ms < 4_500.0
    assert window.trouble == "insufficient resources"
    second = window.add(payloads(4, 2), now_ms)
    refuse(window, window.poll(now_ms + 2.0), 10023, "insufficient resources", now_ms + 2.0)
    assert second.refused == [0, 1], "they have none still"
    third = window.add(payloads(6, 2), now_ms + 5.0)
    exchange(window, stream, now_ms + 7.0)
    assert (third.refused, window.trouble) == ([], "")
    fourth = window.add(payloads(8, 1), now_ms + 10.0)
    refuse(window, window.poll(now_ms + 12.0), 10023, "insufficient resources", now_ms + 12.0)
    assert not fourth.is_done, "another one may lead now, which has"


def test_a_streams_own_limit_is_no_trouble() -> None:
    window, stream = opened(), Stream(room=0)
    ticket = window.add(payloads(0, 1), 0.0)
    exchange(window, stream, 2.0)
    assert ticket.refused == [0]
    assert window.trouble == ""


def test_what_nobody_passes_on_is_refused_when_it_was_sent() -> None:
    window, stream = opened(), Stream()
    window.denied("no")
    first = window.add(payloads(0, 2), 0.0)
    window.denied("no")
    assert not first.is_done
    window.poll(2.0)
    second = window.add(payloads(2, 1), 2.0)
    window.denied("no")
    assert first.refused == [0, 1]
    assert window.last_refusal == "no"
    exchange(window, stream, 5.0)
    assert second.refused == []


def test_an_answer_to_nobody_is_passed_over() -> None:
    window = opened()
    window.add(payloads(0, 1), 0.0)
    window.poll(2.0)
    for subject in (INBOX, INBOX + b".1", INBOX + b".1.2.3", INBOX + b".x.y", INBOX + b".7.1"):
        window.answered(Delivered(1, subject, b"", b"", b'{"seq": 1}'), 3.0)
    assert window.take_done() == []


# -- whatever happens -------------------------------------------------------------------------------------------------


@settings(max_examples=80)
@given(st.data())
def test_whatever_is_lost_each_message_is_stored_once_and_in_order(data: st.DataObject) -> None:
    """Requests and answers are lost, cut off, late; the stream has room, or not."""
    window = opened(burst_count=8, collect_count=4)
    stream = Stream(room=data.draw(st.sampled_from([1_000, 1_000, 12])))
    on_their_way: deque[bytes] = deque()  # that a server has not read yet
    late: list[Delivered] = []
    numbers: dict[Ticket, range] = {}
    sent = 0
    now_ms = 0.0
    for _ in range(data.draw(st.integers(1, 25))):
        step = data.draw(st.sampled_from(["add", "poll", "lose", "cut", "late", "read", "wait"]))
        if step == "add":
            count = data.draw(st.integers(1, 12))
            numbers[window.add(payloads(sent, count), now_ms)] = range(sent, sent + count)
            sent += count
        elif step == "wait":
            now_ms += data.draw(st.sampled_from([1.0, 100.0, 5_000.0]))
        elif step == "late" and late:
            window.answered(late.pop(0), now_ms)
        elif step == "read" and on_their_way:
            late += stream.take(on_their_way.popleft())
        out = window.poll(now_ms)
        if not out:
            continue
        if step == "lose":
            on_their_way.append(out)
            window.lost(now_ms)
        elif step == "cut":
            places = [pos for pos in range(len(out)) if out.startswith(b"HPUB", pos)]
            stream.take(out[: data.draw(st.sampled_from(places))])
            window.lost(now_ms)
        else:
            late += stream.take(out)
    for _ in range(100):
        now_ms += 100.0
        exchange(window, stream, now_ms)
    while on_their_way:
        stream.take(on_their_way.popleft())

    assert window.is_idle
    assert window.take_done() == list(numbers)
    refused = {numbers[each][place] for each in numbers for place in each.refused}
    stored = [int(each) for each in stream.stored]
    assert len(set(stored)) == len(stored)
    assert set(range(sent)) - refused <= set(stored)
    kept = [number for number in stored if number not in refused]
    assert kept == sorted(kept)


def test_a_window_of_chunks_sends_few_for_many_and_says_how_many_each_has() -> None:
    window = ChunkWindow(b"S_x", b"w", INBOX)
    tickets = [window.add([b"%d" % number, b"again"], 0.0) for number in range(40)]
    octets = window.poll(10.0)
    (sent,) = Parser().feed(as_delivered(octets))
    assert isinstance(sent, Delivered)
    assert sent.subject == b"S_x.80"
    records = [each for number in range(40) for each in (b"%d" % number, b"again")]
    assert sent.payload == pack_chunk(records)
    window.answered(Stream().take(octets)[0], 11.0)
    assert all(ticket.is_done and not ticket.refused for ticket in tickets)
    assert (window.stored_count, window.burst_count) == (80, 1)


def test_chunks_of_a_burst_are_one_batch() -> None:
    window = ChunkWindow(b"S_x", b"w", INBOX)
    window.chunk_bytes = 50
    ticket = window.add([b"x" * 10] * 7, 0.0)
    stream = Stream()
    octets = window.poll(10.0)
    assert [each.subject for each in Parser().feed(as_delivered(octets))] == [
        b"S_x.3", b"S_x.3", b"S_x.1"
    ]  # fmt: skip
    (answer,) = stream.take(octets)
    window.answered(answer, 11.0)
    assert ticket.is_done
    assert len(stream.stored) == 3
