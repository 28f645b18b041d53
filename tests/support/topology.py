"""Small stand-ins around the topology: an engine that keeps rows, queues that count, a session with real permissions.

They behave, they do not record expectations: rows can be read back and restored, permissions are those of the real
`broker.rules.auth`, and a reply is a reply that was sent or held for the disk.
"""

from __future__ import annotations

from typing import Any

from burrowmq.broker.definitions.restore import EVERYTHING
from burrowmq.broker.exchange.binding import Destination
from burrowmq.broker.queue.rules.settings import QueueDeclaration, Settings
from burrowmq.broker.report.metrics import NodeMetrics
from burrowmq.broker.rules.auth import Auth, User
from burrowmq.broker.vhost.vhost import Vhost, VhostOptions


class KeptDefinitions:
    """Definition rows, as the store would have them after the next commit."""

    def __init__(self) -> None:
        self.rows: dict[tuple[str, str], dict[str, object]] = {}

    def put(self, kind: str, key: str, value: dict[str, object]) -> None:
        self.rows[(kind, key)] = value

    def delete(self, kind: str, key: str) -> None:
        self.rows.pop((kind, key), None)

    def as_list(self) -> list[tuple[str, str, object]]:
        return [(kind, key, value) for (kind, key), value in self.rows.items()]

    def of(self, kind: str) -> list[dict[str, object]]:
        return [value for (found, _), value in self.rows.items() if found == kind]


class KeptEngine:
    """The part of the storage engine that topology uses."""

    def __init__(self) -> None:
        self.epoch = 1
        self.definitions = KeptDefinitions()
        self.deleting: set[tuple[str, str]] = set()

    def is_deleting(self, vhost: str, name: str) -> bool:
        return (vhost, name) in self.deleting


class CountingEntropy:
    """Bytes that are different each time and known beforehand."""

    def __init__(self) -> None:
        self._count = 0

    def token(self, size: int) -> bytes:
        self._count += 1
        return self._count.to_bytes(size, "big")


class CountingQueue:
    """A queue that holds numbers instead of messages."""

    def __init__(self, declaration: QueueDeclaration, settings: Settings) -> None:
        self.name = declaration.name
        self.durable = declaration.durable and declaration.owner is None
        self.auto_delete = declaration.auto_delete
        self.exclusive_owner = declaration.owner
        self.arguments = declaration.arguments
        self.settings = settings
        self.ready_count = 0
        self.consumer_count = 0
        self.touch_count = 0
        self.is_deleted = False
        self.is_open = False

    def __repr__(self) -> str:
        return f"CountingQueue({self.name!r})"

    def purge(self) -> int:
        count, self.ready_count = self.ready_count, 0
        return count

    def delete(self) -> None:
        self.is_deleted = True

    def open_storage(self) -> None:
        self.is_open = True

    def touch(self) -> None:
        self.touch_count += 1

    def apply_settings(self, settings: Settings) -> None:
        self.settings = settings


class NamedDestination:
    """A destination that is only a name."""

    durable = True

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"NamedDestination({self.name!r})"


def make_queue(vhost: Vhost, declaration: QueueDeclaration, settings: Settings) -> Any:
    """The queue factory of these tests."""
    return CountingQueue(declaration, settings)


def make_vhost(
    name: str = "/", engine: KeptEngine | None = None, options: VhostOptions | None = None
) -> Vhost:
    """A vhost over counting queues."""
    return Vhost(name, engine or KeptEngine(), make_queue, CountingEntropy(), options)


def make_auth(definitions: KeptDefinitions | None = None) -> Auth:
    """Users of which guest may do everything in the vhost /."""
    auth = Auth(definitions or KeptDefinitions(), CountingEntropy())
    auth.set_password("guest", "guest")
    auth.set_permission("/", "guest", EVERYTHING)
    return auth


class FakeSession:
    """One connection's identity, with the checks of the real `broker.rules.auth`."""

    def __init__(self, vhost: Vhost, auth: Auth | None = None, user: str = "guest") -> None:
        self.vhost = vhost
        self.auth = auth or make_auth()
        self.user: User = self.auth.users[user]
        self.entropy = CountingEntropy()
        self.metrics = NodeMetrics()

    def check(self, permission: Any, kind: Any, name: str) -> None:
        self.auth.check(self.user, self.vhost.name, permission, kind, name)

    def check_topic(self, permission: Any, exchange: str, routing_key: str) -> None:
        self.auth.check_topic(self.user, self.vhost.name, permission, exchange, routing_key)


class FakeChannel:
    """A channel that keeps what it sent and what waits for the disk."""

    def __init__(self, session: FakeSession) -> None:
        self.session = session
        self.vhost = session.vhost
        self.number = 1
        self.last_queue_name: str | None = None
        self.sent: list[Any] = []
        self.held: list[Any] = []

    def reply(self, method: Any) -> None:
        self.sent.append(method)

    def reply_durable(self, method: Any) -> None:
        self.held.append(method)


def destination_names(found: Any) -> list[str]:
    """The names of what an exchange matched, each once, sorted."""
    names: set[str] = set()
    for each in found:
        destination: Destination = each
        names.add(destination.name)
    return sorted(names)
