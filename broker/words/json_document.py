"""JSON that comes from outside, read with a bound on how deep it is nested.

Owns no state; called by the HTTP API for the bodies of requests and by `broker.definitions.document` for files. What
was read is printed again later, often from deeper in the call stack, by functions that call themselves for each level.
Without a bound here, a document could be read that cannot be shown or exported. The same goes for NaN and infinite
numbers, which Python takes.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator
from typing import cast

DEPTH_MAX = 200
"""Objects and lists inside each other: more than a definition with the deepest field table needs."""


_SPACE = re.compile(r"[ \t\n\r]*")


class BadJson(ValueError):
    """The text is no JSON, nested deeper than DEPTH_MAX, or has a number that there is not."""


def _refuse(text: str) -> object:
    raise ValueError(f"{text} is no number in JSON")


def _float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text} is too large a number")
    return value


_DECODER = json.JSONDecoder(parse_float=_float, parse_constant=_refuse)


def parse(text: str | bytes) -> object:
    """The value that the text stands for.

    Raises: BadJson.
    """
    try:
        value: object = json.loads(text, parse_float=_float, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise BadJson(str(error)) from error
    _check_depth(value)
    return value


class Reading:
    """The same for a text that may be very long: an object, whose lists are read entry by entry.

    `value` is there when the steps are over.
    """

    def __init__(self, text: bytes) -> None:
        self._bytes = text
        self._text = ""
        self._at = 0
        self.value: object = None

    def steps(self) -> Iterator[None]:
        """Read; after each entry of a list in the object other work may have its turn.

        Raises: BadJson.
        """
        try:
            self._text = self._bytes.decode(json.detect_encoding(self._bytes), "surrogatepass")
            if self._text.startswith("\ufeff"):
                raise BadJson("it begins with a byte order mark")
            self._skip_space()
            if self._text.startswith("{", self._at):
                yield from self._object()
            else:
                self.value = self._one()
            if self._at != len(self._text):
                raise BadJson(f"more after the end, at {self._at}")
        except (ValueError, RecursionError) as error:
            raise BadJson(str(error)) from error

    def _object(self) -> Iterator[None]:
        found: dict[str, object] = {}
        self._take("{")
        if not self._is_next("}"):
            while True:
                name = self._one()
                if not isinstance(name, str):
                    raise BadJson(f"a name must be a text, at {self._at}")
                self._take(":")
                if self._is_next("["):
                    entries = found[name] = list[object]()
                    yield from self._list(entries)
                else:
                    found[name] = self._one()
                if not self._is_next(","):
                    break
                self._take(",")
        self._take("}")
        self.value = found

    def _list(self, entries: list[object]) -> Iterator[None]:
        self._take("[")
        if not self._is_next("]"):
            while True:
                entries.append(self._one())
                yield
                if not self._is_next(","):
                    break
                self._take(",")
        self._take("]")

    def _one(self) -> object:
        """The value that begins here, whole."""
        value, self._at = _DECODER.raw_decode(self._text, self._at)
        self._skip_space()
        _check_depth(value)
        return cast("object", value)

    def _is_next(self, sign: str) -> bool:
        return self._text.startswith(sign, self._at)

    def _take(self, sign: str) -> None:
        if not self._is_next(sign):
            raise BadJson(f"{sign!r} is missing, at {self._at}")
        self._at += 1
        self._skip_space()

    def _skip_space(self) -> None:
        found = _SPACE.match(self._text, self._at)
        assert found is not None  # it matches nothing too
        self._at = found.end()


def _check_depth(value: object) -> None:
    """Refuse nesting beyond DEPTH_MAX; goes level by level, without calling itself."""
    level = [value] if isinstance(value, dict | list) else []
    for _ in range(DEPTH_MAX):
        level = [
            item
            for container in level
            for item in (container.values() if isinstance(container, dict) else container)
            if isinstance(item, dict | list)
        ]
        if not level:
            return
    raise BadJson(f"nested deeper than {DEPTH_MAX} levels")
