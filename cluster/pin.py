"""Being the one client to whom a shared consumer gives its messages: JetStream's priority policy `pinned_client`.

The server pins the first who asks, and says so with each message (`Nats-Pin-Id`). Requests that carry this id are
served, those without one wait, those with another end with the status 423. The pin is lost when no request has carried
its id for the consumer's time (`PIN_MS`), when it is given up (`let_go`), and when another server leads the consumer.

An open request does not keep the pin, and who has credit for nothing opens none: so a request goes out from time to
time that can bring nothing, since it takes messages of one octet at most.

State owned: the id, when it was last kept, since when it is not needed. Called by `cluster.intake` and who holds the
link. No I/O, and no clock.

Source: nats-server 2.15, server/consumer.go (nextWaiting, processNextMsgRequest); ADR-42 of
nats-architecture-and-design.
"""

from __future__ import annotations

import json
from typing import Final

from burrowmq.cluster.api import MS, Request
from burrowmq.cluster.wire import Headers, WireError, decode_headers, encode_publish

GROUP: Final = "sac"
PIN_MS: Final = 7_000
KEEP_MS: Final = 1_500.0
PINNED: Final = (
    ("priority_groups", (GROUP,)),
    ("priority_policy", "pinned_client"),
    ("priority_timeout", PIN_MS * MS),
)
"""What makes a consumer give its messages to one client at a time."""
SETTLED_MS: Final = 250.0
"""What was said so long ago the server has heard, as far as one can tell."""
HOLD_MS: Final = 5_000.0
"""Who has left and still holds messages is waited for so long."""
_HEADER: Final = "Nats-Pin-Id"
_WRONG: Final = 423


class Pin:
    """That of one front-end at one consumer; `nowhere` is a subject that nobody hears."""

    def __init__(self, stream: str, consumer: str, nowhere: bytes) -> None:
        self._stream = stream
        self._consumer = consumer
        self._nowhere = nowhere
        self._kept_ms = 0.0
        self._alone_ms: float | None = None  # since when nobody consumes here
        self._until_ms = 0.0  # when it is let go of then
        self._is_sure = False
        self.id = ""
        """Who this front-end is as the pinned one; "" while it is not, as far as it knows."""

    def fields(self) -> dict[str, str]:
        """What a request for messages says besides."""
        return {"group": GROUP, "id": self.id} if self.id else {"group": GROUP}

    def delivered(self, headers: bytes, now_ms: float) -> bool:
        """A message has come with these headers; whether that is news: this front-end is the pinned one."""
        try:
            found = decode_headers(headers).values.get(_HEADER, "")
        except WireError:
            return False
        if not found:
            return False
        self._is_sure = True
        if found == self.id:
            return False
        self.id, self._kept_ms = found, now_ms
        return True

    def heard(self, status: Headers) -> None:
        """A request has ended so."""
        if status.status == _WRONG:
            self.id = ""

    def lost(self) -> None:
        """The link broke: another may be pinned by now."""
        self._is_sure = False

    def tend(self, now_ms: float, *, is_consuming: bool, is_holding: bool) -> bytes:
        """Keep the pin while somebody consumes here or holds what he was given, but not for ever; then let go of it."""
        if not self.id or is_consuming:
            self._alone_ms = None
            return self._keep(now_ms)
        if self._alone_ms is None:
            self._alone_ms = now_ms
        self._until_ms = self._alone_ms + (HOLD_MS if is_holding else SETTLED_MS)
        return self.let_go() if now_ms >= self._until_ms else self._keep(now_ms)

    def _keep(self, now_ms: float) -> bytes:
        if not self.id or now_ms < self._kept_ms + KEEP_MS:
            return b""
        self._kept_ms = now_ms
        body: dict[str, object] = {"batch": 1, "no_wait": True, "max_bytes": 1, **self.fields()}
        subject = f"$JS.API.CONSUMER.MSG.NEXT.{self._stream}.{self._consumer}".encode()
        return encode_publish(subject, json.dumps(body).encode(), self._nowhere)

    def due_ms(self) -> float | None:
        """When `tend` has something to say, if nothing happens; None for never."""
        if not self.id:
            return None
        kept_ms = self._kept_ms + KEEP_MS
        return kept_ms if self._alone_ms is None else min(kept_ms, self._until_ms)

    def let_go(self) -> bytes:
        """Have the server pin whoever asks next; b"" from who may not be pinned: that would unpin another."""
        is_mine = bool(self.id) and self._is_sure
        self.id = ""
        if not is_mine:
            return b""
        request = unpin(self._stream, self._consumer)
        return encode_publish(request.subject, request.payload, self._nowhere)


def unpin(stream: str, consumer: str) -> Request:
    """Have nobody pinned."""
    subject = f"$JS.API.CONSUMER.UNPIN.{stream}.{consumer}".encode()
    return Request(subject, json.dumps({"group": GROUP}).encode())


def pinned_id(consumer: dict[str, object]) -> str:
    """Who is pinned, as the consumer's state says; "" for nobody."""
    groups = consumer.get("priority_groups")
    for group in groups if isinstance(groups, list) else ():
        if isinstance(group, dict) and group.get("group") == GROUP:
            return str(group.get("pinned_client_id") or "")
    return ""
