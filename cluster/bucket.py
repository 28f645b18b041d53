"""A key-value bucket of JetStream: rows under keys, changes that name the revision they are made of, a watch.

A bucket is a stream that keeps the last message of each subject, as other NATS clients make and read it (`nats kv`).
A row's subject is its kind and a hash of its key: keys of rows are longer, and have other characters, than subjects
may. So the payload says the key. A row that is removed leaves a marker, which the servers remove in time.

The watch is a consumer of the stream, from which is pulled: first the last message of each subject, in the order in
which they were stored, then what is stored from then on. Nothing is acknowledged: what was missed shows in the numbers.

State owned: where a watch is. No I/O, and no clock. Called by `broker.replicated.agreed`.

Source: nats-server 2.15, server/stream.go and server/consumer.go; ADR-8 of nats-architecture-and-design.
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from burrowmq.cluster.api import MS, Refusal, Request, pull
from burrowmq.cluster.wire import (
    Delivered,
    WireError,
    decode_headers,
    encode_headers,
    encode_publish,
)

WRONG_REVISION: Final = 10071
"""Somebody else has changed the row."""
MARKER_S: Final = 3600
"""How long the marker of a removed row stays."""
AT_ONCE: Final = 1_000
"""Messages that are asked for at once."""
OPEN_MS: Final = 60_000
"""How long a request for them is open."""
HEARTBEAT: Final = 100
EXPIRED: Final = frozenset((404, 408))
HEARTBEAT_MS: Final = 1_000
"""So often an idle watch is heard of."""
GONE_MS: Final = 30_000
"""A watch that nobody listens to is removed by the servers after so long."""
_EXPECTED: Final = b"Nats-Expected-Last-Subject-Sequence"
_OPERATION: Final = "KV-Operation"
_HASH_OCTETS: Final = 16


@dataclass(frozen=True, slots=True)
class Bucket:
    """Which one, on how many servers."""

    name: str
    replicas: int
    is_in_memory: bool = False

    @property
    def stream(self) -> str:
        """What the servers call its stream."""
        return f"KV_{self.name}"

    def create(self) -> Request:
        """Make it; one that is there with the same settings is answered the same way."""
        body: dict[str, object] = {
            "name": self.stream,
            "subjects": [f"$KV.{self.name}.>"],
            "retention": "limits",
            "max_consumers": -1,
            "max_msgs": -1,
            "max_bytes": -1,
            "max_age": 0,
            "max_msgs_per_subject": 1,
            "discard": "new",
            "storage": "memory" if self.is_in_memory else "file",
            "num_replicas": self.replicas,
            "allow_direct": True,
            "allow_rollup_hdrs": True,
            "allow_msg_ttl": True,
            "deny_delete": True,
        }
        return _request(b"STREAM.CREATE." + self.stream.encode(), body)

    def token(self, kind: str, key: str) -> str:
        """What tells a row from others: the end of its subject."""
        octets = hashlib.blake2b(key.encode(), digest_size=_HASH_OCTETS)
        return f"{kind}.{octets.hexdigest()}"

    def put(self, kind: str, key: str, value: object, revision: int) -> Request:
        """Write a row that has this revision, 0 for one that there is not; None removes it."""
        pairs = [(_EXPECTED, b"%d" % revision)]
        payload = b""
        if value is None:
            pairs += [(_OPERATION.encode(), b"DEL"), (b"Nats-TTL", b"%ds" % MARKER_S)]
        else:
            payload = json.dumps({"key": key, "row": value}, separators=(",", ":")).encode()
        subject = f"$KV.{self.name}.{self.token(kind, key)}".encode()
        return Request(subject, payload, encode_headers(pairs))

    def watch(self, name: str) -> Request:
        """Make a consumer of all rows, and from then on all changes."""
        config = {
            "name": name,
            "deliver_policy": "last_per_subject",
            "filter_subject": f"$KV.{self.name}.>",
            "ack_policy": "none",
            "replay_policy": "instant",
            "inactive_threshold": GONE_MS * MS,
            "mem_storage": True,
            "num_replicas": 1,
        }
        body: dict[str, object] = {"stream_name": self.stream, "config": config}
        return _request(b"CONSUMER.CREATE.%b.%b" % (self.stream.encode(), name.encode()), body)

    def unwatch(self, name: str) -> Request:
        """End a watch."""
        return _request(b"CONSUMER.DELETE.%b.%b" % (self.stream.encode(), name.encode()), None)


def _request(verb: bytes, body: dict[str, object] | None) -> Request:
    return Request(b"$JS.API." + verb, b"" if body is None else json.dumps(body).encode())


def current_revision(refusal: Refusal) -> int:
    """The revision that a row has, from the words of the refusal of a wrong one; 0 if they do not say it."""
    number = refusal.text.rpartition(" ")[2]
    return int(number) if number.isdigit() else 0


class Entry(NamedTuple):
    """A row as it is since `revision`; None for one that was removed. `key` is "" then."""

    token: str
    key: str
    value: Any
    revision: int
    rest: int
    """How many more were there, when the servers sent it."""

    @property
    def kind(self) -> str:
        """Of which kind the row is."""
        return self.token.partition(".")[0]


class Ended(NamedTuple):
    """It is to be made anew: something was sent that has not come, or the servers have it no more."""

    reason: str


class Watch:
    """One watch, from its first message on; `inbox` is where its messages come to."""

    def __init__(self, bucket: Bucket, name: str, inbox: bytes) -> None:
        self._skip = len(f"$KV.{bucket.name}.")
        self._count = 0
        self._left = 0  # of the messages that are asked for
        self._stream = bucket.stream
        self._name = name
        self._inbox = inbox

    def poll(self) -> bytes:
        """What is to be sent: a request for more, when there is none open."""
        if self._left:
            return b""
        self._left = AT_ONCE
        request = pull(
            self._stream, self._name, AT_ONCE, expires_ms=OPEN_MS, heartbeat_ms=HEARTBEAT_MS
        )
        return encode_publish(request.subject, request.payload, self._inbox)

    def delivered(self, delivered: Delivered) -> Entry | Ended | None:
        """What it says, if anything."""
        if not delivered.reply.startswith(b"$JS.ACK."):
            return self._status(delivered)
        _, revision, own, _, rest = delivered.reply.rsplit(b".", 4)
        self._count += 1
        self._left -= 1
        if int(own) != self._count:
            return Ended(f"{own.decode()} has come, and not {self._count}")
        token = delivered.subject[self._skip :].decode()
        key, value = "", None
        if not _is_marker(delivered.headers):
            try:
                found = json.loads(delivered.payload)
                key, value = str(found["key"]), found["row"]
            except (ValueError, KeyError, TypeError, RecursionError):
                key, value = "", None  # not ours: somebody has written it by hand
        return Entry(token, key, value, int(revision), int(rest))

    def _status(self, delivered: Delivered) -> Ended | None:
        try:
            found = decode_headers(delivered.headers)
        except WireError as error:
            return Ended(str(error))
        if found.status == HEARTBEAT:
            last = found.values.get("Nats-Last-Consumer", "0")
            is_behind = last.isdigit() and int(last) > self._count
            return Ended("messages are missing") if is_behind else None
        if found.status in EXPIRED:
            self._left = 0
            return None
        return Ended(f"{found.status} {found.text}")


def _is_marker(headers: bytes) -> bool:
    if not headers:
        return False
    try:
        return decode_headers(headers).values.get(_OPERATION) in {"DEL", "PURGE"}
    except WireError:
        return False
