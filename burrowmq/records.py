"""`dataclass` and `NamedTuple`, made in a fraction of the time: a start loads 170 of these classes.

The standard library generates and compiles up to seven functions for each of them. Here one is, `__init__` or `__new__`,
when the first instance is made; `==`, `hash`, `repr` and what refuses a change are the same functions for all classes.
What the standard library knows of a class is made when somebody asks for it, as `fields`, `replace` and `asdict` do.
What a class can do is the same: those, `match`, `copy` and `pickle` take it for what it is, and type checkers see the
standard ones. Only what this code base uses is here: a `dataclass` is called and has slots; no `order`, no `InitVar`.

Owns no state. Whatever a start loads has both from here; what nobody waits for may have the others.
"""

from __future__ import annotations

import collections
import dataclasses
from collections.abc import Callable, Iterable
from dataclasses import MISSING, Field, FrozenInstanceError, field
from operator import attrgetter
from reprlib import recursive_repr
from typing import TYPE_CHECKING, Any, Self

Fields = dict[str, Field[Any]]  # of any type each
_set = object.__setattr__
_new = tuple.__new__
_getter: Any = vars(collections)["_tuplegetter"]
"""What named tuples are read by, in C: faster than any property."""
_OF_THE_CLASS = ("ClassVar", "typing.ClassVar")


def _compiled(
    name: str, arguments: list[str], lines: list[str], names: dict[str, object]
) -> Any:  # Any: a function
    body = "\n ".join(lines)
    exec(f"def {name}({', '.join(arguments)}):\n {body}", names)  # noqa: S102 - the names of fields, from our own source
    return names[name]


# -- dataclass ----------------------------------------------------------------------------------------------------------


class Shape:
    """What a class made by `dataclass` is; its attribute `_shape`."""

    __slots__ = (
        "_compared",
        "_fields",
        "_hashed",
        "inherited",
        "is_frozen",
        "is_kw_only",
        "made",
        "own",
    )
    made: type

    def __init__(
        self, inherited: list[Shape], own: dict[str, Any], *, is_frozen: bool, is_kw_only: bool
    ) -> None:
        self.inherited = inherited
        self.own = own
        """What is written in the class, by name: a default of any type, a `Field`, or MISSING."""
        self.is_frozen = is_frozen
        self.is_kw_only = is_kw_only
        self._fields: Fields | None = None
        self._compared: Callable[[object], object] | None = None
        self._hashed: Callable[[object], object] | None = None

    @property
    def fields(self) -> Fields:
        """All of them in their order."""
        if self._fields is None:
            fields: Fields = {}
            for shape in self.inherited:
                fields |= shape.fields
            for name, written in self.own.items():
                found = written if isinstance(written, Field) else field(default=written)
                if found.kw_only is MISSING:
                    found.kw_only = self.is_kw_only
                fields[name] = found
            self._fields = fields  # when it is whole: another thread may make an instance meanwhile
        return self._fields

    def compared(self, record: object) -> object:
        """What two of a class are compared by."""
        if self._compared is None:
            self._compared = _values([name for name, each in self.fields.items() if each.compare])
        return self._compared(record)

    def hashed(self, record: object) -> object:
        """What they are found by."""
        if self._hashed is None:
            names = [
                name
                for name, each in self.fields.items()
                if (each.compare if each.hash is None else each.hash)
            ]
            self._hashed = _values(names)
        return self._hashed(record)

    def constructor(self) -> Callable[..., None]:
        """`__init__`, the one method that is worth generating, since its calls are what costs later."""
        names: dict[str, object] = {"_set": _set, "_MISSING": MISSING}
        positional: list[str] = []
        by_keyword: list[str] = []
        body: list[str] = []
        for name, each in self.fields.items():
            argument = value = name
            if each.default_factory is not MISSING:
                names[f"_make_{name}"] = each.default_factory
                argument = f"{name}=_MISSING"
                value = f"_make_{name}()"
                if each.init:
                    value = f"{value} if {name} is _MISSING else {name}"
            elif each.default is not MISSING:
                names[f"_default_{name}"] = each.default
                argument = f"{name}=_default_{name}"
                if not each.init:
                    value = f"_default_{name}"
            elif not each.init:
                continue  # __post_init__ sets it
            if each.init:
                (by_keyword if each.kw_only else positional).append(argument)
            body.append(
                f"_set(self, {name!r}, {value})" if self.is_frozen else f"self.{name} = {value}"
            )
        if hasattr(self.made, "__post_init__"):
            body.append("self.__post_init__()")
        arguments = ["self", *positional, *(["*", *by_keyword] if by_keyword else ())]
        init: Callable[..., None] = _compiled("__init__", arguments, body or ["pass"], names)
        return init

    def asked(self, what: str) -> object:
        """What an attribute of the class would be, had the standard library made it."""
        if what == "__match_args__":
            return tuple(
                name for name, each in self.fields.items() if each.init and not each.kw_only
            )
        body = {name: written for name, written in self.own.items() if written is not MISSING}
        body["__annotations__"] = {name: self.made.__annotations__[name] for name in self.own}
        body["__doc__"] = "As any other."  # what has none is given one, slowly
        make: Callable[[type], type] = dataclasses.dataclass(
            init=False,
            repr=False,
            eq=False,
            frozen=self.is_frozen and what == _PARAMETERS,
            kw_only=self.is_kw_only,
        )
        found: Any = getattr(make(type(self.made.__name__, (), body)), what)
        if what == _FIELDS:
            for shape in reversed(self.inherited):
                found = getattr(shape.made, what) | found
        return found


