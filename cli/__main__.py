"""burrowctl: argv to an exit status.

Owns no state. Finds the command in `cli.registry`, checks its arguments and options, imports the one module that it
needs and runs it. Errors are texts on standard error and sysexits codes, as rabbitmqctl's. The same program answers
to the names of RabbitMQ's programs, and has the commands of the one that it was called by. Imports as little as it can:
health checks run it every few seconds.
"""

from __future__ import annotations

import math
import os
import sys
from contextlib import suppress
from typing import NamedTuple

from burrowmq.cli.errors import IOERR, OK, OSERR, TEMPFAIL, UNAVAILABLE, USAGE, CliError
from burrowmq.cli.options import GLOBAL, Parsed, parse
from burrowmq.cli.programs import commands_of
from burrowmq.cli.registry import COMMANDS, Command

DEFAULT_TIMEOUT_S = 60.0
TIMEOUT_MAX_S = 1e9
"""What is longer is without end: a socket counts no further than some hundred years."""
NO_MEMORY = "Error: no memory is left for the answer: ask for less, or raise the limit (ulimit -v)"
NEEDS_APP = (
    "this command requires the 'rabbit' app to be running on the target node."
    " Start it with 'rabbitmqctl start_app'."
)


def main(argv: list[str] | None = None) -> int:
    """Run one command; returns the exit status."""
    words = sys.argv[1:] if argv is None else argv
    _prepare_output()
    try:
        code = _run(words)
        sys.stdout.flush()
    except CliError as error:
        _flush()
        _complain(error.text)
        return error.code
    except UnicodeEncodeError as error:
        # Only an argument can be that: the output takes any character.
        _flush()
        _complain(f"Error (argument validation): {error.object!r} is no UTF-8 text")
        return USAGE
    except BrokenPipeError:
        # The reader (head, grep -q) has read enough and is gone.
        _give_up_output()
        return OK
    except FileNotFoundError:
        # No output fails like that: a relative name was to be completed.
        _flush()
        _complain("Error: the working directory is no more: run this in another")
        return IOERR
    except OSError as error:
        # Only the output can still fail here: failures of the node are CliErrors.
        _give_up_output()
        _complain(f"Error: the output cannot be written: {error.strerror}")
        return IOERR
    except MemoryError as error:
        error.with_traceback(None)  # lets go of what was made, so that there is some for the words
        _flush()
        _complain(NO_MEMORY)
        return OSERR
    except KeyboardInterrupt:
        return 130
    return code


def _prepare_output() -> None:
    """A closed stream has nothing; an output that knows few characters shows others by number: clients choose names."""
    if sys.stdin is None:
        sys.stdin = open(os.devnull, encoding="utf-8")  # noqa: SIM115 - to the end
    for name in ("stdout", "stderr"):
        stream = getattr(sys, name)
        if stream is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115 - to the end
        elif hasattr(stream, "reconfigure") and _is_picky(stream.errors, stream.encoding):
            stream.reconfigure(errors="backslashreplace")


def _is_picky(errors: str, encoding: str) -> bool:
    """Whether it fails on characters; the C locale's takes octets that are no text, and no other characters."""
    return errors == "strict" or (errors == "surrogateescape" and encoding != "utf-8")


def _complain(text: str) -> None:
    """Say what went wrong; the status says it, too, where nobody can hear this."""
    with suppress(OSError):
        sys.stderr.write(text + "\n")


def _give_up_output() -> None:
    """Make sure that Python does not write to standard output again when it exits."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _flush() -> None:
    """Write out what was printed, so that an error comes after it."""
    try:
        sys.stdout.flush()
    except OSError:
        _give_up_output()


def _program(parsed: Parsed) -> str:
    """The name that it was called by; RabbitMQ's own launchers give it as --script-name."""
    called = parsed.values.get("script-name") or (sys.argv[0] if sys.argv else "")
    name = os.path.basename(called)
    return "burrowctl" if name in ("", "__main__.py", "-c") else name


def _run(words: list[str]) -> int:
    parsed = parse(words)
    program = _program(parsed)
    if not parsed.words:
        return _without_command(program, parsed)
    name, args = _command_name(parsed.words[0]), parsed.words[1:]
    command = COMMANDS.get(name)
    if command is None or name not in commands_of(program):
        from burrowmq.cli.commands.help import unknown_command

        raise unknown_command(program, name)
    if "help" in parsed.flags:
        from burrowmq.cli.commands.help import command_help

        sys.stdout.write(command_help(program, name) + "\n")
        return OK
    line = _Line(program, name, command, args, _shown(words))
    _check(line, parsed)
    return _execute(line, parsed)


class _Line(NamedTuple):
    """A command line whose command is known."""

    program: str
    name: str
    command: Command
    args: list[str]
    shown: str


