"""A node as its operator and its applications see it: the HTTP API, burrowctl, and connections as any user.

State: the connections opened, and the users and virtual hosts made, all gone after `close`.
Callers: tests of the management folder.
"""

from __future__ import annotations

from typing import Any
from urllib.parse import quote

import pika
from pika.adapters.blocking_connection import BlockingChannel, BlockingConnection

from tests.support.black_box import drop
from tests.support.broker_process import BrokerProcess
from tests.support.served import Answer, request

GUEST = {"Authorization": "Basic Z3Vlc3Q6Z3Vlc3Q="}


class NodeClient:
    """One node; see the module."""

    def __init__(self, process: BrokerProcess) -> None:
        self.process = process
        self._opened: list[BlockingConnection] = []
        self._made: list[str] = []

    def api(self, method: str, path: str, body: Any = None) -> Answer:
        """One request as guest."""
        return request(self.process.management_port, method, path, body, GUEST)

    def get(self, path: str) -> Any:
        """The JSON of a GET that must succeed."""
        answer = self.api("GET", path)
        assert answer.status == 200, answer
        return answer.body

    def ctl(self, *arguments: str) -> str:
        """Run burrowctl."""
        return self.process.ctl(*arguments)

    def import_from_itself(self, queue: str) -> None:
        """Begin an import of a queue, whose other broker is the node itself."""
        uri = f"amqp://guest:guest@127.0.0.1:{self.process.amqp_port}"
        body = {"uri": uri, "queues": [{"vhost": "/", "name": queue}]}
        answer = self.api("POST", "/api/burrowmq/import", body)
        assert answer.status == 202, answer

    def user(self, name: str, *vhosts: str, tags: str = "") -> str:
        """Make a user (its password is its name) who may do everything in these virtual hosts."""
        self.api("PUT", f"/api/users/{name}", {"password": name, "tags": tags})
        self._made.append(f"/api/users/{name}")
        for vhost in vhosts:
            self.permit(name, vhost)
        return name

    def permit(
        self, user: str, vhost: str, configure: str = ".*", write: str = ".*", read: str = ".*"
    ) -> None:
        """Give permissions."""
        body = {"configure": configure, "write": write, "read": read}
        self.api("PUT", f"/api/permissions/{quote(vhost, safe='')}/{user}", body)

    def vhost(self, name: str) -> str:
        """Make a virtual host."""
        self.api("PUT", f"/api/vhosts/{name}", {})
        self._made.append(f"/api/vhosts/{name}")
        return name

    def connect(self, user: str = "guest", vhost: str = "/", **options: Any) -> BlockingConnection:
        """Open a connection."""
        parameters = pika.ConnectionParameters(
            "127.0.0.1",
            self.process.amqp_port,
            vhost,
            pika.PlainCredentials(user, user),
            **({"heartbeat": 0} | options),
        )
        self._opened.append(BlockingConnection(parameters))
        return self._opened[-1]

    def channel(self, user: str = "guest", vhost: str = "/") -> BlockingChannel:
        """Open a channel on a connection of its own."""
        return self.connect(user, vhost).channel()

    def disconnect(self) -> None:
        """Cut the connections."""
        for connection in self._opened:
            drop(connection)
        self._opened.clear()

    def close(self) -> None:
        """Cut the connections and remove what was made."""
        self.disconnect()
        for path in reversed(self._made):
            self.api("DELETE", path)
