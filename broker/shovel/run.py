"""One run of a shovel, from the moment when both its links are open until one of them, or the work, ends.

What the source delivers is published at the destination in the same call, run by run, and settled as the mode says:

    on-confirm   acked when the destination has confirmed it; what it refuses goes back into its place there
    on-publish   acked when it was written to the destination
    no-ack       never: the source forgets it when it sends it

No message is kept here: what is on its way is unacked at the source, or written. While the destination does not take
more, and for a while after it has refused something, the source is not read.

State owned: both channels, the counts, why the run ended. Driven by its links; awaited by `worker`.
"""

from __future__ import annotations

import asyncio
import contextlib
from itertools import groupby
from operator import attrgetter
from typing import Final

from burrowmq.broker.link.channel import CHANNEL, ChannelClosed, LinkChannel
from burrowmq.broker.link.connect import CannotConnect, Opener
from burrowmq.broker.link.uri import Target
from burrowmq.broker.shovel.definition import Definition
from burrowmq.broker.shovel.headers import Marks
from burrowmq.broker.shovel.settling import Settling
from burrowmq.protocol import methods
from burrowmq.protocol.client.events import ClientEvent, Confirmed, DeliveryRun, ReplyReceived
from burrowmq.protocol.codec import join_address, split_address
from burrowmq.protocol.constants import ReplyCode
from burrowmq.protocol.table import FieldTable

CONSUMER_TAG: Final = "shovel"
SETTLE_TIMEOUT_S: Final = 5.0
"""How long a run that ends waits for the confirms that it is owed."""
BLOCKED_SETTLE_S: Final = 0.5
"""The same of a destination that takes nothing: what it has read may still be confirmed, the rest is not for now."""
REFUSED_PAUSE_S: Final = 1.0
"""How long nothing is read after a refusal: what went back is delivered at once, to be refused again."""
ADDRESSES_MAX: Final = 4096
"""Addresses whose translation is remembered."""
_ADDRESS: Final = attrgetter("address")
DONE: Final = "done"
"""Why a run ends that has moved what it was to move."""


