r"""Regular expressions that operators and users give (permissions, policies, name filters), in time that is bounded.

RabbitMQ uses PCRE, searching anywhere in the name. `parser` reads that syntax as far as it describes a regular
language, with look-around, which policies use (`^(?!amq\.)`); back references, recursion, conditions and possessive
repeats are refused with a reason. `automaton` answers in time proportional to pattern times name, whatever the pattern
is. Most patterns are so simple that Python's `re` cannot be slow on them: those go there (`backtracking` decides and
writes them in Python's syntax), because it is fifty times faster. Owns no state.

Called by `broker.rules.auth`, `broker.rules.policy` and management. Decision and figures: docs/adr/0012.
"""

from __future__ import annotations

import re

from burrowmq.broker.rules.pattern.automaton import STATES_MAX, Automaton, TooLarge
from burrowmq.broker.rules.pattern.backtracking import NAME_MAX, python_pattern
from burrowmq.broker.rules.pattern.parser import BadPattern, parse

__all__ = ["NAME_MAX", "STATES_MAX", "BadPattern", "Pattern", "compile_pattern"]

PATTERN_MAX = 2048


class Pattern:
    """A compiled expression."""

    __slots__ = ("_automaton", "_regex", "_tree", "text")

    def __init__(self, text: str) -> None:
        self.text = text
        self._tree = parse(text)
        written = python_pattern(self._tree)
        self._regex = None if written is None else re.compile(written)
        # A pattern that `re` answers may be larger than an automaton.
        self._automaton = Automaton(self._tree) if self._regex is None else None

    def is_in(self, name: str) -> bool:
        """Whether the expression matches anywhere in the name; what is longer than `NAME_MAX` is cut there."""
        if len(name) > NAME_MAX:
            name = name[:NAME_MAX]
        if self._regex is not None:
            return self._regex.search(name) is not None
        assert self._automaton is not None
        return self._automaton.is_in(name)


def compile_pattern(text: str) -> Pattern:
    """Compile an operator's pattern.

    Raises: BadPattern.
    """
    if len(text) > PATTERN_MAX:
        raise BadPattern("regular expression is too large", PATTERN_MAX)
    try:
        return Pattern(text)
    except TooLarge as error:
        raise BadPattern("regular expression is too large", len(text)) from error
