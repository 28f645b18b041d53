"""Confirms of what queues elsewhere keep: each message answered once, never too early, and nobody held up by another."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from burrowmq.broker.channel.confirms import Confirms
from burrowmq.protocol.codec import encode_ack, encode_nack
from tests.support.fake_ticket import FakeTicket


class Publisher:
    """What a client concludes of the frames that it is sent."""

    def __init__(self) -> None:
        self.outstanding: set[int] = set()
        self.answers: dict[int, bool] = {}

    def read(self, frames: bytes) -> None:
        while frames:
            length = int.from_bytes(frames[3:7])
            body, frames = frames[7 : 7 + length], frames[8 + length :]
            is_ack = {80: True, 120: False}[int.from_bytes(body[2:4])]
            tag, multiple = int.from_bytes(body[4:12]), bool(body[12] & 1)
            named = {each for each in self.outstanding if each <= tag} if multiple else {tag}
            assert named, "a frame says something"
            assert tag in self.outstanding, "and of a message that was not answered"
            for each in named & self.outstanding:
                self.outstanding.remove(each)
                self.answers[each] = is_ack


def test_a_range_with_a_ticket_waits_for_it_and_the_others_go_singly():
    confirms, told = Confirms(), []
    ticket = FakeTicket(2)
    confirms.add(1, 0)
    confirms.add_held([(ticket, None)], 2, 0, (), (), lambda: told.append(1))
    confirms.add(2, 7)
    assert confirms.emit(1, 6) == (encode_ack(1, 1, False), 1)
    assert confirms.is_pending  # what is behind it waits for a commit
    assert confirms.emit(1, 7) == (encode_ack(1, 4, False) + encode_ack(1, 5, False), 2)
    assert not confirms.is_pending
    assert confirms.unconfirmed_count == 2
    ticket.finish()
    assert told == [1]
    assert confirms.emit(1, 7) == (encode_ack(1, 3, True), 2)
    confirms.add(3, 0)
    assert confirms.emit(1, 7) == (encode_ack(1, 8, True), 3)


def test_refused_places_are_nacked_and_all_tickets_are_waited_for():
    confirms, told = Confirms(), []
    whole, part = FakeTicket(3), FakeTicket(1)
    confirms.add_held([(whole, None), (part, [2])], 3, 0, (), (), lambda: told.append(1))
    whole.finish(0)
    assert told == [1]
    assert confirms.emit(1, 0) == (encode_nack(1, 1, True, True) + encode_ack(1, 2, False), 2)
    part.finish(0)
    assert told == [1, 1]
    assert confirms.emit(1, 0) == (encode_nack(1, 3, True, True), 1)


def test_one_that_is_done_already_is_not_waited_for():
    confirms, told = Confirms(), []
    ticket = FakeTicket(1, is_done=True, refused=[0])
    confirms.add_held([(ticket, None)], 1, 0, (), (), lambda: told.append(1))
    assert told == [1]
    assert confirms.emit(1, 0) == (encode_nack(1, 1, True, True), 1)


def test_a_refused_store_ends_the_waiting_and_a_late_answer_says_nothing():
    confirms, told = Confirms(), []
    ticket = FakeTicket(1)
    confirms.add_held([(ticket, None)], 1, 0, (), (), lambda: told.append(1))
    assert confirms.refuse_all(1) == (encode_nack(1, 1, True, True), 1)
    ticket.finish(0)
    assert told == []
    confirms.add(1, 0)
    assert confirms.emit(1, 0) == (encode_ack(1, 2, False), 1)


def test_what_the_disk_refuses_of_a_range_with_a_ticket_is_nacked():
    confirms = Confirms()
    ticket = FakeTicket(1)
    confirms.add_held([(ticket, None)], 1, 3, ("a", "b"), (), lambda: None)
    assert confirms.waits_for(3)
    assert not confirms.refuse(3, lambda queues: "a" in queues), (
        "it says so when the ticket is done"
    )
    ticket.finish()
    assert confirms.is_pending
    assert confirms.emit(1, 3) == (encode_nack(1, 1, True, True), 1)


STEPS = st.lists(
    st.one_of(
        st.tuples(st.just("plain"), st.integers(1, 3), st.booleans()),
        st.tuples(st.just("refused"), st.integers(1, 3), st.booleans()),
        st.tuples(st.just("held"), st.integers(1, 3), st.booleans(), st.integers(1, 2)),
        st.tuples(st.just("mixed"), st.integers(2, 4), st.booleans(), st.integers(0, 1)),
        st.tuples(st.just("finish"), st.integers(0, 9), st.booleans()),
        st.tuples(st.just("commit")),
        st.tuples(st.just("emit")),
    ),
    max_size=40,
)


@given(steps=STEPS)
@settings(max_examples=400)
def test_each_is_answered_once_as_it_was_settled_and_when_nothing_of_it_is_open(steps):
    confirms, client = Confirms(), Publisher()
    committed, epoch, number = 0, 1, 0
    tickets: list[tuple[FakeTicket, int]] = []  # and the number before its first message
    waits: dict[int, tuple[int, list[FakeTicket]]] = {}
    refused: set[int] = set()

    def emit() -> None:
        before = set(client.outstanding)
        frames, count = confirms.emit(1, committed)
        client.read(frames)
        assert count == len(before - client.outstanding)
        assert confirms.unconfirmed_count == len(client.outstanding)
        for each in before - client.outstanding:
            staged, open_tickets = waits[each]
            assert staged <= committed
            assert all(ticket.is_done for ticket in open_tickets)
            assert client.answers[each] == (each not in refused)
        waiting = [waits[each] for each in client.outstanding]
        for staged, open_tickets in waiting:
            # Only one's own queue, and the disk, may be waited for.
            if staged <= committed and all(ticket.is_done for ticket in open_tickets):
                assert any(other > committed for other, _ in waiting)
        is_owed = any(
            staged > committed and all(ticket.is_done for ticket in open_tickets)
            for staged, open_tickets in waiting
        )
        assert confirms.is_pending or not is_owed

    for step in steps:
        match step:
            case ("plain", count, is_staged):
                confirms.add(count, epoch * is_staged, ("q",))
            case ("refused", count, is_staged):
                confirms.add_refused([count - 1], count, epoch * is_staged, ("q",))
                refused.add(number + count)
            case ("held", count, is_staged, ticket_count):
                made = [FakeTicket(count) for _ in range(ticket_count)]
                confirms.add_held([(t, None) for t in made], count, epoch * is_staged, (), (), list)
                tickets += [(ticket, number) for ticket in made]
            case ("mixed", count, is_staged, odd):
                places = list(range(odd, count, 2))
                made = [FakeTicket(len(places))]
                confirms.add_held([(made[0], places)], count, epoch * is_staged, (), (), list)
                tickets.append((made[0], number + odd))
            case ("finish", index, is_refused) if tickets:
                ticket, before_it = tickets.pop(index % len(tickets))
                ticket.finish(*([0] if is_refused else []))
                refused |= {before_it + 1} if is_refused else set()
            case ("commit",):
                committed, epoch = epoch, epoch + 1
            case ("emit",):
                emit()
        if step[0] in ("plain", "refused", "held", "mixed"):
            new = range(number + 1, number + step[1] + 1)
            client.outstanding |= set(new)
            own = made if step[0] == "held" else []
            waits |= dict.fromkeys(new, (epoch * step[2], own))
            if step[0] == "mixed":
                waits |= dict.fromkeys(new[step[3] :: 2], (epoch * step[2], made))
            number += step[1]
    for ticket, _ in tickets:
        ticket.finish()
    committed = epoch
    emit()
    assert not client.outstanding
    assert not confirms.is_pending
    assert set(client.answers) == set(range(1, number + 1))
