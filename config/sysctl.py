"""The `a.b.c = value` format of rabbitmq.conf: text -> settings in order, and the lines that do not parse.

`#` starts a comment, blank lines are free, there are no sections. A value may be put in single quotes when it
holds a `#` or outer spaces. `include FILE` stands for the lines of another file. Called by `sources` for each file;
no state.

Invariant: every line of the input is a comment, a setting or a problem. Source: cuttlefish's conf grammar.
"""

from __future__ import annotations

import re

from burrowmq.config.errors import Problem
from burrowmq.config.setting import Setting
from burrowmq.records import NamedTuple

_KEY = re.compile(r"[A-Za-z0-9_\-@/\\]+(\.[A-Za-z0-9_\-@/\\]+)*\Z")


class Include(NamedTuple):
    """A line that names another file, or several with a pattern."""

    path: str
    source: str
    line: int


_LINE_END = re.compile(r"\r\n?|\n")
_INCLUDE = re.compile(r"include\s+([^=#\s][^=#]*?)\s*(?:#.*)?\Z")


def parse(content: str, source: str) -> tuple[list[Setting | Include], list[Problem]]:
    """Return the settings of one file in order, duplicates included, and a problem for each bad line."""
    settings: list[Setting | Include] = []
    problems: list[Problem] = []
    # Not splitlines: to it, some characters that an editor shows within a comment or a value end the line.
    lines = _LINE_END.split(content.removeprefix("\ufeff"))
    for number, line in enumerate(lines, start=1):
        stripped = line.strip()
        if not stripped or stripped.startswith("#"):
            continue
        include = _INCLUDE.match(stripped)
        if include is not None:
            settings.append(Include(include[1].strip("'\""), source, number))
            continue
        found = setting(stripped, source, number)
        if isinstance(found, Setting):
            settings.append(found)
        else:
            problems.append(found)
    return settings, problems


def setting(line: str, source: str, number: int) -> Setting | Problem:
    """Return the setting that one line holds, or the problem with it."""
    key, equals, rest = line.partition("=")
    key = key.strip()
    if key.startswith("["):
        return _problem(
            source, number, "syntax error: this format has no sections, write the whole key"
        )
    if not equals:
        return _problem(source, number, "syntax error: expected `key = value`")
    if not _KEY.match(key):
        return _problem(source, number, f"syntax error: {key!r} is not a key")
    value = _value(rest.strip())
    if value is None:
        return _problem(source, number, f"syntax error: the quoted value of {key} does not end")
    if not value:
        return _problem(source, number, f"syntax error: {key} has no value")
    return Setting(key, value, source, number)


def _value(text: str) -> str | None:
    """Return the value without its comment or quotes; None for a quote that is never closed."""
    if not text.startswith("'"):
        return text.partition("#")[0].strip()
    inner, quote, after = text[1:].partition("'")
    if not quote or (after.strip() and not after.strip().startswith("#")):
        return None
    return inner


def _problem(source: str, number: int, reason: str) -> Problem:
    return Problem(source=source, line=number, key="", reason=reason)
