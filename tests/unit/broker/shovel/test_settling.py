from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from burrowmq.broker.shovel.settling import Settling
from burrowmq.protocol.client.events import Confirmed


def settling(published: int) -> Settling:
    found = Settling()
    found.published = published
    return found


def test_one_by_one_and_in_order_is_one_acknowledgement() -> None:
    found = settling(10)
    assert found.settle(Confirmed(1, 1, 4, multiple=False, is_nack=False)) == ([(4, True)], 4)
    assert found.settle(Confirmed(1, 9, 9, multiple=True, is_nack=False)) == ([(9, True)], 5)
    assert found.pending == 1


def test_out_of_order_is_one_each_until_the_gap_closes() -> None:
    found = settling(6)
    assert found.settle(Confirmed(1, 3, 4, multiple=False, is_nack=False)) == (
        [(3, False), (4, False)],
        2,
    )
    assert found.settle(Confirmed(1, 1, 2, multiple=False, is_nack=False)) == ([(2, True)], 2)
    assert found.settle(Confirmed(1, 5, 6, multiple=False, is_nack=False)) == ([(6, True)], 2)
    assert found.pending == 0


def test_all_of_them_and_what_was_never_published() -> None:
    found = settling(3)
    assert found.settle(Confirmed(1, 0, 0, multiple=True, is_nack=False)) == ([(3, True)], 3)
    assert found.settle(Confirmed(1, 9, 9, multiple=False, is_nack=False)) == ([], 0)


@given(st.permutations(list(range(1, 12))), st.integers(1, 5))
def test_every_message_is_settled_once_whatever_the_order(order: list[int], step: int) -> None:
    found = settling(11)
    open_tags = set(range(1, 12))
    for place, seq in enumerate(order):
        if seq not in open_tags:
            continue
        multiple = place % step == 0
        tags, count = found.settle(Confirmed(1, seq, seq, multiple=multiple, is_nack=False))
        gone = set()
        for tag, is_multiple in tags:
            assert tag in open_tags
            gone |= {each for each in open_tags if each <= tag} if is_multiple else {tag}
        assert seq in gone
        assert len(gone) == count
        open_tags -= gone
        assert found.pending == len(open_tags)
    assert not open_tags
