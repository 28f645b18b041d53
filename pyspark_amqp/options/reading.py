"""Options by name: their texts become values, and everything that is wrong with them is reported at once.

State: an OptionReader owns the options that nobody asked for yet, and the problems so far. Called by the
modules that know which options there are; `finish` is the last call.

    whole numbers   0 and up, `_` between digits allowed
    sizes           octets, or with k, m, g (1024 each)
    durations       with ms, s, m, h, d; a bare number has the unit of the option's name
    flags           true, false
    lists           separated by commas, or a JSON array of strings where a name has a comma in it

Invariant: no text ever repeats the value of an option whose name says that it is secret.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

_SIZE_UNITS: Final = {"": 1, "k": 1 << 10, "m": 1 << 20, "g": 1 << 30}
_TIME_UNITS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_SIZE: Final = re.compile(r"([0-9_]+)\s*([kmg]?)b?", re.IGNORECASE)
_TIME: Final = re.compile(r"([0-9_]+)\s*(ms|s|m|h|d)", re.IGNORECASE)
_NUMBER: Final = re.compile(r"[0-9](_?[0-9]){0,18}")
"""As many digits as 64 bits hold: thousands of them Python refuses to read."""


Kinds = Callable[[], Mapping[str, Sequence[str]]]
"""Gives the names of options that each kind of read asks for."""


class BadOptions(ValueError):
    """Options that cannot be used; `problems` has a sentence for each.

    `fitting_count`: how many of the query's options are known there, or nearly: which kind of read was meant.
    """

    def __init__(self, what: str, problems: Sequence[str], fitting_count: int = 0) -> None:
        super().__init__(what, problems, fitting_count)
        self.what = what
        self.problems = list(problems)
        self.fitting_count = fitting_count

    def __str__(self) -> str:
        if len(self.problems) == 1:
            return f"{self.what}: {self.problems[0]}"
        return "\n  - ".join(
            [f"{self.what}: {len(self.problems)} options are wrong", *self.problems]
        )


class OptionReader:
    """Gives out options by name and notes what is wrong with them."""

    def __init__(self, options: Mapping[str, str]) -> None:
        self._left = {name.lower(): str(value) for name, value in options.items()}
        self._asked: dict[str, str] = {}
        self.problems: list[str] = []

    def __contains__(self, name: str) -> bool:
        """Whether the query sets the option; asking makes it a known one."""
        self._asked.setdefault(name.lower(), name)
        return name.lower() in self._left

    def text(self, name: str, default: str | None = None) -> str | None:
        """Return the option's text; an empty one counts as not set."""
        self._asked.setdefault(name.lower(), name)
        return self._left.get(name.lower(), "").strip() or default

    def exact(self, name: str, default: str) -> str:
        """Return the option's text with the spaces around it, not the line end of a file; blanks count as not set."""
        return default if self.text(name) is None else self._left[name.lower()].rstrip("\r\n")

    def required(self, name: str, why: str) -> str:
        """Return the option's text; without it, note why it must be there."""
        found = self.text(name)
        if found is None:
            self.problems.append(f"option '{name}' is missing: {why}")
            return ""
        return found

    def number(self, name: str, default: int | None, *, least: int, most: int) -> int | None:
        """Return a whole number within bounds."""
        found = self.text(name)
        if found is None:
            return default
        if _NUMBER.fullmatch(found) and least <= int(found) <= most:
            return int(found)
        self.refuse(name, found, f"no whole number from {least} to {most}")
        return default

    def size(self, name: str, default: int | None, *, least: int = 1) -> int | None:
        """Return octets: `500m`."""
        found = self.text(name)
        if found is None:
            return default
        parts = _SIZE.fullmatch(found)
        if parts is not None and _NUMBER.fullmatch(parts[1]):
            octets = int(parts[1]) * _SIZE_UNITS[parts[2].lower()]
            if octets >= least:
                return octets
        self.refuse(name, found, f"no size of at least {least} octets (examples: 65536, 64m, 1g)")
        return default

    def milliseconds(self, name: str, default_s: float, *, least_ms: int = 0) -> float:
        """Return seconds from an option whose bare number is milliseconds."""
        found = self.text(name)
        if found is None:
            return default_s
        seconds = int(found) / 1000 if _NUMBER.fullmatch(found) else _seconds(found)
        if seconds is None or seconds * 1000 < least_ms:
            self.refuse(name, found, f"no time of at least {least_ms} ms (examples: 2000, 2s, 1m)")
            return default_s
        return seconds

    def duration(self, name: str, default_s: float) -> float:
        """Return seconds from a text with a unit: `10m`, `7d`."""
        found = self.text(name)
        if found is None:
            return default_s
        seconds = 0.0 if found == "0" else _seconds(found)
        if seconds is None:
            self.refuse(name, found, "no duration (examples: 30s, 10m, 12h, 7d)")
            return default_s
        return seconds

    def flag(self, name: str, *, default: bool) -> bool:
        """Return whether the option is true."""
        return self.choice(name, ("true", "false"), "true" if default else "false") == "true"

    def choice(self, name: str, values: Sequence[str], default: str) -> str:
        """Return one of the values, written as in `values`."""
        found = self.text(name)
        if found is None:
            return default
        known = {value.lower(): value for value in values}
        if found.lower() not in known:
            self.refuse(name, found, f"none of {', '.join(values)}")
            return default
        return known[found.lower()]

    def names(self, name: str) -> tuple[str, ...]:
        """Return a list of names, each once, in their order; none when it is not set."""
        found = self.text(name)
        if found is None:
            return ()
        # In JSON names are exact: a queue's may begin or end with a space.
        is_json = found.startswith("[")
        listed = _json_names(found) if is_json else [one.strip() for one in found.split(",")]
        if listed is None:
            self.refuse(name, found, "no JSON array of strings")
            return ()
        kept = tuple(dict.fromkeys(one for one in listed if one))
        if not kept:
            self.refuse(name, found, "a list without a name in it")
        return kept

    def refuse(self, name: str, value: str, reason: str) -> None:
        """Note a value that cannot be used."""
        is_secret = "password" in name.lower() or "uri" in name.lower()
        shown = "(not shown)" if is_secret else f"'{value[:80]}'"
        self.problems.append(f"option '{name}': {shown} is {reason}")

    @property
    def asked(self) -> tuple[str, ...]:
        """The names that were asked for."""
        return tuple(self._asked.values())

    def finish(
        self, what: str, *, elsewhere: Collection[str] = (), kinds: Kinds | None = None
    ) -> None:
        """Raise if anything was wrong, or an option was set that nobody asked for.

        `elsewhere` are options that other parts of Spark read, `kinds` gives what other kinds of reads ask for, for the
        text. Raises: BadOptions.
        """
        allowed = self._asked.keys() | {name.lower() for name in elsewhere}
        unknown = [name for name in self._left if name not in allowed]
        others = kinds() if unknown and kinds is not None else {}
        self.problems += [self._unknown(name, others) for name in unknown]
        if self.problems:
            strange = [name for name in unknown if self._near(name) is None]
            raise BadOptions(what, self.problems, len(self._left) - len(strange))

    def _near(self, name: str) -> str | None:
        near = difflib.get_close_matches(name, self._asked, n=1)
        return self._asked[near[0]] if near else None

    def _unknown(self, name: str, others: Mapping[str, Sequence[str]]) -> str:
        meant = self._near(name)
        at = [kind for kind, names in others.items() if name in {each.lower() for each in names}]
        if at:
            hint = f": it is for {' and '.join(at)}"
        else:
            hint = "" if meant is None else f"; did you mean '{meant}'?"
        return f"option '{name}' is not known here{hint}"


def _seconds(text: str) -> float | None:
    parts = _TIME.fullmatch(text)
    if parts is None or not _NUMBER.fullmatch(parts[1]):
        return None
    return int(parts[1]) * _TIME_UNITS[parts[2].lower()]


def _json_names(text: str) -> list[str] | None:
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    if not isinstance(found, list) or not all(isinstance(one, str) for one in found):
        return None
    return found
