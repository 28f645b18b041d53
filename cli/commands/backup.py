"""burrowctl backup: have the node back itself up, and show how far it is.

Owns no state. The node does the work; the command starts it and asks until it is over. On a terminal the progress is
one line on standard error that changes, else a line every few seconds. Ending the command does not end the backup.
"""

from __future__ import annotations

import os
import sys
import time
from typing import Any

from burrowmq.cli.client import Refused
from burrowmq.cli.errors import OK, SOFTWARE, CliError, bad_argument, failure
from burrowmq.cli.invocation import Invocation

PATH = "/api/burrowmq/backup"
POLL_S = 0.1
LINE_EVERY_S = 5.0
MIB = 1 << 20


def backup(invocation: Invocation) -> int:
    """Backup DIRECTORY."""
    node = invocation.node
    directory = invocation.args[0]
    # A node behind a URL may be on another machine: a relative path is sent as it is, and the node refuses it.
    if not node.url:
        directory = os.path.abspath(directory)
    invocation.banner(f"Backing up node {node.node_name} into {directory} ...")
    try:
        job = node.request("POST", PATH, {"directory": directory})
    except Refused as refused:
        if refused.status == 400:
            raise bad_argument(refused.reason) from refused
        raise
    if "no-wait" in invocation.flags:
        return OK
    job = _wait(invocation, job)
    if job["state"] == "failed":
        text = f"the backup failed: {job['reason']}"
        if job["incomplete"]:
            text += f"\n{directory} is marked as INCOMPLETE; run the command again"
        raise failure(text, SOFTWARE)
    invocation.say(
        f"Backed up {job['messages']} messages in {job['queues']} queues: {job['files']} files,"
        f" {job['bytes']} bytes ({job['bytes_linked']} of them linked); the cut took {job['cut_ms']:g} ms"
    )
    return OK


def _wait(invocation: Invocation, job: dict[str, Any]) -> dict[str, Any]:
    """Ask until the backup is over; return the last answer."""
    directory = job["directory"]  # as the node spells it: JSON has no octets that are no text
    is_quiet = invocation.is_machine_readable or bool(invocation.flags & {"quiet", "silent"})
    is_terminal = sys.stderr.isatty()
    next_line = time.monotonic() + (0.0 if is_terminal else LINE_EVERY_S)
    is_shown = False
    while job["state"] not in ("done", "failed"):
        if not is_quiet and time.monotonic() >= next_line:
            is_shown = True
            sys.stderr.write(
                ("\r" if is_terminal else "") + _progress(job) + ("" if is_terminal else "\n")
            )
            sys.stderr.flush()
            next_line = time.monotonic() + (0.0 if is_terminal else LINE_EVERY_S)
        time.sleep(POLL_S)
        job = invocation.node.get(PATH)
        if job["directory"] != directory:
            raise CliError(
                SOFTWARE, f"Error:\nanother backup, to {job['directory']}, came after this one"
            )
    if is_shown and is_terminal:
        sys.stderr.write("\r" + " " * 60 + "\r")
    return job


def _progress(job: dict[str, Any]) -> str:
    share = 100 * job["bytes_done"] // max(1, job["bytes"])
    done, whole = job["bytes_done"] // MIB, job["bytes"] // MIB
    return f"{share:3} %  {done} of {whole} MiB, {job['files_done']} of {job['files']} files"
