"""install_names: RabbitMQ's program names as links to ours, in a directory that the operator chooses.

Owns no state but the links that it makes, and a starter for rabbitmqadmin, which is no program of ours. Nothing
installs these names by itself: on a machine with a RabbitMQ, which program a name means is the operator's decision
(docs/adr/0023). A file that is not one of our links is never replaced without --force.
"""

from __future__ import annotations

import os
import shutil
import sys
import sysconfig

from burrowmq.cli.errors import IOERR, OK, SOFTWARE, CliError, failure
from burrowmq.cli.invocation import Invocation
from burrowmq.cli.programs import PROGRAMS

ADMIN = "rabbitmqadmin"
STARTER = """\
#!/bin/sh
# Made by burrowctl install-names.
exec '{python}' -m burrowmq.management.download.rabbitmqadmin "$@"
"""

SERVER = "rabbitmq-server"
NAMES = {
    **{name: "burrowctl" for name in PROGRAMS if name != "burrowctl"},
    SERVER: "burrowmq-server",
}
"""Each of RabbitMQ's names with the program of ours that it is a link to."""


def install_names(invocation: Invocation) -> int:
    """install_names [--force] DIRECTORY."""
    directory = os.path.abspath(invocation.args[0])
    targets = {name: _program(target) for name, target in NAMES.items()}
    try:
        os.makedirs(directory, exist_ok=True)
        if "force" not in invocation.flags:
            _check_free(directory, targets)
        for name, target in targets.items():
            _link(os.path.join(directory, name), target)
        _write_starter(os.path.join(directory, ADMIN))
    except OSError as error:
        # Of a link the second name is the one that was to be made: the first is our own program's.
        raise failure(f"{error.filename2 or error.filename}: {error.strerror}", IOERR) from error
    for name, target in targets.items():
        invocation.say(f"{os.path.join(directory, name)} -> {target}")
    invocation.say(f"{os.path.join(directory, ADMIN)}")
    _warn_of_others(directory)
    return OK


def _program(name: str) -> str:
    """Where a program of ours is. Raises: CliError."""
    here = os.path.join(sysconfig.get_path("scripts"), name)
    found = here if os.access(here, os.X_OK) else shutil.which(name)
    if found is None:
        raise failure(f"{name} is not in {os.path.dirname(here)} nor in PATH")
    return os.path.abspath(found)


def _check_free(directory: str, targets: dict[str, str]) -> None:
    """Raises: CliError 70 when a name is taken by something else."""
    taken = []
    for name, target in targets.items():
        path = os.path.join(directory, name)
        ours = os.path.islink(path) and os.path.basename(os.readlink(path)) == NAMES[name]
        if os.path.lexists(path) and not ours and os.path.realpath(path) != target:
            taken.append(path)
    admin = os.path.join(directory, ADMIN)
    if os.path.lexists(admin) and not _is_starter(admin):
        taken.append(admin)
    if taken:
        raise CliError(
            SOFTWARE,
            f"Error:\n{', '.join(taken)}: there already, and not ours; nothing was changed."
            " --force replaces them.",
        )


def _link(path: str, target: str) -> None:
    """Make or replace a link in one step, so that a name never is missing."""
    new = f"{path}.new"
    if os.path.lexists(new):
        os.unlink(new)
    os.symlink(target, new)
    os.replace(new, path)


def _write_starter(path: str) -> None:
    new = f"{path}.new"
    with open(new, "w", encoding="utf-8") as file:
        file.write(STARTER.format(python=sys.executable))
        os.fchmod(file.fileno(), 0o755)
    os.replace(new, path)


def _is_starter(path: str) -> bool:
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read().splitlines()[:2] == STARTER.splitlines()[:2]
    except OSError:
        return False


def _warn_of_others(directory: str) -> None:
    """Say which of the names a shell would find elsewhere first."""
    sys.stdout.flush()
    for name in (*NAMES, ADMIN):
        found = shutil.which(name)
        if found is None:
            sys.stderr.write(f"Warning: {directory} is not in PATH\n")
            return
        if os.path.dirname(os.path.abspath(found)) != directory:
            sys.stderr.write(f"Warning: {found} comes before {directory} in PATH\n")
