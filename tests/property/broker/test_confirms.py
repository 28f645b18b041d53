"""Confirms against a model: every publish is answered once, as it went, and never before its epoch."""

from __future__ import annotations

import struct

from hypothesis import given
from hypothesis import strategies as st

from burrowmq.broker.channel.confirms import Confirms

ACK, NACK = 80, 120

steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.integers(1, 6), st.booleans()),
        st.tuples(
            st.just("refuse"), st.lists(st.booleans(), min_size=1, max_size=6), st.booleans()
        ),
        st.tuples(st.just("commit")),
        st.tuples(st.just("emit")),
    ),
    max_size=40,
)


def answers(frames: bytes) -> list[tuple[int, int, bool]]:
    """(method, tag, multiple) of each frame."""
    found = []
    offset = 0
    while offset < len(frames):
        kind, channel, size = struct.unpack_from(">BHI", frames, offset)
        class_id, method_id, tag, bits = struct.unpack_from(">HHQB", frames, offset + 7)
        assert (kind, channel, class_id) == (1, 3, 60)
        found.append((method_id, tag, bool(bits & 1)))
        offset += size + 8
    return found


@given(steps)
def test_every_publish_is_answered_once(done):
    confirms = Confirms()
    committed = 0
    expected: list[tuple[int, int]] = []  # (epoch, method) by seq-no from 1
    answered: dict[int, int] = {}

    def emit() -> None:
        frames, count = confirms.emit(3, committed)
        before = len(answered)
        for method, tag, multiple in answers(frames):
            first = max(answered, default=0) + 1 if multiple else tag
            for seq_no in range(first, tag + 1):
                assert seq_no not in answered
                answered[seq_no] = method
                epoch, outcome = expected[seq_no - 1]
                assert epoch <= committed, "confirmed before its batch was durable"
                assert outcome == method
        assert len(answered) - before == count
        assert confirms.unconfirmed_count == len(expected) - len(answered)

    for name, *arguments in done:
        if name == "add":
            count, waits = arguments
            epoch = committed + 1 if waits else 0
            confirms.add(count, epoch)
            expected += [(epoch, ACK)] * count
        elif name == "refuse":
            refused, waits = arguments
            epoch = committed + 1 if waits else 0
            indexes = [index for index, is_refused in enumerate(refused) if is_refused]
            confirms.add_refused(indexes, len(refused), epoch)
            expected += [(epoch, NACK if is_refused else ACK) for is_refused in refused]
        elif name == "commit":
            committed += 1
        else:
            emit()
    committed += 1
    emit()
    assert sorted(answered) == list(range(1, len(expected) + 1))
    assert not confirms.is_pending
