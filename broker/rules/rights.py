"""What the user of one connection may do in the virtual host that it has entered, as permissions are at the moment.

State owned: none besides who and where. Made by the session with connection.open; the handlers of a channel's methods
ask before they look whether the thing asked about exists.

Source: RabbitMQ's rabbit_channel (check_resource_access, check_topic_authorisation).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from burrowmq.broker.rules.auth import Access, Auth, TopicAccess, User
    from burrowmq.broker.words.resource import ResourceKind


class Rights:
    """Those of one user in one virtual host."""

    __slots__ = ("_auth", "_user", "_vhost_name")

    def __init__(self, auth: Auth, user: User, vhost_name: str) -> None:
        self._auth = auth
        self._user = user
        self._vhost_name = vhost_name

    @property
    def generation(self) -> int:
        """Rises with every change of users and permissions."""
        return self._auth.generation

    def check(self, access: Access, kind: ResourceKind, name: str) -> None:
        """Raise AccessRefused unless the user has the permission."""
        self._auth.check(self._user, self._vhost_name, access, kind, name)

    def check_topic(self, access: TopicAccess, exchange: str, routing_key: str) -> None:
        """Raise AccessRefused unless the user may use this key with the topic exchange."""
        self._auth.check_topic(self._user, self._vhost_name, access, exchange, routing_key)

    def is_topic_limited(self, exchange: str) -> bool:
        """Whether the user may use some keys only with this exchange, should it be a topic exchange."""
        return self._auth.is_topic_limited(self._user, self._vhost_name, exchange)
