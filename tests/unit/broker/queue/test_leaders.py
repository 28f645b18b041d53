"""Leaders are shared out: evenly, among those that are there, with no more moves than that takes."""

from __future__ import annotations

from collections import Counter

from hypothesis import given
from hypothesis import strategies as st

from burrowmq.broker.queue.leaders import moves
from burrowmq.broker.queue.placement import Placement

SERVERS = ("a", "b", "c", "d", "e")


def led(leader: str, online: str = "abc", members: str = "abc") -> Placement:
    return Placement(leader, tuple(members), tuple(online))


def test_of_six_queues_each_of_three_servers_leads_two() -> None:
    found = moves({number: led("a") for number in range(6)})
    assert Counter(found.values()) == {"b": 2, "c": 2}


def test_nothing_moves_to_a_server_that_is_not_there_nor_without_a_gain() -> None:
    assert moves({number: led("a", online="a") for number in range(6)}) == {}
    assert Counter(moves({n: led("a", online="ab") for n in range(6)}).values()) == {"b": 3}
    assert moves({1: led("a"), 2: led("a"), 3: led("b"), 4: led("c")}) == {}
    assert moves({1: led(""), 2: Placement("", (), ())}) == {}


def placements() -> st.SearchStrategy[Placement]:
    def of(members: list[str], there: set[str], leads: int) -> Placement:
        online = [each for each in members if each in there]
        leader = online[leads % len(online)] if online else ""
        return Placement(leader, tuple(members), tuple(online))

    some = st.lists(st.sampled_from(SERVERS), min_size=1, max_size=5, unique=True)
    return st.builds(of, some, st.sets(st.sampled_from(SERVERS)), st.integers(0, 9))


@given(st.lists(placements(), max_size=40))
def test_afterwards_no_queue_could_move_to_a_server_that_leads_two_fewer(
    found: list[Placement],
) -> None:
    moved = moves(dict(enumerate(found)))
    leaders = [moved.get(number, each.leader) for number, each in enumerate(found)]
    leads = Counter(leaders)
    for number, (leader, each) in enumerate(zip(leaders, found, strict=True)):
        assert leader in each.online or leader == each.leader
        assert moved.get(number) != each.leader
        assert not each.leader or all(leads[leader] - leads[other] < 2 for other in each.online)
