"""Requests and answers of JetStream as values: streams, consumers, pulls, acknowledgements. No I/O.

A `Request` is a subject and a payload; who sends it adds the subject for the answer. Requests of the API are answered
in JSON (`answer`), a publish in JSON or by the status 503 where no leader listens (`publish_answer`), a pull by
deliveries whose reply subject says which message it is (`place_of`), or by a status (`cluster.wire.decode_headers`).

Owns no state. Called by `cluster.window`, `cluster.intake` and whoever declares. Whatever the other side answers
gives a value: one that is no JSON is a refusal with code 0.

Source: docs.nats.io, "JetStream wire API"; nats-server 2.15, server/jetstream_api.go, stream.go, consumer.go,
errors.json; ADR-50 of nats-architecture-and-design for atomic batches.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import Enum
from typing import Any, Final, NamedTuple, TypeAlias

from burrowmq.cluster.wire import Delivered, WireError, decode_headers, encode_headers

ATOMIC_MAX: Final = 1000
"""Messages of an atomic batch that a server takes at most, unless it is configured otherwise."""
ACK: Final = b""
"""An acknowledgement: an empty payload is one, too."""
NAK: Final = b"-NAK"
WORKING: Final = b"+WPI"
TERM: Final = b"+TERM"
MS: Final = 1_000_000
"""Nanoseconds, in which JetStream counts."""
_ACK_PREFIX: Final = b"$JS.ACK."


class Request(NamedTuple):
    """What is published to ask for something."""

    subject: bytes
    payload: bytes
    headers: bytes = b""


@dataclass(frozen=True, slots=True, kw_only=True)
class StreamSettings:
    """A stream as this package makes them: on disk, a work queue or one with limits; full, it refuses what is new."""

    name: str
    subjects: tuple[str, ...]
    replicas: int = 3
    is_work_queue: bool = True
    messages_max: int = -1
    bytes_max: int = -1
    duplicate_window_ms: int = 600_000
    metadata: tuple[tuple[str, str], ...] = ()

    def document(self) -> dict[str, object]:
        """The configuration that JetStream is given."""
        return {
            "name": self.name,
            "subjects": list(self.subjects),
            "retention": "workqueue" if self.is_work_queue else "limits",
            "max_consumers": -1,
            "max_msgs": self.messages_max,
            "max_bytes": self.bytes_max,
            "max_age": 0,
            "max_msgs_per_subject": -1,
            "discard": "new",
            "storage": "file",
            "num_replicas": self.replicas,
            "duplicate_window": self.duplicate_window_ms * MS,
            "allow_direct": True,
            "allow_atomic": True,
            "metadata": dict(self.metadata),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ConsumerSettings:
    """A durable pull consumer from which all front-ends take; each message is to be acknowledged."""

    name: str
    ack_wait_ms: int = 10_000
    unacked_max: int = -1
    pulls_max: int = 512
    more: tuple[tuple[str, object], ...] = ()

    def document(self) -> dict[str, object]:
        """The configuration that JetStream is given."""
        return {
            "durable_name": self.name,
            "name": self.name,
            "deliver_policy": "all",
            "ack_policy": "explicit",
            "ack_wait": self.ack_wait_ms * MS,
            "max_deliver": -1,
            "replay_policy": "instant",
            "max_waiting": self.pulls_max,
            "max_ack_pending": self.unacked_max,
            "num_replicas": 0,
            **dict(self.more),
        }


def _request(verb: str, *names: str, body: dict[str, object] | None = None) -> Request:
    payload = b"" if body is None else json.dumps(body).encode()
    return Request(".".join(("$JS.API", verb, *names)).encode(), payload)


def create_stream(settings: StreamSettings) -> Request:
    """Make a stream; one that is there with the same settings is answered the same way."""
    return _request("STREAM.CREATE", settings.name, body=settings.document())


def stream_state(name: str) -> Request:
    """How many messages a stream has, and who leads it."""
    return _request("STREAM.INFO", name)


def delete_stream(name: str) -> Request:
    """Remove a stream with all that is in it."""
    return _request("STREAM.DELETE", name)


def purge_stream(name: str) -> Request:
    """Remove all messages of a stream."""
    return _request("STREAM.PURGE", name)


def trim_stream(name: str, first: int) -> Request:
    """Remove all messages before the sequence `first`."""
    return _request("STREAM.PURGE", name, body={"seq": first})


def step_down(name: str, to: str = "") -> Request:
    """Have the leader of a stream hand over to another replica: to the server of that name, if one is named."""
    body: dict[str, object] | None = {"placement": {"preferred": to}} if to else None
    return _request("STREAM.LEADER.STEPDOWN", name, body=body)


def create_consumer(stream: str, settings: ConsumerSettings) -> Request:
    """Make a consumer; one that is there with the same settings is answered the same way."""
    body: dict[str, object] = {"stream_name": stream, "config": settings.document()}
    return _request("CONSUMER.CREATE", stream, settings.name, body=body)


def consumer_state(stream: str, consumer: str) -> Request:
    """What a consumer has delivered, and what of that is acknowledged."""
    return _request("CONSUMER.INFO", stream, consumer)


def pause_consumer(stream: str, consumer: str, until: str = "") -> Request:
    """Have a consumer deliver nothing, whoever pulls, until then by the servers' clocks (RFC 3339); "": go on."""
    body: dict[str, object] = {"pause_until": until} if until else {}
    return _request("CONSUMER.PAUSE", stream, consumer, body=body)


