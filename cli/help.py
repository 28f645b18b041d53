"""Usage texts, the list of commands, suggestions, and the tool's version.

Owns no state. Imported only when somebody asks or mistypes.
"""

from __future__ import annotations

from cli.errors import OK, USAGE, CliError
from cli.invocation import Invocation
from cli.registry import COMMANDS

BOLD, NORMAL = "\x1b[1m", "\x1b[0m"
OPTIONS = "[--node <node>] [--longnames] [--quiet]"
RABBITMQ_VERSION = "3.13.7"


def command_usage(program: str, name: str) -> str:
    """The `Usage` block of one command."""
    command = COMMANDS[name]
    line = " ".join(part for part in (program, OPTIONS, name, command.usage) if part)
    return f"{BOLD}Usage{NORMAL}\n\n{line}"


def argument_error(invocation: Invocation, reason: str) -> CliError:
    """Arguments that a command finds wrong in number by itself."""
    shown = " ".join([invocation.name, *invocation.args])
    usage = command_usage(invocation.program, invocation.name)
    return CliError(
        USAGE, f"Error (argument validation): {reason}\nArguments given:\n\t{shown}\n\n{usage}"
    )


def overview(program: str) -> str:
    """Every command with a line about it."""
    width = max(len(name) for name in COMMANDS)
    rows = "\n".join(
        f"   {name:<{width}}  {command.summary}" for name, command in sorted(COMMANDS.items())
    )
    return (
        f"{BOLD}Usage{NORMAL}\n\n"
        f"{program} {OPTIONS} [--data-dir <dir> | --url <url>] [--timeout <seconds>] <command> [<command options>]\n\n"
        f"{BOLD}Available commands{NORMAL}\n\n{rows}\n\n"
        f"Use '{program} help <command>' to learn more about a specific command"
    )


def unknown_command(program: str, name: str) -> CliError:
    """The error for a word that is no command, with the nearest one if there is one."""
    import difflib

    near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.7)
    text = f"\nCommand '{name}' not found. \n"
    if near:
        return CliError(USAGE, f"{text}Did you mean '{near[0]}'? \n")
    return CliError(USAGE, f"{text}\n{overview(program)}")


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
        raise unknown_command(invocation.program, name)
    invocation.say(f"\n{command_usage(invocation.program, name)}\n\n{COMMANDS[name].summary}")
    return OK


def version(invocation: Invocation) -> int:
    """Version."""
    invocation.say(tool_version())
    return OK


def autocomplete(invocation: Invocation) -> int:
    """Autocomplete [prefix]."""
    prefix = invocation.args[0] if invocation.args else ""
    for name in sorted(COMMANDS):
        if name.startswith(prefix):
            invocation.say(name)
    return OK
