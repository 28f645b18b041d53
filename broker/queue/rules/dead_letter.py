"""Dead letters: which messages of a queue become one, what it looks like, by which keys it goes, where it must not.

`DeadLetters` is the queue's part: whoever drops messages (expiry, length limits, a rejection) sends them there with the
reason, and removes the originals itself. State owned: the exchange and key that are in force. The rest of the module
are pure functions, message in, message out: `record` (for the first deaths of a run `first_record`) writes x-death,
x-first-death-* and x-last-death-*, `dead_keys` says by which keys the result is routed, `is_cycle` which queues it must
not reach again. No message is changed.

What is elsewhere: `broker.vhost.republish` looks the exchange up, routes, and publishes to the queues that it finds,
one dead letter after the other.

Source: RabbitMQ's rabbit_dead_letter and the dead-letter exchange guide; 3.13 header fields.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from burrowmq.broker.queue.rules.settings import Settings
from burrowmq.broker.report.metrics import NodeMetrics
from burrowmq.broker.turn.clock import Clock
from burrowmq.protocol.codec import Message, join_address, split_address, with_fields
from burrowmq.protocol.constants import DEATH_MAX, MAYBE_CC, TABLE_SIZE_MAX
from burrowmq.protocol.errors import FrameError
from burrowmq.protocol.hidden import Hidden, hidden, with_hidden
from burrowmq.protocol.properties import Properties, decode, header_size, header_size_of, rewrite
from burrowmq.protocol.table import (
    FieldTable,
    FieldValue,
    Long,
    Timestamp,
    encode_table,
    encode_value,
)
from burrowmq.records import dataclass

SHORTSTR_MAX = 255
_TABLE_HEAD = len(encode_table({}))
EMPTY_DEATHS = len(encode_table({"x-death": []})) - len(encode_table({}))
_FIELDS: Final[dict[str, type]] = {
    "count": int,
    "reason": str,
    "queue": str,
    "time": int,
    "exchange": str,
    "routing-keys": list,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Death:
    """One dead-lettering: where from, why, where to."""

    queue: str
    reason: str
    exchange: bytes
    routing_key: bytes | None
    """The queue's own key for its dead letters; None when each keeps those that it has."""
    time_s: int
    is_new: bool = False
    """They never were in the queue: nothing of them is on disk but what becomes of their copies."""


class DeadLetters:
    """Those of one queue.

    `republish` takes them to their exchange, if it exists; `totals` count what dies where none is set.
    """

    __slots__ = (
        "_clock",
        "_is_ended",
        "_queue_name",
        "_republish",
        "_routing_key",
        "_totals",
        "exchange",
    )

    def __init__(
        self,
        queue_name: str,
        clock: Clock,
        totals: NodeMetrics,
        republish: Callable[[Death, Sequence[Message]], None],
    ) -> None:
        self._queue_name = queue_name
        self._clock = clock
        self._totals = totals
        self._republish = republish
        self._routing_key: bytes | None = None
        self._is_ended = False
        self.exchange: str | None = None

    def apply(self, settings: Settings) -> None:
        """Where they go from now on."""
        self.exchange = settings.dead_letter_exchange
        self._routing_key = settings.dead_letter_routing_key

    def end(self) -> None:
        """The queue is gone. RabbitMQ: what is rejected after that just goes."""
        self._is_ended = True

    @property
    def is_off(self) -> bool:
        """Whether what dies is dropped, so that nobody has to read it."""
        return self.exchange is None

    def send(self, reason: str, messages: Sequence[Message], *, is_new: bool = False) -> None:
        """Send copies to the dead-letter exchange if one is set; the caller removes the originals.

        `is_new`: there are none, they died when they arrived.
        """
        if self._is_ended:
            return
        if self.exchange is None:
            self.drop(reason, len(messages))
            return
        self._republish(self.death(reason, is_new=is_new), messages)

    def death(self, reason: str, *, is_new: bool = False) -> Death:
        """What happens now to whoever dies for this reason, where an exchange is set."""
        assert self.exchange is not None, "the caller has looked"
        return Death(
            queue=self._queue_name,
            reason=reason,
            exchange=self.exchange.encode("utf-8", "surrogateescape"),
            routing_key=self._routing_key,
            time_s=self._clock.wall_ms() // 1000,
            is_new=is_new,
        )

    def drop(self, reason: str, count: int) -> None:
        """So many died, and no dead-letter exchange is set."""
        self._totals.count_dropped(reason, count)


