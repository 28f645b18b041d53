"""`dataclass`, made in a third of the time: a start loads 120 of these classes, which took a third of its imports.

The standard library generates and compiles up to seven functions for each class. Here one is, `__init__`, when the
first instance is made; the others (`==`, `hash`, `repr`, what refuses a change) are closures over the fields' names.
What a class can do is the same: `fields`, `replace`, `asdict`, `match`, `copy` and `pickle` take it for what it is, and
type checkers see the standard decorator. Only what this code base uses is here: no `order`, no `InitVar`, and it is
always called.

Owns no state. Whatever a start loads has its `dataclass` from here; what nobody waits for may have the other one.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from dataclasses import MISSING, Field, FrozenInstanceError
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any

Fields = tuple[Field[Any], ...]  # of any type each
_set = object.__setattr__


def _constructor(made: Any, found: Fields, *, is_frozen: bool) -> object:  # Any: any class
    """`__init__` until its first call, which puts the generated one in its place: most classes are never asked."""

    def __init__(self: object, *positional: object, **named: object) -> None:  # noqa: N807 - it becomes that method
        made.__init__ = init = _generated(made, found, is_frozen=is_frozen)
        init(self, *positional, **named)

    return __init__


def _generated(made: type, found: Fields, *, is_frozen: bool) -> Callable[..., None]:
    """The one method that is worth generating, since its calls are what costs later."""
    names: dict[str, Any] = {"_set": _set, "_MISSING": MISSING}
    positional: list[str] = []
    by_keyword: list[str] = []
    body: list[str] = []
    for each in found:
        name, value = each.name, each.name
        if each.default_factory is not MISSING:
            names[f"_make_{name}"] = each.default_factory
            value = f"_make_{name}()"
            if each.init:
                value = f"{value} if {name} is _MISSING else {name}"
        elif each.default is not MISSING:
            names[f"_default_{name}"] = each.default
            if not each.init:
                value = f"_default_{name}"
        elif not each.init:
            continue  # __post_init__ sets it
        if each.init:
            argument = name
            if each.default_factory is not MISSING:
                argument = f"{name}=_MISSING"
            elif each.default is not MISSING:
                argument = f"{name}=_default_{name}"
            (by_keyword if each.kw_only else positional).append(argument)
        body.append(f"_set(self, {name!r}, {value})" if is_frozen else f"self.{name} = {value}")
    if hasattr(made, "__post_init__"):
        body.append("self.__post_init__()")
    arguments = ", ".join(["self", *positional, *(["*", *by_keyword] if by_keyword else ())])
    lines = "\n ".join(body or ["pass"])
    exec(f"def __init__({arguments}):\n {lines}", names)  # noqa: S102 - the names of fields, from our own source
    init: Callable[..., None] = names["__init__"]
    return init


def _values(names: list[str]) -> Callable[[object], object]:
    """What two of a class are compared by."""
    return attrgetter(*names) if names else lambda record: ()


def _equality(compared: Callable[[object], object]) -> object:
    def __eq__(self: object, other: object) -> bool:  # noqa: N807 - it becomes that method
        if other.__class__ is not self.__class__:
            return NotImplemented
        return self is other or compared(self) == compared(other)

    return __eq__


def _hashing(hashed: Callable[[object], object]) -> object:
    def __hash__(self: object) -> int:  # noqa: N807 - as above
        return hash(hashed(self))

    return __hash__


def _representation(shown: list[str]) -> object:
    @recursive_repr()
    def __repr__(self: object) -> str:  # noqa: N807 - as above
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{self.__class__.__qualname__}({values})"

    return __repr__


def _refuse_set(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:  # Any: an instance of whatever class this is a method of
    return [getattr(self, each.name) for each in dataclasses.fields(self)]


def _set_state(self: Any, state: list[object]) -> None:  # Any: as above
    for each, value in zip(dataclasses.fields(self), state, strict=True):
        _set(self, each.name, value)


def _with_methods(cls: type, *, frozen: bool, slots: bool, kw_only: bool) -> type:
    """The class as the standard library makes it without methods, and these."""
    make: Callable[[type], type] = dataclasses.dataclass(
        init=False, repr=False, eq=False, slots=slots, kw_only=kw_only
    )
    made = make(cls)
    found: Fields = dataclasses.fields(made)
    methods: dict[str, object] = {
        "__init__": _constructor(made, found, is_frozen=frozen),
        "__repr__": _representation([each.name for each in found if each.repr]),
        "__eq__": _equality(_values([each.name for each in found if each.compare])),
        "__hash__": None,
    }
    if frozen:
        hashed = [each.name for each in found if (each.compare if each.hash is None else each.hash)]
        methods["__hash__"] = _hashing(_values(hashed))
        methods |= {"__setattr__": _refuse_set, "__delattr__": _refuse_delete}
        if slots:  # without a __dict__, copies are made by __setattr__
            methods |= {"__getstate__": _state, "__setstate__": _set_state}
    for name, method in methods.items():
        if name not in cls.__dict__:
            setattr(made, name, method)
    return made


def _dataclass(
    *, frozen: bool = False, slots: bool = False, kw_only: bool = False
) -> Callable[[type], type]:
    """What `dataclasses.dataclass` is, with the arguments that are used here."""

    def made(cls: type) -> type:
        return _with_methods(cls, frozen=frozen, slots=slots, kw_only=kw_only)

    return made


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - given on, as this module's own
else:
    dataclass = _dataclass
