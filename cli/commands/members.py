"""rabbitmq-queues and rabbitmq-streams: which servers keep a queue, and one more or one fewer of them.

Owns no state. Banners and tables are RabbitMQ's; a NODE is the name of a nats-server.
"""

from __future__ import annotations

from typing import Any

from burrowmq.cli.client import Refused
from burrowmq.cli.errors import DATAERR, OK, USAGE, CliError, bad_argument, failure
from burrowmq.cli.invocation import Invocation

MEMBERSHIPS = ("promotable", "voter")
STRATEGIES = ("all", "even")
COLUMNS = ["vhost", "name", "size", "result"]


def _ask(invocation: Invocation, action: str, **more: Any) -> Any:
    try:
        return invocation.node.request("POST", "/api/burrowmq/members", {"action": action, **more})
    except Refused as refused:
        if refused.status == 400:
            raise bad_argument(refused.reason, USAGE) from refused
        if refused.status == 404:
            raise CliError(DATAERR, refused.reason) from refused
        raise failure(refused.reason) from refused


def _require_vote(invocation: Invocation) -> None:
    """Whatever RabbitMQ's member would be at first, it votes once it has everything, and then these commands return."""
    membership = invocation.values.get("membership", "voter")
    if membership == "non_voter":
        text = "a non_voter cannot be kept: each server that keeps a queue has a vote"
        raise bad_argument(text, USAGE)
    if membership not in MEMBERSHIPS:
        raise bad_argument(f"voter status '{membership}' is not recognised.", USAGE)


def change(invocation: Invocation) -> int:
    """add_member, delete_member of a quorum queue, add_replica, delete_replica of a stream: QUEUE NODE."""
    _require_vote(invocation)
    name, server = invocation.args
    action, _, noun = invocation.name.partition("_")
    told = f"Removing a replica of queue {name} on node {server}..."
    if action == "add":
        told = f"Adding a replica for queue {name} on node {server}..."
    invocation.banner(told)
    kind = "stream" if noun == "replica" else "quorum"
    _ask(invocation, action, kind=kind, vhost=invocation.vhost, name=name, node=server)
    return OK


def restart(invocation: Invocation) -> int:
    """restart_stream STREAM: another server writes it; says which."""
    name = invocation.args[0]
    invocation.banner(f"Restarting stream {name}...")
    preferred = invocation.values.get("preferred-leader-node", "")
    led_by = _ask(
        invocation, "restart", kind="stream", vhost=invocation.vhost, name=name, node=preferred
    )
    invocation.say(led_by)
    return OK


def status(invocation: Invocation) -> int:
    """quorum_status, stream_status QUEUE: who keeps it, who leads."""
    name, kind = invocation.args[0], invocation.name.partition("_")[0]
    node = invocation.node.node_name
    invocation.banner(f"Status of {kind} queue {name} on node {node} ...")
    rows = _ask(invocation, "status", kind=kind, vhost=invocation.vhost, name=name)
    invocation.rows(list(rows[0]) if rows else [], [list(row.values()) for row in rows])
    return OK


def resize(invocation: Invocation) -> int:
    """Grow NODE all | even, shrink NODE: of all quorum queues, or those that fit."""
    server, *rest = invocation.args
    if invocation.name == "grow":
        if rest[0] not in STRATEGIES:
            known = ", ".join(STRATEGIES)
            text = f"strategy '{rest[0]}' is not recognised. Please use one of: {known}"
            raise bad_argument(text, USAGE)
        _require_vote(invocation)
        invocation.banner(f"Growing {rest[0]} quorum queues on {server}...")
        patterns = {
            key.replace("-", "_"): invocation.values.get(key, "")
            for key in ("vhost-pattern", "queue-pattern")
        }
        rows = _ask(invocation, "grow", node=server, strategy=rest[0], **patterns)
    else:
        invocation.banner(f"Shrinking quorum queues on {server}...")
        rows = _ask(invocation, "shrink", node=server)
    if "errors-only" in invocation.flags:
        rows = [row for row in rows if row["result"] != "ok"]
    if rows or invocation.is_machine_readable:
        invocation.rows(COLUMNS, [[row[column] for column in COLUMNS] for row in rows])
    else:
        invocation.say("")
    return OK