def get_message(stream: str, sequence: int) -> Request:
    """Read one message from any replica; answered by the message itself, or by the status 404."""
    return _request("DIRECT.GET", stream, body={"seq": sequence})


def pull(
    stream: str, consumer: str, count: int, *, expires_ms: int, heartbeat_ms: int, **more: object
) -> Request:
    """Ask for up to `count` messages, which come as they are there until the request expires."""
    body: dict[str, object] = {
        **more,
        "batch": count,
        "expires": expires_ms * MS,
        "idle_heartbeat": heartbeat_ms * MS,
    }
    return _request("CONSUMER.MSG.NEXT", stream, consumer, body=body)


def pull_now(stream: str, consumer: str, count: int = 1) -> Request:
    """Ask for up to `count` messages that are there now; a status says so if they are fewer."""
    body: dict[str, object] = {"batch": count, "no_wait": True}
    return _request("CONSUMER.MSG.NEXT", stream, consumer, body=body)


# -- answers ----------------------------------------------------------------------------------------------------------


class Refusal(NamedTuple):
    """What JetStream does not do, and why; `error` is its own number of the reason."""

    code: int
    error: int
    text: str


Document: TypeAlias = dict[str, Any]
"""JSON of JetStream; who reads a field looks at its type."""


def answer(delivered: Delivered) -> Document | Refusal:
    """The answer to a request of the API."""
    if delivered.headers:
        refusal = _by_status(delivered.headers)
        if refusal is not None:
            return refusal
    try:
        found = json.loads(delivered.payload)
    except (ValueError, RecursionError):
        return Refusal(0, 0, "an answer that is not JSON")
    if not isinstance(found, dict):
        return Refusal(0, 0, "an answer that is not a JSON object")
    error = found.get("error")
    if isinstance(error, dict):
        return Refusal(_number(error, "code"), _number(error, "err_code"), _text(error))
    return found


def _by_status(headers: bytes) -> Refusal | None:
    try:
        found = decode_headers(headers)
    except WireError as error:
        return Refusal(0, 0, str(error))
    return Refusal(found.status, 0, found.text or "no responders") if found.status else None


def _number(found: Document, name: str) -> int:
    value = found.get(name)
    return value if isinstance(value, int) else 0


def _text(error: Document) -> str:
    return str(error.get("description", "no reason is given"))


class Outcome(Enum):
    """What is known of a publish once it has been answered."""

    STORED = "stored"
    """A majority has it, on disk if the servers sync always; now, or from an earlier attempt."""
    AGAIN = "again"
    """Not now, or not known: the same is to be sent again, under the same id."""
    FULL = "full"
    """Nothing of it is stored: the stream has no room for all of it."""
    NO_ROOM = "no room"
    """Nothing of it is stored: the server that leads has no room, and lets another lead."""
    REFUSED = "refused"
    """Nothing of it is stored, and to send it again would not help."""


class PublishAnswer(NamedTuple):
    """The outcome, what the answer said of it, and the stream's sequence of the last message (0: not known)."""

    outcome: Outcome
    text: str
    sequence: int


