"""The firehose: a copy of every publish and every delivery in a vhost goes to its exchange `amq.rabbitmq.trace`.

A vhost that is traced has a `Tracer`, any other has None in its place. Testing for None, once per run that is published
or delivered, is all that tracing costs when it is off. Copies are made at the end of the turn, as a stage of the pump,
because a queue must not be published to from within its own deliveries.

    published   key publish.<exchange>, headers as below and vhost, connection, channel, user, routed_queues
    delivered   key deliver.<queue>, headers as below and redelivered (0 or 1), vhost, connection, channel, user
    both        exchange_name, routing_keys, properties (those that the message had, headers among them), node

State owned: what was seen in this turn. Messages that came through the trace exchange are not traced. A copy whose key
would be too long for the wire has it cut; one whose headers would be too large or too deep goes without `properties`.
Keys of BCC are listed in `routing_keys`, as in RabbitMQ: the firehose is the only place that shows them.

Source: rabbit_trace; RabbitMQ's firehose guide.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields
from typing import TYPE_CHECKING, Protocol

from burrowmq.broker.queue.rules.dead_letter import SHORTSTR_MAX, routing_keys
from burrowmq.broker.vhost.router import is_no_queue, queue_count
from burrowmq.protocol.codec import Message, join_address, split_address
from burrowmq.protocol.errors import FrameError
from burrowmq.protocol.properties import Properties, decode, rewrite
from burrowmq.protocol.table import FieldTable, MalformedTable
from burrowmq.records import NamedTuple

if TYPE_CHECKING:
    from burrowmq.broker.exchange.base import Exchange
    from burrowmq.broker.queue.port import QueuePort
    from burrowmq.broker.turn.clock import Scheduler

TRACE_EXCHANGE = "amq.rabbitmq.trace"
_EXCHANGE = TRACE_EXCHANGE.encode()
_NAMES = tuple(each.name for each in fields(Properties))


class TracedVhost(Protocol):
    """What is asked of the vhost."""

    name: str

    @property
    def exchanges(self) -> Mapping[str, Exchange]:
        """Its exchanges by name."""
        ...

    def route(
        self,
        exchange: Exchange,
        routing_keys: tuple[bytes, ...],
        look: Callable[[], Properties] | None,
    ) -> tuple[QueuePort, ...]:
        """Route one message by itself."""
        ...


class Tapped(NamedTuple):
    """On which channel something was seen."""

    connection: str
    channel: int
    user: str


class Tracer:
    """The firehose of one vhost. Pumped like a queue."""

    def __init__(self, vhost: TracedVhost, node_name: str, scheduler: Scheduler) -> None:
        self._vhost = vhost
        self._node_name = node_name
        self._scheduler = scheduler
        self._seen: list[tuple[bytes, Message, Tapped, FieldTable]] = []
        self.is_dirty = False

    def published(
        self,
        messages: Sequence[Message],
        queues: Sequence[QueuePort],
        tapped: Tapped,
        keys: Sequence[bytes] | None = None,
    ) -> None:
        """A client published these to `queues`; `keys` are all keys of a single message with CC or BCC."""
        if not self._is_listened_to():
            return
        exchange, routing_key = split_address(messages[0].address)
        names = [_text(key) for key in keys or (routing_key,)]
        # RabbitMQ takes the default exchange's keys for queues before it looks whether there are such.
        routed = [each.name for each in queues if not is_no_queue(each)]
        extra: FieldTable = {"routed_queues": [*(routed if exchange else names)]}
        if keys is not None:
            extra["routing_keys"] = [*names]
        self._seen.extend((b"publish." + exchange, message, tapped, extra) for message in messages)

    def delivered(
        self, queue_name: str, messages: Sequence[Message], redelivered: bool, tapped: Tapped
    ) -> None:
        """These went to a client."""
        if not self._is_listened_to():
            return
        key = b"deliver." + queue_name.encode("utf-8", "surrogateescape")
        flag: FieldTable = {"redelivered": int(redelivered)}
        self._seen.extend((key, message, tapped, flag) for message in messages)

    def _is_listened_to(self) -> bool:
        exchange = self._vhost.exchanges[TRACE_EXCHANGE]
        if not exchange.bindings and exchange.alternate is None:
            return False
        self._scheduler.queue_dirty(self)
        return True

    def pump(self) -> None:
        """Publish the copies of what was seen."""
        seen, self._seen = self._seen, []
        for key, message, tapped, extra in seen:
            if split_address(message.address)[0] != _EXCHANGE:
                copy, headers = self._copy(key[:SHORTSTR_MAX], message, tapped, extra)
                self._publish(key, copy, headers)

    def _publish(self, key: bytes, copy: Message, headers: FieldTable) -> None:
        exchange = self._vhost.exchanges[TRACE_EXCHANGE]
        routed = self._vhost.route(exchange, (key,), lambda: Properties(headers=headers))
        exchange.publish_in += 1
        exchange.publish_out += queue_count(routed)
        for queue in routed:
            queue.publish([copy], copy.flags, copy.size)

    def _copy(
        self, key: bytes, message: Message, tapped: Tapped, extra: FieldTable
    ) -> tuple[Message, FieldTable]:
        original = decode(message.raw)
        vhost: FieldTable = {
            "vhost": self._vhost.name,
            "connection": tapped.connection,
            "channel": tapped.channel,
            "user": tapped.user,
        }
        headers: FieldTable = {
            "exchange_name": _text(split_address(message.address)[0]),
            "routing_keys": [_text(each) for each in routing_keys(message, original)],
            "properties": _as_table(original),
            "node": self._node_name,
        }
        headers |= vhost | extra
        address = join_address(_EXCHANGE, key)
        try:
            return rewrite(message, Properties(headers=headers), address), headers
        except (FrameError, MalformedTable):
            headers["properties"] = {}
            return rewrite(message, Properties(headers=headers), address), headers


def _text(octets: bytes) -> str:
    return octets.decode("utf-8", "surrogateescape")


def _as_table(properties: Properties) -> FieldTable:
    """The properties that are set, numbers as signed integers, the last property first: RabbitMQ's order."""
    table: FieldTable = {}
    for name in reversed(_NAMES):
        value = getattr(properties, name)
        if value is not None:
            table[name] = int(value) if isinstance(value, int) else value
    return table