class _Asked:
    """An attribute of the class that the standard library looks at, made when it does."""

    def __init__(self, shape: Shape, name: str) -> None:
        self._shape = shape
        self._name = name

    def __get__(self, record: object, owner: type) -> object:
        found = self._shape.asked(self._name)
        setattr(self._shape.made, self._name, found)
        return found


_FIELDS = "__dataclass_fields__"
_PARAMETERS = "__dataclass_params__"


def _values(names: list[str]) -> Callable[[object], object]:
    return attrgetter(*names) if names else lambda record: ()


# In these methods, Any is an instance of whatever class they are in.


def _equal(self: Any, other: Any) -> object:
    if other.__class__ is not self.__class__:
        return NotImplemented
    shape: Shape = self._shape
    return self is other or shape.compared(self) == shape.compared(other)


def _hash(self: Any) -> int:
    return hash(self._shape.hashed(self))


@recursive_repr()
def _represent(self: Any) -> str:
    shown = [name for name, each in self._shape.fields.items() if each.repr]
    values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
    return f"{self.__class__.__qualname__}({values})"


def _refuse_set(self: object, name: str, value: object) -> None:
    raise FrozenInstanceError(f"cannot assign to field {name!r}")


def _refuse_delete(self: object, name: str) -> None:
    raise FrozenInstanceError(f"cannot delete field {name!r}")


def _state(self: Any) -> list[object]:
    return [getattr(self, name) for name in self._shape.fields]


def _set_state(self: Any, state: list[object]) -> None:
    for name, value in zip(self._shape.fields, state, strict=True):
        _set(self, name, value)


def _replaced(self: Any, /, **changes: object) -> object:
    return dataclasses.replace(self, **changes)


_METHODS = {
    "__repr__": _represent,
    "__eq__": _equal,
    "__hash__": None,
    "__replace__": _replaced,  # for copy.replace of Python 3.13
}
_FROZEN = {
    **_METHODS,
    "__hash__": _hash,
    "__setattr__": _refuse_set,
    "__delattr__": _refuse_delete,
    # Without a __dict__, copies are made by __setattr__.
    "__getstate__": _state,
    "__setstate__": _set_state,
}