def routing_keys(message: Message, properties: Properties, *, with_bcc: bool = True) -> list[bytes]:
    """The keys that route a message: the primary one, then CC, then BCC.

    A message whose MAYBE_CC is not set has no more keys, whatever its CC header says: it was dead-lettered by a key of
    a queue's.
    """
    keys = [split_address(message.address)[1]]
    if message.flags & MAYBE_CC:
        keys += keys_in(properties.headers, "CC")
        if with_bcc:
            keys += keys_in(properties.headers, "BCC")
    if with_bcc:
        keys += _octets(hidden(message).bcc)
    return keys


def keys_in(table: FieldTable | None, name: str) -> list[bytes]:
    """The routing keys that a field of a table lists."""
    value = (table or {}).get(name)
    return _octets(value) if isinstance(value, list) else []


def _octets(keys: list[FieldValue]) -> list[bytes]:
    return [key.encode("utf-8", "surrogateescape") for key in keys if isinstance(key, str)]


def record(
    message: Message, death: Death, header_max: int = TABLE_SIZE_MAX
) -> tuple[Message, list[FieldTable]]:
    """(the message as it goes to the dead-letter exchange, its x-death after this death).

    Its header frame has at most `header_max` octets, or as many as it came with. What is left out for that stays with
    the message where clients do not see it, so that cycles are found however long they are.
    Raises: FrameError when the wire cannot carry it: the queue's own routing key is too long.
    """
    properties = decode(message.raw)
    kept = hidden(message)
    key = death.routing_key if death.routing_key is not None else split_address(message.address)[1]
    if len(key) > SHORTSTR_MAX:
        raise FrameError("a dead letter's routing key is too long")
    event = _event(
        split_address(message.address)[0],
        routing_keys(message, properties, with_bcc=False),
        properties.expiration,
        death,
    )
    before = properties.headers or {}
    found = before.get("x-death")
    deaths = _merged([*(found if isinstance(found, list) else ()), *kept.deaths], event)
    headers: FieldTable = {**before, "x-death": [*deaths]}
    # RabbitMQ: a message that comes with an array of deaths, be it a client's, has died before.
    is_first = not isinstance(found, list) and not kept.deaths
    headers |= _summary(event, ("first", "last") if is_first else ("last",))
    properties.headers = headers
    properties.expiration = None
    shown = len(deaths)
    has_room = header_size(message.raw) + DEATH_MAX <= header_max
    if kept.deaths or message.flags & MAYBE_CC or not has_room:
        shown = _fit(properties, before, deaths, header_max)
    dead = rewrite(message, properties, join_address(death.exchange, key))
    # With a key of the queue's own the others are gone for good, be they in a CC header that clients still see.
    more_keys = message.flags & MAYBE_CC if death.routing_key is None else 0
    bcc = kept.bcc if death.routing_key is None else []
    flags = dead.flags & ~MAYBE_CC | more_keys
    if flags != dead.flags:
        dead = Message(dead.address, dead.raw, dead.size, flags, dead.channel, dead.frame_max)
    if bcc or shown < len(deaths):
        dead = with_hidden(dead, Hidden(bcc, deaths[shown:]))
    return dead, deaths


