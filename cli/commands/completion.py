"""completion SHELL: a script that completes commands, options, columns and formatters.

Owns no state. The script is made from the tables of programs, commands and options, so it cannot know less than they
do; it is text only, because a shell that asks a program at each Tab is slow. Names of queues and users are not
completed: that would need a node.
"""

from __future__ import annotations

from importlib import import_module

from burrowmq.cli.errors import OK, USAGE, CliError
from burrowmq.cli.invocation import Invocation
from burrowmq.cli.options import GLOBAL, SHORT, VALUED
from burrowmq.cli.programs import PROGRAMS
from burrowmq.cli.registry import COMMANDS, Kind
from burrowmq.cli.render import FORMATTERS

# What may follow an option that has a value, or a command.
CHOICES = {"--formatter": FORMATTERS, "--unit": ("bytes", "mb", "gb", "mib", "gib")}
ARGUMENTS = {
    "completion": ("bash", "fish", "zsh"),
    "set_log_level": ("debug", "info", "warning", "error", "critical", "none"),
    "rebalance": ("all", "classic", "quorum", "stream"),
}
DIRECTORIES = ("--data-dir",)
SHELLS = ("bash", "fish", "zsh")


def completion(invocation: Invocation) -> int:
    """Completion bash | fish | zsh."""
    shell = invocation.args[0]
    if shell not in SHELLS:
        raise CliError(
            USAGE, f"Error (argument validation): {shell} is not one of {', '.join(SHELLS)}"
        )
    invocation.say({"bash": _bash, "fish": _fish, "zsh": _zsh}[shell]())
    return OK


def words_after(command: str) -> list[str]:
    """What may follow a command: its columns or choices, then its own options."""
    row = COMMANDS[command]
    kind = getattr(import_module(row.module_name), row.function.upper(), None)
    found = list(ARGUMENTS.get(command, ()))
    if isinstance(kind, Kind):
        found += kind.columns.split()
    if command == "help":
        found += sorted(COMMANDS)
    return found + [f"--{name}" for name in row.options]


def _general() -> list[str]:
    return [f"--{name}" for name in GLOBAL if name != "longnames-only"]


def _valued() -> list[str]:
    """Options that take the next word."""
    short = [f"-{letter}" for letter, name in SHORT.items() if VALUED[name]]
    return [*(f"--{name}" for name, has_value in VALUED.items() if has_value), *short]


def _cases(indent: str) -> str:
    """`case` branches of a POSIX shell: command to words."""
    rows = [(name, words_after(name)) for name in sorted(COMMANDS)]
    return "\n".join(
        f"{indent}{name}) offered='{' '.join(words)}' ;;" for name, words in rows if words
    )


def _programs(indent: str) -> str:
    return "\n".join(
        f"{indent}{name}) offered='{' '.join(sorted(commands))}' ;;"
        for name, commands in PROGRAMS.items()
    )


def _choices(indent: str) -> str:
    return "\n".join(
        f"{indent}{option}) offered='{' '.join(values)}' ;;" for option, values in CHOICES.items()
    )


# `given` holds the words before the one that is completed; what bash and zsh do with the result differs.
_PICK = """\
    local command= skip= each offered=
    for each in "${given[@]}"; do
        if [[ -n $skip ]]; then skip=; continue; fi
        case $each in
            @VALUED@) skip=$each ;;
            -*) ;;
            *) [[ -n $command ]] || command=${each//-/_} ;;
        esac
    done
    case $skip in
@CHOICES@
        ?*) offered= ;;
        *)
            if [[ -z $command ]]; then
                case $program in
@PROGRAMS@
                esac
            else
                case $command in
@COMMANDS@
                esac
            fi
            [[ $word == -* ]] && offered="$offered @GENERAL@"
            ;;
    esac
"""


def _pick() -> str:
    filled = _PICK
    for mark, text in (
        ("@VALUED@", "|".join(_valued())),
        ("@CHOICES@", _choices(" " * 8)),
        ("@PROGRAMS@", _programs(" " * 20)),
        ("@COMMANDS@", _cases(" " * 20)),
        ("@GENERAL@", " ".join(_general())),
    ):
        filled = filled.replace(mark, text)
    return filled


def _bash() -> str:
    return (
        "# bash completion; source it, or put it into /etc/bash_completion.d\n"
        "_burrowctl() {\n"
        "    local program=${COMP_WORDS[0]##*/} word=${COMP_WORDS[COMP_CWORD]}\n"
        '    local given=("${COMP_WORDS[@]:1:COMP_CWORD-1}")\n'
        f"{_pick()}"
        f"    if [[ $skip == {DIRECTORIES[0]} ]]; then\n"
        '        mapfile -t COMPREPLY < <(compgen -d -- "$word")\n'
        "    else\n"
        '        mapfile -t COMPREPLY < <(compgen -W "$offered" -- "$word")\n'
        "    fi\n"
        "}\n"
        f"complete -o default -F _burrowctl {' '.join(PROGRAMS)}"
    )


def _zsh() -> str:
    return (
        f"#compdef {' '.join(PROGRAMS)}\n"
        "# zsh completion; put it as _burrowctl into a directory of $fpath, or source it after compinit\n"
        "_burrowctl() {\n"
        "    local program=${words[1]:t} word=${words[CURRENT]}\n"
        '    local -a given=("${(@)words[2,CURRENT-1]}")\n'
        f"{_pick()}"
        f"    if [[ $skip == {DIRECTORIES[0]} ]]; then\n"
        "        _files -/\n"
        "    else\n"
        "        compadd -- ${=offered}\n"
        "    fi\n"
        "}\n"
        f"(( $+functions[compdef] )) && compdef _burrowctl {' '.join(PROGRAMS)}\n"
        'if [[ $zsh_eval_context == *loadautofunc* ]]; then _burrowctl "$@"; fi'
    )


def _fish() -> str:
    lines = [
        "# fish completion; put it into ~/.config/fish/completions as burrowctl.fish, or source it",
    ]
    for program, commands in PROGRAMS.items():
        start = f"complete -c {program}"
        lines.append(f"{start} -f")
        for name in sorted(commands):
            summary = COMMANDS[name].summary.replace("'", "\\'")
            lines.append(f"{start} -n __fish_use_subcommand -a {name} -d '{summary}'")
        for option in _general():
            values = f" -x -a '{' '.join(CHOICES[option])}'" if option in CHOICES else ""
            lines.append(f"{start} -l {option[2:]}{values}")
        for name in sorted(commands):
            words = words_after(name)
            if words:
                where = f"'__fish_seen_subcommand_from {name}'"
                lines.append(f"{start} -n {where} -a '{' '.join(words)}'")
    return "\n".join(lines)