def _record(cls: type, *, is_frozen: bool, is_kw_only: bool) -> type:
    """The class once more, with slots and methods: slots can only be given to a class that is being made."""
    namespace = cls.__dict__
    own = {
        name: namespace.get(name, MISSING)
        for name, kind in cls.__annotations__.items()
        if not str(kind).startswith(_OF_THE_CLASS)
    }
    inherited = [
        base.__dict__["_shape"] for base in cls.__mro__[:0:-1] if "_shape" in base.__dict__
    ]
    shape = Shape(inherited, own, is_frozen=is_frozen, is_kw_only=is_kw_only)

    def __init__(self: object, *positional: object, **named: object) -> None:  # noqa: N807 - it becomes that method
        """Until its first call, which puts the generated one in its place: most classes are never asked."""
        made.__init__ = init = shape.constructor()
        init(self, *positional, **named)

    body: dict[str, object] = {
        "__init__": __init__,
        "__slots__": tuple(name for name in own if not any(name in each.own for each in inherited)),
        "__match_args__": _Asked(shape, "__match_args__"),
        _FIELDS: _Asked(shape, _FIELDS),
        _PARAMETERS: _Asked(shape, _PARAMETERS),
        **(_FROZEN if is_frozen else _METHODS),
    }
    body |= {name: value for name, value in namespace.items() if name not in own}
    for name in ("__dict__", "__weakref__"):
        body.pop(name, None)
    made: Any = type(cls)(
        cls.__name__, cls.__bases__, {**body, "__qualname__": cls.__qualname__, "_shape": shape}
    )
    shape.made = made
    return shape.made


def _dataclass(
    *, frozen: bool = False, slots: bool, kw_only: bool = False
) -> Callable[[type], type]:
    """What `dataclasses.dataclass` is, with the arguments that are used here."""
    if not slots:
        raise TypeError("a record has slots")

    def made(cls: type) -> type:
        return _record(cls, is_frozen=frozen, is_kw_only=kw_only)

    return made


# -- NamedTuple ---------------------------------------------------------------------------------------------------------


class _Named(tuple[Any, ...]):
    """What all named tuples have; each has `_fields`, `_field_defaults` and a property for each field."""

    __slots__ = ()
    _fields: tuple[str, ...]

    @classmethod
    def _make(cls, values: Iterable[object]) -> Self:
        made = _new(cls, values)
        if len(made) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
        return made

    def _replace(self, /, **changes: object) -> Self:
        made = self._make(map(changes.pop, self._fields, self))
        if changes:
            raise TypeError(f"Got unexpected field names: {list(changes)!r}")
        return made

    __replace__ = _replace

    def _asdict(self) -> dict[str, object]:
        return dict(zip(self._fields, self, strict=True))

    def __getnewargs__(self) -> tuple[object, ...]:
        return tuple(self)

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())
        return f"{self.__class__.__name__}({values})"


class _Naming(type):
    """Makes of a class body a subclass of `_Named`, which is no instance of this."""

    def __new__(cls, name: str, _bases: tuple[type, ...], body: dict[str, Any]) -> type:
        fields = tuple(body.get("__annotations__", ()))
        defaults = {field: body.pop(field) for field in fields if field in body}

        def __new__(cls: type, /, *positional: object, **named: object) -> object:  # noqa: N807 - it becomes that method
            """Until its first call, as a record's `__init__` is."""
            arguments = [f"{each}=_default_{each}" if each in defaults else each for each in fields]
            names = {
                "_new": _new,
                **{f"_default_{each}": value for each, value in defaults.items()},
            }
            values = "".join(f"{each}, " for each in fields)
            new = _compiled(
                "__new__", ["_cls", *arguments], [f"return _new(_cls, ({values}))"], names
            )
            made.__new__ = staticmethod(new)
            return new(cls, *positional, **named)

        made: Any = type(
            name,
            (_Named,),
            {
                **body,
                **{field: _getter(place, "") for place, field in enumerate(fields)},
                "__slots__": (),
                "__match_args__": fields,
                "__new__": __new__,
                "_fields": fields,
                "_field_defaults": defaults,
            },
        )
        named_tuple: type = made
        return named_tuple


if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass  # noqa: PLC0414 - given on, as this module's own
    from typing import NamedTuple as NamedTuple  # noqa: PLC0414 - as above
else:
    dataclass = _dataclass
    NamedTuple = type.__new__(_Naming, "NamedTuple", (), {})