_CONTAINS_DUPLICATE: Final = 10201
"""A message id of the batch is known. One id a batch is enough to say that all of it is there: it is all or nothing."""
UNAVAILABLE: Final = 10008
_AGAIN: Final = frozenset({
    UNAVAILABLE,  # JetStream system temporarily unavailable
    10009,  # cluster can not handle request: not the leader
    10023,  # insufficient resources: the leader has no room, and steps down
    10158,  # an earlier attempt is being stored
    10163,  # what the subject has last is not known yet: who leads has just begun
    10164,  # another change of the same subject is being stored
    10176,  # the batch was not whole: part of it went to another leader, or it was forgotten
    10210,  # too many batches at once
})  # fmt: skip


_NO_ROOM: Final = 10023
_NO_STORAGE: Final = 10047
TOO_LARGE: Final = -1
"""A refusal of our own: of what is larger than the server takes, which would end the connection."""
NOT_PERMITTED: Final = -2
"""A refusal of our own: the server has said, without an answer, that this account may not ask for it."""


def is_for_now(refusal: Refusal) -> bool:
    """Whether the same may be done another time: the servers elect somebody, or there is no answer."""
    return refusal.error in (0, NOT_PERMITTED, _STORE_FAILED) or refusal.error in _AGAIN


def is_no_room(refusal: Refusal) -> bool:
    """Whether the servers have no room for it: somebody has to give them some, or delete something."""
    return refusal.error in (_NO_ROOM, _NO_STORAGE)


_STORE_FAILED: Final = 10077
"""The limits' own texts are told apart from a store that fails, as nats-server words them."""
_FULL_TEXTS: Final = ("maximum messages exceeded", "maximum bytes exceeded")


STREAM_NOT_FOUND: Final = 10059
CONSUMER_NOT_FOUND: Final = 10014
STREAM_NAME_TAKEN: Final = 10058
"""There is one of that name with other settings."""


def publish_answer(delivered: Delivered) -> PublishAnswer:
    """What is known of a publish, or of an atomic batch, from the answer to its last message."""
    found = answer(delivered)
    if isinstance(found, Refusal):
        return PublishAnswer(_outcome(found), found.text, 0)
    sequence = _number(found, "seq")
    if sequence <= 0:
        return PublishAnswer(Outcome.AGAIN, "an answer without a sequence", 0)
    return PublishAnswer(Outcome.STORED, "", sequence)


def _outcome(refusal: Refusal) -> Outcome:
    if refusal.error == _CONTAINS_DUPLICATE:
        return Outcome.STORED
    if refusal.error == _NO_ROOM:
        return Outcome.NO_ROOM
    if refusal.error in _AGAIN or refusal.error == 0:  # a status, or no answer that says anything
        return Outcome.AGAIN
    if refusal.error == _STORE_FAILED:
        return Outcome.FULL if refusal.text in _FULL_TEXTS else Outcome.AGAIN
    return Outcome.REFUSED


class Depth(NamedTuple):
    """What a stream and its only consumer together say of how much is in them."""

    message_count: int
    """Messages that are not acknowledged."""
    byte_count: int
    """Octets of them, roughly: as if all messages of the stream were of one size."""
    first: int
    """Sequence of the oldest message that the stream keeps."""
    floor: int
    """All messages up to this one are acknowledged."""
    fresh: int
    """Sequence of the first message that was not delivered; 0 where there is none, or where somebody pulls."""
    is_pulled: bool
    """Whether somebody waits for messages."""
    behind: int
    """Messages that were not delivered."""


def depth_of(stream: Document, consumer: Document) -> Depth:
    """Read both answers: of which may have been given the later, and by other servers.

    Nothing behind what was delivered leaves a stream but by a purge of all: so what is not delivered is counted by
    sequences, and the stream's leader knows the last of those that it has confirmed.
    """
    state, delivered, acknowledged = (
        found if isinstance(found, dict) else {}
        for found in (stream.get("state"), consumer.get("delivered"), consumer.get("ack_floor"))
    )
    first, last = _number(state, "first_seq"), _number(state, "last_seq")
    behind = last - max(_number(delivered, "stream_seq"), first - 1)
    count = max(0, behind) + _number(consumer, "num_ack_pending")
    kept = _number(state, "messages")
    size = _number(state, "bytes") * min(count, kept) // kept if kept else 0
    is_pulled = _number(consumer, "num_waiting") > 0
    fresh = last - behind + 1 if behind > 0 and not is_pulled else 0
    floor = _number(acknowledged, "stream_seq")
    return Depth(count, size, first, floor, fresh, is_pulled, max(0, behind))


