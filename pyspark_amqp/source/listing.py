"""Which queues a query reads: those that it names, or those whose names match a pattern now.

State: the Listing of a pattern owns the names that it found last, and the time. Lives on the driver.

AMQP cannot list queues, so a pattern asks the broker's management API (`GET /api/queues/<vhost>`), as the user of
the connection. What matches is looked up again at most every REFRESH_S: a stream finds queues that are declared
while it runs, and forgets those that went.

Invariant: exclusive queues are left out, since nobody but their owner may consume them.
"""

from __future__ import annotations

import json
import re
from base64 import b64encode
from collections.abc import Iterator, Sequence
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from typing import Any, Final
from urllib.parse import quote, urlsplit

from pyspark_amqp.options.connection import Addresses
from pyspark_amqp.options.source import Queues
from pyspark_amqp.source.patience import Clock
from pyspark_amqp.wire import ConnectFailed, WireError
from pyspark_amqp.wire.address import Address, Tls

REFRESH_S: Final = 10.0
HTTP_PORT: Final = 15672
HTTPS_PORT: Final = 15671
_PAGE_SIZE: Final = 500
_OK: Final = 200
_STEP: Final = "listing queues"


class ListingRefused(WireError):
    """The management API does not list the virtual host's queues for this user."""


class Listing:
    """The queues of a query; each iteration gives those that there are now."""

    def __init__(self, addresses: Addresses, queues: Queues, clock: Clock | None = None) -> None:
        self._addresses = addresses
        self._queues = queues
        self._clock = clock or Clock()
        self._found: tuple[str, ...] = queues.names
        self._at_s: float | None = None

    def __iter__(self) -> Iterator[str]:
        """Yield the names. Raises: ListingRefused, ConnectFailed, BadAddress."""
        if self._queues.pattern is not None:
            now = self._clock.now_s()
            if self._at_s is None or now - self._at_s >= REFRESH_S:
                self._found = self._matching(re.compile(self._queues.pattern))
                self._at_s = now
        return iter(self._found)

    def _matching(self, pattern: re.Pattern[str]) -> tuple[str, ...]:
        names = self._ask_any()
        return tuple(sorted(name for name in names if pattern.fullmatch(name)))

    def _ask_any(self) -> list[str]:
        """Ask one broker after the other until one can be reached."""
        places = self._queues.management_uris
        tries = [(one, place) for one in self._addresses for place in places or (_default(one),)]
        for at, (address, place) in enumerate(tries):
            try:
                return _names(address, place)
            except ConnectFailed:
                if at + 1 == len(tries):
                    raise
        return []


def _default(address: Address) -> str:
    host = f"[{address.host}]" if ":" in address.host else address.host
    if address.tls is None:
        return f"http://{host}:{HTTP_PORT}"
    return f"https://{host}:{HTTPS_PORT}"


def _names(address: Address, place: str) -> list[str]:
    """Return the names of all queues of the address's virtual host that others may consume."""
    login = f"{address.user}:{address.find_password()}".encode()
    headers = {"Authorization": f"Basic {b64encode(login).decode()}"}
    found: list[str] = []
    page, page_count = 1, 1
    connection = _connection(address, place)
    try:
        while page <= page_count:
            prefix = urlsplit(place).path.rstrip("/")
            query = f"page={page}&page_size={_PAGE_SIZE}&columns=name,exclusive"
            path = f"{prefix}/api/queues/{quote(address.vhost, safe='')}?{query}"
            connection.request("GET", path, headers=headers)
            answer = connection.getresponse()
            text = answer.read()
            if answer.status != _OK:
                reason = f"{answer.status} {answer.reason}: {text[:200].decode('utf-8', 'replace')}"
                raise ListingRefused(place, _STEP, reason)
            listed = _parsed(place, text)
            found += [one["name"] for one in listed["items"] if not one.get("exclusive")]
            page, page_count = page + 1, listed["page_count"]
    except (OSError, HTTPException) as error:
        reason = f"{error or type(error).__name__}; queuePattern needs the management API"
        raise ConnectFailed(place, _STEP, reason) from error
    finally:
        connection.close()
    return found


def _connection(address: Address, place: str) -> HTTPConnection:
    parts = urlsplit(place)
    host, timeout_s = parts.hostname or "localhost", address.connect_timeout_s
    if parts.scheme == "https":
        context = (address.tls or Tls()).context(place)
        return HTTPSConnection(host, parts.port, timeout=timeout_s, context=context)
    return HTTPConnection(host, parts.port, timeout=timeout_s)


def _parsed(place: str, text: bytes) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(text)
        items: Sequence[Any] = found["items"]
        assert all(isinstance(one["name"], str) for one in items)
        return {"items": items, "page_count": int(found["page_count"])}
    except (ValueError, KeyError, TypeError, AssertionError) as error:
        raise ListingRefused(place, _STEP, "this is no management API") from error
