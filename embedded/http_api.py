"""The HTTP API and the UI of an embedded broker that was asked for them (`management=True`).

Loaded then, and not before: it brings aiohttp, which takes longer to load than all of the broker. There is no control
socket and no metrics page, and nothing is logged. State: the management server of one run. Called by `hosted_node`,
on the node's loop.
"""

from __future__ import annotations

import os
import socket

from burrowmq.broker.node.node import Node
from burrowmq.embedded.errors import BrokerError
from burrowmq.embedded.settings import HOST
from burrowmq.management import bound_sockets, server


class HttpApi:
    """One, from its start to its stop."""

    def __init__(self, management: server.Management, listener: socket.socket) -> None:
        self._management = management
        self._listener = listener
        self.port = int(listener.getsockname()[1])

    @classmethod
    async def start(cls, node: Node, port: int) -> HttpApi:
        """Serve on a port, 0 for one that is free. Raises BrokerError."""
        bound = bound_sockets.BoundSockets()
        try:
            listener = bound_sockets.bind_api(bound, HOST, port)
        except OSError as error:
            raise BrokerError(f"the HTTP API cannot start: {error}") from None
        return cls(await server.start(node, bound), listener)

    async def stop(self) -> None:
        """Close its listener; requests in progress get a second."""
        await self._management.stop()

    def forget(self) -> None:
        """In a forked child: close our descriptor of the listener, and leave it to the parent."""
        os.close(self._listener.fileno())
