"""Splits argv into options and arguments as rabbitmqctl does: options stand before or after the command.

Owns no state. A small parser of our own because argparse costs a tenth of the time that a health check may take, and
because an unknown option must be reported after the command is known. `--name value`, `--name=value`, `-p value` and
`--` (no options after it) are understood.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from burrowmq.cli.errors import USAGE, CliError

SHORT = {"n": "node", "l": "longnames", "q": "quiet", "s": "silent", "t": "timeout", "p": "vhost", "h": "help",
         "?": "help", "E": "enabled", "e": "implicitly-enabled", "v": "verbose",
         "m": "minimal", "N": "number", "P": "pid", "d": "duration"}  # fmt: skip
# What a letter means at one command, whatever it means at others; all of them are without a value.
SHORT_OF_ONE = {"delete_queue": {"e": "if-empty", "u": "if-unused"}}
# Options every command takes; True for those with a value.
GLOBAL = {
    "node": True, "longnames": False, "quiet": False, "silent": False, "no-table-headers": False, "timeout": True,
    "vhost": True, "formatter": True, "erlang-cookie": True, "dry-run": False, "script-name": True,
    "print-stacktrace": False, "offline": False, "help": False, "data-dir": True, "url": True, "version": False,
    "longnames-only": False,
}  # fmt: skip
# Options of single commands; which command takes which stands in cli.registry.
OWN = {
    "online": False, "local": False, "unit": True, "if-empty": False, "if-unused": False, "within": True,
    "limit": True, "per-connection-delay": True, "global": False, "vhost-limit": True, "description": True,
    "tags": True, "start": False,
    "default-queue-type": True, "wait": False, "no-wait": False, "pid": True, "address": True,
    "priority": True, "apply-to": True, "idempotent": False, "enabled": False, "minimal": False, "verbose": False,
    "pre-hashed-password": False, "vhost-pattern": True, "number": True, "list-commands": False,
    "object-type": True, "address-family": True, "details": False, "sample-interval": True, "duration": True,
    "user": True, "format": True, "skip-if-unchanged": False, "mirrored-as": True,
    "implicitly-enabled": False, "all": False, "queue-pattern": True, "used": False, "force": False,
    "management": True, "queues": True, "rate": True, "keep": False, "no-publishers": False, "check": True,
    "stop": False, "ttl-from-timestamp": False, "client-port": True, "route-port": True, "store": True,
    "errors-only": False, "preferred-leader-node": True, "membership": True,
}  # fmt: skip
VALUED = {**OWN, **GLOBAL}


@dataclass(slots=True)
class Parsed:
    """What stood on the command line."""

    words: list[str] = field(default_factory=list)
    values: dict[str, str] = field(default_factory=dict)
    flags: set[str] = field(default_factory=set)
    unknown: list[str] = field(default_factory=list)


def parse(argv: list[str]) -> Parsed:
    """Split argv. Raises: CliError 64 for an option without its value."""
    parsed = _split(argv, SHORT)
    own = SHORT_OF_ONE.get(parsed.words[0].replace("-", "_")) if parsed.words else None
    return _split(argv, {**SHORT, **own}) if own else parsed


def _split(argv: list[str], short: dict[str, str]) -> Parsed:
    parsed, index = Parsed(), 0
    while index < len(argv):
        word = argv[index]
        index += 1
        if word == "--":
            parsed.words.extend(argv[index:])
            break
        name, value = _option(word, short)
        if not name:
            parsed.words.append(word)
        elif name not in VALUED:
            parsed.unknown.append(word)
        elif not VALUED[name]:
            if value in (None, "true"):
                parsed.flags.add(name)
        elif value is not None:
            parsed.values[name] = value
        elif index < len(argv):
            parsed.values[name] = argv[index]
            index += 1
        else:
            raise CliError(USAGE, f"Invalid options for this command:\n\n--{name} : (no value)")
    return parsed


def _option(word: str, short: dict[str, str]) -> tuple[str, str | None]:
    """(option name, value after =); an empty name for a word that is no option."""
    if word.startswith("--") and len(word) > 2:
        name, equals, value = word[2:].partition("=")
        return name.replace("_", "-"), value if equals else None
    if len(word) == 2 and word[0] == "-" and word[1] in short:
        return short[word[1]], None
    if len(word) > 2 and word[0] == "-" and word[1] in short and word[2] == "=":
        return short[word[1]], word[3:]
    if len(word) == 2 and word[0] == "-" and word[1].isalpha():
        return word[1], None
    return "", None
