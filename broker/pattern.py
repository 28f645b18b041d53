r"""Regular expressions that operators give (permissions, policies), compiled the way RabbitMQ reads them.

RabbitMQ uses PCRE, searching anywhere in the name. Python's `re` agrees for ordinary patterns; POSIX classes and
`\z` are translated here. Python offers no time limit for a search, so what can be bounded is: names are at most 255
octets, patterns at most `PATTERN_MAX` characters, and a repeat directly inside an unbounded repeat over the
same text (`(a+)+`, exponential) is refused. Owns no state; called by `broker.auth` and `broker.policy`.
"""

from __future__ import annotations

import re

PATTERN_MAX = 2048

_POSIX = {
    "[:alpha:]": "a-zA-Z",
    "[:digit:]": "0-9",
    "[:alnum:]": "a-zA-Z0-9",
    "[:upper:]": "A-Z",
    "[:lower:]": "a-z",
    "[:space:]": r"\s",
    "[:blank:]": r" \t",
    "[:punct:]": r"!-/:-@\[-`{-~",
    "[:xdigit:]": "0-9A-Fa-f",
    "[:word:]": r"\w",
}

# A group whose whole body is one repeated atom, itself repeated without bound: (a+)+, ([a-z]*)*, (?:\w+)+ ...
_NESTED_REPEAT = re.compile(
    r"\((?:\?:)?(?:\[[^\]]*\]|\\.|[^\\()\[\]|])(?:[*+]|\{\d*,\d*\})[?+]?\)(?:[*+]|\{\d*,\})"
)


class BadPattern(ValueError):
    """The text is no usable regular expression."""


def compile_pattern(text: str) -> re.Pattern[str]:
    """Compile an operator's pattern; use it with `search`.

    Raises: BadPattern.
    """
    if len(text) > PATTERN_MAX:
        raise BadPattern(f"longer than {PATTERN_MAX} characters")
    translated = text.replace(r"\z", r"\Z")
    for posix, characters in _POSIX.items():
        translated = translated.replace(posix, characters)
    if _NESTED_REPEAT.search(translated):
        raise BadPattern("a repeat of a repeat takes exponential time")
    try:
        return re.compile(translated)
    except (re.error, RecursionError, OverflowError) as error:
        raise BadPattern(str(error)) from error
