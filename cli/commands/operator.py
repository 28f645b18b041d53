"""Commands that change how the node runs: watermarks, the log's level, names, hashes, collections.

Owns no state. Texts and exit codes are rabbitmqctl's, compared with 3.10.8: a bad argument is 65, with the
usage behind it. What is set lasts until the next start, except the cluster's name, which is kept.
"""

from __future__ import annotations

import re
from typing import Any

from burrowmq.cli.client import Refused
from burrowmq.cli.errors import DATAERR, OK, UNAVAILABLE, CliError, failure
from burrowmq.cli.invocation import Invocation

LEVELS = ("debug", "info", "warning", "error", "critical", "none")
SIZE = re.compile(r"(\d+)([A-Za-z]*)")
# RabbitMQ 3.13's memory limits: plain units are powers of 1000, those with an i of 1024.
UNITS = {"": 1, "b": 1}
for _power, _letter in enumerate("kmgt", start=1):
    UNITS[_letter] = UNITS[f"{_letter}b"] = 1000**_power
    UNITS[f"{_letter}i"] = UNITS[f"{_letter}ib"] = 1024**_power


def _bad(invocation: Invocation, why: str = "", code: int = DATAERR) -> CliError:
    """The error for a bad argument: what was given, and the usage."""
    from burrowmq.cli.commands.help import command_usage

    text = f"Error (argument validation): Bad argument{': ' + why if why else '.'}"
    given = " ".join([invocation.name, *invocation.args])
    usage = command_usage(invocation.program, invocation.name)
    return CliError(code, f"{text}\nArguments given:\n\t{given}\n\n{usage}")


def _size(text: str) -> int | None:
    found = SIZE.fullmatch(text)
    unit = UNITS.get(found[2].lower()) if found else None
    return int(found[1]) * unit if found and unit else None


def _fraction(text: str) -> float | None:
    try:
        found = float(text)
    except ValueError:
        return None
    return found if abs(found) < 1e15 else None  # nan and inf are no fractions


def _change(invocation: Invocation, path: str, body: dict[str, Any]) -> None:
    try:
        invocation.node.request("POST", f"/api/burrowmq/{path}", body)
    except Refused as refused:
        raise failure(refused.reason) from refused


def set_vm_memory_high_watermark(invocation: Invocation) -> int:
    """set_vm_memory_high_watermark FRACTION | absolute SIZE."""
    body: dict[str, float]
    first, rest = invocation.args[0], invocation.args[1:]
    if first == "absolute":
        if not rest:
            from burrowmq.cli.commands.help import argument_error

            raise argument_error(invocation, "not enough arguments.")
        size = _size(rest[0])
        if size is None:
            raise _bad(invocation, "Invalid units." if SIZE.fullmatch(rest[0]) else "")
        text, body = f"{rest[0]} bytes", {"absolute": size}
    else:
        fraction = _fraction(first)
        if fraction is None or rest:
            raise _bad(invocation)
        if not 0 <= fraction <= 1:
            raise _bad(invocation, "The threshold should be a fraction between 0.0 and 1.0")
        text, body = first, {"relative": fraction}
    invocation.banner(f"Setting memory threshold on {invocation.node.node_name} to {text} ...")
    _change(invocation, "memory-watermark", body)
    return OK


def set_disk_free_limit(invocation: Invocation) -> int:
    """set_disk_free_limit SIZE | mem_relative FRACTION."""
    first, rest = invocation.args[0], invocation.args[1:]
    if first == "mem_relative":
        if not rest:
            from burrowmq.cli.commands.help import argument_error

            raise argument_error(invocation, "not enough arguments.")
        fraction = _fraction(rest[0])
        if fraction is None or fraction < 0:
            raise _bad(invocation)
        text, body = f"{rest[0]} times the total RAM", {"mem_relative": fraction}
    else:
        size = _size(first)
        if size is None or rest:
            raise _bad(invocation)
        text, body = f"{first} bytes", {"absolute": size}
    invocation.banner(f"Setting disk free limit on {invocation.node.node_name} to {text} ...")
    _change(invocation, "disk-free-limit", body)
    return OK


def set_log_level(invocation: Invocation) -> int:
    """set_log_level LEVEL: of every sink."""
    level = invocation.args[0]
    if level not in LEVELS:
        raise failure(f"level {level} is not supported. Try one of {', '.join(LEVELS)}")
    invocation.banner(f'Setting log level to "{level}" ...')
    _change(invocation, "log-level", {"level": level})
    return OK


def set_cluster_name(invocation: Invocation) -> int:
    """set_cluster_name NAME."""
    name = invocation.args[0]
    invocation.banner(f"Setting cluster name to {name} ...")
    invocation.node.request("PUT", "/api/cluster-name", {"name": name})
    return OK


def hash_password(invocation: Invocation) -> int:
    """hash_password [PASSWORD]: as definitions carry it, with a new salt each time."""
    from burrowmq.cli.commands.users import password_given

    password = password_given(invocation, 0)
    invocation.banner(f"Will hash password {password}")
    answer = invocation.node.request("POST", "/api/burrowmq/hash-password", {"password": password})
    invocation.say(answer["ok"])
    return OK


def watch_disk(invocation: Invocation) -> int:
    """activate_ and deactivate_free_disk_space_monitoring."""
    is_on = invocation.name.startswith("activate")
    name = invocation.node.node_name
    invocation.banner(
        f"{'Activating' if is_on else 'Deactivating'} free disk space monitoring on node {name}..."
    )
    _change(invocation, "disk-watch", {"enabled": is_on})
    return OK


def force_gc(invocation: Invocation) -> int:
    """force_gc: a full collection, and freed memory goes back to the system."""
    name = invocation.node.node_name
    invocation.banner(f"Will ask all processes on node {name} to schedule a full sweep GC")
    invocation.node.request("POST", "/api/burrowmq/collect-garbage")
    return OK


def rotate_logs(invocation: Invocation) -> int:
    """rotate_logs: RabbitMQ refuses it too."""
    raise failure("This command does not rotate logs anymore [deprecated]", UNAVAILABLE)


def suspend_listeners(invocation: Invocation) -> int:
    """suspend_listeners: no new connections until resume_listeners."""
    name = invocation.node.node_name
    invocation.banner(
        f"Will suspend client connection listeners on node {name}."
        " The node will no longer accept client connections!"
    )
    _change(invocation, "listeners", {"accept": False})
    return OK


def resume_listeners(invocation: Invocation) -> int:
    """resume_listeners."""
    name = invocation.node.node_name
    invocation.banner(
        f"Will resume client connection listeners on node {name}."
        " The node will now accept client connections"
    )
    _change(invocation, "listeners", {"accept": True})
    return OK


def set_vhost_tags(invocation: Invocation) -> int:
    """set_vhost_tags VHOST TAG..."""
    from burrowmq.cli.client import segment

    name, tags = invocation.args[0], invocation.args[1:]
    invocation.banner(f'Setting tags for virtual host "{name}" to [{", ".join(tags)}] ...')
    try:
        invocation.node.get(f"/api/vhosts/{segment(name)}")
    except Refused as refused:
        raise CliError(DATAERR, f"Virtual host '{name}' does not exist") from refused
    invocation.node.request("POST", f"/api/burrowmq/vhosts/{segment(name)}", {"tags": tags})
    return OK
