"""Guessed passwords: how many may be wrong before nobody listens any more.

State: a bucket for each address, and one for each user name tried from it. A wrong password fills both by one, and
both leak; while one is full, further logins from there are refused without a look at the password. So an address gets
`limit` guesses at a user at once and `leak_per_s` after that, and `ADDRESS_FACTOR` times as many at all users
together. What comes from other addresses is never asked about these buckets: nobody can lock a user out from afar.

Who has logged in from an address before is not held up by what others do there (one proxy, one office), only by the
bucket of that name. Loopback has no bucket of the address at all: everything on this machine shares it, and a program
with an old password must not keep burrowctl's neighbours out. The control socket asks for no password and is not here.

Invariants: the same for names that exist and names that do not; each table holds at most `ENTRIES_MAX` rows and drops
what changed longest ago, which has leaked most. Called by `broker.rules.auth`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Hashable

from burrowmq.records import dataclass

ENTRIES_MAX = 10_000
ADDRESS_FACTOR = 10
# The part of an IPv6 address that a provider gives to one customer.
CUSTOMER_BITS = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedLoginLimits:
    """How much an address may guess; a `limit` of 0 is none. `delay_s` is how long the answer to a guess takes."""

    limit: int = 10
    leak_per_s: float = 1.0
    delay_s: float = 0.0


class Buckets:
    """Levels that rise by one and sink with time, the latest risen last."""

    def __init__(self, size: int, leak_per_s: float) -> None:
        self.size = size
        self.leak_per_s = leak_per_s
        self._levels: dict[Hashable, tuple[float, float]] = {}  # level, and when it was that high

    def __len__(self) -> int:
        return len(self._levels)

    def level(self, key: Hashable, now_s: float) -> float:
        """How full it is."""
        level, since_s = self._levels.get(key, (0.0, now_s))
        return max(0.0, level - (now_s - since_s) * self.leak_per_s)

    def wait_s(self, key: Hashable, now_s: float) -> float:
        """How long until there is room for one more, 0.0 if there is."""
        return max(0.0, (self.level(key, now_s) + 1 - self.size) / self.leak_per_s)

    def add(self, key: Hashable, now_s: float) -> None:
        """One more."""
        level = self.level(key, now_s) + 1
        self._levels.pop(key, None)
        if len(self._levels) >= ENTRIES_MAX:
            del self._levels[next(iter(self._levels))]
        self._levels[key] = (level, now_s)

    def empty(self, key: Hashable) -> None:
        """Forget it."""
        self._levels.pop(key, None)


class FailedLogins:
    """The buckets of a node; `now_s` is a clock that never goes back."""

    def __init__(self, limits: FailedLoginLimits, now_s: Callable[[], float]) -> None:
        self.delay_s = limits.delay_s
        self._is_on = limits.limit > 0
        self._now_s = now_s
        self._users = Buckets(limits.limit, limits.leak_per_s)
        self._addresses = Buckets(limits.limit * ADDRESS_FACTOR, limits.leak_per_s * ADDRESS_FACTOR)
        self._welcome: dict[Hashable, None] = {}

    def wait_s(self, address: str, name: str) -> float:
        """For how long a login is refused unheard; 0.0 if it is heard."""
        if not self._is_on or not address:
            return 0.0
        now_s, (where, user) = self._now_s(), _keys(address, name)
        wait_s = self._users.wait_s(user, now_s)
        if where is not None and user not in self._welcome:
            wait_s = max(wait_s, self._addresses.wait_s(where, now_s))
        return wait_s

    def failed(self, address: str, name: str) -> None:
        """A password was wrong."""
        if not self._is_on or not address:
            return
        now_s, (where, user) = self._now_s(), _keys(address, name)
        self._users.add(user, now_s)
        if where is not None:
            self._addresses.add(where, now_s)

    def succeeded(self, address: str, name: str) -> None:
        """A password was right: what came before were slips."""
        if not self._is_on or not address:
            return
        _, user = _keys(address, name)
        self._users.empty(user)
        self._welcome.pop(user, None)
        if len(self._welcome) >= ENTRIES_MAX:
            del self._welcome[next(iter(self._welcome))]
        self._welcome[user] = None


def _keys(address: str, name: str) -> tuple[Hashable, Hashable]:
    """The address, None for this machine, and the name there; of one size however long the name is."""
    where = _customer(address)
    digest = hashlib.blake2b(name.encode("utf-8", "surrogateescape"), digest_size=16).digest()
    return (None if where == "" else where), (where, digest)


def _customer(address: str) -> str:
    """What of an address its user cannot change; "" for this machine."""
    if address in ("127.0.0.1", "::1"):
        return ""
    import ipaddress  # noqa: PLC0415 - an embedded broker's clients are here

    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is None:
            if found.is_loopback:
                return ""
            return str(ipaddress.ip_network((int(found), CUSTOMER_BITS), strict=False))
        found = found.ipv4_mapped
    return "" if found.is_loopback else str(found)
