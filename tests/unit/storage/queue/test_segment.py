"""The places of an index segment: what is live, what is acked."""

from __future__ import annotations

import random

from burrowmq.storage.queue.segment import Segment, bits_of, selectors_of, slots_of

COUNT = 64


def test_a_segment_in_order_needs_no_bits() -> None:
    segment = Segment(0)
    segment.add(3, 10)
    segment.remove(3, 6)
    segment.add(13, 5)
    assert (segment.live, segment.live_bits) == (11, None)
    assert segment.live_slots(0, 4) == [7, 8, 9, 10]
    assert slots_of(segment.acked()) == [3, 4, 5, 6]


def test_a_range_that_was_never_written_takes_nothing() -> None:
    segment = Segment(0)
    segment.add(10, 5)
    assert segment.remove(0, 9) == 0
    assert segment.remove(12, 40).bit_count() == 3
    assert segment.remove(12, 40) == 0
    assert segment.live == 2


def test_a_segment_agrees_with_a_set() -> None:
    rng = random.Random(5)
    for _ in range(300):
        segment, live, acked, fresh = Segment(0), set[int](), set[int](), list(range(COUNT))
        for _ in range(12):
            if fresh and rng.random() < 0.6:
                first = fresh[0] if rng.random() < 0.7 else rng.choice(fresh)
                count = 1
                while count < 9 and first + count in fresh:
                    count += 1
                segment.add(first, count)
                live |= set(range(first, first + count))
                fresh = [slot for slot in fresh if not first <= slot < first + count]
            else:
                first = rng.randrange(COUNT)
                last = min(COUNT - 1, first + rng.randrange(12))
                hit = slots_of(segment.remove(first, last))
                assert hit == sorted(slot for slot in live if first <= slot <= last)
                live -= set(hit)
                acked |= set(hit)
            assert segment.live == len(live)
            assert segment.live_slots(0, COUNT) == sorted(live)
            assert slots_of(segment.acked()) == sorted(acked)
        again = Segment(0)
        present = sum(1 << slot for slot in live | acked)
        again.restore(present, segment.acked())
        assert again.live_slots(0, COUNT) == sorted(live)
        assert slots_of(again.acked()) == sorted(acked)


def test_bits_and_places_convert() -> None:
    assert slots_of(0b1011, 10) == [10, 11, 13]
    assert bits_of(b"\1\0\xff\1") == 0b1001
    assert bits_of(b"") == 0
    assert selectors_of(0b101) == b"\1\0\1"
