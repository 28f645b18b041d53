"""What is kept with a message and not shown: in `address`, behind the names."""

from __future__ import annotations

from typing import Any

from burrowmq.protocol.codec import (
    encode_deliver,
    encode_get_ok,
    encode_return,
    join_address,
    load_message,
    split_address,
)
from burrowmq.protocol.constants import HIDDEN, PERSISTENT
from burrowmq.protocol.hidden import Hidden, hidden, with_hidden
from burrowmq.protocol.properties import Properties, build, rewrite
from burrowmq.protocol.table import Long

EXRK = join_address(b"ex", b"key")
PLAIN = build(EXRK, Properties(delivery_mode=2), b"body")
KEPT = Hidden(["a", "b" * 300], [])
NOTHING = Hidden([], [])


def test_it_is_there_and_everything_else_stays():
    kept = with_hidden(PLAIN, KEPT)
    assert hidden(kept) == KEPT
    assert (kept.raw, kept.size, kept.frame_max) == (PLAIN.raw, PLAIN.size, PLAIN.frame_max)
    assert (kept.flags, kept.handle) == (PERSISTENT | HIDDEN | PLAIN.flags, -1)
    assert split_address(kept.address) == (b"ex", b"key")
    assert hidden(PLAIN) == NOTHING


def test_deaths_are_kept_with_keys_or_alone_however_many():
    deaths: Any = [{"queue": f"q{n}", "count": Long(n), "routing-keys": ["k"]} for n in range(9000)]
    for kept in (Hidden(["a"], deaths), Hidden([], deaths)):
        assert hidden(with_hidden(PLAIN, kept)) == kept


def test_something_else_takes_its_place_and_nothing_takes_it_away():
    kept = with_hidden(with_hidden(PLAIN, KEPT), Hidden(["c"], []))
    assert hidden(kept) == Hidden(["c"], [])
    bare = with_hidden(kept, NOTHING)
    assert (bare.address, bare.flags) == (PLAIN.address, PLAIN.flags)


def test_no_client_gets_it():
    kept = with_hidden(PLAIN, KEPT)
    for channel in (1, 7):
        assert encode_deliver(channel, b"c", 1, False, [PLAIN, kept, PLAIN, kept], 0) == (
            encode_deliver(channel, b"c", 1, False, [PLAIN] * 4, 0)
        )
        assert encode_get_ok(channel, 1, False, kept, 2, 0) == (
            encode_get_ok(channel, 1, False, PLAIN, 2, 0)
        )
        assert encode_return(channel, 312, "NO_ROUTE", kept, 0) == (
            encode_return(channel, 312, "NO_ROUTE", PLAIN, 0)
        )


def test_it_comes_back_from_the_store_and_stays_when_the_header_is_rewritten():
    kept = with_hidden(PLAIN, KEPT)
    loaded = load_message(kept.address, kept.raw, kept.size, kept.flags, 5)
    assert hidden(loaded) == KEPT
    assert hidden(rewrite(loaded, Properties(priority=1))) == KEPT
    assert hidden(rewrite(loaded, Properties(priority=1), EXRK)) == NOTHING
