"""rabbitmq-upgrade and rabbitmq-queues: maintenance mode, and who leads what.

Owns no state; the node knows whether it is in maintenance. Texts and exit codes are those that 3.10.8 has for a node
that is its whole cluster.
"""

from __future__ import annotations

from burrowmq.cli import render
from burrowmq.cli.client import Refused
from burrowmq.cli.errors import OK, USAGE, bad_argument, failure
from burrowmq.cli.invocation import Invocation

KINDS = ("all", "classic", "quorum", "stream")
WAIT_S = 120


def drain(invocation: Invocation) -> int:
    """Drain: no new clients, and those that are connected are closed."""
    name = invocation.node.node_name
    invocation.banner(
        f"Will put node {name} into maintenance mode. The node will no longer serve any client traffic!"
    )
    return _maintain(invocation, is_on=True)


def revive(invocation: Invocation) -> int:
    """Revive: clients are taken again."""
    name = invocation.node.node_name
    invocation.banner(
        f"Will put node {name} back into regular operating mode."
        " The node will again serve client traffic and host primary queue replicas."
    )
    return _maintain(invocation, is_on=False)


def _maintain(invocation: Invocation, is_on: bool) -> int:
    try:
        invocation.node.request("POST", "/api/burrowmq/maintenance", {"enabled": is_on})
    except Refused as refused:
        raise failure(refused.reason) from refused
    return OK


def await_replicas(invocation: Invocation) -> int:
    """await_online_quorum_plus_one, await_online_synchronized_mirror: nothing to wait for."""
    what = "a synchronised mirror be online for all classic mirrored queues"
    if "quorum" in invocation.name:
        what = "a quorum + 1 of nodes to be online for all quorum queues"
    seconds = invocation.patience_s(WAIT_S)
    invocation.banner(f"Will wait for {what} for {seconds:.0f} seconds...")
    invocation.say(
        "Target node seems to be the only one in a single node cluster, the command does not apply"
    )
    return OK


def post_upgrade(invocation: Invocation) -> int:
    """post_upgrade: queues are where they are."""
    invocation.banner("Executing post upgrade tasks...")
    invocation.say("Rebalancing queue masters...\n")
    invocation.node.request("POST", "/api/rebalance/queues")
    return OK


def rebalance(invocation: Invocation) -> int:
    """Rebalance all | classic | quorum | stream: who leads those of the cluster; classic queues are where they are."""
    kind = invocation.args[0]
    if kind not in KINDS:
        raise failure(f"type {kind} is not supported. Try one of {', '.join(KINDS)}.")
    invocation.banner(f"Re-balancing leaders of {kind} queues...")
    patterns = {
        key: invocation.values.get(key.replace("_", "-"), "")
        for key in ("vhost_pattern", "queue_pattern")
    }
    path = "/api/burrowmq/rebalance"
    try:
        found = invocation.node.request("POST", path, {"kind": kind, **patterns})
    except Refused as refused:
        if refused.status == 400:
            raise bad_argument(refused.reason, USAGE) from refused
        raise
    columns, rows = ["Output"], [["[]"]]
    if found:
        columns, rows = list(found[0]), [list(row.values()) for row in found]
    if invocation.is_machine_readable and not found:
        invocation.say("[]")
        return OK
    formatter = invocation.formatter if invocation.is_machine_readable else "pretty_table"
    for line in render.lines(formatter, columns, rows, headers=True):
        invocation.say(line)
    return OK
