"""Tests that `burrowmq.records.dataclass` makes what the standard library's makes. Covers: burrowmq/records.py."""

from __future__ import annotations

import copy
import dataclasses
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from typing import Any

import pytest

from burrowmq import records

Decorator = Callable[..., Callable[[type], Any]]


def plain(decorator: Decorator, **asked: bool) -> Any:  # Any: made at run time
    class Plain:
        """A class with every kind of field."""

        a: int
        b: str = "b"
        c: list[int] = field(default_factory=list)
        d: str = field(default="secret", repr=False)
        e: int = field(default=0, compare=False)
        g: int = field(init=False, default=7)
        h: list[int] = field(init=False, default_factory=list)

        def total(self) -> int:
            """A method."""
            return self.a + self.e

    return decorator(slots=True, **asked)(Plain)


KINDS = [{}, {"frozen": True}, {"kw_only": True}, {"frozen": True, "kw_only": True}]


@pytest.mark.parametrize("asked", KINDS, ids=str)
def test_an_instance_is_what_the_standard_one_is(asked: dict[str, bool]) -> None:
    ours, theirs = plain(records.dataclass, **asked), plain(dataclasses.dataclass, **asked)
    for given in ({"a": 1}, {"a": 2, "b": "x", "c": [1], "d": "y", "e": 3}):
        one, other = ours(**given), theirs(**given)
        assert repr(one) == repr(other)
        assert dataclasses.asdict(one) == dataclasses.asdict(other)
        assert repr(dataclasses.replace(one, a=9)) == repr(dataclasses.replace(other, a=9))
        assert one.total() == other.total()
        assert one == ours(**given) != other
        assert one == dataclasses.replace(one, e=100) != dataclasses.replace(one, d="z")
        assert repr(copy.copy(one)) == repr(copy.deepcopy(one)) == repr(one)
    assert ours(a=1).c is not ours(a=1).c
    assert ours.__match_args__ == theirs.__match_args__
    assert ours.__slots__ == theirs.__slots__


@pytest.mark.parametrize("asked", KINDS, ids=str)
@pytest.mark.parametrize(
    ("positional", "named"), [((), {}), ((1, "b", [], "d", 5, 6), {}), ((1,), {"z": 1})], ids=str
)
def test_arguments_that_are_refused(
    asked: dict[str, bool], positional: tuple[object, ...], named: dict[str, object]
) -> None:
    for decorator in (records.dataclass, dataclasses.dataclass):
        with pytest.raises(TypeError):
            plain(decorator, **asked)(*positional, **named)


def test_keywords_only() -> None:
    with pytest.raises(TypeError):
        plain(records.dataclass, kw_only=True)(1)
    assert plain(records.dataclass)(1).a == 1


def test_a_frozen_one_refuses_a_change_and_one_that_is_not_has_no_hash() -> None:
    frozen = plain(records.dataclass, frozen=True)(a=1)
    with pytest.raises(FrozenInstanceError, match="cannot assign to field 'a'"):
        frozen.a = 2
    with pytest.raises(FrozenInstanceError, match="cannot delete field 'a'"):
        del frozen.a
    changing = plain(records.dataclass)(a=1)
    changing.a = 2
    assert changing.a == 2
    with pytest.raises(TypeError, match="unhashable"):
        hash(changing)


@records.dataclass(frozen=True, slots=True)
class Pair:
    """Two values; `note` is no part of what it is."""

    left: object
    right: object
    note: dict[str, str] = field(default_factory=dict, hash=False)
    both: str = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "both", f"{self.left}{self.right}")


@records.dataclass(slots=True)
class Nothing:
    """No field at all."""


@records.dataclass(slots=True)
class Base:
    """A class, and what adds to it."""

    a: int = 0


@records.dataclass(slots=True)
class More(Base):
    """Its field comes second."""

    b: int = 0

    def __repr__(self) -> str:
        return "its own"


def test_hash_and_what_comes_after_init() -> None:
    assert hash(Pair(1, 2, {"a": "b"})) == hash(Pair(1, 2))
    assert len({Pair(1, 2), Pair(1, 2), Pair(2, 1)}) == 2
    assert Pair(1, 2).both == "12"
    assert Pair(1, 2) != Pair(1, 2, {"a": "b"})


def test_it_goes_through_a_pickle() -> None:
    before = Pair(1, Pair(2, 3))
    after = pickle.loads(pickle.dumps(before))
    assert (after, after.both) == (before, before.both)


def test_no_field_and_a_field_more() -> None:
    assert Nothing() == Nothing()
    assert repr(Nothing()) == "Nothing()"
    assert More(1, 2).a == 1
    assert More(1, 2) != Base(1)
    assert repr(More(1, 2)) == "its own"


def test_a_match() -> None:
    match Pair(1, 2):
        case Pair(1, right):
            assert right == 2
        case _:
            pytest.fail("it is one")


def test_one_that_holds_itself_can_be_shown() -> None:
    held: list[object] = []
    pair = Pair(held, 1)
    held.append(pair)
    assert repr(pair) == "Pair(left=[...], right=1, note={})"
