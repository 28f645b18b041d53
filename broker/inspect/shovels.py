"""Shovels as rows.

Owns no state. Keys are those of RabbitMQ's HTTP API, with the counts that later versions have; URIs are shown without
what is secret. Source: rabbit_shovel_mgmt_util, rabbit_shovel_status (3.13).
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from burrowmq.broker.inspect.values import Row
from burrowmq.broker.node.running import RunningNode

if TYPE_CHECKING:
    from burrowmq.broker.shovel.worker import Worker


def shovels(node: RunningNode, vhost: str | None = None) -> list[Row]:
    """All, or those of a virtual host, by virtual host and name; static ones belong to none."""
    found = node.shovels.found
    if found is None:
        return []
    return [
        shovel_row(node.name, found.workers[key])
        for key in sorted(found.workers)
        if vhost in (None, key[0])
    ]


def shovel_row(node_name: str, worker: Worker) -> Row:
    """One shovel."""
    definition, run = worker.definition, worker.run
    row: Row = {
        "node": node_name,
        "timestamp": _moment(worker.since_ms),
        "name": definition.name,
        "vhost": definition.vhost,
        "type": "static" if definition.is_static else "dynamic",
        "state": worker.state,
        "forwarded": worker.forwarded,
    }
    if definition.is_static:
        del row["vhost"]
    names = {
        **{f"src_{key}": value for key, value in worker.names("source").items()},
        **{f"dest_{key}": value for key, value in worker.names("destination").items()},
    }
    if worker.state == "terminated":
        # Here RabbitMQ says nothing of its ends: who looks for the one that stands still wants to know them.
        row.update(reason=worker.reason, **names)
    elif worker.state == "running" and run is not None:
        row.update(
            src_uri=run.source_uri,
            src_protocol="amqp091",
            dest_protocol="amqp091",
            dest_uri=run.destination_uri,
            **names,
            pending=run.pending,
            refused=run.refused,
            remaining="unlimited" if run.remaining is None else run.remaining,
            remaining_unacked=(
                "unlimited" if run.remaining_unacked is None else run.remaining_unacked
            ),
            blocked_status="blocked" if run.is_blocked else "running",
        )
    return row


def _moment(wall_ms: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(wall_ms / 1000))