def _command_name(word: str) -> str:
    """The command that a word means: hyphens may stand for its underscores."""
    joined = word.replace("-", "_")
    return joined if joined in COMMANDS else word


def _without_command(program: str, parsed: Parsed) -> int:
    from burrowmq.cli.commands.help import overview, tool_version

    if "version" in parsed.flags:
        sys.stdout.write(tool_version() + "\n")
        return OK
    sys.stdout.write(overview(program) + "\n")
    return OK if "help" in parsed.flags else USAGE


def _shown(words: list[str]) -> str:
    """The words as they were given, without those that only say which node."""
    shown = list(words)
    for option in ("--data-dir", "--url"):
        if option in shown[:-1]:
            at = shown.index(option)
            del shown[at : at + 2]
    return " ".join(shown)


def _check(line: _Line, parsed: Parsed) -> None:
    """Refuse what cannot be run, showing all words that were given. Raises: CliError 64."""
    command, args = line.command, line.args
    given = [*parsed.values, *parsed.flags]
    wrong = [
        *parsed.unknown,
        *(f"--{each}" for each in given if each not in GLOBAL and each not in command.options),
    ]
    if wrong:
        raise _usage_error(line, "Invalid options for this command:\n\n" + "\n".join(wrong))
    formatter = parsed.values.get("formatter", "table")
    if "formatter" in parsed.values:
        from burrowmq.cli.render import FORMATTERS

        if formatter not in FORMATTERS:
            known = ", ".join(FORMATTERS)
            raise _usage_error(
                line,
                f"Invalid options for this command:\n\n--formatter : {formatter} (one of {known})",
            )
    if len(args) < command.least:
        raise _argument_error(line, "not enough arguments.")
    if len(args) > command.most:
        raise _argument_error(line, "too many arguments.")


def _usage_error(line: _Line, text: str) -> CliError:
    from burrowmq.cli.commands.help import command_usage

    return CliError(USAGE, f"{text}\n\n{command_usage(line.program, line.name)}")


def _argument_error(line: _Line, reason: str) -> CliError:
    text = f"Error (argument validation): {reason}\nArguments given:\n\t{line.shown}"
    return _usage_error(line, text)


def _data_dir(parsed: Parsed) -> str:
    """The node's data directory: --data-dir, else our variable, else RabbitMQ's variables, else ./data."""
    named = (
        parsed.values.get("data-dir")
        or os.environ.get("BURROWMQ_DATA_DIR")
        or os.environ.get("RABBITMQ_MNESIA_DIR")
    )
    if named:
        return named
    base = os.environ.get("RABBITMQ_MNESIA_BASE")
    if base:
        import socket

        host = socket.gethostname().partition(".")[0]
        name = parsed.values.get("node") or os.environ.get("RABBITMQ_NODENAME") or "rabbit"
        return os.path.join(base, name if "@" in name else f"{name}@{host}")
    return "data"


def _timeout_s(name: str, parsed: Parsed) -> float:
    text = parsed.values.get("timeout", "")
    if not text:
        return DEFAULT_TIMEOUT_S
    try:
        seconds = float(text)
    except ValueError:
        seconds = math.nan
    if math.isnan(seconds):
        raise CliError(USAGE, f"Invalid options for this command:\n\n--timeout : {text}")
    return seconds if seconds <= TIMEOUT_MAX_S else math.inf


def _execute(line: _Line, parsed: Parsed) -> int:
    from importlib import import_module

    from burrowmq.cli.client import NodeClient, NotRunning, Refused, check_url
    from burrowmq.cli.invocation import Invocation

    url = parsed.values.get("url", "")
    if not url and "data-dir" not in parsed.values:
        url = os.environ.get("BURROWMQ_MANAGEMENT_URL", "")
    if url:
        check_url(url)
    timeout_s = _timeout_s(line.name, parsed)
    client = NodeClient(
        url=url,
        data_dir=_data_dir(parsed),
        timeout_s=None if timeout_s == float("inf") else timeout_s,
        node_option=parsed.values.get("node", ""),
    )
    if timeout_s <= 0:
        text = (
            f"Error: operation {line.name} on node {client.addressed} timed out."
            f" Timeout value used: {parsed.values['timeout']}"
        )
        raise CliError(TEMPFAIL, text)
    invocation = Invocation(line.program, line.name, line.args, parsed.values, parsed.flags, client)
    try:
        code: int = getattr(import_module(line.command.module_name), line.command.function)(
            invocation
        )
    except Refused as refused:
        raise CliError(UNAVAILABLE, f"Error:\n{refused.reason}") from refused
    except NotRunning as stopped:
        text = f"Error: {NEEDS_APP}\nArguments given:\n\t{line.shown}"
        raise _usage_error(line, text) from stopped
    return code


if __name__ == "__main__":
    sys.exit(main())
