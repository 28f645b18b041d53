"""What can be wrong with a configuration, as values, and the one exception that carries all of it.

`Problem` names one thing that is wrong and where; `ConfigError` is raised once, by `load.load`, with every
problem found: an operator fixes a file in one go. A warning uses the same shape and does not stop a start.

Invariant: a problem never repeats the value of a key whose name says that it is a password.
"""

from __future__ import annotations

from burrowmq.records import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing that is wrong: `source` is a file's path, `--set`, or `environment`; `line` 0 when there is none."""

    source: str
    line: int
    key: str
    reason: str
    nearest: tuple[str, ...] = ()

    def __str__(self) -> str:
        place = f"{self.source}:{self.line}" if self.line else self.source
        subject = f"{self.key}: " if self.key else ""
        hint = f"; did you mean {' or '.join(self.nearest)}?" if self.nearest else ""
        return f"{place}: {subject}{self.reason}{hint}"


class ConfigError(Exception):
    """The configuration cannot be used; `problems` holds everything that is wrong with it, in reading order."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__("\n".join(str(problem) for problem in problems))
        self.problems = problems
