"""Usage texts, the list of commands, suggestions, and the tool's version.

Owns no state. Imported only when somebody asks or mistypes.
"""

from __future__ import annotations

import re
import textwrap
from importlib import import_module

from burrowmq.cli.errors import OK, USAGE, CliError
from burrowmq.cli.invocation import Invocation
from burrowmq.cli.option_texts import text_of
from burrowmq.cli.programs import commands_of, programs_with
from burrowmq.cli.registry import COMMANDS, Command, Kind

BOLD, NORMAL = "\x1b[1m", "\x1b[0m"
OPTIONS = "[--node <node>] [--longnames] [--quiet]"
RABBITMQ_VERSION = "3.13.7"
GENERAL_OPTIONS = """\
   -h, --help               displays this help
   -p, --vhost <vhost>      the virtual host, of commands that work in one (default: /)
   -q, --quiet              no banner
   -s, --silent             no banner and no head line
   --no-table-headers       no head line
   --formatter <formatter>  table, pretty_table, json, json_stream, csv or erlang
   -t, --timeout <seconds>  how long to wait for the node (default: 60)
   --data-dir <dir>         the node's data directory, whose control.sock is asked (default: ./data)
   --url <url>              the node's HTTP API instead: http://user:password@host:15672
   -n, --node <node>        accepted, chooses no node"""
NOT_HERE = "Does not apply"
# How alike two words are that one may be a slip for the other.
NEAR = 0.6


def command_usage(program: str, name: str) -> str:
    """The `Usage` block of one command."""
    command = COMMANDS[name]
    line = " ".join(part for part in (program, OPTIONS, name, command.usage) if part)
    return f"{BOLD}Usage{NORMAL}\n\n{line}"


def command_help(program: str, name: str) -> str:
    """Usage, columns and options of one command."""
    command = COMMANDS[name]
    module = import_module(command.module_name)
    kind = getattr(module, command.function.upper(), None)
    own = getattr(module, f"{command.function.upper()}_OPTIONS", "") or _options(name, command)
    own = f"{BOLD}Arguments and Options{NORMAL}\n\n{own}\n\n" if own else ""
    columns = ""
    if isinstance(kind, Kind):
        names = ", ".join(sorted(kind.columns.split()))
        columns = (
            f"{BOLD}Arguments{NORMAL}\n\n<column>\n\tmust be one of {names};\n"
            f"\twithout any: {', '.join(kind.default.split())}\n\n"
        )
    return (
        f"\n{command_usage(program, name)}\n\n{command.summary}.\n\n"
        f"{columns}{own}{BOLD}General Options{NORMAL}\n\n{GENERAL_OPTIONS}"
    )


def _options(name: str, command: Command) -> str:
    """A row for each option of the command's own, with its value as the usage line has it."""
    if command.summary.startswith(NOT_HERE):
        return ""  # it takes any
    rows = []
    for option in command.options:
        value = re.search(rf"--{option}(?:\|-\w)?( <[^>]*>)", command.usage)
        left = f"--{option}{value[1] if value else ''}"
        rows.append(f"   {left:<24} {text_of(name, option)}")
    return "\n".join(rows)


def argument_error(invocation: Invocation, reason: str) -> CliError:
    """The error for a wrong number of arguments that only the command itself can see."""
    shown = " ".join([invocation.name, *invocation.args])
    usage = command_usage(invocation.program, invocation.name)
    return CliError(
        USAGE, f"Error (argument validation): {reason}\nArguments given:\n\t{shown}\n\n{usage}"
    )


def overview(program: str) -> str:
    """Every command of a program with a line about it."""
    known = commands_of(program)
    here = {
        name: command
        for name, command in sorted(COMMANDS.items())
        if name in known and not command.summary.startswith(NOT_HERE)
    }
    width = max(len(name) for name in here)
    rows = "\n".join(f"   {name:<{width}}  {command.summary}" for name, command in here.items())
    others = textwrap.fill(", ".join(sorted(known - here.keys())), 96)
    not_here = (
        f"{BOLD}Known, and answered with why they do not apply here{NORMAL}\n\n"
        f"{textwrap.indent(others, '   ')}\n\n"
    )
    return (
        f"{BOLD}Usage{NORMAL}\n\n"
        f"{program} {OPTIONS} [--data-dir <dir> | --url <url>] [--timeout <seconds>] <command> [<command options>]\n\n"
        f"{BOLD}Available commands{NORMAL}\n\n{rows}\n\n"
        f"{not_here if others else ''}"
        f"{BOLD}General Options{NORMAL}\n\n{GENERAL_OPTIONS}\n\n"
        f"Use '{program} help <command>' to learn more about a specific command"
    )


def unknown_command(program: str, name: str) -> CliError:
    """The error for a word that is no command of a program: the three nearest, and who has it if somebody does."""
    import difflib

    text = f"\nCommand '{name}' not found. \n"
    others = programs_with(name)
    if others:
        text += f"It is a command of {' and '.join(others)}.\n"
        return CliError(USAGE, f"{text}\n'{program} help' lists all commands.")
    # At least three, however far: a hundred lines would push the error off the screen.
    first, *more = difflib.get_close_matches(name, sorted(commands_of(program)), n=3, cutoff=0)
    is_near = difflib.SequenceMatcher(a=name, b=first).ratio() >= NEAR
    if is_near:
        text += f"Did you mean '{first}'? \nNear it are also: {', '.join(more)}\n"
    else:
        text += f"The nearest are: {', '.join([first, *more])}\n"
    return CliError(USAGE, f"{text}\n'{program} help' lists all commands.")


def tool_version() -> str:
    """RabbitMQ's version that this tool speaks for; scripts compare it with the server's."""
    return RABBITMQ_VERSION


def help_command(invocation: Invocation) -> int:
    """Help [command]."""
    if "list-commands" in invocation.flags:
        return autocomplete(invocation)
    if not invocation.args:
        invocation.say(overview(invocation.program))
        return OK
    name = invocation.args[0]
    if name not in COMMANDS:
        name = name.replace("-", "_")
    if name not in commands_of(invocation.program):
        raise unknown_command(invocation.program, name)
    invocation.say(command_help(invocation.program, name))
    return OK


def version(invocation: Invocation) -> int:
    """Version."""
    invocation.say(tool_version())
    return OK


def autocomplete(invocation: Invocation) -> int:
    """Autocomplete [prefix]."""
    prefix = invocation.args[0] if invocation.args else ""
    for name in sorted(commands_of(invocation.program)):
        if name.startswith(prefix):
            invocation.say(name)
    return OK
