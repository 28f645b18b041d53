"""Deliveries of one channel that wait for an ack, by delivery tag.

One `Delivery` is a run that went to one consumer (or one basic.get) with consecutive tags. Acks come in order more
often than not, so a delivery keeps a head index and shrinks from the front; a tag settled out of order leaves a hole
(None) in its messages. Finding a tag is a bisection, O(log deliveries); an ack of everything up to a tag is
O(deliveries settled). Those settled behind one that is not leave the list together, when they are half of it.

State owned: the deliveries. Never tells queues anything: the channel acts on the `Piece`s that come back.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import cast

from burrowmq.broker.queue.origin import Origin
from burrowmq.broker.queue.run import DeliveryRun, Kind
from burrowmq.broker.queue.serve.consumer import Consumer
from burrowmq.protocol.codec import Message

COMPACT_ABOVE = 512


class Delivery:
    """A run on its way: tags first_tag .. first_tag + len(messages) - 1."""

    __slots__ = (
        "consumer", "expiries", "first_tag", "head", "hole_count", "kind", "messages", "origin", "seqs",
    )  # fmt: skip

    def __init__(
        self,
        first_tag: int,
        origin: Origin,
        run: DeliveryRun,
        consumer: Consumer | None,
    ) -> None:
        self.first_tag = first_tag
        self.origin = origin
        self.consumer = consumer
        self.seqs = run.seqs
        self.messages: list[Message | None] = list(run.messages)
        self.expiries = run.expiries
        self.kind = run.kind
        self.head = 0
        self.hole_count = 0


class Piece:
    """Part of a delivery that was settled together."""

    __slots__ = ("delivery", "expiries", "messages", "seqs", "tags")

    def __init__(
        self,
        delivery: Delivery,
        tags: Sequence[int],
        seqs: Sequence[int],
        messages: list[Message],
        expiries: list[int] | None,
    ) -> None:
        self.delivery = delivery
        self.tags = tags
        self.seqs = seqs
        self.messages = messages
        self.expiries = expiries


def joined(pieces: Sequence[Piece]) -> Sequence[Piece]:
    """Those of one origin, consumer and kind are one piece, to be settled at once; tags are not kept."""
    if len(pieces) < 2:
        return pieces
    ways: dict[tuple[Origin, Consumer | None, Kind], list[Piece]] = {}
    for piece in pieces:
        delivery = piece.delivery
        ways.setdefault((delivery.origin, delivery.consumer, delivery.kind), []).append(piece)
    return [found[0] if len(found) == 1 else _join(found) for found in ways.values()]


def _join(pieces: list[Piece]) -> Piece:
    seqs = pieces[0].seqs
    for piece in pieces[1:]:
        more = piece.seqs
        if not (
            isinstance(seqs, range)
            and isinstance(more, range)
            and seqs.step == more.step == 1
            and seqs.stop == more.start
        ):
            seqs = list(chain.from_iterable(each.seqs for each in pieces))
            break
        seqs = range(seqs.start, more.stop)
    messages: list[Message] = []
    for piece in pieces:
        messages += piece.messages
    return Piece(pieces[0].delivery, (), seqs, messages, None)


class UnknownTag(Exception):
    """The tag is not outstanding on this channel."""


class Unacked:
    """All outstanding deliveries of one channel, lowest tag first."""

    def __init__(self) -> None:
        self._deliveries: list[Delivery] = []
        self._first_tags: list[int] = []
        self._start = 0
        self._settled_count = 0
        self.count = 0

    def add(self, delivery: Delivery) -> None:
        """Remember a delivery; tags only rise."""
        self._deliveries.append(delivery)
        self._first_tags.append(delivery.first_tag)
        self.count += len(delivery.messages)

    def settle_range(self, first_tag: int, last_tag: int) -> list[Piece]:
        """Take out every tag from first to last, each of which must be outstanding.

        Raises UnknownTag before anything is taken out, with the lowest unknown tag as its argument.
        """
        if self.count:
            oldest = self._deliveries[self._start]
            if first_tag == oldest.first_tag + oldest.head and not oldest.hole_count:
                count = last_tag + 1 - first_tag
                if count <= len(oldest.messages) - oldest.head:
                    return [self._cut_head(oldest, count)]
        spans = list(self._spans(first_tag, last_tag))
        pieces = []
        for delivery, low, high in spans:
            pieces.append(self._cut(delivery, low, high))
        self._drop_settled()
        return pieces

    def _cut_head(self, delivery: Delivery, count: int) -> Piece:
        """The first `count` messages that are left of the oldest delivery, which has no holes: acks in order."""
        low = delivery.head
        high = low + count
        messages, seqs, expiries = delivery.messages, delivery.seqs, delivery.expiries
        total = len(messages)
        if count < total:
            messages, seqs = messages[low:high], seqs[low:high]
            expiries = None if expiries is None else expiries[low:high]
        first_tag = delivery.first_tag
        tags = range(first_tag + low, first_tag + high)
        piece = Piece(delivery, tags, seqs, messages, expiries)  # type: ignore[arg-type]  # there is no hole
        self.count -= count
        if high < total:
            delivery.head = high
            return piece
        delivery.messages = []
        delivery.head = 0
        if self.count:
            self._settled_count += 1
            self._drop_settled()
        else:
            self._forget_all()
        return piece

    def settle_up_to(self, tag: int) -> list[Piece]:
        """Take out every outstanding tag up to `tag`, which must itself be outstanding; 0 means all."""
        if tag:
            next(iter(self._spans(tag, tag)))
        pieces = []
        for index in range(self._start, len(self._deliveries)):
            # By index: a slice would copy all that stays outstanding, for each ack.
            delivery = self._deliveries[index]
            if tag and delivery.first_tag > tag:
                break
            end = len(delivery.messages)
            high = min(end, tag - delivery.first_tag + 1) if tag else end
            if high > delivery.head:
                pieces.append(self._cut(delivery, delivery.head, high))
        self._drop_settled()
        return pieces

    def restore(self, pieces: list[Piece]) -> None:
        """Make settled tags outstanding again (tx.rollback). O(deliveries); rare."""
        for piece in pieces:
            old = piece.delivery
            for place, (tag, seq, message) in enumerate(
                zip(piece.tags, piece.seqs, piece.messages, strict=True)
            ):
                due = [piece.expiries[place]] if piece.expiries is not None else None
                run = DeliveryRun((seq,), [message], message.size, old.kind, False, due)
                self._deliveries.append(Delivery(tag, old.origin, run, old.consumer))
                self.count += 1
        live = [each for each in self._deliveries[self._start :] if each.head < len(each.messages)]
        self._deliveries = sorted(_without_overlap(live), key=lambda each: each.first_tag)
        self._first_tags = [each.first_tag for each in self._deliveries]
        self._start = self._settled_count = 0

    def oldest_first(self) -> Iterator[Delivery]:
        """The outstanding deliveries, for who settles none meanwhile."""
        return islice(self._deliveries, self._start, None)

    def _spans(self, first_tag: int, last_tag: int) -> Iterator[tuple[Delivery, int, int]]:
        tag = first_tag
        index = max(bisect_right(self._first_tags, tag, self._start) - 1, self._start)
        while tag <= last_tag:
            if index >= len(self._deliveries):
                raise UnknownTag(tag)
            delivery = self._deliveries[index]
            low = tag - delivery.first_tag
            high = min(len(delivery.messages), last_tag - delivery.first_tag + 1)
            if low < delivery.head or low >= high:
                raise UnknownTag(tag)
            if delivery.hole_count and None in delivery.messages[low:high]:
                raise UnknownTag(tag + delivery.messages[low:high].index(None))
            yield delivery, low, high
            tag = delivery.first_tag + high
            index += 1

    def _cut(self, delivery: Delivery, low: int, high: int) -> Piece:
        messages = delivery.messages[low:high]
        tags: Sequence[int] = range(delivery.first_tag + low, delivery.first_tag + high)
        seqs = delivery.seqs[low:high]
        expiries = delivery.expiries[low:high] if delivery.expiries is not None else None
        found = cast("list[Message]", messages)
        if delivery.hole_count and None in messages:
            live = [index for index, message in enumerate(messages) if message is not None]
            delivery.hole_count -= len(messages) - len(live)
            seqs = [seqs[index] for index in live]
            tags = [tags[index] for index in live]
            expiries = [expiries[index] for index in live] if expiries is not None else None
            found = [message for message in messages if message is not None]
        self.count -= len(found)
        if low == delivery.head:
            delivery.head = high
        else:
            delivery.messages[low:high] = [None] * (high - low)
            delivery.hole_count += high - low
        while (
            delivery.hole_count
            and delivery.head < len(delivery.messages)
            and (delivery.messages[delivery.head] is None)
        ):
            delivery.head += 1
            delivery.hole_count -= 1
        if delivery.head >= len(delivery.messages):
            # Let go of the bodies now, however long an older delivery stays unacked.
            delivery.messages = []
            delivery.head = 0
            self._settled_count += 1
        return Piece(delivery, tags, seqs, found, expiries)

    def _forget_all(self) -> None:
        self._deliveries.clear()
        self._first_tags.clear()
        self._start = self._settled_count = 0

    def _drop_settled(self) -> None:
        deliveries = self._deliveries
        start = self._start
        while start < len(deliveries) and deliveries[start].head >= len(deliveries[start].messages):
            start += 1
        self._start = start
        if start == len(deliveries):
            self._forget_all()
        elif self._settled_count > COMPACT_ABOVE and self._settled_count * 2 > len(deliveries):
            self._deliveries = [each for each in deliveries if each.head < len(each.messages)]
            self._first_tags = [each.first_tag for each in self._deliveries]
            self._start = self._settled_count = 0


def _without_overlap(deliveries: list[Delivery]) -> list[Delivery]:
    """Deliveries with holes split into single ones, so that restored tags can stand between them."""
    split: list[Delivery] = []
    for delivery in deliveries:
        if len(delivery.messages) == 1:
            split.append(delivery)
            continue
        for index in range(delivery.head, len(delivery.messages)):
            message = delivery.messages[index]
            if message is not None:
                due = [delivery.expiries[index]] if delivery.expiries is not None else None
                run = DeliveryRun(
                    delivery.seqs[index : index + 1],
                    [message],
                    message.size,
                    delivery.kind,
                    False,
                    due,
                )
                split.append(
                    Delivery(
                        delivery.first_tag + index,
                        delivery.origin,
                        run,
                        delivery.consumer,
                    )
                )
    return split
