"""burrowctl migrate_queues: classic queues become quorum queues under their names, one after the other.

Owns no state. The node does the work, and goes on with the queue at hand when this command, or the node, is killed; the
same command again waits for that one and goes on with the next.
"""

from __future__ import annotations

import time
from typing import Any

from burrowmq.cli import terms
from burrowmq.cli.client import Refused, segment
from burrowmq.cli.errors import DATAERR, OK, UNAVAILABLE, USAGE, CliError, bad_argument
from burrowmq.cli.invocation import Invocation

PATH = "/api/burrowmq/migrations"
POLL_S = 0.2
SAY_S = 5.0
Row = dict[str, Any]


def migrate_queues(invocation: Invocation) -> int:
    """migrate_queues PATTERN: status 69 when not all that match could be moved."""
    pattern, vhost = invocation.args[0], invocation.vhost
    where = f"{PATH}/{segment(vhost)}"
    try:
        rows = invocation.node.get(f"{where}?pattern={segment(pattern)}")
    except Refused as refused:
        if refused.status == 400:
            raise bad_argument(refused.reason, USAGE) from refused
        if refused.status == 404:
            raise CliError(DATAERR, f"Virtual host '{vhost}' does not exist") from refused
        raise
    if "dry-run" in invocation.flags and invocation.is_machine_readable:
        invocation.say(terms.compact(rows))
        return OK
    invocation.banner(f"Migrating classic queues that match '{pattern}' in vhost '{vhost}' ...")
    left = 0
    for row in rows:
        if row["obstacle"] and not row["is_under_way"]:
            left += 1
            _say(invocation, row["name"], f"stays a classic queue: {row['obstacle']}")
            continue
        told = "".join(f"; {change}" for change in row["changes"])
        if "dry-run" in invocation.flags:
            _say(invocation, row["name"], f"would be moved, messages: {row['messages']}{told}")
        else:
            left += not _move(invocation, row, told)
    if left and "dry-run" not in invocation.flags:
        raise CliError(UNAVAILABLE, f"Error:\n{left} of {len(rows)} queues are not migrated")
    return OK


def _move(invocation: Invocation, row: Row, told: str) -> bool:
    vhost, name = row["vhost"], row["name"]
    try:
        invocation.node.request("POST", f"{PATH}/{segment(vhost)}/{segment(name)}", {})
    except Refused as refused:
        _say(invocation, name, f"stays a classic queue: {refused.reason}")
        return False
    said_s = time.monotonic()
    while (found := _progress(invocation, vhost, name)) is not None:
        if time.monotonic() - said_s >= SAY_S:
            said_s = time.monotonic()
            _say(invocation, name, _words(found))
        time.sleep(POLL_S)
    queue = invocation.node.get(f"/api/queues/{segment(vhost)}/{segment(name)}?columns=type")
    if queue["type"] != "quorum":
        _say(invocation, name, "it was deleted meanwhile, and declared anew")
        return False
    _say(invocation, name, f"is a quorum queue{told}")
    return True


def _say(invocation: Invocation, name: str, text: str) -> None:
    invocation.say(terms.escaped(f"{name}: {text}"))


def _progress(invocation: Invocation, vhost: str, name: str) -> Row | None:
    rows = invocation.node.get(PATH)
    return next((row for row in rows if (row["vhost"], row["name"]) == (vhost, name)), None)


def _words(row: Row) -> str:
    refused = row["refused_count"]
    if refused:
        return f"the cluster does not take {refused} messages, which are offered again; left: {row['left_count']}"
    if row["state"] == "finishing":
        return f"waiting for clients to acknowledge what they hold: {row['left_count']}"
    return f"moved: {row['moved_count']}, left: {row['left_count']}"
