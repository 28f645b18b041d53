"""burrowmq.broker.rules.granted: both ways round."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from burrowmq.broker.rules.granted import Granted

PAIR = st.tuples(st.sampled_from("vw"), st.sampled_from("abc"))


@given(st.lists(st.tuples(st.booleans(), PAIR)))
def test_it_is_a_set_of_pairs(changes: list[tuple[bool, tuple[str, str]]]) -> None:
    granted, model = Granted(), set[tuple[str, str]]()
    for is_added, pair in changes:
        (granted.add if is_added else granted.discard)(*pair)
        (model.add if is_added else model.discard)(pair)
    assert set(granted.pairs(None, None)) == model
    for vhost in "vw":
        assert set(granted.users_of(vhost)) == {user for one, user in model if one == vhost}
        assert set(granted.pairs(vhost, None)) == {pair for pair in model if pair[0] == vhost}
        for user in "abc":
            assert granted.pairs(vhost, user) == [pair for pair in model if pair == (vhost, user)]
    for user in "abc":
        assert set(granted.vhosts_of(user)) == {vhost for vhost, one in model if one == user}
        assert set(granted.pairs(None, user)) == {pair for pair in model if pair[1] == user}


def test_nothing_is_kept_of_who_has_nothing() -> None:
    granted = Granted()
    granted.add("v", "a")
    granted.discard("v", "a")
    granted.discard("w", "b")
    assert vars(granted) == {"_vhosts": {}, "_users": {}}
