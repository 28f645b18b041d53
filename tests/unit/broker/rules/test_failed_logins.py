"""burrowmq.broker.rules.failed_logins, with a clock that is told, and behind broker.rules.auth."""

from __future__ import annotations

import pytest

from burrowmq.broker.rules import failed_logins
from burrowmq.broker.rules.auth import Auth, LoginRefused, NotFromAfar, TooManyFailures
from burrowmq.broker.rules.failed_logins import (
    ADDRESS_FACTOR,
    Buckets,
    FailedLoginLimits,
    FailedLogins,
)
from tests.support.counting_entropy import CountingEntropy
from tests.support.memory_definitions import MemoryDefinitions

THERE, ELSEWHERE, HERE = "203.0.113.5", "198.51.100.7", "127.0.0.1"


class World:
    """Logins at a time that the test says."""

    def __init__(self, limit: int = 3, leak_per_s: float = 1.0) -> None:
        self.now_s = 1000.0
        limits = FailedLoginLimits(limit=limit, leak_per_s=leak_per_s)
        self.failed = FailedLogins(limits, lambda: self.now_s)
        self.auth = Auth(MemoryDefinitions(), CountingEntropy(), failed_logins=self.failed)
        for name in ("ann", "bob", "guest"):
            self.auth.set_password(name, "right")

    def log_in(self, name: str, password: str, address: str) -> str:
        try:
            return self.auth.authenticate(
                name, password, is_loopback=address == HERE, address=address
            ).name
        except TooManyFailures as refusal:
            return f"in {refusal.wait_s:g} s"
        except NotFromAfar:
            return "not from there"
        except LoginRefused:
            return "wrong"


def test_after_the_limit_nobody_listens_until_it_has_leaked() -> None:
    world = World(limit=3)
    assert [world.log_in("ann", "guess", THERE) for _ in range(5)] == ["wrong"] * 3 + ["in 1 s"] * 2
    assert world.log_in("ann", "right", THERE) == "in 1 s"
    world.now_s += 0.5
    assert world.log_in("ann", "right", THERE) == "in 0.5 s"
    world.now_s += 0.5
    assert world.log_in("ann", "guess", THERE) == "wrong"
    assert world.log_in("ann", "guess", THERE) == "in 1 s"
    world.now_s += 1
    assert world.log_in("ann", "right", THERE) == "ann"
    assert world.log_in("ann", "guess", THERE) == "wrong", "the slips before are forgotten"


def test_the_right_password_from_elsewhere_always_passes() -> None:
    world = World()
    for number in range(256):
        for _ in range(5):
            world.log_in("ann", "guess", f"203.0.113.{number}")
    assert world.log_in("ann", "guess", THERE).startswith("in ")
    assert world.log_in("ann", "right", ELSEWHERE) == "ann"
    assert world.log_in("ann", "right", HERE) == "ann"


def test_a_name_that_nobody_has_is_answered_alike() -> None:
    answers = []
    for name in ("ann", "nobody"):
        world = World()
        answers.append([world.log_in(name, "guess", THERE) for _ in range(6)])
    assert answers[0] == answers[1]


def test_one_address_that_tries_many_names_is_refused_too() -> None:
    world = World(limit=3)
    guesses = 3 * ADDRESS_FACTOR
    answers = [world.log_in(f"user{number}", "guess", THERE) for number in range(guesses + 2)]
    assert answers == ["wrong"] * guesses + ["in 0.1 s"] * 2
    assert world.log_in("ann", "right", THERE) == "in 0.1 s"
    world.now_s += 0.1
    assert world.log_in("ann", "right", THERE) == "ann"


def test_who_was_let_in_before_is_not_held_up_by_the_neighbours() -> None:
    """One proxy, one office, one address."""
    world = World(limit=3)
    assert world.log_in("ann", "right", THERE) == "ann"
    for number in range(100):
        world.log_in(f"user{number}", "guess", THERE)
    assert world.log_in("bob", "right", THERE).startswith("in ")
    assert world.log_in("ann", "right", THERE) == "ann"


def test_this_machine_is_watched_name_by_name_only() -> None:
    world = World(limit=3)
    for number in range(100):
        world.log_in(f"user{number}", "guess", HERE)
    for _ in range(5):
        world.log_in("guest", "guess", "::1")
    assert world.log_in("guest", "right", HERE) == "in 1 s"
    assert world.log_in("ann", "right", HERE) == "ann"


def test_a_right_password_from_afar_that_does_not_count_is_a_guess() -> None:
    world = World(limit=3)
    answers = [world.log_in("guest", "right", THERE) for _ in range(4)]
    assert answers == ["not from there"] * 3 + ["in 1 s"]


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        ("2001:db8:1:2::1", "2001:db8:1:2:ffff::9", True),
        ("2001:db8:1:2::1", "2001:db8:1:3::1", False),
        ("::ffff:203.0.113.5", THERE, True),
        ("fe80::1%eth0", "fe80::1%eth1", True),
        ("127.0.0.1", "127.8.8.8", True),
        (THERE, ELSEWHERE, False),
        ("a name", "a name", True),
    ],
)
def test_what_counts_as_one_address(first: str, second: str, is_same: bool) -> None:
    world = World(limit=1)
    world.failed.failed(first, "ann")
    assert (world.failed.wait_s(second, "ann") > 0) is is_same


def test_a_limit_of_none_and_the_control_socket_are_not_watched() -> None:
    unlimited = World(limit=0)
    assert {unlimited.log_in("ann", "guess", THERE) for _ in range(50)} == {"wrong"}
    world = World()
    assert {world.log_in("ann", "guess", "") for _ in range(50)} == {"wrong"}


def test_tables_are_bounded_and_drop_what_changed_longest_ago(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(failed_logins, "ENTRIES_MAX", 3)
    buckets = Buckets(1, 0.001)
    for key in "abac":
        buckets.add(key, 0.0)
    assert len(buckets) == 3
    buckets.add("d", 0.0)
    assert [buckets.level(key, 0.0) for key in "abcd"] == [2, 0, 1, 1]
    world = World()
    for number in range(10):
        world.auth.set_password(f"u{number}", "right")
        assert world.log_in(f"u{number}", "right", THERE) == f"u{number}"
    assert len(world.failed._welcome) == 3


def test_a_name_of_any_length_costs_the_same() -> None:
    found = failed_logins._keys(THERE, "x" * 1_000_000)[1]
    assert len(found[1]) == len(failed_logins._keys(THERE, "x")[1][1]) == 16
    assert failed_logins._keys(THERE, "\udcff")[1] != found
