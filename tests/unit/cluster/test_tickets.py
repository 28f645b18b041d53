"""Tickets are done once each of their messages was answered, however the run was cut."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from burrowmq.cluster.tickets import Share, Shares, Ticket


def test_a_ticket_is_done_with_its_last_share() -> None:
    ticket = Ticket(5)
    first, rest = Share(ticket, 0, 2), Share(ticket, 2, 3)
    assert not first.settle(is_stored=True)
    assert not ticket.is_done
    assert rest.settle(is_stored=False)
    assert ticket.is_done
    assert ticket.refused == [2, 3, 4]


def test_what_was_taken_can_be_in_front_again() -> None:
    shares = Shares()
    first, second = Ticket(3), Ticket(2)
    shares.add(Share(first, 0, 3))
    shares.add(Share(second, 0, 2))
    taken = shares.take(4)
    assert taken == [Share(first, 0, 3), Share(second, 0, 1)]
    shares.put_back(taken)
    assert shares.take(5) == [Share(first, 0, 3), Share(second, 0, 1), Share(second, 1, 1)]


@given(st.lists(st.integers(1, 9), min_size=1, max_size=8), st.data())
def test_any_cut_settles_each_message_once(counts: list[int], data: st.DataObject) -> None:
    shares = Shares()
    tickets = [Ticket(count) for count in counts]
    for ticket in tickets:
        shares.add(Share(ticket, 0, ticket.count))
    left = sum(counts)
    stored: list[bool] = []
    done: list[Ticket] = []
    while left:
        count = data.draw(st.integers(1, left))
        is_stored = data.draw(st.booleans())
        stored += [is_stored] * count
        left -= count
        done += [share.ticket for share in shares.take(count) if share.settle(is_stored=is_stored)]
    assert done == tickets
    for ticket in tickets:
        part, stored = stored[: ticket.count], stored[ticket.count :]
        assert ticket.refused == [place for place, is_stored in enumerate(part) if not is_stored]
