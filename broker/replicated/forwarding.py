"""Messages on their way to a classic queue that lives at another front-end, and what is taken from others.

`Elsewhere` stands in a route where a queue does. A run goes as one request to the home, which answers when its queue
has answered (and its disk, where a confirm waits for that). The request, little endian:

    off  size  field
    0    1     version: 1
    1    2     length of the virtual host's name, as UTF-8
    3    2     length of the queue's name
    5    n     both names
    5+n  ...   each message: its length (4), and a record of `cluster.record`

The answer is JSON: the places of messages that the queue has refused. Nothing is sent twice: a message whose answer
does not come, since the home has died or the connection broke, is refused, though it may have been taken.

State owned: tickets that are open, and sums. Called by whoever publishes, and by `broker.replicated.homes`.
"""

from __future__ import annotations

import json
from functools import reduce
from operator import or_
from struct import Struct
from typing import TYPE_CHECKING, Final, Protocol, cast

from burrowmq.broker.queue.outcome import PENDING, Rejected
from burrowmq.cluster.api import Refusal, Request
from burrowmq.cluster.record import RecordError, pack, unpack
from burrowmq.cluster.tickets import Ticket
from burrowmq.cluster.wire import Delivered, encode_publish
from burrowmq.records import dataclass

if TYPE_CHECKING:
    from collections.abc import Sequence

    from burrowmq.broker.queue.outcome import Outcome
    from burrowmq.broker.queue.port import QueuePort
    from burrowmq.broker.replicated.front_end import FrontEnd
    from burrowmq.broker.turn.clock import Scheduler
    from burrowmq.broker.vhost.vhost import Vhost
    from burrowmq.cluster.api import Document
    from burrowmq.protocol.codec import Message
    from burrowmq.storage.engine import Engine

_SUBJECT: Final = b"burrowmq.home."
_HEAD: Final = Struct("<BHH")
_LENGTH: Final = Struct("<I")
VERSION: Final = 1


def subject_of(token: str) -> bytes:
    """Where a front-end takes what is for its queues."""
    return _SUBJECT + token.encode()


@dataclass(slots=True)
class Sums:
    """Messages that went to other front-ends, and that came from them, since the node's start."""

    forwarded_count: int = 0
    forwarded_refused_count: int = 0
    """Those of which the home has said so, or nothing in time."""
    taken_count: int = 0
    taken_refused_count: int = 0


class Elsewhere:
    """A queue at another front-end, as a route has it."""

    kind = "classic"
    is_deleted = False
    is_elsewhere = True

    def __init__(
        self, front_end: FrontEnd, sums: Sums, home: str, place: tuple[str, str], *, durable: bool
    ) -> None:
        self.vhost_name, self.name = place
        self.durable = durable
        self._front_end = front_end
        self._sums = sums
        self._subject = subject_of(home)
        names = (self.vhost_name.encode(), self.name.encode("utf-8", "surrogateescape"))
        self._head = _HEAD.pack(VERSION, *map(len, names)) + b"".join(names)

    def publish(self, messages: list[Message], _flags: int, _size: int) -> Outcome:
        """Send a run; its ticket says what became of it."""
        self._sums.forwarded_count += len(messages)
        room = self._front_end.payload_max - len(self._head)
        ticket = Ticket(len(messages))
        first = size = 0
        parts: list[bytes] = []
        for place, message in enumerate(messages):
            record = pack(message)
            length = _LENGTH.size + len(record)
            if length > room:
                # What is before it goes by itself.
                self._send(ticket, first, parts)
                self._settle(ticket, 1, [place])
                first, size, parts = place + 1, 0, []
                continue
            if size + length > room:
                self._send(ticket, first, parts)
                first, size, parts = place, 0, []
            parts += (_LENGTH.pack(len(record)), record)
            size += length
        self._send(ticket, first, parts)
        ticket.is_crowded = self._front_end.holds_back()
        return ticket

    take = publish

    def _send(self, ticket: Ticket, first: int, parts: list[bytes]) -> None:
        count = len(parts) // 2
        if not count:
            return

        def on_answer(found: Document | Refusal) -> None:
            refused: Sequence[int] = range(count)
            if not isinstance(found, Refusal):
                refused = [each for each in found.get("refused", ()) if isinstance(each, int)]
            if self._settle(ticket, count, [first + each for each in refused]) and ticket.on_done:
                ticket.on_done()

        payload = b"".join((self._head, *parts))
        self._front_end.ask(Request(self._subject, payload), on_answer)

    def _settle(self, ticket: Ticket, count: int, refused: list[int]) -> bool:
        self._sums.forwarded_refused_count += len(refused)
        ticket.open_count -= count
        ticket.refused.extend(refused)
        return not ticket.open_count


