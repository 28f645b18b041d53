"""DiskSizes: counts of equal messages, against a plain list."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from burrowmq.broker.queue.order.disk_sizes import DiskSizes
from burrowmq.broker.queue.run import DURABLE, LOGGED, TRANSIENT
from tests.support.messages import message

steps = st.lists(
    st.one_of(
        st.tuples(
            st.just("append"),
            st.lists(st.integers(0, 3), min_size=1, max_size=5),
            st.sampled_from([TRANSIENT, DURABLE]),
        ),
        st.tuples(st.just("skip"), st.integers(0, 4)),
        st.tuples(st.just("take"), st.integers(1, 5), st.integers(1, 9)),
    ),
    max_size=20,
)


@given(steps)
def test_equals_a_list(done):
    sizes, model = DiskSizes(), []
    for name, *arguments in done:
        if name == "append":
            lengths, kind = arguments
            sizes.append([message(b"x" * length) for length in lengths], kind)
            model += [(length, kind) for length in lengths]
        elif name == "skip":
            sizes.skip(arguments[0])
            del model[: arguments[0]]
        elif model:
            count, size, kind = sizes.take(*arguments)
            assert count >= 1
            assert count <= arguments[0]
            assert model[:count] == [(size, kind)] * count
            assert count == 1 or size * (count - 1) < arguments[1]
            del model[:count]
        assert bool(sizes) == bool(model)


def test_equal_messages_take_one_count():
    sizes = DiskSizes()
    for _ in range(100):
        sizes.append([message(b"abc")] * 100, TRANSIENT)
    assert len(sizes) == 1
    assert sizes.take(1 << 40, 1 << 40) == (10_000, 3, TRANSIENT)


def test_totals_of_all_and_of_one_kind() -> None:
    sizes = DiskSizes()
    sizes.append([message(b"abc")] * 2, TRANSIENT)
    sizes.append([message(b"ab"), message(b"")], DURABLE)
    assert sizes.total() == (4, 8)
    assert sizes.total(DURABLE) == (2, 2)
    assert sizes.total(LOGGED) == (0, 0)
