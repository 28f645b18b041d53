"""The places of an index segment: what is live, what is acked."""

from __future__ import annotations

import random

from burrowmq.storage.queue.places import Places, bits_of, selectors_of, slots_of

COUNT = 64


def test_a_segment_in_order_needs_no_bits() -> None:
    places = Places()
    places.add(3, 10)
    places.remove(3, 6)
    places.add(13, 5)
    assert (places.live, places.live_bits) == (11, None)
    assert places.live_slots(0, 4) == [7, 8, 9, 10]
    assert slots_of(places.acked()) == [3, 4, 5, 6]


def test_a_range_that_was_never_written_takes_nothing() -> None:
    places = Places()
    places.add(10, 5)
    assert places.remove(0, 9) == 0
    assert places.remove(12, 40).bit_count() == 3
    assert places.remove(12, 40) == 0
    assert places.live == 2


def test_a_segment_agrees_with_a_set() -> None:
    rng = random.Random(5)
    for _ in range(300):
        places, live, acked, fresh = Places(), set[int](), set[int](), list(range(COUNT))
        for _ in range(12):
            if fresh and rng.random() < 0.6:
                first = fresh[0] if rng.random() < 0.7 else rng.choice(fresh)
                count = 1
                while count < 9 and first + count in fresh:
                    count += 1
                places.add(first, count)
                live |= set(range(first, first + count))
                fresh = [slot for slot in fresh if not first <= slot < first + count]
            else:
                first = rng.randrange(COUNT)
                last = min(COUNT - 1, first + rng.randrange(12))
                hit = slots_of(places.remove(first, last))
                assert hit == sorted(slot for slot in live if first <= slot <= last)
                live -= set(hit)
                acked |= set(hit)
            assert places.live == len(live)
            assert places.live_slots(0, COUNT) == sorted(live)
            assert slots_of(places.acked()) == sorted(acked)
        again = Places()
        present = sum(1 << slot for slot in live | acked)
        again.restore(present, places.acked())
        assert again.live_slots(0, COUNT) == sorted(live)
        assert slots_of(again.acked()) == sorted(acked)


def test_a_segment_that_is_written_anew_keeps_its_length() -> None:
    places = Places()
    places.add(0, 20)
    places.remove(0, 9)
    places.remove(15, 19)
    places.keep_only(places.live_mask())
    assert (places.live, places.used, places.pending_acks) == (5, 20, 0)
    assert slots_of(places.live_mask()) == [10, 11, 12, 13, 14]
    assert places.acked() == 0


def test_bits_and_places_convert() -> None:
    assert slots_of(0b1011, 10) == [10, 11, 13]
    assert bits_of(b"\1\0\xff\1") == 0b1001
    assert bits_of(b"") == 0
    assert selectors_of(0b101) == b"\1\0\1"


def test_acked_places_at_the_end_stay_used_over_a_start() -> None:
    places = Places()
    places.restore(0b11110, 0b11000)
    assert (places.live, places.used) == (2, 5)