class ElsewhereReply(Elsewhere):
    """Who waits for direct replies at another front-end."""

    is_no_queue = True


class Takes(Protocol):
    """A node, as far as messages come to it."""

    vhosts: dict[str, Vhost]
    engine: Engine

    def refused_in(self, epoch: int) -> frozenset[tuple[str, str]]:
        """Of which queues the disk has refused something of a commit that has just been done."""
        ...


class Taking:
    """What other front-ends send for queues of this one."""

    def __init__(self, front_end: FrontEnd, sums: Sums, scheduler: Scheduler, node: Takes) -> None:
        self._front_end = front_end
        self._sums = sums
        self._scheduler = scheduler
        self._node = node

    def taken(self, deliveries: list[Delivered]) -> None:
        """Runs have come."""
        for delivered in deliveries:
            try:
                vhost, name, messages = _read(delivered.payload)
            except (RecordError, UnicodeDecodeError):
                continue  # who has written it learns that nobody answers
            self._take(vhost, name, messages, delivered.reply)
        self._scheduler.touch()

    def _take(self, vhost_name: str, name: str, messages: list[Message], reply: bytes) -> None:
        self._sums.taken_count += len(messages)
        everything = list(range(len(messages)))
        vhost = self._node.vhosts.get(vhost_name)
        # A reply consumer is published to as a queue is.
        target = cast("QueuePort | None", None if vhost is None else vhost.here(name))
        if target is None:
            self._answer(reply, everything)
            return
        flags = reduce(or_, (message.flags for message in messages), 0)
        outcome = target.publish(messages, flags, sum(message.size for message in messages))
        if isinstance(outcome, int):
            self._answer_later(reply, (vhost_name, name), [], is_pending=bool(outcome & PENDING))
        elif isinstance(outcome, Rejected):
            place, refused = (vhost_name, name), outcome.indexes
            self._answer_later(reply, place, refused, is_pending=outcome.is_pending)
        elif outcome.is_done:
            self._answer(reply, list(outcome.refused))
        else:
            outcome.on_done = lambda: self._answer(reply, list(outcome.refused))

    def _answer_later(
        self, reply: bytes, place: tuple[str, str], refused: list[int], *, is_pending: bool
    ) -> None:
        if not is_pending:
            self._answer(reply, refused)
            return
        epoch = self._node.engine.epoch

        def on_committed() -> None:
            if place not in self._node.refused_in(
                epoch
            ):  # else the disk has refused it: no answer is a nack
                self._answer(reply, refused)

        self._node.engine.require_sync()
        self._scheduler.when_committed(epoch, on_committed)

    def _answer(self, reply: bytes, refused: list[int]) -> None:
        self._sums.taken_refused_count += len(refused)
        if reply:
            payload = json.dumps({"refused": refused}, separators=(",", ":")).encode()
            self._front_end.write(encode_publish(reply, payload))


def _read(payload: bytes) -> tuple[str, str, list[Message]]:
    """(virtual host, queue, messages) of a run. Raises: RecordError, UnicodeDecodeError."""
    if len(payload) < _HEAD.size:
        raise RecordError("shorter than its head")
    version, vhost_length, name_length = _HEAD.unpack_from(payload)
    if version != VERSION:
        raise RecordError(f"version {version}; {VERSION} is known")
    pos = _HEAD.size + vhost_length
    vhost = payload[_HEAD.size : pos].decode()
    name = payload[pos : pos + name_length].decode("utf-8", "surrogateescape")
    pos += name_length
    messages = []
    while pos < len(payload):
        if pos + _LENGTH.size > len(payload):
            raise RecordError("the last length is cut off")
        (length,) = _LENGTH.unpack_from(payload, pos)
        pos += _LENGTH.size
        if pos + length > len(payload):
            raise RecordError("the last message is cut off")
        messages.append(unpack(payload[pos : pos + length]))
        pos += length
    if not messages:
        raise RecordError("no message")
    return vhost, name, messages
