"""shovel_status, restart_shovel, delete_shovel.

Owns no state. Banners, columns and refusals are those of RabbitMQ's plugin; a column that no shovel has is left out.
"""

from __future__ import annotations

from typing import Any

from burrowmq.cli.client import Refused, segment
from burrowmq.cli.errors import OK, failure
from burrowmq.cli.invocation import Invocation

COLUMNS = {
    "destination": "dest_uri",
    "destination_exchange": "dest_exchange",
    "destination_exchange_key": "dest_exchange_key",
    "destination_protocol": "dest_protocol",
    "destination_queue": "dest_queue",
    "last_changed": "timestamp",
    "name": "name",
    "source": "src_uri",
    "source_exchange": "src_exchange",
    "source_exchange_key": "src_exchange_key",
    "source_protocol": "src_protocol",
    "source_queue": "src_queue",
    "state": "state",
    "termination_reason": "reason",
    "type": "type",
    "vhost": "vhost",
}
ALWAYS = ("name", "state", "termination_reason", "type", "vhost", "last_changed")


def shovel_status(invocation: Invocation) -> int:
    """shovel_status: every shovel of the node."""
    invocation.banner(f"Shovel status on node {invocation.node.node_name}")
    found: list[dict[str, Any]] = invocation.node.get("/api/shovels")
    columns = [
        column
        for column, key in COLUMNS.items()
        if column in ALWAYS or any(key in row for row in found)
    ]
    if found or invocation.is_machine_readable:
        rows = [[row.get(COLUMNS[column], "") for column in columns] for row in found]
        invocation.rows(columns, rows)
    else:
        invocation.say("")
    return OK


def restart_shovel(invocation: Invocation) -> int:
    """restart_shovel NAME."""
    name, node = invocation.args[0], invocation.node.node_name
    invocation.banner(
        f"Restarting dynamic Shovel {name} in virtual host {invocation.vhost} on node {node}"
    )
    return _change(invocation, "/restart")


def delete_shovel(invocation: Invocation) -> int:
    """delete_shovel NAME."""
    invocation.banner(f"Deleting shovel {invocation.args[0]} in vhost {invocation.vhost}")
    return _change(invocation)


def _change(invocation: Invocation, what: str = "") -> int:
    vhost, name = invocation.vhost, invocation.args[0]
    try:
        invocation.node.request(
            "DELETE", f"/api/shovels/vhost/{segment(vhost)}/{segment(name)}{what}"
        )
    except Refused as refused:
        if refused.status != 404:
            raise failure(refused.reason) from refused
        raise failure(
            f"Shovel with the given name was not found on the target node"
            f" '{invocation.node.node_name}' and / or virtual host '{vhost}'"
        ) from refused
    return OK
