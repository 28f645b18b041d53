"""Reclaim: freed memory goes back to the system when it is much and has lasted, or when memory is short."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

from burrowmq.broker.machine.reclaim import LOOKS, WORTH_BYTES, Reclaim, compiled_pools

RESIDENT = 10 * WORTH_BYTES

HOLE = """
from broker.machine.reclaim import ON_TOP_BYTES, CLibrary
from broker.machine.resources import rss_bytes
library = CLibrary()
count = ON_TOP_BYTES // 1000
full = [bytes(1000) for _ in range(count)]
behind = bytes(3000)
held = rss_bytes()
before = sum(library.unused_bytes())
full.clear()
holes, on_top = library.unused_bytes()
assert holes + on_top - before > 1000 * count, (holes, on_top)
assert on_top < 1_000_000, on_top
assert held - rss_bytes() < 20_000_000, "it goes back by itself: what is all this for?"
library.give_back()
assert held - rss_bytes() > 950 * count, (held, rss_bytes())
assert sum(library.unused_bytes()) > 1000 * count, "it would not count any more"
"""

TOP = """
from broker.machine.reclaim import ON_TOP_BYTES, CLibrary
from broker.machine.resources import rss_bytes
library = CLibrary()
def full(size):
    return [bytes(1000) for _ in range(size // 1000)]
held = rss_bytes()
full(ON_TOP_BYTES * 3 // 4)
holes, on_top = library.unused_bytes()
assert on_top > ON_TOP_BYTES * 3 // 4, on_top
assert rss_bytes() - held > ON_TOP_BYTES * 3 // 4, (held, rss_bytes())
library.give_back()
assert rss_bytes() - held < 10_000_000, (held, rss_bytes())
assert library.unused_bytes()[1] < 1_000_000
full(2 * ON_TOP_BYTES)
assert rss_bytes() - held < ON_TOP_BYTES + 10_000_000, (held, rss_bytes())
"""

TURNS = """
import resource, sys
from broker.machine.reclaim import CLibrary
size, count = map(int, sys.argv[1:])
def turns(number):
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(number):
        [b"x" * size for _ in range(count)]
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before
turns(1)
assert turns(10) > 2_000, "the pages stay by themselves: what is all this for?"
CLibrary()
turns(1)
again = turns(10)
assert again < 500, again
"""

POOLS = """
import random
from broker.machine.reclaim import ServersAllocator, compiled_pools
from broker.machine.resources import rss_bytes
pools, allocator = compiled_pools(), ServersAllocator()
full = [(number, str(number)) for number in range(10**6, 10**6 + 500_000)]
kept = full[::2000]  # one of each arena's pools
held = rss_bytes()
full.clear()
stays = rss_bytes()
unused = pools.unused_bytes()
assert held - stays < 5_000_000, "it goes back by itself: what is all this for?"
assert unused > 10_000_000, unused
allocator.give_back()
assert stays - rss_bytes() > 0.9 * unused, (stays, rss_bytes(), unused)
assert pools.unused_bytes() < 1_000_000
assert all(text == str(number) for number, text in kept)

# Whatever comes and goes, nothing that lives is touched.
chance, live = random.Random(1), {}
for step in range(400_000):
    place = chance.randrange(60_000)
    if chance.random() < 0.5:
        live.pop(place, None)
    else:
        live[place] = bytes([place % 251]) * chance.randrange(1, 480)
    if step % 10_000 == 0:
        for gone in range(chance.randrange(60_000)):
            live.pop(gone, None)
        pools.give_back()
        assert all(text == bytes([place % 251]) * len(text) for place, text in live.items())
"""

TUPLES = """
from broker.machine.reclaim import ServersAllocator
from broker.machine.resources import rss_bytes
allocator = ServersAllocator()
full = [(number, number, number) for number in range(200_000)]
kept, full[::100] = full[::100], [None] * 2000  # some of each pool's
kept.clear()  # these are kept for the next ones of that length
held = rss_bytes()
full[:] = [None] * len(full)
assert held - rss_bytes() < 5_000_000, "it goes back by itself: what is all this for?"
allocator.give_back()
assert held - rss_bytes() > 15_000_000, (held, rss_bytes())
"""


class FakeAllocator:
    """Counts how often it was asked and told."""

    def __init__(self) -> None:
        self.unused = 0
        self.on_top = 0
        self.asked = 0
        self.told = 0

    def unused_bytes(self) -> tuple[int, int]:
        self.asked += 1
        return self.unused, self.on_top

    def give_back(self) -> None:
        self.told += 1


def looks(reclaim: Reclaim, count: int, *, is_short: bool = False) -> list[bool]:
    return [reclaim.look(RESIDENT, is_short=is_short) for _ in range(count)]


def test_what_lies_unused_for_two_looks_goes_back_once():
    allocator = FakeAllocator()
    reclaim = Reclaim(allocator)
    allocator.unused = WORTH_BYTES
    assert not any(looks(reclaim, 2 * LOOKS - 1))
    assert looks(reclaim, 1) == [True]
    assert not any(looks(reclaim, 5 * LOOKS))
    assert (allocator.asked, allocator.told) == (8, 1)


def test_what_is_taken_again_before_the_next_look_stays():
    allocator = FakeAllocator()
    reclaim = Reclaim(allocator)
    for unused in (0, 4 * WORTH_BYTES, WORTH_BYTES - 1, 4 * WORTH_BYTES, 0):
        allocator.unused = unused
        assert not any(looks(reclaim, LOOKS))
    assert allocator.told == 0


def test_a_backlog_that_has_just_gone_is_not_returned_for_the_little_that_lay_unused_before():
    allocator = FakeAllocator()
    reclaim = Reclaim(allocator)
    for unused in (2, 200, 2, 200, 2, 200):
        allocator.unused = unused * WORTH_BYTES
        looks(reclaim, LOOKS)
    told = allocator.told
    assert not any(looks(reclaim, LOOKS - 1))
    assert looks(reclaim, 1) == [True]
    assert (told, allocator.told) == (1, 2)


def test_what_was_returned_counts_again_after_it_was_taken():
    allocator = FakeAllocator()
    reclaim = Reclaim(allocator)
    allocator.unused = 3 * WORTH_BYTES
    assert looks(reclaim, 3, is_short=True) == [True, False, False]
    allocator.unused = WORTH_BYTES  # two thirds are in use again
    assert looks(reclaim, 1, is_short=True) == [False]
    allocator.unused = 2 * WORTH_BYTES
    assert looks(reclaim, 2, is_short=True) == [True, False]


def test_what_is_on_top_was_not_returned():
    """What was a hole and returned may be on top by now, and full and empty again since."""
    allocator = FakeAllocator()
    reclaim = Reclaim(allocator)
    allocator.unused = 200 * WORTH_BYTES
    assert looks(reclaim, 1, is_short=True) == [True]
    allocator.unused, allocator.on_top = 0, 200 * WORTH_BYTES
    assert looks(reclaim, 1, is_short=True) == [True]


def test_what_comes_and_goes_after_all_was_returned_has_not_lasted():
    allocator = FakeAllocator()
    reclaim = Reclaim(allocator)
    allocator.on_top = 200 * WORTH_BYTES
    looks(reclaim, LOOKS)
    allocator.give_back = lambda: setattr(allocator, "on_top", 0)
    assert looks(reclaim, LOOKS)[-1]
    allocator.on_top = 200 * WORTH_BYTES
    assert not any(looks(reclaim, LOOKS))
    assert looks(reclaim, LOOKS)[-1]


def test_an_operator_gets_little_back_too():
    allocator = FakeAllocator()
    reclaim = Reclaim(allocator)
    allocator.unused = 1
    reclaim.now()
    assert allocator.told == 1


def test_a_small_process_is_not_asked():
    allocator = FakeAllocator()
    allocator.unused = WORTH_BYTES
    reclaim = Reclaim(allocator)
    assert not any(reclaim.look(WORTH_BYTES - 1, is_short=True) for _ in range(2 * LOOKS))
    assert allocator.asked == 0


@pytest.mark.parametrize("script", [HOLE, TOP], ids=["hole", "top"])
def test_the_c_library_returns_what_it_keeps_by_itself(script: str):
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("this C library does not say what it holds")
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


OPERATORS = """
from broker.machine.reclaim import CLibrary
from broker.machine.resources import rss_bytes
library = CLibrary()
held = rss_bytes()
[bytes(1000) for _ in range(100_000)]
assert rss_bytes() - held < 20_000_000, (held, rss_bytes())
"""


@pytest.mark.parametrize(
    ("name", "value", "holds"),
    [
        ("MALLOC_TRIM_THRESHOLD_", "1000000", True),
        ("GLIBC_TUNABLES", "glibc.malloc.trim_threshold=1000000", True),
        ("MALLOC_ARENA_MAX", "2", False),
    ],
)
def test_what_an_operator_has_set_for_the_c_library_holds(name: str, value: str, holds: bool):
    """Of those that say when memory goes back."""
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("glibc alone reads these")
    command = [sys.executable, "-c", OPERATORS]
    environment = {**os.environ, name: value}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode == 0) is holds, done.stderr


@pytest.mark.slow
@pytest.mark.parametrize("script", [POOLS, TUPLES], ids=["pools", "tuples"])
def test_pools_in_which_nothing_lives_go_back_and_nothing_else(script: str):
    pools = compiled_pools()
    if pools is None or not pools.watch():
        pytest.skip("interpreted, or another Python's pools")
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize(
    ("size", "count"),
    [(60_000, 200), (300_000, 100), (17 << 20, 3), (1024, 150_000)],
    ids=["one", "fanout", "large", "backlog"],
)
def test_what_is_freed_is_there_for_the_next(size: int, count: int):
    if not hasattr(ctypes.CDLL(None), "mallinfo2"):
        pytest.skip("another C library has other rules")
    done = subprocess.run(
        [sys.executable, "-c", TURNS, str(size), str(count)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr


NO_ARENAS = """
import resource
from burrowmq.broker.machine._pools_c import end_without_arenas
assert not end_without_arenas(b"x" * 513, 71)
if not end_without_arenas(b"no arenas", 71):
    raise SystemExit(3)
resource.setrlimit(resource.RLIMIT_AS, (80 << 20, -1))
try:
    bytearray(100 << 20)
except MemoryError:
    print("too large for one", flush=True)
kept = []
while True:
    kept.append(object())
"""


def test_a_process_that_gets_no_arena_ends_with_its_last_words() -> None:
    if compiled_pools() is None:
        pytest.skip("the compiled part is not there")
    words = [sys.executable, "-c", NO_ARENAS]
    done = subprocess.run(words, capture_output=True, text=True, check=False, timeout=60)
    if done.returncode == 3:
        pytest.skip("nothing is known of this Python's arenas")
    assert (done.returncode, done.stdout, done.stderr) == (71, "too large for one\n", "no arenas")
