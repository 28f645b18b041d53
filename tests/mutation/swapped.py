"""Puts a mutant into modules that are loaded: no copy of the checkout, no compiler, nothing to import again.

Functions and methods keep who they are and get the code of the changed text, so that whoever has imported one has the
mutant, too; constants of the module are changed wherever they were imported to. Called in a copy of the process that
ends with the mutant. State: what it changes.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import sys
from collections.abc import Iterator
from types import FunctionType, ModuleType

from tests.mutation.mutant import MET, ROOT, Mutant

CONSTANTS = (int, float, str, bytes, tuple, frozenset)


def put_in(mutant: Mutant, *, has_edit: bool = True) -> None:
    """Have this mutant in this process, for good; or only the mark of where it is."""
    setattr(builtins, MET, _pass_over)
    put_in_text(mutant.path, mutant.marked(has_edit=has_edit))


def put_in_text(path: str, text: str) -> None:
    """Have the functions and constants of a file say what this text says."""
    name = f"burrowmq.{path.removesuffix('.py').replace('/', '.')}"
    module = importlib.import_module(name)
    changed = ModuleType(name)
    changed.__file__ = str(ROOT / path)
    exec(compile(text, changed.__file__, "exec"), changed.__dict__)
    functions = dict(_functions(vars(module), name))
    for key, other in _functions(vars(changed), name):
        one = functions[key]
        one.__code__ = other.__code__
        one.__defaults__, one.__kwdefaults__ = other.__defaults__, other.__kwdefaults__
    for key, value in vars(changed).items():
        if isinstance(value, CONSTANTS) and vars(module).get(key) != value:
            _change(key, vars(module).get(key), value)


def _pass_over() -> None:
    """Nobody wants to know."""


def _change(name: str, old: object, new: object) -> None:
    for key, module in list(sys.modules.items()):
        if key.startswith("burrowmq.") and vars(module).get(name) is old:
            setattr(module, name, new)


def _functions(names: dict[str, object], module: str) -> Iterator[tuple[str, FunctionType]]:
    """The functions and methods that a module defines, by their names."""
    for value in list(names.values()):
        if isinstance(value, type) and value.__module__ == module:
            yield from _functions(dict(vars(value)), module)
            continue
        parts = (value, *(getattr(value, part, None) for part in ("__func__", "fget", "fset")))
        if isinstance(value, functools.cached_property):
            parts = (value.func,)
        for part in parts:
            inner = getattr(part, "__wrapped__", part)
            if isinstance(inner, FunctionType) and inner.__module__ == module:
                yield inner.__qualname__, inner
