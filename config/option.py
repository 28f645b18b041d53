"""How a key is declared: its name, what reads its value, its default, and what it means.

`schema` and `store` use `option` to declare keys that fill one field each; `tls` and `compose` list keys that make a
value together. Owns no state.

Invariant: a default is written in the file's own syntax and goes through the same reader as a value from a file.
"""

from __future__ import annotations

import dataclasses
from typing import Any, TypeVar, cast

from burrowmq.config.units import Reader
from burrowmq.records import dataclass

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Option:
    """One key: `default` in the file's syntax (None: unset); `ours` when RabbitMQ has no such key in this file.

    In `name`, `$name` and the like stand for what the operator chooses; a `.$n` may be given several times.
    """

    name: str
    read: Reader[Any]
    default: str | None
    doc: str
    ours: bool = False


def option(name: str, read: Reader[T], default: str | None, doc: str, *, ours: bool = False) -> T:
    """Declare the field that the key `name` fills; the declared type is the reader's."""
    value = None if default is None else read(default)
    declared = Option(name, read, default, doc, ours)
    return cast("T", dataclasses.field(default=value, metadata={"option": declared}))