def first_record(
    messages: list[Message], expiration: bytes | None, death: Death
) -> tuple[list[Message], FieldTable]:
    """(what `record` makes of each of these, their only death), for a stretch of plain ones of `first_deaths`.

    Raises: FrameError when the wire cannot carry it: the queue's own routing key is too long.
    """
    exchange, own_key = split_address(messages[0].address)
    key = own_key if death.routing_key is None else death.routing_key
    if len(key) > SHORTSTR_MAX:
        raise FrameError("a dead letter's routing key is too long")
    text = None if expiration is None else expiration.decode("utf-8", "surrogateescape")
    event = _event(exchange, [own_key], text, death)
    added: FieldTable = {"x-death": [event], **_summary(event, ("first", "last"))}
    fields = encode_table(added)[_TABLE_HEAD:]
    return with_fields(messages, join_address(death.exchange, key), fields), event


def _event(exchange: bytes, keys: list[bytes], expiration: str | None, death: Death) -> FieldTable:
    """The entry of a death, were it the first in its queue for its reason."""
    event: FieldTable = {}
    if expiration is not None:
        event["original-expiration"] = expiration
    return event | {
        "count": Long(1),
        "reason": death.reason,
        "queue": death.queue,
        "time": Timestamp(death.time_s),
        "exchange": exchange.decode("utf-8", "surrogateescape"),
        "routing-keys": [key.decode("utf-8", "surrogateescape") for key in keys],
    }


def _summary(event: FieldTable, times: tuple[str, ...]) -> FieldTable:
    return {
        f"x-{when}-death-{name}": event[name]
        for when in times
        for name in ("reason", "queue", "exchange")
    }


def _fit(
    properties: Properties, before: FieldTable, deaths: list[FieldTable], header_max: int
) -> int:
    """Leave out of the headers what has no room: the oldest deaths, else all that was added; how many deaths stay."""
    over = header_size_of(properties) - header_max
    shown = len(deaths)
    while over > 0 and shown:
        shown -= 1
        over -= len(encode_value(deaths[shown]))
    headers: FieldTable = {**(properties.headers or {}), "x-death": [*deaths[:shown]]}
    if not shown:
        del headers["x-death"]
        over -= EMPTY_DEATHS
    if over > 0:
        headers = {name: value for name, value in before.items() if name != "x-death"}
    properties.headers = headers
    return shown


def _merged(found: list[FieldValue], event: FieldTable) -> list[FieldTable]:
    """x-death with this event: an entry of the same (queue, reason) counts up and moves to the front."""
    deaths = [entry for entry in found if isinstance(entry, dict) and _is_death(entry)]
    for index, entry in enumerate(deaths):
        if entry["queue"] == event["queue"] and entry["reason"] == event["reason"]:
            assert isinstance(entry["count"], int)
            counted: FieldTable = {**entry, "count": _wrapped(entry["count"] + 1)}
            return [counted, *deaths[:index], *deaths[index + 1 :]]
    return [event, *deaths]


def _is_death(entry: FieldTable) -> bool:
    """Whether an entry has all that one of ours has.

    RabbitMQ 3.13 forgets others: entries of versions before 3.6, one for each death and without a count, are such.
    """
    return all(
        isinstance(value := entry.get(name), kind) and not isinstance(value, bool)
        for name, kind in _FIELDS.items()
    )


def _wrapped(count: int) -> Long:
    """As RabbitMQ, which counts without bounds and writes the lowest 64 bits: a client may send any count."""
    return Long((count + (1 << 63)) % (1 << 64) - (1 << 63))


def dead_keys(message: Message, death: Death) -> tuple[bytes, ...]:
    """The keys that route a dead letter, by the message as it was in its queue."""
    if death.routing_key is not None:
        return (death.routing_key,)
    properties = decode(message.raw) if message.flags & MAYBE_CC else Properties()
    return tuple(routing_keys(message, properties))


def is_cycle(queue_name: str, death: Death, deaths: Sequence[FieldValue]) -> bool:
    """Whether a dead letter came through `queue_name` before without a reject since: then it is dropped there."""
    if death.reason == "rejected":
        return False
    for entry in deaths:
        if not isinstance(entry, dict):
            continue
        if entry.get("reason") == "rejected":
            return False
        if entry.get("queue") == queue_name:
            return True
    return False
