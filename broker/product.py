"""Who we say we are: our version, and RabbitMQ's, which clients branch on.

Constants, and the table of connection.start made from them. Read by `broker.node.running`, the server's command line
and management.
"""

from __future__ import annotations

import sys

import burrowmq
from burrowmq.protocol.table import FieldTable

VERSION = burrowmq.__version__
RABBITMQ_VERSION = "3.13.7"


def server_properties(cluster_name: str) -> FieldTable:
    """What connection.start tells: RabbitMQ's product and version, because clients branch on them; ours beside."""
    capabilities: FieldTable = dict.fromkeys(
        (
            "publisher_confirms",
            "exchange_exchange_bindings",
            "basic.nack",
            "consumer_cancel_notify",
            "connection.blocked",
            "consumer_priorities",
            "authentication_failure_close",
            "per_consumer_qos",
            "direct_reply_to",
        ),
        True,
    )
    return {
        "capabilities": capabilities,
        "cluster_name": cluster_name,
        "copyright": "Copyright the BurrowMQ authors",
        "information": "BurrowMQ, licensed under the Apache License 2.0",
        "platform": f"Python {sys.version.split()[0]}",
        "product": "RabbitMQ",
        "version": RABBITMQ_VERSION,
        "burrowmq_version": VERSION,
    }
