"""Logins to the UI: a random token in a cookie stands for a user until it ends.

State: the logins by the digest of their token, those used longest ago first; at most `LOGINS_MAX` of them and
`USER_LOGINS_MAX` of one user, whose oldest makes room. A login ends `lifetime_s` after it began
(`management.login_session_timeout`), an hour after its last use, at its logout, and as soon as the user's record is
another one: a new password, other tags, deleted, even if made again. The node's memory is the only place it is in.

Called by `management.callers`. Never here: passwords, and what a user may do.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from burrowmq.broker.rules.auth import User

IDLE_S = 3600.0
LOGINS_MAX = 1000
USER_LOGINS_MAX = 20
TOKEN_SIZE = 32


@dataclass(slots=True)
class Login:
    """Who, since when, last used when."""

    user: User
    began_s: float
    used_s: float


class Logins:
    """The logins of a node's UI; `token` makes unpredictable octets, `now_s` is a clock that never goes back."""

    def __init__(
        self, lifetime_s: float, token: Callable[[int], bytes], now_s: Callable[[], float]
    ) -> None:
        self.lifetime_s = lifetime_s
        self._token = token
        self._now_s = now_s
        self._logins: dict[bytes, Login] = {}

    def __len__(self) -> int:
        return len(self._logins)

    def begin(self, user: User) -> str:
        """Log a user in; the token for the cookie."""
        own = [key for key, login in self._logins.items() if login.user.name == user.name]
        if len(own) >= USER_LOGINS_MAX:
            del self._logins[own[0]]
        elif len(self._logins) >= LOGINS_MAX:
            del self._logins[next(iter(self._logins))]
        token, now_s = self._token(TOKEN_SIZE).hex(), self._now_s()
        self._logins[_key(token)] = Login(user, now_s, now_s)
        return token

    def user_of(self, token: str, users: Mapping[str, User]) -> User | None:
        """The user whom a token stands for; None, and the login is over, if it stands for nobody any more."""
        key, now_s = _key(token), self._now_s()
        login = self._logins.pop(key, None)
        if login is None:
            return None
        known = users.get(login.user.name)
        if known is None or _identity(known) != _identity(login.user):
            return None
        if now_s - login.began_s >= self.lifetime_s or now_s - login.used_s >= IDLE_S:
            return None
        login.used_s = now_s
        self._logins[key] = login  # the latest used is the last
        return known

    def end(self, token: str) -> None:
        """Log out."""
        self._logins.pop(_key(token), None)


def _key(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "surrogateescape")).digest()


def _identity(user: User) -> tuple[str, str, tuple[str, ...]]:
    """What a login rests on; limits of connections are no part of it."""
    return user.password_hash, user.hashing_algorithm, user.tags
