"""One run of a command: its arguments, its options, the node, and its output.

State: what was parsed. Commands get this and nothing else; they print through it so that -q, -s and machine-readable
formatters silence banners in one place.
"""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from typing import Any

from burrowmq.cli import render
from burrowmq.cli.client import NodeClient
from burrowmq.cli.errors import bad_option
from burrowmq.cli.registry import WITHOUT_APP


@dataclass(slots=True)
class Invocation:
    """What a command function is given."""

    program: str
    name: str
    args: list[str]
    values: dict[str, str]
    flags: set[str]
    node: NodeClient

    @property
    def vhost(self) -> str:
        """-p, or the default."""
        return self.values.get("vhost", "/")

    @property
    def formatter(self) -> str:
        """--formatter, or table."""
        return self.values.get("formatter", "table")

    @property
    def is_machine_readable(self) -> bool:
        """Whether a program reads the output."""
        return self.formatter in render.MACHINE_READABLE

    def banner(self, text: str) -> None:
        """Print a line about what is being done, unless a program reads the output or -q or -s was given.

        Raises: NotRunning, so that a command for which the application has to run says nothing else.
        """
        if self.name not in WITHOUT_APP:
            self.node.check_application()
        if not self.is_machine_readable and not self.flags & {"quiet", "silent"}:
            self.say(text)

    def say(self, text: str) -> None:
        """A line of output."""
        sys.stdout.write(text + "\n")

    def rows(self, columns: list[str], rows: list[list[Any]]) -> None:
        """A list in the chosen format."""
        # --silent leaves the head line of csv, as rabbitmqctl's does.
        without = (
            {"no-table-headers"} if self.formatter == "csv" else {"silent", "no-table-headers"}
        )
        headers = not self.flags & without
        for line in render.lines(self.formatter, columns, rows, headers=headers):
            self.say(line)

    def whole_list(self, columns: list[str], rows: list[list[Any]]) -> None:
        """A list that rabbitmqctl prints at once, not row by row: an empty table is an empty line."""
        self.rows(columns, rows)
        if not rows and self.formatter == "table":
            self.say("")

    def number(self, name: str, default: float) -> float:
        """An option that is a number. Raises: CliError 64."""
        text = self.values.get(name)
        if text is None:
            return default
        try:
            number = float(text)
        except ValueError as error:
            raise bad_option(name, text) from error
        if not math.isfinite(number):
            raise bad_option(name, text)
        return number

    def patience_s(self, default: float) -> float:
        """-t, for a command that waits; it may be infinite."""
        if not self.values.get("timeout"):
            return default
        return math.inf if self.node.timeout_s is None else self.node.timeout_s

    def choice(self, name: str, *known: str) -> str | None:
        """An option that is one of a few words. Raises: CliError 64."""
        text = self.values.get(name)
        if text is not None and text not in known:
            raise bad_option(name, text, f"one of {', '.join(known)}")
        return text
