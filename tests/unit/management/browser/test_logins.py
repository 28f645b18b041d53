"""burrowmq.management.browser.logins: how a login ends, with a clock that is told."""

from __future__ import annotations

from dataclasses import replace

import pytest

from burrowmq.broker.rules.auth import User
from burrowmq.management.browser import logins
from burrowmq.management.browser.logins import IDLE_S, Logins

ANN = User(name="ann", password_hash="h", tags=("management",))
BOB = replace(ANN, name="bob")
LIFETIME_S = 8 * 3600.0


class World:
    """Logins, the users of the node, and the time."""

    def __init__(self) -> None:
        self.now_s = 1000.0
        self.users = {"ann": ANN, "bob": BOB}
        self.made = 0
        self.logins = Logins(LIFETIME_S, self.token, lambda: self.now_s)

    def token(self, size: int) -> bytes:
        self.made += 1
        return self.made.to_bytes(size, "big")

    def is_in(self, token: str) -> bool:
        return self.logins.user_of(token, self.users) is not None


def test_a_token_stands_for_its_user() -> None:
    world = World()
    first, second = world.logins.begin(ANN), world.logins.begin(BOB)
    assert len(first) == 64
    assert world.logins.user_of(first, world.users) is ANN
    assert world.logins.user_of(second, world.users) is BOB
    for nonsense in ("", first[:-1], "\udcff", "x" * 100_000):
        assert not world.is_in(nonsense)


def test_it_ends_with_its_logout() -> None:
    world = World()
    first, second = world.logins.begin(ANN), world.logins.begin(ANN)
    world.logins.end(first)
    world.logins.end(first)
    assert (world.is_in(first), world.is_in(second)) == (False, True)


def test_it_ends_after_its_time_however_much_it_is_used() -> None:
    world = World()
    token = world.logins.begin(ANN)
    for _ in range(15):
        world.now_s += LIFETIME_S / 16
        assert world.is_in(token)
    world.now_s += LIFETIME_S / 16
    assert not world.is_in(token)
    assert len(world.logins) == 0


def test_it_ends_an_hour_after_its_last_use() -> None:
    world = World()
    token = world.logins.begin(ANN)
    world.now_s += IDLE_S - 1
    assert world.is_in(token)
    world.now_s += IDLE_S
    assert not world.is_in(token)


@pytest.mark.parametrize(
    "changed",
    [
        replace(ANN, password_hash="other"),
        replace(ANN, tags=("management", "administrator")),
        replace(ANN, tags=()),
        replace(ANN, hashing_algorithm="other"),
        None,
    ],
)
def test_it_ends_when_the_user_is_another(changed: User | None) -> None:
    world = World()
    token = world.logins.begin(ANN)
    if changed is None:
        del world.users["ann"]
    else:
        world.users["ann"] = changed
    assert not world.is_in(token)
    world.users["ann"] = ANN
    assert not world.is_in(token), "it is over for good"


def test_limits_of_connections_are_no_reason() -> None:
    world = World()
    token = world.logins.begin(ANN)
    world.users["ann"] = replace(ANN, limits={"max-connections": 1})
    assert world.is_in(token)


def test_the_table_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(logins, "LOGINS_MAX", 4)
    monkeypatch.setattr(logins, "USER_LOGINS_MAX", 3)
    world = World()
    of_bob = world.logins.begin(BOB)
    tokens = [world.logins.begin(ANN) for _ in range(2)]
    assert world.is_in(of_bob)
    tokens.append(world.logins.begin(ANN))
    tokens.append(world.logins.begin(ANN))
    assert [world.is_in(token) for token in tokens] == [False, True, True, True]
    assert world.is_in(of_bob), "one user's logins end before others' do"
    world.users["eve"] = replace(ANN, name="eve")
    world.logins.begin(world.users["eve"])
    assert len(world.logins) == 4
