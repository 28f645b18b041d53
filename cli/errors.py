"""Exit codes (BSD sysexits, as rabbitmqctl uses them) and the one exception that ends a command.

Owns no state. Commands raise `CliError`; `cli.__main__` prints its text to standard error and exits with its code.
"""

from __future__ import annotations

OK = 0
USAGE = 64
DATAERR = 65
NOUSER = 67
UNAVAILABLE = 69
SOFTWARE = 70
OSERR = 71
IOERR = 74
TEMPFAIL = 75


class CliError(Exception):
    """A command that did not work: the text to print and the exit code."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
        self.text = text


def failure(text: str, code: int = UNAVAILABLE) -> CliError:
    """A refusal by the node: `Error:` on a line of its own, then the reason."""
    return CliError(code, f"Error:\n{text}")


def bad_option(name: str, value: str, hint: str = "") -> CliError:
    """A value that an option does not take; `hint` says what it takes."""
    told = f"Invalid options for this command:\n\n--{name} : {value}"
    return CliError(USAGE, f"{told} ({hint})" if hint else told)


def bad_argument(text: str, code: int = DATAERR) -> CliError:
    """An argument that cannot be right."""
    return CliError(code, f"Error (argument validation): {text}")
