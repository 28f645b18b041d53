"""Tests that `dataclass` and `NamedTuple` make what the standard library's make. Covers: burrowmq/records.py."""

from __future__ import annotations

import copy
import dataclasses
import pickle
import threading
from collections.abc import Callable
from dataclasses import FrozenInstanceError, field
from typing import Any, ClassVar
from typing import NamedTuple as StandardNamedTuple

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
        assert one.__replace__(a=9) == dataclasses.replace(one, a=9)
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

    kind: ClassVar[str] = "more"
    b: int = 0

    def __repr__(self) -> str:
        return "its own"


def test_hash_and_what_comes_after_init() -> None:
    assert hash(Pair(1, 2, {"a": "b"})) == hash(Pair(1, 2))
    assert len({Pair(1, 2), Pair(1, 2), Pair(2, 1)}) == 2
    assert Pair(1, 2).both == "12"
    assert Pair(1, 2) != Pair(1, 2, {"a": "b"})


def test_two_threads_make_the_first_instance_at_once() -> None:
    made = plain(records.dataclass)
    shape: Any = made._shape
    found: list[object] = []

    class Between(dict[str, Any]):
        """What is written in the class; between any two of its fields another thread makes an instance."""

        def items(self) -> Any:  # Any: as of a dict
            for item in dict.items(self):
                if threading.current_thread() is threading.main_thread():
                    other = threading.Thread(target=lambda: found.append(made(1)))
                    other.start()
                    other.join()
                yield item

    shape.own = Between(shape.own)
    assert made(1) == made(1)
    assert len(found) == len(shape.own)
    assert all(each == made(1) for each in found)


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
    assert (More.__slots__, More.__match_args__, More.kind) == (("b",), ("a", "b"), "more")


def test_what_the_standard_library_knows_of_one() -> None:
    def said(decorator: Decorator) -> list[object]:
        @decorator(slots=True, frozen=True)
        class First:
            """One that another adds to."""

            a: int
            b: str = field(default="b", kw_only=True, metadata={"unit": "ms"})

        @decorator(slots=True, frozen=True, kw_only=True)
        class Second(First):
            """A field more, and one again with another default."""

            b: str = "c"
            c: list[int] = field(default_factory=list, compare=False)

        assert dataclasses.is_dataclass(First)
        with pytest.raises(
            TypeError, match="cannot inherit non-frozen dataclass from a frozen one"
        ):
            dataclasses.dataclass(type("Third", (First,), {}))
        return [
            [
                (
                    each.name,
                    each.type,
                    each.default,
                    each.kw_only,
                    each.compare,
                    dict(each.metadata),
                )
                for each in found
            ]
            for found in (
                dataclasses.fields(First),
                dataclasses.fields(Second(1)),
                dataclasses.fields(Second),
            )
        ]

    assert said(records.dataclass) == said(dataclasses.dataclass)


def test_a_class_that_its_own_one_inherits_from_is_made_by_its_own_constructor() -> None:
    @records.dataclass(slots=True)
    class Third(Base):
        """It has a constructor, which calls the other one."""

        b: int = 0

        def __init__(self) -> None:
            Base.__init__(self, 3)
            self.b = 4

    assert (Third().a, Third().b, Base(5).a) == (3, 4, 5)


def test_one_without_slots_is_refused() -> None:
    with pytest.raises(TypeError, match="has slots"):
        records.dataclass(slots=False)


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


class Triple(records.NamedTuple):
    """Three values; `note` may be left out."""

    left: int
    right: str
    note: str = "none"
    """Something else."""

    @property
    def both(self) -> str:
        return f"{self.left}{self.right}"


class Theirs(StandardNamedTuple):
    """The same."""

    left: int
    right: str
    note: str = "none"


class Empty(records.NamedTuple):
    """No field at all."""


@pytest.mark.parametrize(
    ("positional", "named"),
    [((1, "a"), {}), ((1,), {"right": "a", "note": "b"}), ((1, "a", "b"), {})],
)
def test_a_named_tuple_is_what_the_standard_one_is(
    positional: tuple[Any, ...], named: dict[str, Any]
) -> None:
    ours, theirs = Triple(*positional, **named), Theirs(*positional, **named)
    assert ours == theirs == tuple(ours)
    assert hash(ours) == hash(theirs)
    assert (ours.left, ours.right, ours.note) == theirs
    assert repr(ours) == repr(theirs).replace("Theirs", "Triple")
    assert ours._asdict() == theirs._asdict()
    changed = ours._replace(right="z")
    assert (changed, type(changed)) == (theirs._replace(right="z"), Triple)
    assert ours.__replace__(right="z") == changed
    assert Triple._make(theirs) == ours
    assert (Triple._fields, Triple._field_defaults) == (Theirs._fields, Theirs._field_defaults)
    assert Triple.__match_args__ == Theirs.__match_args__
    assert ours.both == "1a"
    for copied in (copy.copy(ours), copy.deepcopy(ours), pickle.loads(pickle.dumps(ours))):
        assert (copied, type(copied)) == (ours, Triple)
    assert not hasattr(ours, "__dict__")


@pytest.mark.parametrize("kind", [Triple, Theirs])
@pytest.mark.parametrize(
    ("positional", "named"), [((), {}), ((1,), {}), ((1, "a", "b", "c"), {}), ((1, "a"), {"z": 1})]
)
def test_arguments_that_a_named_tuple_refuses(
    kind: Any, positional: tuple[object, ...], named: dict[str, object]
) -> None:
    with pytest.raises(TypeError):
        kind(*positional, **named)


@pytest.mark.parametrize("kind", [Triple, Theirs])
def test_changes_that_a_named_tuple_refuses(kind: Any) -> None:
    one = kind(1, "a")
    with pytest.raises(AttributeError):
        one.left = 2
    with pytest.raises(AttributeError):
        one.other = 2
    with pytest.raises((TypeError, ValueError), match="Got unexpected field names"):
        one._replace(other=2)
    with pytest.raises(TypeError, match="Expected 3 arguments, got 2"):
        kind._make([1, 2])


def test_a_named_tuple_without_a_field() -> None:
    assert Empty() == ()
    assert repr(Empty()) == "Empty()"