class Extent(NamedTuple):
    """What a stream has, as its leader says."""

    created: str
    """When it was made: another one, if that is another time."""
    newest: int
    """Sequence of the last message that it has ever had."""
    message_count: int


def extent_of(stream: Document) -> Extent:
    """Read the answer to `stream_state`."""
    state = stream.get("state")
    state = state if isinstance(state, dict) else {}
    created = str(stream.get("created", ""))
    return Extent(created, _number(state, "last_seq"), _number(state, "messages"))


UNHEARD_MS: Final = 5_000
"""A replica from which its leader has heard nothing for so long is not online: it is asked once a second."""


def members_of(stream: Document) -> tuple[str, tuple[str, ...], tuple[str, ...]]:
    """(leader, all who keep the stream, those of them that the leader hears); "" for the leader while there is none.

    `offline` is no help: nats-server 2.15 does not say it of a server that was killed, or does not answer.
    """
    found = stream.get("cluster")
    if not isinstance(found, dict):
        return "", (), ()
    leader = str(found.get("leader") or "")
    others = [each for each in found.get("replicas") or () if isinstance(each, dict)]
    mine = {leader} - {""}
    members = mine | {str(each.get("name")) for each in others}
    online = mine | {str(each.get("name")) for each in others if _is_heard(each)}
    return leader, tuple(sorted(members)), tuple(sorted(online))


def _is_heard(replica: Document) -> bool:
    """`active` is how long ago: 0 also of one that this leader, elected since, has never heard; that is not current."""
    heard_ns = _number(replica, "active")
    is_known = heard_ns > 0 or replica.get("current") is not False
    return replica.get("offline") is not True and is_known and heard_ns < UNHEARD_MS * MS


# -- publishing -------------------------------------------------------------------------------------------------------


def single_headers(message_id: bytes) -> bytes:
    """Headers of a message that is published by itself."""
    return encode_headers([(b"Nats-Msg-Id", message_id)])


def batch_headers(batch_id: bytes, message_id: bytes, count: int) -> list[bytes]:
    """Headers of an atomic batch, message by message: the first carries the id, the last commits.

    `message_id` is that of the burst, `batch_id` that of this attempt: the rest of an attempt that was cut off lies
    under its batch id for ten seconds, and would make another with the same one incomplete.
    """
    assert 1 < count <= ATOMIC_MAX, "a batch"
    lead = b"NATS/1.0\r\nNats-Batch-Id: %b\r\nNats-Batch-Sequence: " % batch_id
    found = [b"%b%d\r\n\r\n" % (lead, number) for number in range(1, count + 1)]
    found[0] = b"%b1\r\nNats-Msg-Id: %b\r\n\r\n" % (lead, message_id)
    found[-1] = b"%b%d\r\nNats-Batch-Commit: 1\r\n\r\n" % (lead, count)
    return found


# -- deliveries -------------------------------------------------------------------------------------------------------


class Place(NamedTuple):
    """Which message of a stream a delivery is; `delivery_count` is 1 the first time."""

    sequence: int
    delivery_count: int


def place_of(reply: bytes) -> Place | None:
    """What the reply subject of a delivery says; None when it is none of JetStream's.

    `$JS.ACK.<stream>.<consumer>.<count>.<sequence>.<own sequence>.<time>.<pending>`, with a domain and an account's
    hash before the stream in the second version. Names have no dots: the figures are counted from the end.
    """
    if not reply.startswith(_ACK_PREFIX):
        return None
    fields = reply.rsplit(b".", 5)
    if len(fields) != 6:
        return None
    _, count, sequence, own, at, behind = fields
    if not (own.isdigit() and at.isdigit() and behind.isdigit()):
        return None
    try:
        # As cluster.wire does: a named tuple's own __new__ takes as long as all the rest.
        return tuple.__new__(Place, (int(sequence), int(count)))
    except ValueError:
        return None


def stored_ms(reply: bytes) -> int:
    """When the message of a delivery was stored, by the clock of the server that took it: milliseconds of the epoch.

    Of a reply that `place_of` knows.
    """
    return int(reply.rsplit(b".", 2)[1]) // MS


def behind_of(reply: bytes) -> int:
    """How many messages that were never delivered the stream had behind that of a delivery, when it was sent."""
    return int(reply.rsplit(b".", 1)[1])
