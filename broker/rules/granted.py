"""Which users have something to say in which virtual hosts, both ways round.

Permissions are kept by virtual host and user. What one user has, or one virtual host, is asked for by whoever deletes
either: to look through all permissions each time cost the square of the users, and a request that deletes ten thousand
of them held everybody up for 13 seconds.

State owned: the two tables. Called by `broker.rules.auth`, and asked by `broker.inspect`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator


class Granted:
    """Pairs of a virtual host and a user, each once."""

    def __init__(self) -> None:
        self._vhosts: dict[str, dict[str, None]] = {}
        self._users: dict[str, dict[str, None]] = {}

    def add(self, vhost: str, user: str) -> None:
        """This user has something there; again is the same."""
        self._vhosts.setdefault(user, {})[vhost] = None
        self._users.setdefault(vhost, {})[user] = None

    def discard(self, vhost: str, user: str) -> None:
        """This user has nothing there; harmless if that was so."""
        for table, one, other in ((self._vhosts, user, vhost), (self._users, vhost, user)):
            found = table.get(one, {})
            found.pop(other, None)
            if not found:
                table.pop(one, None)

    def vhosts_of(self, user: str) -> list[str]:
        """Where a user has something, in the order in which it came."""
        return list(self._vhosts.get(user, ()))

    def users_of(self, vhost: str) -> list[str]:
        """Who has something in a virtual host, in the order in which it came."""
        return list(self._users.get(vhost, ()))

    def pairs(self, vhost: str | None, user: str | None) -> list[tuple[str, str]]:
        """All of (virtual host, user), or those of one virtual host, one user, or both."""
        if user is not None:
            return [(one, user) for one in self.vhosts_of(user) if vhost in (None, one)]
        vhosts = list(self._users) if vhost is None else [vhost]
        return [(one, name) for one in vhosts for name in self.users_of(one)]

    def in_order(self, vhost: str | None, user: str | None) -> Iterator[tuple[str, str]]:
        """The same by name; a virtual host's are sorted when it is their turn."""
        if user is not None:
            yield from sorted(self.pairs(vhost, user))
            return
        for one in sorted(self._users) if vhost is None else [vhost]:
            for name in sorted(self.users_of(one)):
                yield one, name
