"""Commands that change queues and connections.

Owns no state. A missing queue is exit 64 for delete_queue and 69 for purge_queue, as in rabbitmqctl.
"""

from __future__ import annotations

import re
import time

from burrowmq.cli.client import Refused, segment
from burrowmq.cli.errors import OK, UNAVAILABLE, USAGE, CliError, bad_argument, failure
from burrowmq.cli.invocation import Invocation

# HTTP statuses from here on are no matter of the command.
_NODE_FAILED = 500
PID = re.compile(r"<[^<>\s]+\.\d+\.\d+\.\d+>")


def purge_queue(invocation: Invocation) -> int:
    """purge_queue QUEUE."""
    name = invocation.args[0]
    invocation.banner(f"Purging queue '{name}' in vhost '{invocation.vhost}' ...")
    path = f"/api/queues/{segment(invocation.vhost)}/{segment(name)}/contents"
    try:
        invocation.node.request("DELETE", path)
    except Refused as refused:
        if refused.status == 404:
            raise failure(
                f"no queue '{name}' in vhost '{invocation.vhost}'", UNAVAILABLE
            ) from refused
        raise
    return OK


def delete_queue(invocation: Invocation) -> int:
    """delete_queue QUEUE [--if-empty] [--if-unused]."""
    name, flags = invocation.args[0], invocation.flags
    if not name:
        raise bad_argument("Bad argument: queue name cannot be an empty string")
    conditions = [text for flag, text in (("if-empty", "if queue is empty"), ("if-unused", "if queue is unused"))
                  if flag in flags]  # fmt: skip
    condition = f" {' and '.join(conditions)}" if conditions else ""
    invocation.banner(f"Deleting queue '{name}' on vhost '{invocation.vhost}'{condition} ...")
    body = {
        "vhost": invocation.vhost,
        "name": name,
        "if_empty": "if-empty" in flags,
        "if_unused": "if-unused" in flags,
    }
    try:
        answer = invocation.node.request("POST", "/api/burrowmq/delete-queue", body)
    except Refused as refused:
        if refused.status >= _NODE_FAILED:
            raise
        text = "Error:\nQueue not found" if refused.status == 404 else refused.reason
        raise CliError(USAGE, text) from refused
    invocation.say(f"Queue was successfully deleted with {answer['messages']} ready messages")
    return OK


def close_connection(invocation: Invocation) -> int:
    """close_connection PID REASON: a pid that is gone is no error."""
    pid, reason = invocation.args
    if not PID.fullmatch(pid):
        raise CliError(UNAVAILABLE, f'Error:\n{{:invalid_pid_syntax, "{pid}"}}')
    invocation.banner(f"Closing connection {pid}, reason: {reason}...")
    invocation.node.request(
        "POST", "/api/burrowmq/close-connections", {"pid": pid, "reason": reason}
    )
    return OK


def close_all_connections(invocation: Invocation) -> int:
    """close_all_connections REASON: of one vhost, or --global."""
    (reason,) = invocation.args
    if "global" in invocation.flags:
        name = invocation.node.node_name
        invocation.banner(
            f"Closing all connections to node {name} (across all vhosts), reason: {reason}..."
        )
        return _close(invocation, {"reason": reason})
    invocation.banner(f"Closing all connections in vhost {invocation.vhost}, reason: {reason}...")
    return _close(invocation, {"reason": reason, "vhost": invocation.vhost})


def _close(invocation: Invocation, body: dict[str, object]) -> int:
    limit, delay_s = (
        int(invocation.number("limit", 0)),
        invocation.number("per-connection-delay", 0) / 1000,
    )
    if delay_s <= 0:
        closed = invocation.node.request(
            "POST", "/api/burrowmq/close-connections", {**body, "limit": limit}
        )["closed"]
    else:
        closed = 0
        # One by one with a pause, so that clients do not all come back at once; those that do are not closed again.
        rows = invocation.node.get("/api/burrowmq/list/connections?columns=vhost")["rows"]
        waiting = sum(row[0] == body.get("vhost", row[0]) for row in rows)
        while closed < (min(limit, waiting) or waiting):
            answer = invocation.node.request(
                "POST", "/api/burrowmq/close-connections", {**body, "limit": 1}
            )
            if not answer["closed"]:
                break
            closed += 1
            time.sleep(delay_s)
    invocation.say(f"Closed {closed} connections")
    return OK


def close_all_user_connections(invocation: Invocation) -> int:
    """close_all_user_connections USER REASON."""
    user, reason = invocation.args
    invocation.banner(f"Closing connections of user {user}, reason: {reason}...")
    body = {"user": user, "reason": reason}
    invocation.node.request("POST", "/api/burrowmq/close-connections", body)
    return OK
