"""wait: until a node has started whose process is known, by number or by the file that holds it.

Owns no state. Who starts a node in the background learns at once when it has ended instead. Source: rabbitmqctl's
WaitCommand (3.13), and what a live 3.10 prints.
"""

from __future__ import annotations

import errno
import math
import time

from burrowmq.cli.commands.node import POLL_S, is_process_gone
from burrowmq.cli.errors import OK, TEMPFAIL, UNAVAILABLE, USAGE, CliError, bad_argument, failure
from burrowmq.cli.invocation import Invocation

WAIT_TIMEOUT_S = 10.0
APPLICATIONS = "'rabbit_and_plugins'"


class _Deadline:
    """Until when to wait."""

    def __init__(self, invocation: Invocation) -> None:
        self._limit_s = invocation.patience_s(WAIT_TIMEOUT_S)
        self._end_s = time.monotonic() + self._limit_s
        self._node = invocation.node

    @property
    def left_s(self) -> float:
        """Seconds from now on."""
        return self._end_s - time.monotonic()

    def pause(self) -> None:
        """Let a moment pass. Raises: CliError 75 when the time is up."""
        if self.left_s <= 0:
            raise CliError(
                TEMPFAIL,
                f"Error: operation wait on node {self._node.addressed} timed out."
                f" Timeout value used: {self._limit_s * 1000:.0f}",
            )
        time.sleep(POLL_S)


def wait(invocation: Invocation) -> int:
    """Wait. Raises: CliError 69 when the process has ended, or its file holds no number."""
    deadline = _Deadline(invocation)
    pid = _pid(invocation, deadline)
    node = invocation.node
    at = f"on node '{node.addressed}'"
    invocation.banner(f"Waiting for erlang distribution {at} while OS process '{pid}' is running")
    has_answered = False
    while True:
        if is_process_gone(pid):
            raise failure("process_not_running")
        node.timeout_s = None if math.isinf(deadline.left_s) else max(deadline.left_s, POLL_S)
        try:
            state = node.get("/api/burrowmq/process")["state"]
        except CliError as error:
            if error.code not in {TEMPFAIL, UNAVAILABLE}:
                raise
            state = ""
        if state and not has_answered:
            invocation.banner(f"Waiting for applications {APPLICATIONS} to start {at}")
            has_answered = True
        if state == "running":
            invocation.banner(f"Applications {APPLICATIONS} are running {at}")
            return OK
        if state == "stopped":
            raise failure("rabbit_is_not_running")
        deadline.pause()


def _pid(invocation: Invocation, deadline: _Deadline) -> int:
    """The process that was named. Raises: CliError."""
    given = invocation.values.get("pid")
    if invocation.args:
        if given is not None:
            raise bad_argument('"Cannot specify both pid and pidfile"', USAGE)
        return _read(invocation, invocation.args[0], deadline)
    if given is None:
        raise bad_argument('"No pid or pidfile specified"', USAGE)
    if not (given.isascii() and given.isdigit()):
        raise bad_argument(f"Invalid options for this command:\n--pid : {given}", USAGE)
    return int(given)


def _read(invocation: Invocation, path: str, deadline: _Deadline) -> int:
    """The number in a file, which may be there later only."""
    invocation.banner(f"Waiting for pid file '{path}' to appear")
    while True:
        try:
            with open(path, encoding="utf-8", errors="replace") as file:
                text = file.read(64).strip()
        except FileNotFoundError:
            deadline.pause()
            continue
        except OSError as error:
            name = errno.errorcode.get(error.errno or 0, "eio").lower()
            raise failure(f"{{:could_not_read_pid, {{:error, :{name}}}}}") from error
        if not (text.isascii() and text.isdigit()):
            raise failure(f'{{:garbage_in_pid_file, "{path}"}}')
        invocation.banner(f"pid is {text}")
        return int(text)