class Run:
    """One attempt at the work, while it lasts."""

    def __init__(self, definition: Definition, opener: Opener, cluster_name: str) -> None:
        self.definition = definition
        self._opener = opener
        self._cluster_name = cluster_name
        self._source = LinkChannel(self)
        self._destination = LinkChannel(self)
        self._settling = Settling()
        self._marks: Marks | None = None
        self._addresses: dict[bytes, bytes] = {}
        self._is_acked = definition.ack_mode != "no-ack"
        self._awaits_confirms = definition.ack_mode == "on-confirm"
        self._pause: asyncio.TimerHandle | None = None
        self._settled = asyncio.Event()  # nothing is pending, or nothing will be confirmed any more
        self.ended: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.source_uri = self.destination_uri = ""
        self.forwarded = 0
        self.refused = 0
        """How often the destination did not take a message."""
        self.remaining: int | None = definition.source.delete_after
        """Messages still to be published; None: no end."""
        self.remaining_unacked = self.remaining

    @property
    def pending(self) -> int:
        """Published and not confirmed."""
        return self._settling.pending if self._awaits_confirms else 0

    @property
    def is_blocked(self) -> bool:
        """Whether the destination takes nothing for now."""
        return self._settling.published > 0 and not self._destination.is_writable

    async def start(self, first: int) -> None:
        """Open both links, declare what there has to be, and consume; `first` chooses among several URIs.

        Raises: CannotConnect, ChannelClosed, LinkLost.
        """
        definition, source = self.definition, self.definition.source
        name = f"Shovel {definition.name}"
        self.source_uri = await self._open(self._source, source.targets, first, name)
        self.destination_uri = await self._open(
            self._destination, definition.destination.targets, first, name
        )
        queue = await self._prepare_destination_and_source()
        if definition.destination.changes_headers:
            self._marks = Marks(
                definition,
                self._cluster_name,
                self.source_uri,
                self.destination_uri,
                self._destination.connection.frame_max,
            )
        if self.remaining == 0:
            self.end(DONE)
            return
        if self._is_acked:
            qos = methods.Basic.Qos(prefetch_count=source.prefetch_count)
            await self._source.ask(qos, methods.Basic.QosOk)
        consume = methods.Basic.Consume(
            queue=queue,
            consumer_tag=CONSUMER_TAG,
            no_ack=not self._is_acked,
            arguments=methods.arguments(source.consumer_arguments),
        )
        await self._source.ask(consume, methods.Basic.ConsumeOk)

    async def _open(
        self, channel: LinkChannel, targets: tuple[Target, ...], first: int, name: str
    ) -> str:
        """Open a link to one of the targets, beginning anywhere; its URI without what is secret."""
        if not targets:
            raise CannotConnect("no URI is given")
        reasons = []
        for place in range(len(targets)):
            target = targets[(first + place) % len(targets)]
            try:
                await channel.open(self._opener, target, name)
            except CannotConnect as error:
                reasons.append(f"{target.public or 'this node'}: {error}")
            else:
                return target.public
        raise CannotConnect("; ".join(reasons))

    async def _prepare_destination_and_source(self) -> str:
        """Declare the queues; the one to consume."""
        source, destination = self.definition.source, self.definition.destination
        if destination.queue is not None:
            await _ensure(self._destination, destination.queue, destination.queue_arguments)
        if self._awaits_confirms:
            await self._destination.ask(methods.Confirm.Select(), methods.Confirm.SelectOk)
        if source.queue is None:
            made = await self._source.ask(
                methods.Queue.Declare(exclusive=True), methods.Queue.DeclareOk
            )
            bind = methods.Queue.Bind(
                queue=str(made.queue), exchange=source.exchange, routing_key=source.exchange_key
            )
            await self._source.ask(bind, methods.Queue.BindOk)
        else:
            made = await _ensure(self._source, source.queue, source.queue_arguments)
        if source.is_deleted_after_length:
            self.remaining = self.remaining_unacked = made.message_count
        return str(made.queue)

    async def close(self) -> None:
        """Close both links: what is on its way is confirmed and acked first, so that it is not moved a second time.

        A destination that an alarm has blocked would not read our close either: that link is cut. One that is only slow
        reads all that is written before it.
        """
        self._end_pause()
        destination = self._destination
        if self.pending and self._source.is_open and destination.is_open:
            wait_s = BLOCKED_SETTLE_S if destination.is_blocked else SETTLE_TIMEOUT_S
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(wait_s):
                    await self._settled.wait()
        if destination.is_blocked:
            destination.abort()
        else:
            await destination.close()
        await self._source.close()

    def abort(self) -> None:
        """Close both links at once."""
        self._end_pause()
        self._destination.abort()
        self._source.abort()

    def end(self, reason: str) -> None:
        """The run is over; the first reason counts."""
        if not self.ended.done():
            self.ended.set_result(reason)

    # -- Sink ---------------------------------------------------------------------------------------------------------

    def arrived(self, channel: LinkChannel, event: ClientEvent) -> None:
        """Deliveries from the source, confirms from the destination."""
        if isinstance(event, DeliveryRun):
            self._move(event)
        elif isinstance(event, Confirmed):
            self._settle(event)
        elif isinstance(event, ReplyReceived) and channel is self._source:
            # basic.cancel: the queue is gone.
            self.end("the source's queue was deleted")

    def may_write(self, channel: LinkChannel) -> None:
        """The destination takes more: read on."""
        if channel is self._destination:
            self._read_on()

    def ended_link(self, channel: LinkChannel, reason: str) -> None:
        """Either link is no more."""
        self._settled.set()
        which = "source" if channel is self._source else "destination"
        self.end(f"{which}: {reason}")

    # -- messages -----------------------------------------------------------------------------------------------------

    def _move(self, run: DeliveryRun) -> None:
        """Publish a run as it is, or the part of it that is still wanted."""
        if self.ended.done():
            return
        messages, destination = run.messages, self._destination
        if self.remaining is not None:
            messages = messages[: self.remaining]
            self.remaining -= len(messages)
        if not messages:
            return
        if self._marks is not None:
            messages = self._marks.applied(messages)
        publish = destination.connection.publish
        for address, stretch in groupby(messages, _ADDRESS):
            publish(CHANNEL, self._address(address), list(stretch))
        destination.flush()
        count = len(messages)
        self._settling.published += count
        self.forwarded += count
        if not self._awaits_confirms:
            if self._is_acked:
                self._source.connection.ack(CHANNEL, run.first_tag + count - 1, multiple=True)
                self._source.flush()
            self._count_settled(count)
        if not destination.is_writable:
            self._source.read(is_wanted=False)

    def _settle(self, confirmed: Confirmed) -> None:
        """Pass a confirm on to the source. What is refused goes back at once: a later ack may be of all before it."""
        tags, count = self._settling.settle(confirmed)
        connection = self._source.connection
        for tag, multiple in tags:
            if confirmed.is_nack:
                connection.nack(CHANNEL, tag, multiple=multiple, requeue=True)
            else:
                connection.ack(CHANNEL, tag, multiple=multiple)
        if confirmed.is_nack:
            self.refused += count
            self._begin_pause()
        self._source.flush()
        self._count_settled(count)
        if self.ended.done() and not self.pending:
            self._settled.set()

    def _begin_pause(self) -> None:
        if self._pause is None and not self.ended.done():
            self._source.read(is_wanted=False)
            loop = asyncio.get_running_loop()
            self._pause = loop.call_later(REFUSED_PAUSE_S, self._pause_is_over)

    def _pause_is_over(self) -> None:
        self._pause = None
        self._read_on()

    def _end_pause(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
            self._pause = None

    def _read_on(self) -> None:
        if self._pause is None and self._destination.is_writable:
            self._source.read(is_wanted=True)

    def _count_settled(self, count: int) -> None:
        if self.remaining_unacked is not None:
            self.remaining_unacked -= count
            if self.remaining_unacked <= 0:
                self.end(DONE)

    def _address(self, address: bytes) -> bytes:
        """Where a message with this address goes."""
        found = self._addresses.get(address)
        if found is None:
            if len(self._addresses) >= ADDRESSES_MAX:
                self._addresses.clear()
            found = self._addresses[address] = self._translated(address)
        return found

    def _translated(self, address: bytes) -> bytes:
        destination = self.definition.destination
        if destination.queue is not None:
            return join_address(b"", _octets(destination.queue))
        exchange, key = split_address(address)
        if destination.exchange is not None:
            exchange = _octets(destination.exchange)
        if destination.exchange_key is not None:
            key = _octets(destination.exchange_key)
        return join_address(exchange, key)


def _octets(name: str) -> bytes:
    return name.encode("utf-8", "surrogateescape")


async def _ensure(
    channel: LinkChannel, queue: str, arguments: FieldTable
) -> methods.Queue.DeclareOk:
    """A queue of that name: the one that is there, whatever its arguments, or a durable one with these."""
    try:
        return await channel.ask(
            methods.Queue.Declare(queue=queue, passive=True), methods.Queue.DeclareOk
        )
    except ChannelClosed as closed:
        if closed.code != ReplyCode.NOT_FOUND:
            raise
    await channel.reopen()
    declare = methods.Queue.Declare(
        queue=queue, durable=True, arguments=methods.arguments(arguments)
    )
    return await channel.ask(declare, methods.Queue.DeclareOk)
