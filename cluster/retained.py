"""Requests and answers of JetStream about streams that keep what was read, and about those who read them. No I/O.

Such a stream has limits of octets and age: what is beyond them goes, the oldest first. Its subjects are its name, a
dot, and how many messages a chunk has (`cluster.chunk`). Whoever reads has a consumer of his own, which one server
keeps in memory and forgets some time after the last request: it acknowledges nothing, and another one that begins
behind what was read takes its place when it is lost.

Owns no state. Called by `broker.replicated`, as `cluster.api` is.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final, NamedTuple

from burrowmq.cluster.api import MS, Document, Request, StreamSettings

DUPLICATES_MS: Final = 600_000
FORGET_MS: Final = 60_000
"""A consumer for which nobody has asked for so long goes."""
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_LATEST: Final = datetime(9999, 1, 1, tzinfo=UTC)


class Limits(NamedTuple):
    """What a stream keeps at most; None for no limit."""

    size: int | None
    """Octets."""
    age_ms: int | None

    def fields(self) -> dict[str, object]:
        """What a configuration has of them. Servers want the window of duplicates to be no longer than the age."""
        age_ms = self.age_ms or 0
        window_ms = min(DUPLICATES_MS, age_ms) if age_ms else DUPLICATES_MS
        return {
            "max_bytes": self.size or -1,
            "max_age": age_ms * MS,
            "duplicate_window": window_ms * MS,
        }


NO_LIMITS: Final = Limits(None, None)


@dataclass(frozen=True, slots=True, kw_only=True)
class RetainedSettings(StreamSettings):
    """A stream of this kind."""

    limits: Limits = NO_LIMITS

    def document(self) -> dict[str, object]:
        """The configuration that JetStream is given."""
        # Without the two arguments super() looks in the class that slots have replaced.
        common = super(RetainedSettings, self).document()
        return {**common, "retention": "limits", "discard": "old", **self.limits.fields()}


def change_limits(state: Document, limits: Limits) -> Request | None:
    """Have a stream keep this much from now on, and be as its state says in all else; None where it is so already."""
    config = state.get("config")
    if not isinstance(config, dict):
        return None
    wanted = {**config, **limits.fields()}
    if wanted == config:
        return None
    subject = f"$JS.API.STREAM.UPDATE.{config.get('name')}"
    return Request(subject.encode(), json.dumps(wanted).encode())


def counted_state(name: str) -> Request:
    """How much is in a stream, by subjects: `amount_of` reads the answer."""
    return Request(f"$JS.API.STREAM.INFO.{name}".encode(), b'{"subjects_filter":">"}')


class Amount(NamedTuple):
    """What a stream has."""

    message_count: int
    byte_count: int
    """Octets, the envelopes included."""
    first: int
    """Sequence of the oldest chunk."""
    last: int
    """That of the newest one, or of the last that there was."""


def amount_of(state: Document) -> Amount:
    """Read the answer to `counted_state`."""
    found = state.get("state")
    if not isinstance(found, dict):
        return Amount(0, 0, 1, 0)
    subjects = found.get("subjects")
    count = 0
    for subject, chunks in subjects.items() if isinstance(subjects, dict) else ():
        word = subject.rpartition(".")[2]
        if word.isdecimal() and isinstance(chunks, int):
            count += int(word) * chunks
    size, first, last = (
        value if isinstance(value := found.get(key), int) else 0
        for key in ("bytes", "first_seq", "last_seq")
    )
    return Amount(count, size, max(1, first), last)


# -- reading ----------------------------------------------------------------------------------------------------------


class Start(NamedTuple):
    """Where to begin: as JetStream calls it, and with what."""

    policy: str
    fields: tuple[tuple[str, object], ...] = ()


FIRST: Final = Start("all")
LAST: Final = Start("last")
NEXT: Final = Start("new")


def at_sequence(sequence: int) -> Start:
    """At this chunk; at the first one that is kept, if it is gone, and when it comes, if it is not there yet."""
    return Start("by_start_sequence", (("opt_start_seq", max(1, sequence)),))


def at_time(wall_ms: int) -> Start:
    """At the first chunk that was stored then or later, by the servers' clocks; behind the last where there is none."""
    try:
        at = min(max(_EPOCH, _EPOCH + timedelta(milliseconds=wall_ms)), _LATEST)
    except OverflowError:
        at = _LATEST if wall_ms > 0 else _EPOCH
    text = at.replace(tzinfo=None).isoformat(timespec="milliseconds")
    return Start("by_start_time", (("opt_start_time", f"{text}Z"),))


def create_reader(stream: str, name: str, start: Start) -> Request:
    """Make a consumer of one's own; `position_in` reads from the answer where it begins."""
    config: dict[str, object] = {
        "name": name,
        "deliver_policy": start.policy,
        **dict(start.fields),
        "ack_policy": "none",
        "replay_policy": "instant",
        "max_deliver": -1,
        "num_replicas": 1,
        "mem_storage": True,
        "inactive_threshold": FORGET_MS * MS,
    }
    body = {"stream_name": stream, "config": config}
    return Request(f"$JS.API.CONSUMER.CREATE.{stream}.{name}".encode(), json.dumps(body).encode())


def delete_reader(stream: str, name: str) -> Request:
    """Forget it now."""
    return Request(f"$JS.API.CONSUMER.DELETE.{stream}.{name}".encode(), b"")


def position_in(reader: Document) -> int:
    """The sequence that a reader, which has just been made, is given first."""
    delivered = reader.get("delivered")
    value = delivered.get("stream_seq") if isinstance(delivered, dict) else None
    return value + 1 if isinstance(value, int) else 1


def number_of(reply: bytes) -> int:
    """Which one of those that a reader was given a delivery is, from 1 on; of a reply that `api.place_of` knows."""
    return int(reply.rsplit(b".", 3)[1])
